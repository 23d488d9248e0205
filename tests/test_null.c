/* NULL in place of each pointer that a public function with a status needs: DV_ERROR_ARGUMENT; and NULL for all that
 * free and close. public_functions.sh sees to it that none is missing here. */
#include "check.h"
#include "folder.h"

#include <division/checkpoint.h>
#include <division/codec.h>
#include <division/data.h>
#include <division/folder.h>
#include <division/graph.h>
#include <division/info.h>
#include <division/models.h>
#include <division/onnx.h>
#include <division/options.h>
#include <division/packed.h>
#include <division/parallel.h>
#include <division/predictor.h>
#include <division/recipe.h>
#include <division/synthetic.h>
#include <division/tools/json.h>
#include <division/tools/lmdb.h>
#include <division/tools/npy.h>
#include <division/tools/option.h>
#include <division/tools/picture.h>
#include <division/tools/report.h>
#include <division/tools/scaling.h>
#include <division/train.h>
#include <division/training.h>

/* The call has nothing to work on and says so. */
#define refuses(call) assert_fails(call, DV_ERROR_ARGUMENT, "")

static const dv_map map = {DV_F32, DV_NHWC, 1, 4, 2, {4, 4}};
static const dv_noise noise; /* may be NULL: zeros */
static float numbers[256];

static void codecs(void **state) {
    (void)state;
    static _Alignas(DV_PACKED_ALIGNMENT) char packed[4096];
    dv_codec codec;
    size_t bytes;
    assert_ok(dv_codec_parse("division", &codec, &error));
    assert_ok(dv_codec_packed_bytes(&codec, &map, &bytes, &error));
    refuses(dv_map_check(NULL, &error));
    refuses(dv_codec_parse(NULL, &codec, &error));
    refuses(dv_codec_parse("exact", NULL, &error));
    refuses(dv_option_set(NULL, &codec, "1", &error));
    refuses(dv_option_unknown(NULL, 0, "block", &error));
    refuses(dv_option_unknown(dv_codec_option_at(0, 0), 1, NULL, &error));
    refuses(dv_option_set(dv_codec_option_at(0, 0), NULL, "8", &error));
    refuses(dv_codec_packed_bytes(NULL, &map, &bytes, &error));
    refuses(dv_codec_packed_bytes(&codec, NULL, &bytes, &error));
    refuses(dv_codec_packed_bytes(&codec, &map, NULL, &error));
    refuses(dv_codec_encode(NULL, &map, &noise, numbers, packed, bytes, &error));
    refuses(dv_codec_encode(&codec, NULL, &noise, numbers, packed, bytes, &error));
    refuses(dv_codec_encode(&codec, &map, &noise, NULL, packed, bytes, &error));
    refuses(dv_codec_encode(&codec, &map, &noise, numbers, NULL, bytes, &error));
    refuses(dv_codec_encode_images(NULL, &map, &noise, 0, 1, numbers, packed, bytes, &error));
    refuses(dv_codec_encode_images(&codec, &map, &noise, 0, 1, NULL, packed, bytes, &error));
    refuses(dv_codec_decode(NULL, &map, &noise, packed, bytes, numbers, &error));
    refuses(dv_codec_decode(&codec, NULL, &noise, packed, bytes, numbers, &error));
    refuses(dv_codec_decode(&codec, &map, &noise, NULL, bytes, numbers, &error));
    refuses(dv_codec_decode(&codec, &map, &noise, packed, bytes, NULL, &error));
    refuses(dv_codec_decode_images(NULL, &map, &noise, 0, 1, packed, bytes, numbers, &error));
    refuses(dv_codec_decode_images(&codec, &map, &noise, 0, 1, packed, bytes, NULL, &error));
    refuses(dv_map_low_frequency(NULL, 2, numbers, numbers, &error));
    refuses(dv_map_low_frequency(&map, 2, NULL, numbers, &error));
    refuses(dv_map_low_frequency(&map, 2, numbers, NULL, &error));
    refuses(dv_synthetic_map(NULL, 1, numbers, &error));
    refuses(dv_synthetic_map(&map, 1, NULL, &error));
}

