/* Images per second and efficiency over the number of machines, as predicted: a curve for each network between them. */
#include "report/axis.h"
#include "report/figure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEIGHT = 230, LABEL_BYTES = 640, WORDS_BYTES = 800 };

static double speed_of(const dv_scaling_row *row) {
    return row->images_per_second;
}

static double efficiency_of(const dv_scaling_row *row) {
    return 100 * row->efficiency;
}

/* The two panels of each ground. */
static const struct side {
    const char *words;
    dv_unit unit;
    double (*number)(const dv_scaling_row *row);
    bool logarithmic;
} sides[] = {
    {"images per second of all machines", DV_UNIT_SPEED, speed_of, true},
    {"efficiency: the part of its time that a machine does not wait", DV_UNIT_PERCENT, efficiency_of, false},
};

enum { SIDES = sizeof sides / sizeof *sides };

/* ---- grounds: predictions that are drawn together --------------------------------------------- */

static bool same_ground(const dv_scaling_text *a, const dv_scaling_text *b) {
    return strcmp(a->model, b->model) == 0 && a->batch == b->batch && strcmp(a->precision, b->precision) == 0;
}

static bool is_first(const dv_report_data *data, size_t index) {
    for (size_t i = 0; i < index; i++)
        if (same_ground(&data->scalings[i], &data->scalings[index]))
            return false;
    return true;
}

static const dv_scaling_text *ground_at(const dv_report_data *data, size_t n) {
    for (size_t i = 0; i < data->scaling_count; i++)
        if (is_first(data, i) && n-- == 0)
            return &data->scalings[i];
    return data->scalings;
}

static size_t panels(const dv_report_data *data) {
    size_t grounds = 0;
    for (size_t i = 0; i < data->scaling_count; i++)
        grounds += is_first(data, i);
    return SIDES * grounds;
}

/* "division, 10 Gb/s, 50 µs". */
static const char *label_of(const dv_scaling_text *of, char text[LABEL_BYTES]) {
    char rate[DV_UNIT_TEXT], latency[DV_UNIT_TEXT];
    snprintf(text, LABEL_BYTES, "%s, %s Gb/s, %s µs", of->method, dv_decimal_text(of->bandwidth * 8e-9, 3, rate),
             dv_decimal_text(of->latency * 1e6, 1, latency));
    return text;
}

/* ---- drawing --------------------------------------------------------------------------------- */

static void draw_curve(const dv_scaling_text *of, const struct side *side, const dv_field *field, size_t series,
                       dv_drawing *drawing) {
    char look[DV_LOOK_BYTES], label[LABEL_BYTES], words[WORDS_BYTES], number[DV_UNIT_TEXT];
    dv_path line = dv_path_begin(drawing, dv_series_look(series, "line", look));
    for (size_t i = 0; i < of->row_count; i++)
        dv_path_point(&line, dv_axis_at(&field->x, of->rows[i].ranks),
                      dv_axis_at(&field->y, side->number(&of->rows[i])));
    dv_path_end(&line, NULL);
    for (size_t i = 0; i < of->row_count; i++) {
        double x = dv_axis_at(&field->x, of->rows[i].ranks), y = dv_axis_at(&field->y, side->number(&of->rows[i]));
        snprintf(words, sizeof words, "%s, %.0f machines: %s", label_of(of, label), of->rows[i].ranks,
                 dv_unit_text(side->unit, side->number(&of->rows[i]), number));
        dv_draw_mark(drawing, x, y, 2.6, series, NULL);
        dv_draw_box(drawing, x - 5, y - 6, 10, 12, "touch", words);
    }
}

/* As many images per second for each machine as one has alone. */
static void draw_ideal(const dv_scaling_text *ground, const dv_field *field, dv_drawing *drawing) {
    const dv_scaling_row *first = &ground->rows[0], *last = &ground->rows[ground->row_count - 1];
    double each = first->images_per_second / first->ranks;
    dv_draw_line(drawing, dv_axis_at(&field->x, first->ranks), dv_axis_at(&field->y, each * first->ranks),
                 dv_axis_at(&field->x, last->ranks), dv_axis_at(&field->y, each * last->ranks), "grid");
}

