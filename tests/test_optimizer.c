/* Optimizers against PyTorch's (tests/golden/optimizers.py) and against sequences worked out by hand from its
 * definition of SGD; their text, groups of parameters, and the norm that gradients are clipped by. */
#include "check.h"

#include "base/random.h"
#include "optimizer/clip.h"
#include "optimizer/groups.h"
#include "optimizer/kind.h"

#include <math.h>
#include <omp.h>
#include <stdio.h>

static dv_optimizer optimizer_of(const char *text) {
    dv_optimizer made;
    assert_ok(dv_optimizer_parse(text, &made, &error));
    return made;
}

/* One step with learning rate `rate`, the `number`-th from 1; `state` has all slots. */
static void step(const dv_optimizer *optimizer, double rate, uint64_t number, size_t count, float *parameter,
                 float *gradient, float *state) {
    dv_update update = {.rate = rate,
                        .decay = optimizer->decay,
                        .number = number,
                        .scale = 1,
                        .count = count,
                        .parameter = parameter,
                        .gradient = gradient};
    dv_optimizer_update(optimizer, &update, state);
}

/* ---- against PyTorch ----------------------------------------------------------------------- */

enum { GOLDEN_STEPS = 20, GOLDEN_COUNT = 5 };

static const struct {
    const char *text;
    double parameters[GOLDEN_STEPS][GOLDEN_COUNT];
} golden[] = {
#include "golden/optimizers.inc"
};

static void check_golden(size_t which) {
    dv_optimizer optimizer = optimizer_of(golden[which].text);
    float p[GOLDEN_COUNT], gradient[GOLDEN_COUNT], state[GOLDEN_COUNT * DV_OPTIMIZER_MAX_SLOTS] = {0};
    for (int i = 0; i < GOLDEN_COUNT; i++)
        p[i] = 0.5f * (float)i - 1;
    for (int n = 0; n < GOLDEN_STEPS; n++) {
        for (int i = 0; i < GOLDEN_COUNT; i++)
            gradient[i] = (float)(sin(0.7 * n + 1.3 * i + 0.5) * (1 + 0.25 * i));
        step(&optimizer, 0.05, (uint64_t)n + 1, GOLDEN_COUNT, p, gradient, state);
        for (int i = 0; i < GOLDEN_COUNT; i++)
            if (!(fabs((double)p[i] - golden[which].parameters[n][i]) <= 3e-6))
                fail_msg("%s: step %d, element %d: %.9g, PyTorch's %.9g", golden[which].text, n, i, (double)p[i],
                         golden[which].parameters[n][i]);
    }
}

static void are_pytorchs(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof golden / sizeof *golden; i++)
        check_golden(i);
}

/* ---- sgd by hand --------------------------------------------------------------------------- */

/* Numbers that f32 has exactly: parameter 1, gradients 0.5, 0.5, -1, weight decay 0.25, momentum 0.5, rate 0.5. */
static void check_sequence(const char *text, const float expected[3]) {
    static const float gradients[3] = {0.5f, 0.5f, -1};
    dv_optimizer optimizer = optimizer_of(text);
    float parameter = 1, velocity = 0;
    for (int i = 0; i < 3; i++) {
        float gradient = gradients[i];
        step(&optimizer, 0.5, (uint64_t)i + 1, 1, &parameter, &gradient, &velocity);
        if (parameter != expected[i])
            fail_msg("%s: step %d: %.9g, expected %.9g", text, i, (double)parameter, (double)expected[i]);
        assert_true(gradient == 0);
    }
}

static void sgd_is_exact(void **state) {
    (void)state;
    check_sequence("sgd:momentum=0,decay=0.25", (const float[]){0.625f, 0.296875f, 0.759765625f});
    check_sequence("sgd:momentum=0,decay=0", (const float[]){0.75f, 0.5f, 1});
    check_sequence("sgd:momentum=0.5,decay=0.25", (const float[]){0.625f, 0.109375f, 0.337890625f});
    check_sequence("sgd:momentum=0.5,decay=0.25,nesterov=1", (const float[]){0.4375f, -0.11328125f, 0.534912109375f});
}

/* ---- arrays -------------------------------------------------------------------------------- */

/* A number in [0, 1). */
static float number(uint64_t seed, size_t index) {
    return (float)(dv_random_word(dv_random_key(&seed, 1), (uint32_t)index) >> 8) * 0x1p-24f;
}

static void fill(float *data, size_t count, uint64_t seed) {
    for (size_t i = 0; i < count; i++)
        data[i] = number(seed, i);
}

