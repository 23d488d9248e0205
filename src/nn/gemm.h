/* Matrix products. */
#ifndef DV_NN_GEMM_H
#define DV_NN_GEMM_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

/* c = a b + beta c, all f32 and row by row: c [m][n], a [m][k] or, transposed, [k][m], b [k][n] or [n][k].
 * With beta 0, c need not hold numbers before. The same bits for any number of threads. */
dv_status dv_gemm(bool transpose_a, bool transpose_b, size_t m, size_t n, size_t k, const float *a, const float *b,
                  float beta, float *c, dv_error *error);

#endif
