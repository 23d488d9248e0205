/* One dimension of a convolution, as a pass on matrix tiles sees it: which rows, or positions of a row, an element of
 * the window brings together. Results are `to`, what is read is `from`. With a stride, one of the two is seen by
 * phases, the remainders of positions by the stride: forward reads every stride-th pixel from some phase on, backward
 * data writes those. Within a phase neighbours stay neighbours, and an element of the window is a shift. */
#ifndef DV_NN_MATRIX_AXIS_H
#define DV_NN_MATRIX_AXIS_H

#include "nn/shape.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct dv_matrix_axis {
    size_t from, to;               /* lengths */
    size_t from_phases, to_phases; /* the stride, or 1 */
    size_t kernel, dilation;
    ptrdiff_t padding;
    bool back;             /* backward data: the window is turned */
    ptrdiff_t least, most; /* shifts, in positions of a phase */
} dv_matrix_axis;

/* Where an element of the window falls: for positions of one phase of `to`, a phase of `from` and a shift. */
typedef struct dv_matrix_shift {
    bool used;
    size_t phase;
    ptrdiff_t shift;
} dv_matrix_shift;

/* The axis of side `d` of a window between src and dst of these lengths. */
dv_matrix_axis dv_axis_of(size_t src, size_t dst, const dv_window *window, int d, bool back);

dv_matrix_shift dv_axis_shift(const dv_matrix_axis *axis, size_t phase, size_t element);

/* The row of `from` that row `at` of `to` meets with an element of the window; -1: none. */
ptrdiff_t dv_axis_row(const dv_matrix_axis *axis, size_t at, size_t element);

/* Positions of a phase of `to`. */
size_t dv_axis_positions(const dv_matrix_axis *axis, size_t phase);

/* The rows of `from`, first .. *last - 1, that hold all that rows begin .. end - 1 of `to` meet; none: both are 0. */
size_t dv_axis_rows_met(const dv_matrix_axis *axis, size_t begin, size_t end, size_t *last);

/* Whether one of the rows begin .. end - 1 of `to` meets a row of `from`. */
bool dv_axis_is_met(const dv_matrix_axis *axis, size_t begin, size_t end, size_t row);

/* Whether any element of the window falls on a phase of `from`. */
bool dv_axis_phase_is_met(const dv_matrix_axis *axis, size_t phase);

#endif
