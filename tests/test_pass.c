/* Passes: who computes which; that Winograd's are right with channels in several blocks, and give the same bits with
 * any number of threads. What they make of every shape is in test_convolution and test_transposed_convolution. */
#include "base/cpu.h"
#include "check.h"
#include "nn/kernels/winograd.h"
#include "nn/pass.h"

#include <math.h>
#include <omp.h>

/* `side` is that of the results. */
static dv_convolution_shape square(size_t images, size_t from, size_t to, size_t side, size_t stride) {
    dv_convolution_shape shape = {.type = DV_F32, .rank = 2, .images = images, .groups = 1};
    shape.src_channels = from, shape.dst_channels = to;
    shape.src_sides[0] = shape.src_sides[1] = side * stride;
    shape.dst_sides[0] = shape.dst_sides[1] = side;
    shape.window = dv_window_square(3, stride, 1);
    return shape;
}

static void expect_kernel(const dv_convolution_shape *shape, bool winograd) {
    for (int kind = DV_PASS_FORWARD; kind <= DV_PASS_BACKWARD_WEIGHTS; kind++) {
        dv_pass *pass;
        assert_ok(dv_pass_new(&pass, (dv_pass_kind)kind, shape, "conv", &error));
        assert_int_equal(strncmp(pass->kernel, "winograd", 8) == 0, winograd && dv_winograd());
        dv_pass_free(pass);
    }
}

static void who_computes(void **state) {
    (void)state;
    dv_convolution_shape fine = square(8, 32, 48, 12, 1), shape = square(8, 32, 48, 12, 2);
    expect_kernel(&fine, true);
    expect_kernel(&shape, true);
    shape.window.padding[0] = 0, shape.src_sides[0]++;
    expect_kernel(&shape, false);
    shape = square(8, 32, 48, 12, 3);
    expect_kernel(&shape, false);
    dv_pass_force_onednn = true;
    expect_kernel(&fine, false);
    dv_pass_force_onednn = false;
    shape = fine, shape.src_channels = 24;
    expect_kernel(&shape, false);
    shape = fine, shape.groups = 2;
    expect_kernel(&shape, false);
    shape = fine, shape.window.dilation[1] = 2, shape.window.padding[1] = 2;
    expect_kernel(&shape, false);
    shape = fine, shape.window.stride[0] = 2, shape.dst_sides[0] = 6;
    expect_kernel(&shape, false);
    shape = square(1, 32, 48, 12, 1); /* nine tiles */
    expect_kernel(&shape, false);
    shape = square(50, 32, 48, 5, 1); /* more than half of the tiles' pixels are outside */
    expect_kernel(&shape, false);
}

/* Numbers that are not of any pattern, the same each time. */
static float *made_up(size_t count, uint32_t seed) {
    float *values = malloc(count * sizeof(float));
    assert_non_null(values);
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        values[i] = (float)(seed >> 8) / (float)(1 << 23) - 1;
    }
    return values;
}

static void *aligned(size_t bytes) {
    void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64 + 64);
    assert_non_null(memory);
    return memory;
}

/* What a pass computes from made-up numbers with this many threads; to be freed. *count floats. */
static float *computed(dv_pass_kind kind, const dv_convolution_shape *shape, int threads, size_t *count) {
    size_t src_count = shape->images * shape->src_sides[0] * shape->src_sides[1] * shape->src_channels;
    size_t dst_count = shape->images * shape->dst_sides[0] * shape->dst_sides[1] * shape->dst_channels;
    size_t weight_count = 9 * shape->src_channels * shape->dst_channels;
    float *src = made_up(src_count, 1), *dst = made_up(dst_count, 2), *weights = made_up(weight_count, 3);
    float *bias = made_up(shape->dst_channels, 4);
    int before = omp_get_max_threads();
    dv_pass *pass;
    omp_set_num_threads(threads);
    assert_ok(dv_pass_new(&pass, kind, shape, "conv", &error));
    omp_set_num_threads(before);
    void *packed = aligned(pass->weights_bytes), *scratchpad = aligned(pass->scratchpad_bytes);
    dv_pass_arrays arrays = {.src = src, .dst = dst, .bias = bias, .gradient = weights, .scratchpad = scratchpad};
    if (kind != DV_PASS_BACKWARD_WEIGHTS)
        assert_ok(dv_pass_pack_weights(pass, weights, packed, scratchpad, &arrays.weights, &error));
    assert_ok(dv_pass_run(pass, &arrays, &error));
    dv_pass_free(pass);
    free(packed);
    free(scratchpad);
    free(bias);

    float *all[] = {dst, src, weights};
    size_t counts[] = {dst_count, src_count, weight_count};
    int result = kind == DV_PASS_BACKWARD_WEIGHTS ? 2 : kind == DV_PASS_BACKWARD_DATA ? 1 : 0;
    for (int i = 0; i < 3; i++)
        if (i != result)
            free(all[i]);
    *count = counts[result];
    return all[result];
}

/* More channels than have their weights in one block, with a last one that is smaller, in both directions. */
static void blocks_of_channels(void **state) {
    (void)state;
    static const size_t channels[][3] = {{288, 304, 1}, {304, 288, 1}, {288, 304, 2}, {304, 288, 2}};
    for (int i = 0; i < 4; i++)
        for (int kind = DV_PASS_FORWARD; kind <= DV_PASS_BACKWARD_WEIGHTS; kind++) {
            dv_convolution_shape shape = square(2, channels[i][0], channels[i][1], 14, channels[i][2]);
            size_t count;
            float *got = computed((dv_pass_kind)kind, &shape, 2, &count);
            dv_pass_force_onednn = true;
            float *expected = computed((dv_pass_kind)kind, &shape, 2, &count);
            dv_pass_force_onednn = false;
            double norm = 0, distance = 0;
            for (size_t j = 0; j < count; j++) {
                norm += pow((double)expected[j], 2);
                distance += pow((double)got[j] - (double)expected[j], 2);
            }
            assert_true(sqrt(distance) < 1e-5 * sqrt(norm));
            free(got);
            free(expected);
        }
}

static void any_number_of_threads(void **state) {
    (void)state;
    for (size_t stride = 1; stride <= 2; stride++) {
        dv_convolution_shape shape = square(20, 32, 16, 14, stride); /* 320 tiles: chunks, the last one not full */
        if (!dv_winograd_suits(&shape))
            skip();
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
}

int main(void) {
    if (dv_isa_available(DV_ISA_AVX2))
        dv_isa_force(DV_ISA_AVX2); /* where there is more, Winograd's algorithm is not used */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_computes),
        cmocka_unit_test(blocks_of_channels),
        cmocka_unit_test(any_number_of_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
