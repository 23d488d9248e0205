/* A program that uses a good part of the library: abi.sh compiles it with the headers of one commit and runs it with
 * the library of the next. Structs go both ways, options in and results out, so that a layout that differs is seen.
 *
 *     abi_program FOLDER     an empty one */
#include <division/division.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static dv_error error;

/* Ends the program unless the call succeeds, or the truth is one. */
#define need(call) (need_status((call), #call))
#define need_truth(truth) ((truth) ? (void)0 : complain(#truth, "it is not so"))

static void complain(const char *what, const char *text) {
    fprintf(stderr, "abi_program: %s: %s\n", what, text);
    exit(1);
}

static void need_status(dv_status status, const char *call) {
    if (status != DV_OK)
        complain(call, error.text);
}

/* ---- the codec ----------------------------------------------------------------------------- */

enum { ELEMENTS = 2 * 3 * 8 * 8 };

static void pack_and_unpack(void) {
    const dv_map map = {.type = DV_F32, .layout = DV_NHWC, .images = 2, .channels = 3, .rank = 2, .sides = {8, 8}};
    const dv_noise noise = {.seed = 1, .step = 2, .value = 3};
    static float src[ELEMENTS], dst[ELEMENTS];
    dv_codec codec;
    size_t bytes;
    need_truth(dv_map_elements(&map) == ELEMENTS);
    need(dv_synthetic_map(&map, 1, src, &error));
    need(dv_codec_parse("division:block=4,bits=8", &codec, &error));
    need(dv_codec_packed_bytes(&codec, &map, &bytes, &error));
    void *packed = aligned_alloc(DV_PACKED_ALIGNMENT, bytes);
    need(dv_codec_encode(&codec, &map, &noise, src, packed, bytes, &error));
    need(dv_codec_decode(&codec, &map, &noise, packed, bytes, dst, &error));
    for (size_t i = 0; i < ELEMENTS; i++)
        need_truth(fabsf(src[i] - dst[i]) < 0.25F);
    free(packed);
    need_truth(dv_codec_parse("division:bits=3", &codec, &error) == DV_ERROR_OPTION);
    need_truth(error.status == DV_ERROR_OPTION && strstr(error.text, "bits") != NULL);
}

/* ---- a network ----------------------------------------------------------------------------- */

enum { BATCH = 16, CLASSES = 10, SIDE = 8 };

static dv_graph *small_network(void) {
    dv_graph *graph;
    need(dv_graph_new(DV_F32, BATCH, &graph, &error));
    const dv_convolution_options convolution = {.channels = 8, .window = dv_window_square(3, 1, 1), .groups = 1};
    const dv_pooling_options half = {.window = dv_window_square(2, 2, 0)};
    const dv_linear_options linear = {.channels = CLASSES, .bias = true};
    dv_value x = dv_graph_input(graph, 3, 2, (const size_t[]){SIDE, SIDE});
    x = dv_graph_convolution(graph, "conv", x, &convolution);
    x = dv_graph_relu(graph, "relu", dv_graph_batch_norm(graph, "bn", x));
    x = dv_graph_max_pooling(graph, "pool", x, &half);
    x = dv_graph_global_average_pooling(graph, "mean", x);
    need(dv_graph_finish(graph, dv_graph_linear(graph, "fc", x, &linear), &error));
    return graph;
}

static void look_at(const dv_plan *plan) {
    dv_plan_summary totals = dv_plan_totals(plan);
    need_truth(totals.planned > totals.activations && totals.parameters > 0 && totals.activations > 0);
    need_truth(strcmp(dv_plan_row_at(plan, 1)->layer, "conv") == 0 && dv_plan_row_at(plan, 1)->output.channels == 8);
    const dv_plan_operation *first = dv_plan_operation_at(plan, 0);
    need_truth(strcmp(first->kind, "forward") == 0 && strcmp(first->subject, "conv") == 0 && first->touched_count > 0);
}

/* ---- a training ---------------------------------------------------------------------------- */

typedef struct training {
    dv_run *run;
    const char *path;
    size_t epochs, steps;
} training;

static void on_progress(void *context, const dv_train_progress *progress) {
    training *t = context;
    need_truth(progress->epoch <= 2 && isfinite(progress->loss));
    t->steps += progress->testing == 0;
}

static dv_status on_epoch(void *context, const dv_epoch_record *record, dv_error *told) {
    training *t = context;
    (void)told;
    t->epochs++;
    need_truth(record->epoch == t->epochs && record->complete && isfinite(record->train_loss) &&
               record->test_top1 >= 0);
    return DV_OK;
}

static dv_status on_save(void *context, const dv_train_state *state, dv_error *told) {
    const training *t = context;
    const dv_note note = {"model", "small"};
    return dv_checkpoint_write(
        t->path, &(dv_checkpoint_content){.run = t->run, .state = state, .notes = &note, .note_count = 1}, told);
}

static dv_test_result test(dv_run *run, const dv_dataset *data) {
    dv_test_result result;
    need(dv_test(run, data, DV_TEST, NULL, NULL, &result, &error));
    need_truth(result.images > 0 && isfinite(result.loss));
    return result;
}

static void train_and_load(const char *path) {
    dv_dataset *data;
    need(dv_dataset_open("synthetic:side=8,train=64,test=32", &data, &error));
    need_truth(dv_dataset_describe(data).classes == CLASSES && dv_dataset_describe(data).images[DV_TRAIN] == 64);
    dv_graph *graph = small_network();
    dv_options options = dv_options_default();
    dv_plan_options planned = dv_plan_options_default();
    options.epochs = 2;
    planned.method = "division:bits=4";
    planned.optimizer = "sgd";
    planned.gradients = DV_GRADIENTS_TRANSIENT;
    dv_plan *plan;
    dv_run *run, *loaded;
    need(dv_plan_new(graph, &planned, &plan, &error));
    look_at(plan);
    need(dv_run_new(plan, 1, &run, &error));

    training t = {.run = run, .path = path};
    const dv_train_callbacks callbacks = {.progress = on_progress, .epoch = on_epoch, .save = on_save, .context = &t};
    dv_train_state state = dv_train_state_default();
    dv_train_result result;
    need(dv_train(run, plan, data, &options, &callbacks, &state, &result, &error));
    need_truth(t.epochs == 2 && t.steps == 8 && state.step == 8 && result.last.epoch == 2 && !result.stopped);

    dv_checkpoint *checkpoint;
    need(dv_run_new(plan, 2, &loaded, &error));
    need(dv_checkpoint_open(path, &checkpoint, &error));
    need_truth(strcmp(dv_checkpoint_note(checkpoint, "model"), "small") == 0);
    need(dv_checkpoint_load(checkpoint, &(dv_checkpoint_choice){0}, loaded, NULL, NULL, &error));
    need_truth(test(run, data).loss == test(loaded, data).loss);
    dv_checkpoint_close(checkpoint);
    dv_run_free(loaded);
    dv_run_free(run);
    dv_plan_free(plan);
    dv_graph_free(graph);
    dv_dataset_close(data);
}

int main(int argc, char **argv) {
    char path[4096];
    need_truth(argc == 2);
    need_truth(dv_abi() == DV_ABI);
    snprintf(path, sizeof path, "%s/last.safetensors", argv[1]);
    need(dv_set_threads(1, &error));
    pack_and_unpack();
    train_and_load(path);
    printf("compiled with headers of %s, runs with %s\n", DV_VERSION, dv_version());
    return 0;
}
