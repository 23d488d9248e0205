/* Kernels of Winograd's convolution F(4x4, 3x3), as Lavin and Gray describe it (CVPR 2016).
 *
 * A tile of 4x4 results takes 6x6 pixels. Both the pixels and the 3x3 weights are evaluated, as polynomials in two
 * variables, at 36 points; there a convolution is a product per point: 36 products for 16 results where the plain
 * sum has 144. Over channels each point has a matrix product of its own, and that is where the time goes.
 *
 * The gradient of the weights is the same with other ends: 4x4 gradients as the weights, 3x3 results.
 *
 * With stride 2, along a side, every other pixel meets the middle one of the three weights, and those between them the
 * other two, as in a convolution of two weights with stride 1. So 4 results take 9 pixels, and 9 products: 5 of the two
 * weights, by the same algorithm, and 4 of the middle one. That makes 81 products for 16 results instead of 144. The
 * weights have 36 points as before, one for the middle: several products share them.
 *
 * Channels come in panels of 16, which is what a row of the matrix products has. Points have whole panels: where the
 * channels of a map end within one, the rest of it are zeros.
 *
 * Maps are f32 or bf16. Everything between them is f32: bf16 becomes f32 where a tile is read, and is rounded to again
 * where one is written. */
#ifndef DV_NN_KERNELS_WINOGRAD_H
#define DV_NN_KERNELS_WINOGRAD_H

#include <division/codec.h>
#include <stdbool.h>
#include <stddef.h>

enum {
    DV_WINOGRAD_SIDE = 6,      /* points of the weights along a side */
    DV_WINOGRAD_MOST_SIDE = 9, /* points of products along a side, at most */
    DV_WINOGRAD_PANEL = 16,    /* channels */
    DV_WINOGRAD_ROWS = 6,      /* of a matrix that are multiplied together */
};

/* The pixels of a tile in a map: where the first channel of the first one would be, and elements from one line and from
 * one pixel to the next. At the map's edge a tile has only the lines top .. bottom - 1, and of them the pixels left ..
 * right - 1: the others read as zeros, and are not written. */
typedef struct dv_winograd_pixels {
    void *data;
    dv_type type; /* f32 or bf16 */
    size_t row, pixel;
    int top, bottom, left, right;
} dv_winograd_pixels;

/* The plain weights of channels that form panels, seen from one direction of the convolution. */
typedef struct dv_winograd_weights {
    size_t column_stride, row_stride; /* floats from one channel of a panel, and of a panel's depth, to the next */
    bool turned;                      /* by half a turn, as backward data takes them */
} dv_winograd_weights;

/* One kind of convolution: how tiles and weights go to points and back. Channels are those of the map, any number. */
typedef struct dv_winograd_form {
    int tile;                                 /* pixels of a result along a side of a tile */
    int reach;                                /* pixels that they take */
    int step;                                 /* pixels from where one tile's begin to where the next one's do */
    int side;                                 /* points along a side; a tile has side * side of them */
    int weights_point[DV_WINOGRAD_MOST_SIDE]; /* along a side: that of the weights with which each is multiplied */

    /* reach x reach pixels -> points[p * stride + channel]. */
    void (*input)(const dv_winograd_pixels *pixels, size_t channels, float *points, size_t stride);
    /* tile x tile gradients -> points[p * stride + panel * panel_stride + channel in the panel]. */
    void (*gradient)(const dv_winograd_pixels *pixels, size_t channels, float *points, size_t stride,
                     size_t panel_stride);
    /* points[p * stride + channel] -> tile x tile results, to which bias [channels] is added if there is one. */
    void (*output)(const float *points, size_t stride, size_t channels, const float *bias,
                   const dv_winograd_pixels *pixels);

    /* Weights [3x3] of a row of a panel, of which there are `columns`, <-> panel[p * stride + column]; the way back
     * adds. */
    void (*weights)(const float *plain, const dv_winograd_weights *layout, size_t columns, float *panel, size_t stride);
    void (*add_weights)(const float *panel, size_t stride, const dv_winograd_weights *layout, size_t columns,
                        float *plain);
} dv_winograd_form;

typedef struct dv_winograd_kernels {
    const char *name;                     /* "fma" */
    dv_winograd_form plain;               /* stride 1: forward, backward data, and the gradient of weights */
    const dv_winograd_form *strided;      /* stride 2: forward, and the gradient of weights */
    const dv_winograd_form *strided_back; /* stride 2 and padding 1: backward data */

    /* result[r * result_stride + column] = sum over d of left[r * left_stride + d] panel[d][column], for all columns
     * of a panel. `rows` is rounded up to whole DV_WINOGRAD_ROWS: both matrices have room for them. */
    void (*multiply)(const float *left, size_t left_stride, size_t rows, size_t depth, const float *panel,
                     float *result, size_t result_stride);
    /* result[r][column] += sum over d of left[d * left_stride + r] panel[d][column]. `rows` is even. */
    void (*multiply_add)(const float *left, size_t left_stride, size_t rows, size_t depth, const float *panel,
                         float *result);
} dv_winograd_kernels;

/* Compiled for x86-64 with AVX2 and FMA, for AVX-512, and for AArch64. They compute the same bits. */
extern const dv_winograd_kernels dv_winograd_fma, dv_winograd_avx512, dv_winograd_neon;
extern const dv_winograd_form dv_winograd_strided_fma, dv_winograd_strided_avx512, dv_winograd_strided_neon;
extern const dv_winograd_form dv_winograd_strided_back_fma, dv_winograd_strided_back_avx512,
    dv_winograd_strided_back_neon;

/* The kernels for the instruction set in use; NULL where it has none. */
const dv_winograd_kernels *dv_winograd(void);

#endif
