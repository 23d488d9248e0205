/* Values that are not kept but recomputed: concatenations always, what batch norms make if the method says so. A small
 * dense block, a chain of residual blocks and a graph of oddities have the gradients that they should, and what is
 * recomputed takes no bytes. */
#include "check.h"

#include <division/graph.h>
#include <math.h>

enum { BATCH = 6, SIDE = 12, GROWTH = 8, BLOCKS = 6 };

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

static dv_graph *begin(dv_type type, dv_value *images) {
    dv_graph *graph;
    assert_ok(dv_graph_new(type, BATCH, &graph, &error));
    *images = dv_graph_input(graph, GROWTH, 2, (const size_t[]){SIDE, SIDE});
    return graph;
}

/* A convolution of `x`, so that its numbers are needed, and a classifier. */
static dv_graph *end(dv_graph *graph, dv_value x) {
    x = dv_graph_global_average_pooling(graph, "pool", convolution(graph, "last", x, 1));
    const dv_linear_options options = {.channels = 10, .bias = true};
    assert_ok(dv_graph_finish(graph, dv_graph_linear(graph, "fc", x, &options), &error));
    return graph;
}

/* relu(norm(conv(x)) + shortcut) */
static dv_value block(dv_graph *graph, const char *conv, const char *norm, dv_value x, dv_value shortcut) {
    dv_value y = dv_graph_batch_norm(graph, norm, convolution(graph, conv, x, 3));
    return dv_graph_relu(graph, norm, dv_graph_sum(graph, norm, y, shortcut));
}

/* Blocks that each add to what the one before made, so that the last is made of all. */
static dv_graph *residual_graph(dv_type type) {
    static const char *const names[BLOCKS][2] = {{"conv1", "norm1"}, {"conv2", "norm2"}, {"conv3", "norm3"},
                                                 {"conv4", "norm4"}, {"conv5", "norm5"}, {"conv6", "norm6"}};
    dv_value images;
    dv_graph *graph = begin(type, &images);
    dv_value x = norm_relu(graph, "norm0", convolution(graph, "conv0", images, 3));
    for (size_t i = 0; i < BLOCKS; i++)
        x = block(graph, names[i][0], names[i][1], x, x);
    return end(graph, x);
}

/* What a network need not do: batch norms behind batch norms, that add what they normalise, or what comes of it; sums
 * of the images and of a pooled value; concatenations of what batch norms make, normalised and added to itself. */
static dv_graph *odd_graph(dv_type type) {
    dv_value images;
    dv_graph *graph = begin(type, &images);
    dv_value a = block(graph, "conv1", "norm1", images, images);
    dv_value b = dv_graph_sum(graph, "sum2", dv_graph_batch_norm(graph, "norm2", a), a);
    dv_value c = block(graph, "conv3", "norm3", b, a);
    dv_value d = dv_graph_sum(graph, "sum4", dv_graph_batch_norm(graph, "norm4", a), c);
    const dv_pooling_options pooling = {.window = dv_window_square(3, 1, 1)};
    dv_value e = block(graph, "conv5", "norm5", d, dv_graph_max_pooling(graph, "pool5", d, &pooling));
    dv_value f = dv_graph_concatenation(graph, "cat6", (const dv_value[]){c, norm_relu(graph, "norm6", e)}, 2);
    return end(graph, dv_graph_sum(graph, "sum7", dv_graph_batch_norm(graph, "norm7", f), f));
}

typedef dv_graph *make_graph(dv_type type);

typedef struct trained {
    dv_graph *graph;
    dv_plan *plan;
    dv_run *run;
} trained;

/* One step with `method`; gradients are left in the run. */
static trained step_of(make_graph *make, const char *method, dv_type type) {
    trained t = {.graph = make(type)};
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
    assert_ok(dv_run_train(t.run, &(dv_step){.batch = 0}, &result, &error));
    return t;
}

static void trained_free(trained t) {
    dv_run_free(t.run);
    dv_plan_free(t.plan);
    dv_graph_free(t.graph);
}

/* Distance between gradients, in units of their tensor's norm. */
typedef struct distances {
    double largest, mean; /* over the tensors */
} distances;

static distances compare(const trained *a, const trained *b) {
    const dv_run_parameter *p, *q;
    distances d = {0};
    size_t tensors = 0;
    for (size_t i = 0; (p = dv_run_parameter_at(a->run, i)) && (q = dv_run_parameter_at(b->run, i)); i++) {
        double square = 0, norm = 0;
        for (size_t j = 0; p->gradient && j < p->count; j++) {
            double difference = (double)p->gradient[j] - (double)q->gradient[j];
            square += difference * difference;
            norm += (double)p->gradient[j] * (double)p->gradient[j];
        }
        if (norm > 0) {
            d.largest = fmax(d.largest, sqrt(square / norm));
            d.mean += sqrt(square / norm);
            tensors++;
        }
    }
    d.mean /= (double)tensors;
    return d;
}

