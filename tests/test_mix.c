/* Mixup and cutmix against a plain computation: what each image became, its labels and weights. Averages of weights
 * against the formula. */
#include "check.h"

#include "base/float16.h"

#include <division/train.h>
#include <math.h>

enum { SIDE = 8, MOST_BATCH = 7, PIXELS = SIDE * SIDE, ELEMENTS = PIXELS * 3 };

typedef struct fixture {
    dv_graph *graph;
    dv_plan *plan;
    dv_run *run;
    dv_type type;
    size_t batch;
    float before[MOST_BATCH][ELEMENTS];
} fixture;

static fixture *fixture_new(dv_type type, size_t batch) {
    fixture *f = calloc(1, sizeof *f);
    dv_plan_options options = {.method = "none", .optimizer = "sgd", .average = 1};
    assert_non_null(f);
    f->type = type;
    f->batch = batch;
    assert_ok(dv_graph_new(type, batch, &f->graph, &error));
    dv_value x = dv_graph_input(f->graph, 3, 2, (const size_t[]){SIDE, SIDE});
    x = dv_graph_batch_norm(f->graph, "norm", x);
    x = dv_graph_global_average_pooling(f->graph, "pool", x);
    x = dv_graph_linear(f->graph, "fc", x, &(dv_linear_options){.channels = 9, .bias = true});
    assert_ok(dv_graph_finish(f->graph, x, &error));
    assert_ok(dv_plan_new(f->graph, &options, &f->plan, &error));
    assert_ok(dv_run_new(f->plan, 1, &f->run, &error));
    return f;
}

static void fixture_free(fixture *f) {
    dv_run_free(f->run);
    dv_plan_free(f->plan);
    dv_graph_free(f->graph);
    free(f);
}

/* Image n is n + 1 + i / 256 everywhere, which bf16 rounds; labels are the images' numbers. */
static void fill(fixture *f) {
    for (size_t n = 0; n < f->batch; n++) {
        dv_run_labels(f->run)[n] = (int32_t)n;
        for (size_t i = 0; i < ELEMENTS; i++) {
            float value = (float)(n + 1) + (float)i / 256;
            if (f->type == DV_F32)
                ((float *)dv_run_input(f->run))[n * ELEMENTS + i] = value;
            else
                ((uint16_t *)dv_run_input(f->run))[n * ELEMENTS + i] = dv_bf16_nearest(value);
            f->before[n][i] = f->type == DV_F32 ? value : dv_bf16_to_f32(dv_bf16_nearest(value));
        }
    }
}

static float now_at(const fixture *f, size_t n, size_t i) {
    size_t at = n * ELEMENTS + i;
    if (f->type == DV_F32)
        return ((float *)dv_run_input(f->run))[at];
    return dv_bf16_to_f32(((uint16_t *)dv_run_input(f->run))[at]);
}

static void assert_blended(const fixture *f, size_t n, float weight) {
    const float *one = f->before[n], *other = f->before[f->batch - 1 - n];
    for (size_t i = 0; i < ELEMENTS; i++) {
        float expected = weight * one[i] + (1 - weight) * other[i];
        assert_float_equal(now_at(f, n, i), expected, f->type == DV_F32 ? 1e-6f : 0.02f);
    }
}

/* Exactly what is inside one rectangle is the other's, and the weight is what is outside. */
static void assert_cut(const fixture *f, size_t n, float weight) {
    const float *one = f->before[n], *other = f->before[f->batch - 1 - n];
    size_t top = SIDE, bottom = 0, left = SIDE, right = 0, foreign = 0;
    for (size_t i = 0; i < ELEMENTS; i++) {
        size_t y = i / 3 / SIDE, x = i / 3 % SIDE;
        bool its_own = now_at(f, n, i) == one[i];
        assert_true(its_own || now_at(f, n, i) == other[i]);
        if (its_own)
            continue;
        foreign++;
        top = y < top ? y : top;
        bottom = y + 1 > bottom ? y + 1 : bottom;
        left = x < left ? x : left;
        right = x + 1 > right ? x + 1 : right;
    }
    if (foreign > 0)
        assert_int_equal(foreign, (bottom - top) * (right - left) * 3);
    assert_float_equal(weight, 1 - (float)foreign / ELEMENTS, 1e-6f);
}

static void check_batches(const dv_mix_options *options, dv_type type, size_t batch,
                          void (*check)(const fixture *f, size_t n, float weight)) {
    fixture *f = fixture_new(type, batch);
    for (uint64_t number = 0; number < 20; number++) {
        fill(f);
        dv_mix_batch(options, 3, number, f->run);
        const float *weights = dv_run_label_weights(f->run);
        for (size_t n = 0; n < batch; n++) {
            size_t other = batch - 1 - n;
            assert_int_equal(dv_run_second_labels(f->run)[n], other);
            assert_true(weights[n] >= 0 && weights[n] <= 1 && weights[n] == weights[other]);
            assert_true(n != other || weights[n] == 1);
            check(f, n, weights[n]);
        }
    }
    fixture_free(f);
}

static void test_mixup(void **state) {
    (void)state;
    check_batches(&(dv_mix_options){.mixup = 1}, DV_F32, 6, assert_blended);
    check_batches(&(dv_mix_options){.mixup = 0.2}, DV_F32, 7, assert_blended);
    check_batches(&(dv_mix_options){.mixup = 1}, DV_BF16, 5, assert_blended);
}

