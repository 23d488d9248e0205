/* Transposed convolution: every rank and option against plain loops, every way of running it, its messages. */
#include "convolutions.h"

#define MAP1(n, c, w)                   \
    {                                   \
        {                               \
            DV_F32, DV_NHWC, n, c, 1, { \
                w                       \
            }                           \
        }                               \
    }
#define MAP2(n, c, h, w)                \
    {                                   \
        {                               \
            DV_F32, DV_NHWC, n, c, 2, { \
                h, w                    \
            }                           \
        }                               \
    }
#define MAP3(n, c, d, h, w)             \
    {                                   \
        {                               \
            DV_F32, DV_NHWC, n, c, 3, { \
                d, h, w                 \
            }                           \
        }                               \
    }

typedef struct transposed_case {
    dv_map input[1];
    dv_convolution_options options;
} transposed_case;

static const transposed_case cases[] = {
    {MAP1(5, 3, 17), {8, {{3}, {1}, {1}, {1}}, 1, true, {0}, DV_INITIALISATION_HE}},
    {MAP1(1, 17, 9), {5, {{5}, {3}, {0}, {2}}, 1, false, {2}, DV_INITIALISATION_HE}},
    {MAP1(5, 8, 9), {8, {{4}, {2}, {1}, {1}}, 8, true, {1}, DV_INITIALISATION_HE}},
    {MAP1(2, 4, 5), {3, {{3}, {1}, {2}, {3}}, 1, true, {2}, DV_INITIALISATION_HE}},
    {MAP2(5, 17, 7, 9), {16, {{1, 1}, {1, 1}, {0, 0}, {1, 1}}, 1, false, {0}, DV_INITIALISATION_HE}},
    {MAP2(5, 16, 4, 5), {8, {{2, 2}, {2, 2}, {0, 0}, {1, 1}}, 1, true, {0}, DV_INITIALISATION_HE}},
    {MAP2(5, 8, 5, 6), {8, {{3, 3}, {2, 2}, {1, 1}, {1, 1}}, 1, true, {1, 1}, DV_INITIALISATION_HE}},
    {MAP2(2, 16, 5, 4), {3, {{4, 4}, {2, 2}, {1, 1}, {1, 1}}, 1, true, {0}, DV_INITIALISATION_HE}},
    {MAP2(2, 16, 5, 4), {12, {{3, 2}, {2, 3}, {0, 1}, {2, 1}}, 1, false, {1, 2}, DV_INITIALISATION_HE}},
    {MAP2(1, 1, 1, 1), {1, {{3, 3}, {1, 1}, {0, 0}, {1, 1}}, 1, true, {0}, DV_INITIALISATION_HE}},
    {MAP2(1, 3, 4, 4), {2, {{1, 1}, {3, 3}, {0, 0}, {1, 1}}, 1, true, {2, 2}, DV_INITIALISATION_HE}},
    {MAP2(2, 32, 21, 18), {16, {{3, 3}, {1, 1}, {1, 1}, {1, 1}}, 1, true, {0}, DV_INITIALISATION_HE}},
    {MAP2(1, 16, 22, 25), {32, {{3, 3}, {1, 1}, {0, 2}, {1, 1}}, 1, false, {0}, DV_INITIALISATION_HE}},
    {MAP2(5, 12, 7, 7), {18, {{3, 3}, {1, 1}, {1, 1}, {1, 1}}, 3, true, {0}, DV_INITIALISATION_HE}},
    {MAP2(5, 16, 5, 7), {16, {{4, 4}, {2, 2}, {1, 1}, {1, 1}}, 16, true, {0}, DV_INITIALISATION_HE}},
    {MAP2(2, 3, 5, 7), {6, {{3, 3}, {2, 1}, {1, 1}, {1, 2}}, 3, false, {1, 0}, DV_INITIALISATION_HE}},
    {MAP3(1, 8, 3, 4, 5), {3, {{3, 3, 3}, {2, 2, 2}, {1, 1, 1}, {1, 1, 1}}, 1, true, {1, 1, 1}, DV_INITIALISATION_HE}},
    {MAP3(5, 8, 3, 4, 2),
     {16, {{2, 3, 1}, {1, 2, 3}, {1, 0, 0}, {1, 2, 1}}, 1, false, {0, 1, 2}, DV_INITIALISATION_HE}},
    {MAP3(2, 6, 2, 3, 3), {6, {{3, 3, 3}, {2, 2, 2}, {1, 1, 1}, {1, 1, 1}}, 6, true, {0}, DV_INITIALISATION_HE}},
    /* elements of the window that fall on padding only, and sums that bf16 gets wrong: as in test_convolution */
    {MAP1(3, 16, 1), {16, {{3}, {2}, {1}, {1}}, 1, true, {0}, DV_INITIALISATION_HE}},
    {MAP1(2, 16, 1), {1, {{1}, {3}, {0}, {1}}, 1, false, {0}, DV_INITIALISATION_HE}},
    {MAP2(5, 16, 1, 1), {32, {{3, 3}, {2, 2}, {1, 1}, {1, 1}}, 1, false, {0}, DV_INITIALISATION_HE}},
    {MAP2(2, 8, 1, 2), {16, {{5, 5}, {3, 3}, {2, 3}, {1, 1}}, 1, true, {0}, DV_INITIALISATION_HE}},
    {MAP3(2, 16, 1, 1, 1), {16, {{3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}}, 1, true, {0}, DV_INITIALISATION_HE}},
    {MAP3(1, 32, 2, 1, 2), {16, {{3, 5, 3}, {3, 3, 3}, {1, 2, 1}, {1, 1, 1}}, 1, false, {0}, DV_INITIALISATION_HE}},
    {MAP3(2, 3, 4, 3, 5), {17, {{1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}}, 1, true, {0}, DV_INITIALISATION_HE}},
};

