/* ReLU: gradients, masks, and what it does to special values. */
#include "gradient.h"

static void passes_all_checks(void **state) {
    (void)state;
    static const dv_map maps[] = {
        {DV_F32, DV_NHWC, 5, 17, 0, {0}},      {DV_F32, DV_NHWC, 2, 1, 1, {7}},     {DV_F32, DV_NHWC, 3, 3, 2, {5, 4}},
        {DV_F32, DV_NHWC, 2, 3, 3, {2, 3, 5}}, {DV_F32, DV_NHWC, 2, 64, 2, {2, 3}},
    };
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++)
        check_layer(&(layer_case){.kind = &dv_relu, .input_count = 1, .inputs = {maps[i]}});
}

static void passes_on_large_shapes(void **state) {
    (void)state;
    static const dv_map maps[] = {{DV_F32, DV_NHWC, 3, 300, 2, {9, 7}},
                                  {DV_F32, DV_NHWC, 1, 17, 2, {31, 33}},
                                  {DV_F32, DV_NHWC, 70, 3, 1, {100}}};
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++)
        check_layer_modes(&(layer_case){.kind = &dv_relu, .input_count = 1, .inputs = {maps[i]}});
}

/* NaN stays, so that someone notices; -0 becomes 0; nothing of that is positive. */
static void special_values(void **state) {
    (void)state;
    static const float values[] = {NAN, -NAN, INFINITY, -INFINITY, -0.0f, 0.0f, 1e-45f, -1e-45f};
    dv_map map = {DV_F32, DV_NHWC, 1, 8, 0, {0}};
    dv_layer layer = {.kind = &dv_relu, .name = "tested", .input_count = 1, .inputs = &map, .input_need_mask = ~0u};
    assert_ok(dv_relu.infer(&layer, &error));
    for (int isa = 0; isa < DV_ISA_COUNT; isa++) {
        float output[8];
        uint8_t mask[64];
        if (!dv_isa_available((dv_isa)isa))
            continue;
        dv_isa before = dv_isa_current();
        dv_isa_force((dv_isa)isa);
        dv_forward call = {
            .images = 1, .inputs = (const void *[]){values}, .output = output, .output_mask = mask, .training = true};
        assert_ok(dv_relu.forward(&layer, &call, &error));
        assert_true(isnan(output[0]) && isnan(output[1]) && isinf(output[2]) && output[6] > 0);
        for (size_t i = 3; i < 8; i++)
            assert_true(i == 6 || dv_float_bits(output[i]) == 0);
        assert_int_equal(mask[0], 1 << 2 | 1 << 6);
        dv_isa_force(before);
    }
}

static void refuses(void **state) {
    (void)state;
    layer_case two = {.kind = &dv_relu, .input_count = 2, .inputs = {{DV_F32, DV_NHWC, 1, 8, 0, {0}}}};
    two.inputs[1] = two.inputs[0];
    check_refused(&two, DV_ERROR_ARGUMENT, "2 inputs: it takes 1");
    layer_case first = {.kind = &dv_relu, .input_count = 1, .inputs = {{DV_F32, DV_NCHW, 1, 8, 0, {0}}}};
    check_refused(&first, DV_ERROR_UNSUPPORTED, "channels last");
    layer_case half = {.kind = &dv_relu, .input_count = 1, .inputs = {{DV_F16, DV_NHWC, 1, 8, 0, {0}}}};
    check_refused(&half, DV_ERROR_UNSUPPORTED, "f32 or bf16");
    layer_case none = {.kind = &dv_relu, .input_count = 1, .inputs = {{DV_F32, DV_NHWC, 0, 8, 0, {0}}}};
    check_refused(&none, DV_ERROR_UNSUPPORTED, "at least 1");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passes_all_checks),
        cmocka_unit_test(passes_on_large_shapes),
        cmocka_unit_test(special_values),
        cmocka_unit_test(refuses),
    };
    return cmocka_run_group_tests_name("relu", tests, NULL, NULL);
}
