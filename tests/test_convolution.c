/* Convolution: every rank and option against plain loops, every way of running it, and its messages. */
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

typedef struct convolution_case {
    dv_map input[1];
    dv_convolution_options options;
} convolution_case;

static const convolution_case cases[] = {
    /* one dimension */
    {MAP1(5, 3, 17), {8, {{3}, {1}, {1}, {1}}, 1, true, {0}, DV_INITIALISATION_HE}},
    {MAP1(1, 17, 31), {5, {{5}, {3}, {0}, {2}}, 1, false, {0}, DV_INITIALISATION_HE}},
    {MAP1(5, 8, 9), {8, {{3}, {2}, {1}, {1}}, 8, true, {0}, DV_INITIALISATION_HE}},
    {MAP1(5, 1, 7), {1, {{1}, {1}, {0}, {1}}, 1, false, {0}, DV_INITIALISATION_HE}},
    /* two: pointwise, strided, stems, sides that differ, what stride leaves over */
    {MAP2(5, 17, 7, 9), {16, {{1, 1}, {1, 1}, {0, 0}, {1, 1}}, 1, false, {0}, DV_INITIALISATION_HE}},
    {MAP2(5, 16, 8, 8), {24, {{1, 1}, {2, 2}, {0, 0}, {1, 1}}, 1, true, {0}, DV_INITIALISATION_HE}},
    {MAP2(1, 3, 23, 22), {17, {{7, 7}, {2, 2}, {3, 3}, {1, 1}}, 1, false, {0}, DV_INITIALISATION_HE}},
    {MAP2(5, 8, 9, 8), {8, {{3, 3}, {1, 1}, {1, 1}, {1, 1}}, 1, true, {0}, DV_INITIALISATION_HE}},
    {MAP2(5, 8, 9, 8), {8, {{3, 3}, {2, 2}, {1, 1}, {1, 1}}, 1, false, {0}, DV_INITIALISATION_HE}},
    {MAP2(2, 16, 13, 11), {16, {{3, 2}, {2, 3}, {0, 1}, {2, 1}}, 1, true, {0}, DV_INITIALISATION_HE}},
    {MAP2(1, 1, 5, 5), {1, {{5, 5}, {1, 1}, {0, 0}, {1, 1}}, 1, true, {0}, DV_INITIALISATION_HE}},
    {MAP2(2, 4, 3, 3), {4, {{1, 1}, {1, 1}, {2, 2}, {1, 1}}, 1, false, {0}, DV_INITIALISATION_HE}},
    {MAP2(2, 3, 10, 10), {4, {{2, 2}, {5, 5}, {0, 0}, {1, 1}}, 1, false, {0}, DV_INITIALISATION_HE}},
    {MAP2(4, 1, 12, 12), {3, {{1, 1}, {2, 2}, {0, 0}, {1, 1}}, 1, false, {0}, DV_INITIALISATION_HE}},
    {MAP2(4, 5, 12, 12), {9, {{1, 1}, {3, 3}, {0, 0}, {1, 1}}, 1, true, {0}, DV_INITIALISATION_HE}},
    {MAP2(2, 40, 12, 12), {32, {{3, 3}, {1, 1}, {2, 2}, {2, 2}}, 1, false, {0}, DV_INITIALISATION_HE}},
    /* by Winograd's algorithm where the processor has it: tiles over every edge, all paddings, in slices too */
    {MAP2(5, 16, 9, 8), {32, {{3, 3}, {1, 1}, {1, 1}, {1, 1}}, 1, true, {0}, DV_INITIALISATION_HE}},
    {MAP2(2, 32, 20, 23), {16, {{3, 3}, {1, 1}, {1, 1}, {1, 1}}, 1, false, {0}, DV_INITIALISATION_HE}},
    {MAP2(1, 16, 22, 25), {48, {{3, 3}, {1, 1}, {0, 2}, {1, 1}}, 1, true, {0}, DV_INITIALISATION_HE}},
    {MAP2(2, 48, 24, 18), {16, {{3, 3}, {1, 1}, {2, 0}, {1, 1}}, 1, false, {0}, DV_INITIALISATION_HE}},
    {MAP2(30, 16, 3, 4), {16, {{3, 3}, {1, 1}, {1, 1}, {1, 1}}, 1, true, {0}, DV_INITIALISATION_HE}},
    {MAP2(5, 16, 17, 16), {32, {{3, 3}, {2, 2}, {1, 1}, {1, 1}}, 1, true, {0}, DV_INITIALISATION_HE}},
    {MAP2(7, 32, 14, 13), {16, {{3, 3}, {2, 2}, {1, 1}, {1, 1}}, 1, false, {0}, DV_INITIALISATION_HE}},
    {MAP2(2, 16, 31, 34), {48, {{3, 3}, {2, 2}, {1, 1}, {1, 1}}, 1, true, {0}, DV_INITIALISATION_HE}},
    /* ... with channels that are no whole panels, in groups too */
    {MAP2(3, 3, 9, 10), {5, {{3, 3}, {1, 1}, {1, 1}, {1, 1}}, 1, true, {0}, DV_INITIALISATION_HE}},
    {MAP2(2, 5, 13, 12), {17, {{3, 3}, {2, 2}, {1, 1}, {1, 1}}, 1, false, {0}, DV_INITIALISATION_HE}},
    {MAP2(5, 17, 11, 9), {24, {{3, 3}, {1, 1}, {0, 2}, {1, 1}}, 1, true, {0}, DV_INITIALISATION_HE}},
    {MAP2(2, 24, 12, 14), {40, {{3, 3}, {2, 2}, {1, 1}, {1, 1}}, 1, true, {0}, DV_INITIALISATION_HE}},
    {MAP2(1, 40, 9, 13), {100, {{3, 3}, {1, 1}, {1, 1}, {1, 1}}, 1, false, {0}, DV_INITIALISATION_HE}},
    {MAP2(1, 100, 10, 7), {3, {{3, 3}, {1, 1}, {1, 1}, {1, 1}}, 1, true, {0}, DV_INITIALISATION_HE}},
    {MAP2(2, 1, 8, 9), {1, {{3, 3}, {2, 2}, {1, 1}, {1, 1}}, 1, true, {0}, DV_INITIALISATION_HE}},
    {MAP2(3, 48, 9, 8), {38, {{3, 3}, {1, 1}, {1, 1}, {1, 1}}, 2, true, {0}, DV_INITIALISATION_HE}},
    {MAP2(2, 51, 8, 9), {60, {{3, 3}, {2, 2}, {1, 1}, {1, 1}}, 3, false, {0}, DV_INITIALISATION_HE}},
    /* groups, depthwise, with a multiplier */
    {MAP2(5, 12, 7, 7), {18, {{3, 3}, {1, 1}, {1, 1}, {1, 1}}, 3, true, {0}, DV_INITIALISATION_HE}},
    {MAP2(3, 32, 9, 9), {32, {{3, 3}, {2, 2}, {1, 1}, {1, 1}}, 2, false, {0}, DV_INITIALISATION_HE}},
    {MAP2(5, 16, 9, 7), {16, {{3, 3}, {1, 1}, {1, 1}, {1, 1}}, 16, true, {0}, DV_INITIALISATION_HE}},
    {MAP2(1, 17, 9, 7), {17, {{5, 5}, {2, 2}, {2, 2}, {1, 1}}, 17, false, {0}, DV_INITIALISATION_HE}},
    {MAP2(2, 3, 9, 7), {6, {{3, 3}, {1, 1}, {1, 1}, {2, 2}}, 3, false, {0}, DV_INITIALISATION_HE}},
    /* three */
    {MAP3(1, 3, 5, 6, 7), {8, {{3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}}, 1, true, {0}, DV_INITIALISATION_HE}},
    {MAP3(5, 8, 4, 5, 6), {16, {{2, 3, 1}, {1, 2, 3}, {1, 0, 0}, {1, 2, 1}}, 1, false, {0}, DV_INITIALISATION_HE}},
    {MAP3(2, 6, 4, 4, 4), {6, {{3, 3, 3}, {2, 2, 2}, {1, 1, 1}, {1, 1, 1}}, 6, true, {0}, DV_INITIALISATION_HE}},
    {MAP3(2, 16, 3, 4, 4), {16, {{3, 3, 3}, {3, 3, 1}, {2, 1, 1}, {1, 1, 1}}, 1, true, {0}, DV_INITIALISATION_HE}},
    /* elements of the window that fall on padding only, at its ends and within: nobody writes their gradient */
    {MAP1(3, 16, 1), {16, {{3}, {2}, {1}, {1}}, 1, true, {0}, DV_INITIALISATION_HE}},
    {MAP1(2, 17, 2), {64, {{5}, {3}, {3}, {1}}, 1, false, {0}, DV_INITIALISATION_HE}},
    {MAP2(5, 16, 1, 1), {32, {{3, 3}, {2, 2}, {1, 1}, {1, 1}}, 1, false, {0}, DV_INITIALISATION_HE}},
    {MAP2(3, 64, 1, 1), {64, {{3, 3}, {1, 1}, {1, 1}, {1, 1}}, 1, false, {0}, DV_INITIALISATION_HE}},
    {MAP2(4, 8, 3, 1), {3, {{5, 7}, {1, 3}, {2, 4}, {1, 1}}, 1, true, {0}, DV_INITIALISATION_HE}},
    {MAP2(2, 3, 2, 2), {8, {{7, 7}, {2, 2}, {3, 3}, {1, 1}}, 1, false, {0}, DV_INITIALISATION_HE}},
    {MAP2(2, 16, 2, 3), {16, {{3, 3}, {1, 1}, {4, 4}, {4, 4}}, 2, true, {0}, DV_INITIALISATION_HE}},
    {MAP3(2, 16, 1, 1, 1), {16, {{3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}}, 1, true, {0}, DV_INITIALISATION_HE}},
    {MAP3(2, 16, 3, 1, 4), {17, {{1, 3, 3}, {2, 2, 2}, {0, 1, 2}, {1, 1, 1}}, 1, false, {0}, DV_INITIALISATION_HE}},
    /* one pixel and one channel: what is behind it is not to be read */
    {MAP1(3, 1, 1), {5, {{1}, {2}, {0}, {1}}, 1, false, {0}, DV_INITIALISATION_HE}},
    {MAP2(2, 1, 5, 2), {4, {{5, 1}, {2, 3}, {2, 0}, {1, 1}}, 1, true, {0}, DV_INITIALISATION_HE}},
    {MAP1(1, 1, 1), {64, {{2}, {3}, {1}, {1}}, 1, false, {0}, DV_INITIALISATION_HE}},
    /* channels that bf16 takes by twos are odd, and there are 30 pixels, and 60 */
    {MAP1(2, 8, 30), {31, {{1}, {1}, {0}, {1}}, 1, false, {0}, DV_INITIALISATION_HE}},
    {MAP2(1, 4, 6, 10), {5, {{1, 1}, {1, 1}, {0, 0}, {1, 1}}, 1, true, {0}, DV_INITIALISATION_HE}},
    /* more padding than a stride before the first of three sides */
    {MAP3(1, 4, 4, 5, 1), {12, {{4, 4, 2}, {2, 1, 1}, {3, 2, 1}, {1, 1, 1}}, 4, false, {0}, DV_INITIALISATION_HE}},
    {MAP3(2, 6, 4, 2, 2), {17, {{5, 1, 1}, {3, 1, 1}, {4, 0, 0}, {1, 1, 1}}, 1, true, {0}, DV_INITIALISATION_HE}},
};