/* With 8 bits there is little noise: a value made of the wrong ones, or at the wrong time, would be seen. In bf16
 * the gradient of norm5's bias nearly cancels, and its distance depends on the draw: 0.05 to 0.12 in eight of them. */
static void gradients_are_those_of_exact_values(void **state) {
    (void)state;
    static make_graph *const makers[] = {dense_graph, residual_graph, odd_graph};
    static const char *const names[] = {"dense", "residual", "odd"};
    static const char *const methods[] = {"division:block=4,bits=8", "division:block=4,bits=8,recompute=norms"};
    for (int way = 0; way < 12; way++) {
        int graph = way / 4;
        const char *method = methods[way & 1];
        dv_type type = way & 2 ? DV_BF16 : DV_F32;
        trained exact = step_of(makers[graph], "none", type), packed = step_of(makers[graph], method, type);
        distances d = compare(&exact, &packed);
        print_message("%s, %s, %s: distance of a gradient at most %.4f, on average %.4f of its norm\n", names[graph],
                      method, dv_type_name(type), d.largest, d.mean);
        assert_true(d.mean > 0 && d.mean < 0.03 && d.largest < (type == DV_BF16 ? 0.3 : 0.08));
        trained_free(exact);
        trained_free(packed);
    }
}

/* The keeper of a layer's output, as the plan tells it. */
static const dv_plan_row *row_of(const trained *t, const char *layer) {
    const dv_plan_row *row;
    for (size_t i = 0; (row = dv_plan_row_at(t->plan, i)) && strcmp(row->layer, layer) != 0; i++)
        ;
    assert_non_null(row);
    return row;
}

static void concatenations_take_no_bytes(void **state) {
    (void)state;
    trained t = step_of(dense_graph, "division", DV_F32);
    static const char *const names[] = {"cat2", "cat3"};
    for (int i = 0; i < 2; i++) {
        assert_string_equal(row_of(&t, names[i])->keeper, "recomputed");
        assert_int_equal(row_of(&t, names[i])->kept_bytes, 0);
    }
    assert_string_equal(row_of(&t, "norm2")->keeper, "packed + mask");
    assert_true(row_of(&t, "conv1")->bits_per_element < 3.5);
    trained_free(t);
}

/* Of what a batch norm makes, the mask stays; what it is made from has twice as many bits as else, through
 * concatenations too. norm3 goes to a pooling that needs nothing. */
static void norms_keep_masks(void **state) {
    (void)state;
    trained t = step_of(dense_graph, "division:recompute=norms", DV_F32);
    static const char *const made[] = {"norm1", "norm2"}, *const sources[] = {"conv0", "conv1"};
    for (int i = 0; i < 2; i++) {
        assert_string_equal(row_of(&t, made[i])->keeper, "recomputed + mask");
        assert_in_range(row_of(&t, made[i])->kept_bytes, BATCH * SIDE * SIDE * GROWTH / 8, BATCH * 512);
        assert_true(row_of(&t, sources[i])->bits_per_element > 4);
    }
    assert_string_equal(row_of(&t, "norm3")->keeper, "mask");
    assert_true(row_of(&t, "conv2")->bits_per_element < 3.5);
    trained_free(t);
}

/* norm0 is made of one packed value, norm1 of two; what would be made of a fifth is packed, and the count begins again.
 */
static void chains_end(void **state) {
    (void)state;
    trained t = step_of(residual_graph, "division:recompute=norms", DV_F32);
    static const char *const names[] = {"norm0", "norm1", "norm2", "norm3", "norm4", "norm5", "norm6"};
    for (int i = 0; i < 7; i++)
        assert_string_equal(row_of(&t, names[i])->keeper, i == 4 ? "packed + mask" : "recomputed + mask");
    trained_free(t);
}

/* Fewer bytes, and less noise. */
static void less_noise_in_fewer_bytes(void **state) {
    (void)state;
    static make_graph *const makers[] = {dense_graph, residual_graph};
    static const char *const methods[] = {"division:block=4", "division:block=4,recompute=norms"};
    for (int g = 0; g < 2; g++) {
        trained exact = step_of(makers[g], "none", DV_F32);
        double noise[2];
        size_t bytes[2];
        for (int m = 0; m < 2; m++) {
            trained packed = step_of(makers[g], methods[m], DV_F32);
            noise[m] = compare(&exact, &packed).mean;
            bytes[m] = dv_plan_totals(packed.plan).activations;
            trained_free(packed);
        }
        print_message("noise %.3f in %zu bytes, %.3f in %zu\n", noise[0], bytes[0], noise[1], bytes[1]);
        assert_true(noise[1] < 0.6 * noise[0] && bytes[1] < bytes[0]);
        trained_free(exact);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_those_of_exact_values),
        cmocka_unit_test(concatenations_take_no_bytes),
        cmocka_unit_test(norms_keep_masks),
        cmocka_unit_test(chains_end),
        cmocka_unit_test(less_noise_in_fewer_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
