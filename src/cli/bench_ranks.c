/* division bench ranks: what several processes that train together lose to the network, and what overlap saves of it.
 *
 * Every rank has the same three runs, and they take turns: a step of one process alone; one in which gradients are
 * added up over all ranks once backward has ended; and one as training does it, in which they travel meanwhile. Beside
 * them stands what `division plan --bandwidth` would say of a network as it is measured here, from the operations of
 * the steps alone: a machine that is slower for a while is so for all of them. */
#include "bench.h"
#include "cli.h"
#include "examples.h"
#include "link.h"
#include "step_times.h"

#include <division/models.h>
#include <division/tools/json.h>
#include <division/tune.h>

#include <time.h>

typedef enum way { ALONE, AFTER_BACKWARD, OVERLAPPED, WAYS } way;

static const char *const titles[WAYS] = {"alone", "reduced after backward", "overlapped"};
static const char *const keys[WAYS] = {"alone", "after_backward", "overlapped"};

typedef struct bench {
    bench_network network;
    int rounds, json;
    dv_world *world;
    dv_graph *graph;
    dv_plan *plans[WAYS];
    dv_run *runs[WAYS];
    cli_examples examples;
    cli_timing alone; /* of each round's step of that way */
    dv_link link;
    double took[WAYS][CLI_MOST_TIMED_STEPS];
    double measured[WAYS], predicted[WAYS]; /* seconds of a step */
} bench;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* ---- preparing ------------------------------------------------------------------------------- */

static dv_status build(bench *b, dv_error *error) {
    dv_tune_options tune = dv_tune_options_default();
    dv_status status =
        dv_model_build(b->network.model, b->network.precision != 0 ? DV_BF16 : DV_F32, (size_t)b->network.batch,
                       (size_t)b->network.classes, (size_t)b->network.side, &b->graph, error);
    if (status == DV_OK)
        status = dv_tune_parse(b->network.tune, &tune, error);
    return status == DV_OK ? dv_graph_tune(b->graph, NULL, &tune, NULL, error) : status;
}

/* Gradients that are reduced after backward are all there at once; else they are transient, as in training. */
static dv_status make_run(bench *b, way of, dv_error *error) {
    dv_plan_options options = dv_plan_options_default();
    options.method = b->network.method;
    options.freeze = b->network.freeze;
    options.gradients = of == AFTER_BACKWARD ? DV_GRADIENTS_KEPT : DV_GRADIENTS_TRANSIENT;
    options.ranks = of == ALONE ? 1 : dv_world_ranks(b->world);
    dv_status status = dv_plan_new(b->graph, &options, &b->plans[of], error);
    if (status == DV_OK)
        status = dv_run_new(b->plans[of], 1, &b->runs[of], error);
    if (status == DV_OK && of != ALONE)
        status = dv_run_join(b->runs[of], b->world, error);
    return status == DV_OK && of == AFTER_BACKWARD ? dv_run_reduce_last(b->runs[of], 1, error) : status;
}

static int prepare(bench *b) {
    dv_error error;
    bench_use_threads(&b->network);
    dv_status status = build(b, &error);
    for (way of = ALONE; of < WAYS && status == DV_OK; of++)
        status = make_run(b, of, &error);
    if (status == DV_OK)
        status = dv_world_measure(b->world, &b->link, &error);
    if (status != DV_OK)
        return cli_report(&error);
    int code = cli_timing_new(b->plans[ALONE], b->rounds, &b->alone);
    return code == CLI_SUCCESS ? cli_examples_make(b->runs[ALONE], &b->examples) : code;
}

/* ---- measuring ------------------------------------------------------------------------------- */

/* A step, from when all ranks are there until all have done it. */
static dv_status time_step(bench *b, way of, uint64_t number, double *seconds, dv_error *error) {
    const dv_step step = {
        .batch = number, .rate = 0.01, .update = number, .scale = 1 / (float)dv_world_ranks(b->world)};
    dv_run *run = b->runs[of];
    dv_step_result result;
    cli_examples_fill(&b->examples, run);
    dv_status status = dv_world_meet(b->world, error);
    double begun = now();
    if (status == DV_OK)
        status = dv_run_train(run, &step, &result, error);
    if (status == DV_OK && dv_run_gradients(run) == DV_GRADIENTS_KEPT)
        status = dv_run_update(run, step.rate, number, error);
    if (status == DV_OK)
        status = dv_world_meet(b->world, error);
    *seconds = now() - begun;
    return status;
}

/* A step of every way. */
static dv_status do_round(bench *b, int round, uint64_t number, dv_error *error) {
    dv_status status = dv_run_time_operations(b->runs[ALONE], cli_timing_step(&b->alone, round), error);
    for (way of = ALONE; of < WAYS && status == DV_OK; of++)
        status = time_step(b, of, number, &b->took[of][round], error);
    return status;
}

/* The first round finds everything cold and is measured over. */
static int measure(bench *b) {
    dv_error error;
    uint64_t number = 0;
    for (int round = -1; round < b->rounds; round++, number++)
        if (do_round(b, round < 0 ? 0 : round, number, &error) != DV_OK)
            return cli_report(&error);
    for (way of = ALONE; of < WAYS; of++)
        b->measured[of] = bench_median(b->took[of], b->rounds);
    return CLI_SUCCESS;
}

