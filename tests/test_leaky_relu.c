/* Leaky ReLU: gradients, masks, special values, slopes out of bounds, and networks with it under every method: its
 * output is not zero outside of its mask, and must not be taken for a ReLU's. */
#include "gradient.h"

#include <division/graph.h>

static const dv_leaky_relu_options fifth = {.slope = 0.2f};

static layer_case case_of(dv_map map) {
    return (layer_case){.kind = &dv_leaky_relu, .options = &fifth, .input_count = 1, .inputs = {map}};
}

static void passes_all_checks(void **state) {
    (void)state;
    static const dv_map maps[] = {
        {DV_F32, DV_NHWC, 5, 17, 0, {0}},      {DV_F32, DV_NHWC, 2, 1, 1, {7}},     {DV_F32, DV_NHWC, 3, 3, 2, {5, 4}},
        {DV_F32, DV_NHWC, 2, 3, 3, {2, 3, 5}}, {DV_F32, DV_NHWC, 2, 64, 2, {2, 3}},
    };
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) {
        layer_case tested = case_of(maps[i]);
        check_layer(&tested);
    }
}

static void passes_on_large_shapes(void **state) {
    (void)state;
    static const dv_map maps[] = {{DV_F32, DV_NHWC, 3, 300, 2, {9, 7}},
                                  {DV_F32, DV_NHWC, 1, 17, 2, {31, 33}},
                                  {DV_F32, DV_NHWC, 70, 3, 1, {100}}};
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) {
        layer_case tested = case_of(maps[i]);
        check_layer_modes(&tested);
    }
}

/* NaN stays, so that someone notices; zeros keep their sign; the smallest number times a slope is zero. */
static void special_values(void **state) {
    (void)state;
    static const float values[] = {NAN, -NAN, INFINITY, -INFINITY, -0.0f, 0.0f, 1e-45f, -1e-45f};
    dv_map map = {DV_F32, DV_NHWC, 1, 8, 0, {0}};
    dv_layer layer = {.kind = &dv_leaky_relu, .name = "tested", .options = &fifth, .input_count = 1, .inputs = &map};
    assert_ok(dv_leaky_relu.infer(&layer, &error));
    dv_isa before = dv_isa_current();
    for (int isa = 0; isa < DV_ISA_COUNT; isa++) {
        float output[8];
        uint8_t mask[64];
        if (!dv_isa_available((dv_isa)isa))
            continue;
        dv_isa_force((dv_isa)isa);
        dv_forward call = {
            .images = 1, .inputs = (const void *[]){values}, .output = output, .output_mask = mask, .training = true};
        assert_ok(dv_leaky_relu.forward(&layer, &call, &error));
        assert_true(isnan(output[0]) && isnan(output[1]));
        assert_true(output[2] == INFINITY && output[3] == -INFINITY && output[6] > 0);
        assert_int_equal(dv_float_bits(output[4]), 0x80000000);
        assert_int_equal(dv_float_bits(output[5]), 0);
        assert_int_equal(dv_float_bits(output[7]), 0x80000000);
        assert_int_equal(mask[0], 1 << 2 | 1 << 6);
    }
    dv_isa_force(before);
}

/* Of a map with room for more images, those that are there and no others. */
static void images_that_are_there(void **state) {
    (void)state;
    float values[] = {-1, 2, -3, 4};
    float output[] = {9, 9, 9, 9}, gradient[] = {9, 9, 9, 9};
    uint8_t mask[128];
    dv_map map = {DV_F32, DV_NHWC, 2, 2, 0, {0}};
    dv_layer layer = {.kind = &dv_leaky_relu, .name = "tested", .options = &fifth, .input_count = 1, .inputs = &map};
    assert_ok(dv_leaky_relu.infer(&layer, &error));
    dv_forward forward = {
        .images = 1, .inputs = (const void *[]){values}, .output = output, .output_mask = mask, .training = true};
    assert_ok(dv_leaky_relu.forward(&layer, &forward, &error));
    assert_memory_equal(output, ((float[]){-1 * 0.2f, 2, 9, 9}), sizeof output);
    dv_kept kept = {.map = map, .mask = mask, .mask_access = &dv_keep_mask.access, .mask_in = &kept};
    dv_backward backward = {.images = 1,
                            .diff_output = values,
                            .diff_inputs = (void *[]){gradient},
                            .accumulate = (bool[]){false},
                            .output = &kept};
    assert_ok(dv_leaky_relu.backward(&layer, &backward, &error));
    assert_memory_equal(gradient, ((float[]){-1 * 0.2f, 2, 9, 9}), sizeof gradient);
}

static void refuses(void **state) {
    (void)state;
    static const struct {
        float slope;
        const char *words;
    } bad[] = {
        {0, "tested (leaky relu): slope is 0: it must be above 0 and below 1"},
        {1, "slope is 1: it must be above 0 and below 1"},
        {-0.1f, "slope is -0.1: it must be above 0 and below 1"},
        {INFINITY, "slope is inf: it must be above 0 and below 1"},
        {NAN, "it must be above 0 and below 1"},
    };
    const dv_map map = {DV_F32, DV_NHWC, 1, 8, 0, {0}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        layer_case refused = case_of(map);
        refused.options = &(dv_leaky_relu_options){.slope = bad[i].slope};
        check_refused(&refused, DV_ERROR_OPTION, bad[i].words);
    }
    layer_case two = case_of(map);
    two.input_count = 2;
    two.inputs[1] = map;
    check_refused(&two, DV_ERROR_ARGUMENT, "2 inputs: it takes 1");
    layer_case none = case_of(map);
    none.options = NULL;
    check_refused(&none, DV_ERROR_ARGUMENT, "options are missing");
}