static void packed_maps(void **state) {
    (void)state;
    static const char codec[] = "rectified", text[] = "f32 nhwc 1x4x4x4";
    static _Alignas(DV_PACKED_ALIGNMENT) char packed[4096];
    dv_map read;
    size_t bytes;
    assert_ok(dv_packed_bytes(codec, text, &bytes, error.text));
    refuses(dv_map_parse(NULL, &read, &error));
    refuses(dv_map_parse(text, NULL, &error));
    refuses(dv_packed_bytes(NULL, text, &bytes, error.text));
    refuses(dv_packed_bytes(codec, NULL, &bytes, error.text));
    refuses(dv_packed_bytes(codec, text, NULL, error.text));
    refuses(dv_packed_encode(NULL, text, 1, 2, 3, numbers, packed, bytes, error.text));
    refuses(dv_packed_encode(codec, NULL, 1, 2, 3, numbers, packed, bytes, error.text));
    refuses(dv_packed_encode(codec, text, 1, 2, 3, NULL, packed, bytes, error.text));
    refuses(dv_packed_encode(codec, text, 1, 2, 3, numbers, NULL, bytes, NULL));
    refuses(dv_packed_decode(NULL, text, 1, 2, 3, packed, bytes, numbers, error.text));
    refuses(dv_packed_decode(codec, NULL, 1, 2, 3, packed, bytes, numbers, error.text));
    refuses(dv_packed_decode(codec, text, 1, 2, 3, NULL, bytes, numbers, error.text));
    refuses(dv_packed_decode(codec, text, 1, 2, 3, packed, bytes, NULL, NULL));
    refuses(dv_packed_apply_mask(NULL, text, packed, bytes, numbers, numbers, error.text));
    refuses(dv_packed_apply_mask(codec, NULL, packed, bytes, numbers, numbers, error.text));
    refuses(dv_packed_apply_mask(codec, text, NULL, bytes, numbers, numbers, error.text));
    refuses(dv_packed_apply_mask(codec, text, packed, bytes, NULL, numbers, error.text));
    refuses(dv_packed_apply_mask(codec, text, packed, bytes, numbers, NULL, NULL));
}

static const size_t sides[] = {8, 8};

static dv_value images_of(dv_graph *graph) {
    return dv_graph_input(graph, 3, 2, sides);
}

/* A call that builds on a fresh `graph` fails, and finishing it tells. */
#define remembers(call)                                     \
    do {                                                    \
        assert_ok(dv_graph_new(DV_F32, 2, &graph, &error)); \
        assert_true((call) < 0);                            \
        refuses(dv_graph_finish(graph, 0, &error));         \
        dv_graph_free(graph);                               \
    } while (0)

static void graphs(void **state) {
    (void)state;
    const dv_convolution_options window = {.channels = 4, .window = dv_window_square(3, 1, 1), .groups = 1};
    const dv_pooling_options pooling = {.window = dv_window_square(2, 2, 0)};
    const dv_linear_options linear = {.channels = 4};
    refuses(dv_graph_new(DV_F32, 2, NULL, &error));
    refuses(dv_graph_finish(NULL, 0, &error));
    assert_true(dv_graph_input(NULL, 3, 2, sides) < 0);
    assert_true(dv_graph_convolution(NULL, "conv", 0, &window) < 0);
    assert_true(dv_graph_transposed_convolution(NULL, "conv", 0, &window) < 0);
    assert_true(dv_graph_batch_norm(NULL, "bn", 0) < 0);
    assert_true(dv_graph_relu(NULL, "relu", 0) < 0);
    assert_true(dv_graph_leaky_relu(NULL, "leaky", 0, 0.1f) < 0);
    assert_true(dv_graph_max_pooling(NULL, "pool", 0, &pooling) < 0);
    assert_true(dv_graph_average_pooling(NULL, "pool", 0, &pooling) < 0);
    assert_true(dv_graph_global_average_pooling(NULL, "pool", 0) < 0);
    assert_true(dv_graph_dropout(NULL, "drop", 0, 0.5f) < 0);
    assert_true(dv_graph_linear(NULL, "fc", 0, &linear) < 0);
    assert_true(dv_graph_sum(NULL, "sum", 0, 0) < 0);
    assert_true(dv_graph_concatenation(NULL, "cat", (dv_value[]){0}, 1) < 0);
    dv_graph_free(NULL);

    /* what is missing is told by dv_graph_finish, like everything that goes wrong before */
    dv_graph *graph;
    remembers(dv_graph_input(graph, 3, 2, NULL));
    remembers(dv_graph_convolution(graph, "conv", images_of(graph), NULL));
    remembers(dv_graph_convolution(graph, NULL, images_of(graph), &window));
    remembers(dv_graph_transposed_convolution(graph, "conv", images_of(graph), NULL));
    remembers(dv_graph_transposed_convolution(graph, NULL, images_of(graph), &window));
    remembers(dv_graph_batch_norm(graph, NULL, images_of(graph)));
    remembers(dv_graph_relu(graph, NULL, images_of(graph)));
    remembers(dv_graph_leaky_relu(graph, NULL, images_of(graph), 0.1f));
    remembers(dv_graph_max_pooling(graph, "pool", images_of(graph), NULL));
    remembers(dv_graph_average_pooling(graph, "pool", images_of(graph), NULL));
    remembers(dv_graph_global_average_pooling(graph, NULL, images_of(graph)));
    remembers(dv_graph_dropout(graph, NULL, images_of(graph), 0.5f));
    remembers(dv_graph_linear(graph, "fc", images_of(graph), NULL));
    remembers(dv_graph_sum(graph, NULL, images_of(graph), 0));
    remembers(dv_graph_concatenation(graph, "cat", NULL, 2));
    remembers(dv_graph_concatenation(graph, NULL, (dv_value[]){images_of(graph)}, 1));
}

