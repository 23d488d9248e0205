/* Concatenations that are kept before they are joined: a small dense block has the same gradients as without,
 * and its concatenations take no bytes. */
#include "check.h"

#include <division/graph.h>
#include <math.h>

enum { BATCH = 6, SIDE = 12, GROWTH = 8 };

static dv_value convolution(dv_graph *graph, const char *name, dv_value x, size_t kernel) {
    const dv_convolution_options options = {
        .channels = GROWTH, .window = dv_window_square(kernel, 1, kernel / 2), .groups = 1};
    return dv_graph_convolution(graph, name, x, &options);
}

static dv_value norm_relu(dv_graph *graph, const char *name, dv_value x) {
    return dv_graph_relu(graph, name, dv_graph_batch_norm(graph, name, x));
}

/* Three layers that each take all before them, and a classifier. */
static dv_graph *dense_graph(dv_type type) {
    dv_graph *graph;
    assert_ok(dv_graph_new(type, BATCH, &graph, &error));
    dv_value images = dv_graph_input(graph, 3, 2, (const size_t[]){SIDE, SIDE});
    dv_value made[3] = {convolution(graph, "conv0", images, 3)};
    made[1] = convolution(graph, "conv1", norm_relu(graph, "norm1", made[0]), 3);
    dv_value joined = dv_graph_concatenation(graph, "cat2", made, 2);
    made[2] = convolution(graph, "conv2", norm_relu(graph, "norm2", joined), 1);
    joined = dv_graph_concatenation(graph, "cat3", made, 3);
    dv_value x = dv_graph_global_average_pooling(graph, "pool", norm_relu(graph, "norm3", joined));
    const dv_linear_options options = {.channels = 10, .bias = true};
    assert_ok(dv_graph_finish(graph, dv_graph_linear(graph, "fc", x, &options), &error));
    return graph;
}

typedef struct trained {
    dv_graph *graph;
    dv_plan *plan;
    dv_run *run;
} trained;

/* One step with `method`; gradients are left in the run. */
static trained step_of(const char *method, dv_type type) {
    trained t = {.graph = dense_graph(type)};
    dv_plan_options options = dv_plan_options_default();
    options.method = method;
    assert_ok(dv_plan_new(t.graph, &options, &t.plan, &error));
    assert_ok(dv_run_new(t.plan, 1, &t.run, &error));
    const dv_map *map = dv_run_input_map(t.run);
    for (size_t i = 0; i < dv_map_elements(map); i++) {
        float value = sinf(0.37f * (float)i) + 0.3f * cosf(0.011f * (float)i);
        if (type == DV_F32)
            ((float *)dv_run_input(t.run))[i] = value;
        else
            ((uint16_t *)dv_run_input(t.run))[i] = (uint16_t)(0x3f00 + ((uint32_t)i * 2654435761u >> 24));
    }
    for (size_t n = 0; n < BATCH; n++)
        dv_run_labels(t.run)[n] = (int32_t)n;
    dv_step_result result;
    assert_ok(dv_run_train(t.run, 0, 0, 1, &result, &error));
    return t;
}

static void trained_free(trained t) {
    dv_run_free(t.run);
    dv_plan_free(t.plan);
    dv_graph_free(t.graph);
}

/* The largest distance between gradients, in units of their tensor's norm. */
static double distance(const trained *a, const trained *b) {
    const dv_run_parameter *p, *q;
    double largest = 0;
    for (size_t i = 0; (p = dv_run_parameter_at(a->run, i)) && (q = dv_run_parameter_at(b->run, i)); i++) {
        double square = 0, norm = 0;
        for (size_t j = 0; p->gradient && j < p->count; j++) {
            double d = (double)p->gradient[j] - (double)q->gradient[j];
            square += d * d;
            norm += (double)p->gradient[j] * (double)p->gradient[j];
        }
        if (norm > 0 && sqrt(square / norm) > largest)
            largest = sqrt(square / norm);
    }
    return largest;
}

/* With 8 bits there is little noise: a part in the wrong place, or at the wrong time, would be seen. */
static void gradients_are_those_of_exact_values(void **state) {
    (void)state;
    trained exact = step_of("none", DV_F32), packed = step_of("division:block=4,bits=8", DV_F32);
    double d = distance(&exact, &packed);
    print_message("f32: largest distance of a gradient %.4f of its norm\n", d);
    assert_true(d > 0 && d < 0.03);
    trained_free(exact);
    trained_free(packed);
}

static void gradients_in_bf16_too(void **state) {
    (void)state;
    trained exact = step_of("none", DV_BF16), packed = step_of("division:block=4,bits=8", DV_BF16);
    double d = distance(&exact, &packed);
    print_message("bf16: largest distance of a gradient %.4f of its norm\n", d);
    assert_true(d > 0 && d < 0.1);
    trained_free(exact);
    trained_free(packed);
}

static void concatenations_take_no_bytes(void **state) {
    (void)state;
    trained t = step_of("division", DV_F32);
    size_t found = 0;
    const dv_plan_row *row;
    for (size_t i = 0; (row = dv_plan_row_at(t.plan, i)); i++)
        if (strcmp(row->kind, "concatenation") == 0) {
            assert_string_equal(row->keeper, "joined");
            assert_int_equal(row->kept_bytes, 0);
            found++;
        } else if (strcmp(row->kind, "convolution") == 0) {
            assert_true(row->kept_bytes > 0);
        }
    assert_int_equal(found, 2);
    trained_free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_those_of_exact_values),
        cmocka_unit_test(gradients_in_bf16_too),
        cmocka_unit_test(concatenations_take_no_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
