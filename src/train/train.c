/* The loop: epochs of steps, a test after each, and word of both to whoever asked.
 *
 * A step is given by its number alone: the order of images by seed and epoch, the noise of codecs by seed and
 * step, the learning rate by the schedule. So a training that begins at a later epoch with the parameters that
 * an earlier one left goes on to the same bits. */
#include <division/train.h>

#include "base/status.h"

#include <math.h>
#include <stdbool.h>
#include <time.h>

enum { MOST_EPOCHS = 100000, MOST_ACCUMULATE = 65536 };

/* Sums over images. */
typedef struct tally {
    double loss;
    size_t correct, images;
} tally;

typedef struct training {
    dv_run *run;
    const dv_plan *plan;
    const dv_dataset *data;
    const dv_train_options *options;
    const dv_train_calls *calls;
    dv_loader *loader;
    size_t steps_per_epoch;
    uint64_t step;       /* of the optimizer, those done */
    double test_seconds; /* that the last test took */
    bool stopped;
} training;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* ---- options ------------------------------------------------------------------------------- */

dv_train_options dv_train_options_default(void) {
    return (dv_train_options){
        .seed = 1, .epochs = 10, .accumulate = 1, .sgd = dv_sgd_options_default(), .schedule = dv_schedule_default()};
}

static dv_status check_count(const char *name, size_t value, size_t low, size_t high, dv_error *error) {
    if (value >= low && value <= high)
        return DV_OK;
    return dv_fail(error, DV_ERROR_OPTION, "%s: %zu: must be from %zu to %zu", name, value, low, high);
}

dv_status dv_train_check(const dv_train_options *options, dv_error *error) {
    DV_TRY(check_count("epochs", options->epochs, 1, MOST_EPOCHS, error));
    DV_TRY(check_count("first epoch", options->first_epoch, 0, options->epochs, error));
    DV_TRY(check_count("accumulate", options->accumulate, 1, MOST_ACCUMULATE, error));
    if (!(options->label_smoothing >= 0 && options->label_smoothing < 1))
        return dv_fail(error, DV_ERROR_OPTION, "label smoothing: %g: must be at least 0 and less than 1",
                       options->label_smoothing);
    DV_TRY(dv_sgd_check(&options->sgd, error));
    return dv_schedule_check(&options->schedule, error);
}

/* The run's images must be those of the data. */
static dv_status check_input(dv_run *run, const dv_dataset *data, dv_error *error) {
    const dv_map *map = dv_run_input_map(run);
    size_t side = dv_dataset_describe(data).side;
    if (map->rank == 2 && map->channels == DV_DATA_CHANNELS && map->sides[0] == side && map->sides[1] == side)
        return DV_OK;
    return dv_fail(error, DV_ERROR_ARGUMENT,
                   "train: the network takes images of %zu x %zu, the data has %zu x %zu: build it for the data's side",
                   map->sides[0], map->sides[1], side, side);
}

/* ---- tallies ------------------------------------------------------------------------------- */

/* Adds a batch of which `count` images are real: the step's loss is the mean over those. */
static void add(tally *sum, const dv_step_result *result, size_t count) {
    sum->loss += result->loss * (double)count;
    sum->correct += result->correct;
    sum->images += count;
}

static double mean_loss(const tally *sum) {
    return sum->images > 0 ? sum->loss / (double)sum->images : NAN;
}

static double percent(const tally *sum) {
    return sum->images > 0 ? 100.0 * (double)sum->correct / (double)sum->images : NAN;
}

/* ---- telling ------------------------------------------------------------------------------- */

static bool stop_asked(const dv_train_calls *calls) {
    return calls != NULL && calls->stop != NULL && *calls->stop != 0;
}

/* Steps that this training will have done at its end. */
static uint64_t all_steps(const training *t) {
    uint64_t all = (uint64_t)t->options->epochs * t->steps_per_epoch;
    return t->options->steps > 0 && t->options->steps < all ? t->options->steps : all;
}

static double seconds_left(const training *t, size_t epoch, double seconds, size_t done) {
    uint64_t all = all_steps(t), left = all > t->step ? all - t->step : 0;
    double tests = (double)(t->options->epochs - epoch) * t->test_seconds;
    return done > 0 ? seconds / (double)done * (double)left + tests : NAN;
}

