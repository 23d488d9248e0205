/* The number of threads: its bounds, and whose it is. */
#include "check.h"

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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_number_is_openmps),
        cmocka_unit_test(numbers_out_of_bounds_change_nothing),
        cmocka_unit_test(each_thread_has_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
