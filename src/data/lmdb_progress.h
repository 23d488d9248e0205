/* What converting and verifying share: their order, telling of progress, and being stopped. */
#ifndef DV_DATA_LMDB_PROGRESS_H
#define DV_DATA_LMDB_PROGRESS_H

#include "data/order.h"

#include <division/tools/lmdb.h>
#include <math.h>
#include <stdbool.h>
#include <time.h>

/* Which image of a split is at which place of its file: given by their number alone. */
static inline dv_order dv_lmdb_order(dv_split split, size_t images) {
    return dv_order_new(1, (uint64_t)split, images);
}

static inline bool dv_lmdb_stop_asked(const dv_lmdb_callbacks *callbacks) {
    return callbacks != NULL && callbacks->stop != NULL && *callbacks->stop != 0;
}

/* Fills in the times, and tells. */
static inline void dv_lmdb_tell(const dv_lmdb_callbacks *callbacks, const struct timespec *start,
                                dv_lmdb_progress progress) {
    struct timespec now;
    if (callbacks == NULL || callbacks->progress == NULL)
        return;
    clock_gettime(CLOCK_MONOTONIC, &now);
    progress.seconds = (double)(now.tv_sec - start->tv_sec) + (double)(now.tv_nsec - start->tv_nsec) * 1e-9;
    size_t made = progress.all_done - progress.kept, left = progress.all_images - progress.all_done;
    progress.seconds_left = made > 0 ? progress.seconds / (double)made * (double)left : NAN;
    callbacks->progress(callbacks->context, &progress);
}

#endif
