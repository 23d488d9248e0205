/* division info --passes: what computes the convolutions of a network, how long each candidate takes, and how near that
 * is to what the processor can do. */
#include "info.h"

#include "cli.h"

#include <division/models.h>
#include <division/threads.h>
#include <division/tools/json.h>
#include <division/tune.h>

#include <stdio.h>
#include <string.h>

/* "backward-weights f32 ...": the first word of a pass's text. */
static int direction(const dv_pass_row *row) {
    return (int)strcspn(row->text, " ");
}

static const dv_pass_candidate *chosen(const dv_pass_row *row) {
    return &row->candidates[row->chosen];
}

/* Of a step, in all layers that have the pass. */
static double step_seconds(const dv_pass_row *row) {
    return chosen(row)->seconds * (double)row->runs;
}

static double speed(const dv_pass_row *row, const dv_pass_candidate *candidate) {
    return candidate->seconds > 0 ? row->operations / candidate->seconds : 0;
}

/* ---- the peak ------------------------------------------------------------------------------- */

/* A graph whose one convolution is a large matrix product: as near to the processor's peak as anything comes. */
static dv_status build_product(dv_type type, dv_graph **graph, dv_error *error) {
    enum { CHANNELS = 512, SIDE = 16, IMAGES = 8 };
    dv_status status = dv_graph_new(type, IMAGES, graph, error);
    if (status != DV_OK)
        return status;
    dv_convolution_options options = {.channels = CHANNELS, .groups = 1, .window = dv_window_square(1, 1, 0)};
    dv_value x = dv_graph_input(*graph, CHANNELS, 2, (size_t[]){SIDE, SIDE});
    x = dv_graph_convolution(*graph, "product", x, &options);
    x = dv_graph_global_average_pooling(*graph, "pool", x);
    status = dv_graph_finish(*graph, x, error);
    if (status != DV_OK)
        dv_graph_free(*graph);
    return status;
}

/* The most operations per second of any candidate of any pass. */
static double fastest_of(const dv_graph *graph) {
    double most = 0;
    dv_pass_row row;
    for (size_t i = 0; dv_graph_pass_at(graph, i, &row); i++)
        for (int c = 0; c < row.candidate_count; c++)
            if (speed(&row, &row.candidates[c]) > most)
                most = speed(&row, &row.candidates[c]);
    return most;
}

static dv_status find_peak(dv_type type, const dv_tune_options *tune, double *peak, dv_error *error) {
    dv_graph *graph;
    dv_status status = build_product(type, &graph, error);
    if (status != DV_OK)
        return status;
    status = dv_graph_tune(graph, NULL, tune, NULL, error);
    *peak = fastest_of(graph);
    dv_graph_free(graph);
    return status;
}

/* ---- the table ------------------------------------------------------------------------------ */

/* "onednn 1.83 ms" for each candidate that was not chosen. */
static void print_others(const dv_pass_row *row) {
    for (int c = 0; c < row->candidate_count; c++)
        if (c != row->chosen)
            printf("  %s %.2f ms", row->candidates[c].name, 1e3 * row->candidates[c].seconds);
    putchar('\n');
}

static void print_row(const dv_pass_row *row, double step, double peak) {
    printf("%-20s %-16.*s %4zu %-8s %7.2f %5.1f %6.0f %5.2f", row->first_layer, direction(row), row->text, row->uses,
           chosen(row)->name, 1e3 * chosen(row)->seconds, step > 0 ? 100 * step_seconds(row) / step : 0,
           speed(row, chosen(row)) / 1e9, peak > 0 ? speed(row, chosen(row)) / peak : 0);
    print_others(row);
}

static void print_table(const dv_graph *graph, double step, double peak) {
    dv_pass_row row;
    printf("%-20s %-16s %4s %-8s %7s %5s %6s %5s  others\n", "first layer", "pass", "uses", "chosen", "ms", "%", "GF/s",
           "peak");
    for (size_t i = 0; dv_graph_pass_at(graph, i, &row); i++)
        if (row.uses > 0)
            print_row(&row, step, peak);
    printf("convolutions take %.0f ms of a step; the peak is %.0f GF/s, of a product of matrices\n", 1e3 * step,
           peak / 1e9);
}

static void print_json(const dv_graph *graph, double peak) {
    dv_pass_row row;
    for (size_t i = 0; dv_graph_pass_at(graph, i, &row); i++) {
        dv_json json;
        if (row.uses == 0)
            continue;
        dv_json_to_file(&json, stdout);
        dv_json_object(&json, NULL);
        dv_json_text(&json, "pass", row.text);
        dv_json_text(&json, "first_layer", row.first_layer);
        dv_json_unsigned(&json, "uses", row.uses);
        dv_json_unsigned(&json, "runs", row.runs);
        dv_json_number(&json, "operations", row.operations);
        dv_json_number(&json, "peak", peak);
        dv_json_text(&json, "chosen", chosen(&row)->name);
        dv_json_object(&json, "seconds");
        for (int c = 0; c < row.candidate_count; c++)
            dv_json_number(&json, row.candidates[c].name, row.candidates[c].seconds);
        dv_json_end(&json);
        dv_json_end(&json);
        (void)dv_json_finish(&json, NULL); /* cli_finish tells */
    }
}

/* ---- the command ---------------------------------------------------------------------------- */

static dv_status tune_and_print(const info_passes *asked, dv_graph *graph, dv_error *error) {
    dv_plan_options plan = dv_plan_options_default();
    dv_tune_options tune = dv_tune_options_default();
    double peak, step = 0;
    dv_pass_row row;
    dv_status status = dv_tune_parse(asked->tune, &tune, error);
    tune.everything = 1;
    if (status == DV_OK)
        status = dv_graph_tune(graph, &plan, &tune, NULL, error);
    if (status == DV_OK)
        status = find_peak(asked->precision ? DV_BF16 : DV_F32, &tune, &peak, error);
    if (status != DV_OK)
        return status;
    for (size_t i = 0; dv_graph_pass_at(graph, i, &row); i++)
        step += step_seconds(&row);
    if (asked->as_json)
        print_json(graph, peak);
    else
        print_table(graph, step, peak);
    return DV_OK;
}

int info_print_passes(const info_passes *asked) {
    dv_error error;
    dv_graph *graph;
    (void)dv_set_threads(asked->threads, NULL); /* its bounds are the option's */
    dv_status status =
        dv_model_build(asked->model, asked->precision ? DV_BF16 : DV_F32, (size_t)asked->batch, 0, 0, &graph, &error);
    if (status == DV_OK) {
        status = tune_and_print(asked, graph, &error);
        dv_graph_free(graph);
    }
    return status == DV_OK ? cli_finish() : cli_fail("info: %s", error.text);
}
