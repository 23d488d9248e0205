/* Batch norm: gradients, statistics as PyTorch has them, values that are not finite. */
#include "gradient.h"
#include "nn/parts.h"

static const dv_map shapes[] = {
    {DV_F32, DV_NHWC, 9, 3, 0, {0}},     {DV_F32, DV_NHWC, 5, 17, 0, {0}},    {DV_F32, DV_NHWC, 2, 1, 1, {7}},
    {DV_F32, DV_NHWC, 3, 3, 2, {5, 4}},  {DV_F32, DV_NHWC, 2, 17, 2, {3, 4}}, {DV_F32, DV_NHWC, 3, 2, 3, {2, 3, 5}},
    {DV_F32, DV_NHWC, 2, 64, 2, {2, 3}},
};

static const dv_map large_shapes[] = {
    {DV_F32, DV_NHWC, 3, 300, 2, {9, 7}},
    {DV_F32, DV_NHWC, 1, 17, 2, {61, 63}},
    {DV_F32, DV_NHWC, 70, 3, 1, {100}},
    {DV_F32, DV_NHWC, 2, 1, 2, {90, 70}},
    {DV_F32, DV_NHWC, 2, 64, 2, {24, 24}},
    {DV_F32, DV_NHWC, 17, 16, 2, {28, 28}}, /* has 51 parts, and twice as many images 34 */
};

static layer_case with(const dv_map *map, const dv_batch_norm_options *options) {
    layer_case c = {.kind = &dv_batch_norm, .options = options, .input_count = options->add ? 2 : 1};
    c.inputs[0] = c.inputs[1] = *map;
    /* The gradient of x is what is left when most of dz cancels: bf16's rounding counts for more. */
    c.bf16_tolerance = 5e-2f;
    return c;
}

static void passes_all_checks(void **state) {
    (void)state;
    for (int variant = 0; variant < 4; variant++)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
            dv_batch_norm_options options = {1e-5f, 0.1f, variant & 1, variant & 2};
            layer_case c = with(&shapes[i], &options);
            check_layer(&c);
        }
}

static void passes_on_large_shapes(void **state) {
    (void)state;
    for (int variant = 0; variant < 4; variant++)
        for (size_t i = 0; i < sizeof large_shapes / sizeof *large_shapes; i++) {
            dv_batch_norm_options options = {1e-5f, 0.1f, variant & 1, variant & 2};
            layer_case c = with(&large_shapes[i], &options);
            check_layer_modes(&c);
        }
}

/* An affine map by the running statistics, which stay as they are: neither x nor saved bytes are there in backward. */
static void frozen_passes_all_checks(void **state) {
    (void)state;
    for (int variant = 0; variant < 4; variant++)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
            dv_batch_norm_options options = {1e-5f, 0.1f, variant & 1, variant & 2};
            layer_case c = with(&shapes[i], &options);
            c.frozen = 3;
            check_layer(&c);
            c = with(&large_shapes[i % (sizeof large_shapes / sizeof *large_shapes)], &options);
            c.frozen = 3;
            check_layer_modes(&c);
        }
}

/* In training it does what it does in inference, also with one value per channel. */
static void frozen_is_inference(void **state) {
    (void)state;
    static const dv_map one = {DV_F32, DV_NHWC, 1, 5, 0, {0}};
    const dv_batch_norm_options options = {1e-5f, 0.1f, false, true};
    layer_case c = with(&one, &options);
    c.frozen = 3;
    bench b;
    bench_init(&b, &c, DV_F32, false);
    bench_result inference = bench_run(&b, &(bench_mode){.inference = true});
    bench_expect(&b, "trained", (bench_mode){0}, &inference, 0);
    bench_result_free(&inference);
    bench_destroy(&b);
}

/* Images of half a megabyte are recomputed four at a time: seven are a four and a three, and do not begin at a multiple
 * of either. */
static void recomputes_in_steps(void **state) {
    (void)state;
    static const dv_map map = {DV_F32, DV_NHWC, 16, 32, 2, {64, 64}};
    for (int variant = 0; variant < 4; variant++) {
        dv_batch_norm_options options = {1e-5f, 0.1f, variant & 1, variant & 2};
        layer_case c = with(&map, &options);
        bench_mode mode = {0};
        bench b;
        bench_memory m;
        bench_init(&b, &c, DV_F32, false);
        bench_memory_init(&b, &mode, &m);
        void *output = bench_forward(&b, &mode, &m);
        bench_recompute(&b, &m, output, NULL, 7);
        bench_recompute(&b, &m, output, "exact", 7);
        bench_memory_free(&b, &m);
        bench_destroy(&b);
    }
}

