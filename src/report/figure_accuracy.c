/* Accuracy by method: a bar for each group of runs, the mean of their last tests, with a line from the least to the
 * most. */
#include "report/bars.h"
#include "report/figure.h"
#include <division/tools/report.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the runs of a group came to. */
typedef struct outcome {
    double mean, error, best; /* error: the standard error of the mean, NaN of a single run */
    dv_range range;
    size_t runs;
} outcome;

static outcome outcome_of(const dv_report_data *data, size_t g) {
    outcome of = {.mean = 0, .error = NAN, .best = NAN, .range = DV_RANGE_EMPTY};
    double squares = 0;
    for (const dv_run_folder *run = data->runs; run < dv_runs_end(data); run++) {
        double last = dv_run_last_top1(run);
        if (run->group != g || isnan(last))
            continue;
        of.mean += last;
        squares += last * last;
        of.runs++;
        of.best = fmax(of.best, run->best_top1);
        dv_range_add(&of.range, last);
    }
    of.mean = of.runs > 0 ? of.mean / (double)of.runs : NAN;
    if (of.runs > 1)
        of.error = sqrt(fmax(squares / (double)of.runs - of.mean * of.mean, 0) / (double)(of.runs - 1));
    return of;
}

static double published(const dv_report_data *data, size_t g) {
    const dv_run_folder *run = &data->runs[data->groups[g].first];
    return dv_published_accuracy(dv_run_setting_of(run, "model"), dv_run_setting_of(run, "data"),
                                 dv_run_setting_of(run, "method"));
}

static const char *setting(const dv_report_data *data, size_t g, const char *key) {
    return dv_run_setting_of(&data->runs[data->groups[g].first], key);
}

/* The group of the same ground with method none that g is measured against: the first of its precision, else the first;
 * or g itself if there is none. */
static size_t exact_group(const dv_report_data *data, size_t g) {
    const char *precision = setting(data, g, "precision");
    for (int any = 0; any < 2; any++)
        for (size_t other = 0; other < data->group_count; other++)
            if (dv_group_same_ground(data, g, other) && strcmp(setting(data, other, "method"), "none") == 0 &&
                (any || strcmp(setting(data, other, "precision"), precision) == 0))
                return other;
    return g;
}

/* By how much a group is above none, and the standard error of that. */
static void compare(const dv_report_data *data, size_t g, double *difference, double *error) {
    size_t exact = exact_group(data, g);
    outcome ours = outcome_of(data, g), theirs = outcome_of(data, exact);
    *difference = exact != g ? ours.mean - theirs.mean : NAN;
    *error = exact != g ? sqrt(ours.error * ours.error + theirs.error * theirs.error) : NAN;
}

static void fill_bar(const dv_report_data *data, size_t g, dv_bar *bar) {
    outcome of = outcome_of(data, g);
    char mean[DV_UNIT_TEXT], error[DV_UNIT_TEXT], low[DV_UNIT_TEXT], high[DV_UNIT_TEXT];
    bar->name = data->groups[g].label;
    bar->series = dv_group_series(data, g);
    bar->number = of.mean;
    bar->spread = of.range;
    bar->published = published(data, g);
    if (of.runs < 2)
        return;
    dv_unit_text(DV_UNIT_PERCENT, of.mean, mean);
    dv_unit_text(DV_UNIT_PERCENT, of.error, error);
    snprintf(bar->words, sizeof bar->words, "%.*s \xc2\xb1 %s", (int)strcspn(mean, "\xc2"), mean, error);
    snprintf(bar->hint, sizeof bar->hint, "%s, mean of %zu runs from %s to %s, standard error %s", mean, of.runs,
             dv_unit_text(DV_UNIT_PERCENT, of.range.low, low), dv_unit_text(DV_UNIT_PERCENT, of.range.high, high),
             error);
}

static void draw(const dv_report_data *data, size_t panel, dv_drawing *drawing) {
    size_t ground = dv_ground_at(data, panel), count = 0;
    char title[DV_GROUND_TEXT];
    dv_bar *bars = dv_bars_new(drawing, data->group_count);
    for (size_t g = 0; bars != NULL && g < data->group_count; g++)
        if (dv_group_same_ground(data, ground, g))
            fill_bar(data, g, &bars[count++]);
    dv_draw_bars(drawing,
                 &(dv_bar_chart){.title = dv_ground_text(data, ground, title),
                                 .caption = "test accuracy after the last epoch; the scale does not begin at zero",
                                 .unit = DV_UNIT_PERCENT,
                                 .reference = NAN,
                                 .bars = bars,
                                 .count = count});
    free(bars);
}

static void tabulate(const dv_report_data *data, dv_table *table) {
    char ground[DV_GROUND_TEXT];
    double difference, error;
    dv_table_column(table, "method", DV_UNIT_NONE);
    dv_table_column(table, "network and data", DV_UNIT_NONE);
    dv_table_column(table, "runs", DV_UNIT_COUNT);
    dv_table_column(table, "last test", DV_UNIT_PERCENT);
    dv_table_column(table, "standard error", DV_UNIT_PERCENT);
    dv_table_column(table, "above none", DV_UNIT_PERCENT);
    dv_table_column(table, "its error", DV_UNIT_PERCENT);
    dv_table_column(table, "least", DV_UNIT_PERCENT);
    dv_table_column(table, "most", DV_UNIT_PERCENT);
    dv_table_column(table, "best epoch", DV_UNIT_PERCENT);
    dv_table_column(table, "published", DV_UNIT_PERCENT);
    for (size_t g = 0; g < data->group_count; g++) {
        outcome of = outcome_of(data, g);
        dv_table_words(table, data->groups[g].label);
        dv_table_words(table, dv_ground_text(data, g, ground));
        dv_table_number(table, (double)of.runs);
        dv_table_number(table, of.mean);
        dv_table_number(table, of.error);
        compare(data, g, &difference, &error);
        dv_table_number(table, difference);
        dv_table_number(table, error);
        dv_table_number(table, of.runs > 0 ? of.range.low : NAN);
        dv_table_number(table, of.runs > 0 ? of.range.high : NAN);
        dv_table_number(table, of.best);
        dv_table_number(table, published(data, g));
    }
}

const dv_figure dv_figure_accuracy = {
    .name = "accuracy",
    .title = "Accuracy by method",
    .about = "Top-1 accuracy on the test images after the last epoch: the mean over runs that differ in their seed "
             "alone, its "
             "standard error, and a line from the least to the most.",
    .command = "division train --model resnet20 --data cifar10:DIR --method division --seed 1 --out RUN",
    .open = true,
    .panels = dv_ground_count,
    .draw = draw,
    .tabulate = tabulate,
};
