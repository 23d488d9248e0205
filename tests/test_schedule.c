/* The schedules at the steps where something happens, against the formulas of PyTorch's schedulers. */
#include "check.h"

#include <division/train.h>
#include <math.h>

enum { STEPS = 100, EPOCHS = 10 }; /* per epoch; in all */

static double rate_at(const dv_schedule *schedule, uint64_t step) {
    return dv_schedule_rate(schedule, step, STEPS, EPOCHS);
}

static void check_rate(const dv_schedule *schedule, uint64_t step, double expected) {
    double rate = rate_at(schedule, step);
    if (!(fabs(rate - expected) <= 1e-12))
        fail_msg("step %llu: %.17g, expected %.17g", (unsigned long long)step, rate, expected);
}

static dv_schedule parse(const char *text) {
    dv_schedule schedule = dv_schedule_default();
    assert_ok(dv_schedule_parse(text, &schedule, &error));
    return schedule;
}

static void test_constant(void **state) {
    (void)state;
    dv_schedule schedule = parse("constant");
    check_rate(&schedule, 0, 0.1);
    check_rate(&schedule, 999, 0.1);
}

/* From the whole rate at the first step; one more step after the last would have 0. */
static void test_cosine(void **state) {
    (void)state;
    dv_schedule schedule = parse("cosine");
    check_rate(&schedule, 0, 0.1);
    check_rate(&schedule, 250, 0.05 * (1 + sqrt(0.5)));
    check_rate(&schedule, 500, 0.05);
    check_rate(&schedule, 1000, 0);
    check_rate(&schedule, 2000, 0);
    for (uint64_t i = 1; i < 1000; i++)
        assert_true(rate_at(&schedule, i) < rate_at(&schedule, i - 1) && rate_at(&schedule, i) > 0);
}

static void test_linear(void **state) {
    (void)state;
    dv_schedule schedule = parse("linear");
    check_rate(&schedule, 0, 0.1);
    check_rate(&schedule, 250, 0.075);
    check_rate(&schedule, 999, 0.0001);
    check_rate(&schedule, 1000, 0);
    check_rate(&schedule, 2000, 0);
    schedule.warmup = 2;
    check_rate(&schedule, 99, 0.05);
    check_rate(&schedule, 200, 0.1);
    check_rate(&schedule, 800, 0.025);
    check_rate(&schedule, 1000, 0);
}

static void test_steps(void **state) {
    (void)state;
    dv_schedule schedule = parse("step:every=3,factor=0.5");
    static const double expected[EPOCHS] = {1, 1, 1, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.125};
    for (uint64_t i = 0; i < EPOCHS * STEPS; i++)
        check_rate(&schedule, i, 0.1 * expected[i / STEPS]);
}

static void test_milestones(void **state) {
    (void)state;
    dv_schedule schedule = parse("multistep:at=3+7,factor=0.2");
    static const double expected[EPOCHS] = {1, 1, 1, 0.2, 0.2, 0.2, 0.2, 0.04, 0.04, 0.04};
    for (uint64_t i = 0; i < EPOCHS * STEPS; i++)
        check_rate(&schedule, i, 0.1 * expected[i / STEPS]);
}

/* Two epochs up, then the cosine over the other eight; half an epoch is fifty steps. */
static void test_warmup(void **state) {
    (void)state;
    dv_schedule schedule = parse("cosine");
    schedule.warmup = 2;
    check_rate(&schedule, 0, 0.1 / 200);
    check_rate(&schedule, 99, 0.05);
    check_rate(&schedule, 199, 0.1);
    check_rate(&schedule, 200, 0.1);
    check_rate(&schedule, 600, 0.05);
    check_rate(&schedule, 1000, 0);
    schedule = parse("multistep:at=1,factor=0.5");
    schedule.warmup = 0.5;
    check_rate(&schedule, 24, 0.05);
    check_rate(&schedule, 50, 0.1);
    check_rate(&schedule, 100, 0.05);
    schedule.warmup = EPOCHS + 5; /* longer than the training: it never gets there, and nothing is divided by 0 */
    assert_true(rate_at(&schedule, 999) > 0 && rate_at(&schedule, 999) < 0.1);
    schedule = parse("cosine");
    schedule.warmup = EPOCHS;
    check_rate(&schedule, 999, 0.1);
}

