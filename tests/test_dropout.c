/* Dropout: gradients, how many are dropped, and which. */
#include "gradient.h"

static void passes_all_checks(void **state) {
    (void)state;
    static const dv_map maps[] = {
        {DV_F32, DV_NHWC, 5, 17, 0, {0}},      {DV_F32, DV_NHWC, 2, 1, 1, {7}},     {DV_F32, DV_NHWC, 3, 3, 2, {5, 4}},
        {DV_F32, DV_NHWC, 2, 3, 3, {2, 3, 5}}, {DV_F32, DV_NHWC, 2, 64, 2, {2, 3}}, {DV_F32, DV_NHWC, 1, 300, 1, {2}},
    };
    static const float probabilities[] = {0, 0.1f, 0.5f, 0.9f};
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++)
        for (size_t p = 0; p < 4; p++) {
            dv_dropout_options options = {probabilities[p]};
            check_layer(&(layer_case){
                .kind = &dv_dropout, .options = &options, .input_count = 1, .inputs = {maps[i]}, .step = 0x1p-4f});
        }
}

static void passes_on_large_shapes(void **state) {
    (void)state;
    dv_dropout_options options = {0.3f};
    layer_case c = {.kind = &dv_dropout, .options = &options, .input_count = 1};
    c.inputs[0] = (dv_map){DV_F32, DV_NHWC, 3, 17, 2, {31, 30}};
    check_layer_modes(&c);
}

enum { IMAGES = 4, CHANNELS = 25000 };

/* Ones through dropout in training. */
static void drop_ones(float probability, uint64_t step, float *output, bool training) {
    static float ones[IMAGES * CHANNELS];
    static uint8_t saved[IMAGES * (CHANNELS / 8 + 64)];
    dv_dropout_options options = {probability};
    dv_map map = {DV_F32, DV_NHWC, IMAGES, CHANNELS, 0, {0}};
    dv_layer layer = {.kind = &dv_dropout, .name = "tested", .options = &options, .input_count = 1, .inputs = &map};
    for (size_t i = 0; i < IMAGES * CHANNELS; i++)
        ones[i] = 1;
    assert_ok(dv_dropout.infer(&layer, &error));
    assert_ok(dv_dropout.prepare(&layer, &error));
    assert_true(layer.saved_bytes <= sizeof saved);
    dv_forward call = {
        .images = IMAGES, .inputs = (const void *[]){ones}, .output = output, .saved = saved, .training = training};
    call.step = step;
    assert_ok(dv_dropout.forward(&layer, &call, &error));
}

/* As many as asked for, within five standard deviations; what is left makes up for them. */
static void drops_as_many_as_asked(void **state) {
    (void)state;
    static float output[IMAGES * CHANNELS];
    static const float probabilities[] = {0, 0.01f, 0.25f, 0.5f, 0.99f};
    for (size_t p = 0; p < 5; p++) {
        double probability = (double)probabilities[p], dropped = 0;
        drop_ones(probabilities[p], 1, output, true);
        for (size_t i = 0; i < IMAGES * CHANNELS; i++)
            if (output[i] == 0)
                dropped++;
            else
                assert_float_equal(output[i], 1 / (1 - probabilities[p]), 1e-6f);
        double spread = sqrt(IMAGES * CHANNELS * probability * (1 - probability));
        assert_true(fabs(dropped - probability * IMAGES * CHANNELS) <= 5 * spread);
    }
    drop_ones(0.5f, 1, output, false);
    for (size_t i = 0; i < IMAGES * CHANNELS; i++)
        assert_true(output[i] == 1);
}

/* Which ones changes with the step and with the image. */
static void draws_anew(void **state) {
    (void)state;
    static float first[IMAGES * CHANNELS], second[IMAGES * CHANNELS];
    size_t same_step = 0, same_image = 0;
    drop_ones(0.5f, 1, first, true);
    drop_ones(0.5f, 2, second, true);
    for (size_t i = 0; i < CHANNELS; i++) {
        same_step += first[i] == second[i];
        same_image += first[i] == first[CHANNELS + i];
    }
    assert_in_range(same_step, CHANNELS * 45 / 100, CHANNELS * 55 / 100);
    assert_in_range(same_image, CHANNELS * 45 / 100, CHANNELS * 55 / 100);
}

static void refuses(void **state) {
    (void)state;
    dv_dropout_options options = {1};
    layer_case c = {.kind = &dv_dropout, .options = &options, .input_count = 1};
    c.inputs[0] = (dv_map){DV_F32, DV_NHWC, 3, 17, 0, {0}};
    check_refused(&c, DV_ERROR_OPTION, "probability is 1");
    options.probability = NAN;
    check_refused(&c, DV_ERROR_OPTION, "probability");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passes_all_checks),
        cmocka_unit_test(passes_on_large_shapes),
        cmocka_unit_test(drops_as_many_as_asked),
        cmocka_unit_test(draws_anew),
        cmocka_unit_test(refuses),
    };
    return cmocka_run_group_tests_name("dropout", tests, NULL, NULL);
}
