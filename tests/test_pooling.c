/* Pooling: gradients for every option and rank, PyTorch's rules for sides, divisors, equals and NaN. */
#include "gradient.h"

typedef struct window_case {
    dv_map map;
    size_t kernel, stride, padding;
} window_case;

static const window_case windows[] = {
    {{DV_F32, DV_NHWC, 2, 3, 1, {9}}, 2, 2, 0},       {{DV_F32, DV_NHWC, 2, 1, 1, {8}}, 3, 1, 1},
    {{DV_F32, DV_NHWC, 2, 3, 2, {6, 5}}, 3, 2, 1},    {{DV_F32, DV_NHWC, 1, 17, 2, {4, 4}}, 2, 2, 0},
    {{DV_F32, DV_NHWC, 1, 2, 2, {7, 8}}, 2, 3, 1},    {{DV_F32, DV_NHWC, 1, 3, 2, {7, 6}}, 5, 2, 2},
    {{DV_F32, DV_NHWC, 1, 3, 3, {4, 3, 5}}, 2, 1, 0}, {{DV_F32, DV_NHWC, 1, 2, 3, {5, 4, 4}}, 3, 2, 1},
    {{DV_F32, DV_NHWC, 1, 2, 3, {3, 4, 3}}, 1, 2, 0},
};
enum { WINDOWS = sizeof windows / sizeof *windows };

static dv_pooling_options options_of(const window_case *w, bool ceil, bool count_padding) {
    return (dv_pooling_options){dv_window_square(w->kernel, w->stride, w->padding), ceil, count_padding};
}

static void max_passes_all_checks(void **state) {
    (void)state;
    for (size_t i = 0; i < WINDOWS; i++)
        for (int ceil = 0; ceil < 2; ceil++) {
            dv_pooling_options options = options_of(&windows[i], ceil, false);
            check_layer(&(layer_case){
                .kind = &dv_max_pooling, .options = &options, .input_count = 1, .inputs = {windows[i].map}});
        }
}

static void average_passes_all_checks(void **state) {
    (void)state;
    for (size_t i = 0; i < WINDOWS; i++)
        for (int variant = 0; variant < 4; variant++) {
            dv_pooling_options options = options_of(&windows[i], variant & 1, variant & 2);
            check_layer(&(layer_case){.kind = &dv_average_pooling,
                                      .options = &options,
                                      .input_count = 1,
                                      .inputs = {windows[i].map},
                                      .step = 0x1p-4f});
        }
}

static void global_average_passes_all_checks(void **state) {
    (void)state;
    static const dv_map maps[] = {
        {DV_F32, DV_NHWC, 5, 17, 0, {0}},      {DV_F32, DV_NHWC, 2, 1, 1, {7}},      {DV_F32, DV_NHWC, 3, 3, 2, {5, 4}},
        {DV_F32, DV_NHWC, 2, 3, 3, {2, 3, 5}}, {DV_F32, DV_NHWC, 2, 300, 2, {9, 9}}, {DV_F32, DV_NHWC, 1, 64, 1, {3}},
    };
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++)
        check_layer(
            &(layer_case){.kind = &dv_global_average_pooling, .input_count = 1, .inputs = {maps[i]}, .step = 0x1p-4f});
}

/* Many channels: several tiles, and bytes whose halves are of different channels. */
static void many_channels(void **state) {
    (void)state;
    static const size_t channels[] = {64, 255, 256, 257, 300, 515};
    for (size_t i = 0; i < 6; i++)
        for (size_t kernel = 3; kernel <= 5; kernel += 2) {
            dv_pooling_options options = {dv_window_square(kernel, 2, 1), false, true};
            layer_case c = {.kind = &dv_max_pooling, .options = &options, .input_count = 1};
            c.inputs[0] = (dv_map){DV_F32, DV_NHWC, 2, channels[i], 2, {8, 7}};
            check_layer_modes(&c);
            c.kind = &dv_average_pooling;
            check_layer_modes(&c);
        }
}

/* Sides of outputs by PyTorch's rule: with ceil, a last window counts only if it starts before the padding
 * behind the input. Worked out by hand. */
