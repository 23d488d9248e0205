/* Arithmetic of sizes. */
#ifndef DV_BASE_SIZES_H
#define DV_BASE_SIZES_H

#include <stddef.h>

static inline size_t dv_smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

static inline size_t dv_larger(size_t a, size_t b) {
    return a > b ? a : b;
}

static inline size_t dv_divide_up(size_t a, size_t b) {
    return (a + b - 1) / b;
}

#endif
