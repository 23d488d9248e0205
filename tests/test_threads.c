/* The number of threads: its bounds, and whose it is; and what threads may do with one graph at once. */
#include "check.h"

#include <division/models.h>
#include <division/threads.h>
#include <omp.h>
#include <pthread.h>

static void the_number_is_openmps(void **state) {
    (void)state;
    int before = dv_threads();
    assert_int_equal(before, omp_get_max_threads());
    assert_ok(dv_set_threads(3, &error));
    assert_int_equal(dv_threads(), 3);
    assert_int_equal(omp_get_max_threads(), 3);
    assert_ok(dv_set_threads(0, &error)); /* leaves it */
    assert_int_equal(dv_threads(), 3);
    assert_ok(dv_set_threads(DV_MAX_THREADS, &error));
    assert_ok(dv_set_threads(before, &error));
}

static void numbers_out_of_bounds_change_nothing(void **state) {
    (void)state;
    int before = dv_threads();
    assert_fails(dv_set_threads(-1, &error), DV_ERROR_OPTION, "threads=-1: it can be 1 to 1024");
    assert_fails(dv_set_threads(DV_MAX_THREADS + 1, &error), DV_ERROR_OPTION, "threads=1025");
    assert_int_equal(dv_set_threads(-1, NULL), DV_ERROR_OPTION);
    assert_int_equal(dv_threads(), before);
}

static void *set_to_five(void *seen) {
    dv_error mine;
    int *counts = seen;
    counts[0] = dv_set_threads(5, &mine) == DV_OK;
    counts[1] = dv_threads();
    return NULL;
}

static void each_thread_has_its_own(void **state) {
    (void)state;
    int before = dv_threads(), seen[2] = {0};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, set_to_five, seen), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(seen[0]);
    assert_int_equal(seen[1], 5);
    assert_int_equal(dv_threads(), before);
}

/* ---- one graph, several threads ------------------------------------------------------------ */

enum { WORKERS = 4, BATCH = 2 };

typedef struct worker {
    dv_graph *graph;
    dv_status status; /* the first failure */
    double loss;
} worker;

/* A plan, a run and a step, with the same numbers in all threads. */
static void *plan_and_train(void *argument) {
    worker *w = argument;
    dv_plan *plan = NULL;
    dv_run *run = NULL;
    dv_step_result result = {0};
    w->status = dv_plan_new(w->graph, &(dv_plan_options){.method = "division"}, &plan, NULL);
    if (w->status == DV_OK)
        w->status = dv_run_new(plan, 1, &run, NULL);
    dv_plan_free(plan);
    if (w->status == DV_OK) {
        memset(dv_run_input(run), 0, dv_map_bytes(dv_run_input_map(run)));
        memset(dv_run_labels(run), 0, BATCH * sizeof(int32_t));
        w->status = dv_run_train(run, &(dv_step){.batch = 1}, &result, NULL);
    }
    w->loss = result.loss;
    dv_run_free(run);
    return NULL;
}

static void threads_plan_and_train_at_once(void **state) {
    (void)state;
    worker workers[WORKERS];
    pthread_t threads[WORKERS];
    dv_graph *graph;
    assert_ok(dv_model_build("resnet20", DV_F32, BATCH, 10, 32, &graph, &error));
    for (int i = 0; i < WORKERS; i++) {
        workers[i] = (worker){.graph = graph};
        assert_int_equal(pthread_create(&threads[i], NULL, plan_and_train, &workers[i]), 0);
    }
    for (int i = 0; i < WORKERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(workers[i].status, DV_OK);
        assert_true(workers[i].loss > 0 && workers[i].loss == workers[0].loss);
    }
    dv_graph_free(graph);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_number_is_openmps),
        cmocka_unit_test(numbers_out_of_bounds_change_nothing),
        cmocka_unit_test(each_thread_has_its_own),
        cmocka_unit_test(threads_plan_and_train_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