/* An x with noise may fall on the other side of zero: the mask decides what is zero, and nothing is cut off, so that
 * the mean is right. Every instruction set gives the reference's bits, for spans of all lengths, NaN included. */
static void recomputed_by_bits_alone(void **state) {
    (void)state;
    enum { CHANNELS = 3, MOST = 1023 };
    static const size_t counts[] = {1, 7, 17, 255, 256, 257, MOST};
    float mean[CHANNELS + DV_CHUNK] = {0.5f, -1, 0}, scale[CHANNELS + DV_CHUNK] = {2, -1, 0.25f};
    float bias[CHANNELS + DV_CHUNK] = {0, 0.25f, -0.5f};
    dv_extend(mean, CHANNELS);
    dv_extend(scale, CHANNELS);
    dv_extend(bias, CHANNELS);
    dv_isa isa = dv_isa_current();
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        for (int variant = 0; variant < 4; variant++) {
            dv_type type = variant & 1 ? DV_BF16 : DV_F32;
            size_t count = counts[i], bytes = count * dv_type_bytes(type);
            dv_span span = {type, CHANNELS, 0, count};
            void *x = bench_fill(type, count, 3, true), *addend = bench_fill(type, count, 4, true);
            uint8_t *mask = guarded_new((count + 7) / 8);
            void *expected = guarded_new(bytes), *got = guarded_new(bytes);
            for (size_t j = 0; j < (count + 7) / 8; j++)
                mask[j] = (uint8_t)(j * 151 + 0x5a);
            store_element(type, x, count / 2, NAN);
            dv_elementwise_reference.normalize_again(&span, x, variant & 2 ? addend : NULL, mean, scale, bias, mask,
                                                     expected);
            size_t negative = 0, zero = 0;
            for (size_t j = 0; j < count; j++) {
                negative += load_element(type, expected, j) < 0;
                zero += load_element(type, expected, j) == 0;
            }
            if (count > 100)
                assert_true(negative > count / 8 && zero > count / 4);
            for (int k = 0; k < DV_ISA_COUNT; k++)
                if (dv_isa_available((dv_isa)k)) {
                    dv_isa_force((dv_isa)k);
                    dv_elementwise()->normalize_again(&span, x, variant & 2 ? addend : NULL, mean, scale, bias, mask,
                                                      got);
                    assert_memory_equal(got, expected, bytes);
                }
            dv_isa_force(isa);
            guarded_free(x, bytes);
            guarded_free(addend, bytes);
            guarded_free(mask, (count + 7) / 8);
            guarded_free(expected, bytes);
            guarded_free(got, bytes);
        }
}

/* A bench with one input of the caller's, for tests of forward alone. */
typedef struct small {
    dv_map map;
    dv_layer layer;
    dv_layer_arrays arrays;
    float weight[8], bias[8], mean[8], variance[8], saved[16];
    void *workspace;
} small;

static void small_init(small *s, const dv_batch_norm_options *options, size_t images, size_t channels) {
    *s = (small){.map = {DV_F32, DV_NHWC, images, channels, 0, {0}}};
    s->layer = (dv_layer){.kind = &dv_batch_norm, .name = "tested", .options = options, .input_count = 1};
    s->layer.inputs = &s->map;
    assert_ok(dv_batch_norm.infer(&s->layer, &error));
    assert_ok(dv_batch_norm.prepare(&s->layer, &error));
    for (size_t c = 0; c < channels; c++)
        s->weight[c] = s->variance[c] = 1;
    s->arrays = (dv_layer_arrays){.parameters = {s->weight, s->bias}, .buffers = {s->mean, s->variance}};
    s->workspace = guarded_new(s->layer.forward_workspace_bytes);
}

static dv_status small_forward(small *s, const float *x, float *y, bool training, dv_error *error) {
    dv_forward call = {.images = s->map.images,
                       .arrays = &s->arrays,
                       .inputs = (const void *[]){x},
                       .output = y,
                       .saved = training ? s->saved : NULL,
                       .workspace = s->workspace,
                       .training = training};
    return dv_batch_norm.forward(&s->layer, &call, error);
}

