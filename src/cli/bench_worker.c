/* division bench worker: trains one network on a few images in memory, as many steps as each line of standard input
 * says, and answers with a line of JSON. The other benchmarks start it, one process for each configuration, and so
 * can anyone who wants to compare: a worker that waits holds its memory and uses no processor.
 *
 * A step is what it is in training: the batch is filled, forward, loss, backward, the optimizer's update. */
#include "bench.h"

#include "cli.h"
#include "examples.h"

#include <division/tools/json.h>
#include <division/train.h>
#include <omp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

enum { LINE_BYTES = 64, MOST_STEPS = 1000000 };

typedef struct worker {
    dv_graph *graph;
    dv_plan *plan;
    dv_run *run;
    cli_examples examples;
    uint64_t step;
} worker;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* ---- training ------------------------------------------------------------------------------ */

static int prepare(worker *w, const bench_network *network) {
    dv_error error;
    bench_use_threads(network);
    if (bench_plan(network, &w->graph, &w->plan, &error) != DV_OK)
        return cli_report(&error);
    if (dv_run_new(w->plan, 1, &w->run, &error) != DV_OK)
        return cli_report(&error);
    return cli_examples_make(w->run, &w->examples);
}

static void release(worker *w) {
    cli_examples_free(&w->examples);
    dv_run_free(w->run);
    dv_plan_free(w->plan);
    dv_graph_free(w->graph);
}

static dv_status train(worker *w, long steps, dv_error *error) {
    dv_step_result result;
    for (; steps > 0; steps--) {
        cli_examples_fill(&w->examples, w->run);
        const dv_step step = {.batch = w->step, .rate = 0.01, .update = w->step};
        dv_status status = dv_run_train(w->run, &step, &result, error);
        if (status != DV_OK)
            return status;
        w->step++;
    }
    return DV_OK;
}

static void answer(double seconds) {
    dv_json json;
    dv_json_to_file(&json, stdout);
    dv_json_object(&json, NULL);
    dv_json_number(&json, "seconds", seconds);
    dv_json_unsigned(&json, "peak_bytes", dv_memory_peak());
    dv_json_end(&json);
    (void)dv_json_finish(&json, NULL); /* cli_finish tells */
}

/* One line of input. OpenMP's threads would wait for more work by spinning, and take the cores from whoever is
 * measured next: they are sent away before the answer is. */
static int serve(worker *w, const char *line) {
    dv_error error;
    char *end;
    long steps = strtol(line, &end, 10);
    if (end == line || (*end != '\n' && *end != '\0') || steps < 1 || steps > MOST_STEPS)
        return cli_wrong_call("bench worker: '%.*s' is no number of steps: give one from 1 to %d a line",
                              (int)strcspn(line, "\n"), line, MOST_STEPS);
    double start = now();
    if (train(w, steps, &error) != DV_OK)
        return cli_report(&error);
    double seconds = now() - start;
    (void)omp_pause_resource_all(omp_pause_soft);
    answer(seconds);
    return cli_finish();
}

int cli_bench_worker(int argc, char **argv) {
    bench_network network = {.model = "resnet50", .method = "division", .batch = 32};
    const dv_option options[] = {
        BENCH_NETWORK_OPTIONS(&network),
        cli_integer_option("batch", NULL, &network.batch),
        {"method", "METHOD", "how values are kept: none, division[:block=8,bits=2,...]", CLI_TEXT(&network.method)},
        CLI_OPTIONS_END,
    };
    const cli_usage usage = {
        .command = "bench worker",
        .summary = "Reads numbers of steps from standard input, a line each. Trains for so many, and prints a line of\n"
                   "JSON with the seconds they took and the most memory that was resident so far.\n",
        .options = options};
    worker w = {.graph = NULL};
    char line[LINE_BYTES];
    int code = cli_parse(&usage, argc, argv, NULL);
    if (code != CLI_CONTINUE)
        return code;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* whoever waits for the answer is gone: a step may take minutes */
    code = prepare(&w, &network);
    while (code == CLI_SUCCESS && fgets(line, sizeof line, stdin) != NULL)
        code = serve(&w, line);
    release(&w);
    return code;
}