/* ---- runs ---------------------------------------------------------------------------------- */

typedef struct network {
    dv_graph *graph;
    dv_plan *plan;
    dv_run *run;
    dv_dataset *data;
} network;

static network network_new(void) {
    network n;
    const dv_plan_options options = dv_plan_options_default();
    assert_ok(dv_model_build("resnet20", DV_F32, 2, 10, 16, &n.graph, &error));
    assert_ok(dv_plan_new(n.graph, &options, &n.plan, &error));
    assert_ok(dv_run_new(n.plan, 1, &n.run, &error));
    assert_ok(dv_dataset_open("synthetic:side=16,train=4,test=2", &n.data, &error));
    return n;
}

static void network_free(network n) {
    dv_dataset_close(n.data);
    dv_run_free(n.run);
    dv_plan_free(n.plan);
    dv_graph_free(n.graph);
}

static void plans_and_runs(void **state) {
    (void)state;
    network n = network_new();
    dv_plan_options options = dv_plan_options_default();
    const dv_model *model;
    dv_graph *graph;
    dv_plan *plan;
    dv_run *run;
    dv_step_result result;
    refuses(dv_model_find(NULL, &model, &error));
    refuses(dv_model_find("resnet20", NULL, &error));
    refuses(dv_model_build(NULL, DV_F32, 2, 10, 16, &graph, &error));
    refuses(dv_model_build("resnet20", DV_F32, 2, 10, 16, NULL, &error));
    refuses(dv_model_build_with(NULL, &(dv_model_options){.batch = 2}, &graph, &error));
    refuses(dv_model_build_with("resnet20", NULL, &graph, &error));
    refuses(dv_model_build_with("resnet20", &(dv_model_options){.batch = 2}, NULL, &error));
    refuses(dv_plan_new(NULL, &options, &plan, &error));
    refuses(dv_plan_new(n.graph, NULL, &plan, &error));
    refuses(dv_plan_new(n.graph, &options, NULL, &error));
    options.method = NULL;
    refuses(dv_plan_new(n.graph, &options, &plan, &error));
    refuses(dv_run_join(NULL, NULL, &error));
    refuses(dv_run_new(NULL, 1, &run, &error));
    refuses(dv_run_new(n.plan, 1, NULL, &error));
    refuses(dv_run_train(NULL, &(dv_step){.batch = 0}, &result, &error));
    refuses(dv_run_train(n.run, &(dv_step){.batch = 0}, NULL, &error));
    refuses(dv_run_set_images(NULL, 1, &error));
    refuses(dv_run_forward(NULL, &(dv_step){.batch = 0}, &error));
    refuses(dv_run_forward(n.run, NULL, &error));
    refuses(dv_run_loss(NULL, &result, &error));
    refuses(dv_run_loss(n.run, NULL, &error));
    refuses(dv_run_backward(NULL, &error));
    refuses(dv_run_predict(NULL, &error));
    assert_null(dv_run_logits(NULL));
    assert_null(dv_run_logits_map(NULL));
    assert_null(dv_run_targets(NULL));
    assert_null(dv_run_labels(NULL));
    assert_null(dv_run_logits_gradient(NULL));
    dv_run_abandon(NULL);
    refuses(dv_run_evaluate(NULL, &result, &error));
    refuses(dv_run_evaluate(n.run, NULL, &error));
    dv_run_free(NULL);
    dv_plan_free(NULL);
    network_free(n);
}