static void tell_step(const training *t, size_t epoch, size_t done, const tally *sum, double seconds, double rate) {
    if (t->calls == NULL || t->calls->progress == NULL)
        return;
    dv_train_progress progress = {.epoch = epoch + 1,
                                  .epochs = t->options->epochs,
                                  .step = done,
                                  .steps = t->steps_per_epoch,
                                  .loss = mean_loss(sum),
                                  .top1 = percent(sum),
                                  .images_per_second = (double)sum->images / seconds,
                                  .seconds_left = seconds_left(t, epoch, seconds, done),
                                  .learning_rate = rate,
                                  .peak_bytes = dv_memory_peak()};
    t->calls->progress(t->calls->context, &progress);
}

static void tell_test(const dv_train_calls *calls, size_t epoch, size_t epochs, size_t done, size_t batches,
                      const tally *sum, double seconds) {
    if (calls == NULL || calls->progress == NULL)
        return;
    dv_train_progress progress = {.epoch = epoch + 1,
                                  .epochs = epochs,
                                  .step = done,
                                  .steps = batches,
                                  .testing = 1,
                                  .loss = mean_loss(sum),
                                  .top1 = percent(sum),
                                  .images_per_second = (double)sum->images / seconds,
                                  .seconds_left = NAN,
                                  .learning_rate = NAN,
                                  .peak_bytes = dv_memory_peak()};
    calls->progress(calls->context, &progress);
}

/* ---- testing ------------------------------------------------------------------------------- */

static dv_status make_loader(dv_run *run, const dv_dataset *data, dv_split split, bool learning, uint64_t seed,
                             dv_loader **loader, dv_error *error) {
    const dv_map *map = dv_run_input_map(run);
    dv_loader_options options = {.split = split,
                                 .type = map->type,
                                 .batch = map->images,
                                 .seed = seed,
                                 .shuffle = learning,
                                 .augment = learning,
                                 .drop_last = learning};
    return dv_loader_new(data, &options, loader, error);
}

/* All batches of the loader; fewer if a stop is asked for. `epoch` and `epochs` are for the callback alone. */
static dv_status test(dv_run *run, dv_loader *loader, size_t epoch, size_t epochs, const dv_train_calls *calls,
                      tally *sum, dv_error *error) {
    double start = now();
    size_t batches = dv_loader_batches(loader), count;
    for (size_t i = 0; i < batches && !stop_asked(calls); i++) {
        dv_step_result result;
        DV_TRY(dv_loader_fill(loader, 0, i, dv_run_input(run), dv_run_labels(run), &count, error));
        DV_TRY(dv_run_evaluate(run, &result, error));
        add(sum, &result, count);
        tell_test(calls, epoch, epochs, i + 1, batches, sum, now() - start);
    }
    return DV_OK;
}

dv_status dv_test(dv_run *run, const dv_dataset *data, dv_split split, double *loss, double *top1, dv_error *error) {
    dv_loader *loader;
    tally sum = {0};
    DV_TRY(check_input(run, data, error));
    DV_TRY(make_loader(run, data, split, false, 0, &loader, error));
    dv_status status = test(run, loader, 0, 1, NULL, &sum, error);
    dv_loader_free(loader);
    *loss = mean_loss(&sum);
    *top1 = percent(&sum);
    return status;
}

/* Tests after an epoch, unless a stop is asked for. */
static dv_status test_epoch(training *t, size_t epoch, dv_epoch_record *record, dv_error *error) {
    dv_loader *loader;
    tally sum = {0};
    double start = now();
    DV_TRY(make_loader(t->run, t->data, DV_TEST, false, 0, &loader, error));
    dv_status status = test(t->run, loader, epoch, t->options->epochs, t->calls, &sum, error);
    dv_loader_free(loader);
    DV_TRY(status);
    if (stop_asked(t->calls)) {
        t->stopped = true;
        return DV_OK;
    }
    t->test_seconds = now() - start;
    record->tested = 1;
    record->test_loss = mean_loss(&sum);
    record->test_top1 = percent(&sum);
    return DV_OK;
}

/* ---- training ------------------------------------------------------------------------------ */

/* Adds the learning rate to what a failed step says. */
static dv_status explain(dv_error *error, dv_status status, double rate) {
    if (error == NULL || status != DV_ERROR_NONFINITE)
        return status;
    dv_error inner = *error;
    return dv_fail(error, status, "%.210s (the learning rate is %g)", inner.text, rate);
}

