/* The number of threads: OpenMP's own, with bounds. */
#include <division/threads.h>

#include "base/status.h"

#include <omp.h>

dv_status dv_set_threads(int threads, dv_error *error) {
    if (threads < 0 || threads > DV_MAX_THREADS)
        return dv_fail(error, DV_ERROR_OPTION, "threads=%d: it can be 1 to %d, or 0 for as many as there are now",
                       threads, DV_MAX_THREADS);
    if (threads > 0)
        omp_set_num_threads(threads);
    return DV_OK;
}

int dv_threads(void) {
    return omp_get_max_threads();
}