/* A plan holds its graph and a run its plan, whoever is freed first. */
static void any_order_of_freeing(void **state) {
    (void)state;
    network n = network_new();
    dv_step_result result;
    dv_run *second;
    assert_ok(dv_run_new(n.plan, 2, &second, &error));
    dv_graph_free(n.graph);
    dv_plan_free(n.plan);
    memset(dv_run_input(second), 0, dv_map_bytes(dv_run_input_map(second)));
    dv_run_free(n.run);
    for (int i = 0; i < 2; i++)
        dv_run_labels(second)[i] = i;
    assert_ok(dv_run_train(second, &(dv_step){.batch = 0}, &result, &error));
    dv_run_free(second);
    dv_dataset_close(n.data);
}

static void hear_image(void *context, const dv_test_image *image) {
    (void)context;
    (void)image;
}

static void training(void **state) {
    (void)state;
    network n = network_new();
    dv_options options = dv_options_default();
    static char path[DV_OPTIONS_JSON_BYTES];
    dv_training *made;
    dv_graph *graph;
    dv_plan *plan;
    dv_train_state at = dv_train_state_default();
    dv_train_result result;
    dv_test_result tested;
    char text[DV_OPTIMIZER_TEXT_BYTES];
    dv_plan_options plan_options = dv_plan_options_default();
    dv_optimizer optimizer;
    refuses(dv_optimizer_parse(NULL, &optimizer, &error));
    refuses(dv_optimizer_parse("sgd", NULL, &error));
    dv_tune_options tune = dv_tune_options_default();
    dv_pass_row row;
    refuses(dv_tune_parse("off", NULL, &error));
    refuses(dv_graph_tune(NULL, NULL, &tune, NULL, &error));
    refuses(dv_graph_tune(n.graph, NULL, NULL, NULL, &error));
    refuses(dv_graph_write_passes(NULL, "passes.txt", &error));
    refuses(dv_graph_write_passes(n.graph, NULL, &error));
    assert_false(dv_graph_pass_at(NULL, 0, &row));
    assert_false(dv_graph_pass_at(n.graph, 0, NULL));
    assert_null(dv_optimizer_name(NULL));
    assert_null(dv_optimizer_slot_at(NULL, 0));
    dv_budget_limits limits = {.noise = -1};
    dv_profile *profile = NULL;
    dv_budget *budget = NULL;
    dv_chosen chosen;
    size_t memory;
    const dv_probe probe = {.batches = 2};
    refuses(dv_profile_new(NULL, &plan_options, &probe, 0, &profile, &error));
    refuses(dv_profile_new(n.graph, NULL, &probe, 0, &profile, &error));
    refuses(dv_profile_new(n.graph, &plan_options, NULL, 0, &profile, &error));
    refuses(dv_profile_new(n.graph, &plan_options, &probe, 0, NULL, &error));
    refuses(dv_profile_new(n.graph, &plan_options, &probe, 0, &profile, &error));
    refuses(dv_profile_add_larger(NULL, n.graph, &plan_options, &probe, 0, &error));
    refuses(dv_profile_flat(NULL, &profile, &error));
    refuses(dv_profile_flat(n.graph, NULL, &error));
    refuses(dv_profile_write(NULL, n.graph, "profile.json", &error));
    refuses(dv_profile_read(NULL, "profile.json", &profile, &error));
    refuses(dv_profile_read(n.graph, NULL, &profile, &error));
    refuses(dv_profile_read(n.graph, "profile.json", NULL, &error));
    refuses(dv_budget_new(NULL, &plan_options, profile, &limits, &budget, &error));
    refuses(dv_budget_new(n.graph, NULL, profile, &limits, &budget, &error));
    refuses(dv_budget_new(n.graph, &plan_options, NULL, &limits, &budget, &error));
    refuses(dv_options_memory(NULL, &memory, &error));
    refuses(dv_options_memory(&options, NULL, &error));
    refuses(dv_options_budget(NULL, NULL, &budget, &memory, &error));
    refuses(dv_options_budget(&options, NULL, NULL, &memory, &error));
    refuses(dv_options_budget(&options, NULL, &budget, NULL, &error));
    refuses(dv_options_choose(NULL, NULL, &chosen, &error));
    refuses(dv_options_choose(&options, NULL, NULL, &error));
    assert_null(dv_budget_point_at(NULL, 0));
    assert_null(dv_budget_choose(NULL, 1));
    assert_null(dv_budget_none(NULL));
    assert_null(dv_budget_division(NULL));
    dv_profile_free(NULL);
    dv_budget_free(NULL);
    refuses(dv_options_for_plan(NULL, text, &plan_options, &error));
    refuses(dv_options_for_plan(&options, NULL, &plan_options, &error));
    refuses(dv_options_for_plan(&options, text, NULL, &error));
    refuses(dv_run_update(NULL, 0.1, 0, &error));
    assert_null(dv_run_optimizer(NULL));
    refuses(dv_schedule_check(NULL, &error));
    refuses(dv_schedule_parse(NULL, &options.schedule, &error));
    refuses(dv_schedule_parse("cosine", NULL, &error));
    refuses(dv_mix_check(NULL, &error));
    refuses(dv_options_check(NULL, &error));
    refuses(dv_options_set(NULL, "lr", "1", &error));
    refuses(dv_options_set(&options, NULL, "1", &error));
    refuses(dv_options_get(NULL, "lr", path, sizeof path, &error));
    refuses(dv_options_get(&options, NULL, path, sizeof path, &error));
    refuses(dv_options_get(&options, "lr", NULL, 8, &error));
    refuses(dv_options_read(NULL, "recipe", &error));
    refuses(dv_options_read(&options, NULL, &error));
    refuses(dv_options_apply(NULL, NULL, "recipe", &error));
    refuses(dv_options_apply(&options, NULL, "recipe", &error));
    refuses(dv_options_json(NULL, path, &error));
    refuses(dv_options_json(&options, NULL, &error));
    refuses(dv_training_new(NULL, NULL, DV_FOLDER_NEW, NULL, &made, &error));
    refuses(dv_training_new(&options, NULL, DV_FOLDER_NEW, NULL, NULL, &error));
    refuses(dv_training_train(NULL, &result, &error));
    dv_rate_search search = dv_rate_search_default();
    dv_rate_point points[1];
    dv_rate_found found;
    refuses(dv_training_find_rate(NULL, &search, points, &found, &error));
    dv_training_free(NULL);
    refuses(dv_options_fit_batch(NULL, &(dv_dataset_shape){0}, &error));
    refuses(dv_options_fit_batch(&options, NULL, &error));
    refuses(dv_options_plan(NULL, NULL, &graph, &plan, &error));
    refuses(dv_options_plan(&options, NULL, NULL, &plan, &error));
    refuses(dv_options_plan(&options, NULL, &graph, NULL, &error));
    refuses(dv_train(NULL, n.plan, n.data, &options, NULL, &at, &result, &error));
    refuses(dv_train(n.run, NULL, n.data, &options, NULL, &at, &result, &error));
    refuses(dv_train(n.run, n.plan, NULL, &options, NULL, &at, &result, &error));
    refuses(dv_train(n.run, n.plan, n.data, NULL, NULL, &at, &result, &error));
    refuses(dv_train(n.run, n.plan, n.data, &options, NULL, NULL, &result, &error));
    refuses(dv_train(n.run, n.plan, n.data, &options, NULL, &at, NULL, &error));
    refuses(dv_test(NULL, n.data, DV_TEST, NULL, NULL, &tested, &error));
    refuses(dv_test(n.run, NULL, DV_TEST, NULL, NULL, &tested, &error));
    refuses(dv_test(n.run, n.data, DV_TEST, NULL, NULL, NULL, &error));
    refuses(dv_test_each(NULL, n.data, DV_TEST, NULL, hear_image, NULL, &tested, &error));
    refuses(dv_test_each(n.run, NULL, DV_TEST, NULL, hear_image, NULL, &tested, &error));
    refuses(dv_test_each(n.run, n.data, DV_TEST, NULL, NULL, NULL, &tested, &error));
    refuses(dv_test_each(n.run, n.data, DV_TEST, NULL, hear_image, NULL, NULL, &error));
    network_free(n);
}