/* Forward and backward for the batches of one step, and the step itself. */
static dv_status step(training *t, size_t epoch, size_t index, double rate, tally *sum, dv_error *error) {
    size_t accumulate = t->options->accumulate, count;
    float smoothing = (float)t->options->label_smoothing, scale = 1 / (float)accumulate;
    for (size_t i = 0; i < accumulate; i++) {
        dv_step_result result;
        DV_TRY(dv_loader_fill(t->loader, epoch, index * accumulate + i, dv_run_input(t->run), dv_run_labels(t->run),
                              &count, error));
        dv_status status = dv_run_train(t->run, t->step * accumulate + i, smoothing, scale, &result, error);
        if (status != DV_OK)
            return explain(error, status, rate);
        if (!isfinite(result.loss))
            return dv_fail(error, DV_ERROR_NONFINITE,
                           "step %llu: the loss is %g at learning rate %g: use a lower one, or a warm-up",
                           (unsigned long long)t->step, result.loss, rate);
        add(sum, &result, count);
    }
    dv_sgd_step(&t->options->sgd, rate, t->run);
    t->step++;
    return DV_OK;
}

/* The steps of an epoch. Sets what the record has of them. */
static dv_status train_epoch(training *t, size_t epoch, dv_epoch_record *record, dv_error *error) {
    tally sum = {0};
    double start = now(), rate = 0;
    size_t done = 0;
    for (; done < t->steps_per_epoch && t->step < all_steps(t); done++) {
        t->stopped = stop_asked(t->calls);
        if (t->stopped)
            break;
        rate = dv_schedule_rate(&t->options->schedule, t->step, t->steps_per_epoch, t->options->epochs);
        DV_TRY(step(t, epoch, done, rate, &sum, error));
        tell_step(t, epoch, done + 1, &sum, now() - start, rate);
    }
    record->complete = done == t->steps_per_epoch;
    record->steps = t->step;
    record->learning_rate = rate;
    record->train_loss = mean_loss(&sum);
    record->train_top1 = percent(&sum);
    record->images_per_second = sum.images > 0 ? (double)sum.images / (now() - start) : NAN;
    return DV_OK;
}

static dv_status run_epoch(training *t, size_t epoch, dv_train_result *result, dv_error *error) {
    double start = now();
    uint64_t before = t->step;
    dv_epoch_record record = {.epoch = epoch + 1,
                              .test_loss = NAN,
                              .test_top1 = NAN,
                              .activation_bytes = dv_plan_totals(t->plan).activations};
    DV_TRY(train_epoch(t, epoch, &record, error));
    if (t->step == before)
        return DV_OK;
    if (!t->stopped)
        DV_TRY(test_epoch(t, epoch, &record, error));
    record.seconds = now() - start;
    record.peak_bytes = dv_memory_peak();
    result->last = record;
    if (record.tested && !(result->best_top1 >= record.test_top1))
        result->best_top1 = record.test_top1;
    if (t->calls != NULL && t->calls->epoch != NULL)
        return t->calls->epoch(t->calls->context, &record, error);
    return DV_OK;
}

static dv_status run_epochs(training *t, dv_train_result *result, dv_error *error) {
    t->steps_per_epoch = dv_loader_batches(t->loader) / t->options->accumulate;
    if (t->steps_per_epoch == 0)
        return dv_fail(error, DV_ERROR_OPTION, "accumulate: %zu: an epoch has %zu batches: use at most as many",
                       t->options->accumulate, dv_loader_batches(t->loader));
    t->step = (uint64_t)t->options->first_epoch * t->steps_per_epoch;
    for (size_t epoch = t->options->first_epoch; epoch < t->options->epochs && !t->stopped; epoch++) {
        if (t->step >= all_steps(t))
            break;
        DV_TRY(run_epoch(t, epoch, result, error));
    }
    result->stopped = t->stopped;
    return DV_OK;
}

dv_status dv_train(dv_run *run, const dv_plan *plan, const dv_dataset *data, const dv_train_options *options,
                   const dv_train_calls *calls, dv_train_result *result, dv_error *error) {
    if (run == NULL || plan == NULL || data == NULL || options == NULL || result == NULL)
        return dv_fail(error, DV_ERROR_ARGUMENT, "train: run, plan, data, options or result is NULL");
    *result = (dv_train_result){.best_top1 = NAN};
    DV_TRY(dv_train_check(options, error));
    DV_TRY(check_input(run, data, error));
    training t = {.run = run, .plan = plan, .data = data, .options = options, .calls = calls};
    DV_TRY(make_loader(run, data, DV_TRAIN, true, options->seed, &t.loader, error));
    dv_status status = run_epochs(&t, result, error);
    dv_loader_free(t.loader);
    return status;
}