/* Worked out by hand: 1, 2, 6 has mean 3, biased variance 14/3, unbiased 7. */
static void statistics_are_pytorchs(void **state) {
    (void)state;
    dv_batch_norm_options options = {1e-5f, 0.1f, false, false};
    small s;
    float x[] = {1, 2, 6}, y[3];
    small_init(&s, &options, 3, 1);
    assert_ok(small_forward(&s, x, y, true, &error));
    assert_float_equal(s.mean[0], 0.3f, 1e-6f);
    assert_float_equal(s.variance[0], 0.9f + 0.7f, 1e-6f);
    for (int i = 0; i < 3; i++)
        assert_float_equal(y[i], (x[i] - 3) / sqrtf(14.0f / 3 + 1e-5f), 1e-6f);
    assert_ok(small_forward(&s, x, y, false, &error));
    for (int i = 0; i < 3; i++)
        assert_float_equal(y[i], (x[i] - 0.3f) / sqrtf(1.6f + 1e-5f), 1e-6f);
    guarded_free(s.workspace, s.layer.forward_workspace_bytes);
}

/* A mean a million times the standard deviation takes no more digits than f32 has. */
static void far_from_zero(void **state) {
    (void)state;
    dv_batch_norm_options options = {1e-5f, 0.1f, false, false};
    small s;
    float x[2000], y[2000];
    small_init(&s, &options, 1000, 2);
    for (size_t i = 0; i < 1000; i++) {
        x[2 * i] = 1e6f + (float)(i % 2);
        x[2 * i + 1] = -3;
    }
    assert_ok(small_forward(&s, x, y, true, &error));
    for (size_t i = 0; i < 1000; i++) {
        assert_float_equal(y[2 * i], (i % 2 ? 1.0f : -1.0f), 1e-4f);
        assert_float_equal(y[2 * i + 1], 0, 1e-6f);
    }
    guarded_free(s.workspace, s.layer.forward_workspace_bytes);
}

static void values_that_are_not_finite(void **state) {
    (void)state;
    dv_batch_norm_options options = {1e-5f, 0.1f, false, false};
    static const float bad[] = {NAN, INFINITY, -INFINITY, 3e38f};
    for (size_t b = 0; b < 4; b++)
        for (size_t i = 0; i < 9; i += 4) {
            small s;
            float x[9] = {0}, y[9];
            small_init(&s, &options, 3, 3);
            x[i] = bad[b];
            assert_fails(small_forward(&s, x, y, true, &error), DV_ERROR_NONFINITE, "channel");
            assert_true(s.mean[i % 3] == 0 && s.variance[i % 3] == 1);
            s.variance[1] = NAN;
            assert_fails(small_forward(&s, x, y, false, &error), DV_ERROR_NONFINITE, "channel 1");
            guarded_free(s.workspace, s.layer.forward_workspace_bytes);
        }
}

static void refuses(void **state) {
    (void)state;
    dv_batch_norm_options options = {1e-5f, 0.1f, false, false};
    small s;
    float x[3] = {1, 2, 3}, y[3];
    small_init(&s, &options, 1, 3);
    assert_fails(small_forward(&s, x, y, true, &error), DV_ERROR_UNSUPPORTED, "larger batch");
    guarded_free(s.workspace, s.layer.forward_workspace_bytes);

    layer_case c = with(&shapes[3], &options);
    options.epsilon = 0;
    check_refused(&c, DV_ERROR_OPTION, "epsilon is 0");
    options = (dv_batch_norm_options){1e-5f, 1.5f, false, false};
    check_refused(&c, DV_ERROR_OPTION, "momentum is 1.5");
    options = (dv_batch_norm_options){1e-5f, 0.1f, true, false};
    check_refused(&c, DV_ERROR_ARGUMENT, "1 inputs: it takes 2");
    c.input_count = 2;
    c.inputs[1].sides[1] = 9;
    check_refused(&c, DV_ERROR_ARGUMENT, "adds [3, 5, 9, 3] to [3, 5, 4, 3]");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passes_all_checks),          cmocka_unit_test(passes_on_large_shapes),
        cmocka_unit_test(frozen_passes_all_checks),   cmocka_unit_test(frozen_is_inference),
        cmocka_unit_test(recomputes_in_steps),        cmocka_unit_test(recomputed_by_bits_alone),
        cmocka_unit_test(statistics_are_pytorchs),    cmocka_unit_test(far_from_zero),
        cmocka_unit_test(values_that_are_not_finite), cmocka_unit_test(refuses),
    };
    return cmocka_run_group_tests_name("batch norm", tests, NULL, NULL);
}
