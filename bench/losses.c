/* Trains one network for some steps on made-up images and prints what scripts/losses compares: the planned bytes, the
 * loss of every step and of an evaluation afterwards, as hexadecimal numbers, so that no bit is lost.
 *
 *     losses NETWORK SIDE PRECISION METHOD STEPS BATCH
 *
 * NETWORK is one of `division models`, or "dropout", which is built here; SIDE 0 stands for the model's own. The
 * images come from a generator of its own: a change of the library's data must not look like a change of its
 * arithmetic. Only public headers are used; a commit that changes them brings its own copy of this file. */
#include <division/graph.h>
#include <division/models.h>
#include <division/train.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CLASSES = 10, BATCHES = 8 }; /* different batches, over and over: the losses fall, as in training */

typedef struct training {
    dv_graph *graph;
    dv_plan *plan;
    dv_run *run;
} training;

/* ---- a network with dropout ---------------------------------------------------------------- */

static dv_value convolution_norm_relu(dv_graph *graph, int number, dv_value x, size_t channels) {
    char name[3][16];
    const char *kinds[] = {"conv", "bn", "relu"};
    for (int i = 0; i < 3; i++)
        snprintf(name[i], sizeof name[i], "%s%d", kinds[i], number);
    const dv_convolution_options options = {.channels = channels, .window = dv_window_square(3, 1, 1), .groups = 1};
    x = dv_graph_convolution(graph, name[0], x, &options);
    return dv_graph_relu(graph, name[2], dv_graph_batch_norm(graph, name[1], x));
}

/* Dropout where networks have it: on maps between convolutions, behind a pooling, before the last layer; and an odd
 * probability, so that its scale is not a power of two. */
static dv_status build_dropout(dv_type type, size_t batch, size_t side, dv_graph **graph, dv_error *error) {
    dv_status status = dv_graph_new(type, batch, graph, error);
    if (status != DV_OK)
        return status;
    const dv_pooling_options half = {.window = dv_window_square(2, 2, 0)};
    const dv_linear_options wide = {.channels = 64, .bias = true}, last = {.channels = CLASSES, .bias = true};
    dv_value x = dv_graph_input(*graph, 3, 2, (const size_t[]){side, side});
    x = dv_graph_dropout(*graph, "dropout1", convolution_norm_relu(*graph, 1, x, 16), 0.3F);
    x = dv_graph_max_pooling(*graph, "pool1", convolution_norm_relu(*graph, 2, x, 32), &half);
    x = dv_graph_dropout(*graph, "dropout2", x, 0.5F);
    x = dv_graph_average_pooling(*graph, "pool2", convolution_norm_relu(*graph, 3, x, 32), &half);
    x = dv_graph_global_average_pooling(*graph, "pool3", x);
    x = dv_graph_relu(*graph, "relu4", dv_graph_linear(*graph, "fc1", x, &wide));
    x = dv_graph_linear(*graph, "fc2", dv_graph_dropout(*graph, "dropout3", x, 0.5F), &last);
    return dv_graph_finish(*graph, x, error);
}

/* ---- images -------------------------------------------------------------------------------- */

/* A linear congruential generator; its upper bits are good. */
static uint32_t next(uint64_t *state) {
    *state = *state * 6364136223846793005U + 1442695040888963407U;
    return (uint32_t)(*state >> 32);
}

/* Uniform in [-1.5, 1.5), and brighter the higher the label: something to learn. bf16 is the upper half of f32. */
static void fill(dv_run *run, size_t batch, uint64_t number) {
    const dv_map *map = dv_run_input_map(run);
    uint64_t state = number % BATCHES + 1;
    size_t count = dv_map_elements(map) / batch;
    for (size_t image = 0; image < batch; image++) {
        int32_t label = dv_run_labels(run)[image] = (int32_t)(next(&state) % CLASSES);
        for (size_t i = image * count; i < (image + 1) * count; i++) {
            float x = (float)(next(&state) >> 8) * 0x3p-24F - 1.5F + 0.1F * (float)label;
            uint32_t bits;
            memcpy(&bits, &x, sizeof bits);
            if (map->type == DV_F32)
                ((float *)dv_run_input(run))[i] = x;
            else
                ((uint16_t *)dv_run_input(run))[i] = (uint16_t)(bits >> 16);
        }
    }
}

/* ---- training ------------------------------------------------------------------------------ */

static dv_status start(training *t, const char *network, dv_type type, size_t side, const char *method, size_t batch,
                       dv_error *error) {
    dv_plan_options options = dv_plan_options_default();
    options.method = method;
    options.optimizer = "sgd:momentum=0.9,decay=5e-4";
    options.gradients = DV_GRADIENTS_TRANSIENT;
    dv_status status = strcmp(network, "dropout") == 0
                           ? build_dropout(type, batch, side ? side : 32, &t->graph, error)
                           : dv_model_build(network, type, batch, CLASSES, side, &t->graph, error);
    if (status == DV_OK)
        status = dv_plan_new(t->graph, &options, &t->plan, error);
    return status == DV_OK ? dv_run_new(t->plan, 1, &t->run, error) : status;
}

static dv_status train(dv_run *run, size_t batch, uint64_t steps, dv_error *error) {
    dv_step_result result;
    dv_status status = DV_OK;
    for (uint64_t step = 0; step < steps && status == DV_OK; step++) {
        fill(run, batch, step);
        const dv_step told = {.batch = step, .label_smoothing = 0.1F, .rate = 0.02, .update = step};
        status = dv_run_train(run, &told, &result, error);
        if (status == DV_OK)
            printf("%a\n", result.loss);
    }
    if (status == DV_OK) {
        fill(run, batch, 0);
        status = dv_run_evaluate(run, &result, error);
    }
    if (status == DV_OK)
        printf("evaluation %a\n", result.loss);
    return status;
}

int main(int count, char **arguments) {
    if (count != 7) {
        fprintf(stderr, "losses: usage: losses NETWORK SIDE f32|bf16 METHOD STEPS BATCH\n");
        return 2;
    }
    training t = {NULL};
    dv_error error;
    dv_type type = strcmp(arguments[3], "bf16") == 0 ? DV_BF16 : DV_F32;
    size_t side = strtoul(arguments[2], NULL, 10), batch = strtoul(arguments[6], NULL, 10);
    dv_status status = start(&t, arguments[1], type, side, arguments[4], batch, &error);
    if (status == DV_OK) {
        printf("planned %zu\n", dv_plan_totals(t.plan).planned);
        status = train(t.run, batch, strtoul(arguments[5], NULL, 10), &error);
    }
    if (status != DV_OK)
        fprintf(stderr, "losses: %s\n", error.text);
    dv_run_free(t.run);
    dv_plan_free(t.plan);
    dv_graph_free(t.graph);
    return status != DV_OK;
}
