/* Clipping gradients by their norm. */
#ifndef DV_OPTIMIZER_CLIP_H
#define DV_OPTIMIZER_CLIP_H

#include <stddef.h>

/* The sum of squares of x [count]: the same bits with any number of threads. */
double dv_sum_of_squares(const float *x, size_t count);

/* The factor that brings gradients of norm `norm` to at most `most`, as PyTorch's clip_grad_norm_ has it. */
static inline double dv_clip_factor(double most, double norm) {
    double factor = most / (norm + 1e-6);
    return factor < 1 ? factor : 1;
}

#endif