enum { CASES = sizeof cases / sizeof *cases };

static layer_case case_of(const convolution_case *c) {
    layer_case of = {.kind = &dv_convolution, .options = &c->options, .input_count = 1, .step = 0.5f};
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

/* Those that it suits. */
static void winograd(void **state) {
    (void)state;
    for (size_t i = 0; i < CASES; i++) {
        layer_case of = case_of(&cases[i]);
        const dv_window *window = &cases[i].options.window;
        if (cases[i].input->rank == 2 && window->kernel[0] == 3 && window->kernel[1] == 3 && window->dilation[0] == 1)
            check_winograd(&of);
    }
}

/* Accumulating, packed inputs, unwanted gradients, threads: with the batch in slices. */
static void every_way(void **state) {
    (void)state;
    static const size_t some[] = {0, 4, 7, 16, 17, 22, 23, 35};
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        layer_case of = case_of(&cases[some[i]]);
        check_layer(&of);
        dv_convolution_force.slice_images = 1;
        check_layer_modes(&of);
        dv_convolution_force.slice_images = 0;
    }
}

/* Slices of two images, and what the cache decides for images of 5 MB, where a weight's gradient is a sum of a million.
 */
static void slices(void **state) {
    (void)state;
    convolution_case c = {MAP2(6, 8, 9, 9), {8, {{3, 3}, {1, 1}, {1, 1}, {1, 1}}, 1, true, {0}, DV_INITIALISATION_HE}};
    layer_case of = case_of(&c);
    dv_convolution_force.slice_images = 2;
    check_values(&of, DV_F32, 1e-5);
    check_values(&of, DV_BF16, 1e-5);
    dv_convolution_force.slice_images = 0;
    c.input[0] = (dv_map){DV_F32, DV_NHWC, 3, 4, 2, {560, 600}};
    c.options.channels = 2;
    of = case_of(&c);
    check_values(&of, DV_F32, 1e-3);
    check_values(&of, DV_BF16, 1e-3);
}

