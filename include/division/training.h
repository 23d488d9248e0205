/* A training from its options to its folder: the data set is opened, the network built and planned, its memory mapped,
 * and the folder written (division/folder.h) from which a training that was stopped or killed goes on to the same bits.
 *
 *     dv_options options = dv_options_default();
 *     dv_training *training;
 *     dv_training_new(&options, "runs/first", DV_FOLDER_GO_ON, NULL, &training, &error);
 *     dv_training_train(training, &result, &error);
 *     dv_training_free(training);
 *
 * Whoever wants it otherwise calls what this calls: dv_dataset_open, dv_options_plan, dv_run_new, dv_train.
 *
 * - Threads: Different trainings may be trained by different threads at once, in different folders. Callbacks are
 * called in the thread that trains. `stop` may be set by a signal handler.
 * - Fork: Training uses OpenMP's threads: division/threads.h says what a child may do.
 * - Freeing: A training has a copy of its options and owns what it gives access to. Callbacks and their context must
 *   outlive it. */
#ifndef DIVISION_TRAINING_H
#define DIVISION_TRAINING_H

#include <division/export.h>
#include <division/folder.h>
#include <division/graph.h>
#include <division/options.h>
#include <division/status.h>
#include <division/train.h>
#include <division/tune.h>
#include <signal.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dv_training dv_training;

/* Who is told. Any may be NULL. */
typedef struct dv_training_callbacks {
    void (*begin)(void *context, const dv_training *training); /* before the first step: nothing is wrong with the call,
                                                                  and the folder is there */
    void (*progress)(void *context, const dv_train_progress *progress); /* after a step */
    void (*epoch)(void *context, const dv_epoch_record *record);        /* before it is written */
    void (*corrupt)(void *context, const char *text);                   /* an image that can't be read */
    void (*difference)(void *context, const char *text); /* between a file of weights and the network: then it fails */
    void (*advice)(void *context, const char *text);     /* after differences: what to do */
    void *context;
    const volatile sig_atomic_t *stop; /* asked for before every step: not 0 ends training, which is no failure */
    void (*workers)(void *context, size_t workers); /* that were chosen to make batches ahead, if that was left open */
} dv_training_callbacks;

/* Prepares a training; the calling thread uses as many threads as the options say from then on. `folder` is where it
 * writes, NULL for nowhere. With DV_FOLDER_GO_ON it begins where the folder's last checkpoint ends, and without one at
 * the start; otherwise with the weights of `init`, if options have it. A folder that was not there is not made before
 * training begins, so that a call that can't work leaves nothing behind. */
DV_API dv_status dv_training_new(const dv_options *options, const char *folder, dv_folder_mode mode,
                                 const dv_training_callbacks *callbacks, dv_training **training, dv_error *error);
DV_API void dv_training_free(dv_training *training);

/* Trains until the options' end, or until it is stopped, and tests after epochs. Config, log, checkpoints and summary
 * are written on the way. May be called again where it was stopped. */
DV_API dv_status dv_training_train(dv_training *training, dv_train_result *result, dv_error *error);

/* ---- searching a learning rate -------------------------------------------------------------- */

/* Which rates to try, a step each: from the first to the last in equal ratios. */
typedef struct dv_rate_search {
    size_t steps;       /* 10 to 10000; 200 */
    double first, last; /* 0 < first < last; 1e-6 and 10 */
} dv_rate_search;

DV_API dv_rate_search dv_rate_search_default(void);

/* What a step came to. */
typedef struct dv_rate_point {
    double rate;
    double loss;     /* of its images */
    double smoothed; /* a moving average of the losses so far */
} dv_rate_point;

/* What all of them came to. */
typedef struct dv_rate_found {
    size_t points;    /* steps done: the search ends where losses are four times the lowest, or not finite */
    double lowest;    /* rate at which the smoothed loss was lowest */
    double suggested; /* a tenth of it; NaN: the loss did not fall at any rate by more than chance */
    int at_end;       /* the loss was lowest at the last rate that was tried: larger ones may be better */
    int stopped;      /* because of `stop` */
} dv_rate_found;

/* Trains with rates that rise from step to step and looks at the losses, each before its step. Of the options all count
 * but those of the schedule. `points` [search->steps] is filled in. Progress is told as for one epoch. Nothing is
 * written, and nothing is kept: the training has other weights then, and can only be freed. */
DV_API dv_status dv_training_find_rate(dv_training *training, const dv_rate_search *search, dv_rate_point *points,
                                       dv_rate_found *found, dv_error *error);

/* What it is made of, and how far it is. */
DV_API const dv_options *dv_training_options(const dv_training *training);
DV_API const dv_dataset *dv_training_data(const dv_training *training);
DV_API const dv_plan *dv_training_plan(const dv_training *training);
DV_API dv_run *dv_training_run(const dv_training *training);
DV_API const dv_train_state *dv_training_state(const dv_training *training);

/* What choosing the passes of its convolutions did. */
DV_API const dv_tune_result *dv_training_tuned(const dv_training *training);

/* What was chosen by the option `memory`; NULL: nothing was, or the folder's choice is kept. */
DV_API const dv_chosen *dv_training_chosen(const dv_training *training);

/* True if it began from a checkpoint of its folder. */
DV_API int dv_training_resumed(const dv_training *training);

/* Bytes that bring the images, beside the plan's. */
DV_API size_t dv_training_loading_bytes(const dv_training *training);

/* The most that was resident before the plan's memory was mapped: the program, its libraries, tables of the data. The
 * peak of a training is about this and what is planned. */
DV_API size_t dv_training_program_bytes(const dv_training *training);

/* Bytes of files that became resident after that: code that the steps were the first to run, most of it. 0 where the
 * system does not tell. */
DV_API size_t dv_training_code_bytes(const dv_training *training);

#ifdef __cplusplus
}
#endif

#endif
