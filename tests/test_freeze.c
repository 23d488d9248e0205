/* Frozen layers: which parameters a list of globs names, what plans keep of them, checkpoints. That gradients are right
 * is shown by test_random_graphs.c for every method, by test_network.c against PyTorch. */
#include "check.h"
#include "folder.h"
#include "graph/plan.h"

#include <division/checkpoint.h>
#include <division/models.h>
#include <division/train.h>

enum { BATCH = 4, SIDE = 8, CHANNELS = 8, TEXT_BYTES = 512 };

/* ---- a network ------------------------------------------------------------------------------- */

static dv_value convolution(dv_graph *graph, const char *name, dv_value x) {
    const dv_convolution_options options = {
        .channels = CHANNELS, .window = dv_window_square(3, 1, 1), .groups = 1, .bias = true};
    return dv_graph_convolution(graph, name, x, &options);
}

static dv_value norm_relu(dv_graph *graph, const char *name, dv_value x) {
    return dv_graph_relu(graph, name, dv_graph_batch_norm(graph, name, x));
}

/* conv1 bn1, a part of two layers with a sum, another whose name begins alike, fc. */
static dv_graph *small_graph(void) {
    dv_graph *graph;
    assert_ok(dv_graph_new(DV_F32, BATCH, &graph, &error));
    dv_value x = dv_graph_input(graph, CHANNELS, 2, (const size_t[]){SIDE, SIDE});
    x = norm_relu(graph, "bn1", convolution(graph, "conv1", x));
    dv_value y = norm_relu(graph, "layer1.0.bn1", convolution(graph, "layer1.0.conv1", x));
    y = dv_graph_batch_norm(graph, "layer1.0.bn2", convolution(graph, "layer1.0.conv2", y));
    y = dv_graph_relu(graph, "layer1.0.relu", dv_graph_sum(graph, "layer1.0.sum", y, x));
    y = norm_relu(graph, "layer10.bn", convolution(graph, "layer10.conv", y));
    const dv_linear_options options = {.channels = 10, .bias = true};
    y = dv_graph_linear(graph, "fc", dv_graph_global_average_pooling(graph, "pool", y), &options);
    assert_ok(dv_graph_finish(graph, y, &error));
    return graph;
}

typedef struct network {
    dv_graph *graph;
    dv_plan *plan;
    dv_run *run;
} network;

static network network_of(const char *method, const char *freeze) {
    network n = {.graph = small_graph()};
    dv_plan_options options = dv_plan_options_default();
    options.method = method;
    options.freeze = freeze;
    options.average = 1;
    assert_ok(dv_plan_new(n.graph, &options, &n.plan, &error));
    assert_ok(dv_run_new(n.plan, 1, &n.run, &error));
    return n;
}

static void network_free(network n) {
    dv_run_free(n.run);
    dv_plan_free(n.plan);
    dv_graph_free(n.graph);
}

static void step(network n, uint64_t number) {
    dv_step_result result;
    float *images = dv_run_input(n.run);
    for (size_t i = 0; i < dv_map_elements(dv_run_input_map(n.run)); i++)
        images[i] = (float)((uint32_t)(i + number) * 2654435761u >> 16) * 0x1p-15f - 1;
    for (size_t i = 0; i < BATCH; i++)
        dv_run_labels(n.run)[i] = (int32_t)i;
    assert_ok(dv_run_train(n.run, &(dv_step){.batch = number}, &result, &error));
}

