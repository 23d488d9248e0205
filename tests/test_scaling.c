/* Predictions: bounds that hold for any network, a step that can be worked out by hand, and times that add up. */
#include "check.h"

#include <division/tools/scaling.h>

#include "graph/plan.h"

#include <math.h>

enum { BATCH = 4, CHANNELS = 8, MOST_OPERATIONS = 64 };

static dv_graph *graph;
static double seconds[MOST_OPERATIONS];

/* Two convolutions with a norm between them, and a linear layer. */
static int build(void **state) {
    (void)state;
    dv_convolution_options options = {.channels = CHANNELS, .groups = 1, .window = dv_window_square(3, 1, 1)};
    assert_ok(dv_graph_new(DV_F32, BATCH, &graph, &error));
    dv_value x = dv_graph_input(graph, 3, 2, (size_t[]){8, 8});
    x = dv_graph_convolution(graph, "conv1", x, &options);
    x = dv_graph_batch_norm(graph, "bn1", x);
    x = dv_graph_convolution(graph, "conv2", x, &options);
    x = dv_graph_global_average_pooling(graph, "pool", x);
    x = dv_graph_linear(graph, "fc", x, &(dv_linear_options){.channels = 5, .bias = true});
    assert_ok(dv_graph_finish(graph, x, &error));
    for (size_t i = 0; i < MOST_OPERATIONS; i++)
        seconds[i] = 0.01;
    return 0;
}

static int take_down(void **state) {
    (void)state;
    dv_graph_free(graph);
    return 0;
}

static dv_plan *plan_for(size_t ranks, bool sync_norm) {
    dv_plan_options options = dv_plan_options_default();
    dv_plan *plan;
    options.method = "none";
    options.gradients = DV_GRADIENTS_TRANSIENT;
    options.ranks = ranks;
    options.sync_norm = sync_norm;
    assert_ok(dv_plan_new(graph, &options, &plan, &error));
    return plan;
}

static dv_scaling predict(const dv_plan *many, const dv_plan *alone, size_t ranks, dv_link link) {
    const dv_step_times times = {.plan = alone, .seconds = seconds, .batches = 1};
    dv_scaling found;
    assert_ok(dv_scaling_predict(many, &times, &link, ranks, &found, &error));
    return found;
}

/* Seconds of transfers lie between none and all of a step's; a slower network and more ranks take longer. */
static void test_bounds(void **state) {
    (void)state;
    dv_plan *alone = plan_for(1, false), *many = plan_for(2, false);
    double compute = 0.01 * (double)alone->operation_count, before = 0;
    assert_true(fabs(predict(many, alone, 1, (dv_link){1e9, 0}).step - compute) < 1e-9);
    for (double bandwidth = 1e9; bandwidth > 1e3; bandwidth /= 10) {
        for (size_t ranks = 2; ranks <= 1024; ranks *= 2) {
            dv_scaling found = predict(many, alone, ranks, (dv_link){bandwidth, 50e-6});
            assert_true(fabs(found.compute - compute) < 1e-9);
            assert_true(found.waiting > 0 && found.waiting <= found.transfers + 1e-12);
            assert_true(fabs(found.step - found.compute - found.waiting) < 1e-9);
            assert_true(ranks == 2 || found.step >= before);
            before = found.step;
        }
    }
    dv_plan_free(alone);
    dv_plan_free(many);
}

/* A network that is so slow that nothing else counts: each byte of one bucket is sent twice, but for a fourth of it. */
static void test_slow_network(void **state) {
    (void)state;
    dv_plan *alone = plan_for(1, false), *many = plan_for(4, false);
    assert_int_equal(many->bucket_count, 1);
    double bytes = (double)many->buckets[0].count * sizeof(float) + 2 * CHANNELS * sizeof(float) + 40;
    dv_scaling found = predict(many, alone, 4, (dv_link){1, 0});
    assert_true(fabs(found.transfers / (2 * bytes * 3 / 4) - 1) < 1e-3);
    assert_true(found.waiting / found.transfers > 0.99);
    /* A number of ranks between two powers sends the whole twice more. */
    dv_scaling five = predict(many, alone, 5, (dv_link){1, 0});
    assert_true(fabs((five.transfers - found.transfers) / (2 * bytes) - 1) < 1e-3);
    dv_plan_free(alone);
    dv_plan_free(many);
}

/* Norms that have statistics of all ranks wait for them, in forward and backward. */
static void test_sync_norm(void **state) {
    (void)state;
    dv_plan *alone = plan_for(1, false), *many = plan_for(2, false), *sync = plan_for(2, true);
    dv_link slow = {1e12, 1};
    double more = predict(sync, alone, 2, slow).transfers - predict(many, alone, 2, slow).transfers;
    assert_true(fabs(more - 2) < 0.01); /* two sums of two rounds each, and no running statistics */
    dv_plan_free(alone);
    dv_plan_free(many);
    dv_plan_free(sync);
}

static void test_refusals(void **state) {
    (void)state;
    dv_plan *alone = plan_for(1, false), *many = plan_for(2, false);
    const dv_step_times times = {.plan = alone, .seconds = seconds, .batches = 1};
    dv_scaling found;
    assert_fails(dv_scaling_predict(alone, &times, &(dv_link){1, 0}, 2, &found, &error), DV_ERROR_ARGUMENT,
                 "for several ranks");
    assert_fails(dv_scaling_predict(many, &times, &(dv_link){0, 0}, 2, &found, &error), DV_ERROR_ARGUMENT,
                 "must be above 0");
    assert_fails(dv_scaling_predict(many, &times, &(dv_link){1, 0}, 0, &found, &error), DV_ERROR_ARGUMENT,
                 "must be above 0");
    dv_plan_free(alone);
    dv_plan_free(many);
}

/* What operations are said to take is no more than what the step took, and every operation takes something. */
static void test_times(void **state) {
    (void)state;
    dv_plan *alone = plan_for(1, false);
    double took[MOST_OPERATIONS] = {0}, all = 0;
    dv_step_result result;
    dv_run *run;
    assert_ok(dv_run_new(alone, 1, &run, &error));
    assert_ok(dv_run_time_operations(run, took, &error));
    memset(dv_run_input(run), 0, dv_map_bytes(dv_run_input_map(run)));
    assert_ok(dv_run_train(run, &(dv_step){.rate = 0.1}, &result, &error));
    for (size_t p = 0; p < alone->operation_count; p++) {
        assert_true(took[p] > 0);
        all += took[p];
    }
    assert_ok(dv_run_time_operations(run, NULL, &error));
    memset(dv_run_input(run), 0, dv_map_bytes(dv_run_input_map(run)));
    assert_ok(dv_run_train(run, &(dv_step){.rate = 0.1, .batch = 1, .update = 1}, &result, &error));
    for (size_t p = 0; p < alone->operation_count; p++)
        all -= took[p];
    assert_true(fabs(all) < 1e-12);
    dv_run_free(run);
    dv_plan_free(alone);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounds),   cmocka_unit_test(test_slow_network), cmocka_unit_test(test_sync_norm),
        cmocka_unit_test(test_refusals), cmocka_unit_test(test_times),
    };
    return cmocka_run_group_tests(tests, build, take_down);
}
