/* Winograd's convolution with eight lanes and fused multiply-adds: stride 1, and the matrix products. */
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
    lanes sum_a = _mm256_add_ps(x[1], x[2]), sum_b = _mm256_add_ps(x[3], x[4]);
    lanes difference_a = _mm256_sub_ps(x[1], x[2]), difference_b = _mm256_sub_ps(x[3], x[4]);
    y[0] = _mm256_add_ps(x[0], _mm256_add_ps(sum_a, sum_b));
    y[1] = fused(difference_a, A, _mm256_mul_ps(difference_b, all(B)));
    y[2] = fused(sum_a, A2, _mm256_mul_ps(sum_b, all(B2)));
    y[3] = fused(difference_a, A3, fused(difference_b, B3, x[5]));
}

ALWAYS void results_3(const lanes *x, lanes *y) {
    lanes sum_a = _mm256_add_ps(x[1], x[2]), sum_b = _mm256_add_ps(x[3], x[4]);
    lanes difference_a = _mm256_sub_ps(x[1], x[2]), difference_b = _mm256_sub_ps(x[3], x[4]);
    y[0] = _mm256_add_ps(x[0], _mm256_add_ps(sum_a, sum_b));
    y[1] = fused(difference_a, A, _mm256_mul_ps(difference_b, all(B)));
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

static void weights(const float *plain, const dv_winograd_weights *layout, float *panel, size_t stride) {
    weights_to_points(plain, layout, own_value, values_of_3, panel, stride);
}

static void add_weights(const float *panel, size_t stride, const dv_winograd_weights *layout, float *plain) {
    points_to_weights(panel, stride, layout, own_value, results_3, plain);
}

/* ---- matrix products ------------------------------------------------------------------------ */

/* sums[r] += sum over d of left[r * row_stride + d * depth_stride] panel[d], `rows` of them, a constant. */
ALWAYS void accumulate(const float *left, size_t row_stride, size_t depth_stride, int rows, size_t depth,
                       const float *panel, lanes sums[][2]) {
    for (size_t d = 0; d < depth; d++) {
        lanes low = _mm256_loadu_ps(panel + d * PANEL), high = _mm256_loadu_ps(panel + d * PANEL + LANES);
        for (int r = 0; r < rows; r++) {
            lanes factor = _mm256_broadcast_ss(left + (size_t)r * row_stride + d * depth_stride);
            sums[r][0] = _mm256_fmadd_ps(factor, low, sums[r][0]);
            sums[r][1] = _mm256_fmadd_ps(factor, high, sums[r][1]);
        }
    }
}

static void multiply(const float *left, size_t rows, size_t depth, const float *panel, float *result,
                     size_t result_stride) {
    for (size_t r = 0; r < rows; r += DV_WINOGRAD_ROWS) {
        lanes sums[DV_WINOGRAD_ROWS][2];
        for (int i = 0; i < DV_WINOGRAD_ROWS; i++)
            sums[i][0] = sums[i][1] = _mm256_setzero_ps();
        accumulate(left + r * depth, depth, 1, DV_WINOGRAD_ROWS, depth, panel, sums);
        for (int i = 0; i < DV_WINOGRAD_ROWS; i++) {
            _mm256_storeu_ps(result + (r + (size_t)i) * result_stride, sums[i][0]);
            _mm256_storeu_ps(result + (r + (size_t)i) * result_stride + LANES, sums[i][1]);
        }
    }
}

/* `count` rows, a constant, from row r on. */
ALWAYS void add_rows(const float *left, size_t rows, size_t r, int count, size_t depth, const float *panel,
                     float *result) {
    lanes sums[DV_WINOGRAD_ROWS][2];
    for (int i = 0; i < count; i++) {
        sums[i][0] = _mm256_loadu_ps(result + (r + (size_t)i) * PANEL);
        sums[i][1] = _mm256_loadu_ps(result + (r + (size_t)i) * PANEL + LANES);
    }
    accumulate(left + r, 1, rows, count, depth, panel, sums);
    for (int i = 0; i < count; i++) {
        _mm256_storeu_ps(result + (r + (size_t)i) * PANEL, sums[i][0]);
        _mm256_storeu_ps(result + (r + (size_t)i) * PANEL + LANES, sums[i][1]);
    }
}

static void multiply_add(const float *left, size_t rows, size_t depth, const float *panel, float *result) {
    size_t r = 0;
    for (; r + DV_WINOGRAD_ROWS <= rows; r += DV_WINOGRAD_ROWS)
        add_rows(left, rows, r, DV_WINOGRAD_ROWS, depth, panel, result);
    for (; r < rows; r += 2)
        add_rows(left, rows, r, 2, depth, panel, result);
}

const dv_winograd_kernels dv_winograd_fma = {
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
    .strided = &dv_winograd_strided_fma,
    .strided_back = &dv_winograd_strided_back_fma,
    .multiply = multiply,
    .multiply_add = multiply_add,
};
