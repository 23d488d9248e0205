/* The radar: accuracy, compression and throughput of each method at once, a triangle per method. */
#include "report/axis.h"
#include "report/figure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ACCURACY, COMPRESSION, THROUGHPUT, SPOKES, RADIUS = 125, MIDDLE = 205, WORDS_BYTES = 1024 };

typedef struct standing {
    double at[SPOKES]; /* NaN: not known */
} standing;

static const struct {
    const char *name;
    dv_unit unit;
    double angle; /* in turns, from the right, downwards */
} spokes[SPOKES] = {[ACCURACY] = {"accuracy", DV_UNIT_PERCENT, -0.25},
                    [COMPRESSION] = {"compression", DV_UNIT_TIMES, 0.0833333},
                    [THROUGHPUT] = {"throughput", DV_UNIT_TIMES, 0.4166667}};

/* ---- numbers ------------------------------------------------------------------------------- */

/* The mean of the last tests of all runs on the ground of group g with a method. */
static double accuracy_of(const dv_report_data *data, size_t g, const char *method) {
    double sum = 0, runs = 0;
    for (const dv_run_folder *run = data->runs; run < dv_runs_end(data); run++) {
        double last = dv_run_last_top1(run);
        if (isnan(last) || !dv_group_same_ground(data, g, run->group) ||
            strcmp(dv_run_setting_of(run, "method"), method) != 0)
            continue;
        sum += last;
        runs++;
    }
    return runs > 0 ? sum / runs : NAN;
}

/* A figure of the first line of a benchmark with this network and method. */
static double bench_figure(const dv_report_data *data, dv_bench_kind kind, const char *model, const char *method) {
    for (const dv_bench_line *line = data->lines; line < dv_lines_end(data); line++)
        if (line->kind == kind && strcmp(line->model, model) == 0 && strcmp(line->method, method) == 0)
            return kind == DV_BENCH_MEMORY ? line->activation_ratio : line->relative;
    return NAN;
}

/* Activation bytes of an image in the first run on the ground of group g with a method. */
static double run_bytes(const dv_report_data *data, size_t g, const char *method) {
    for (const dv_run_folder *run = data->runs; run < dv_runs_end(data); run++)
        if (dv_group_same_ground(data, g, run->group) && strcmp(dv_run_setting_of(run, "method"), method) == 0)
            return run->log[0].activation_bytes / strtod(dv_run_setting_of(run, "batch"), NULL);
    return NAN;
}

static standing standing_of(const dv_report_data *data, size_t g, const char *method) {
    const char *model = dv_run_setting_of(&data->runs[data->groups[g].first], "model");
    double compression = bench_figure(data, DV_BENCH_MEMORY, model, method);
    if (isnan(compression)) /* planned bytes, which runs have too */
        compression = run_bytes(data, g, "none") / run_bytes(data, g, method);
    return (standing){
        {accuracy_of(data, g, method), compression, bench_figure(data, DV_BENCH_THROUGHPUT, model, method)}};
}

static bool is_whole(const standing *of) {
    return isfinite(of->at[ACCURACY]) && isfinite(of->at[COMPRESSION]) && isfinite(of->at[THROUGHPUT]);
}

/* ---- panels -------------------------------------------------------------------------------- */

/* The n-th ground on which at least two methods are known in all three ways, or the number of groups. */
static size_t ground_at(const dv_report_data *data, size_t n) {
    for (size_t g = 0; g < data->group_count; g++) {
        size_t whole = 0;
        for (size_t m = 0; dv_group_is_first(data, g) && m < data->method_count; m++) {
            standing of = standing_of(data, g, data->methods[m]);
            whole += is_whole(&of);
        }
        if (whole >= 2 && n-- == 0)
            return g;
    }
    return data->group_count;
}

static size_t panels(const dv_report_data *data) {
    size_t count = 0;
    while (ground_at(data, count) < data->group_count)
        count++;
    return count;
}

/* ---- drawing ------------------------------------------------------------------------------- */

/* Scales of the spokes: accuracies are close to each other, so that theirs does not begin at zero. */
static void make_scales(const dv_report_data *data, size_t g, dv_axis scales[SPOKES]) {
    dv_range ranges[SPOKES] = {DV_RANGE_EMPTY, {0, 1}, {0, 1}};
    for (size_t m = 0; m < data->method_count; m++) {
        standing of = standing_of(data, g, data->methods[m]);
        for (int i = 0; i < SPOKES && is_whole(&of); i++)
            dv_range_add(&ranges[i], of.at[i]);
    }
    ranges[ACCURACY].low -= fmax(ranges[ACCURACY].high - ranges[ACCURACY].low, 0.5);
    for (int i = 0; i < SPOKES; i++) {
        scales[i] = dv_axis_linear(ranges[i], spokes[i].unit, 8);
        scales[i].from = 0;
        scales[i].to = RADIUS;
    }
}

static void corner(int spoke, double distance, double *x, double *y) {
    const double turn = 6.283185307179586;
    *x = DV_PANEL_WIDTH / 2.0 + distance * cos(turn * spokes[spoke].angle);
    *y = MIDDLE + distance * sin(turn * spokes[spoke].angle);
}

