/* division train --find-lr: tries rising learning rates, suggests one, and leaves a plot and the numbers. */
#include "cli.h"
#include "train.h"

#include <division/tools/report.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define SVG_FILE "find-lr.svg"
#define JSON_FILE "find-lr.json"

enum { TITLE_BYTES = 256 };

void train_screen_rate(train_screen *screen, const dv_train_progress *progress) {
    if (cli_live_due(&screen->line))
        cli_live_draw(&screen->line, "step %zu/%zu  rate %.2g  loss %.4f  %.0f images/s", progress->step,
                      progress->steps, progress->learning_rate, progress->loss, progress->images_per_second);
}

static dv_status write_files(const dv_training *training, const dv_rate_point *points, const dv_rate_found *found,
                             dv_error *error) {
    const dv_options *options = dv_training_options(training);
    char title[TITLE_BYTES];
    snprintf(title, sizeof title, "%.60s, batch %zu, %.80s", options->model, options->batch * options->accumulate,
             options->optimizer);
    dv_status status = dv_report_rates_svg(points, found, title, SVG_FILE, error);
    return status == DV_OK ? dv_report_rates_json(points, found, JSON_FILE, error) : status;
}

static void print_found(train_screen *screen, const dv_rate_found *found) {
    if (isnan(found->suggested))
        cli_live_print(&screen->line, "the loss did not fall at any rate: check the data, the labels and --init");
    else
        cli_live_print(&screen->line, "suggested: --lr %.2g, a tenth of %.2g, where the loss was lowest",
                       found->suggested, found->lowest);
    if (found->at_end)
        cli_live_print(&screen->line, "the loss was still falling at the last rate: larger ones may do as well");
    cli_live_print(&screen->line, "losses by rate: " SVG_FILE ", " JSON_FILE);
}

static int search(train_screen *screen, dv_training *training, const dv_rate_search *options, dv_rate_point *points,
                  dv_error *error) {
    dv_rate_found found;
    dv_status status = dv_training_find_rate(training, options, points, &found, error);
    train_screen_wipe(screen);
    if (status == DV_OK && found.stopped) {
        cli_fail("interrupted after %zu of %zu steps: nothing was changed", found.points, options->steps);
        return CLI_INTERRUPTED;
    }
    if (status == DV_OK)
        status = write_files(training, points, &found, error);
    if (status != DV_OK)
        return cli_report(error);
    print_found(screen, &found);
    return cli_finish();
}

int train_find_rate(train_screen *screen, dv_training *training, dv_error *error) {
    dv_rate_search options = dv_rate_search_default();
    dv_rate_point *points = calloc(options.steps, sizeof *points);
    if (points == NULL) {
        cli_fail("no memory for %zu steps: free some", options.steps);
        return CLI_FAILURE;
    }
    int code = search(screen, training, &options, points, error);
    free(points);
    return code;
}