static void predictions(const char *path, const dv_checkpoint *checkpoint) {
    dv_predictor *predictor;
    dv_predictor_options options = dv_predictor_options_default();
    options.model = "resnet20";
    options.classes = 10;
    options.side = options.resize = 16;
    options.normalise = "0.5+0.5+0.5/0.5+0.5+0.5";
    refuses(dv_predictor_open(NULL, &options, &predictor, &error));
    refuses(dv_predictor_open(path, &options, NULL, &error));
    refuses(dv_predictor_new(NULL, &options, &predictor, &error));
    refuses(dv_predictor_new(checkpoint, &options, NULL, &error));
    assert_ok(dv_predictor_new(checkpoint, &options, &predictor, &error));
    refuses(dv_predictor_read(NULL, 0, path, &error));
    refuses(dv_predictor_read(predictor, 0, NULL, &error));
    refuses(dv_predictor_read_bytes(NULL, 0, path, 1, &error));
    refuses(dv_predictor_read_bytes(predictor, 0, NULL, 1, &error));
    refuses(dv_predictor_predict(NULL, 1, &error));
    dv_predictor_close(predictor);
    dv_predictor_close(NULL);
}

static void checkpoints_and_folders(void **state) {
    network n = network_new();
    char path[FOLDER_PATH_BYTES], run_path[FOLDER_PATH_BYTES], text[DV_EPOCH_JSON_BYTES];
    const dv_checkpoint_content content = {.run = n.run}, nothing = {0}, notes = {.run = n.run, .note_count = 1};
    const dv_checkpoint_choice choice = {0};
    dv_train_state at;
    dv_checkpoint *checkpoint;
    dv_folder *opened;
    folder_path(state, "file", path);
    folder_path(state, ".", run_path);
    refuses(dv_checkpoint_write(NULL, &content, &error));
    refuses(dv_checkpoint_write(path, NULL, &error));
    refuses(dv_checkpoint_write(path, &nothing, &error));
    refuses(dv_checkpoint_write(path, &notes, &error));
    assert_ok(dv_checkpoint_write(path, &content, &error));
    refuses(dv_checkpoint_open(NULL, &checkpoint, &error));
    refuses(dv_checkpoint_open(path, NULL, &error));
    refuses(dv_checkpoint_open_weights(NULL, &checkpoint, &error));
    refuses(dv_checkpoint_open_weights(path, NULL, &error));
    assert_ok(dv_checkpoint_open(path, &checkpoint, &error));
    refuses(dv_checkpoint_load(NULL, &choice, n.run, NULL, NULL, &error));
    refuses(dv_checkpoint_load(checkpoint, NULL, n.run, NULL, NULL, &error));
    refuses(dv_checkpoint_load(checkpoint, &choice, NULL, NULL, NULL, &error));
    refuses(dv_checkpoint_resume(NULL, n.run, &at, NULL, NULL, &error));
    refuses(dv_checkpoint_resume(checkpoint, NULL, &at, NULL, NULL, &error));
    refuses(dv_checkpoint_resume(checkpoint, n.run, NULL, NULL, NULL, &error));
    predictions(path, checkpoint);
    refuses(dv_onnx_write(NULL, n.run, NULL, &error));
    refuses(dv_onnx_write(path, NULL, NULL, &error));
    dv_checkpoint_close(checkpoint);
    dv_checkpoint_close(NULL);

    refuses(dv_folder_open(NULL, DV_FOLDER_NEW, &opened, &error));
    refuses(dv_folder_open(run_path, DV_FOLDER_NEW, NULL, &error));
    assert_ok(dv_folder_open(run_path, DV_FOLDER_NEW, &opened, &error));
    refuses(dv_folder_write(NULL, "a", "text", &error));
    refuses(dv_folder_write(opened, NULL, "text", &error));
    refuses(dv_folder_write(opened, "a", NULL, &error));
    refuses(dv_folder_save(NULL, "a", &content, &error));
    refuses(dv_folder_save(opened, NULL, &content, &error));
    refuses(dv_folder_save(opened, "a", NULL, &error));
    refuses(dv_folder_log(NULL, &(dv_epoch_record){0}, &error));
    refuses(dv_folder_log(opened, NULL, &error));
    refuses(dv_epoch_json(NULL, text, &error));
    refuses(dv_epoch_json(&(dv_epoch_record){0}, NULL, &error));
    dv_folder_close(opened);
    dv_folder_close(NULL);
    network_free(n);
}

