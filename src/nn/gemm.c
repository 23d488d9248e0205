/* Matrix products by oneDNN. Left to itself it cuts the sums over k by the number of threads; so the product is
 * cut here, along the longer side of c, and each piece is one thread's: inside a parallel region, oneDNN uses
 * no threads of its own. */
#include "nn/gemm.h"

#include <dnnl.h>

enum { PIECE = 64 }; /* rows or columns */

dv_status dv_gemm(bool transpose_a, bool transpose_b, size_t m, size_t n, size_t k, const float *a, const float *b,
                  float beta, float *c, dv_error *error) {
    bool by_rows = m > n;
    size_t side = by_rows ? m : n;
    int failed = 0;
#pragma omp parallel for schedule(static) reduction(| : failed)
    for (size_t first = 0; first < side; first += PIECE) {
        size_t length = side - first < PIECE ? side - first : PIECE;
        size_t row = by_rows ? first : 0, column = by_rows ? 0 : first;
        const float *from_a = a + (transpose_a ? row : row * k), *from_b = b + (transpose_b ? column * k : column);
        dnnl_status_t status =
            dnnl_sgemm(transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', (dnnl_dim_t)(by_rows ? length : m),
                       (dnnl_dim_t)(by_rows ? n : length), (dnnl_dim_t)k, 1, from_a, (dnnl_dim_t)(transpose_a ? m : k),
                       from_b, (dnnl_dim_t)(transpose_b ? k : n), beta, c + row * n + column, (dnnl_dim_t)n);
        failed |= (int)status;
    }
    if (failed)
        return dv_fail(error, DV_ERROR_MEMORY, "oneDNN could not multiply matrices (status %d): free some memory",
                       failed);
    return DV_OK;
}