/* ---- networks -------------------------------------------------------------------------------- */

/* Behind a batch norm, which must not take it over, behind a convolution, and behind a sum. */
static dv_graph *network(void) {
    const dv_convolution_options conv = {.channels = 16, .window = dv_window_square(3, 1, 1), .groups = 1};
    dv_graph *graph;
    assert_ok(dv_graph_new(DV_F32, 4, &graph, &error));
    dv_value x = dv_graph_convolution(graph, "conv1", dv_graph_input(graph, 3, 2, (const size_t[]){12, 12}), &conv);
    dv_value first = dv_graph_leaky_relu(graph, "leaky1", dv_graph_batch_norm(graph, "norm1", x), 0.3f);
    x = dv_graph_leaky_relu(graph, "leaky2", dv_graph_convolution(graph, "conv2", first, &conv), 0.3f);
    x = dv_graph_batch_norm(graph, "norm3", dv_graph_convolution(graph, "conv3", x, &conv));
    x = dv_graph_leaky_relu(graph, "leaky3", dv_graph_sum(graph, "sum", x, first), 0.3f);
    x = dv_graph_global_average_pooling(graph, "pool", dv_graph_convolution(graph, "conv4", x, &conv));
    x = dv_graph_linear(graph, "fc", x, &(dv_linear_options){.channels = 10, .bias = true});
    assert_ok(dv_graph_finish(graph, x, &error));
    return graph;
}

/* A run after a step, and its loss. */
static dv_run *run_after_step(const char *method, double *loss) {
    dv_graph *graph = network();
    dv_plan_options options = dv_plan_options_default();
    dv_plan *plan;
    dv_run *run;
    dv_step_result result;
    options.method = method;
    assert_ok(dv_plan_new(graph, &options, &plan, &error));
    assert_ok(dv_run_new(plan, 1, &run, &error));
    size_t count = dv_map_elements(dv_run_input_map(run));
    for (size_t i = 0; i < count; i++)
        ((float *)dv_run_input(run))[i] = bench_number(7, i, count);
    for (int32_t i = 0; i < 4; i++)
        dv_run_labels(run)[i] = i;
    assert_ok(dv_run_train(run, &(dv_step){.batch = 0}, &result, &error));
    *loss = result.loss;
    dv_plan_free(plan);
    dv_graph_free(graph);
    return run;
}

/* Losses are the same; gradients are within `tolerance` of their norm, or with 0 the same. */
static void compare_with_exact(const char *method, double tolerance) {
    double losses[2];
    dv_run *exact = run_after_step("none", &losses[0]), *other = run_after_step(method, &losses[1]);
    const dv_run_parameter *p, *q;
    assert_memory_equal(&losses[0], &losses[1], sizeof losses[0]);
    for (size_t k = 0; (p = dv_run_parameter_at(exact, k)) && (q = dv_run_parameter_at(other, k)); k++) {
        double distance = 0;
        for (size_t i = 0; p->gradient && i < p->count; i++)
            distance += pow((double)q->gradient[i] - (double)p->gradient[i], 2);
        if (p->gradient && !(sqrt(distance) <= tolerance * bench_norm(p->gradient, p->count)))
            fail_msg("%s: the gradient of %s differs by %g of a norm of %g", method, p->name, sqrt(distance),
                     bench_norm(p->gradient, p->count));
    }
    dv_run_free(exact);
    dv_run_free(other);
}

/* With 8 bits noise is small: but what a ReLU's mask would clear is a third of the numbers. */
static void networks_train_with_every_method(void **state) {
    (void)state;
    compare_with_exact("checkpoint", 0);
    compare_with_exact("checkpoint:segments=1000", 0);
    compare_with_exact("division:bits=8", 0.05);
    compare_with_exact("division:bits=8,recompute=norms", 0.05);
}

static const dv_plan_row *row_of(const dv_plan *plan, const char *layer) {
    size_t i = 0;
    while (dv_plan_row_at(plan, i) && strcmp(dv_plan_row_at(plan, i)->layer, layer) != 0)
        i++;
    return dv_plan_row_at(plan, i);
}

/* One bit beside the packed form where backward takes no numbers of it that tell; no layer takes it over. */
static void its_mask_is_kept(void **state) {
    (void)state;
    dv_graph *graph = network();
    dv_plan_options options = dv_plan_options_default();
    dv_plan *plan;
    assert_ok(dv_plan_new(graph, &options, &plan, &error));
    for (int i = 0; i < 3; i++) {
        const dv_plan_row *row = row_of(plan, (const char *[]){"leaky1", "leaky2", "leaky3"}[i]);
        assert_non_null(row);
        assert_string_equal(row->kind, "leaky relu");
        assert_string_equal(row->keeper, "packed + mask");
    }
    dv_plan_free(plan);
    dv_graph_free(graph);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passes_all_checks), cmocka_unit_test(passes_on_large_shapes),
        cmocka_unit_test(special_values),    cmocka_unit_test(images_that_are_there),
        cmocka_unit_test(refuses),           cmocka_unit_test(networks_train_with_every_method),
        cmocka_unit_test(its_mask_is_kept),
    };
    return cmocka_run_group_tests_name("leaky_relu", tests, NULL, NULL);
}
