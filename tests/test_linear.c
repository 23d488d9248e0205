/* Linear: gradients, and errors. */
#include "gradient.h"

static void passes_all_checks(void **state) {
    (void)state;
    static const size_t shapes[][3] = {{1, 1, 1}, {5, 3, 17}, {9, 17, 4}, {70, 3, 2}, {4, 64, 10}};
    for (size_t i = 0; i < 10; i++) {
        const size_t *shape = shapes[i / 2];
        dv_linear_options options = {.channels = shape[2], .bias = i % 2};
        layer_case c = {
            .kind = &dv_linear, .options = &options, .input_count = 1, .step = 0x1p-4f, .planned_order = true};
        c.inputs[0] = (dv_map){DV_F32, DV_NHWC, shape[0], shape[1], 0, {0}};
        check_layer(&c);
    }
}

static void passes_on_large_shapes(void **state) {
    (void)state;
    static const size_t shapes[][3] = {{130, 300, 65}, {3, 300, 1000}, {33, 129, 257}};
    for (size_t i = 0; i < 3; i++) {
        dv_linear_options options = {.channels = shapes[i][2], .bias = true};
        layer_case c = {.kind = &dv_linear, .options = &options, .input_count = 1, .planned_order = true};
        c.inputs[0] = (dv_map){DV_F32, DV_NHWC, shapes[i][0], shapes[i][1], 0, {0}};
        check_layer_modes(&c);
    }
}

/* By hand: [1 2] times [[3 4] [5 6] [7 8]]' plus [1 2 3]. */
static void multiplies(void **state) {
    (void)state;
    dv_linear_options options = {.channels = 3, .bias = true};
    dv_map map = {DV_F32, DV_NHWC, 1, 2, 0, {0}};
    dv_layer layer = {.kind = &dv_linear, .name = "tested", .options = &options, .input_count = 1, .inputs = &map};
    float x[] = {1, 2}, weight[] = {3, 4, 5, 6, 7, 8}, bias[] = {1, 2, 3}, y[3];
    assert_ok(dv_linear.infer(&layer, &error));
    assert_ok(dv_linear.prepare(&layer, &error));
    dv_layer_arrays arrays = {.parameters = {weight, bias}};
    void *workspace = aligned_alloc(64, layer.forward_workspace_bytes + 64);
    dv_forward call = {
        .images = 1, .arrays = &arrays, .inputs = (const void *[]){x}, .output = y, .workspace = workspace};
    assert_ok(dv_linear.forward(&layer, &call, &error));
    assert_true(y[0] == 12 && y[1] == 19 && y[2] == 26);
    dv_linear.destroy(&layer);
    free(workspace);
}

static void refuses(void **state) {
    (void)state;
    dv_linear_options options = {.channels = 3};
    layer_case sides = {.kind = &dv_linear, .options = &options, .input_count = 1};
    sides.inputs[0] = (dv_map){DV_F32, DV_NHWC, 1, 2, 2, {4, 5}};
    check_refused(&sides, DV_ERROR_ARGUMENT, "input [1, 4, 5, 2] has sides");
    sides.inputs[0].rank = 0;
    options.channels = 0;
    check_refused(&sides, DV_ERROR_OPTION, "0 output channels");
    sides.options = NULL;
    check_refused(&sides, DV_ERROR_ARGUMENT, "options are missing");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passes_all_checks),
        cmocka_unit_test(passes_on_large_shapes),
        cmocka_unit_test(multiplies),
        cmocka_unit_test(refuses),
    };
    return cmocka_run_group_tests_name("linear", tests, NULL, NULL);
}
