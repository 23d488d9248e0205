/* What training and testing share: sums over images, the clock, the loop of a test. */
#ifndef DV_TRAIN_LOOP_H
#define DV_TRAIN_LOOP_H

#include "base/clock.h"

#include <division/train.h>

#include <math.h>
#include <stdbool.h>

/* Sums over images. */
typedef struct dv_tally {
    double loss;
    uint64_t correct, correct5, images;
} dv_tally;

/* Adds a batch of which `count` images are real: the step's loss is the mean over those. */
static inline void dv_tally_add(dv_tally *sum, const dv_step_result *result, size_t count) {
    sum->loss += result->loss * (double)count;
    sum->correct += result->correct;
    sum->correct5 += result->correct5;
    sum->images += count;
}

static inline double dv_mean(double sum, uint64_t images) {
    return images > 0 ? sum / (double)images : NAN;
}

static inline double dv_percent(uint64_t correct, uint64_t images) {
    return 100.0 * dv_mean((double)correct, images);
}

static inline bool dv_stop_asked(const dv_train_callbacks *callbacks) {
    return callbacks != NULL && callbacks->stop != NULL && *callbacks->stop != 0;
}

#define DV_DEFAULT_MOMENTUM "0.9"

/* optimizer.c: the options of the optimizer must be ones that there are, and the run's those of the options. */
dv_status dv_check_optimizer(const dv_options *options, dv_error *error);
dv_status dv_check_planned(const dv_run *run, const dv_options *options, dv_error *error);

/* Who is told of each image of a test. */
typedef struct dv_test_listener {
    dv_test_image_callback image;
    void *context;
    float *logits; /* [classes], room for those of one image */
} dv_test_listener;

/* Tests with all batches of the loader, as after epoch `epoch` (from 1) of `epochs`, which is for the callback alone.
 * If a stop is asked for meanwhile, the tally is not complete. `listener` may be NULL. */
dv_status dv_test_epoch(dv_run *run, dv_loader *loader, size_t epoch, size_t epochs,
                        const dv_train_callbacks *callbacks, const dv_test_listener *listener, dv_tally *sum,
                        dv_error *error);

#endif
