/* What a method can say beside keepers. A value can be stored inside the layer that takes it instead of the one that
 * makes it: here a packed x in the forward of the batch norm that normalises it, when its mask is known. And the mask
 * of a value can be read out of another one. What is kept is the same, so that all bits are. */
#include "check.h"
#include "graph/plan.h"

#include <division/models.h>

static const dv_method_kind *division; /* as it is */

/* DIVISION, but that batch norms store what they normalise. */
static dv_status choose_later(dv_plan *plan, dv_error *error) {
    dv_status status = division->choose(plan, error);
    for (size_t i = 0; status == DV_OK && i < plan->graph->layer_count; i++) {
        const dv_graph_layer *node = &plan->graph->layers[i];
        dv_value_plan *x = &plan->values[node->inputs[0]];
        if (node->layer.kind->stores_input && x->keeper == &dv_keep_packed)
            x->stored_by = (int)i;
    }
    return status;
}

/* The same where it can't be: a convolution stores no input. */
static dv_status choose_wrongly(dv_plan *plan, dv_error *error) {
    dv_status status = division->choose(plan, error);
    plan->values[plan->graph->input].stored_by = 0;
    return status;
}

static dv_run *train(dv_graph *graph, const char *method) {
    dv_plan_options options = dv_plan_options_default();
    dv_plan *plan;
    dv_run *run;
    options.method = method;
    assert_ok(dv_plan_new(graph, &options, &plan, &error));
    assert_ok(dv_run_new(plan, 1, &run, &error));
    const dv_map *map = dv_run_input_map(run);
    for (uint64_t step = 0; step < 2; step++) {
        dv_step_result result;
        for (size_t i = 0; i < dv_map_elements(map); i++)
            ((float *)dv_run_input(run))[i] = (float)((uint32_t)(i + step) * 2654435761u >> 16) * 0x1p-16f - 0.5f;
        for (size_t i = 0; i < map->images; i++)
            dv_run_labels(run)[i] = (int32_t)(i % 10);
        assert_ok(dv_run_train(run, &(dv_step){.batch = step}, &result, &error));
    }
    dv_plan_free(plan);
    return run;
}

static void stored_by_a_consumer(void **state) {
    (void)state;
    static const char *const models[] = {"resnet20", "densenet121_cifar"};
    dv_method parsed;
    assert_ok(dv_method_parse("division", &parsed, &error));
    division = parsed.kind;
    dv_method_kind later = *division;
    later.name = "later";
    later.choose = choose_later;
    for (int m = 0; m < 2; m++) {
        dv_graph *graph;
        assert_ok(dv_model_build(models[m], DV_F32, 2, 10, 16, &graph, &error));
        dv_run *expected = train(graph, "division");
        dv_method_added = &later;
        dv_run *run = train(graph, "later");
        const dv_run_parameter *p, *q;
        for (size_t i = 0; (p = dv_run_parameter_at(expected, i)) && (q = dv_run_parameter_at(run, i)); i++)
            if (p->gradient && memcmp(p->gradient, q->gradient, p->count * sizeof(float)) != 0)
                fail_msg("%s: another gradient of %s", models[m], p->name);
        dv_run_free(expected);
        dv_run_free(run);
        dv_graph_free(graph);
    }
}

static void not_by_any_layer(void **state) {
    (void)state;
    dv_method_kind wrong = *division;
    dv_plan_options options = dv_plan_options_default();
    dv_graph *graph;
    dv_plan *plan;
    wrong.name = "wrong";
    wrong.choose = choose_wrongly;
    dv_method_added = &wrong;
    options.method = "wrong";
    assert_ok(dv_model_build("resnet20", DV_F32, 2, 10, 16, &graph, &error));
    assert_fails(dv_plan_new(graph, &options, &plan, &error), DV_ERROR_ARGUMENT, "method wrong: conv1 cannot store");
    dv_method_added = NULL;
    dv_graph_free(graph);
}

/* ---- a mask in another value ----------------------------------------------------------------- */

/* Convolutions with ReLUs behind them, and one of two ReLUs whose output is only pooled. */
static dv_graph *relu_graph(void) {
    const dv_convolution_options convolution = {.channels = 16, .window = dv_window_square(3, 1, 1), .groups = 1};
    dv_graph *graph;
    assert_ok(dv_graph_new(DV_F32, 2, &graph, &error));
    dv_value x = dv_graph_input(graph, 3, 2, (const size_t[]){9, 11});
    x = dv_graph_relu(graph, "relu1", dv_graph_convolution(graph, "conv1", x, &convolution));
    x = dv_graph_relu(graph, "relu2", dv_graph_convolution(graph, "conv2", x, &convolution));
    x = dv_graph_global_average_pooling(graph, "pool", x);
    x = dv_graph_linear(graph, "fc", x, &(dv_linear_options){.channels = 10, .bias = true});
    assert_ok(dv_graph_finish(graph, x, &error));
    return graph;
}

static void keep_exact(dv_plan *plan, dv_value value) {
    dv_plan_keep(plan, value, &dv_keep_exact);
}

/* A ReLU's output is positive where its input is: the input is kept, and tells the mask. */
static dv_status choose_masks(dv_plan *plan, dv_error *error) {
    (void)error;
    for (int i = 0; i < (int)plan->graph->layer_count; i++) {
        const dv_graph_layer *node = &plan->graph->layers[i];
        if (node->layer.output_need == DV_NEED_MASK) {
            dv_plan_ask(plan, node->inputs[0], (dv_readers){i, i});
            dv_plan_mask_in(plan, node->output, node->inputs[0]);
        }
    }
    dv_plan_choose(plan, keep_exact);
    return DV_OK;
}

static void a_mask_is_read_out_of_another_value(void **state) {
    (void)state;
    static const dv_method_kind masks = {.name = "masks", .choose = choose_masks};
    dv_plan_options options = dv_plan_options_default();
    dv_graph *graph = relu_graph();
    dv_plan *plan;
    dv_run *expected = train(graph, "none");
    dv_method_added = &masks;
    options.method = "masks";
    assert_ok(dv_plan_new(graph, &options, &plan, &error));
    for (size_t v = 0; v < graph->value_count; v++)
        assert_int_equal(plan->values[v].mask, DV_NO_PIECE);
    dv_run *run = train(graph, "masks");
    const dv_run_parameter *p, *q;
    for (size_t i = 0; (p = dv_run_parameter_at(expected, i)) && (q = dv_run_parameter_at(run, i)); i++)
        assert_memory_equal(p->gradient, q->gradient, p->count * sizeof(float));
    dv_method_added = NULL;
    dv_plan_free(plan);
    dv_run_free(expected);
    dv_run_free(run);
    dv_graph_free(graph);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stored_by_a_consumer),
        cmocka_unit_test(not_by_any_layer),
        cmocka_unit_test(a_mask_is_read_out_of_another_value),
    };
    return cmocka_run_group_tests_name("choices", tests, NULL, NULL);
}