static void draw_triangle(dv_drawing *drawing, const double distances[SPOKES], const char *look, const char *hint) {
    dv_path path = dv_path_begin(drawing, look);
    double x, y;
    for (int i = 0; i < SPOKES; i++) {
        corner(i, distances[i], &x, &y);
        dv_path_point(&path, x, y);
    }
    dv_path_close(&path);
    dv_path_end(&path, hint);
}

static void draw_web(dv_drawing *drawing, const dv_axis scales[SPOKES]) {
    char words[WORDS_BYTES], high[DV_UNIT_TEXT];
    double x, y;
    for (int ring = 1; ring <= 4; ring++) {
        double distance = RADIUS * ring / 4.0;
        draw_triangle(drawing, (const double[]){distance, distance, distance}, "web", NULL);
    }
    for (int i = 0; i < SPOKES; i++) {
        corner(i, RADIUS, &x, &y);
        dv_draw_line(drawing, DV_PANEL_WIDTH / 2.0, MIDDLE, x, y, "axis");
        snprintf(words, sizeof words, "%s %s", spokes[i].name,
                 dv_mark_text(scales[i].unit, scales[i].high, scales[i].step, scales[i].high, high));
        dv_draw_words(drawing,
                      (dv_words){.x = x, .y = i == ACCURACY ? y - 8 : y + 18, .at = DV_MIDDLE, .look = "small"}, words);
    }
}

static void draw_method(const dv_report_data *data, size_t m, const standing *of, const dv_axis scales[SPOKES],
                        dv_drawing *drawing) {
    char hint[WORDS_BYTES], texts[SPOKES][DV_UNIT_TEXT], look[DV_LOOK_BYTES];
    double distances[SPOKES], x, y;
    for (int i = 0; i < SPOKES; i++) {
        distances[i] = dv_axis_at(&scales[i], of->at[i]);
        dv_unit_text(spokes[i].unit, of->at[i], texts[i]);
    }
    snprintf(hint, sizeof hint, "%s: accuracy %s, compression %s, throughput %s", data->methods[m], texts[ACCURACY],
             texts[COMPRESSION], texts[THROUGHPUT]);
    draw_triangle(drawing, distances, dv_series_look(m, "line", look), hint);
    for (int i = 0; i < SPOKES; i++) {
        corner(i, distances[i], &x, &y);
        dv_draw_mark(drawing, x, y, 4, m, hint);
    }
}

static void draw(const dv_report_data *data, size_t panel, dv_drawing *drawing) {
    size_t g = ground_at(data, panel), count = 0;
    char title[DV_GROUND_TEXT], caption[WORDS_BYTES], low[DV_UNIT_TEXT];
    dv_axis scales[SPOKES];
    dv_legend_entry *entries = calloc(data->method_count, sizeof *entries);
    drawing->body.failed |= entries == NULL;
    make_scales(data, g, scales);
    snprintf(caption, sizeof caption, "the middle is %s of accuracy, and zero of the other two",
             dv_mark_text(DV_UNIT_PERCENT, scales[ACCURACY].low, scales[ACCURACY].step, 100, low));
    dv_draw_heading(drawing, dv_ground_text(data, g, title));
    dv_draw_words(drawing, (dv_words){.x = DV_EDGE, .y = DV_HEADING_HEIGHT + 14, .look = "small quiet"}, caption);
    draw_web(drawing, scales);
    for (size_t m = 0; entries != NULL && m < data->method_count; m++) {
        standing of = standing_of(data, g, data->methods[m]);
        if (!is_whole(&of))
            continue;
        draw_method(data, m, &of, scales, drawing);
        entries[count++] = (dv_legend_entry){data->methods[m], m};
    }
    drawing->height = dv_draw_legend(drawing, MIDDLE + RADIUS - 20, entries, count) + 4;
    free(entries);
}

static void tabulate(const dv_report_data *data, dv_table *table) {
    char title[DV_GROUND_TEXT];
    dv_table_column(table, "method", DV_UNIT_NONE);
    dv_table_column(table, "network and data", DV_UNIT_NONE);
    for (int i = 0; i < SPOKES; i++)
        dv_table_column(table, spokes[i].name, spokes[i].unit);
    for (size_t panel = 0; panel < panels(data); panel++)
        for (size_t m = 0; m < data->method_count; m++) {
            standing of = standing_of(data, ground_at(data, panel), data->methods[m]);
            if (!is_whole(&of))
                continue;
            dv_table_words(table, data->methods[m]);
            dv_table_words(table, dv_ground_text(data, ground_at(data, panel), title));
            for (int i = 0; i < SPOKES; i++)
                dv_table_number(table, of.at[i]);
        }
}

const dv_figure dv_figure_radar = {
    .name = "radar",
    .title = "Accuracy, compression and throughput",
    .about = "Each method at once: test accuracy of its runs, how many times fewer bytes it keeps than none, and its "
             "images per "
             "second by none's. Further out is better.",
    .command = "division train, division bench memory and division bench throughput, for the same network and methods",
    .panels = panels,
    .draw = draw,
    .tabulate = tabulate,
};
