/* division plan --bandwidth: what a step takes on 1 to 1,024 machines, from a few steps that are timed on this one. */
#include "plan.h"

#include "cli.h"
#include "link.h"
#include "options.h"
#include "step_times.h"

#include <division/threads.h>
#include <division/tune.h>

enum { MOST_RANKS = 1024, MOST_ROWS = 16 };

/* Below it a rank waits so often that more of them are hardly worth their power. */
static const double WORTHWHILE = 0.8;

/* One number of ranks. */
typedef struct row {
    size_t ranks;
    double images;     /* of a step, on all ranks */
    double efficiency; /* images a second, of those that as many ranks would have if they did not wait */
    dv_scaling found;
} row;

typedef struct table {
    const dv_options *options;
    dv_link link;
    dv_step_times alone;
    row rows[MOST_ROWS];
    size_t count;
} table;

/* ---- predicting ------------------------------------------------------------------------------ */

/* Batches of a step that each rank has. */
static size_t own_batches(const dv_options *options) {
    return options->ranks > 0 && options->accumulate > options->ranks ? options->accumulate / options->ranks : 1;
}

static dv_status add_row(table *t, const dv_plan *plan, size_t ranks, dv_error *error) {
    row *added = &t->rows[t->count];
    dv_status status = dv_scaling_predict(plan, &t->alone, &t->link, ranks, &added->found, error);
    added->ranks = ranks;
    added->images = (double)(ranks * t->options->batch * t->alone.batches);
    added->efficiency = added->found.compute / added->found.step;
    t->count += status == DV_OK;
    return status;
}

/* Powers of two, and the number that was asked for among them. */
static dv_status add_rows(table *t, const dv_plan *plan, dv_error *error) {
    size_t asked = t->options->ranks, before = 0;
    dv_status status = DV_OK;
    for (size_t ranks = 1; ranks <= MOST_RANKS && status == DV_OK; ranks *= 2) {
        if (asked > before && asked < ranks)
            status = add_row(t, plan, asked, error);
        if (status == DV_OK)
            status = add_row(t, plan, ranks, error);
        before = ranks;
    }
    return status == DV_OK && asked > before ? add_row(t, plan, asked, error) : status;
}

/* ---- printing -------------------------------------------------------------------------------- */

static double images_per_second(const row *r) {
    return r->images / r->found.step;
}

/* The part of its transfers that a rank does not wait for. */
static double hidden(const row *r) {
    return r->found.transfers > 0 ? 1 - r->found.waiting / r->found.transfers : 1;
}

/* The most ranks up to which each row is worth it. */
static size_t worthwhile(const table *t) {
    size_t most = 1;
    for (size_t i = 0; i < t->count && t->rows[i].efficiency >= WORTHWHILE; i++)
        most = t->rows[i].ranks;
    return most;
}

static void print_table(const table *t) {
    char step[CLI_SECONDS_TEXT], transfers[CLI_SECONDS_TEXT], waiting[CLI_SECONDS_TEXT];
    size_t most = worthwhile(t), last = t->rows[t->count - 1].ranks;
    printf("measured: %d steps of one rank on this machine, threads: %d; predicted: all else\n\n", CLI_TIMED_STEPS,
           dv_threads());
    printf("%6s %9s %10s %10s %10s %7s %10s %10s\n", "ranks", "images", "step", "transfers", "waiting", "hidden",
           "images/s", "efficiency");
    for (const row *r = t->rows; r < t->rows + t->count; r++)
        printf("%6zu %9.0f %10s %10s %10s %6.0f%% %10.1f %9.0f%%\n", r->ranks, r->images,
               cli_seconds_text(r->found.step, step), cli_seconds_text(r->found.transfers, transfers),
               cli_seconds_text(r->found.waiting, waiting), 100 * hidden(r), images_per_second(r), 100 * r->efficiency);
    printf(most == last ? "\nIt scales to %zu ranks: none waits for more than a fifth of its time.\n"
                        : "\nIt scales to %zu ranks: with more, each waits for more than a fifth of its time.\n",
           most);
}

