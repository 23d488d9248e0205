/* Options of layers, as the graph builder takes them. Windows are given per spatial dimension of the map,
 * slowest first; dimensions that the map does not have are ignored.
 *
 * - Threads, fork, freeing: Options are plain values, which the builder copies. */
#ifndef DIVISION_LAYERS_H
#define DIVISION_LAYERS_H

#include <division/codec.h>
#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Sides of windows. */
typedef struct dv_window {
    size_t kernel[DV_MAX_RANK], stride[DV_MAX_RANK], padding[DV_MAX_RANK], dilation[DV_MAX_RANK]; /* dilation 1: none */
} dv_window;

/* The same kernel, stride and padding along every dimension, no dilation. */
static inline dv_window dv_window_square(size_t kernel, size_t stride, size_t padding) {
    dv_window window;
    for (int d = 0; d < DV_MAX_RANK; d++) {
        window.kernel[d] = kernel;
        window.stride[d] = stride;
        window.padding[d] = padding;
        window.dilation[d] = 1;
    }
    return window;
}

/* How the weights of a convolution are initialised. */
typedef enum dv_initialisation {
    DV_INITIALISATION_HE,      /* normal, variance 2 / outgoing connections: torchvision's networks */
    DV_INITIALISATION_UNIFORM, /* uniform within 1 / sqrt(incoming connections), a sixth of that: PyTorch's default */
} dv_initialisation;

typedef struct dv_convolution_options {
    size_t channels; /* of the output */
    dv_window window;
    size_t groups;
    bool bias;
    size_t output_padding[DV_MAX_RANK]; /* transposed convolution only */
    dv_initialisation initialisation;
} dv_convolution_options;

/* Batch norm over all but the channels, with what often follows it: output = f(norm(inputs[0]) + inputs[1]),
 * inputs[1] only if `add`, f = ReLU only if `relu`. */
typedef struct dv_batch_norm_options {
    float epsilon;  /* 1e-5 */
    float momentum; /* 0.1: of the new statistics */
    bool add, relu;
} dv_batch_norm_options;

/* output = input where that is positive, else input * slope. */
typedef struct dv_leaky_relu_options {
    float slope; /* above 0 and below 1 */
} dv_leaky_relu_options;

typedef struct dv_pooling_options {
    dv_window window;   /* dilation is 1 */
    bool ceil;          /* round the output's sides up */
    bool count_padding; /* average: divide by the whole window (PyTorch's default: true) */
} dv_pooling_options;

typedef struct dv_dropout_options {
    float probability; /* of being dropped */
} dv_dropout_options;

typedef struct dv_linear_options {
    size_t channels; /* of the output */
    bool bias;
} dv_linear_options;

/* The label of a pixel that has none. */
#define DV_NO_LABEL (-1)

#ifdef __cplusplus
}
#endif

#endif
