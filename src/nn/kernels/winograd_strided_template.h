/* Winograd's convolution with stride 2, compiled once per instruction set: a file defines DV_STRIDED and
 * DV_STRIDED_BACK, the names of its forms, and includes this one. */
#ifndef DV_STRIDED
#error "define DV_STRIDED and DV_STRIDED_BACK before including this file"
#endif

#include "nn/kernels/winograd_tiles.h"

enum { TILE = 4, REACH = 9, POINTS = 9, PAIRS = 5 }; /* PAIRS: points of the convolution of two weights */

/* ---- polynomials in one variable ------------------------------------------------------------ */

/* The points of two weights are 0, 1, -1, 2 and infinity: with as few as that, rounding errors are those of the plain
 * sum. What the polynomials that are zero at all others have at their own is divided out of the weights; the last of
 * the weights' points is the middle one's. */
static const float own_value[SIDE] = {1 / 2.0f, -1 / 2.0f, -1 / 6.0f, 1 / 6.0f, 1, 1};

/* Five pixels to the points of two weights. */
ALWAYS void pairs_input(lanes a, lanes b, lanes c, lanes d, lanes e, lanes *y) {
    lanes difference = subtract(d, b);
    y[0] = fused(subtract(a, c), 2, difference);
    y[1] = subtract(fused_less(b, 2, d), c);
    y[2] = fused_less(c, 3, fused(b, 2, d));
    y[3] = difference;
    y[4] = fused_less(difference, 2, subtract(e, c));
}

/* Nine pixels: the outer two of three weights meet the first and then every other. */
ALWAYS void input_line(const lanes *x, lanes *y) {
    pairs_input(x[0], x[2], x[4], x[6], x[8], y);
    for (int i = 0; i < TILE; i++)
        y[PAIRS + i] = x[2 * i + 1];
}

/* Of the results' gradient, five pixels and then four of them: results lie between two of it, and on one. */
ALWAYS void back_input_line(const lanes *x, lanes *y) {
    pairs_input(x[0], x[1], x[2], x[3], x[4], y);
    for (int i = 0; i < TILE; i++)
        y[PAIRS + i] = x[i];
}

/* The values of the outer two weights as a polynomial, and the middle one. */
ALWAYS void values_of_3(const lanes *x, lanes *y) {
    y[0] = x[0];
    y[1] = add(x[0], x[2]);
    y[2] = subtract(x[0], x[2]);
    y[3] = fused(x[2], 2, x[0]);
    y[4] = x[2];
    y[5] = x[1];
}

/* Of four gradients. */
ALWAYS void values_of_4(const lanes *x, lanes *y) {
    lanes even = add(x[0], x[2]), odd = add(x[1], x[3]);
    y[0] = x[0];
    y[1] = add(even, odd);
    y[2] = subtract(even, odd);
    y[3] = fused(fused(x[3], 4, x[1]), 2, fused(x[2], 4, x[0]));
    y[4] = x[3];
    for (int i = 0; i < TILE; i++)
        y[PAIRS + i] = x[i];
}

/* Products of two weights to four results. */
ALWAYS void pairs_results(const lanes *x, lanes *y) {
    lanes sum = add(x[1], x[2]), difference = subtract(x[1], x[2]);
    y[0] = add(add(x[0], sum), x[3]);
    y[1] = fused(x[3], 2, difference);
    y[2] = fused(x[3], 4, sum);
    y[3] = fused(x[3], 8, add(difference, x[4]));
}

/* All nine to four results. */
ALWAYS void results_4(const lanes *x, lanes *y) {
    pairs_results(x, y);
    for (int i = 0; i < TILE; i++)
        y[i] = add(y[i], x[PAIRS + i]);
}

/* And to eight, in turns. */
ALWAYS void back_results_8(const lanes *x, lanes *y) {
    lanes between[TILE];
    pairs_results(x, between);
    for (int i = 0; i < TILE; i++) {
        y[2 * i] = x[PAIRS + i];
        y[2 * i + 1] = between[i];
    }
}

/* The weights' points to the gradient of three weights. */
ALWAYS void results_3(const lanes *x, lanes *y) {
    y[0] = add(add(x[0], x[3]), add(x[1], x[2]));
    y[1] = x[5];
    y[2] = fused(x[3], 2, add(subtract(x[1], x[2]), x[4]));
}

/* ---- tiles and weights ---------------------------------------------------------------------- */

static void input(const dv_winograd_pixels *pixels, size_t channels, float *points, size_t stride) {
    tile_to_points(pixels, REACH, POINTS, input_line, channels, points, stride, PANEL);
}

static void gradient(const dv_winograd_pixels *pixels, size_t channels, float *points, size_t stride,
                     size_t panel_stride) {
    tile_to_points(pixels, TILE, POINTS, values_of_4, channels, points, stride, panel_stride);
}

static void output(const float *points, size_t stride, size_t channels, const float *bias,
                   const dv_winograd_pixels *pixels) {
    points_to_tile(points, stride, channels, bias, pixels, POINTS, TILE, results_4);
}

static void back_input(const dv_winograd_pixels *pixels, size_t channels, float *points, size_t stride) {
    tile_to_points(pixels, PAIRS, POINTS, back_input_line, channels, points, stride, PANEL);
}

static void back_output(const float *points, size_t stride, size_t channels, const float *bias,
                        const dv_winograd_pixels *pixels) {
    points_to_tile(points, stride, channels, bias, pixels, POINTS, 2 * TILE, back_results_8);
}

static void weights(const float *plain, const dv_winograd_weights *layout, size_t columns, float *panel,
                    size_t stride) {
    weights_to_points(plain, layout, columns, own_value, values_of_3, panel, stride);
}

static void add_weights(const float *panel, size_t stride, const dv_winograd_weights *layout, size_t columns,
                        float *plain) {
    points_to_weights(panel, stride, layout, columns, own_value, results_3, plain);
}

const dv_winograd_form DV_STRIDED = {
    .tile = TILE,
    .reach = REACH,
    .step = 2 * TILE,
    .side = POINTS,
    .weights_point = {0, 1, 2, 3, 4, 5, 5, 5, 5},
    .input = input,
    .gradient = gradient,
    .output = output,
    .weights = weights,
    .add_weights = add_weights,
};

const dv_winograd_form DV_STRIDED_BACK = {
    .tile = 2 * TILE,
    .reach = PAIRS,
    .step = TILE,
    .side = POINTS,
    .weights_point = {0, 1, 2, 3, 4, 5, 5, 5, 5},
    .input = back_input,
    .output = back_output,
    .weights = weights,
};
