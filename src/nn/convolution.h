/* What convolution and transposed convolution share: all but their shapes.
 *
 * A transposed convolution is the convolution from its output to its input, run the other way round: its
 * forward is that one's backward data, and the reverse. So both are described by that one convolution and
 * by which of its ends is the layer's input. */
#ifndef DV_NN_CONVOLUTION_H
#define DV_NN_CONVOLUTION_H

#include "nn/layer.h"

/* Checks what does not depend on the direction: one input, 1 to 3 sides, channels last, f32 or bf16, groups
 * that divide both numbers of channels, sides of windows that are not zero. */
dv_status dv_convolution_check(const dv_layer *layer, dv_error *error);

/* Elements that a window covers along side `d`, from its first to its last. */
size_t dv_window_reach(const dv_window *window, int d);

/* Sets the output, whose sides are given, and the parameters: weight [first, second, kernel...], bias [channels]. */
dv_status dv_convolution_declare(dv_layer *layer, const size_t *sides, size_t first, size_t second, dv_error *error);

/* layer->kind's functions for both. */
dv_status dv_convolution_prepare(dv_layer *layer, bool transposed, dv_error *error);
void dv_convolution_destroy(dv_layer *layer);
const struct dv_pass *dv_convolution_pass(const dv_layer *layer, int index, size_t *runs);
dv_status dv_convolution_forward(const dv_layer *layer, const dv_forward *call, dv_error *error);
dv_status dv_convolution_forward_slice(const dv_layer *layer, const dv_forward *call, size_t first, void *images,
                                       dv_error *error);
dv_status dv_convolution_backward(const dv_layer *layer, const dv_backward *call, dv_error *error);

/* For tests: what dv_convolution_prepare does from now on. All zero: what is best. */
typedef struct dv_convolution_forced {
    size_t slice_images; /* of slices; a divisor of the batch */
} dv_convolution_forced;
extern dv_convolution_forced dv_convolution_force;

#endif
