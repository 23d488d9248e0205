/* The optimizer against sequences worked out by hand from PyTorch's definition of SGD, with numbers that f32 has
 * exactly: parameter 1, gradients 0.5, 0.5, -1, weight decay 0.25, momentum 0.5, rate 0.5. */
#include "check.h"

#include "base/random.h"

#include <division/train.h>

static const float gradients[3] = {0.5f, 0.5f, -1};

static void check_sequence(const dv_sgd_options *options, const float expected[3]) {
    float parameter = 1, velocity = 0;
    for (int i = 0; i < 3; i++) {
        float gradient = gradients[i];
        dv_sgd_update(options, 0.5, 1, &parameter, &gradient, &velocity);
        if (parameter != expected[i])
            fail_msg("step %d: %.9g, expected %.9g", i, (double)parameter, (double)expected[i]);
        assert_true(gradient == 0);
    }
}

static void test_without_momentum(void **state) {
    (void)state;
    dv_sgd_options options = {.weight_decay = 0.25};
    check_sequence(&options, (const float[]){0.625f, 0.296875f, 0.759765625f});
    assert_int_equal(dv_sgd_slots(&options), 0);
    options.weight_decay = 0;
    check_sequence(&options, (const float[]){0.75f, 0.5f, 1});
}

static void test_momentum(void **state) {
    (void)state;
    dv_sgd_options options = {.momentum = 0.5, .weight_decay = 0.25};
    check_sequence(&options, (const float[]){0.625f, 0.109375f, 0.337890625f});
    assert_int_equal(dv_sgd_slots(&options), 1);
}

static void test_nesterov(void **state) {
    (void)state;
    dv_sgd_options options = {.momentum = 0.5, .weight_decay = 0.25, .nesterov = 1};
    check_sequence(&options, (const float[]){0.4375f, -0.11328125f, 0.534912109375f});
}

/* A number in [-1, 1). */
static float number(uint64_t seed, size_t index) {
    return (float)dv_random_word(dv_random_key(&seed, 1), (uint32_t)index) * 0x1p-31f - 1;
}

static void fill(float *data, size_t count, uint64_t seed) {
    for (size_t i = 0; i < count; i++)
        data[i] = number(seed, i);
}

/* Arrays long enough for several threads, and awkward lengths: as one element at a time. */
static void test_arrays(void **state) {
    (void)state;
    static const size_t counts[] = {1, 7, 17, 1023, 100003};
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++)
        for (int kind = 0; kind < 3; kind++) {
            size_t count = counts[k], bytes = count * sizeof(float);
            dv_sgd_options options = {.momentum = kind > 0 ? 0.9 : 0, .weight_decay = 1e-2, .nesterov = kind == 2};
            float *p = guarded_new(bytes), *g = guarded_new(bytes), *v = guarded_new(bytes);
            fill(p, count, 1);
            fill(g, count, 2);
            fill(v, count, 3);
            dv_sgd_update(&options, 0.1, count, p, g, v);
            for (size_t i = 0; i < count; i++) {
                float one = number(1, i), gradient = number(2, i), velocity = number(3, i);
                dv_sgd_update(&options, 0.1, 1, &one, &gradient, &velocity);
                assert_true(p[i] == one && v[i] == velocity && g[i] == 0);
            }
            guarded_free(p, bytes);
            guarded_free(g, bytes);
            guarded_free(v, bytes);
        }
}

static void test_bounds(void **state) {
    (void)state;
    dv_sgd_options options = dv_sgd_options_default();
    assert_ok(dv_sgd_check(&options, &error));
    options.momentum = 1;
    assert_fails(dv_sgd_check(&options, &error), DV_ERROR_OPTION, "momentum: 1: must be at least 0 and less than 1");
    options = (dv_sgd_options){.weight_decay = -1e-4};
    assert_fails(dv_sgd_check(&options, &error), DV_ERROR_OPTION, "weight decay: -0.0001: must be from 0 to 1");
    options = (dv_sgd_options){.nesterov = 1};
    assert_fails(dv_sgd_check(&options, &error), DV_ERROR_OPTION, "nesterov: needs momentum");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_momentum), cmocka_unit_test(test_momentum), cmocka_unit_test(test_nesterov),
        cmocka_unit_test(test_arrays),           cmocka_unit_test(test_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
