/* The loss: values, gradient, accuracy, what it refuses. */
#include "gradient.h"
#include "losses.h"

/* Against one label per image. */
static dv_status loss_with(const dv_map *map, const void *logits, const int32_t *labels, float smoothing, float scale,
                           void *diff, dv_loss_result *result, dv_error *error) {
    dv_targets targets = {.data = labels, .smoothing = smoothing};
    return cross_entropy(map, logits, &targets, scale, diff, result, error);
}

/* Sum over the images. */
static double loss_of(const dv_map *map, const void *logits, const int32_t *labels, float smoothing) {
    dv_loss_result result;
    assert_ok(loss_with(map, logits, labels, smoothing, 1, NULL, &result, &error));
    return result.loss * (double)result.counted;
}

/* By hand: logits 0, log 2, log 5 give 1/8, 2/8, 5/8. */
static void values(void **state) {
    (void)state;
    dv_map map = {DV_F32, DV_NHWC, 2, 3, 0, {0}};
    float logits[] = {0, logf(2), logf(5), 10, 10 + logf(2), 10 + logf(5)}, diff[6];
    int32_t labels[] = {1, 2};
    dv_loss_result result;
    assert_ok(loss_with(&map, logits, labels, 0, 3, diff, &result, &error));
    assert_float_equal((float)result.loss, (logf(4) + logf(1.6f)) / 2, 1e-6f);
    assert_int_equal(result.counted, 2);
    assert_int_equal(result.correct, 1);
    assert_int_equal(result.correct5, 2);
    const float expected[] = {0.125f, 0.25f - 1, 0.625f, 0.125f, 0.25f, 0.625f - 1};
    for (size_t i = 0; i < 6; i++)
        assert_float_equal(diff[i], expected[i] * 3 / 2, 1e-6f);
    double smooth = 0.9 * (log(4) + log(1.6)) + 0.1 / 3 * 2 * (log(8) + log(4) + log(1.6));
    assert_float_equal((float)loss_of(&map, logits, labels, 0.1f), (float)smooth, 1e-5f);
}

static void gradient_is_the_finite_difference(void **state) {
    (void)state;
    static const float smoothings[] = {0, 0.1f, 1};
    dv_map map = {DV_F32, DV_NHWC, 3, 7, 0, {0}};
    int32_t labels[] = {0, 6, 3};
    for (size_t s = 0; s < 3; s++) {
        float *logits = bench_fill(DV_F32, 21, 4, false), diff[21];
        dv_loss_result result;
        assert_ok(loss_with(&map, logits, labels, smoothings[s], 2, diff, &result, &error));
        for (size_t i = 0; i < 21; i++) {
            float before = logits[i];
            logits[i] = before + 0x1p-6f;
            double above = loss_of(&map, logits, labels, smoothings[s]);
            logits[i] = before - 0x1p-6f;
            double below = loss_of(&map, logits, labels, smoothings[s]);
            logits[i] = before;
            assert_float_equal(diff[i], (float)((above - below) * 0x1p5 * 2 / 3), 1e-4f);
        }
        guarded_free(logits, 21 * sizeof(float));
    }
}

/* bf16 logits are those numbers, and the gradient is rounded to bf16. */
static void bf16(void **state) {
    (void)state;
    dv_map half = {DV_BF16, DV_NHWC, 9, 17, 0, {0}}, full = half;
    full.type = DV_F32;
    int32_t labels[] = {0, 1, 2, 3, 4, 5, 6, 7, 16};
    void *logits = bench_fill(DV_BF16, 153, 4, true), *wide = bench_fill(DV_F32, 153, 4, true);
    void *diff = guarded_new(153 * 2), *wide_diff = guarded_new(153 * 4);
    dv_loss_result a, b;
    assert_ok(loss_with(&half, logits, labels, 0.1f, 1, diff, &a, &error));
    assert_ok(loss_with(&full, wide, labels, 0.1f, 1, wide_diff, &b, &error));
    assert_true(a.loss == b.loss && a.correct == b.correct && a.correct5 == b.correct5);
    for (size_t i = 0; i < 153; i++)
        assert_int_equal(((uint16_t *)diff)[i], dv_bf16_nearest(((float *)wide_diff)[i]));
    guarded_free(logits, 153 * 2);
    guarded_free(wide, 153 * 4);
    guarded_free(diff, 153 * 2);
    guarded_free(wide_diff, 153 * 4);
}

