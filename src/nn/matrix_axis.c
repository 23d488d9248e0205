/* Where the elements of a window fall. */
#include "nn/matrix_axis.h"

#include "base/sizes.h"

#include <stdint.h>

static ptrdiff_t floor_divide(ptrdiff_t a, ptrdiff_t b) {
    return a >= 0 ? a / b : -((-a + b - 1) / b);
}

dv_matrix_shift dv_axis_shift(const dv_matrix_axis *axis, size_t phase, size_t element) {
    ptrdiff_t stride = (ptrdiff_t)(axis->from_phases * axis->to_phases);
    ptrdiff_t reach = (ptrdiff_t)(element * axis->dilation) - axis->padding;
    ptrdiff_t distance = axis->back ? (ptrdiff_t)phase - reach : reach;
    ptrdiff_t shift = floor_divide(distance, stride), rest = distance - shift * stride;
    return (dv_matrix_shift){.used = !axis->back || rest == 0, .phase = axis->back ? 0 : (size_t)rest, .shift = shift};
}

ptrdiff_t dv_axis_row(const dv_matrix_axis *axis, size_t at, size_t element) {
    dv_matrix_shift shift = dv_axis_shift(axis, at % axis->to_phases, element);
    ptrdiff_t position = (ptrdiff_t)(at / axis->to_phases) + shift.shift;
    ptrdiff_t row = position * (ptrdiff_t)axis->from_phases + (ptrdiff_t)shift.phase;
    return shift.used && row >= 0 && row < (ptrdiff_t)axis->from ? row : -1;
}

size_t dv_axis_positions(const dv_matrix_axis *axis, size_t phase) {
    return dv_divide_up(axis->to - dv_smaller(axis->to, phase), axis->to_phases);
}

size_t dv_axis_rows_met(const dv_matrix_axis *axis, size_t begin, size_t end, size_t *last) {
    size_t first = SIZE_MAX;
    *last = 0;
    for (size_t at = begin; at < end; at++)
        for (size_t k = 0; k < axis->kernel; k++) {
            ptrdiff_t row = dv_axis_row(axis, at, k);
            if (row < 0)
                continue;
            first = dv_smaller(first, (size_t)row);
            *last = dv_larger(*last, (size_t)row + 1);
        }
    return *last ? first : 0;
}

bool dv_axis_is_met(const dv_matrix_axis *axis, size_t begin, size_t end, size_t row) {
    ptrdiff_t stride = (ptrdiff_t)(axis->from_phases * axis->to_phases);
    for (size_t k = 0; k < axis->kernel; k++) {
        ptrdiff_t reach = (ptrdiff_t)(k * axis->dilation) - axis->padding;
        ptrdiff_t at = axis->back ? (ptrdiff_t)row * stride + reach : (ptrdiff_t)row - reach;
        if (!axis->back && (at < 0 || at % stride != 0))
            continue;
        at = axis->back ? at : at / stride;
        if (at >= (ptrdiff_t)begin && at < (ptrdiff_t)end)
            return true;
    }
    return false;
}

bool dv_axis_phase_is_met(const dv_matrix_axis *axis, size_t phase) {
    for (size_t to = 0; to < axis->to_phases; to++)
        for (size_t k = 0; k < axis->kernel; k++) {
            dv_matrix_shift shift = dv_axis_shift(axis, to, k);
            if (shift.used && shift.phase == phase)
                return true;
        }
    return false;
}

dv_matrix_axis dv_axis_of(size_t src, size_t dst, const dv_window *window, int d, bool back) {
    dv_matrix_axis axis = {.from = back ? dst : src,
                           .to = back ? src : dst,
                           .from_phases = back ? 1 : window->stride[d],
                           .to_phases = back ? window->stride[d] : 1,
                           .kernel = window->kernel[d],
                           .dilation = window->dilation[d],
                           .padding = (ptrdiff_t)window->padding[d],
                           .back = back};
    for (size_t phase = 0; phase < axis.to_phases; phase++)
        for (size_t k = 0; k < axis.kernel; k++) {
            dv_matrix_shift shift = dv_axis_shift(&axis, phase, k);
            if (shift.used && shift.shift < axis.least)
                axis.least = shift.shift;
            if (shift.used && shift.shift > axis.most)
                axis.most = shift.shift;
        }
    return axis;
}
