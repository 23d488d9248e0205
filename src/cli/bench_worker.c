/* division bench worker: trains one network on a few images in memory, as many steps as each line of standard input
 * says, and answers with a line of JSON. The other benchmarks start it, one process for each configuration, and so
 * can anyone who wants to compare: a worker that waits holds its memory and uses no processor.
 *
 * A step is what it is in training: the batch is filled, forward, loss, backward, the optimizer's update. */
#include "bench.h"

#include "cli.h"

#include <division/models.h>
#include <division/synthetic.h>
#include <division/tools/json.h>
#include <division/train.h>
#include <omp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

/* Few examples, over and over: the batch would take memory a second time. */
enum { EXAMPLES = 8, LINE_BYTES = 64, MOST_STEPS = 1000000 };

typedef struct worker {
    dv_graph *graph;
    dv_plan *plan;
    dv_run *run;
    size_t classes;
    char *examples[EXAMPLES]; /* images as the run takes them */
    uint64_t step;
} worker;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* ---- examples ------------------------------------------------------------------------------ */

/* From [0, 16) to [-1, 1), in f32 or, by dropping bits, in bf16. */
static void convert(const float *from, size_t count, dv_type type, char *to) {
    for (size_t i = 0; i < count; i++) {
        float value = from[i] / 8 - 1;
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        if (type == DV_F32)
            memcpy(to + i * sizeof bits, &bits, sizeof bits);
        else
            ((uint16_t *)(void *)to)[i] = (uint16_t)(bits >> 16);
    }
}

static int no_memory(void) {
    return cli_fail("no memory for images: use smaller ones");
}

static int make_example(const dv_map *map, uint64_t seed, float *values, char **example) {
    dv_error error;
    *example = malloc(dv_map_bytes(map));
    if (*example == NULL)
        return no_memory();
    if (dv_synthetic_map(map, seed, values, &error) != DV_OK)
        return cli_report(&error);
    convert(values, dv_map_elements(map), map->type, *example);
    return CLI_SUCCESS;
}

static int make_examples(worker *w) {
    dv_map map = *dv_run_input_map(w->run);
    map.images = 1;
    float *values = malloc(dv_map_elements(&map) * sizeof *values);
    if (values == NULL)
        return no_memory();
    int code = CLI_SUCCESS;
    for (int i = 0; i < EXAMPLES && code == CLI_SUCCESS; i++)
        code = make_example(&map, (uint64_t)i + 1, values, &w->examples[i]);
    free(values);
    return code;
}

/* The next batch: example and label of each image go by its number. */
static void fill_batch(worker *w) {
    dv_map one = *dv_run_input_map(w->run);
    size_t images = one.images;
    one.images = 1;
    size_t bytes = dv_map_bytes(&one);
    char *input = dv_run_input(w->run);
    int32_t *labels = dv_run_labels(w->run);
    for (size_t i = 0; i < images; i++) {
        memcpy(input + i * bytes, w->examples[i % EXAMPLES], bytes);
        labels[i] = (int32_t)(i % EXAMPLES % w->classes);
    }
}

/* ---- training ------------------------------------------------------------------------------ */

static int prepare(worker *w, const bench_network *network) {
    const dv_model *model;
    dv_error error;
    bench_use_threads(network);
    if (bench_plan(network, &w->graph, &w->plan, &error) != DV_OK)
        return cli_report(&error);
    if (dv_model_find(network->model, &model, &error) != DV_OK || dv_run_new(w->plan, 1, &w->run, &error) != DV_OK)
        return cli_report(&error);
    w->classes = network->classes > 0 ? (size_t)network->classes : model->classes;
    return make_examples(w);
}

static void release(worker *w) {
    for (int i = 0; i < EXAMPLES; i++)
        free(w->examples[i]);
    dv_run_free(w->run);
    dv_plan_free(w->plan);
    dv_graph_free(w->graph);
}

static dv_status train(worker *w, long steps, dv_error *error) {
    dv_step_result result;
    for (; steps > 0; steps--) {
        fill_batch(w);
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
