/* Layers that run by slices for the norm behind them, and gradients that are made by slices, change no bit of a step,
 * and take less memory. */
#include "check.h"
#include "graph/plan.h"

#include <division/graph.h>
#include <math.h>
#include <string.h>

enum { BATCH = 6, SIDE = 12, CHANNELS = 16, NARROW = 8, BLOCKS = 3, SLICE_BYTES = 20000 };

static dv_value convolution(dv_graph *graph, const char *name, dv_value x, size_t channels, size_t kernel) {
    const dv_convolution_options options = {
        .channels = channels, .window = dv_window_square(kernel, 1, kernel / 2), .groups = 1};
    return dv_graph_convolution(graph, name, x, &options);
}

static dv_value norm_relu(dv_graph *graph, const char *name, dv_value x) {
    return dv_graph_relu(graph, name, dv_graph_batch_norm(graph, name, x));
}

/* relu(norm(1 x 1 convolution(relu(norm(3 x 3 convolution(x))))) + x), some times. */
static dv_graph *bottlenecks(dv_type type) {
    static const char *const names[BLOCKS][4] = {
        {"a1", "a2", "a3", "a4"}, {"b1", "b2", "b3", "b4"}, {"c1", "c2", "c3", "c4"}};
    dv_graph *graph;
    assert_ok(dv_graph_new(type, BATCH, &graph, &error));
    dv_value x = dv_graph_input(graph, 3, 2, (const size_t[]){SIDE, SIDE});
    x = norm_relu(graph, "norm0", convolution(graph, "conv0", x, CHANNELS, 3));
    for (size_t i = 0; i < BLOCKS; i++) {
        dv_value y = norm_relu(graph, names[i][1], convolution(graph, names[i][0], x, NARROW, 3));
        y = dv_graph_batch_norm(graph, names[i][3], convolution(graph, names[i][2], y, CHANNELS, 1));
        x = dv_graph_relu(graph, names[i][3], dv_graph_sum(graph, names[i][3], y, x));
    }
    x = dv_graph_global_average_pooling(graph, "pool", x);
    const dv_linear_options options = {.channels = 10, .bias = true};
    assert_ok(dv_graph_finish(graph, dv_graph_linear(graph, "fc", x, &options), &error));
    return graph;
}

typedef struct trained {
    dv_plan *plan;
    dv_run *run;
    dv_step_result result;
} trained;

/* Two steps, the second with fewer images than the batch. */
static trained steps_of(dv_graph *graph, const char *method, dv_slicing slicing) {
    trained t = {0};
    dv_plan_options options = dv_plan_options_default();
    options.method = method;
    dv_slicing_force(slicing);
    assert_ok(dv_plan_new(graph, &options, &t.plan, &error));
    dv_slicing_force(DV_SLICING_AS_EVER);
    assert_ok(dv_run_new(t.plan, 1, &t.run, &error));
    for (size_t step = 0; step < 2; step++) {
        const dv_map *map = dv_run_input_map(t.run);
        assert_ok(dv_run_set_images(t.run, BATCH - step, &error));
        for (size_t i = 0; i < dv_map_elements(map); i++)
            if (map->type == DV_F32)
                ((float *)dv_run_input(t.run))[i] = sinf(0.37f * (float)i) + 0.3f * cosf(0.011f * (float)i);
            else
                ((uint16_t *)dv_run_input(t.run))[i] = (uint16_t)(0x3f00 + ((uint32_t)i * 2654435761u >> 24));
        for (size_t n = 0; n < BATCH; n++)
            dv_run_labels(t.run)[n] = (int32_t)n;
        assert_ok(dv_run_train(t.run, &(dv_step){.batch = step, .more = step == 0}, &t.result, &error));
    }
    return t;
}

static void trained_free(trained t) {
    dv_run_free(t.run);
    dv_plan_free(t.plan);
}

static void assert_same_gradients(const dv_run *a, const dv_run *b) {
    const dv_run_parameter *p, *q;
    for (size_t i = 0; (p = dv_run_parameter_at(a, i)) && (q = dv_run_parameter_at(b, i)); i++)
        if (p->gradient && memcmp(p->gradient, q->gradient, p->count * sizeof *p->gradient) != 0)
            fail_msg("the gradient of %s differs", p->name);
}

static size_t sliced_diffs(const dv_plan *plan) {
    size_t count = 0;
    for (size_t i = 0; i < plan->graph->layer_count; i++)
        count += plan->layers[i].sliced_by >= 0;
    return count;
}

static size_t run_twice(const dv_plan *plan) {
    size_t count = 0;
    for (size_t i = 0; i < plan->graph->layer_count; i++)
        count += plan->layers[i].run_by >= 0;
    return count;
}

/* Methods that keep their own norms' inputs as `lean` does run layers twice; the gradients of all are made by slices.
 */
static void slices_change_no_bit(void **state) {
    (void)state;
    static const char *const methods[] = {"none", "division", "lean", "checkpoint", "lean:levels=15"};
    dv_slice_bytes_force(SLICE_BYTES);
    for (size_t way = 0; way < 2 * sizeof methods / sizeof *methods; way++) {
        const char *method = methods[way / 2];
        dv_graph *graph = bottlenecks(way % 2 ? DV_BF16 : DV_F32);
        trained whole = steps_of(graph, method, DV_SLICING_NEVER), sliced = steps_of(graph, method, DV_SLICING_ALWAYS);
        print_message("%s, %s: %zu gradients by slices, %zu layers run twice\n", method, way % 2 ? "bf16" : "f32",
                      sliced_diffs(sliced.plan), run_twice(sliced.plan));
        assert_true(whole.result.loss == sliced.result.loss);
        assert_same_gradients(whole.run, sliced.run);
        assert_int_equal(sliced_diffs(whole.plan) + run_twice(whole.plan), 0);
        assert_int_equal(sliced_diffs(sliced.plan), BLOCKS);
        assert_int_equal(run_twice(sliced.plan), strncmp(method, "lean", 4) == 0 ? BLOCKS : 0);
        trained_free(whole);
        trained_free(sliced);
        dv_graph_free(graph);
    }
    dv_slice_bytes_force(0);
}

/* With slices that are small beside the maps, as those of large networks are. */
static void slices_save_memory(void **state) {
    (void)state;
    dv_slice_bytes_force(2000);
    dv_graph *graph = bottlenecks(DV_F32);
    size_t planned[3];
    for (int wish = DV_SLICING_AS_EVER; wish <= DV_SLICING_ALWAYS; wish++) {
        trained t = steps_of(graph, "lean", (dv_slicing)wish);
        planned[wish] = dv_plan_totals(t.plan).planned;
        trained_free(t);
    }
    print_message("planned: %zu bytes, without slices %zu, with all %zu\n", planned[0], planned[1], planned[2]);
    assert_true(planned[DV_SLICING_AS_EVER] < planned[DV_SLICING_NEVER]);
    assert_true(planned[DV_SLICING_AS_EVER] <= planned[DV_SLICING_ALWAYS]);
    dv_graph_free(graph);
    dv_slice_bytes_force(0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(slices_change_no_bit), cmocka_unit_test(slices_save_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