static void check_array(const char *text, size_t count) {
    dv_optimizer optimizer = optimizer_of(text);
    size_t bytes = count * sizeof(float), slots = dv_optimizer_slot_count(&optimizer);
    float *p = guarded_new(bytes), *g = guarded_new(bytes), *s = guarded_new(slots * bytes + 1);
    fill(p, count, 1);
    fill(g, count, 2);
    fill(s, slots * count, 3);
    step(&optimizer, 0.1, 3, count, p, g, s);
    for (size_t i = 0; i < count; i++) {
        float one = number(1, i), gradient = number(2, i), own[DV_OPTIMIZER_MAX_SLOTS];
        for (size_t k = 0; k < slots; k++)
            own[k] = number(3, k * count + i);
        step(&optimizer, 0.1, 3, 1, &one, &gradient, own);
        if (p[i] != one || g[i] != 0)
            fail_msg("%s: element %zu of %zu differs from one alone", text, i, count);
        for (size_t k = 0; k < slots; k++)
            assert_true(s[k * count + i] == own[k]);
    }
    guarded_free(p, bytes);
    guarded_free(g, bytes);
    guarded_free(s, slots * bytes + 1);
}

/* Arrays long enough for several threads, and awkward lengths: as one element at a time. */
static void arrays_are_as_elements(void **state) {
    (void)state;
    static const size_t counts[] = {1, 7, 17, 1023, 50003};
    for (size_t i = 0; i < sizeof golden / sizeof *golden; i++)
        for (size_t k = 0; k < sizeof counts / sizeof *counts; k++)
            check_array(golden[i].text, counts[k]);
}

/* The same gradient over and over: the centered square becomes 0, or less by rounding. */
static void a_centered_square_is_not_negative(void **state) {
    (void)state;
    dv_optimizer optimizer = optimizer_of("rmsprop:alpha=0.5,centered=1");
    float parameter = 1, slots[2] = {0};
    for (uint64_t n = 1; n <= 200; n++) {
        float gradient = 0.1f;
        step(&optimizer, 1e-12, n, 1, &parameter, &gradient, slots);
        assert_true(isfinite(parameter));
    }
}

/* ---- clipping ------------------------------------------------------------------------------ */

static void gradients_are_scaled(void **state) {
    (void)state;
    dv_optimizer optimizer = optimizer_of("sgd:momentum=0,decay=0");
    float parameter = 1, gradient = 0.5f;
    dv_update update = {.rate = 1, .scale = 0.25f, .count = 1, .parameter = &parameter, .gradient = &gradient};
    dv_optimizer_update(&optimizer, &update, NULL);
    assert_true(parameter == 0.875f);
}

static void norms_are_the_same_with_any_threads(void **state) {
    (void)state;
    static const size_t counts[] = {0, 1, 7, 17, 4097, 1000003};
    int threads = omp_get_max_threads();
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
        float *x = malloc(counts[k] * sizeof *x + 1);
        double plain = 0, sums[2];
        assert_non_null(x);
        fill(x, counts[k], 4);
        for (size_t i = 0; i < counts[k]; i++)
            plain += (double)x[i] * x[i];
        for (int i = 0; i < 2; i++) {
            omp_set_num_threads(i == 0 ? 1 : 3);
            sums[i] = dv_sum_of_squares(x, counts[k]);
        }
        assert_true(sums[0] == sums[1] && fabs(sums[0] - plain) <= 1e-12 * plain);
        free(x);
    }
    omp_set_num_threads(threads);
    assert_true(dv_clip_factor(1, 0.5) == 1 && dv_clip_factor(1, 0) == 1);
    assert_true(dv_clip_factor(1, 2) == 1 / (2 + 1e-6));
}

/* ---- text ---------------------------------------------------------------------------------- */

static void check_slots(const char *text, size_t count, const char *const *names) {
    dv_optimizer optimizer = optimizer_of(text);
    for (size_t i = 0; i < count; i++)
        assert_string_equal(dv_optimizer_slot_at(&optimizer, i), names[i]);
    assert_null(dv_optimizer_slot_at(&optimizer, count));
}

static void slots_have_names(void **state) {
    (void)state;
    check_slots("sgd:momentum=0", 0, NULL);
    check_slots("sgd", 1, (const char *const[]){"velocity"});
    check_slots("adamw", 2, (const char *const[]){"exp_avg", "exp_avg_sq"});
    check_slots("rmsprop", 1, (const char *const[]){"square_avg"});
    check_slots("rmsprop:momentum=0.9", 2, (const char *const[]){"square_avg", "momentum_buffer"});
    check_slots("rmsprop:momentum=0.9,centered=1", 3,
                (const char *const[]){"square_avg", "grad_avg", "momentum_buffer"});
}