static void test_cutmix(void **state) {
    (void)state;
    check_batches(&(dv_mix_options){.cutmix = 1}, DV_F32, 6, assert_cut);
    check_batches(&(dv_mix_options){.cutmix = 0.5}, DV_BF16, 7, assert_cut);
    check_batches(&(dv_mix_options){.cutmix = 1}, DV_F32, 1, assert_cut);
}

/* Off: nothing is touched, and weights are 1. */
static void test_off(void **state) {
    (void)state;
    fixture *f = fixture_new(DV_F32, 4);
    fill(f);
    dv_mix_batch(&(dv_mix_options){0}, 1, 0, f->run);
    for (size_t n = 0; n < 4; n++) {
        assert_true(dv_run_label_weights(f->run)[n] == 1);
        for (size_t i = 0; i < ELEMENTS; i++)
            assert_true(now_at(f, n, i) == f->before[n][i]);
    }
    fixture_free(f);
}

/* Seed and number decide; both kinds are drawn where both are on. */
static void test_draws(void **state) {
    (void)state;
    fixture *f = fixture_new(DV_F32, 6);
    dv_mix_options both = {.mixup = 1, .cutmix = 1};
    float weights[2][6];
    size_t cuts = 0, differ = 0;
    for (uint64_t number = 0; number < 40; number++) {
        for (int time = 0; time < 2; time++) {
            fill(f);
            dv_mix_batch(&both, 7, number, f->run);
            memcpy(weights[time], dv_run_label_weights(f->run), sizeof weights[time]);
        }
        assert_memory_equal(weights[0], weights[1], sizeof weights[0]);
        float scaled = weights[0][0] * PIXELS;
        cuts += fabsf(scaled - roundf(scaled)) < 1e-4f;
        fill(f);
        dv_mix_batch(&both, 8, number, f->run);
        differ += memcmp(weights[0], dv_run_label_weights(f->run), sizeof weights[0]) != 0;
    }
    assert_in_range(cuts, 8, 32);
    assert_int_equal(differ, 40);
    fixture_free(f);
}

/* Shares have the mean and variance of the beta distribution: 1/2 and 1 / (8 alpha + 4). */
static void test_distribution(void **state) {
    (void)state;
    static const double alphas[] = {0.2, 1, 8};
    size_t rounds = 2000 / test_scale();
    fixture *f = fixture_new(DV_F32, 6);
    for (size_t a = 0; a < 3; a++) {
        double sum = 0, squares = 0, count = (double)rounds * 3, variance = 1 / (8 * alphas[a] + 4);
        for (uint64_t number = 0; number < rounds; number++) {
            dv_mix_batch(&(dv_mix_options){.mixup = alphas[a]}, 1, number, f->run);
            for (size_t n = 0; n < 3; n++) {
                double off = (double)dv_run_label_weights(f->run)[n] - 0.5;
                sum += off;
                squares += off * off;
            }
        }
        assert_true(fabs(sum / count) < 4 * sqrt(variance / count));
        assert_true(fabs(squares / count / variance - 1) < 8 / sqrt(count));
    }
    fixture_free(f);
}

static void test_options(void **state) {
    (void)state;
    assert_ok(dv_mix_check(&(dv_mix_options){100, 0}, &error));
    assert_fails(dv_mix_check(&(dv_mix_options){101, 0}, &error), DV_ERROR_OPTION, "mixup: 101: must be from 0 to 100");
    assert_fails(dv_mix_check(&(dv_mix_options){0, NAN}, &error), DV_ERROR_OPTION, "cutmix: nan");
}

/* ---- averages ------------------------------------------------------------------------------ */

static void test_average(void **state) {
    (void)state;
    fixture *f = fixture_new(DV_F32, 1);
    double expected = 0;
    const dv_run_parameter *p;
    for (size_t i = 0; (p = dv_run_parameter_at(f->run, i)) != NULL; i++)
        p->data[0] = 2;
    dv_average_begin(f->run);
    for (uint64_t step = 0; step < 100; step++) {
        double decay = fmin(0.8, (1 + (double)step) / (10 + (double)step)), value = sin((double)step);
        expected = step == 0 ? decay * 2 + (1 - decay) * value : decay * expected + (1 - decay) * value;
        for (size_t i = 0; (p = dv_run_parameter_at(f->run, i)) != NULL; i++)
            p->data[0] = (float)value;
        dv_average_step(0.8, step, f->run);
        for (size_t i = 0; (p = dv_run_parameter_at(f->run, i)) != NULL; i++)
            assert_float_equal(p->average[0], (float)expected, 1e-5f);
    }
    float value = dv_run_parameter_at(f->run, 0)->data[0];
    dv_average_exchange(f->run);
    for (size_t i = 0; (p = dv_run_parameter_at(f->run, i)) != NULL; i++) {
        assert_float_equal(p->data[0], (float)expected, 1e-5f);
        assert_true(p->average[0] == value);
    }
    fixture_free(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mixup),        cmocka_unit_test(test_cutmix),  cmocka_unit_test(test_off),
        cmocka_unit_test(test_draws),        cmocka_unit_test(test_options), cmocka_unit_test(test_average),
        cmocka_unit_test(test_distribution),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
