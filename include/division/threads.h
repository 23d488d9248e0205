/* How many threads the library uses.
 *
 * Its threads are OpenMP's, but for the workers of loaders and two that carry values to a file. The number is OpenMP's
 * own, which OMP_NUM_THREADS sets before the program starts and dv_set_threads later. Set it first: dv_graph_finish
 * prepares convolutions and linear layers for the number of that moment, and they keep to it. Losses depend on it, as
 * division/train.h tells.
 *
 * - Threads: The number belongs to the calling thread, as OpenMP has it: another thread has its own team and its own
 *   number, which begins as what OMP_NUM_THREADS says.
 * - Fork: A child may use all of the library if its parent had not used it yet. OpenMP's threads do not survive a fork,
 *   and GNU's OpenMP waits for them for ever. So if the thread that forks has computed with several threads before,
 *   then either it calls omp_pause_resource_all(omp_pause_soft) right before fork, after which both may do as they
 *   like; or the child calls dv_set_threads(1) first and builds graphs of its own. Other threads of the library are
 *   never there in a child: it must neither use nor free a loader with workers, or a run whose values lie in a file,
 *   that its parent made.
 * - Freeing: There is nothing to free. */
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