static bool is_statistic(const dv_run_parameter *p) {
    return strstr(p->name, ".running_") != NULL;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* The frozen parameters of a network, each with a space behind it. */
static const char *frozen_names(network n, char text[TEXT_BYTES]) {
    const dv_run_parameter *p;
    text[0] = '\0';
    for (size_t k = 0; (p = dv_run_parameter_at(n.run, k)); k++)
        if (!is_statistic(p) && !p->gradient) {
            assert_null(p->optimizer);
            assert_null(p->average);
            strcat(strcat(text, p->name), " ");
        }
    return text;
}

static void globs_name_parts(void **state) {
    (void)state;
    static const struct {
        const char *freeze, *names;
    } cases[] = {
        {NULL, ""},
        {"", ""},
        {"conv1", "conv1.weight conv1.bias "},
        {"conv1.*", "conv1.weight conv1.bias "},
        {"conv1.bias", "conv1.bias "},
        {" conv1.bias , fc ", "conv1.bias fc.weight fc.bias "},
        {"layer1", "layer1.0.conv1.weight layer1.0.conv1.bias layer1.0.bn1.weight layer1.0.bn1.bias "
                   "layer1.0.conv2.weight layer1.0.conv2.bias layer1.0.bn2.weight layer1.0.bn2.bias "},
        {"layer1.0.conv?", "layer1.0.conv1.weight layer1.0.conv1.bias layer1.0.conv2.weight layer1.0.conv2.bias "},
        {"layer10,*.bn[1]", "layer1.0.bn1.weight layer1.0.bn1.bias layer10.conv.weight layer10.conv.bias "
                            "layer10.bn.weight layer10.bn.bias "},
        {"*.conv*.bias", "layer1.0.conv1.bias layer1.0.conv2.bias layer10.conv.bias "},
    };
    char text[TEXT_BYTES];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        network n = network_of("none", cases[i].freeze);
        assert_string_equal(frozen_names(n, text), cases[i].names);
        assert_string_equal(dv_run_freeze(n.run), cases[i].freeze ? cases[i].freeze : "");
        network_free(n);
    }
}

static void refuses(void **state) {
    (void)state;
    static const struct {
        const char *freeze, *words;
    } cases[] = {
        {"conv2", "freeze: 'conv2' names no parameter: give names like fc or fc.weight"},
        {"conv1,layer1.0.relu", "'layer1.0.relu' names no parameter"}, /* it has none */
        {"conv1,,fc", "'conv1,,fc' has an empty place"},
        {",", "has an empty place"},
        {"*", "'*' are all parameters: nothing is left to train: leave some out, fc for example"},
        {"*.weight,*.bias", "nothing is left to train"},
    };
    dv_graph *graph = small_graph();
    dv_plan_options options = dv_plan_options_default();
    dv_plan *plan;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        options.freeze = cases[i].freeze;
        assert_fails(dv_plan_new(graph, &options, &plan, &error), DV_ERROR_OPTION, cases[i].words);
    }
    options.inference = 1; /* in which nothing is trained anyway */
    assert_ok(dv_plan_new(graph, &options, &plan, &error));
    assert_int_equal(dv_plan_totals(plan).frozen, 0);
    dv_plan_free(plan);
    dv_graph_free(graph);
}

/* ---- plans ----------------------------------------------------------------------------------- */

static const dv_plan_row *row_of(const dv_plan *plan, const char *layer) {
    const dv_plan_row *row;
    for (size_t i = 0; (row = dv_plan_row_at(plan, i)); i++)
        if (strcmp(row->layer, layer) == 0)
            return row;
    fail_msg("no row of %s", layer);
    return NULL;
}

/* Behind the last frozen layer one value is left, and before it nothing. */
static void what_is_before_the_trained_part_keeps_nothing(void **state) {
    (void)state;
    static const char *const methods[] = {"none", "division", "division:recompute=norms", "checkpoint", "swap"};
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        network whole = network_of(methods[i], NULL), frozen = network_of(methods[i], "conv1,bn1,layer1");
        dv_plan_summary t = dv_plan_totals(frozen.plan), all = dv_plan_totals(whole.plan);
        static const char *const before[] = {"input",          "conv1",        "bn1",
                                             "layer1.0.conv1", "layer1.0.bn1", "layer1.0.conv2"};
        for (size_t k = 0; k < sizeof before / sizeof *before; k++) {
            const dv_plan_row *row = row_of(frozen.plan, before[k]);
            if (row->kept_bytes > 0 || row->saved_bytes > 0 || strcmp(row->keeper, "-") != 0)
                fail_msg("%s: %s is kept: %s", methods[i], before[k], row->keeper);
        }
        assert_int_equal(row_of(frozen.plan, "layer1.0.bn2")->saved_bytes, 0);
        assert_true(row_of(frozen.plan, "layer1.0.bn2")->kept_bytes > 0 || t.spilled > 0);
        assert_true(row_of(frozen.plan, "layer1.0.bn2")->frozen_bytes == 2 * CHANNELS * sizeof(float));
        assert_int_equal(row_of(frozen.plan, "layer10.conv")->frozen_bytes, 0);
        assert_int_equal(t.parameters, all.parameters);
        assert_int_equal(t.gradients, all.gradients - t.frozen);
        assert_true(t.optimizer < all.optimizer && t.planned < all.planned && t.activations <= all.activations);
        step(whole, 1);
        step(frozen, 1);
        network_free(whole);
        network_free(frozen);
    }
}

