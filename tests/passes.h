/* Single passes on made-up numbers, for tests of what computes them. */
#ifndef DV_TESTS_PASSES_H
#define DV_TESTS_PASSES_H

#include "base/float16.h"
#include "check.h"
#include "nn/pass.h"

#include <math.h>
#include <omp.h>

/* A 3x3 convolution with padding 1; `side` is that of the results. */
static inline dv_convolution_shape square_shape(dv_type type, size_t images, size_t from, size_t to, size_t side,
                                                size_t stride) {
    dv_convolution_shape shape = {.type = type, .rank = 2, .images = images, .groups = 1};
    shape.src_channels = from, shape.dst_channels = to;
    shape.src_sides[0] = shape.src_sides[1] = side * stride;
    shape.dst_sides[0] = shape.dst_sides[1] = side;
    shape.window = dv_window_square(3, stride, 1);
    return shape;
}

/* Numbers that are not of any pattern, the same each time, and the same in both types. */
static inline float *made_up(size_t count, uint32_t seed) {
    float *values = malloc(count * sizeof(float));
    assert_non_null(values);
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        values[i] = (float)(seed >> 24) / 128.0f - 1;
    }
    return values;
}

/* They, or room for them, as values of `type`; with a guard behind. */
static inline void *values_of(dv_type type, const float *numbers, size_t count) {
    void *values = guarded_new(count * dv_type_bytes(type));
    for (size_t i = 0; i < count; i++)
        if (type == DV_F32)
            ((float *)values)[i] = numbers[i];
        else
            ((uint16_t *)values)[i] = dv_bf16_nearest(numbers[i]);
    return values;
}

static inline void numbers_of(dv_type type, const void *values, size_t count, float *numbers) {
    for (size_t i = 0; i < count; i++)
        numbers[i] = type == DV_F32 ? ((const float *)values)[i] : dv_bf16_to_f32(((const uint16_t *)values)[i]);
}

/* What a pass computes from made-up numbers with this many threads; to be freed. *count floats. */
static inline float *computed(dv_pass_kind kind, const dv_convolution_shape *shape, int threads, size_t *count) {
    size_t src_count = shape->images * shape->src_sides[0] * shape->src_sides[1] * shape->src_channels;
    size_t dst_count = shape->images * shape->dst_sides[0] * shape->dst_sides[1] * shape->dst_channels;
    size_t window = shape->window.kernel[0] * shape->window.kernel[1];
    size_t weight_count = window * shape->src_channels * shape->dst_channels / shape->groups;
    float *numbers[] = {made_up(dst_count, 2), made_up(src_count, 1), made_up(weight_count, 3)};
    float *bias = made_up(shape->dst_channels, 4);
    void *dst = values_of(shape->type, numbers[0], dst_count), *src = values_of(shape->type, numbers[1], src_count);
    int before = omp_get_max_threads();
    dv_pass *pass;
    omp_set_num_threads(threads);
    assert_ok(dv_pass_new(&pass, NULL, kind, shape, "conv", &error));
    omp_set_num_threads(before);
    void *packed = guarded_new(pass->weights_bytes), *workspace = guarded_new(pass->workspace_bytes);
    dv_pass_arrays arrays = {.src = src, .dst = dst, .bias = bias, .gradient = numbers[2], .workspace = workspace};
    if (kind != DV_PASS_BACKWARD_WEIGHTS)
        assert_ok(dv_pass_pack_weights(pass, numbers[2], packed, workspace, &arrays.weights, &error));
    assert_ok(dv_pass_run(pass, &arrays, &error));
    numbers_of(shape->type, dst, dst_count, numbers[0]);
    numbers_of(shape->type, src, src_count, numbers[1]);
    guarded_free(packed, pass->weights_bytes);
    guarded_free(workspace, pass->workspace_bytes);
    guarded_free(dst, dst_count * dv_type_bytes(shape->type));
    guarded_free(src, src_count * dv_type_bytes(shape->type));
    dv_pass_free(pass);
    free(bias);

    const size_t counts[] = {dst_count, src_count, weight_count};
    int result = kind == DV_PASS_BACKWARD_WEIGHTS ? 2 : kind == DV_PASS_BACKWARD_DATA ? 1 : 0;
    for (int i = 0; i < 3; i++)
        if (i != result)
            free(numbers[i]);
    *count = counts[result];
    return numbers[result];
}

/* Fails unless they are equal up to `tolerance` of their norm. */
static inline void assert_near(const float *got, const float *expected, size_t count, double tolerance) {
    double norm = 0, distance = 0;
    for (size_t i = 0; i < count; i++) {
        norm += pow((double)expected[i], 2);
        distance += pow((double)got[i] - (double)expected[i], 2);
    }
    if (!(sqrt(distance) <= tolerance * sqrt(norm)))
        fail_msg("off by %g of a norm of %g", sqrt(distance), sqrt(norm));
}

#endif
