/* Runs: several on one graph that know nothing of each other, and gradients of values that a layer takes twice. */
#include "check.h"

#include <division/checkpoint.h>
#include <division/graph.h>
#include <division/models.h>
#include <pthread.h>

/* ---- runs and their batches ------------------------------------------------------------------ */

static void fill_batch(dv_run *run, uint32_t number) {
    const dv_map *map = dv_run_input_map(run);
    float *images = dv_run_input(run);
    for (size_t i = 0; i < dv_map_elements(map); i++)
        images[i] = (float)((i * 2654435761u + number * 40503u) >> 16 & 255) / 128 - 1;
    for (size_t n = 0; n < map->images; n++)
        dv_run_labels(run)[n] = (int32_t)((n + number) % 10);
}

/* One step of gradient descent. */
static double train(dv_run *run, uint32_t number) {
    dv_step_result result;
    const dv_run_parameter *p;
    fill_batch(run, number);
    assert_ok(dv_run_train(run, &(dv_step){.batch = number}, &result, &error));
    for (size_t i = 0; (p = dv_run_parameter_at(run, i)); i++)
        for (size_t j = 0; p->gradient && j < p->count; j++) {
            p->data[j] -= 0.05f * p->gradient[j];
            p->gradient[j] = 0;
        }
    return result.loss;
}

static dv_plan *plan_new(dv_graph *graph, const char *method) {
    dv_plan_options options = dv_plan_options_default();
    dv_plan *plan;
    options.method = method;
    assert_ok(dv_plan_new(graph, &options, &plan, &error));
    return plan;
}

static dv_run *run_new(dv_plan *plan) {
    dv_run *run;
    assert_ok(dv_run_new(plan, 1, &run, &error));
    return run;
}

/* ---- several runs ---------------------------------------------------------------------------- */

enum { STEPS = 4 };

/* The losses of a run that is alone on its graph. */
static void train_alone(const char *method, double losses[STEPS]) {
    dv_graph *graph;
    assert_ok(dv_model_build("resnet20", DV_F32, 4, 10, 32, &graph, &error));
    dv_plan *plan = plan_new(graph, method);
    dv_run *run = run_new(plan);
    for (uint32_t i = 0; i < STEPS; i++)
        losses[i] = train(run, i);
    dv_run_free(run);
    dv_plan_free(plan);
    dv_graph_free(graph);
}

/* Two methods side by side, in turns: each trains as if it were alone, also when the other is gone. */
static void runs_on_one_graph_are_independent(void **state) {
    (void)state;
    static const char *const methods[] = {"none", "division"};
    double alone[2][STEPS];
    dv_graph *graph;
    dv_plan *plans[2];
    dv_run *runs[2];
    assert_ok(dv_model_build("resnet20", DV_F32, 4, 10, 32, &graph, &error));
    for (int m = 0; m < 2; m++) {
        train_alone(methods[m], alone[m]);
        plans[m] = plan_new(graph, methods[m]);
        runs[m] = run_new(plans[m]);
    }
    for (uint32_t i = 0; i < STEPS / 2; i++)
        for (int m = 0; m < 2; m++)
            assert_true(train(runs[m], i) == alone[m][i]);
    dv_run_free(runs[0]);
    for (uint32_t i = STEPS / 2; i < STEPS; i++)
        assert_true(train(runs[1], i) == alone[1][i]);
    dv_run_free(runs[1]);
    dv_plan_free(plans[0]);
    dv_plan_free(plans[1]);
    dv_graph_free(graph);
}

/* Two runs of one plan have parameters of their own. */
static void runs_of_one_plan_share_nothing(void **state) {
    (void)state;
    dv_graph *graph;
    assert_ok(dv_model_build("resnet20", DV_F32, 4, 10, 32, &graph, &error));
    dv_plan *plan = plan_new(graph, "none");
    dv_run *trained = run_new(plan), *fresh = run_new(plan);
    double first = train(trained, 0);
    assert_true(train(trained, 0) != first);
    assert_true(train(fresh, 0) == first);
    dv_run_free(trained);
    dv_run_free(fresh);
    dv_plan_free(plan);
    dv_graph_free(graph);
}

/* ---- from several threads -------------------------------------------------------------------- */

typedef struct worker {
    dv_run *run;
    double losses[STEPS];
} worker;

static void *work(void *argument) {
    worker *w = argument;
    for (uint32_t i = 0; i < STEPS; i++)
        w->losses[i] = train(w->run, i);
    return NULL;
}

