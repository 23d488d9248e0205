/* Noise of the gradient against bytes: a point per method. */
#include "report/axis.h"
#include "report/figure.h"
#include "report/labels.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEIGHT = 270, WORDS_BYTES = 1024, LANE = 34 };

/* Rounding of a method that is exact is not a noise to show on a logarithmic axis. */
#define NO_NOISE 1e-12

/* Bytes kept for an image. The line itself knows, or a memory benchmark or a plan of the same network and method. */
static double bytes_of(const dv_report_data *data, const dv_bench_line *line) {
    if (!isnan(line->activation_bytes))
        return line->activation_bytes / line->batch;
    for (const dv_bench_line *other = data->lines; other < dv_lines_end(data); other++)
        if (other->kind == DV_BENCH_MEMORY && strcmp(other->model, line->model) == 0 &&
            strcmp(other->method, line->method) == 0)
            return other->activation_bytes / other->batch;
    for (const dv_plan_text *plan = data->plans; plan < dv_plans_end(data); plan++)
        if (strcmp(plan->model, line->model) == 0 && strcmp(plan->method, line->method) == 0)
            return plan->activation_bytes / plan->batch;
    return NAN;
}

/* Whether a line is a point of the panel of `ground`. */
static bool is_shown(const dv_report_data *data, const dv_bench_line *ground, const dv_bench_line *line) {
    return dv_line_same_ground(ground, line) && line->parameter[0] == '\0' && bytes_of(data, line) >= 1 &&
           isfinite(bytes_of(data, line));
}

/* Grounds of which a method's bytes are known. */
static const dv_bench_line *ground_at(const dv_report_data *data, size_t n) {
    const dv_bench_line *ground;
    for (size_t i = 0; (ground = dv_line_ground_at(data, DV_BENCH_GRADIENT, i)) != NULL; i++) {
        bool shown = false;
        for (const dv_bench_line *line = data->lines; line < dv_lines_end(data); line++)
            shown |= is_shown(data, ground, line);
        if (shown && n-- == 0)
            return ground;
    }
    return NULL;
}

static size_t panels(const dv_report_data *data) {
    size_t count = 0;
    while (ground_at(data, count) != NULL)
        count++;
    return count;
}

/* ---- drawing ------------------------------------------------------------------------------- */

static dv_field field_of(const dv_report_data *data, const dv_bench_line *ground) {
    dv_range bytes = DV_RANGE_EMPTY, noise = DV_RANGE_EMPTY;
    for (const dv_bench_line *line = data->lines; line < dv_lines_end(data); line++) {
        if (!is_shown(data, ground, line))
            continue;
        dv_range_add(&bytes, bytes_of(data, line));
        if (line->variance_ratio > NO_NOISE)
            dv_range_add(&noise, line->variance_ratio);
    }
    if (dv_range_is_empty(&noise))
        noise = (dv_range){0.01, 1};
    noise.high *= 2;
    noise.low /= 2;
    return (dv_field){.x = dv_axis_logarithmic(bytes, DV_UNIT_BYTES), .y = dv_axis_logarithmic(noise, DV_UNIT_NONE)};
}

/* Methods without noise have no place on a logarithmic axis: they stand in a lane below it. */
static double height_of(const dv_field *field, double noise) {
    return noise > NO_NOISE ? dv_axis_at(&field->y, noise) : field->bottom + LANE / 2.0;
}

static void draw_lane(dv_drawing *drawing, const dv_field *field) {
    dv_draw_line(drawing, field->left, field->bottom, field->right, field->bottom, "reference");
    dv_draw_words(
        drawing,
        (dv_words){.x = field->left - 6, .y = field->bottom + LANE / 2.0 + 4, .at = DV_END, .look = "small quiet"},
        "0");
}

static dv_label draw_point(const dv_report_data *data, const dv_bench_line *line, const dv_field *field,
                           dv_drawing *drawing) {
    char words[WORDS_BYTES], noise[DV_UNIT_TEXT], bytes[DV_UNIT_TEXT];
    dv_label label = {dv_axis_at(&field->x, bytes_of(data, line)), height_of(field, line->variance_ratio),
                      line->method};
    snprintf(words, sizeof words, "%s: %s of the batch's variance, %s for an image", line->method,
             dv_unit_text(DV_UNIT_NONE, line->variance_ratio, noise),
             dv_unit_text(DV_UNIT_BYTES, bytes_of(data, line), bytes));
    dv_draw_mark(drawing, label.x, label.y, 5, dv_report_series(data, line->method), words);
    return label;
}