static void sides_are_pytorchs(void **state) {
    (void)state;
    static const struct {
        size_t input, kernel, stride, padding, floor, ceil;
    } cases[] = {
        {112, 3, 2, 1, 56, 57}, {5, 2, 2, 0, 2, 3}, {6, 3, 2, 1, 3, 4}, {7, 3, 2, 1, 4, 4},
        {5, 2, 3, 1, 2, 2},     {4, 2, 3, 1, 2, 2}, {8, 2, 3, 0, 3, 3}, {1, 1, 1, 0, 1, 1},
        {10, 4, 4, 2, 3, 3},    {9, 4, 4, 2, 3, 3}, {3, 3, 7, 1, 1, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int ceil = 0; ceil < 2; ceil++) {
            dv_pooling_options options = {dv_window_square(cases[i].kernel, cases[i].stride, cases[i].padding), ceil,
                                          true};
            dv_map map = {DV_F32, DV_NHWC, 1, 1, 1, {cases[i].input}};
            dv_layer layer = {.kind = &dv_max_pooling, .name = "tested", .options = &options, .input_count = 1};
            layer.inputs = &map;
            assert_ok(dv_max_pooling.infer(&layer, &error));
            assert_int_equal(layer.output.sides[0], ceil ? cases[i].ceil : cases[i].floor);
        }
}

/* One row of one channel through a pooling layer; returns the output's length. */
static size_t pool_row(const dv_layer_kind *kind, const dv_pooling_options *options, const float *x, size_t length,
                       float *y, float *dx) {
    dv_map map = {DV_F32, DV_NHWC, 1, 1, 1, {length}};
    dv_layer layer = {.kind = kind, .name = "tested", .options = options, .input_count = 1, .inputs = &map};
    uint8_t saved[64];
    float ones[] = {1, 1, 1, 1, 1, 1, 1, 1};
    assert_ok(kind->infer(&layer, &error));
    if (kind->prepare)
        assert_ok(kind->prepare(&layer, &error));
    assert_true(layer.saved_bytes <= sizeof saved);
    dv_forward forward = {.images = 1, .inputs = (const void *[]){x}, .output = y, .saved = saved, .training = true};
    assert_ok(kind->forward(&layer, &forward, &error));
    dv_backward backward = {
        .images = 1, .diff_output = ones, .diff_inputs = (void *[]){dx}, .accumulate = (bool[]){false}, .saved = saved};
    assert_ok(kind->backward(&layer, &backward, &error));
    return layer.output.sides[0];
}

static void averages_are_pytorchs(void **state) {
    (void)state;
    /* The last window is 6, one element of padding and one beyond it: that one never counts. */
    float x[] = {1, 2, 3, 4, 5, 6}, y[8], dx[6];
    const float with[] = {1, 3, 5, 3}, without[] = {1.5f, 3, 5, 6};
    dv_pooling_options options = {dv_window_square(3, 2, 1), true, true};
    assert_int_equal(pool_row(&dv_average_pooling, &options, x, 6, y, dx), 4);
    for (size_t i = 0; i < 4; i++)
        assert_float_equal(y[i], with[i], 1e-6f);
    options.count_padding = false;
    assert_int_equal(pool_row(&dv_average_pooling, &options, x, 6, y, dx), 4);
    for (size_t i = 0; i < 4; i++)
        assert_float_equal(y[i], without[i], 1e-6f);
}

/* The first of equals, NaN over everything, minus infinity over padding; for every instruction set. */
static void winners_are_pytorchs(void **state) {
    (void)state;
    static const float rows[][6] = {
        {2, 2, 2, 1, 1, 1},
        {1, NAN, 3, 4, 5, 6},
        {-INFINITY, -INFINITY, -INFINITY, -1, -2, -INFINITY},
        {-0.0f, 0, -0.0f, NAN, NAN, 1},
    };
    static const float gradients[][6] = {
        {1, 1, 0, 1, 0, 0},
        {0, 2, 0, 0, 0, 1},
        {1, 0, 0, 2, 0, 0},
        {1, 0, 0, 1, 1, 0},
    };
    dv_isa before = dv_isa_current();
    dv_pooling_options options = {dv_window_square(3, 2, 1), false, true};
    for (int isa = 0; isa < DV_ISA_COUNT; isa++)
        for (size_t i = 0; i < 4 && dv_isa_available((dv_isa)isa); i++) {
            float y[8], dx[6];
            dv_isa_force((dv_isa)isa);
            assert_int_equal(pool_row(&dv_max_pooling, &options, rows[i], 6, y, dx), 3);
            for (size_t j = 0; j < 6; j++)
                if (dx[j] != gradients[i][j])
                    fail_msg("%s, row %zu: gradient %zu is %g, not %g", dv_isa_name((dv_isa)isa), i, j, (double)dx[j],
                             (double)gradients[i][j]);
        }
    dv_isa_force(before);
}

static void refuses(void **state) {
    (void)state;
    dv_pooling_options options = {dv_window_square(3, 2, 2), false, true};
    layer_case c = {.kind = &dv_max_pooling, .options = &options, .input_count = 1};
    c.inputs[0] = (dv_map){DV_F32, DV_NHWC, 1, 2, 2, {4, 5}};
    check_refused(&c, DV_ERROR_OPTION, "padding 2 along dimension 0: it must be at most half of the kernel's 3");
    options.window = dv_window_square(7, 2, 1);
    check_refused(&c, DV_ERROR_OPTION, "kernel 7 and padding 1 do not fit dimension 0 of input [1, 4, 5, 2]");
    options.window = dv_window_square(3, 0, 1);
    check_refused(&c, DV_ERROR_OPTION, "stride 0");
    options.window = dv_window_square(3, 1, 1);
    options.window.dilation[1] = 2;
    check_refused(&c, DV_ERROR_OPTION, "dilation 2");
    c.inputs[0] = (dv_map){DV_F32, DV_NHWC, 1, 2, 2, {40, 50}};
    options.window = dv_window_square(17, 1, 0);
    check_refused(&c, DV_ERROR_UNSUPPORTED, "windows of more than 256 pixels");
    c.inputs[0].rank = 0;
    check_refused(&c, DV_ERROR_UNSUPPORTED, "no sides to pool over");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(max_passes_all_checks),
        cmocka_unit_test(average_passes_all_checks),
        cmocka_unit_test(global_average_passes_all_checks),
        cmocka_unit_test(many_channels),
        cmocka_unit_test(sides_are_pytorchs),
        cmocka_unit_test(averages_are_pytorchs),
        cmocka_unit_test(winners_are_pytorchs),
        cmocka_unit_test(refuses),
    };
    return cmocka_run_group_tests_name("pooling", tests, NULL, NULL);
}