/* Two methods, each in a thread of its own, at once. */
static void runs_train_in_threads(void **state) {
    (void)state;
    static const char *const methods[] = {"none", "division"};
    double alone[2][STEPS];
    dv_graph *graph;
    worker workers[2];
    pthread_t threads[2];
    assert_ok(dv_model_build("resnet20", DV_F32, 4, 10, 32, &graph, &error));
    for (int m = 0; m < 2; m++) {
        train_alone(methods[m], alone[m]);
        dv_plan *plan = plan_new(graph, methods[m]);
        workers[m].run = run_new(plan);
        dv_plan_free(plan);
    }
    dv_graph_free(graph);
    for (int m = 0; m < 2; m++)
        assert_int_equal(pthread_create(&threads[m], NULL, work, &workers[m]), 0);
    for (int m = 0; m < 2; m++) {
        assert_int_equal(pthread_join(threads[m], NULL), 0);
        assert_memory_equal(workers[m].losses, alone[m], sizeof alone[m]);
        dv_run_free(workers[m].run);
    }
}

/* ---- a step that fails ----------------------------------------------------------------------- */

static void a_failed_step_spoils_the_run(void **state) {
    (void)state;
    dv_graph *graph;
    dv_step_result result;
    assert_ok(dv_model_build("resnet20", DV_F32, 4, 10, 32, &graph, &error));
    dv_plan *plan = plan_new(graph, "division");
    dv_run *run = run_new(plan);
    (void)train(run, 0);
    assert_false(dv_run_failed(run));
    fill_batch(run, 1);
    dv_run_labels(run)[2] = 77;
    assert_fails(dv_run_train(run, &(dv_step){.batch = 1}, &result, &error), DV_ERROR_ARGUMENT, "77");
    assert_true(dv_run_failed(run));
    fill_batch(run, 1);
    assert_fails(dv_run_train(run, &(dv_step){.batch = 1}, &result, &error), DV_ERROR_ARGUMENT, "failed half-way");
    assert_ok(dv_run_evaluate(run, &result, &error));
    const dv_checkpoint_content content = {.run = run};
    assert_fails(dv_checkpoint_write("spoilt.safetensors", &content, &error), DV_ERROR_ARGUMENT, "failed half-way");
    dv_run_free(run);
    dv_plan_free(plan);
    dv_graph_free(graph);
}

/* ---- a value that is taken twice ------------------------------------------------------------- */

/* convolution -> pooling -> linear, with x + x behind the convolution if `twice`. */
static dv_graph *small_graph(int twice) {
    dv_graph *graph;
    dv_convolution_options convolution = {.channels = 8, .window = dv_window_square(3, 1, 1), .groups = 1};
    assert_ok(dv_graph_new(DV_F32, 2, &graph, &error));
    dv_value x = dv_graph_input(graph, 3, 2, (size_t[]){7, 5});
    x = dv_graph_convolution(graph, "conv", x, &convolution);
    if (twice)
        x = dv_graph_sum(graph, "sum", x, x);
    x = dv_graph_global_average_pooling(graph, "pool", x);
    x = dv_graph_linear(graph, "fc", x, &(dv_linear_options){.channels = 10});
    assert_ok(dv_graph_finish(graph, x, &error));
    return graph;
}

enum { CONV, FC }; /* the networks' parameters */

/* x + x before linear weights is x before twice the weights, to the bit. */
static void a_value_is_added_to_itself(void **state) {
    (void)state;
    dv_graph *graphs[] = {small_graph(0), small_graph(1)};
    dv_plan *plans[] = {plan_new(graphs[0], "none"), plan_new(graphs[1], "none")};
    dv_run *runs[] = {run_new(plans[0]), run_new(plans[1])};
    const dv_run_parameter *once = dv_run_parameter_at(runs[0], CONV), *twice = dv_run_parameter_at(runs[1], CONV);
    const dv_run_parameter *fc = dv_run_parameter_at(runs[0], FC);
    for (size_t j = 0; j < fc->count; j++)
        fc->data[j] *= 2;
    for (int r = 0; r < 2; r++) {
        dv_step_result result;
        fill_batch(runs[r], 3);
        assert_ok(dv_run_train(runs[r], &(dv_step){.batch = 0}, &result, &error));
    }
    assert_memory_equal(once->gradient, twice->gradient, once->count * sizeof(float));
    for (int r = 0; r < 2; r++) {
        dv_run_free(runs[r]);
        dv_plan_free(plans[r]);
        dv_graph_free(graphs[r]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_on_one_graph_are_independent),
        cmocka_unit_test(runs_of_one_plan_share_nothing),
        cmocka_unit_test(runs_train_in_threads),
        cmocka_unit_test(a_failed_step_spoils_the_run),
        cmocka_unit_test(a_value_is_added_to_itself),
    };
    return cmocka_run_group_tests_name("run", tests, NULL, NULL);
}
