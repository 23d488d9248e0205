/* Windows of pooling layers: their output's shape, and which pixels meet in a window. */
#ifndef DV_NN_POOLING_H
#define DV_NN_POOLING_H

#include "nn/kernels/elementwise.h"
#include "nn/layer.h"

/* Always three dimensions; a map of lower rank has leading sides of 1. */
typedef struct dv_pooling {
    size_t input[3], output[3]; /* sides */
    size_t kernel[3], stride[3], padding[3];
} dv_pooling;

/* Checks inputs and options, windows of at most `most` pixels, and sets the output's shape as PyTorch does. */
dv_status dv_pooling_infer(dv_layer *layer, size_t most, dv_error *error);

/* The windows of a layer that dv_pooling_infer has accepted. */
dv_pooling dv_pooling_of(const dv_layer *layer);

/* Pixels of one window. */
size_t dv_pooling_window(const dv_pooling *pooling);

/* Where pixel `index` of sides[3] is. */
void dv_pooling_position(const size_t sides[3], size_t index, size_t position[3]);

/* The input's pixels in the window of the output's pixel `at`, padding left out, by rising code: their number in
 * the window. Returns how many: at least 1. Weights are 1. */
size_t dv_pooling_taps(const dv_pooling *pooling, const size_t at[3], dv_tap *taps);

/* The other way: the output's pixels whose windows hold the input's pixel `at`, each with the number that it has
 * in that window. Returns how many: 0 or more, not more than a window has pixels. */
size_t dv_pooling_taps_back(const dv_pooling *pooling, const size_t at[3], dv_tap *taps);

/* What the sum of the window of the output's pixel `at` is divided by to be an average: its pixels in the
 * padded input or, without count_padding, in the input. */
size_t dv_pooling_divisor(const dv_pooling *pooling, const size_t at[3], bool count_padding);

#endif
