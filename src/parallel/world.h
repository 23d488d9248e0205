/* A world, to the rest of the library: sums, broadcasts and agreement among ranks, all with a timeout.
 *
 * Transfers that are begun are moved along by a thread of the world's while layers compute. Waiting sleeps for moments:
 * ranks that share a core must not keep each other from it. */
#ifndef DV_PARALLEL_WORLD_H
#define DV_PARALLEL_WORLD_H

#include "parallel/engine.h"

#include <division/parallel.h>
#include <stdbool.h>

/* A transfer under way. Zeros are none. */
typedef struct dv_pending {
    dv_request request;
    bool under_way;
    struct dv_pending *next; /* of those under way */
} dv_pending;

/* A world with an engine of the caller's choice, which must outlive it. */
dv_status dv_world_new(const dv_engine *engine, void *argument, double timeout, dv_world **world, dv_error *error);

/* plugin.c: finds the plugin and gives its table. `library` is to be closed by dv_engine_unload. */
dv_status dv_engine_load(const dv_engine **engine, void **library, dv_error *error);
void dv_engine_unload(void *library);

/* Begins to add up data [count] over all ranks; it must stay where it is until it was waited for, and so must
 * `pending`. */
dv_status dv_world_start_sum(dv_world *world, dv_sum_type type, void *data, size_t count, dv_pending *pending,
                             dv_error *error);

/* Waits for the end of a transfer; of none: returns at once. `what` it is, for messages: "the gradients of fc". */
dv_status dv_world_wait(dv_world *world, dv_pending *pending, const char *what, dv_error *error);

/* Gives up a transfer that nobody will wait for: its memory is about to go. Only the end of the world may follow. */
void dv_world_forget(dv_world *world, dv_pending *pending);

/* Both at once. Without a world, or alone in it, they do nothing. */
dv_status dv_world_sum(dv_world *world, dv_sum_type type, void *data, size_t count, const char *what, dv_error *error);

/* data [bytes] becomes that of rank 0. */
dv_status dv_world_broadcast(dv_world *world, void *data, size_t bytes, const char *what, dv_error *error);

/* all [ranks][bytes] becomes what each rank has in own [bytes]. */
dv_status dv_world_gather(dv_world *world, const void *own, size_t bytes, void *all, const char *what, dv_error *error);

/* Whether all is well with all ranks: each says how it fares, and if one has failed, all fail with the words of the
 * first that has. `status` DV_OK: this one has not, else its words are in `error`, which must not be NULL then. */
dv_status dv_world_agree(dv_world *world, dv_status status, dv_error *error);

/* True without a world, or if nobody else is in it. */
bool dv_world_alone(const dv_world *world);

/* The machine that a rank runs on. */
const char *dv_world_host(const dv_world *world, size_t rank);

#endif
