/* Winograd's convolution with eight lanes and fused multiply-adds. Lanes are channels everywhere, so that nothing
 * is shuffled. */
#include "nn/kernels/winograd.h"

#include <immintrin.h>

enum { LANES = 8, TILE = DV_WINOGRAD_TILE, REACH = DV_WINOGRAD_REACH, PANEL = DV_WINOGRAD_PANEL, KERNEL = 3 };

typedef __m256 lanes;

#define ALWAYS static inline __attribute__((always_inline))

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
static const float own_value[REACH] = {
    1 / (A2 * B2),
    1 / (2 * A2 * (A2 - B2)),
    1 / (2 * A2 * (A2 - B2)),
    1 / (2 * B2 * (B2 - A2)),
    1 / (2 * B2 * (B2 - A2)),
    1,
};

ALWAYS lanes all(float value) {
    return _mm256_set1_ps(value);
}

/* x y + z, z - x y */
ALWAYS lanes fused(lanes x, float y, lanes z) {
    return _mm256_fmadd_ps(x, all(y), z);
}

ALWAYS lanes fused_less(lanes x, float y, lanes z) {
    return _mm256_fnmadd_ps(x, all(y), z);
}

/* Six pixels to six points. */
ALWAYS void input_line(const lanes x[REACH], lanes y[REACH]) {
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
ALWAYS void values_of_3(const lanes x[3], lanes y[REACH]) {
    lanes even_a = fused(x[2], A2, x[0]), even_b = fused(x[2], B2, x[0]);
    y[0] = x[0];
    y[1] = fused(x[1], A, even_a);
    y[2] = fused_less(x[1], A, even_a);
    y[3] = fused(x[1], B, even_b);
    y[4] = fused_less(x[1], B, even_b);
    y[5] = x[2];
}

ALWAYS void values_of_4(const lanes x[4], lanes y[REACH]) {
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
ALWAYS void results_4(const lanes x[REACH], lanes y[4]) {
    lanes sum_a = _mm256_add_ps(x[1], x[2]), sum_b = _mm256_add_ps(x[3], x[4]);
    lanes difference_a = _mm256_sub_ps(x[1], x[2]), difference_b = _mm256_sub_ps(x[3], x[4]);
    y[0] = _mm256_add_ps(x[0], _mm256_add_ps(sum_a, sum_b));
    y[1] = fused(difference_a, A, _mm256_mul_ps(difference_b, all(B)));
    y[2] = fused(sum_a, A2, _mm256_mul_ps(sum_b, all(B2)));
    y[3] = fused(difference_a, A3, fused(difference_b, B3, x[5]));
}

ALWAYS void results_3(const lanes x[REACH], lanes y[3]) {
    lanes sum_a = _mm256_add_ps(x[1], x[2]), sum_b = _mm256_add_ps(x[3], x[4]);
    lanes difference_a = _mm256_sub_ps(x[1], x[2]), difference_b = _mm256_sub_ps(x[3], x[4]);
    y[0] = _mm256_add_ps(x[0], _mm256_add_ps(sum_a, sum_b));
    y[1] = fused(difference_a, A, _mm256_mul_ps(difference_b, all(B)));
    y[2] = fused(sum_a, A2, fused(sum_b, B2, x[5]));
}

/* ---- tiles ---------------------------------------------------------------------------------- */

ALWAYS bool is_whole(const dv_winograd_pixels *pixels, int side) {
    return pixels->top == 0 && pixels->left == 0 && pixels->bottom == side && pixels->right == side;
}

ALWAYS bool has_pixel(const dv_winograd_pixels *pixels, int i, int j) {
    return i >= pixels->top && i < pixels->bottom && j >= pixels->left && j < pixels->right;
}

/* The place of line `line` in a walk over lines that are `stride` floats apart. It keeps the compiler from finding all
 * of a tile's addresses beforehand: it has no registers for so many. */
ALWAYS const float *step(const float *pointer, int line, size_t stride) {
    pointer += line > 0 ? stride : 0;
    __asm__("" : "+r"(pointer));
    return pointer;
}

/* Lanes of the pixels of line `i`, those that the tile does not have as zeros. */
ALWAYS void load_line(const dv_winograd_pixels *pixels, const float *line, int i, int side, bool whole, lanes *x) {
    for (int j = 0; j < side; j++)
        x[j] =
            whole || has_pixel(pixels, i, j) ? _mm256_loadu_ps(line + (size_t)j * pixels->pixel) : _mm256_setzero_ps();
}

/* The three transforms, each for tiles that are whole and for those at an edge: `whole` is a constant. */

ALWAYS void input_tile(const dv_winograd_pixels *pixels, bool whole, size_t channels, float *points, size_t stride) {
    for (size_t c = 0; c < channels; c += LANES) {
        lanes lines[REACH][REACH];
        const float *from = pixels->data + c;
        for (int i = 0; i < REACH; i++) {
            lanes x[REACH];
            from = step(from, i, pixels->row);
            load_line(pixels, from, i, REACH, whole, x);
            input_line(x, lines[i]);
        }
        float *to = points + c;
        for (int j = 0; j < REACH; j++) {
            lanes x[REACH], y[REACH];
            to = (float *)step(to, j, stride);
            for (int i = 0; i < REACH; i++)
                x[i] = lines[i][j];
            input_line(x, y);
            for (int i = 0; i < REACH; i++)
                _mm256_storeu_ps(to + (size_t)(i * REACH) * stride, y[i]);
        }
    }
}

ALWAYS void gradient_tile(const dv_winograd_pixels *pixels, bool whole, size_t channels, float *points, size_t stride,
                          size_t panel_stride) {
    for (size_t c = 0; c < channels; c += LANES) {
        lanes lines[TILE][REACH];
        const float *from = pixels->data + c;
        for (int i = 0; i < TILE; i++) {
            lanes x[TILE];
            from = step(from, i, pixels->row);
            load_line(pixels, from, i, TILE, whole, x);
            values_of_4(x, lines[i]);
        }
        float *to = points + c / PANEL * panel_stride + c % PANEL;
        for (int j = 0; j < REACH; j++) {
            lanes x[TILE], y[REACH];
            to = (float *)step(to, j, stride);
            for (int i = 0; i < TILE; i++)
                x[i] = lines[i][j];
            values_of_4(x, y);
            for (int i = 0; i < REACH; i++)
                _mm256_storeu_ps(to + (size_t)(i * REACH) * stride, y[i]);
        }
    }
}

ALWAYS void output_tile(const float *points, size_t stride, size_t channels, const float *bias,
                        const dv_winograd_pixels *pixels, bool whole) {
    for (size_t c = 0; c < channels; c += LANES) {
        lanes columns[TILE][REACH], added = bias ? _mm256_loadu_ps(bias + c) : _mm256_setzero_ps();
        const float *from = points + c;
        for (int j = 0; j < REACH; j++) {
            lanes x[REACH], y[TILE];
            from = step(from, j, stride);
            for (int i = 0; i < REACH; i++)
                x[i] = _mm256_loadu_ps(from + (size_t)(i * REACH) * stride);
            results_4(x, y);
            for (int i = 0; i < TILE; i++)
                columns[i][j] = y[i];
        }
        float *to = pixels->data + c;
        for (int i = 0; i < TILE; i++) {
            lanes y[TILE];
            to = (float *)step(to, i, pixels->row);
            results_4(columns[i], y);
            for (int j = 0; j < TILE; j++)
                if (whole || has_pixel(pixels, i, j))
                    _mm256_storeu_ps(to + (size_t)j * pixels->pixel, _mm256_add_ps(y[j], added));
        }
    }
}

static void input(const dv_winograd_pixels *pixels, size_t channels, float *points, size_t stride) {
    if (is_whole(pixels, REACH))
        input_tile(pixels, true, channels, points, stride);
    else
        input_tile(pixels, false, channels, points, stride);
}

static void gradient(const dv_winograd_pixels *pixels, size_t channels, float *points, size_t stride,
                     size_t panel_stride) {
    if (is_whole(pixels, TILE))
        gradient_tile(pixels, true, channels, points, stride, panel_stride);
    else
        gradient_tile(pixels, false, channels, points, stride, panel_stride);
}

static void output(const float *points, size_t stride, size_t channels, const float *bias,
                   const dv_winograd_pixels *pixels) {
    if (is_whole(pixels, TILE))
        output_tile(points, stride, channels, bias, pixels, true);
    else
        output_tile(points, stride, channels, bias, pixels, false);
}

/* ---- weights -------------------------------------------------------------------------------- */

/* Where a layout has weight `w` of 3x3. */
ALWAYS int place_of(const dv_winograd_weights *layout, int w) {
    return layout->turned ? KERNEL * KERNEL - 1 - w : w;
}

static void weights(const float *plain, const dv_winograd_weights *layout, float *panel, size_t stride) {
    float square[KERNEL * KERNEL][PANEL];
    for (int w = 0; w < KERNEL * KERNEL; w++)
        for (int column = 0; column < PANEL; column++)
            square[w][column] = plain[column * layout->column_stride + place_of(layout, w)];
    for (int c = 0; c < PANEL; c += LANES) {
        lanes rows[KERNEL][REACH];
        for (int i = 0; i < KERNEL; i++) {
            lanes x[KERNEL];
            for (int j = 0; j < KERNEL; j++)
                x[j] = _mm256_loadu_ps(square[i * KERNEL + j] + c);
            values_of_3(x, rows[i]);
        }
        for (int j = 0; j < REACH; j++) {
            lanes x[KERNEL], y[REACH];
            for (int i = 0; i < KERNEL; i++)
                x[i] = rows[i][j];
            values_of_3(x, y);
            for (int i = 0; i < REACH; i++)
                _mm256_storeu_ps(panel + (size_t)(i * REACH + j) * stride + c,
                                 _mm256_mul_ps(y[i], all(own_value[i] * own_value[j])));
        }
    }
}

static void add_weights(const float *panel, size_t stride, const dv_winograd_weights *layout, float *plain) {
    float square[KERNEL * KERNEL][PANEL];
    for (int c = 0; c < PANEL; c += LANES) {
        lanes rows[REACH][KERNEL];
        for (int i = 0; i < REACH; i++) {
            lanes x[REACH];
            for (int j = 0; j < REACH; j++)
                x[j] = _mm256_mul_ps(_mm256_loadu_ps(panel + (size_t)(i * REACH + j) * stride + c),
                                     all(own_value[i] * own_value[j]));
            results_3(x, rows[i]);
        }
        for (int j = 0; j < KERNEL; j++) {
            lanes x[REACH], y[KERNEL];
            for (int i = 0; i < REACH; i++)
                x[i] = rows[i][j];
            results_3(x, y);
            for (int i = 0; i < KERNEL; i++)
                _mm256_storeu_ps(square[i * KERNEL + j] + c, y[i]);
        }
    }
    for (int column = 0; column < PANEL; column++)
        for (int w = 0; w < KERNEL * KERNEL; w++)
            plain[column * layout->column_stride + place_of(layout, w)] += square[w][column];
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
    .input = input,
    .gradient = gradient,
    .output = output,
    .weights = weights,
    .add_weights = add_weights,
    .multiply = multiply,
    .multiply_add = multiply_add,
};
