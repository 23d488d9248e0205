/* Both kinds of convolution against plain loops in double: the output and every gradient. */
#ifndef DV_TESTS_CONVOLUTIONS_H
#define DV_TESTS_CONVOLUTIONS_H

#include "base/cpu.h"
#include "gradient.h"
#include "nn/convolution.h"
#include "nn/kernels/matrix.h"
#include "nn/kernels/winograd.h"
#include "nn/pass.h"

/* A convolution src -> dst; the transposed kind has its input at dst and its output at src. */
typedef struct plain_convolution {
    dv_map src, dst;
    dv_convolution_options options;
    double *src_values, *weights, *dst_values; /* to be freed */
} plain_convolution;

/* What to find from the two others. */
typedef enum plain_result { FIND_DST, FIND_SRC, FIND_WEIGHTS } plain_result;

/* The pixel of src that window element `k` of dst's pixel `y` falls on, or -1 if that is outside. */
static inline long plain_pixel(const plain_convolution *p, const size_t *y, const size_t *k) {
    const dv_window *window = &p->options.window;
    long pixel = 0;
    for (int d = 0; d < p->src.rank; d++) {
        long x = (long)(y[d] * window->stride[d] + k[d] * window->dilation[d]) - (long)window->padding[d];
        if (x < 0 || x >= (long)p->src.sides[d])
            return -1;
        pixel = pixel * (long)p->src.sides[d] + x;
    }
    return pixel;
}

/* The index'th of all positions in a box of `sides`, slowest first. */
static inline void position_in(const size_t *sides, int rank, size_t index, size_t *position) {
    for (int d = rank; d-- > 0; index /= sides[d])
        position[d] = index % sides[d];
}

static inline size_t volume_of(const size_t *sides, int rank) {
    size_t volume = 1;
    for (int d = 0; d < rank; d++)
        volume *= sides[d];
    return volume;
}

/* All products of one pair of pixels: weights [dst channels, src channels / groups, window]. */
static inline void plain_products(const plain_convolution *p, plain_result find, size_t src_at, size_t dst_at,
                                  size_t element, size_t window) {
    size_t groups = p->options.groups, in = p->src.channels / groups, out = p->dst.channels / groups;
    for (size_t o = 0; o < p->dst.channels; o++)
        for (size_t i = 0; i < in; i++) {
            double *src = &p->src_values[src_at + o / out * in + i], *dst = &p->dst_values[dst_at + o];
            double *weight = &p->weights[(o * in + i) * window + element];
            if (find == FIND_DST)
                *dst += *weight * *src;
            else if (find == FIND_SRC)
                *src += *weight * *dst;
            else
                *weight += *src * *dst;
        }
}

/* Adds to the array that is to be found. */
static inline void plain_run(const plain_convolution *p, plain_result find) {
    int rank = p->src.rank;
    size_t src_pixels = volume_of(p->src.sides, rank), dst_pixels = volume_of(p->dst.sides, rank);
    size_t window = volume_of(p->options.window.kernel, rank);
    for (size_t n = 0; n < p->src.images; n++)
        for (size_t pixel = 0; pixel < dst_pixels; pixel++)
            for (size_t element = 0; element < window; element++) {
                size_t y[DV_MAX_RANK], k[DV_MAX_RANK];
                position_in(p->dst.sides, rank, pixel, y);
                position_in(p->options.window.kernel, rank, element, k);
                long x = plain_pixel(p, y, k);
                if (x >= 0)
                    plain_products(p, find, (n * src_pixels + (size_t)x) * p->src.channels,
                                   (n * dst_pixels + pixel) * p->dst.channels, element, window);
            }
}

/* `count` elements in double, or zeros if values is NULL. */
static inline double *doubles_of(dv_type type, const void *values, size_t count) {
    double *doubles = calloc(count, sizeof(double));
    assert_non_null(doubles);
    for (size_t i = 0; values && i < count; i++)
        doubles[i] = (double)load_element(type, values, i);
    return doubles;
}

/* The plain arrays of a layer's bench: those of input and output that are NULL are zeros, as are weights
 * that are to be found. */
static inline plain_convolution plain_of(const bench *b, const void *input, const void *output, bool weights) {
    bool transposed = b->of->kind == &dv_transposed_convolution;
    const dv_map *in = &b->maps[0], *out = &b->layer.output;
    plain_convolution p = {.src = transposed ? *out : *in, .dst = transposed ? *in : *out};
    p.options = *(const dv_convolution_options *)b->of->options;
    double *in_values = doubles_of(b->type, input, dv_map_elements(in));
    double *out_values = doubles_of(b->type, output, dv_map_elements(out));
    p.src_values = transposed ? out_values : in_values;
    p.dst_values = transposed ? in_values : out_values;
    p.weights = doubles_of(DV_F32, weights ? b->arrays.parameters[0] : NULL, b->layer.parameters[0].count);
    return p;
}

static inline void plain_free(plain_convolution *p) {
    free(p->src_values);
    free(p->dst_values);
    free(p->weights);
}

