/* Several processes that train together, on one machine or on many: a world, of which each is a rank.
 *
 *     if (dv_world_launched())
 *         dv_world_open(60, &world, &error);
 *     options.world = world;
 *     ...
 *     dv_world_close(world);
 *
 * A launcher (mpirun) starts the processes. What carries their messages is an engine: a plugin beside the library,
 * division-mpi.so, which is looked for when a world is opened, so that nothing here needs MPI to be installed.
 *
 * - Threads: One world of a process is used by one thread at a time. A thread of its own moves transfers along.
 * - Fork: A child must not touch its parent's world.
 * - Freeing: A world must outlive the runs and trainings that were given it. */
#ifndef DIVISION_PARALLEL_H
#define DIVISION_PARALLEL_H

#include <division/export.h>
#include <division/status.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dv_world dv_world;

/* 1 if a launcher of MPI has started this process beside others, by what it leaves in the environment; else 0. */
DV_API int dv_world_launched(void);

/* Joins the processes that the launcher started. Whoever waits for another rank longer than `timeout` seconds fails
 * with DV_ERROR_IO and names it. */
DV_API dv_status dv_world_open(double timeout, dv_world **world, dv_error *error);

/* Leaves in good order: all ranks must call it. */
DV_API void dv_world_close(dv_world *world);

/* Ends all ranks, this process too, with an exit code; if all know of the failure (dv_world_agreed), closes the world
 * and returns, so that each can end by itself. */
DV_API void dv_world_abort(dv_world *world, int code);

/* 1 if the last failure is one that all ranks have seen and speak of alike; else 0. */
DV_API int dv_world_agreed(const dv_world *world);

/* Which of how many this process is, from 0. Without a world (NULL) it is 0 of 1. */
DV_API size_t dv_world_rank(const dv_world *world);
DV_API size_t dv_world_ranks(const dv_world *world);

/* What the engine says of itself, "Open MPI v4.1.4"; it lives as long as the world. */
DV_API const char *dv_world_engine(const dv_world *world);

/* Seconds that this rank has waited for others so far. */
DV_API double dv_world_waited_seconds(const dv_world *world);

/* The same of the engine that would be used, without joining anyone: into `text`, or an error that says why there is
 * none. */
enum { DV_ENGINE_NAME_BYTES = 128 };
DV_API dv_status dv_engine_name(char text[DV_ENGINE_NAME_BYTES], dv_error *error);

#ifdef __cplusplus
}
#endif

#endif