/* Logits far apart neither overflow nor lose the loss. */
static void large_logits(void **state) {
    (void)state;
    dv_map map = {DV_F32, DV_NHWC, 1, 3, 0, {0}};
    float logits[] = {1e30f, 0, -1e30f}, diff[3];
    dv_loss_result result;
    for (int32_t label = 0; label < 3; label++) {
        assert_ok(loss_with(&map, logits, &label, 0, 1, diff, &result, &error));
        assert_float_equal((float)(result.loss / 1e30), (float)label, 1e-6f);
        for (int32_t k = 0; k < 3; k++)
            assert_true(diff[k] == (float)(k == 0) - (float)(k == label));
    }
}

/* Of equal logits the first is first: seven equal ones, label by label. */
static void ranks(void **state) {
    (void)state;
    dv_map map = {DV_F32, DV_NHWC, 7, 7, 0, {0}};
    float logits[49] = {0};
    int32_t labels[] = {0, 1, 2, 3, 4, 5, 6};
    dv_loss_result result;
    assert_ok(loss_with(&map, logits, labels, 0, 1, NULL, &result, &error));
    assert_int_equal(result.correct, 1);
    assert_int_equal(result.correct5, 5);
}

/* Two labels: loss and gradient are the weighted sums of those against each, whatever the smoothing; an image of
 * weight 1 has none but the first, and the label of more weight is the one that counts. */
static void two_labels(void **state) {
    (void)state;
    enum { N = 4, K = 6 };
    dv_map map = {DV_F32, DV_NHWC, N, K, 0, {0}};
    float *logits = bench_fill(DV_F32, N * K, 4, false), mixed[N * K], one[N * K], other[N * K];
    const int32_t labels[N] = {0, 5, 2, 3}, seconds[N] = {4, 5, -7, 1};
    const float weights[N] = {0.25f, 0.7f, 1, 0};
    const int32_t others[N] = {4, 5, 2, 1};
    static const float smoothings[] = {0, 0.1f};
    for (size_t s = 0; s < 2; s++) {
        dv_targets targets = {labels, seconds, weights, smoothings[s]};
        dv_loss_result result, first, second;
        assert_ok(cross_entropy(&map, logits, &targets, 3, mixed, &result, &error));
        assert_ok(loss_with(&map, logits, labels, smoothings[s], 3, one, &first, &error));
        assert_ok(loss_with(&map, logits, others, smoothings[s], 3, other, &second, &error));
        double expected = 0;
        for (size_t n = 0; n < N; n++) {
            dv_map single = {DV_F32, DV_NHWC, 1, K, 0, {0}};
            double weight = (double)weights[n];
            expected += weight * loss_of(&single, logits + n * K, labels + n, smoothings[s]) +
                        (1 - weight) * loss_of(&single, logits + n * K, others + n, smoothings[s]);
            for (size_t k = n * K; k < (n + 1) * K; k++)
                assert_float_equal(mixed[k], weights[n] * one[k] + (1 - weights[n]) * other[k], 1e-6f);
        }
        assert_float_equal((float)result.loss, (float)expected / N, 1e-5f);
    }
    logits[4] = 100; /* the second label of image 0, which weighs more */
    logits[3 * K + 3] = 100;
    dv_targets targets = {labels, seconds, weights, 0};
    dv_loss_result result;
    dv_map first_map = {DV_F32, DV_NHWC, 1, K, 0, {0}};
    assert_ok(cross_entropy(&first_map, logits, &targets, 1, NULL, &result, &error));
    assert_int_equal(result.correct, 1);
    targets = (dv_targets){labels + 3, seconds + 3, weights + 3, 0};
    assert_ok(cross_entropy(&first_map, logits + 3 * K, &targets, 1, NULL, &result, &error));
    assert_int_equal(result.correct, 0);
    guarded_free(logits, N * K * sizeof(float));
}