static void row_json(const row *r, dv_json *json) {
    dv_json_object(json, NULL);
    dv_json_unsigned(json, "ranks", r->ranks);
    dv_json_number(json, "step_images", r->images);
    dv_json_number(json, "step_seconds", r->found.step);
    dv_json_number(json, "compute_seconds", r->found.compute);
    dv_json_number(json, "transfer_seconds", r->found.transfers);
    dv_json_number(json, "waiting_seconds", r->found.waiting);
    dv_json_number(json, "images_per_second", images_per_second(r));
    dv_json_number(json, "efficiency", r->efficiency);
    dv_json_end(json);
}

static void print_json(const table *t) {
    dv_json json;
    dv_json_to_file(&json, stdout);
    dv_json_object(&json, NULL);
    dv_json_text(&json, "model", t->options->model);
    dv_json_unsigned(&json, "batch", t->options->batch);
    dv_json_text(&json, "method", t->options->method);
    dv_json_text(&json, "precision", dv_type_name((dv_type)t->options->precision));
    dv_json_unsigned(&json, "threads", (uint64_t)dv_threads());
    dv_json_unsigned(&json, "batches", t->alone.batches);
    dv_json_number(&json, "bandwidth", t->link.bandwidth);
    dv_json_number(&json, "latency", t->link.latency);
    dv_json_unsigned(&json, "scales_to", worthwhile(t));
    dv_json_array(&json, "scaling");
    for (const row *r = t->rows; r < t->rows + t->count; r++)
        row_json(r, &json);
    dv_json_end(&json);
    dv_json_end(&json);
    (void)dv_json_finish(&json, NULL); /* cli_finish tells */
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* Two plans of one graph: for one process, which is measured, and for several. */
typedef struct plans {
    dv_graph *graph;
    dv_plan *alone, *many;
} plans;

/* A plan of the graph for so many ranks with as many batches of each. */
static dv_status plan_for(const plans *p, const dv_options *options, size_t ranks, dv_plan **plan, dv_error *error) {
    char optimizer[DV_OPTIMIZER_TEXT_BYTES];
    dv_options told = *options;
    dv_plan_options wanted;
    told.ranks = ranks;
    told.accumulate = ranks * own_batches(options);
    dv_status status = dv_options_for_plan(&told, optimizer, &wanted, error);
    return status == DV_OK ? dv_plan_new(p->graph, &wanted, plan, error) : status;
}

/* As training does it: passes are chosen before the plan is made. */
static dv_status make_plans(plans *p, const dv_options *options, const dv_dataset_shape *shape, dv_error *error) {
    dv_options told = *options;
    dv_tune_options tune = dv_tune_options_default();
    dv_plan *before = NULL;
    told.ranks = 1;
    dv_status status = dv_options_plan(&told, shape, &p->graph, &before, error);
    if (status != DV_OK)
        return status;
    dv_plan_free(before);
    status = dv_tune_parse(options->tune, &tune, error);
    if (status == DV_OK)
        status = dv_graph_tune(p->graph, NULL, &tune, NULL, error);
    if (status == DV_OK)
        status = plan_for(p, options, 1, &p->alone, error);
    return status == DV_OK ? plan_for(p, options, options->ranks > 1 ? options->ranks : 2, &p->many, error) : status;
}

static int predict(plans *p, table *t, int as_json) {
    cli_timing timing;
    dv_error error;
    int code = cli_step_times(p->alone, &timing, &t->alone);
    t->alone.batches = own_batches(t->options);
    if (code == CLI_SUCCESS && add_rows(t, p->many, &error) != DV_OK)
        code = cli_report(&error);
    if (code == CLI_SUCCESS)
        (as_json ? print_json : print_table)(t);
    cli_timing_free(&timing);
    return code == CLI_SUCCESS ? cli_finish() : code;
}

int cli_plan_scaling(const dv_options *options, const dv_dataset_shape *shape, const cli_plan_network *network) {
    table t = {.options = options};
    plans p = {NULL, NULL, NULL};
    dv_error error;
    int code = cli_link_read(network->bandwidth, network->latency, &t.link);
    if (code != CLI_CONTINUE)
        return code;
    dv_status status = dv_set_threads((int)options->threads, &error);
    if (status == DV_OK)
        status = make_plans(&p, options, shape, &error);
    code = status == DV_OK ? predict(&p, &t, network->as_json) : cli_report(&error);
    dv_plan_free(p.alone);
    dv_plan_free(p.many);
    dv_graph_free(p.graph);
    return code;
}