static void data(void **state) {
    (void)state;
    network n = network_new();
    const dv_loader_options options = {.batch = 2};
    dv_dataset *opened;
    dv_loader *loader;
    dv_augmentation augmentation;
    dv_image_normalisation normalisation = {{0}, {0}};
    char text[DV_NORMALISATION_BYTES];
    dv_loader_speed speed;
    static float floats[2 * 16 * 16 * 3];
    uint8_t *images = (uint8_t *)floats;
    int32_t labels[2];
    size_t count;
    refuses(dv_dataset_open(NULL, &opened, &error));
    refuses(dv_dataset_open("synthetic", NULL, &error));
    refuses(dv_dataset_open_with(NULL, NULL, &opened, &error));
    refuses(dv_dataset_open_with("synthetic", NULL, NULL, &error));
    refuses(dv_dataset_label(NULL, DV_TEST, 0, labels, &error));
    refuses(dv_dataset_label(n.data, DV_TEST, 0, NULL, &error));
    refuses(dv_dataset_load(NULL, DV_TEST, 0, images, labels, &error));
    refuses(dv_dataset_load(n.data, DV_TEST, 0, NULL, labels, &error));
    refuses(dv_dataset_load(n.data, DV_TEST, 0, images, NULL, &error));
    refuses(dv_dataset_image_name(NULL, DV_TEST, 0, text, sizeof text, &error));
    refuses(dv_dataset_image_name(n.data, DV_TEST, 0, NULL, sizeof text, &error));
    assert_int_equal(dv_image_is_named(NULL), 0);
    refuses(dv_augmentation_parse(NULL, &augmentation, &error));
    refuses(dv_augmentation_parse("none", NULL, &error));
    refuses(dv_image_normalisation_parse(NULL, &normalisation, &error));
    refuses(dv_image_normalisation_parse("usual", NULL, &error));
    refuses(dv_image_normalisation_format(NULL, text, &error));
    refuses(dv_image_normalisation_format(&normalisation, NULL, &error));
    refuses(dv_loader_new(NULL, &options, &loader, &error));
    refuses(dv_loader_new(n.data, NULL, &loader, &error));
    refuses(dv_loader_new(n.data, &options, NULL, &error));
    assert_ok(dv_loader_new(n.data, &options, &loader, &error));
    refuses(dv_loader_fill(NULL, 0, 0, floats, labels, &count, &error));
    refuses(dv_loader_fill(loader, 0, 0, NULL, labels, &count, &error));
    refuses(dv_loader_fill(loader, 0, 0, floats, NULL, &count, &error));
    refuses(dv_loader_fill(loader, 0, 0, floats, labels, NULL, &error));
    refuses(dv_loader_fill_bytes(NULL, 0, 0, images, labels, &count, &error));
    refuses(dv_loader_fill_bytes(loader, 0, 0, NULL, labels, &count, &error));
    refuses(dv_loader_fill_bytes(loader, 0, 0, images, NULL, &count, &error));
    refuses(dv_loader_fill_bytes(loader, 0, 0, images, labels, NULL, &error));
    refuses(dv_loader_measure(NULL, &options, 0.1, &speed, &error));
    refuses(dv_loader_measure(n.data, NULL, 0.1, &speed, &error));
    refuses(dv_loader_measure(n.data, &options, 0.1, NULL, &error));
    dv_loader_free(loader);
    dv_loader_free(NULL);
    dv_dataset_close(NULL);
    network_free(n);
}