/* Fails unless array `index` of the result is `expected` up to `tolerance` of its norm. */
static inline void compare_with(const bench *b, const bench_result *result, size_t index, const double *expected,
                                double tolerance) {
    const bench_array *got = &result->arrays[index];
    const dv_convolution_options *o = b->of->options;
    double norm = 0, distance = 0;
    for (size_t i = 0; i < got->count; i++) {
        norm += expected[i] * expected[i];
        distance += pow((double)got->numbers[i] - expected[i], 2);
    }
    if (!(sqrt(distance) <= tolerance * sqrt(norm) + 1e-6))
        fail_msg("%s in %s to %zu channels, %zu groups, kernel %zu.., stride %zu.., padding %zu.., dilation %zu..: "
                 "%s is off by %g of a norm of %g",
                 bench_text(b->of), dv_type_name(b->type), o->channels, o->groups, o->window.kernel[0],
                 o->window.stride[0], o->window.padding[0], o->window.dilation[0], got->name, sqrt(distance),
                 sqrt(norm));
}

/* The output, with bias. */
static inline void compare_output(const bench *b, const bench_result *result, double tolerance) {
    bool transposed = b->of->kind == &dv_transposed_convolution;
    plain_convolution p = plain_of(b, b->inputs[0], NULL, true);
    double *output = transposed ? p.src_values : p.dst_values;
    size_t channels = b->layer.output.channels;
    for (size_t i = 0; p.options.bias && i < dv_map_elements(&b->layer.output); i++)
        output[i] = (double)b->arrays.parameters[1][i % channels];
    plain_run(&p, transposed ? FIND_SRC : FIND_DST);
    compare_with(b, result, 0, output, tolerance);
    plain_free(&p);
}

/* Results are: output, gradient of the input, of the weight, of the bias. */
static inline void compare_gradients(const bench *b, const bench_result *result, const void *diff_output,
                                     double rounding, double tolerance) {
    bool transposed = b->of->kind == &dv_transposed_convolution;
    plain_convolution p = plain_of(b, NULL, diff_output, true);
    plain_run(&p, transposed ? FIND_DST : FIND_SRC);
    compare_with(b, result, 1, transposed ? p.dst_values : p.src_values, rounding);
    plain_free(&p);
    p = plain_of(b, b->inputs[0], diff_output, false);
    plain_run(&p, FIND_WEIGHTS);
    compare_with(b, result, 2, p.weights, tolerance);
    const double *diff = transposed ? p.src_values : p.dst_values;
    size_t channels = b->layer.output.channels;
    double *bias = doubles_of(DV_F32, NULL, channels);
    for (size_t i = 0; i < dv_map_elements(&b->layer.output); i++)
        bias[i % channels] += diff[i];
    if (p.options.bias)
        compare_with(b, result, 3, bias, tolerance);
    free(bias);
    plain_free(&p);
}

/* A case in one type: rounding of values is `rounding`, sums are off by `tolerance` at most. */
static inline void check_values(const layer_case *of, dv_type type, double tolerance) {
    bench b;
    bench_init(&b, of, type, true);
    double rounding = type == DV_F32 ? tolerance : 6e-3;
    void *diff_output = bench_diff_output(&b);
    bench_result result = bench_run(&b, &(bench_mode){0});
    compare_output(&b, &result, rounding);
    compare_gradients(&b, &result, diff_output, rounding, tolerance);
    bench_result_free(&result);
    guarded_free(diff_output, dv_map_bytes(&b.layer.output));
    bench_destroy(&b);
}

/* f32, bf16 as this processor does it, bf16 widened, bf16 on matrix tiles in plain C; whole batches and slices of one
 * image. */
static inline void check_convolution(const layer_case *of) {
    for (size_t slice = 0; slice < 2; slice++)
        for (int way = 0; way < 4; way++) {
            dv_convolution_force = (dv_convolution_forced){.slice_images = slice};
            dv_pass_forced = way == 2 ? &dv_widened_maker : NULL;
            dv_matrix_forced = way == 3 ? &dv_matrix_reference : NULL;
            check_values(of, way ? DV_BF16 : DV_F32, 1e-5);
        }
    dv_convolution_force = (dv_convolution_forced){0};
    dv_pass_forced = NULL;
    dv_matrix_forced = NULL;
}

/* By Winograd's algorithm where it suits, with every instruction set that is here, in both types. */
static inline void check_winograd(const layer_case *of) {
    dv_isa isa = dv_isa_current();
    dv_pass_forced = &dv_winograd_maker;
    for (int k = 0; k < DV_ISA_COUNT; k++)
        for (int type = DV_F32; type <= DV_BF16 && dv_isa_available((dv_isa)k); type++) {
            dv_isa_force((dv_isa)k);
            if (dv_winograd())
                check_values(of, (dv_type)type, 1e-5);
        }
    dv_isa_force(isa);
    dv_pass_forced = NULL;
}

#endif