static int predict(bench *b) {
    dv_step_times alone;
    dv_scaling found;
    dv_error error;
    cli_timing_medians(&b->alone, b->plans[ALONE], &alone);
    if (dv_scaling_predict(b->plans[OVERLAPPED], &alone, &b->link, dv_world_ranks(b->world), &found, &error) != DV_OK)
        return cli_report(&error);
    b->predicted[ALONE] = found.compute;
    b->predicted[AFTER_BACKWARD] = found.compute + found.transfers;
    b->predicted[OVERLAPPED] = found.step;
    return CLI_SUCCESS;
}

/* ---- telling --------------------------------------------------------------------------------- */

/* What overlap saves of what gradients that are reduced after backward cost. */
static double hidden(const double seconds[WAYS]) {
    double whole = seconds[AFTER_BACKWARD] - seconds[ALONE], left = seconds[OVERLAPPED] - seconds[ALONE];
    return whole > 0 ? 1 - left / whole : 0;
}

static void print_table(const bench *b) {
    char measured[CLI_SECONDS_TEXT], predicted[CLI_SECONDS_TEXT], rate[CLI_BYTES_TEXT];
    cli_line("ranks", "%zu, %s", dv_world_ranks(b->world), dv_world_engine(b->world));
    cli_line("network", "%s/s, %s, by sums over all ranks", cli_bytes_text(b->link.bandwidth, rate),
             cli_seconds_text(b->link.latency, measured));
    printf("\n%-24s %10s %10s\n", "a step", "measured", "predicted");
    for (way of = ALONE; of < WAYS; of++)
        printf("%-24s %10s %10s\n", titles[of], cli_seconds_text(b->measured[of], measured),
               cli_seconds_text(b->predicted[of], predicted));
    printf("%-24s %9.0f%% %9.0f%%\n", "hidden by overlap", 100 * hidden(b->measured), 100 * hidden(b->predicted));
}

static void seconds_json(dv_json *json, const char *name, const double seconds[WAYS]) {
    dv_json_object(json, name);
    for (way of = ALONE; of < WAYS; of++)
        dv_json_number(json, keys[of], seconds[of]);
    dv_json_number(json, "hidden", hidden(seconds));
    dv_json_end(json);
}

static void print_json(const bench *b) {
    dv_json json;
    dv_json_to_file(&json, stdout);
    dv_json_object(&json, NULL);
    dv_json_text(&json, "model", b->network.model);
    dv_json_unsigned(&json, "batch", (uint64_t)b->network.batch);
    dv_json_text(&json, "method", b->network.method);
    dv_json_text(&json, "precision", bench_precisions[b->network.precision]);
    dv_json_unsigned(&json, "ranks", dv_world_ranks(b->world));
    dv_json_number(&json, "bandwidth", b->link.bandwidth);
    dv_json_number(&json, "latency", b->link.latency);
    seconds_json(&json, "measured_seconds", b->measured);
    seconds_json(&json, "predicted_seconds", b->predicted);
    dv_json_end(&json);
    (void)dv_json_finish(&json, NULL); /* cli_finish tells */
}

/* ---- the command ----------------------------------------------------------------------------- */

static void release(bench *b) {
    for (way of = ALONE; of < WAYS; of++) {
        dv_run_free(b->runs[of]);
        dv_plan_free(b->plans[of]);
    }
    cli_examples_free(&b->examples);
    cli_timing_free(&b->alone);
    dv_graph_free(b->graph);
}

static int run(bench *b) {
    int code = prepare(b);
    if (code == CLI_SUCCESS)
        code = measure(b);
    if (code == CLI_SUCCESS)
        code = predict(b);
    if (code == CLI_SUCCESS && dv_world_rank(b->world) == 0)
        (b->json ? print_json : print_table)(b);
    return code == CLI_SUCCESS ? cli_finish() : code;
}

static int join_and_run(bench *b) {
    dv_error error;
    if (!dv_world_launched())
        return cli_wrong_call("bench ranks: one process has nobody to wait for: call it as 'mpirun -n 2 division bench "
                              "ranks'");
    if (dv_world_open(60, &b->world, &error) != DV_OK)
        return cli_report(&error);
    int code = run(b);
    release(b);
    if (code == CLI_SUCCESS)
        dv_world_close(b->world);
    else
        dv_world_abort(b->world, code);
    return code;
}

int cli_bench_ranks(int argc, char **argv) {
    static bench b;
    b = (bench){.network = {.model = "resnet18_cifar", .method = "none", .batch = 32}, .rounds = 5};
    const dv_option options[] = {
        BENCH_NETWORK_OPTIONS(&b.network),
        cli_integer_option("batch", "images per step of each rank", &b.network.batch),
        {"method", "METHOD", "how values are kept: none, division[:block=8,bits=2,...]", CLI_TEXT(&b.network.method)},
        {"rounds", "N", "rounds, over which the median is taken", CLI_INTEGER(&b.rounds, 1, CLI_MOST_TIMED_STEPS)},
        {"json", NULL, "print one JSON object", CLI_FLAG(&b.json)},
        CLI_OPTIONS_END,
    };
    const cli_usage usage = {
        .command = "bench ranks",
        .summary =
            "Called by a launcher, 'mpirun -n 2 division bench ranks': steps of one process alone, steps that add up\n"
            "gradients once backward has ended, and steps that do it meanwhile, by turns. Prints the medians, what\n"
            "part of the adding up is hidden, and what 'division plan --bandwidth' predicts of the same network.\n",
        .options = options};
    int code = cli_parse(&usage, argc, argv, NULL);
    return code == CLI_CONTINUE ? join_and_run(&b) : code;
}
