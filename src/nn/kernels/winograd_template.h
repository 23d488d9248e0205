/* Winograd's convolution with stride 1, and the matrix products of all of them, written once and compiled once per
 * instruction set: a file defines DV_KERNELS, the name of its table, DV_STRIDED and DV_STRIDED_BACK, those of its forms
 * for stride 2, and includes this one. All of them compute the same bits. */
#ifndef DV_KERNELS
#error "define DV_KERNELS, DV_STRIDED and DV_STRIDED_BACK before including this file"
#endif

#include "nn/kernels/winograd_tiles.h"

enum { TILE = 4, REACH = 6 };

/* ---- polynomials in one variable ------------------------------------------------------------ */

/* The points are 0, +-a, +-b and infinity. With a b = 1 and b = 2 a the numbers in a transform stay closest to each
 * other, and so the rounding errors small. */
#define A 0.70710678118654752f
#define B 1.41421356237309505f
#define A2 (A * A)
#define B2 (B * B)
#define A3 (A * A * A)
#define B3 (B * B * B)

/* Pixels are multiplied by the polynomial that is zero at all other points; what that polynomial has at its own
 * point is divided out of the weights. */
static const float own_value[SIDE] = {
    1 / (A2 * B2),
    1 / (2 * A2 * (A2 - B2)),
    1 / (2 * A2 * (A2 - B2)),
    1 / (2 * B2 * (B2 - A2)),
    1 / (2 * B2 * (B2 - A2)),
    1,
};

/* Six pixels to six points. */
ALWAYS void input_line(const lanes *x, lanes *y) {
    lanes even_a = fused_less(x[2], B2, x[4]), odd_a = fused_less(x[1], B2, x[3]);
    lanes even_b = fused_less(x[2], A2, x[4]), odd_b = fused_less(x[1], A2, x[3]);
    y[0] = fused(x[0], A2 * B2, fused_less(x[2], A2 + B2, x[4]));
    y[1] = fused(odd_a, A, even_a);
    y[2] = fused_less(odd_a, A, even_a);
    y[3] = fused(odd_b, B, even_b);
    y[4] = fused_less(odd_b, B, even_b);
    y[5] = fused(x[1], A2 * B2, fused_less(x[3], A2 + B2, x[5]));
}

/* The values at six points of the polynomial with these coefficients. */
ALWAYS void values_of_3(const lanes *x, lanes *y) {
    lanes even_a = fused(x[2], A2, x[0]), even_b = fused(x[2], B2, x[0]);
    y[0] = x[0];
    y[1] = fused(x[1], A, even_a);
    y[2] = fused_less(x[1], A, even_a);
    y[3] = fused(x[1], B, even_b);
    y[4] = fused_less(x[1], B, even_b);
    y[5] = x[2];
}

ALWAYS void values_of_4(const lanes *x, lanes *y) {
    lanes even_a = fused(x[2], A2, x[0]), odd_a = fused(x[3], A2, x[1]);
    lanes even_b = fused(x[2], B2, x[0]), odd_b = fused(x[3], B2, x[1]);
    y[0] = x[0];
    y[1] = fused(odd_a, A, even_a);
    y[2] = fused_less(odd_a, A, even_a);
    y[3] = fused(odd_b, B, even_b);
    y[4] = fused_less(odd_b, B, even_b);
    y[5] = x[3];
}

/* Six products to four results, and to three. */
ALWAYS void results_4(const lanes *x, lanes *y) {
    lanes sum_a = add(x[1], x[2]), sum_b = add(x[3], x[4]);
    lanes difference_a = subtract(x[1], x[2]), difference_b = subtract(x[3], x[4]);
    y[0] = add(x[0], add(sum_a, sum_b));
    y[1] = fused(difference_a, A, times(difference_b, B));
    y[2] = fused(sum_a, A2, times(sum_b, B2));
    y[3] = fused(difference_a, A3, fused(difference_b, B3, x[5]));
}

ALWAYS void results_3(const lanes *x, lanes *y) {
    lanes sum_a = add(x[1], x[2]), sum_b = add(x[3], x[4]);
    lanes difference_a = subtract(x[1], x[2]), difference_b = subtract(x[3], x[4]);
    y[0] = add(x[0], add(sum_a, sum_b));
    y[1] = fused(difference_a, A, times(difference_b, B));
    y[2] = fused(sum_a, A2, fused(sum_b, B2, x[5]));
}

/* ---- tiles and weights ---------------------------------------------------------------------- */

static void input(const dv_winograd_pixels *pixels, size_t channels, float *points, size_t stride) {
    tile_to_points(pixels, REACH, SIDE, input_line, channels, points, stride, PANEL);
}

static void gradient(const dv_winograd_pixels *pixels, size_t channels, float *points, size_t stride,
                     size_t panel_stride) {
    tile_to_points(pixels, TILE, SIDE, values_of_4, channels, points, stride, panel_stride);
}

