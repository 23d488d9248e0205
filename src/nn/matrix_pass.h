/* What passes on matrix tiles share: forward and backward data (matrix.c), and the gradient of weights
 * (matrix_gradient.c). */
#ifndef DV_NN_MATRIX_PASS_H
#define DV_NN_MATRIX_PASS_H

#include "nn/kernels/matrix.h"
#include "nn/matrix_axis.h"
#include "nn/pass.h"

enum {
    DV_MATRIX_MOST_EXCESS = 8, /* by this factor lines may be larger than they should if they cannot be made smaller */
    DV_MATRIX_MOST_GROUP = 32, /* images */
};

typedef struct dv_matrix_pass {
    dv_pass pass;
    const dv_matrix_kernels *kernels;
    size_t images;
    size_t from_channels, to_channels;
    dv_matrix_axis y, x;
    size_t from_blocks;   /* of 32 channels; of a gradient: of 16 */
    size_t to_blocks;     /* of 16 channels */
    size_t group, groups; /* images whose pixels are neighbouring lanes, and how many such groups there are */
    size_t band, bands;   /* rows of `to` that are computed together, and how many such bands there are */
    size_t band_groups;   /* of a gradient: groups that are in a band */
    size_t from_rows;     /* that a band takes, at most */
    size_t phase;         /* elements of one phase of a line of one block of channels */
    size_t line;          /* of all phases */
    size_t block;         /* of all lines of a band */
    size_t chunks;        /* of a gradient: of 32 lanes in a row of `to` */
    size_t turned;        /* of a gradient: elements of all turned lines of one block of channels */
    size_t part_blocks;   /* of a gradient: blocks of `to` whose sums are there at a time */
    size_t parts;         /* that the channels of `to` are cut into, for threads that would have nothing to do */
    size_t from_channel, to_channel; /* plain weights: elements from one channel to the next */
} dv_matrix_pass;

/* Row `row` of an image of a map; NULL, which reads as zeros, if there is no such image. */
const uint16_t *dv_matrix_row(const dv_matrix_pass *made, const uint16_t *map, size_t image, size_t row,
                              size_t row_elements, size_t rows);

/* Pixels of one image to lanes of a line, or those of two to a line in pairs; moves on behind them. */
void dv_matrix_lay(const dv_matrix_pass *made, dv_matrix_pixels pixels, const uint16_t *second, bool pairs,
                   dv_matrix_lanes *lanes);

/* Makes the line of row `row` of a group's images. */
void dv_matrix_make_line(const dv_matrix_pass *made, const uint16_t *map, size_t group, size_t row, bool pairs,
                         uint16_t *line);

/* Sets the sizes of lines, for groups of `group` images and bands of `band` rows; `lane` elements are a lane of one
 * block of channels. */
void dv_matrix_set_lines(dv_matrix_pass *made, size_t group, size_t band, size_t lane);

/* The bytes of lines, as they are set. */
size_t dv_matrix_lines_bytes(const dv_matrix_pass *made);

/* What there is of a block of up to `most_from` x 16 channels, which begins at `from` and `to`. */
dv_matrix_plain dv_matrix_plain_at(const dv_matrix_pass *made, size_t from, size_t most_from, size_t to);

/* Sets the sizes of a gradient; false if lines are too long. */
bool dv_matrix_gradient_set_sizes(dv_matrix_pass *made);
/* The `run` of such a pass. */
dv_status dv_matrix_gradient_run(dv_pass *pass, const dv_pass_arrays *arrays, dv_error *error);

#endif
