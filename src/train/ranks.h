/* Ranks that train together: what is shared out, and what is the same on all of them. */
#ifndef DV_TRAIN_RANKS_H
#define DV_TRAIN_RANKS_H

#include "parallel/world.h"

#include <division/train.h>

enum { DV_RANKS_COPY_BYTES = 64 };

/* How many ranks there are, of the world or as a plan is told; of a step's batches, those of one rank. */
size_t dv_options_ranks(const dv_options *options);
size_t dv_options_own_batches(const dv_options *options);

/* Makes `accumulate` the batches of a step on all ranks: where it is 1, one of each rank. Fails where ranks can't share
 * them evenly, and says what would do. */
dv_status dv_share_batches(dv_options *options, dv_error *error);

/* Fails on all ranks, with what differs, unless all have the same program, data and options. */
dv_status dv_ranks_compare(const dv_options *options, const dv_dataset_shape *shape, dv_error *error);

/* Takes the options of rank 0, but for what is a machine's own: threads, workers, folder of the file. */
dv_status dv_ranks_take_options(dv_options *options, dv_error *error);

/* Rank 0's file, for ranks on machines that do not have it: `copy` becomes the path of a temporary one, which is the
 * caller's to remove, and "" on rank 0 and where the file is not there. */
dv_status dv_ranks_copy_file(dv_world *world, const char *path, char copy[DV_RANKS_COPY_BYTES], dv_error *error);

/* Weights, the optimizer's arrays, averages, the method's state and the training's become those of rank 0. */
dv_status dv_ranks_begin_alike(dv_run *run, dv_world *world, dv_train_state *state, dv_error *error);

/* What the method has learnt in a step becomes rank 0's. */
dv_status dv_ranks_share_state(dv_run *run, dv_world *world, dv_error *error);

/* Fails on all ranks, with the name of a parameter, unless all have the same weights. */
dv_status dv_ranks_check_weights(const dv_run *run, dv_world *world, dv_error *error);

/* How long a rank waited, on average: for messages, and for ranks that were slower. Who was slowest waited for messages
 * alone. */
typedef struct dv_ranks_waiting {
    double network, others; /* seconds */
} dv_ranks_waiting;

dv_status dv_ranks_waited(dv_world *world, double seconds, dv_ranks_waiting *waiting, dv_error *error);

#endif