static void output(const float *points, size_t stride, size_t channels, const float *bias,
                   const dv_winograd_pixels *pixels) {
    points_to_tile(points, stride, channels, bias, pixels, SIDE, TILE, results_4);
}

static void weights(const float *plain, const dv_winograd_weights *layout, size_t columns, float *panel,
                    size_t stride) {
    weights_to_points(plain, layout, columns, own_value, values_of_3, panel, stride);
}

static void add_weights(const float *panel, size_t stride, const dv_winograd_weights *layout, size_t columns,
                        float *plain) {
    points_to_weights(panel, stride, layout, columns, own_value, results_3, plain);
}

/* ---- matrix products ------------------------------------------------------------------------ */

/* Vectors of a row of a panel, and rows whose sums fit in the registers: of any number of rows, and of whole panels. */
enum { VECTORS = PANEL / LANES };
enum {
    MOST_ROWS = LANES == 16 ? 2 * DV_WINOGRAD_ROWS : DV_WINOGRAD_ROWS,
    MOST_ADDED = LANES == 16 ? PANEL : MOST_ROWS
};

/* sums[r] += sum over d of left[r * row_stride + d * depth_stride] panel[d], `rows` of them, a constant. */
ALWAYS void accumulate(const float *left, size_t row_stride, size_t depth_stride, int rows, size_t depth,
                       const float *panel, lanes sums[][VECTORS]) {
    for (size_t d = 0; d < depth; d++) {
        lanes row[VECTORS];
        for (int v = 0; v < VECTORS; v++)
            row[v] = load(panel + d * PANEL + (size_t)(v * LANES));
        for (int r = 0; r < rows; r++) {
            lanes factor = all(left[(size_t)r * row_stride + d * depth_stride]);
            for (int v = 0; v < VECTORS; v++)
                sums[r][v] = fused_lanes(factor, row[v], sums[r][v]);
        }
    }
}

/* `count` rows, a constant. */
ALWAYS void multiply_rows(const float *left, size_t left_stride, int count, size_t depth, const float *panel,
                          float *result, size_t result_stride) {
    lanes sums[MOST_ROWS][VECTORS];
    for (int i = 0; i < count; i++)
        for (int v = 0; v < VECTORS; v++)
            sums[i][v] = all(0);
    accumulate(left, left_stride, 1, count, depth, panel, sums);
    for (int i = 0; i < count; i++)
        for (int v = 0; v < VECTORS; v++)
            store(result + (size_t)i * result_stride + (size_t)(v * LANES), sums[i][v]);
}

static void multiply(const float *left, size_t left_stride, size_t rows, size_t depth, const float *panel,
                     float *result, size_t result_stride) {
    size_t r = 0;
    for (; r + MOST_ROWS <= rows; r += MOST_ROWS)
        multiply_rows(left + r * left_stride, left_stride, MOST_ROWS, depth, panel, result + r * result_stride,
                      result_stride);
    for (; r < rows; r += DV_WINOGRAD_ROWS)
        multiply_rows(left + r * left_stride, left_stride, DV_WINOGRAD_ROWS, depth, panel, result + r * result_stride,
                      result_stride);
}

/* `count` rows, a constant, from row r on. */
ALWAYS void add_rows(const float *left, size_t left_stride, size_t r, int count, size_t depth, const float *panel,
                     float *result) {
    lanes sums[MOST_ADDED][VECTORS];
    float *dst = result + r * PANEL;
    for (int i = 0; i < count; i++)
        for (int v = 0; v < VECTORS; v++)
            sums[i][v] = load(dst + i * PANEL + v * LANES);
    accumulate(left + r, 1, left_stride, count, depth, panel, sums);
    for (int i = 0; i < count; i++)
        for (int v = 0; v < VECTORS; v++)
            store(dst + i * PANEL + v * LANES, sums[i][v]);
}

static void multiply_add(const float *left, size_t left_stride, size_t rows, size_t depth, const float *panel,
                         float *result) {
    size_t r = 0;
    for (; r + MOST_ADDED <= rows; r += MOST_ADDED)
        add_rows(left, left_stride, r, MOST_ADDED, depth, panel, result);
    for (; r < rows; r += 2)
        add_rows(left, left_stride, r, 2, depth, panel, result);
}

const dv_winograd_kernels DV_KERNELS = {
    .name = LANES == 16  ? "avx512"
            : LANES == 8 ? "fma"
                         : "neon",
    .plain = {.tile = TILE,
              .reach = REACH,
              .step = TILE,
              .side = SIDE,
              .weights_point = {0, 1, 2, 3, 4, 5},
              .input = input,
              .gradient = gradient,
              .output = output,
              .weights = weights,
              .add_weights = add_weights},
    .strided = &DV_STRIDED,
    .strided_back = &DV_STRIDED_BACK,
    .multiply = multiply,
    .multiply_add = multiply_add,
};
