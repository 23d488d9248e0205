/* Memory along the schedule: bytes of the arena that are in use at each operation of a step, a line per method. */
#include "report/axis.h"
#include "report/figure.h"
#include "report/labels.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEIGHT = 230, WORDS_BYTES = 1024, MOST_TOUCHES = 160 };

/* ---- plans that are drawn together --------------------------------------------------------- */

static bool is_together(const dv_plan_text *a, const dv_plan_text *b) {
    return b->schedule_count > 0 && strcmp(a->model, b->model) == 0 && strcmp(a->precision, b->precision) == 0 &&
           a->batch == b->batch;
}

/* The n-th plan with a schedule that is the first of those drawn together; their number if there is none. */
static size_t first_plan(const dv_report_data *data, size_t n) {
    for (size_t i = 0; i < data->plan_count; i++) {
        bool first = data->plans[i].schedule_count > 0;
        for (size_t other = 0; other < i; other++)
            first = first && !is_together(&data->plans[i], &data->plans[other]);
        if (first && n-- == 0)
            return i;
    }
    return data->plan_count;
}

static size_t panels(const dv_report_data *data) {
    size_t count = 0;
    while (first_plan(data, count) < data->plan_count)
        count++;
    return count;
}

/* ---- drawing ------------------------------------------------------------------------------- */

static size_t peak_of(const dv_plan_text *plan) {
    size_t peak = 0;
    for (size_t i = 1; i < plan->schedule_count; i++)
        if (plan->schedule[i].alive_bytes > plan->schedule[peak].alive_bytes)
            peak = i;
    return peak;
}

static void draw_line(const dv_report_data *data, const dv_plan_text *plan, const dv_field *field,
                      dv_drawing *drawing) {
    char look[DV_LOOK_BYTES];
    dv_path line = dv_path_begin(drawing, dv_series_look(dv_report_series(data, plan->method), "line", look));
    for (size_t i = 0; i < plan->schedule_count; i++)
        dv_path_point(&line, dv_axis_at(&field->x, (double)i), dv_axis_at(&field->y, plan->schedule[i].alive_bytes));
    dv_path_end(&line, NULL);
}

static void say_step(const dv_plan_text *plan, size_t at, char words[WORDS_BYTES]) {
    const dv_plan_step *step = &plan->schedule[at];
    char bytes[DV_UNIT_TEXT];
    snprintf(words, WORDS_BYTES, "%s, operation %zu, %s %s: %s alive", plan->method, at, step->operation, step->subject,
             dv_unit_text(DV_UNIT_BYTES, step->alive_bytes, bytes));
}

/* Spots that say what they are; of a long schedule some of the operations, and the peak. */
static void draw_touches(const dv_plan_text *plan, const dv_field *field, dv_drawing *drawing) {
    char words[WORDS_BYTES];
    size_t every = plan->schedule_count / MOST_TOUCHES + 1;
    for (size_t i = 0; i < plan->schedule_count; i += every) {
        double x = dv_axis_at(&field->x, (double)i), y = dv_axis_at(&field->y, plan->schedule[i].alive_bytes);
        say_step(plan, i, words);
        dv_draw_box(drawing, x - 2, y - 8, 4, 16, "touch", words);
    }
}

static dv_label draw_peak(const dv_report_data *data, const dv_plan_text *plan, const dv_field *field,
                          dv_drawing *drawing, char bytes[DV_UNIT_TEXT]) {
    char words[WORDS_BYTES];
    size_t peak = peak_of(plan);
    dv_label label = {dv_axis_at(&field->x, (double)peak), dv_axis_at(&field->y, plan->schedule[peak].alive_bytes),
                      dv_unit_text(DV_UNIT_BYTES, plan->schedule[peak].alive_bytes, bytes)};
    say_step(plan, peak, words);
    dv_draw_mark(drawing, label.x, label.y, 4, dv_report_series(data, plan->method), words);
    return label;
}

/* What is drawn of all plans together. */
typedef struct peaks {
    dv_legend_entry *entries;
    dv_label *labels;
    char (*bytes)[DV_UNIT_TEXT];
    size_t count;
} peaks;