/* A frozen layer that passes a gradient on does not read its input again: it is kept for others only. */
static void in_the_middle_masks_are_left(void **state) {
    (void)state;
    network n = network_of("none", "layer1");
    assert_string_equal(row_of(n.plan, "layer1.0.conv1")->keeper, "-");
    assert_string_equal(row_of(n.plan, "layer1.0.bn1")->keeper, "mask");
    assert_string_equal(row_of(n.plan, "layer1.0.conv2")->keeper, "-");
    assert_string_equal(row_of(n.plan, "layer1.0.bn2")->keeper, "exact"); /* layer10.conv reads it */
    assert_string_equal(row_of(n.plan, "bn1")->keeper, "mask");
    network_free(n);
    n = network_of("none", "*.weight,conv1,bn1,fc"); /* biases alone need no input; the norms here are trained */
    assert_string_equal(row_of(n.plan, "input")->keeper, "-");
    assert_string_equal(row_of(n.plan, "layer1.0.bn1")->keeper, "mask");
    assert_string_equal(row_of(n.plan, "layer1.0.conv1")->keeper, "exact");
    network_free(n);
}

/* Two plans of one graph, with other layers frozen, run by turns: each is as if it were alone. */
static void plans_of_one_graph_differ(void **state) {
    (void)state;
    network a = network_of("none", "conv1,bn1"), alone = network_of("none", "conv1,bn1"), b = {.graph = a.graph};
    dv_plan_options options = dv_plan_options_default();
    options.method = "division";
    options.freeze = "layer1,fc.bias";
    assert_ok(dv_plan_new(a.graph, &options, &b.plan, &error));
    assert_ok(dv_run_new(b.plan, 1, &b.run, &error));
    for (uint64_t k = 0; k < 3; k++) {
        step(a, k);
        step(b, k);
        step(alone, k);
    }
    const dv_run_parameter *p, *q;
    for (size_t k = 0; (p = dv_run_parameter_at(a.run, k)) && (q = dv_run_parameter_at(alone.run, k)); k++) {
        assert_memory_equal(p->data, q->data, p->count * sizeof(float));
        if (p->gradient)
            assert_memory_equal(p->gradient, q->gradient, p->count * sizeof(float));
    }
    dv_run_free(b.run);
    dv_plan_free(b.plan);
    network_free(a);
    network_free(alone);
}

/* A frozen batch norm has no use for a second image. */
static void one_image_is_enough(void **state) {
    (void)state;
    dv_graph *graph;
    dv_plan *plan;
    dv_run *run;
    assert_ok(dv_graph_new(DV_F32, 2, &graph, &error));
    dv_value x = dv_graph_input(graph, 4, 1, (const size_t[]){1});
    x = dv_graph_global_average_pooling(graph, "pool", dv_graph_batch_norm(graph, "bn", x));
    x = dv_graph_linear(graph, "fc", x, &(dv_linear_options){.channels = 3, .bias = true});
    assert_ok(dv_graph_finish(graph, x, &error));
    for (int frozen = 0; frozen < 2; frozen++) {
        dv_plan_options options = dv_plan_options_default();
        options.freeze = frozen ? "bn" : NULL;
        assert_ok(dv_plan_new(graph, &options, &plan, &error));
        assert_ok(dv_run_new(plan, 1, &run, &error));
        assert_int_equal(dv_run_fewest_images(run), frozen ? 1 : 2);
        dv_run_free(run);
        dv_plan_free(plan);
    }
    dv_graph_free(graph);
}

/* ---- recomputing ----------------------------------------------------------------------------- */

/* Outputs of all batch norms are recomputed, from inputs that are kept as they are. */
static void keep(dv_plan *plan, dv_value value) {
    int producer = plan->graph->values[value].producer;
    bool norm = producer != DV_INPUT && plan->graph->layers[producer].layer.kind->normalises;
    dv_plan_keep(plan, value, norm ? &dv_keep_recomputed : &dv_keep_exact);
}

static dv_status choose(dv_plan *plan, dv_error *error) {
    (void)error;
    dv_plan_choose(plan, keep);
    return DV_OK;
}

