/* How many threads the library uses.
 *
 * All its threads but those of loaders are OpenMP's. The number is OpenMP's own, which OMP_NUM_THREADS sets before the
 * program starts and the functions here later. It belongs to the calling thread, as OpenMP has it: each thread that
 * calls the library has its own team, and sets the number of it.
 *
 * The number counts where something is made: dv_graph_finish and dv_plan_new choose convolutions and workspace for it,
 * and the steps of a run use as many threads as its graph was finished with, whatever the number is by then. So set it
 * first, in the thread that builds and trains. Losses depend on it: see division/train.h. */
#ifndef DIVISION_THREADS_H
#define DIVISION_THREADS_H

#include <division/export.h>
#include <division/status.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { DV_MAX_THREADS = 1024 };

/* Threads that calls from this thread use from now on: 1 to DV_MAX_THREADS, or 0 to leave the number as it is. */
DV_API dv_status dv_set_threads(int threads, dv_error *error);

/* How many they are. */
DV_API int dv_threads(void);

#ifdef __cplusplus
}
#endif

#endif
