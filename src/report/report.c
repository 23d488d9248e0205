/* Reports: what programs call. */
#include <division/tools/report.h>

#include "base/file.h"
#include "base/status.h"
#include "report/page.h"
#include "report/tensorboard.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PATH_BYTES = 4096 };

struct dv_report {
    dv_report_data data;
};

dv_status dv_report_new(dv_report **report, dv_error *error) {
    DV_NEED(report);
    *report = calloc(1, sizeof **report);
    return *report != NULL ? DV_OK : dv_report_no_memory(error);
}

void dv_report_free(dv_report *report) {
    if (report == NULL)
        return;
    dv_report_data_free(&report->data);
    free(report);
}

dv_status dv_report_add(dv_report *report, const char *path, dv_error *error) {
    DV_NEED(report);
    DV_NEED(path);
    DV_TRY(dv_report_read(&report->data, path, error));
    return dv_report_group(&report->data, error);
}

const char *dv_report_note_at(const dv_report *report, size_t index) {
    return index < report->data.note_count ? report->data.notes[index] : NULL;
}

dv_status dv_report_page(dv_report *report, const char *title, const char *path, dv_error *error) {
    DV_NEED(report);
    DV_NEED(title);
    DV_NEED(path);
    dv_text text = {0};
    dv_page_write(&report->data, title, &text);
    dv_status status = dv_text_replace(&text, path, error);
    dv_text_free(&text);
    return status;
}

/* ---- files of figures ---------------------------------------------------------------------- */

static dv_status make_folder(const char *path, dv_error *error) {
    if (mkdir(path, 0777) == 0 || errno == EEXIST)
        return DV_OK;
    return dv_fail(error, DV_ERROR_IO, "could not make the folder %.100s: %s: %s", dv_file_shown(path), strerror(errno),
                   dv_file_remedy(errno));
}

/* How a figure becomes a file. */
typedef struct figure_form {
    const char *ending;
    void (*write)(const dv_figure *figure, const dv_report_data *data, dv_text *text);
} figure_form;

static dv_status join(const char *folder, const char *name, const char *ending, char path[PATH_BYTES],
                      dv_error *error) {
    if (snprintf(path, PATH_BYTES, "%s/%s%s", folder, name, ending) >= PATH_BYTES)
        return dv_fail(error, DV_ERROR_IO, "a path of %zu characters: give a shorter one",
                       strlen(folder) + strlen(name));
    return DV_OK;
}

static dv_status write_form(const dv_report *report, const dv_figure *figure, const figure_form *form,
                            const char *folder, dv_error *error) {
    char path[PATH_BYTES];
    dv_text text = {0};
    DV_TRY(join(folder, figure->name, form->ending, path, error));
    form->write(figure, &report->data, &text);
    dv_status status = dv_text_replace(&text, path, error);
    dv_text_free(&text);
    return status;
}

dv_status dv_report_figures(dv_report *report, const char *folder, dv_error *error) {
    static const figure_form forms[] = {{".svg", dv_figure_svg}, {".csv", dv_figure_csv}};
    const dv_figure *figure;
    DV_NEED(report);
    DV_NEED(folder);
    DV_TRY(make_folder(folder, error));
    for (size_t i = 0; (figure = dv_figure_at(i)) != NULL; i++)
        for (size_t f = 0; figure->panels(&report->data) > 0 && f < sizeof forms / sizeof *forms; f++)
            DV_TRY(write_form(report, figure, &forms[f], folder, error));
    return DV_OK;
}

/* ---- event files --------------------------------------------------------------------------- */

static dv_status write_events(const dv_run_folder *run, const char *folder, dv_error *error) {
    char place[PATH_BYTES], path[PATH_BYTES];
    dv_text bytes = {0};
    DV_TRY(join(folder, run->name, "", place, error));
    DV_TRY(make_folder(place, error));
    DV_TRY(join(place, DV_TENSORBOARD_FILE, "", path, error));
    dv_tensorboard_write(run, &bytes);
    dv_status status = dv_text_replace(&bytes, path, error);
    dv_text_free(&bytes);
    return status;
}

dv_status dv_report_tensorboard(dv_report *report, const char *folder, dv_error *error) {
    DV_NEED(report);
    DV_NEED(folder);
    if (report->data.run_count == 0)
        return dv_fail(error, DV_ERROR_OPTION,
                       "no run was given to write event files of: give a folder that 'division train --out' made");
    DV_TRY(make_folder(folder, error));
    for (size_t i = 0; i < report->data.run_count; i++)
        DV_TRY(write_events(&report->data.runs[i], folder, error));
    return DV_OK;
}
