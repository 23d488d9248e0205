/* Accuracy and loss over epochs: for each group of runs the mean, and a band from the least to the most. */
#include "report/axis.h"
#include "report/figure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { HEIGHT = 230, WORDS_BYTES = 512, MOST_MARKS = 40, MOST_HINTS = 200 };

/* A curve: which number of a line of the log, and what it is called. */
typedef struct curve {
    size_t offset;
    const char *words;
    dv_unit unit;
} curve;

static const curve accuracy = {offsetof(dv_log_line, test_top1), "test accuracy", DV_UNIT_PERCENT};
static const curve losses[] = {{offsetof(dv_log_line, train_loss), "training loss", DV_UNIT_NONE},
                               {offsetof(dv_log_line, test_loss), "test loss", DV_UNIT_NONE}};

static double number_of(const dv_log_line *line, const curve *of) {
    return dv_log_number(line, of->offset);
}

/* ---- groups -------------------------------------------------------------------------------- */

/* What the runs of a group have at one epoch. */
typedef struct moment {
    double sum;
    dv_range range;
    size_t runs;
} moment;

/* The line of an epoch, or NULL; epochs grow along a log. */
static const dv_log_line *line_at(const dv_run_folder *run, double epoch) {
    size_t low = 0, high = run->epochs;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (run->log[middle].epoch < epoch)
            low = middle + 1;
        else
            high = middle;
    }
    return low < run->epochs && run->log[low].epoch == epoch ? &run->log[low] : NULL;
}

static void add_run(const dv_run_folder *run, double epoch, const curve *of, moment *at) {
    const dv_log_line *line = line_at(run, epoch);
    if (line == NULL || !isfinite(number_of(line, of)))
        return;
    at->sum += number_of(line, of);
    at->runs++;
    dv_range_add(&at->range, number_of(line, of));
}

static moment moment_at(const dv_report_data *data, size_t g, double epoch, const curve *of) {
    moment at = {.range = DV_RANGE_EMPTY};
    for (size_t i = 0; i < data->run_count; i++)
        if (data->runs[i].group == g)
            add_run(&data->runs[i], epoch, of, &at);
    return at;
}

/* The last epoch of any run on the ground of group g. */
static double last_epoch(const dv_report_data *data, size_t g) {
    double last = 1;
    for (size_t i = 0; i < data->run_count; i++)
        if (dv_group_same_ground(data, g, data->runs[i].group))
            last = fmax(last, data->runs[i].log[data->runs[i].epochs - 1].epoch);
    return last;
}

static dv_range range_of(const dv_report_data *data, size_t ground, const curve *of) {
    dv_range range = DV_RANGE_EMPTY;
    for (size_t i = 0; i < data->run_count; i++)
        for (size_t e = 0; dv_group_same_ground(data, ground, data->runs[i].group) && e < data->runs[i].epochs; e++)
            dv_range_add(&range, number_of(&data->runs[i].log[e], of));
    return range;
}

/* ---- drawing ------------------------------------------------------------------------------- */

/* A group in the field that it is drawn into. */
typedef struct line_of {
    const dv_report_data *data;
    dv_drawing *drawing;
    const dv_field *field;
    const curve *of;
    size_t group, series;
    size_t last; /* epoch */
} line_of;

static void draw_band(const line_of *line) {
    char look[DV_LOOK_BYTES];
    if (line->data->groups[line->group].runs < 2)
        return;
    dv_path band = dv_path_begin(line->drawing, dv_series_look(line->series, "band", look));
    for (int way = 0; way < 2; way++)
        for (size_t i = 1; i <= line->last; i++) {
            double epoch = (double)(way == 0 ? i : line->last + 1 - i);
            moment at = moment_at(line->data, line->group, epoch, line->of);
            if (at.runs > 0)
                dv_path_point(&band, dv_axis_at(&line->field->x, epoch),
                              dv_axis_at(&line->field->y, way == 0 ? at.range.high : at.range.low));
        }
    dv_path_close(&band);
    dv_path_end(&band, NULL);
}

static void draw_mean(const line_of *line) {
    char look[DV_LOOK_BYTES];
    dv_path mean = dv_path_begin(line->drawing, dv_series_look(line->series, "line", look));
    for (size_t epoch = 1; epoch <= line->last; epoch++) {
        moment at = moment_at(line->data, line->group, (double)epoch, line->of);
        if (at.runs > 0)
            dv_path_point(&mean, dv_axis_at(&line->field->x, (double)epoch),
                          dv_axis_at(&line->field->y, at.sum / (double)at.runs));
    }
    dv_path_end(&mean, NULL);
}

/* "none, epoch 3: 71.2 %, mean of 3 runs from 70.8 % to 71.9 %". */
static void say_moment(const line_of *line, size_t epoch, const moment *at, char words[WORDS_BYTES]) {
    char mean[DV_UNIT_TEXT], low[DV_UNIT_TEXT], high[DV_UNIT_TEXT];
    int used = snprintf(words, WORDS_BYTES, "%s, epoch %zu: %s", line->data->groups[line->group].label, epoch,
                        dv_unit_text(line->of->unit, at->sum / (double)at->runs, mean));
    if (at->runs > 1)
        snprintf(words + used, (size_t)(WORDS_BYTES - used), ", mean of %zu runs from %s to %s", at->runs,
                 dv_unit_text(line->of->unit, at->range.low, low), dv_unit_text(line->of->unit, at->range.high, high));
}