static void refuses_two_labels(void **state) {
    (void)state;
    dv_map map = {DV_F32, DV_NHWC, 2, 3, 0, {0}};
    float logits[6] = {0};
    dv_loss_result r;
    const int32_t labels[] = {0, 1}, seconds[] = {0, 3};
    static const float bad[] = {-0.1f, 1.1f, NAN};
    float weights[] = {1, 0.5f};
    dv_targets targets = {labels, seconds, weights, 0};
    assert_fails(cross_entropy(&map, logits, &targets, 1, NULL, &r, &error), DV_ERROR_ARGUMENT,
                 "label 3 of image 1 is out of range");
    for (size_t i = 0; i < 3; i++) {
        weights[0] = bad[i];
        assert_fails(cross_entropy(&map, logits, &targets, 1, NULL, &r, &error), DV_ERROR_ARGUMENT,
                     "image 0 has weight");
    }
}

static void same_on_any_number_of_threads(void **state) {
    (void)state;
    dv_map map = {DV_F32, DV_NHWC, 131, 17, 0, {0}};
    float *logits = bench_fill(DV_F32, 131 * 17, 4, false);
    int32_t labels[131];
    int threads = omp_get_max_threads();
    for (int32_t n = 0; n < 131; n++)
        labels[n] = n % 17;
    omp_set_num_threads(1);
    double expected = loss_of(&map, logits, labels, 0.1f);
    for (int t = 2; t < 6; t++) {
        omp_set_num_threads(t);
        assert_true(loss_of(&map, logits, labels, 0.1f) == expected);
    }
    omp_set_num_threads(threads);
    guarded_free(logits, 131 * 17 * sizeof(float));
}

static void refuses(void **state) {
    (void)state;
    dv_map map = {DV_F32, DV_NHWC, 2, 3, 0, {0}};
    float logits[24] = {0};
    int32_t labels[] = {0, 3}, negative[] = {-1, 0}, good[] = {0, 2};
    dv_loss_result r;
    assert_fails(loss_with(&map, logits, labels, 0, 1, NULL, &r, &error), DV_ERROR_ARGUMENT,
                 "label 3 of image 1 is out of range: the model has classes 0 to 2");
    assert_fails(loss_with(&map, logits, negative, 0, 1, NULL, &r, &error), DV_ERROR_ARGUMENT, "label -1 of image 0");
    assert_fails(loss_with(&map, logits, good, 1.5f, 1, NULL, &r, &error), DV_ERROR_OPTION, "smoothing");
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < 3; i++) {
        logits[4] = bad[i];
        assert_fails(loss_with(&map, logits, good, 0, 1, NULL, &r, &error), DV_ERROR_NONFINITE, "image 1");
    }
}

/* ---- maps ------------------------------------------------------------------------------------ */

enum { SIDE = 5, PIXELS = SIDE * SIDE, IMAGES = 3, KINDS = 4, ROWS = IMAGES * PIXELS };

static const dv_map maps = {DV_F32, DV_NHWC, IMAGES, KINDS, 2, {SIDE, SIDE}};

static void fill_labels(int32_t *labels, bool some_without) {
    for (size_t i = 0; i < ROWS; i++)
        labels[i] = some_without && i % 7 == 3 ? DV_NO_LABEL : (int32_t)(i * 5 % KINDS);
}

/* A map's loss is that of its pixels, each as an image of its own: to the bit. */
static void a_map_is_many_pixels(void **state) {
    (void)state;
    const dv_map flat = {DV_F32, DV_NHWC, ROWS, KINDS, 0, {0}};
    float *logits = bench_fill(DV_F32, ROWS * KINDS, 4, false), a[ROWS * KINDS], b[ROWS * KINDS];
    int32_t labels[ROWS];
    dv_loss_result of_maps, of_pixels;
    fill_labels(labels, false);
    assert_ok(loss_with(&maps, logits, labels, 0.1f, 3, a, &of_maps, &error));
    assert_ok(loss_with(&flat, logits, labels, 0.1f, 3, b, &of_pixels, &error));
    assert_memory_equal(a, b, sizeof a);
    assert_true(of_maps.loss == of_pixels.loss && of_maps.counted == ROWS);
    assert_int_equal(of_maps.correct, of_pixels.correct);
    assert_int_equal(of_maps.correct5, of_pixels.correct5);
    guarded_free(logits, ROWS * KINDS * sizeof(float));
}