static size_t draw_points(const dv_report_data *data, const dv_bench_line *ground, const dv_field *field,
                          dv_drawing *drawing) {
    dv_label *labels = calloc(data->line_count, sizeof *labels);
    size_t count = 0;
    dv_field all = *field;
    all.bottom += LANE;
    drawing->body.failed |= labels == NULL;
    for (const dv_bench_line *line = data->lines; labels != NULL && line < dv_lines_end(data); line++)
        if (is_shown(data, ground, line))
            labels[count++] = draw_point(data, line, field, drawing);
    size_t apart = dv_draw_labels(drawing, &all, labels, count);
    free(labels);
    return apart;
}

static double draw_legend(const dv_report_data *data, const dv_bench_line *ground, double top, dv_drawing *drawing) {
    dv_legend_entry *entries = calloc(data->line_count, sizeof *entries);
    size_t count = 0;
    drawing->body.failed |= entries == NULL;
    for (const dv_bench_line *line = data->lines; entries != NULL && line < dv_lines_end(data); line++)
        if (is_shown(data, ground, line))
            entries[count++] = (dv_legend_entry){line->method, dv_report_series(data, line->method)};
    double end = dv_draw_legend(drawing, top, entries, count);
    free(entries);
    return end;
}

static void draw(const dv_report_data *data, size_t panel, dv_drawing *drawing) {
    const dv_bench_line *ground = ground_at(data, panel);
    char title[DV_GROUND_TEXT], base[DV_GROUND_TEXT];
    if (ground == NULL)
        return;
    dv_field field = field_of(data, ground);
    snprintf(title, sizeof title, "%.300s, %.*s", dv_line_ground_text(ground, base), (int)strcspn(ground->data, ":"),
             ground->data);
    double end = dv_draw_field_above(drawing, &field, title, HEIGHT, LANE,
                                     "variance of the gradient's noise, by that of a batch", "bytes kept for an image");
    draw_lane(drawing, &field);
    bool all_named = draw_points(data, ground, &field, drawing) == 0;
    drawing->height = (all_named ? end : draw_legend(data, ground, end + 4, drawing)) + 4;
}

static void tabulate(const dv_report_data *data, dv_table *table) {
    dv_table_column(table, "method", DV_UNIT_NONE);
    dv_table_column(table, "network", DV_UNIT_NONE);
    dv_table_column(table, "data", DV_UNIT_NONE);
    dv_table_column(table, "batch", DV_UNIT_COUNT);
    dv_table_column(table, "bytes for an image", DV_UNIT_BYTES);
    dv_table_column(table, "variance by the batch's", DV_UNIT_NONE);
    dv_table_column(table, "mean by what is expected", DV_UNIT_NONE);
    for (const dv_bench_line *line = data->lines; line < dv_lines_end(data); line++) {
        if (line->kind != DV_BENCH_GRADIENT || line->parameter[0] != '\0')
            continue;
        dv_table_words(table, line->method);
        dv_table_words(table, line->model);
        dv_table_words(table, line->data);
        dv_table_number(table, line->batch);
        dv_table_number(table, bytes_of(data, line));
        dv_table_number(table, line->variance_ratio);
        dv_table_number(table, line->mean_ratio);
    }
}

const dv_figure dv_figure_noise = {
    .name = "noise",
    .title = "Noise of the gradient against memory",
    .about = "How much noise a method adds to the gradient, as variance by the variance that the gradient of a batch "
             "has anyway, "
             "against the bytes that it keeps for an image. Lower and further to the left is better.",
    .command = "division bench gradient --model resnet20 --batch 128 --data cifar10:DIR --init RUN/best.safetensors "
               "--json > gradient.jsonl",
    .panels = panels,
    .draw = draw,
    .tabulate = tabulate,
};