/* PyTorch's CosineAnnealingLR with eta_min, stepped after each epoch. */
static void test_per_epoch(void **state) {
    (void)state;
    dv_schedule schedule = parse("cosine:per=epoch");
    schedule.minimum = 0.02;
    for (uint64_t i = 0; i < EPOCHS * STEPS; i++)
        check_rate(&schedule, i, 0.02 + 0.04 * (1 + cos(acos(-1) * (double)(i / STEPS) / EPOCHS)));
    schedule = parse("linear:per=epoch");
    check_rate(&schedule, 99, 0.1);
    check_rate(&schedule, 100, 0.09);
    assert_ok(dv_schedule_parse("cosine", &schedule, &error));
    assert_int_equal(schedule.per_epoch, 0);
}

static void test_exponential(void **state) {
    (void)state;
    dv_schedule schedule = parse("exponential:factor=0.5");
    schedule.minimum = 0.01;
    schedule.warmup = 2;
    static const double expected[EPOCHS] = {0, 1, 1, 0.5, 0.25, 0.125, 0.1, 0.1, 0.1, 0.1};
    for (uint64_t i = 200; i < EPOCHS * STEPS; i++)
        check_rate(&schedule, i, 0.1 * expected[i / STEPS]);
}

/* From a hundredth of the rate in a line, or constant. */
static void test_warmup_from_a_share(void **state) {
    (void)state;
    dv_schedule schedule = parse("constant");
    schedule.warmup = 2;
    schedule.warmup_from = 0.2;
    check_rate(&schedule, 0, 0.1 * (0.2 + 0.8 / 200));
    check_rate(&schedule, 99, 0.06);
    check_rate(&schedule, 199, 0.1);
    schedule.warmup_constant = 1;
    check_rate(&schedule, 0, 0.02);
    check_rate(&schedule, 199, 0.02);
    check_rate(&schedule, 200, 0.1);
}

static void test_what_is_refused(void **state) {
    (void)state;
    dv_schedule schedule = dv_schedule_default();
    assert_fails(
        dv_schedule_parse("quadratic", &schedule, &error), DV_ERROR_OPTION,
        "schedule: \"quadratic\" is none: there are constant, cosine, linear, step, multistep and exponential");
    assert_fails(dv_schedule_parse("constant:every=3", &schedule, &error), DV_ERROR_OPTION, "it takes none");
    assert_fails(dv_schedule_parse("cosine:per=minute", &schedule, &error), DV_ERROR_OPTION, "per=minute: must be");
    assert_fails(dv_schedule_parse("step:every=0", &schedule, &error), DV_ERROR_OPTION, "every=0: must be");
    assert_fails(dv_schedule_parse("step:factor=2", &schedule, &error), DV_ERROR_OPTION, "factor=2: must be");
    assert_fails(dv_schedule_parse("multistep", &schedule, &error), DV_ERROR_OPTION, "multistep: no epochs");
    assert_int_equal(schedule.kind, DV_SCHEDULE_COSINE);
    assert_ok(dv_schedule_check(&schedule, &error));
    schedule.rate = -1;
    assert_fails(dv_schedule_check(&schedule, &error), DV_ERROR_OPTION, "learning rate: -1: must be from 0 to 1000");
    schedule = dv_schedule_default();
    schedule.warmup = NAN;
    assert_fails(dv_schedule_check(&schedule, &error), DV_ERROR_OPTION, "warm-up: nan: must be from 0 to 10000");
    schedule = dv_schedule_default();
    schedule.minimum = 0.2;
    assert_fails(dv_schedule_check(&schedule, &error), DV_ERROR_OPTION,
                 "least learning rate: 0.2: must be from 0 to 0.1");
    schedule = dv_schedule_default();
    schedule.warmup = schedule.warmup_constant = 1;
    assert_fails(dv_schedule_check(&schedule, &error), DV_ERROR_OPTION, "a constant warm-up at no share");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_constant),
        cmocka_unit_test(test_cosine),
        cmocka_unit_test(test_linear),
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_milestones),
        cmocka_unit_test(test_warmup),
        cmocka_unit_test(test_per_epoch),
        cmocka_unit_test(test_exponential),
        cmocka_unit_test(test_warmup_from_a_share),
        cmocka_unit_test(test_what_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
