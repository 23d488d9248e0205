/* Passes: who computes which; that Winograd's are right with channels in several blocks, and give the same bits with
 * any number of threads. What they make of every shape is in test_convolution and test_transposed_convolution. */
#include "base/cpu.h"
#include "nn/kernels/winograd.h"
#include "passes.h"

static void expect_kernel(const dv_convolution_shape *shape, bool winograd) {
    for (int kind = DV_PASS_FORWARD; kind <= DV_PASS_BACKWARD_WEIGHTS; kind++) {
        dv_pass *pass;
        assert_ok(dv_pass_new(&pass, NULL, (dv_pass_kind)kind, shape, "conv", &error));
        assert_int_equal(strncmp(pass->kernel, "winograd", 8) == 0, winograd && dv_winograd());
        dv_pass_free(pass);
    }
}

static void who_computes(void **state) {
    (void)state;
    dv_convolution_shape fine = square_shape(DV_F32, 8, 32, 48, 12, 1), shape = square_shape(DV_F32, 8, 32, 48, 12, 2);
    expect_kernel(&fine, true);
    expect_kernel(&shape, true);
    fine.type = DV_BF16;
    expect_kernel(&fine, true);
    fine.type = DV_F32;
    shape.window.padding[0] = 0, shape.src_sides[0]++;
    expect_kernel(&shape, false);
    shape = square_shape(DV_F32, 8, 32, 48, 12, 3);
    expect_kernel(&shape, false);
    dv_pass_forced = &dv_onednn_maker;
    expect_kernel(&fine, false);
    dv_pass_forced = NULL;
    shape = fine, shape.src_channels = 24;
    expect_kernel(&shape, false);
    shape = fine, shape.groups = 2;
    expect_kernel(&shape, false);
    shape = fine, shape.window.dilation[1] = 2, shape.window.padding[1] = 2;
    expect_kernel(&shape, false);
    shape = fine, shape.window.stride[0] = 2, shape.dst_sides[0] = 6;
    expect_kernel(&shape, false);
    shape = square_shape(DV_F32, 1, 32, 48, 12, 1); /* nine tiles */
    expect_kernel(&shape, false);
    shape = square_shape(DV_F32, 50, 32, 48, 5, 1); /* more than half of the tiles' pixels are outside */
    expect_kernel(&shape, false);
}

/* What oneDNN would divide by zero for, and what it would only need much memory for. */
static void as_much_as_can_be_counted(void **state) {
    (void)state;
    for (int kind = DV_PASS_FORWARD; kind <= DV_PASS_BACKWARD_WEIGHTS; kind++)
        for (int end = 0; end < 2; end++) {
            dv_convolution_shape shape = {.type = DV_F32, .rank = 1, .images = 1, .groups = 1};
            dv_pass *pass;
            shape.window = dv_window_square(1, 1, 0);
            shape.src_sides[0] = shape.dst_sides[0] = 1 << 18;
            shape.src_channels = end ? 64 : 1 << 18;
            shape.dst_channels = end ? 1 << 18 : 64;
            assert_fails(dv_pass_new(&pass, NULL, (dv_pass_kind)kind, &shape, "fc", &error), DV_ERROR_UNSUPPORTED,
                         "fc: oneDNN computes at most 65535 elements of 262144 channels at a time");
            shape.src_sides[0] = shape.dst_sides[0] = 1 << 14;
            assert_ok(dv_pass_new(&pass, NULL, (dv_pass_kind)kind, &shape, "fc", &error));
            dv_pass_free(pass);
        }
}

/* More channels than have their weights in one block, with a last one that is smaller, in both directions. */
static void blocks_of_channels(void **state) {
    (void)state;
    static const size_t channels[][3] = {{288, 304, 1}, {304, 288, 1}, {288, 304, 2}, {304, 288, 2}};
    for (int i = 0; i < 8; i++)
        for (int kind = DV_PASS_FORWARD; kind <= DV_PASS_BACKWARD_WEIGHTS; kind++) {
            const size_t *at = channels[i / 2];
            dv_convolution_shape shape = square_shape(i % 2 ? DV_BF16 : DV_F32, 2, at[0], at[1], 14, at[2]);
            size_t count;
            dv_pass_forced = &dv_winograd_maker;
            float *got = computed((dv_pass_kind)kind, &shape, 2, &count);
            dv_pass_forced = i % 2 ? &dv_widened_maker : &dv_onednn_maker; /* in f32 too: results are rounded alike */
            float *expected = computed((dv_pass_kind)kind, &shape, 2, &count);
            dv_pass_forced = NULL;
            bool rounded = i % 2 && kind != DV_PASS_BACKWARD_WEIGHTS;
            assert_near(got, expected, count, rounded ? 1e-4 : 1e-5);
            free(got);
            free(expected);
        }
}

/* Of both types and strides, the second half with channels that are no whole panels, in two groups. 320 tiles: chunks,
 * the last one not full. */
static dv_convolution_shape shape_at(size_t i) {
    bool odd = i >= 4;
    dv_convolution_shape shape =
        square_shape(i % 2 ? DV_BF16 : DV_F32, 20, odd ? 34 : 32, odd ? 54 : 16, 14, 1 + i / 2 % 2);
    shape.groups = odd ? 2 : 1;
    return shape;
}

enum { SHAPES = 8 };

static void any_number_of_threads(void **state) {
    (void)state;
    dv_pass_forced = &dv_winograd_maker;
    for (size_t i = 0; i < SHAPES; i++) {
        dv_convolution_shape shape = shape_at(i);
        if (!dv_winograd_maker.suits(DV_PASS_FORWARD, &shape))
            leave_out("Winograd's passes by any number of threads: this processor has none of them");
        for (int kind = DV_PASS_FORWARD_NO_BIAS; kind <= DV_PASS_BACKWARD_WEIGHTS; kind++) {
            size_t count;
            float *expected = computed((dv_pass_kind)kind, &shape, 1, &count);
            for (int threads = 2; threads <= 5; threads++) {
                float *got = computed((dv_pass_kind)kind, &shape, threads, &count);
                assert_memory_equal(got, expected, count * sizeof(float));
                free(got);
            }
            free(expected);
        }
    }
    dv_pass_forced = NULL;
}

static void any_instruction_set(void **state) {
    (void)state;
    if (!dv_isa_available(DV_ISA_AVX512))
        leave_out("the same bits of AVX2 and AVX-512: this processor has no AVX-512");
    dv_pass_forced = &dv_winograd_maker;
    for (size_t i = 0; i < SHAPES; i++)
        for (int kind = DV_PASS_FORWARD; kind <= DV_PASS_BACKWARD_WEIGHTS; kind++) {
            dv_convolution_shape shape = shape_at(i);
            size_t count;
            float *expected = computed((dv_pass_kind)kind, &shape, 2, &count);
            dv_isa_force(DV_ISA_AVX512);
            float *got = computed((dv_pass_kind)kind, &shape, 2, &count);
            dv_isa_force(DV_ISA_AVX2);
            assert_memory_equal(got, expected, count * sizeof(float));
            free(expected);
            free(got);
        }
    dv_pass_forced = NULL;
}

int main(void) {
    if (dv_isa_available(DV_ISA_AVX2))
        dv_isa_force(DV_ISA_AVX2); /* where there is more, Winograd's algorithm is not used */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_computes),        cmocka_unit_test(as_much_as_can_be_counted),
        cmocka_unit_test(blocks_of_channels),  cmocka_unit_test(any_number_of_threads),
        cmocka_unit_test(any_instruction_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
