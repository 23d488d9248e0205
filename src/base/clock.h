/* Seconds, for differences alone. */
#ifndef DV_BASE_CLOCK_H
#define DV_BASE_CLOCK_H

#include <time.h>

static inline double dv_now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

#endif