enum { CASES = sizeof cases / sizeof *cases };

static layer_case case_of(const transposed_case *c) {
    layer_case of = {.kind = &dv_transposed_convolution, .options = &c->options, .input_count = 1, .step = 0.5f};
    of.inputs[0] = c->input[0];
    of.library_order = true;
    return of;
}

static void values_and_gradients(void **state) {
    (void)state;
    for (size_t i = 0; i < CASES; i++) {
        layer_case of = case_of(&cases[i]);
        check_convolution(&of);
    }
}

/* Accumulating, packed inputs, unwanted gradients, threads: with the batch in slices. */
static void every_way(void **state) {
    (void)state;
    static const size_t some[] = {0, 6, 11, 13, 14, 16};
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        layer_case of = case_of(&cases[some[i]]);
        check_layer(&of);
        dv_convolution_force.slice_images = 1;
        check_layer_modes(&of);
        dv_convolution_force.slice_images = 0;
    }
}

/* Output side: (side - 1) stride - 2 padding + dilation (kernel - 1) + output_padding + 1. */
static void parameters(void **state) {
    (void)state;
    transposed_case c = {MAP2(2, 12, 7, 9),
                         {18, {{3, 5}, {1, 2}, {1, 0}, {1, 1}}, 3, true, {0, 1}, DV_INITIALISATION_HE}};
    dv_layer layer = {.kind = &dv_transposed_convolution, .name = "up", .options = &c.options, .input_count = 1};
    layer.inputs = c.input;
    assert_ok(dv_transposed_convolution.infer(&layer, &error));
    static const size_t shape[] = {12, 6, 3, 5};
    assert_memory_equal(layer.parameters[0].shape, shape, sizeof shape);
    assert_int_equal(layer.parameters[0].count, 12 * 6 * 3 * 5);
    assert_int_equal(layer.parameters[0].fan, 12 * 3 * 5);
    assert_int_equal(layer.parameters[1].count, 18);
    assert_int_equal(layer.parameters[1].fan, 6 * 3 * 5);
    assert_int_equal(layer.output.sides[0], 7);
    assert_int_equal(layer.output.sides[1], 22);
    assert_int_equal(layer.output.channels, 18);
}

static void refused(transposed_case c, dv_status status, const char *words) {
    layer_case of = case_of(&c);
    check_refused(&of, status, words);
}

static void messages(void **state) {
    (void)state;
    const transposed_case fine = {MAP2(2, 12, 7, 9),
                                  {18, {{3, 3}, {2, 2}, {1, 1}, {1, 1}}, 1, false, {0}, DV_INITIALISATION_HE}};
    transposed_case c = fine;
    c.options.groups = 5;
    refused(c, DV_ERROR_OPTION, "5 groups do not divide 12 input and 18 output channels");
    c = fine, c.options.output_padding[1] = 2;
    refused(c, DV_ERROR_ARGUMENT, "output padding 2 of side 2 must be smaller than its stride 2 or its dilation 1");
    c = fine, c.options.output_padding[0] = 5, c.options.window.dilation[0] = 7, c.options.window.padding[0] = 3;
    refused(c, DV_ERROR_UNSUPPORTED, "output padding 5 of side 1 must be smaller than padding 3 and stride 2 together");
    c = fine, c.options.window.padding[0] = 9;
    refused(c, DV_ERROR_ARGUMENT, "padding 9 takes away all 15 elements of side 1 of the output");
    c = fine, c.options.window.stride[0] = 0;
    refused(c, DV_ERROR_OPTION, "stride 0 along side 1");
    c = fine, c.input[0].rank = 0;
    refused(c, DV_ERROR_UNSUPPORTED, "spatial dimensions");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_and_gradients),
        cmocka_unit_test(every_way),
        cmocka_unit_test(parameters),
        cmocka_unit_test(messages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