static void same_bits_twice(void **state) {
    (void)state;
    for (size_t i = 0; i < CASES; i++) {
        layer_case of = case_of(&cases[i]);
        bench b;
        bench_init(&b, &of, DV_F32, false);
        bench_result first = bench_run(&b, &(bench_mode){0});
        bench_expect(&b, "again", (bench_mode){0}, &first, 0);
        bench_result_free(&first);
        bench_destroy(&b);
    }
}

static void parameters(void **state) {
    (void)state;
    convolution_case c = {MAP2(2, 12, 7, 9),
                          {18, {{3, 5}, {1, 2}, {1, 0}, {1, 1}}, 3, true, {0}, DV_INITIALISATION_HE}};
    dv_layer layer = {.kind = &dv_convolution, .name = "conv", .options = &c.options, .input_count = 1};
    layer.inputs = c.input;
    assert_ok(dv_convolution.infer(&layer, &error));
    const dv_parameter *weight = &layer.parameters[0], *bias = &layer.parameters[1];
    static const size_t shape[] = {18, 4, 3, 5};
    assert_int_equal(layer.parameter_count, 2);
    assert_int_equal(weight->rank, 4);
    assert_memory_equal(weight->shape, shape, sizeof shape);
    assert_int_equal(weight->count, 18 * 4 * 3 * 5);
    assert_int_equal(weight->initialisation, DV_INITIALISE_FAN_OUT);
    assert_int_equal(weight->fan, 18 * 3 * 5);
    assert_int_equal(bias->count, 18);
    assert_int_equal(bias->initialisation, DV_INITIALISE_UNIFORM);
    assert_int_equal(bias->fan, 4 * 3 * 5);
    assert_int_equal(layer.output.sides[0], 7);
    assert_int_equal(layer.output.sides[1], 3);
    assert_int_equal(layer.output.channels, 18);
    assert_int_equal(layer.input_need, DV_NEED_NUMBERS);
    assert_int_equal(layer.output_need, DV_NEED_NOTHING);
    c.options.initialisation = DV_INITIALISATION_UNIFORM;
    assert_ok(dv_convolution.infer(&layer, &error));
    assert_int_equal(weight->initialisation, DV_INITIALISE_UNIFORM);
    assert_int_equal(weight->fan, 4 * 3 * 5);
}

