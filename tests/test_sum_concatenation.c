/* Sum and concatenation: gradients, many inputs, shapes that do not fit. */
#include "gradient.h"

static const dv_map maps[] = {
    {DV_F32, DV_NHWC, 5, 17, 0, {0}},      {DV_F32, DV_NHWC, 2, 1, 1, {7}},     {DV_F32, DV_NHWC, 3, 3, 2, {5, 4}},
    {DV_F32, DV_NHWC, 2, 3, 3, {2, 3, 5}}, {DV_F32, DV_NHWC, 2, 64, 2, {2, 3}}, {DV_F32, DV_NHWC, 1, 300, 1, {2}},
};
enum { MAPS = sizeof maps / sizeof *maps };

static void sum_passes_all_checks(void **state) {
    (void)state;
    for (size_t i = 0; i < MAPS; i++)
        for (size_t count = 2; count <= 4; count++)
            check_layer(&(layer_case){.kind = &dv_sum,
                                      .input_count = count,
                                      .inputs = {maps[i], maps[i], maps[i], maps[i]},
                                      .step = 0x1p-4f});
    dv_map large = {DV_F32, DV_NHWC, 3, 17, 2, {31, 30}};
    check_layer_modes(&(layer_case){.kind = &dv_sum, .input_count = 2, .inputs = {large, large}});
}

/* More inputs than are added at once. */
static void sums_many(void **state) {
    (void)state;
    enum { COUNT = 19 };
    dv_map shapes[COUNT];
    float values[COUNT][5], output[5];
    const void *inputs[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        shapes[i] = (dv_map){DV_F32, DV_NHWC, 1, 5, 0, {0}};
        inputs[i] = values[i];
        for (size_t c = 0; c < 5; c++)
            values[i][c] = (float)(i * c);
    }
    dv_layer layer = {.kind = &dv_sum, .name = "tested", .input_count = COUNT, .inputs = shapes};
    assert_ok(dv_sum.infer(&layer, &error));
    dv_forward call = {.images = 1, .inputs = inputs, .output = output};
    assert_ok(dv_sum.forward(&layer, &call, &error));
    for (size_t c = 0; c < 5; c++)
        assert_true(output[c] == (float)(c * 171));
}

static void concatenation_passes_all_checks(void **state) {
    (void)state;
    static const size_t channels[] = {1, 3, 17, 40};
    for (size_t i = 0; i < MAPS; i++)
        for (size_t count = 1; count <= 4; count++) {
            layer_case c = {.kind = &dv_concatenation, .input_count = count, .step = 0x1p-4f};
            for (size_t k = 0; k < count; k++) {
                c.inputs[k] = maps[i];
                c.inputs[k].channels = channels[(k + i) % 4];
            }
            check_layer(&c);
        }
}

static void concatenates(void **state) {
    (void)state;
    dv_map shapes[] = {{DV_F32, DV_NHWC, 1, 2, 1, {2}}, {DV_F32, DV_NHWC, 1, 1, 1, {2}}};
    float a[] = {1, 2, 3, 4}, b[] = {5, 6}, output[6], expected[] = {1, 2, 5, 3, 4, 6};
    dv_layer layer = {.kind = &dv_concatenation, .name = "tested", .input_count = 2, .inputs = shapes};
    assert_ok(dv_concatenation.infer(&layer, &error));
    dv_forward call = {.images = 1, .inputs = (const void *[]){a, b}, .output = output};
    assert_ok(dv_concatenation.forward(&layer, &call, &error));
    assert_memory_equal(output, expected, sizeof expected);
}

static void refuses(void **state) {
    (void)state;
    layer_case c = {.kind = &dv_sum, .input_count = 2, .inputs = {maps[2], maps[2]}};
    c.inputs[1].channels = 4;
    check_refused(&c, DV_ERROR_ARGUMENT, "adds [3, 5, 4, 4] to [3, 5, 4, 3]");
    c.inputs[1].images = 4;
    check_refused(&c, DV_ERROR_ARGUMENT, "one type and batch");
    c.input_count = 1;
    check_refused(&c, DV_ERROR_ARGUMENT, "1 inputs: it takes at least 2");
    layer_case joined = {.kind = &dv_concatenation, .input_count = 2, .inputs = {maps[2], maps[2]}};
    joined.inputs[1].sides[0] = 6;
    check_refused(&joined, DV_ERROR_ARGUMENT, "joins [3, 6, 4, 3] to [3, 5, 4, 3]");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sum_passes_all_checks),
        cmocka_unit_test(sums_many),
        cmocka_unit_test(concatenation_passes_all_checks),
        cmocka_unit_test(concatenates),
        cmocka_unit_test(refuses),
    };
    return cmocka_run_group_tests_name("sum and concatenation", tests, NULL, NULL);
}