static void draw_plans(const dv_report_data *data, const dv_plan_text *first, const dv_field *field,
                       dv_drawing *drawing, peaks *all) {
    for (const dv_plan_text *plan = data->plans; plan < dv_plans_end(data); plan++)
        if (is_together(first, plan)) {
            draw_line(data, plan, field, drawing);
            draw_touches(plan, field, drawing);
        }
    for (const dv_plan_text *plan = data->plans; plan < dv_plans_end(data); plan++)
        if (is_together(first, plan)) {
            all->entries[all->count] = (dv_legend_entry){plan->method, dv_report_series(data, plan->method)};
            all->labels[all->count] = draw_peak(data, plan, field, drawing, all->bytes[all->count]);
            all->count++;
        }
}

static dv_field field_of(const dv_report_data *data, const dv_plan_text *first) {
    dv_range positions = {0, 1}, bytes = {0, 1};
    for (const dv_plan_text *plan = data->plans; plan < dv_plans_end(data); plan++)
        if (is_together(first, plan)) {
            dv_range_add(&positions, (double)plan->schedule_count - 1);
            dv_range_add(&bytes, plan->schedule[peak_of(plan)].alive_bytes * 1.05);
        }
    return (dv_field){.x = dv_axis_tight(positions, DV_UNIT_COUNT, 6), .y = dv_axis_linear(bytes, DV_UNIT_BYTES, 4)};
}

static void draw(const dv_report_data *data, size_t panel, dv_drawing *drawing) {
    const dv_plan_text *first = &data->plans[first_plan(data, panel)];
    char title[DV_GROUND_TEXT];
    dv_field field = field_of(data, first);
    peaks all = {calloc(data->plan_count, sizeof *all.entries), calloc(data->plan_count, sizeof *all.labels),
                 calloc(data->plan_count, sizeof *all.bytes), 0};
    snprintf(title, sizeof title, "%.200s, batch %.0f, %.24s", first->model, first->batch, first->precision);
    double end = dv_draw_field(drawing, &field, title, HEIGHT, "bytes alive in the arena; the peak of each is marked",
                               "operation of the step: forward, loss, backward");
    if (all.entries != NULL && all.labels != NULL && all.bytes != NULL)
        draw_plans(data, first, &field, drawing, &all);
    else
        drawing->body.failed = true;
    dv_draw_labels(drawing, &field, all.labels, all.count);
    drawing->height = dv_draw_legend(drawing, end + 4, all.entries, all.count) + 4;
    free(all.entries);
    free(all.labels);
    free(all.bytes);
}

static void tabulate(const dv_report_data *data, dv_table *table) {
    dv_table_column(table, "method", DV_UNIT_NONE);
    dv_table_column(table, "network", DV_UNIT_NONE);
    dv_table_column(table, "batch", DV_UNIT_COUNT);
    dv_table_column(table, "type", DV_UNIT_NONE);
    dv_table_column(table, "at", DV_UNIT_COUNT);
    dv_table_column(table, "operation", DV_UNIT_NONE);
    dv_table_column(table, "layer or value", DV_UNIT_NONE);
    dv_table_column(table, "bytes alive", DV_UNIT_BYTES);
    for (const dv_plan_text *plan = data->plans; plan < dv_plans_end(data); plan++)
        for (size_t i = 0; i < plan->schedule_count; i++) {
            dv_table_words(table, plan->method);
            dv_table_words(table, plan->model);
            dv_table_number(table, plan->batch);
            dv_table_words(table, plan->precision);
            dv_table_number(table, (double)i);
            dv_table_words(table, plan->schedule[i].operation);
            dv_table_words(table, plan->schedule[i].subject);
            dv_table_number(table, plan->schedule[i].alive_bytes);
        }
}

const dv_figure dv_figure_schedule = {
    .name = "schedule",
    .title = "Memory along a step",
    .about = "Bytes of the arena that are in use at each operation of a step, in the order of the schedule: the "
             "forward pass "
             "fills it, the backward pass empties it.",
    .command = "division plan --model resnet20 --batch 128 --method division --json --operations > plan.jsonl",
    .panels = panels,
    .draw = draw,
    .tabulate = tabulate,
};