/* output_mask, where the graph asks for them. */
static void bits_of_the_output(void **state) {
    (void)state;
    layer_case of = case_of(&cases[7]);
    bench b;
    bench_init(&b, &of, DV_F32, false);
    b.layer.output_need = DV_NEED_MASK;
    bench_result result = bench_run(&b, &(bench_mode){0});
    size_t elements = dv_map_image_elements(&b.layer.output), set = 0, positive = 0;
    for (size_t i = 0; i < result.mask_bytes; i++)
        set += (size_t)__builtin_popcount(result.mask[i]);
    for (size_t i = 0; i < elements * b.layer.output.images; i++)
        positive += result.arrays[0].numbers[i] > 0;
    assert_int_equal(set, positive);
    bench_result_free(&result);
    bench_destroy(&b);
}

static void refused(convolution_case c, dv_status status, const char *words) {
    layer_case of = case_of(&c);
    check_refused(&of, status, words);
}

static void messages(void **state) {
    (void)state;
    const convolution_case fine = {MAP2(2, 12, 7, 9),
                                   {18, {{3, 3}, {1, 1}, {1, 1}, {1, 1}}, 1, false, {0}, DV_INITIALISATION_HE}};
    convolution_case c = fine;
    c.options.groups = 5;
    refused(c, DV_ERROR_OPTION, "5 groups do not divide 12 input and 18 output channels: use a common divisor");
    c.options.groups = 0;
    refused(c, DV_ERROR_OPTION, "0 groups");
    c = fine, c.options.channels = 0;
    refused(c, DV_ERROR_OPTION, "0 output channels");
    c = fine, c.options.window.stride[1] = 0;
    refused(c, DV_ERROR_OPTION, "stride 0 along side 2: give 1 to");
    c = fine, c.options.window.kernel[0] = 0;
    refused(c, DV_ERROR_OPTION, "kernel 0 along side 1");
    c = fine, c.options.window.dilation[0] = 0;
    refused(c, DV_ERROR_OPTION, "dilation 0");
    c = fine, c.options.window.padding[0] = SIZE_MAX;
    refused(c, DV_ERROR_OPTION, "padding");
    c = fine, c.options.window.dilation[0] = 5;
    refused(c, DV_ERROR_ARGUMENT, "a window of 11 (kernel 3, dilation 5) does not fit in side 1 of the input, 9 with");
    c = fine, c.input[0].rank = 0;
    refused(c, DV_ERROR_UNSUPPORTED, "use a linear layer");
    c = fine, c.input[0].layout = DV_NCHW;
    refused(c, DV_ERROR_UNSUPPORTED, "channels");
    c = fine, c.input[0].type = DV_F16;
    refused(c, DV_ERROR_UNSUPPORTED, "f16");
    c = fine, c.input[0] = (dv_map){DV_F32, DV_NHWC, 1, 1 << 16, 2, {3, 3}}, c.options.channels = 1 << 16;
    refused(c, DV_ERROR_OPTION, "weights: use a smaller kernel or fewer channels");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_and_gradients),
        cmocka_unit_test(winograd),
        cmocka_unit_test(every_way),
        cmocka_unit_test(slices),
        cmocka_unit_test(same_bits_twice),
        cmocka_unit_test(parameters),
        cmocka_unit_test(bits_of_the_output),
        cmocka_unit_test(messages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