static dv_field field_of(const dv_report_data *data, const dv_scaling_text *ground, const struct side *side) {
    dv_range ranks = DV_RANGE_EMPTY, numbers = DV_RANGE_EMPTY;
    for (const dv_scaling_text *of = data->scalings; of < data->scalings + data->scaling_count; of++)
        for (size_t i = 0; same_ground(ground, of) && i < of->row_count; i++) {
            dv_range_add(&ranks, of->rows[i].ranks);
            dv_range_add(&numbers, side->number(&of->rows[i]));
        }
    if (!side->logarithmic)
        dv_range_add(&numbers, 0);
    return (dv_field){.x = dv_axis_logarithmic(ranks, DV_UNIT_COUNT),
                      .y = side->logarithmic ? dv_axis_logarithmic(numbers, side->unit)
                                             : dv_axis_linear(numbers, side->unit, 5)};
}

static void draw_curves(const dv_report_data *data, const dv_scaling_text *ground, const struct side *side,
                        const dv_field *field, double top, dv_drawing *drawing) {
    dv_legend_entry *entries = calloc(data->scaling_count, sizeof *entries);
    char(*labels)[LABEL_BYTES] = calloc(data->scaling_count, sizeof *labels);
    size_t count = 0;
    drawing->body.failed |= entries == NULL || labels == NULL;
    for (size_t i = 0; !drawing->body.failed && i < data->scaling_count; i++) {
        if (!same_ground(ground, &data->scalings[i]))
            continue;
        draw_curve(&data->scalings[i], side, field, count, drawing);
        entries[count] = (dv_legend_entry){label_of(&data->scalings[i], labels[count]), count};
        count++;
    }
    drawing->height = drawing->body.failed ? top : dv_draw_legend(drawing, top + 4, entries, count) + 4;
    free(entries);
    free(labels);
}

static void draw(const dv_report_data *data, size_t panel, dv_drawing *drawing) {
    const dv_scaling_text *ground = ground_at(data, panel / SIDES);
    const struct side *side = &sides[panel % SIDES];
    char title[DV_GROUND_TEXT];
    dv_field field = field_of(data, ground, side);
    snprintf(title, sizeof title, "%.200s, batch %.0f, %.24s", ground->model, ground->batch, ground->precision);
    double end = dv_draw_field(drawing, &field, title, HEIGHT, side->words, "machines");
    if (side->logarithmic)
        draw_ideal(ground, &field, drawing);
    draw_curves(data, ground, side, &field, end, drawing);
}

/* ---- the table ------------------------------------------------------------------------------- */

static void tabulate(const dv_report_data *data, dv_table *table) {
    static const char *const words[] = {"network", "type", "method"};
    static const char *const numbers[] = {"batch",        "Gb/s",       "latency, s",        "machines",     "step, s",
                                          "transfers, s", "waiting, s", "images per second", "efficiency, %"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        dv_table_column(table, words[i], DV_UNIT_NONE);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        dv_table_column(table, numbers[i], DV_UNIT_NONE);
    for (const dv_scaling_text *of = data->scalings; of < data->scalings + data->scaling_count; of++)
        for (const dv_scaling_row *row = of->rows; row < of->rows + of->row_count; row++) {
            dv_table_words(table, of->model);
            dv_table_words(table, of->precision);
            dv_table_words(table, of->method);
            dv_table_number(table, of->batch);
            dv_table_number(table, of->bandwidth * 8e-9);
            dv_table_number(table, of->latency);
            dv_table_number(table, row->ranks);
            dv_table_number(table, row->step_seconds);
            dv_table_number(table, row->transfer_seconds);
            dv_table_number(table, row->waiting_seconds);
            dv_table_number(table, row->images_per_second);
            dv_table_number(table, efficiency_of(row));
        }
}

const dv_figure dv_figure_scaling = {
    .name = "scaling",
    .title = "Several machines",
    .about = "What a step should take on so many machines, each with a batch of its own: operations as they were timed "
             "on one machine, transfers by a model of the network. The straight line is what machines that never wait "
             "would do.",
    .command = "division plan --model resnet50 --batch 32 --bandwidth 10Gb/s --latency 50us --json > scaling.jsonl",
    .panels = panels,
    .draw = draw,
    .tabulate = tabulate,
};
