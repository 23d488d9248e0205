/* How many workers make batches ahead, found out in the first steps of a training.
 *
 * The first batches are made between steps. From what making a batch and its step take follows how many workers would
 * keep up with the steps, and they are tried: whether they have cores to themselves, wait for a disk or are in the way
 * of the step shows in nothing but its time. Whatever was faster stays. Batches are the same either way. */
#ifndef DV_TRAIN_WORKERS_H
#define DV_TRAIN_WORKERS_H

#include <stdbool.h>
#include <stddef.h>

enum { DV_TRIAL_BATCHES = 5 };

typedef struct dv_worker_trial {
    size_t most;                    /* workers there may be */
    size_t threads;                 /* that make a batch where there are none */
    size_t workers;                 /* in use now */
    bool settled;                   /* for good */
    size_t seen;                    /* batches with so many */
    double made[DV_TRIAL_BATCHES];  /* seconds that a batch was waited for */
    double whole[DV_TRIAL_BATCHES]; /* ... and with its step */
    double without;                 /* the median of `whole` without workers */
} dv_worker_trial;

/* A trial of up to `most`. Settled already if there is nothing to choose. */
dv_worker_trial dv_worker_trial_new(size_t most, size_t threads);

/* Workers that are worth a trial, 0 to `most`, where `threads` threads make a batch in `made` seconds and its step
 * takes `step`: as many as have one ready for every step. None where that would save less than a fiftieth. */
size_t dv_workers_worth_trying(double made, double step, size_t threads, size_t most);

/* Takes the times of a batch. `workers` may be another number then, and `settled` true. */
void dv_worker_trial_note(dv_worker_trial *trial, double made, double whole);

#endif