/* A long training has marks at some of its epochs, and hints at more of them. */
static void draw_marks(const line_of *line) {
    char words[WORDS_BYTES];
    size_t every = (line->last - 1) / MOST_MARKS + 1, hinted = (line->last - 1) / MOST_HINTS + 1;
    for (size_t epoch = 1; epoch <= line->last; epoch++) {
        moment at = moment_at(line->data, line->group, (double)epoch, line->of);
        if (at.runs == 0)
            continue;
        double x = dv_axis_at(&line->field->x, (double)epoch),
               y = dv_axis_at(&line->field->y, at.sum / (double)at.runs);
        say_moment(line, epoch, &at, words);
        if (epoch % every == 0)
            dv_draw_mark(line->drawing, x, y, 2.6, line->series, NULL);
        if (epoch % hinted == 0)
            dv_draw_box(line->drawing, x - 5, y - 6, 10, 12, "touch", words);
    }
}

/* Draws all bands, then all lines, then all marks, so that no band hides a line. */
static void draw_groups(line_of line, size_t ground) {
    static void (*const layers[])(const line_of *) = {draw_band, draw_mean, draw_marks};
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        for (line.group = 0; line.group < line.data->group_count; line.group++) {
            line.series = dv_group_series(line.data, line.group);
            if (dv_group_same_ground(line.data, ground, line.group))
                layers[i](&line);
        }
}

static double draw_names(const dv_report_data *data, size_t ground, double top, dv_drawing *drawing) {
    dv_legend_entry *entries = calloc(data->group_count, sizeof *entries);
    size_t count = 0;
    if (entries == NULL) {
        drawing->body.failed = true;
        return top;
    }
    for (size_t g = 0; g < data->group_count; g++)
        if (dv_group_same_ground(data, ground, g))
            entries[count++] = (dv_legend_entry){data->groups[g].label, dv_group_series(data, g)};
    double end = dv_draw_legend(drawing, top, entries, count);
    free(entries);
    return end;
}

static void draw_curve(const dv_report_data *data, size_t ground, const curve *of, dv_drawing *drawing) {
    char title[DV_GROUND_TEXT];
    double last = last_epoch(data, ground);
    dv_range epochs = {1, fmax(last, 2)};
    dv_field field = {.x = dv_axis_tight(epochs, DV_UNIT_COUNT, 8),
                      .y = dv_axis_linear(range_of(data, ground, of), of->unit, 5)};
    double end = dv_draw_field(drawing, &field, dv_ground_text(data, ground, title), HEIGHT, of->words, "epoch");
    draw_groups((line_of){.data = data, .drawing = drawing, .field = &field, .of = of, .last = (size_t)last}, ground);
    drawing->height = draw_names(data, ground, end + 4, drawing) + 4;
}

/* ---- tables -------------------------------------------------------------------------------- */

/* A row per epoch of each run, with two numbers of it. */
static void tabulate(const dv_report_data *data, dv_table *table, const curve of[2]) {
    char ground[DV_GROUND_TEXT];
    dv_table_column(table, "run", DV_UNIT_NONE);
    dv_table_column(table, "network and data", DV_UNIT_NONE);
    dv_table_column(table, "method", DV_UNIT_NONE);
    dv_table_column(table, "epoch", DV_UNIT_COUNT);
    for (int i = 0; i < 2; i++)
        dv_table_column(table, of[i].words, of[i].unit);
    for (const dv_run_folder *run = data->runs; run < dv_runs_end(data); run++)
        for (size_t e = 0; e < run->epochs; e++) {
            dv_table_words(table, run->name);
            dv_table_words(table, dv_ground_text(data, run->group, ground));
            dv_table_words(table, data->groups[run->group].label);
            dv_table_number(table, run->log[e].epoch);
            for (int i = 0; i < 2; i++)
                dv_table_number(table, number_of(&run->log[e], &of[i]));
        }
}

static void tabulate_accuracy(const dv_report_data *data, dv_table *table) {
    const curve both[] = {{offsetof(dv_log_line, train_top1), "training accuracy", DV_UNIT_PERCENT}, accuracy};
    tabulate(data, table, both);
}

static void tabulate_loss(const dv_report_data *data, dv_table *table) {
    tabulate(data, table, losses);
}

/* ---- the figures --------------------------------------------------------------------------- */

static void draw_accuracy(const dv_report_data *data, size_t panel, dv_drawing *drawing) {
    draw_curve(data, dv_ground_at(data, panel), &accuracy, drawing);
}

static size_t loss_panels(const dv_report_data *data) {
    return 2 * dv_ground_count(data);
}

static void draw_loss(const dv_report_data *data, size_t panel, dv_drawing *drawing) {
    draw_curve(data, dv_ground_at(data, panel / 2), &losses[panel % 2], drawing);
}

const dv_figure dv_figure_accuracy_curves = {
    .name = "accuracy-curves",
    .title = "Accuracy over epochs",
    .about =
        "Top-1 accuracy on the test images after each epoch. Runs that differ in their seed alone are one line, their "
        "mean, with a band from the least to the most of them.",
    .command = "division train --model resnet20 --data cifar10:DIR --method division --out RUN",
    .panels = dv_ground_count,
    .draw = draw_accuracy,
    .tabulate = tabulate_accuracy,
};

const dv_figure dv_figure_loss_curves = {
    .name = "loss-curves",
    .title = "Loss over epochs",
    .about =
        "The mean loss over the images that an epoch trained on, while the weights changed, and over the test images "
        "after it.",
    .command = "division train --model resnet20 --data cifar10:DIR --method division --out RUN",
    .panels = loss_panels,
    .draw = draw_loss,
    .tabulate = tabulate_loss,
};
