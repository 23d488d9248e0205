/* Memory by layer: a column for what each layer leaves for the backward pass. */
#include "report/axis.h"
#include "report/figure.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { HEIGHT = 200, WORDS_BYTES = 2048 };

static size_t panels(const dv_report_data *data) {
    return data->plan_count;
}

static double layer_bytes(const dv_plan_layer *layer) {
    return layer->kept_bytes + layer->saved_bytes;
}

static void draw_column(const dv_report_data *data, const dv_plan_text *plan, size_t index, const dv_field *field,
                        dv_drawing *drawing) {
    const dv_plan_layer *layer = &plan->layers[index];
    char words[WORDS_BYTES], kept[DV_UNIT_TEXT], saved[DV_UNIT_TEXT], look[DV_LOOK_BYTES];
    double x = dv_axis_at(&field->x, (double)index), width = dv_axis_at(&field->x, (double)index + 1) - x;
    double top = dv_axis_at(&field->y, layer->kept_bytes), higher = dv_axis_at(&field->y, layer_bytes(layer));
    size_t series = dv_report_series(data, plan->method);
    snprintf(words, sizeof words, "%s, %s, output %s: kept %s, %s; saved bytes %s", layer->layer, layer->kind,
             layer->output, layer->kept, dv_unit_text(DV_UNIT_BYTES, layer->kept_bytes, kept),
             dv_unit_text(DV_UNIT_BYTES, layer->saved_bytes, saved));
    dv_draw_box(drawing, x, top, width * 0.86, field->bottom - top, dv_series_look(series, "bar", look), NULL);
    if (layer->saved_bytes > 0)
        dv_draw_box(drawing, x, higher, width * 0.86, top - higher, dv_series_look(series, "pale", look), NULL);
    dv_draw_box(drawing, x, field->top, width, field->bottom - field->top, "touch", words);
}

/* The first part of a layer's name: "layer1" of "layer1.0.conv1". */
static size_t stage_length(const dv_plan_layer *layer) {
    return strcspn(layer->layer, ".");
}

static bool same_stage(const dv_plan_layer *a, const dv_plan_layer *b) {
    return stage_length(a) == stage_length(b) && memcmp(a->layer, b->layer, stage_length(a)) == 0;
}

/* Names below the columns where they have room: stages of a network, not single layers. */
static void draw_stages(const dv_plan_text *plan, const dv_field *field, dv_drawing *drawing) {
    char name[DV_NAME_TEXT];
    double free_from = field->left - 2;
    for (size_t begin = 0, end; begin < plan->layer_count; begin = end) {
        for (end = begin + 1; end < plan->layer_count && same_stage(&plan->layers[begin], &plan->layers[end]);)
            end++;
        double left = dv_axis_at(&field->x, (double)begin), right = dv_axis_at(&field->x, (double)end);
        snprintf(name, sizeof name, "%.*s", (int)stage_length(&plan->layers[begin]), plan->layers[begin].layer);
        double width = dv_words_width(name, DV_SMALL_LETTERS), start = (left + right - width) / 2;
        dv_draw_line(drawing, left, field->bottom, left, field->bottom + 4, "axis");
        if (start < free_from || width > right - left + 12 || start + width > DV_PANEL_WIDTH - DV_EDGE)
            continue;
        dv_draw_words(drawing, (dv_words){.x = start, .y = field->bottom + 16, .look = "small quiet"}, name);
        free_from = start + width + 6;
    }
}

static void draw(const dv_report_data *data, size_t panel, dv_drawing *drawing) {
    const dv_plan_text *plan = &data->plans[panel];
    char title[DV_GROUND_TEXT], caption[WORDS_BYTES], bytes[DV_UNIT_TEXT];
    dv_range range = {0, 1};
    for (size_t i = 0; i < plan->layer_count; i++)
        dv_range_add(&range, layer_bytes(&plan->layers[i]));
    dv_field field = {.x = {.low = 0, .high = (double)plan->layer_count}, .y = dv_axis_linear(range, DV_UNIT_BYTES, 4)};
    snprintf(title, sizeof title, "%.200s, batch %.0f, %.24s: %.255s", plan->model, plan->batch, plan->precision,
             plan->method);
    snprintf(caption, sizeof caption, "bytes that each layer leaves; %s when the forward pass ends",
             dv_unit_text(DV_UNIT_BYTES, plan->activation_bytes, bytes));
    drawing->height = dv_draw_field(drawing, &field, title, HEIGHT, caption, "layers in their order");
    for (size_t i = 0; i < plan->layer_count; i++)
        draw_column(data, plan, i, &field, drawing);
    draw_stages(plan, &field, drawing);
}

static void tabulate(const dv_report_data *data, dv_table *table) {
    dv_table_column(table, "layer", DV_UNIT_NONE);
    dv_table_column(table, "kind", DV_UNIT_NONE);
    dv_table_column(table, "network", DV_UNIT_NONE);
    dv_table_column(table, "batch", DV_UNIT_COUNT);
    dv_table_column(table, "type", DV_UNIT_NONE);
    dv_table_column(table, "method", DV_UNIT_NONE);
    dv_table_column(table, "output", DV_UNIT_NONE);
    dv_table_column(table, "kept", DV_UNIT_NONE);
    dv_table_column(table, "kept bytes", DV_UNIT_BYTES);
    dv_table_column(table, "bits per element", DV_UNIT_NONE);
    dv_table_column(table, "saved bytes", DV_UNIT_BYTES);
    for (const dv_plan_text *plan = data->plans; plan < dv_plans_end(data); plan++)
        for (const dv_plan_layer *layer = plan->layers; layer < plan->layers + plan->layer_count; layer++) {
            dv_table_words(table, layer->layer);
            dv_table_words(table, layer->kind);
            dv_table_words(table, plan->model);
            dv_table_number(table, plan->batch);
            dv_table_words(table, plan->precision);
            dv_table_words(table, plan->method);
            dv_table_words(table, layer->output);
            dv_table_words(table, layer->kept);
            dv_table_number(table, layer->kept_bytes);
            dv_table_number(table, layer->bits_per_element);
            dv_table_number(table, layer->saved_bytes);
        }
}

const dv_figure dv_figure_plan = {
    .name = "plan",
    .title = "Memory by layer",
    .about = "What each layer leaves for the backward pass, from the plan of a step. Full columns are values that are "
             "kept, pale "
             "ones what a layer saves for itself: statistics, winners of a pooling.",
    .command = "division plan --model resnet20 --batch 128 --method division --json --operations > plan.jsonl",
    .panels = panels,
    .draw = draw,
    .tabulate = tabulate,
};