static void text_says_what_is_wrong(void **state) {
    (void)state;
    static const char *const wrong[][2] = {
        {"adam", "unknown optimizer \"adam\": there are sgd, adamw, rmsprop"},
        {"adamw:momentum=0.9", "adamw: unknown option \"momentum\": there are beta1, beta2, eps, decay"},
        {"adamw:beta1=1", "adamw: beta1=1: must be a number from 0 to 0.999999"},
        {"sgd:momentum=nan", "sgd: momentum=nan: must be a number from 0 to 0.999999"},
        {"sgd:decay=-1", "sgd: decay=-1: must be a number from 0 to 1"},
        {"sgd:nesterov=0.5", "sgd: nesterov=0.5: must be yes, no, or no value at all"},
        {"sgd:momentum=0,nesterov=1", "nesterov: needs momentum"},
        {"rmsprop:", "rmsprop: no option after a colon"},
    };
    dv_optimizer made;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_fails(dv_optimizer_parse(wrong[i][0], &made, &error), DV_ERROR_OPTION, wrong[i][1]);
    assert_string_equal(dv_optimizer_name_at(0), "sgd");
    for (size_t i = 0; dv_optimizer_name_at(i); i++)
        assert_non_null(dv_optimizer_help_at(i));
}

/* ---- groups -------------------------------------------------------------------------------- */

static dv_parameter_group find(dv_groups *groups, const char *name, int rank) {
    char copy[100];
    snprintf(copy, sizeof copy, "%s", name);
    return dv_groups_find(groups, copy, rank);
}

static void the_first_group_counts(void **state) {
    (void)state;
    dv_groups *groups;
    assert_ok(dv_groups_new("fc:rate=10;vectors:decay=0;layer?.*.conv1.weight:decay=0.5,rate=0.1", &groups, &error));
    dv_parameter_group bias = find(groups, "fc.bias", 1), norm = find(groups, "layer1.0.bn1.weight", 1);
    dv_parameter_group weight = find(groups, "layer2.0.conv1.weight", 4), other = find(groups, "conv1.weight", 4);
    assert_true(bias.rate == 10 && isnan(bias.decay));
    assert_true(norm.rate == 1 && norm.decay == 0);
    assert_true(weight.rate == 0.1 && weight.decay == 0.5);
    assert_true(other.rate == 1 && isnan(other.decay));
    assert_ok(dv_groups_check(groups, &error));
    dv_groups_free(groups);
    assert_ok(dv_groups_new("", &groups, &error));
    assert_true(find(groups, "fc.bias", 1).rate == 1);
    dv_groups_free(groups);
}

static void groups_say_what_is_wrong(void **state) {
    (void)state;
    static const char *const wrong[][2] = {
        {"fc.*", "groups: \"fc.*\": must be a glob of names, a colon and what changes: fc:rate=10"},
        {"vectors:decay=0;", "groups: \"\": must be a glob"},
        {":decay=0", "must be a glob"},
        {"fc.*:lr=3", "groups: unknown option \"lr\": there are decay, rate"},
        {"fc:rate=1001", "groups: rate=1001: must be a number from 0 to 1000"},
    };
    dv_groups *groups;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_fails(dv_groups_new(wrong[i][0], &groups, &error), DV_ERROR_OPTION, wrong[i][1]);
    assert_ok(dv_groups_new("fc.*:rate=2;fc.bias:rate=3;head.*:rate=4", &groups, &error));
    (void)find(groups, "fc.bias", 1);
    assert_fails(dv_groups_check(groups, &error), DV_ERROR_OPTION, "groups: \"head.*\" matches no parameter");
    dv_groups_free(groups);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(are_pytorchs),           cmocka_unit_test(sgd_is_exact),
        cmocka_unit_test(arrays_are_as_elements), cmocka_unit_test(a_centered_square_is_not_negative),
        cmocka_unit_test(gradients_are_scaled),   cmocka_unit_test(norms_are_the_same_with_any_threads),
        cmocka_unit_test(slots_have_names),       cmocka_unit_test(text_says_what_is_wrong),
        cmocka_unit_test(the_first_group_counts), cmocka_unit_test(groups_say_what_is_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