/* Pixels without a label have no loss and no gradient, and the mean is over the others. */
static void pixels_without_a_label_do_not_count(void **state) {
    (void)state;
    float *logits = bench_fill(DV_F32, ROWS * KINDS, 4, false), all[ROWS * KINDS], some[ROWS * KINDS];
    int32_t labels[ROWS], with[ROWS];
    dv_loss_result result, whole;
    double sum = 0;
    size_t count = 0;
    fill_labels(labels, true);
    fill_labels(with, false);
    assert_ok(loss_with(&maps, logits, with, 0, ROWS, all, &whole, &error));
    assert_ok(loss_with(&maps, logits, labels, 0, 1, some, &result, &error));
    const dv_map pixel = {DV_F32, DV_NHWC, 1, KINDS, 0, {0}};
    for (size_t i = 0; i < ROWS; i++)
        if (labels[i] != DV_NO_LABEL) {
            sum += loss_of(&pixel, logits + i * KINDS, &labels[i], 0);
            count++;
        }
    assert_int_equal(result.counted, count);
    assert_float_equal((float)result.loss, (float)(sum / (double)count), 1e-6f);
    for (size_t i = 0; i < ROWS * KINDS; i++)
        assert_float_equal(some[i], labels[i / KINDS] == DV_NO_LABEL ? 0 : all[i] / (float)count, 1e-7f);
    guarded_free(logits, ROWS * KINDS * sizeof(float));
}

static void nothing_labelled_is_no_loss(void **state) {
    (void)state;
    float *logits = bench_fill(DV_F32, ROWS * KINDS, 4, false), diff[ROWS * KINDS];
    int32_t labels[ROWS];
    dv_loss_result result;
    memset(labels, -1, sizeof labels);
    memset(diff, 0x7f, sizeof diff);
    assert_ok(loss_with(&maps, logits, labels, 0, 1, diff, &result, &error));
    assert_true(result.loss == 0 && result.counted == 0 && result.correct == 0);
    for (size_t i = 0; i < ROWS * KINDS; i++)
        assert_true(diff[i] == 0);
    guarded_free(logits, ROWS * KINDS * sizeof(float));
}

static void refuses_maps(void **state) {
    (void)state;
    float *logits = bench_fill(DV_F32, ROWS * KINDS, 4, false);
    int32_t labels[ROWS];
    dv_loss_result r;
    fill_labels(labels, true);
    labels[PIXELS + 9] = 255;
    assert_fails(loss_with(&maps, logits, labels, 0, 1, NULL, &r, &error), DV_ERROR_ARGUMENT,
                 "label 255 of pixel 9 of image 1 is out of range: the model has classes 0 to 3, and pixels without a "
                 "label have -1");
    labels[PIXELS + 9] = DV_NO_LABEL; /* is looked at all the same */
    logits[(PIXELS + 9) * KINDS] = NAN;
    assert_fails(loss_with(&maps, logits, labels, 0, 1, NULL, &r, &error), DV_ERROR_NONFINITE, "logits of image 1");
    guarded_free(logits, ROWS * KINDS * sizeof(float));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values),
        cmocka_unit_test(gradient_is_the_finite_difference),
        cmocka_unit_test(bf16),
        cmocka_unit_test(large_logits),
        cmocka_unit_test(ranks),
        cmocka_unit_test(same_on_any_number_of_threads),
        cmocka_unit_test(refuses),
        cmocka_unit_test(two_labels),
        cmocka_unit_test(refuses_two_labels),
        cmocka_unit_test(a_map_is_many_pixels),
        cmocka_unit_test(pixels_without_a_label_do_not_count),
        cmocka_unit_test(nothing_labelled_is_no_loss),
        cmocka_unit_test(refuses_maps),
    };
    return cmocka_run_group_tests_name("softmax cross-entropy", tests, NULL, NULL);
}
