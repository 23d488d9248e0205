/* The choice of workers, from times that machines of all kinds would have. */
#include "check.h"

#include "train/workers.h"

static void test_worth_trying(void **state) {
    (void)state;
    assert_int_equal(dv_workers_worth_trying(0.001, 1, 2, 16), 0);   /* batches take no time */
    assert_int_equal(dv_workers_worth_trying(0.1, 1, 1, 16), 1);     /* one has a batch ready ten times over */
    assert_int_equal(dv_workers_worth_trying(0.5, 1, 4, 16), 2);     /* two seconds of work for each second */
    assert_int_equal(dv_workers_worth_trying(0.5, 0.1, 64, 16), 16); /* a slow decoder, many cores */
    assert_int_equal(dv_workers_worth_trying(0.5, 0.1, 64, 256), 256);
    assert_int_equal(dv_workers_worth_trying(0.5, 0, 1, 4), 4); /* no step to speak of */
    assert_int_equal(dv_workers_worth_trying(0, 0, 1, 4), 4);   /* or no clock */
    assert_int_equal(dv_workers_worth_trying(0.5, 1, 4, 0), 0);
}

/* A machine: seconds of a batch and its step with so many workers. */
typedef struct machine {
    double made, step; /* without workers */
    double shared;     /* by how much a step is slower with workers */
} machine;

static size_t settle(dv_worker_trial *trial, const machine *on, size_t batches) {
    for (size_t i = 0; i < batches; i++) {
        double step = on->step * (trial->workers > 0 ? on->shared : 1);
        double ahead = on->made * (double)trial->threads / (double)(trial->workers > 0 ? trial->workers : 1);
        double waits = ahead > step ? ahead - step : 0, made = trial->workers > 0 ? waits : on->made;
        double hiccup = i % 7 == 4 ? 10 * on->step : 0;
        dv_worker_trial_note(trial, made, made + step + hiccup);
    }
    return trial->workers;
}

static void test_trial(void **state) {
    (void)state;
    static const struct {
        machine on;
        size_t most, threads, expected;
    } cases[] = {
        {{0.29, 0.6, 1}, 8, 4, 2},   /* cores to spare: what keeps up */
        {{0.3, 0.1, 1}, 16, 16, 16}, /* a slow decoder, many cores: as many as there may be */
        {{0.3, 0.6, 1.6}, 2, 2, 0},  /* in the way of the step: none after all */
        {{0.001, 0.6, 1}, 8, 4, 0},  /* nothing to win: not even tried */
        {{0.3, 0.6, 1}, 0, 4, 0},    /* no choice */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        dv_worker_trial trial = dv_worker_trial_new(cases[i].most, cases[i].threads);
        assert_int_equal(trial.settled, cases[i].most == 0);
        assert_int_equal(settle(&trial, &cases[i].on, 14), cases[i].expected);
        assert_true(trial.settled);
        assert_int_equal(settle(&trial, &(machine){9, 1, 1}, 20), cases[i].expected); /* for good */
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_worth_trying), cmocka_unit_test(test_trial)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
