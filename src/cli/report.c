/* division report: one page with pictures of what trainings, benchmarks and plans said. */
#include "cli.h"
#include "options.h"

#include <division/tools/report.h>

#include <stdio.h>

typedef struct report_settings {
    const char *page, *figures, *tensorboard, *title;
} report_settings;

static dv_status add_all(dv_report *report, const cli_operands *inputs, dv_error *error) {
    dv_status status = DV_OK;
    for (int i = 0; i < inputs->count && status == DV_OK; i++)
        status = dv_report_add(report, inputs->at[i], error);
    return status;
}

static dv_status write_all(dv_report *report, const report_settings *chosen, dv_error *error) {
    dv_status status = DV_OK;
    if (chosen->page != NULL)
        status = dv_report_page(report, chosen->title, chosen->page, error);
    if (status == DV_OK && chosen->figures != NULL)
        status = dv_report_figures(report, chosen->figures, error);
    if (status == DV_OK && chosen->tensorboard != NULL)
        status = dv_report_tensorboard(report, chosen->tensorboard, error);
    return status;
}

static int make_page(const cli_operands *inputs, const report_settings *chosen) {
    dv_report *report = NULL;
    dv_error error;
    dv_status status = dv_report_new(&report, &error);
    if (status == DV_OK)
        status = add_all(report, inputs, &error);
    for (size_t i = 0; status == DV_OK && dv_report_note_at(report, i) != NULL; i++)
        cli_fail("%s", dv_report_note_at(report, i));
    if (status == DV_OK)
        status = write_all(report, chosen, &error);
    dv_report_free(report);
    return status == DV_OK ? cli_finish() : cli_report(&error);
}

int cli_report_command(int argc, char **argv) {
    report_settings chosen = {.title = "DIVISION report"};
    const dv_option options[] = {
        {"o", "FILE", "write the page here", CLI_TEXT(&chosen.page)},
        {"figures", "FOLDER", "write each figure as a file here, NAME.svg, and its numbers, NAME.csv",
         CLI_TEXT(&chosen.figures)},
        {"tensorboard", "FOLDER", "write event files of TensorBoard here, in a folder for each run",
         CLI_TEXT(&chosen.tensorboard)},
        {"title", "TEXT", "what the page is called", CLI_TEXT(&chosen.title)},
        CLI_OPTIONS_END,
    };
    const cli_usage usage = {
        .command = "report",
        .operands = "RUN|FILE...",
        .summary = "Makes one page of folders of runs and of files with what 'division bench' and 'division plan'\n"
                   "printed with --json. The page needs no other file and no network.\n",
        .options = options,
        .minimum_operands = 1,
        .maximum_operands = CLI_MAX_OPERANDS,
    };
    cli_operands inputs;
    int code = cli_parse(&usage, argc, argv, &inputs);
    if (code != CLI_CONTINUE)
        return code;
    if (chosen.page == NULL && chosen.figures == NULL && chosen.tensorboard == NULL)
        return cli_wrong_call(
            "report: nothing to write: name a page with -o page.html, or a folder with --figures or --tensorboard");
    return make_page(&inputs, &chosen);
}
