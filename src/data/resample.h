/* Resizing an image while its rows come in, antialiased: each pixel of the result is a mean of those that it covers,
 * weighted by a triangle as wide as two pixels of the result (of the source, where it is enlarged).
 *
 * The arithmetic is PIL's, to the bit: 22 bits after the point, first along rows, rounded to bytes, then along columns.
 * Networks are compared by their accuracy on images that PIL resized, and other filters cost some of it. */
#ifndef DV_DATA_RESAMPLE_H
#define DV_DATA_RESAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DV_PIXEL = 3, DV_IMAGE_MAX_SIDE = 65500 }; /* bytes of a pixel; what a JPEG can have */

/* A source of width x height becomes an image of target_width x target_height, of which a part is wanted. */
typedef struct dv_resample_size {
    size_t width, height;                      /* 1 to DV_IMAGE_MAX_SIDE */
    size_t target_width, target_height;        /* at least 1 */
    size_t left, top, part_width, part_height; /* within the target */
    bool flip;                                 /* and mirrored, left to right */
} dv_resample_size;

/* What one pixel of the result is made of: `count` pixels of the source from `first` on. */
typedef struct dv_taps {
    uint32_t first, count;
    const int32_t *weights; /* [count] */
} dv_taps;

/* A resizing under way. Its memory is that which dv_resample_init was given. */
typedef struct dv_resample {
    dv_resample_size size;
    dv_taps *columns, *rows; /* [part_width], [part_height] */
    int32_t *weights;        /* of both */
    int32_t *pairs;          /* of the columns: weights in halves, for two pixels at a time */
    uint32_t pair_count;     /* of each column */
    int32_t *line;           /* [part_width][3]: a row of the source, resized; each byte p as p | p << 23 */
    int32_t *sums;           /* [part_height][part_width][3] */
    size_t next;             /* the row of the source that comes next */
    size_t open;             /* the first row of the result that is not complete */
    uint8_t *dst;            /* [part_height][part_width][3] */
} dv_resample;

/* Bytes for parts of up to width x height, and their use; `memory` is aligned as malloc's and the caller's. */
size_t dv_resample_bytes(size_t width, size_t height);
void dv_resample_init(dv_resample *resample, size_t width, size_t height, void *memory);

/* Begins an image whose result goes to `dst`. */
void dv_resample_begin(dv_resample *resample, const dv_resample_size *size, uint8_t *dst);

/* The rows of the source that have a part in the result: those outside may be left out of the calls below. */
size_t dv_resample_first(const dv_resample *resample);
size_t dv_resample_end(const dv_resample *resample);

/* Takes the next row [width][3] of the source, beginning with dv_resample_first's. After that of dv_resample_end - 1
 * the result is complete. */
void dv_resample_row(dv_resample *resample, const uint8_t *row);

#endif