static void files(void **state) {
    (void)state;
    const dv_lmdb_options options = dv_lmdb_options_default();
    dv_lmdb_result result;
    dv_npy array = {.rank = 1, .shape = {1}, .data = numbers, .bytes = sizeof *numbers};
    dv_recipe *recipe;
    refuses(dv_lmdb_convert(NULL, "b", &options, NULL, &result, &error));
    refuses(dv_lmdb_convert("a", NULL, &options, NULL, &result, &error));
    refuses(dv_lmdb_convert("a", "b", NULL, NULL, &result, &error));
    refuses(dv_lmdb_convert("a", "b", &options, NULL, NULL, &error));
    refuses(dv_lmdb_verify(NULL, NULL, &result, &error));
    refuses(dv_lmdb_verify("b", NULL, NULL, &error));
    refuses(dv_npy_read(NULL, &array, &error));
    refuses(dv_npy_read("a", NULL, &error));
    refuses(dv_npy_parse(NULL, numbers, 4, &array, &error));
    refuses(dv_npy_parse("a", NULL, 4, &array, &error));
    refuses(dv_npy_parse("a", numbers, 4, NULL, &error));
    refuses(dv_npy_write(NULL, &array, &error));
    refuses(dv_npy_write("a", NULL, &error));
    dv_npy_free(NULL);
    refuses(dv_recipe_read(NULL, &recipe, &error));
    refuses(dv_recipe_read("a", NULL, &error));
    refuses(dv_recipe_parse(NULL, "a = b", 5, &recipe, &error));
    refuses(dv_recipe_parse("a", NULL, 5, &recipe, &error));
    refuses(dv_recipe_parse("a", "a = b", 5, NULL, &error));
    dv_recipe_free(NULL);
}

