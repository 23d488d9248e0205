/* Losses as layers of a graph: given or added, what a graph refuses, memory of what they compare with. */
#include "check.h"
#include "graph/plan.h"
#include "nn/shape.h"

#include <division/train.h>
#include <math.h>

enum { BATCH = 4, CLASSES = 5 };

/* ---- graphs ---------------------------------------------------------------------------------- */

/* Logits of rank 0, or maps of 6 x 6. */
static dv_value logits_of(dv_graph *graph, bool maps) {
    const dv_convolution_options narrow = {.channels = CLASSES, .window = dv_window_square(3, 1, 1), .groups = 1};
    dv_value x = dv_graph_input(graph, 3, 2, (const size_t[]){6, 6});
    x = dv_graph_convolution(graph, "conv", x, &narrow);
    return maps ? x : dv_graph_global_average_pooling(graph, "pool", x);
}

static dv_graph *graph_new(void) {
    dv_graph *graph;
    assert_ok(dv_graph_new(DV_F32, BATCH, &graph, &error));
    return graph;
}

static dv_run *run_of(dv_graph *graph, const dv_guard_options *guard) {
    const dv_plan_options options = dv_plan_options_default();
    dv_plan *plan;
    dv_run *run;
    assert_ok(dv_plan_new_guarded(graph, &options, guard, &plan, &error));
    assert_ok(dv_run_new(plan, 1, &run, &error));
    dv_plan_free(plan);
    dv_graph_free(graph);
    return run;
}

static const dv_guard_options no_guard, red_zones = {.zones = true, .fill = true, .pattern = 0xFF};
static const dv_guard_options hiding = {.hide = true};

static void fill_images(dv_run *run) {
    float *images = dv_run_input(run);
    for (size_t i = 0; i < dv_map_elements(dv_run_input_map(run)); i++)
        images[i] = (float)(i * 2654435761u >> 16 & 255) / 128 - 1;
}

/* ---- softmax cross-entropy ------------------------------------------------------------------- */

static dv_step_result step(dv_run *run) {
    dv_step_result result;
    size_t rows = dv_map_elements(dv_run_logits_map(run)) / CLASSES;
    fill_images(run);
    for (size_t i = 0; i < rows; i++)
        dv_run_labels(run)[i] = (int32_t)(i % CLASSES);
    assert_ok(dv_run_train(run, &(dv_step){.batch = 1, .label_smoothing = 0.1f}, &result, &error));
    return result;
}

/* A graph that ends with logits is one that ends with their softmax cross-entropy. */
static void softmax_cross_entropy_is_added(void **state) {
    (void)state;
    for (int maps = 0; maps < 2; maps++) {
        dv_graph *implied = graph_new(), *given = graph_new();
        assert_ok(dv_graph_finish(implied, logits_of(implied, maps), &error));
        dv_value logits = logits_of(given, maps);
        assert_ok(dv_graph_finish(given, dv_graph_softmax_cross_entropy(given, "mine", logits), &error));
        assert_int_equal(implied->layer_count, given->layer_count);
        assert_int_equal(implied->value_count, given->value_count);
        assert_string_equal(implied->loss.layer.name, "loss");
        assert_string_equal(given->loss.layer.name, "mine");
        dv_run *a = run_of(implied, &no_guard), *b = run_of(given, &red_zones);
        dv_step_result first = step(a), second = step(b);
        assert_memory_equal(&first, &second, sizeof first);
        assert_int_equal(first.counted, maps ? BATCH * 36 : BATCH);
        const dv_run_parameter *p = dv_run_parameter_at(a, 0), *q = dv_run_parameter_at(b, 0);
        assert_memory_equal(p->gradient, q->gradient, p->count * sizeof(float));
        dv_run_free(a);
        dv_run_free(b);
    }
}

/* The images that are there have labels, one behind the other; the others' are not read. */
static void a_map_of_fewer_images(void **state) {
    (void)state;
    dv_graph *graph = graph_new();
    dv_step_result result;
    assert_ok(dv_graph_finish(graph, logits_of(graph, true), &error));
    dv_run *run = run_of(graph, &red_zones);
    assert_null(dv_run_second_labels(run));
    assert_null(dv_run_label_weights(run));
    assert_ok(dv_run_set_images(run, 3, &error));
    fill_images(run);
    for (size_t i = 0; i < BATCH * 36; i++)
        dv_run_labels(run)[i] = i < 36 ? DV_NO_LABEL : i < 3 * 36 ? 1 : 99;
    assert_ok(dv_run_train(run, &(dv_step){.batch = 1}, &result, &error));
    assert_int_equal(result.counted, 2 * 36);
    dv_run_free(run);
}

/* ---- what a graph refuses -------------------------------------------------------------------- */

