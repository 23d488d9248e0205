/* Kernels of convolutions on matrix tiles: 16 x 16 sums at a time of products of bf16.
 *
 * A line is a row of pixels of a few images, laid out as lanes: pixel after pixel, and of each pixel image after image.
 * The same image's next pixel is then `images` lanes further, wherever one is, so that an element of a convolution's
 * window is a shift of the whole line, and rows of any width fill tiles of 16 lanes.
 *
 *     lines      blocks of 32 channels, each [lane][32]                  what forward and backward data read
 *     pairs      blocks of 16 channels, each [lane / 2][16][2 lanes]     what the gradient of weights reads of src
 *     turned     blocks of 16 channels, each [lane / 32][16][32 lanes]   ... and of diff_dst
 *     weights    blocks of 32 x 16 channels, each [16][16][2 of the 32]  what lines are multiplied with
 *
 * The bytes of each make tiles of 16 rows of 64 bytes as they lie. Channels beyond the last one are zeros. */
#ifndef DV_NN_KERNELS_MATRIX_H
#define DV_NN_KERNELS_MATRIX_H

#include <stddef.h>
#include <stdint.h>

enum {
    DV_MATRIX_SIDE = 16,          /* rows of a tile, and f32 in a row of sums */
    DV_MATRIX_DEPTH = 32,         /* bf16 of a row of a tile */
    DV_MATRIX_ELEMENTS = 16 * 32, /* bf16 of a tile */
    DV_MATRIX_SUMS = 16 * 16,     /* f32 of a tile */
    DV_MATRIX_SQUARE = 32,        /* lanes, and channels, of the two by two tiles that kernels compute together */
};

/* Pixels of one row of an image: where the first one's channels are, and elements from one pixel to the next. */
typedef struct dv_matrix_pixels {
    const uint16_t *data; /* NULL: all zeros */
    size_t count, stride, channels;
} dv_matrix_pixels;

/* Where the lanes of an image are: the first pixel's, elements from one pixel to the next, and from one block of
 * channels to the next. */
typedef struct dv_matrix_lanes {
    uint16_t *data;
    size_t stride, block;
} dv_matrix_lanes;

/* An element of the window: the line shifted to where it falls, and its weights. */
typedef struct dv_matrix_tap {
    const uint16_t *line, *weights;
} dv_matrix_tap;

/* What a row of results is summed of. */
typedef struct dv_matrix_product {
    const dv_matrix_tap *taps;
    size_t tap_count;
    size_t blocks;                    /* of 32 channels */
    size_t line_block, weights_block; /* elements from one of them to the next */
} dv_matrix_product;

/* A row of results, of some of their channels. */
typedef struct dv_matrix_target {
    uint16_t *data;
    size_t pixels, pixel_stride;
    size_t images, image_stride; /* images that there are */
    size_t lanes_per_pixel;      /* at least as many */
    size_t channels;             /* 1 to 32 */
    const float *bias;           /* [channels], or NULL */
} dv_matrix_target;

/* Plain weights of a block of channels, for one element of the window: channels of either end, and elements from one to
 * the next. */
typedef struct dv_matrix_plain {
    size_t from_channels, from_stride;
    size_t to_channels, to_stride;
} dv_matrix_plain;

/* Lines that are multiplied lane by lane: a turned one, and one in pairs from where it meets the first lane. */
typedef struct dv_matrix_meeting {
    const uint16_t *turned, *pairs;
} dv_matrix_meeting;

typedef struct dv_matrix_kernels dv_matrix_kernels;

struct dv_matrix_kernels {
    const char *name;

    /* A thread calls `multiply` and `multiply_add` between these two. */
    void (*begin)(void);
    void (*end)(void);

    /* Pixels of one image to their lanes, in lines. */
    void (*spread)(const dv_matrix_pixels *pixels, const dv_matrix_lanes *lanes);
    /* Pixels of two neighbouring images to their lanes, in pairs. Both have count, stride and channels of the first. */
    void (*pair)(const dv_matrix_pixels *pixels, const uint16_t *second, const dv_matrix_lanes *lanes);
    /* Tiles of pairs to turned ones, in place. */
    void (*turn)(uint16_t *tiles, size_t count);

    /* A tile of weights: rounds what there is of 32 x 16 channels. */
    void (*pack)(const float *weights, const dv_matrix_plain *plain, uint16_t *tile);

    /* sums[32][32] of lanes lane .. lane + 31 with the first `columns` (1 or 2) tiles' channels. */
    void (*multiply)(const dv_matrix_product *product, size_t lane, size_t columns, float *sums);
    /* Rounds them into the row of results, where there are some. */
    void (*store)(const float *sums, size_t lane, const dv_matrix_target *target);

    /* sums[r * sums_row + c * DV_MATRIX_SUMS ..], r < rows, c < columns (1 or 2 each): adds the products of `chunks` of
     * 32 lanes of each meeting. Tile r is of the r-th block of the turned line, c of the c-th of the pairs. */
    void (*multiply_add)(const dv_matrix_meeting *meetings, size_t count, size_t chunks, const size_t block[2],
                         size_t rows, size_t columns, float *sums, size_t sums_row);
    /* Adds a tile of sums, [to][from], to what there is of 16 x 16 channels. */
    void (*add)(const float *sums, const dv_matrix_plain *plain, float *gradient);
};

extern const dv_matrix_kernels dv_matrix_reference; /* plain C */
extern const dv_matrix_kernels dv_matrix_amx;       /* x86-64 with AMX */

/* The tiles of the instruction set in use; NULL if it has none. */
const dv_matrix_kernels *dv_matrix(void);

#endif