static void pictures(void **state) {
    (void)state;
    dv_picture picture;
    refuses(dv_picture_new(NULL, 8, 8, DV_WHITE, &error));
    assert_ok(dv_picture_new(&picture, 8, 8, DV_WHITE, &error));
    refuses(dv_picture_write(NULL, "a", &error));
    refuses(dv_picture_write(&picture, NULL, &error));
    dv_picture_free(&picture);
    dv_picture_free(NULL);
}

static void reports(void **state) {
    (void)state;
    dv_report *report;
    refuses(dv_report_new(NULL, &error));
    assert_ok(dv_report_new(&report, &error));
    refuses(dv_report_add(NULL, "a", &error));
    refuses(dv_report_add(report, NULL, &error));
    refuses(dv_report_page(NULL, "a", "b", &error));
    refuses(dv_report_page(report, NULL, "b", &error));
    refuses(dv_report_page(report, "a", NULL, &error));
    dv_rate_point point = {1, 1, 1};
    dv_rate_found found = {.points = 1};
    refuses(dv_report_rates_svg(NULL, &found, "title", "a", &error));
    refuses(dv_report_rates_svg(&point, NULL, "title", "a", &error));
    refuses(dv_report_rates_svg(&point, &found, NULL, "a", &error));
    refuses(dv_report_rates_svg(&point, &found, "title", NULL, &error));
    refuses(dv_report_rates_json(NULL, &found, "a", &error));
    refuses(dv_report_rates_json(&point, NULL, "a", &error));
    refuses(dv_report_rates_json(&point, &found, NULL, &error));
    refuses(dv_report_figures(NULL, "a", &error));
    refuses(dv_report_figures(report, NULL, &error));
    refuses(dv_report_tensorboard(NULL, "a", &error));
    refuses(dv_report_tensorboard(report, NULL, &error));
    dv_report_free(report);
    dv_report_free(NULL);
}

static void json(void **state) {
    (void)state;
    dv_json writer;
    refuses(dv_json_finish(NULL, &error));
    dv_json_to_buffer(&writer, NULL, 8);
    dv_json_null(&writer, NULL);
    assert_int_not_equal(dv_json_finish(&writer, NULL), DV_OK);
    refuses(dv_isa_picked(NULL, &error));
    refuses(dv_engine_name(NULL, &error));
    refuses(dv_world_open(60, NULL, &error));
    refuses(dv_run_time_operations(NULL, NULL, &error));
    refuses(dv_run_reduce_last(NULL, 1, &error));
    refuses(dv_world_measure(NULL, NULL, &error));
    refuses(dv_world_meet(NULL, &error));
    refuses(dv_scaling_predict(NULL, NULL, NULL, 1, NULL, &error));
    dv_world_close(NULL);
    dv_world_abort(NULL, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codecs),
        cmocka_unit_test(packed_maps),
        cmocka_unit_test(graphs),
        cmocka_unit_test(plans_and_runs),
        cmocka_unit_test(any_order_of_freeing),
        cmocka_unit_test(training),
        cmocka_unit_test_setup_teardown(checkpoints_and_folders, folder_new, folder_free),
        cmocka_unit_test(data),
        cmocka_unit_test(files),
        cmocka_unit_test(pictures),
        cmocka_unit_test(reports),
        cmocka_unit_test(json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