static void losses_end_a_graph(void **state) {
    (void)state;
    dv_graph *graph = graph_new();
    dv_value loss = dv_graph_softmax_cross_entropy(graph, "loss", logits_of(graph, false));
    dv_value more = dv_graph_relu(graph, "relu", loss);
    assert_fails(dv_graph_finish(graph, more, &error), DV_ERROR_ARGUMENT, "loss is a loss: no layer can take it");
    assert_fails(dv_graph_finish(graph, loss, &error), DV_ERROR_ARGUMENT, "no layer can take it"); /* stays so */
    dv_graph_free(graph);

    graph = graph_new();
    dv_value logits = logits_of(graph, false);
    loss = dv_graph_softmax_cross_entropy(graph, "one", logits);
    (void)dv_graph_softmax_cross_entropy(graph, "another", logits);
    assert_fails(dv_graph_finish(graph, loss, &error), DV_ERROR_ARGUMENT, "the output of another is not used");
    dv_graph_free(graph);

    graph = graph_new();
    logits = dv_graph_input(graph, 3, 0, NULL);
    assert_fails(dv_graph_finish(graph, logits, &error), DV_ERROR_ARGUMENT, "loss is taken of the images");
    dv_graph_free(graph);

    graph = graph_new();
    assert_fails(dv_graph_finish(graph, 0, &error), DV_ERROR_ARGUMENT, "not a value of this graph");
    dv_graph_free(graph);

    graph = graph_new();
    logits = logits_of(graph, false);
    assert_ok(dv_graph_finish(graph, logits, &error));
    assert_fails(dv_graph_finish(graph, logits, &error), DV_ERROR_ARGUMENT, "finished");
    dv_graph_free(graph);
}

/* dv_train has a label per image to give. */
static void maps_are_not_for_dv_train(void **state) {
    (void)state;
    const dv_convolution_options narrow = {.channels = 10, .window = dv_window_square(3, 1, 1), .groups = 1};
    dv_graph *graph = graph_new();
    dv_dataset *data;
    dv_test_result result;
    dv_value x = dv_graph_input(graph, 3, 2, (const size_t[]){8, 8});
    assert_ok(dv_graph_finish(graph, dv_graph_convolution(graph, "conv", x, &narrow), &error));
    dv_run *run = run_of(graph, &no_guard);
    assert_ok(dv_dataset_open("synthetic:side=8,train=4,test=4", &data, &error));
    assert_fails(dv_test(run, data, DV_TEST, NULL, NULL, &result, &error), DV_ERROR_ARGUMENT, "a label per image");
    dv_dataset_close(data);
    dv_run_free(run);
}

/* ---- another loss ---------------------------------------------------------------------------- */

/* Half the square of each channel's distance from a number, by way of a workspace. */
static dv_status infer(dv_layer *layer, dv_error *error) {
    DV_TRY(dv_layer_check_inputs(layer, 1, 1, error));
    layer->output = layer->inputs[0];
    layer->target_bytes = layer->inputs[0].channels * sizeof(float);
    layer->forward_workspace_bytes = layer->inputs[0].images * layer->target_bytes;
    return DV_OK;
}

static dv_status distance(const dv_layer *layer, const dv_loss_call *call, dv_loss_result *result, dv_error *error) {
    (void)error;
    const float *input = call->input, *wanted = call->targets.data;
    float *apart = call->workspace, *diff = call->diff_input;
    *result = (dv_loss_result){.counted = call->images};
    for (size_t i = 0; i < call->images * layer->inputs[0].channels; i++) {
        apart[i] = input[i] - wanted[i];
        result->loss += (double)(apart[i] * apart[i]) / 2 / (double)call->images;
        if (diff)
            diff[i] = apart[i] * call->scale / (float)call->images;
    }
    return DV_OK;
}

static const dv_layer_kind distances = {.name = "distances", .infer = infer, .loss = distance};

/* It has targets of its own, and a workspace that is alive while it needs it; steps downhill make it smaller. */
static void another_loss_is_another_kind(void **state) {
    (void)state;
    static const dv_guard_options *const guards[] = {&no_guard, &red_zones, &hiding};
    for (size_t g = 0; g < 3; g++) {
        dv_graph *graph = graph_new();
        dv_value logits = logits_of(graph, false);
        dv_step_result result = {0};
        assert_ok(dv_graph_finish(graph, dv_graph_add(graph, &distances, "apart", &logits, 1, NULL, 0), &error));
        dv_run *run = run_of(graph, guards[g]);
        assert_null(dv_run_labels(run));
        assert_null(dv_run_second_labels(run));
        double before = INFINITY;
        for (uint64_t i = 0; i < 5; i++) {
            const dv_run_parameter *p = dv_run_parameter_at(run, 0);
            fill_images(run);
            for (size_t k = 0; k < BATCH * CLASSES; k++)
                ((float *)dv_run_targets(run))[k] = (float)(k % 3);
            assert_ok(dv_run_train(run, &(dv_step){.batch = i}, &result, &error));
            assert_true(result.loss < before);
            before = result.loss;
            for (size_t k = 0; k < p->count; k++) {
                p->data[k] -= 0.1f * p->gradient[k];
                p->gradient[k] = 0;
            }
        }
        dv_run_free(run);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(softmax_cross_entropy_is_added),
        cmocka_unit_test(a_map_of_fewer_images),
        cmocka_unit_test(losses_end_a_graph),
        cmocka_unit_test(maps_are_not_for_dv_train),
        cmocka_unit_test(another_loss_is_another_kind),
    };
    return cmocka_run_group_tests_name("loss", tests, NULL, NULL);
}