static const dv_method_kind recomputing = {.name = "recomputing", .help = "for tests", .choose = choose};

static void outputs_of_frozen_norms_can_be_recomputed(void **state) {
    (void)state;
    static const char *const frozen[] = {"conv1,bn1,layer1", "layer1", "*.bn?", "bn1"};
    dv_method_added = &recomputing;
    for (size_t i = 0; i < sizeof frozen / sizeof *frozen; i++) {
        network exact = network_of("none", frozen[i]), again = network_of("recomputing", frozen[i]);
        step(exact, 1);
        step(again, 1);
        const dv_run_parameter *p, *q;
        for (size_t k = 0; (p = dv_run_parameter_at(exact.run, k)) && (q = dv_run_parameter_at(again.run, k)); k++)
            if (p->gradient && memcmp(p->gradient, q->gradient, p->count * sizeof(float)) != 0)
                fail_msg("%s: another gradient of %s", frozen[i], p->name);
        network_free(exact);
        network_free(again);
    }
    dv_method_added = NULL;
}

/* ---- checkpoints ----------------------------------------------------------------------------- */

static void save(const char *path, network n, const dv_train_state *state) {
    const dv_checkpoint_content content = {.run = n.run, .state = state, .averages = state == NULL};
    assert_ok(dv_checkpoint_write(path, &content, &error));
}

static void assert_equal_arrays(network a, network b) {
    const dv_run_parameter *p, *q;
    for (size_t k = 0; (p = dv_run_parameter_at(a.run, k)) && (q = dv_run_parameter_at(b.run, k)); k++)
        assert_memory_equal(p->data, q->data, p->count * sizeof(float));
}

/* A training goes on with the same frozen, and with nothing else; its weights, averages where there are, fit any. */
static void checkpoints_are_whole(void **state) {
    char path[FOLDER_PATH_BYTES];
    static const char *const other[] = {NULL, "conv1", "conv1,bn1,layer1,layer10"};
    network from = network_of("none", "conv1,bn1,layer1"), to = network_of("none", "conv1,bn1,layer1");
    dv_train_state saved = dv_train_state_default(), read;
    saved.steps_per_epoch = 5;
    folder_path(state, "frozen.safetensors", path);
    dv_average_begin(from.run);
    step(from, 1);
    save(path, from, &saved);
    dv_checkpoint *checkpoint;
    assert_ok(dv_checkpoint_open(path, &checkpoint, &error));
    assert_ok(dv_checkpoint_resume(checkpoint, to.run, &read, NULL, NULL, &error));
    assert_equal_arrays(from, to);
    for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
        network differs = network_of("none", other[i]);
        const dv_checkpoint_choice averages = {.averages = 1};
        assert_fails(dv_checkpoint_resume(checkpoint, differs.run, &read, NULL, NULL, &error), DV_ERROR_OPTION,
                     "was trained with 'conv1,bn1,layer1': go on with that (--freeze)");
        assert_ok(dv_checkpoint_load(checkpoint, &averages, differs.run, NULL, NULL, &error));
        network_free(differs);
    }
    dv_checkpoint_close(checkpoint);
    save(path, from, NULL); /* averages, and what was frozen as it is */
    network whole = network_of("none", NULL);
    assert_ok(dv_checkpoint_open(path, &checkpoint, &error));
    assert_ok(dv_checkpoint_load(checkpoint, &(dv_checkpoint_choice){0}, whole.run, NULL, NULL, &error));
    dv_checkpoint_close(checkpoint);
    dv_average_exchange(from.run);
    assert_equal_arrays(from, whole);
    network_free(whole);
    network_free(from);
    network_free(to);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(globs_name_parts),
        cmocka_unit_test(refuses),
        cmocka_unit_test(what_is_before_the_trained_part_keeps_nothing),
        cmocka_unit_test(in_the_middle_masks_are_left),
        cmocka_unit_test(plans_of_one_graph_differ),
        cmocka_unit_test(one_image_is_enough),
        cmocka_unit_test(outputs_of_frozen_norms_can_be_recomputed),
        cmocka_unit_test_setup_teardown(checkpoints_are_whole, folder_new, folder_free),
    };
    return cmocka_run_group_tests_name("frozen layers", tests, NULL, NULL);
}
