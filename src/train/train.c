/* The loop: epochs of steps, a test after each, and word of both to whoever asked.
 *
 * A step is given by its number alone: the order of images by seed and epoch, the noise of codecs by seed and
 * step, the learning rate by the schedule. So a training that begins at a later step with the parameters that
 * an earlier one left goes on to the same bits. */
#include <division/train.h>

#include "base/sizes.h"
#include "base/status.h"
#include "data/loader.h"
#include "train/loaders.h"
#include "train/loop.h"
#include "train/ranks.h"
#include "train/workers.h"

#include <omp.h>

/* Of a batch: losses that were larger have not been seen to come back. */
static const double LARGEST_LOSS = 1e6;

typedef struct training {
    dv_run *run;
    const dv_plan *plan;
    const dv_options *options;
    const dv_train_callbacks *callbacks;
    dv_train_state *state;
    size_t data_images;     /* to learn from */
    dv_loader *loader;      /* of those */
    dv_loader *test_loader; /* of the others; both stay, so that corrupt images are told of once */
    dv_worker_trial trial;  /* of workers for both */
    dv_train_state begun;   /* as the state was when this process took up the epoch, perhaps in its midst */
    double test_seconds;    /* that the last test took */
    double saved;           /* when the state was last saved */
    bool asked;             /* some rank was asked to stop */
    bool stopped;
} training;

/* ---- the state ------------------------------------------------------------------------------ */

/* Images that a step takes. */
static uint64_t step_images(const training *t) {
    return (uint64_t)dv_run_input_map(t->run)->images * t->options->accumulate;
}

/* A state must be of a training like this one: a step means the same images in both. */
static dv_status check_state(const training *t, uint64_t steps_per_epoch, dv_error *error) {
    const dv_train_state *state = t->state;
    if (state->steps_per_epoch == 0)
        return DV_OK;
    if (state->seed != t->options->seed)
        return dv_fail(error, DV_ERROR_OPTION,
                       "seed: %llu: what was trained so far had %llu: go on with that, or begin a new training",
                       (unsigned long long)t->options->seed, (unsigned long long)state->seed);
    if (state->data_images != 0 && state->data_images != t->data_images)
        return dv_fail(error, DV_ERROR_OPTION,
                       "the data has %zu images, but had %llu in what was trained so far: go on with the same data, or "
                       "begin a new training",
                       t->data_images, (unsigned long long)state->data_images);
    if (state->step_images != 0 && state->step_images != step_images(t))
        return dv_fail(error, DV_ERROR_OPTION,
                       "a step takes %llu images, but took %llu in what was trained so far: go on with the same batch "
                       "times accumulation, or begin a new training",
                       (unsigned long long)step_images(t), (unsigned long long)state->step_images);
    if (state->steps_per_epoch != steps_per_epoch)
        return dv_fail(error, DV_ERROR_OPTION,
                       "an epoch has %llu steps, but had %llu in what was trained so far: go on with the same data, "
                       "batch, accumulation and --drop-last, or begin a new training",
                       (unsigned long long)steps_per_epoch, (unsigned long long)state->steps_per_epoch);
    return DV_OK;
}

static bool has_averages(const dv_run *run) {
    const dv_run_parameter *parameter;
    for (size_t i = 0; (parameter = dv_run_parameter_at(run, i)) != NULL; i++)
        if (parameter->average != NULL)
            return true;
    return false;
}

dv_train_state dv_train_state_default(void) {
    return (dv_train_state){.best_top1 = NAN};
}

/* The epoch under way, or the next one, from 0. */
static size_t epoch_of(const dv_train_state *state) {
    return (size_t)((state->images > 0 ? state->step - 1 : state->step) / state->steps_per_epoch);
}

uint64_t dv_train_state_epochs(const dv_train_state *state) {
    return state->steps_per_epoch > 0 ? epoch_of(state) : 0;
}

/* Steps of it that are done. */
static size_t steps_in_epoch(const dv_train_state *state) {
    return (size_t)(state->step - (uint64_t)epoch_of(state) * state->steps_per_epoch);
}

/* The learning rate of a step. */
static double rate_of(const training *t, uint64_t step) {
    if (t->callbacks != NULL && t->callbacks->rate != NULL)
        return t->callbacks->rate(t->callbacks->context, step);
    return dv_schedule_rate(&t->options->schedule, step, t->state->steps_per_epoch, t->options->epochs);
}

/* ---- ranks --------------------------------------------------------------------------------- */

/* Makes sums those of all ranks, and lets all know whether one was asked to stop: they stop at the same step. */
static dv_status share_tally(training *t, dv_tally *sum, dv_error *error) {
    double all[] = {sum->loss, (double)sum->correct, (double)sum->correct5, (double)sum->images,
                    dv_stop_asked(t->callbacks)};
    if (!dv_world_alone(t->options->world)) {
        DV_TRY(dv_world_sum(t->options->world, DV_SUM_F64, all, sizeof all / sizeof *all, "the loss", error));
        *sum = (dv_tally){all[0], (uint64_t)all[1], (uint64_t)all[2], (uint64_t)all[3]};
    }
    t->asked = all[4] > 0;
    return DV_OK;
}

/* Alone, the signal of the moment counts; else what all ranks have heard of. */
static bool must_stop(const training *t) {
    return dv_world_alone(t->options->world) ? dv_stop_asked(t->callbacks) : t->asked;
}

enum { STEPS_BETWEEN_CHECKS = 1000 };

/* After a step: what the method has learnt is rank 0's, and now and then weights are compared. */
static dv_status keep_alike(training *t, dv_error *error) {
    DV_TRY(dv_ranks_share_state(t->run, t->options->world, error));
    bool due = t->state->step % STEPS_BETWEEN_CHECKS == 0 || steps_in_epoch(t->state) == t->state->steps_per_epoch;
    return due ? dv_ranks_check_weights(t->run, t->options->world, error) : DV_OK;
}

/* ---- telling ------------------------------------------------------------------------------- */

/* Steps that a training will have done at its end. */
static uint64_t steps_at_end(const dv_train_state *state, const dv_options *options) {
    uint64_t all = (uint64_t)options->epochs * state->steps_per_epoch;
    return options->steps > 0 && options->steps < all ? options->steps : all;
}

static uint64_t all_steps(const training *t) {
    return steps_at_end(t->state, t->options);
}

/* Speed and time left are told from what this process did of the epoch: another may have been slower or faster. */
static double seconds_of_epoch(const training *t) {
    return t->state->seconds - t->begun.seconds;
}

static double seconds_left(const training *t) {
    uint64_t all = all_steps(t), left = all > t->state->step ? all - t->state->step : 0;
    size_t every = t->options->test_every, last = (t->options->epochs + every - 1) / every;
    size_t tests = last - epoch_of(t->state) / every;
    return seconds_of_epoch(t) / (double)(t->state->step - t->begun.step) * (double)left +
           (double)tests * t->test_seconds;
}

static void tell(const training *t, double rate) {
    const dv_train_state *state = t->state;
    if (t->callbacks == NULL || t->callbacks->progress == NULL)
        return;
    dv_train_progress progress = {.epoch = epoch_of(state) + 1,
                                  .epochs = t->options->epochs,
                                  .step = steps_in_epoch(state),
                                  .steps = state->steps_per_epoch,
                                  .loss = dv_mean(state->loss, state->images),
                                  .top1 = dv_percent(state->correct, state->images),
                                  .images_per_second = (double)(state->images - t->begun.images) / seconds_of_epoch(t),
                                  .seconds_left = seconds_left(t),
                                  .learning_rate = rate,
                                  .peak_bytes = dv_memory_peak()};
    t->callbacks->progress(t->callbacks->context, &progress);
}

static dv_status save(training *t, dv_error *error) {
    t->saved = dv_now();
    if (t->callbacks == NULL || t->callbacks->save == NULL)
        return DV_OK;
    return t->callbacks->save(t->callbacks->context, t->state, error);
}

/* Saves if it is time to. */
static dv_status save_meanwhile(training *t, dv_error *error) {
    double minutes = t->options->save_minutes;
    if (minutes == 0 || dv_now() - t->saved < 60 * minutes)
        return DV_OK;
    return save(t, error);
}

/* ---- steps --------------------------------------------------------------------------------- */

/* Adds the step to what a batch that failed says, and what may help. */
static dv_status explain(const training *t, dv_error *error, dv_status status, uint64_t step, double rate) {
    if (error == NULL)
        return status;
    if (status != DV_ERROR_NONFINITE)
        return dv_fail(error, status, "step %llu: %s", (unsigned long long)step, error->text);
    return dv_fail(
        error, status, "step %llu: %.130s: use a learning rate (--lr) below %g or a %s (--warmup), or check the data",
        (unsigned long long)step, error->text, rate, t->options->schedule.warmup > 0 ? "longer warm-up" : "warm-up");
}

/* Images of the batches first .. last - 1 of an epoch, on all ranks. */
static size_t images_of(const training *t, size_t first, size_t last) {
    size_t batch = dv_run_input_map(t->run)->images * dv_options_ranks(t->options);
    return dv_smaller(last * batch, t->data_images) - first * batch;
}

/* A step on a batch that is filled in, unless its loss says that there is no use: backward may update parameters. */
static dv_status train_on(dv_run *run, const dv_step *step, dv_step_result *result, dv_error *error) {
    DV_TRY(dv_run_forward(run, step, error));
    DV_TRY(dv_run_loss(run, result, error));
    if (result->loss <= LARGEST_LOSS)
        return dv_run_backward(run, error);
    dv_run_abandon(run);
    return dv_fail(error, DV_ERROR_NONFINITE, "training diverges: the loss is %.3g", result->loss);
}

/* The batches of a step: first .. last - 1 of the epoch. */
typedef struct step_batches {
    size_t first, last;
} step_batches;

/* The number of a rank's batch among all of the training: within a step those of all ranks, batch by batch. */
static uint64_t batch_number(const training *t, const step_batches *of, size_t index) {
    const dv_options *options = t->options;
    size_t ranks = dv_options_ranks(options), own = dv_options_own_batches(options);
    return t->state->step * (own * ranks) + (index - of->first) * ranks + dv_world_rank(options->world);
}

/* Takes the times of a batch into the trial of workers, and does what comes of it. */
static dv_status try_workers(training *t, double made, double whole, dv_error *error) {
    size_t before = t->trial.workers;
    if (t->trial.settled)
        return DV_OK;
    dv_worker_trial_note(&t->trial, made, whole);
    if (t->trial.workers != before)
        DV_TRY(dv_loader_set_workers(t->loader, t->trial.workers, error));
    if (!t->trial.settled)
        return DV_OK;
    if (t->callbacks != NULL && t->callbacks->workers != NULL)
        t->callbacks->workers(t->callbacks->context, t->trial.workers);
    return t->trial.workers > 0 ? dv_loader_set_workers(t->test_loader, t->trial.workers, error) : DV_OK;
}

/* Forward and backward for one batch of a step, the `index`-th of the epoch. */
static dv_status run_batch(training *t, const step_batches *of, size_t index, double rate, dv_tally *sum,
                           dv_error *error) {
    const dv_options *options = t->options;
    dv_step_result result;
    size_t count;
    double start = dv_now();
    DV_TRY(dv_loader_fill(t->loader, epoch_of(t->state), index, dv_run_input(t->run), dv_run_labels(t->run), &count,
                          error));
    double made = dv_now() - start;
    DV_TRY(dv_run_set_images(t->run, count, error));
    dv_mix_batch(&options->mix, options->seed, batch_number(t, of, index), t->run);
    const dv_step step = {.batch = t->state->step,
                          .label_smoothing = (float)options->label_smoothing,
                          .scale = (float)((double)count / (double)images_of(t, of->first, of->last)),
                          .rate = rate,
                          .update = t->state->step,
                          .first_image = dv_loader_place(t->loader, index) - images_of(t, 0, of->first),
                          .all_images = images_of(t, index, index + 1),
                          .more = index + 1 < of->last};
    dv_status status = train_on(t->run, &step, &result, error);
    if (status != DV_OK)
        return explain(t, error, status, t->state->step, rate);
    dv_tally_add(sum, &result, count);
    return try_workers(t, made, dv_now() - start, error);
}

/* Where gradients are kept they have added up by now. */
static dv_status update(training *t, double rate, dv_error *error) {
    if (dv_run_gradients(t->run) != DV_GRADIENTS_KEPT)
        return DV_OK;
    dv_status status = dv_run_update(t->run, rate, t->state->step, error);
    return status == DV_OK ? DV_OK : explain(t, error, status, t->state->step, rate);
}

/* One step of the optimizer. Its images are in the state when it is done, not before. */
static dv_status step(training *t, double rate, dv_error *error) {
    size_t own = dv_options_own_batches(t->options), first = steps_in_epoch(t->state) * own;
    const step_batches batches = {first, dv_smaller(first + own, dv_loader_batches(t->loader))};
    dv_train_state *state = t->state;
    dv_tally sum = {0};
    for (size_t i = batches.first; i < batches.last; i++)
        DV_TRY(run_batch(t, &batches, i, rate, &sum, error));
    DV_TRY(update(t, rate, error));
    DV_TRY(share_tally(t, &sum, error));
    if (t->options->average > 0)
        dv_average_step(t->options->average, state->step, t->run);
    state->step++;
    state->loss += sum.loss;
    state->correct += sum.correct;
    state->images += sum.images;
    return keep_alike(t, error);
}

/* The steps of an epoch that are not done yet. */
static dv_status train_epoch(training *t, dv_epoch_record *record, dv_error *error) {
    dv_train_state *state = t->state;
    uint64_t end = (uint64_t)(record->epoch) * state->steps_per_epoch;
    double start = dv_now();
    t->begun = *state;
    while (state->step < end && state->step < all_steps(t)) {
        t->stopped = must_stop(t);
        if (t->stopped)
            break;
        double rate = rate_of(t, state->step);
        DV_TRY(step(t, rate, error));
        state->seconds = t->begun.seconds + dv_now() - start;
        tell(t, rate);
        if (state->step < end)
            DV_TRY(save_meanwhile(t, error));
    }
    return DV_OK;
}

/* ---- epochs -------------------------------------------------------------------------------- */

/* Tests after an epoch, unless a stop is asked for. */
static dv_status try_test(training *t, dv_epoch_record *record, dv_error *error) {
    dv_tally sum = {0};
    double start = dv_now();
    if (t->options->average > 0)
        dv_average_exchange(t->run);
    dv_status status =
        dv_test_epoch(t->run, t->test_loader, record->epoch, t->options->epochs, t->callbacks, NULL, &sum, error);
    if (t->options->average > 0)
        dv_average_exchange(t->run);
    DV_TRY(status);
    DV_TRY(share_tally(t, &sum, error));
    if (t->asked) {
        t->stopped = true;
        return DV_OK;
    }
    t->test_seconds = dv_now() - start;
    record->tested = 1;
    record->test_loss = dv_mean(sum.loss, sum.images);
    record->test_top1 = dv_percent(sum.correct, sum.images);
    return DV_OK;
}

/* The same. A test that fails leaves what was trained before it, unless that is what is wrong. */
static dv_status test_epoch(training *t, dv_epoch_record *record, dv_error *error) {
    dv_status status = try_test(t, record, error);
    if (status == DV_ERROR_NONFINITE)
        return explain(t, error, status, t->state->step - 1, record->learning_rate);
    if (status != DV_OK)
        (void)save(t, NULL);
    return status;
}

/* What the state says of the epoch's training. */
static void describe_training(const training *t, dv_epoch_record *record) {
    const dv_train_state *state = t->state;
    uint64_t last = state->step - 1;
    record->complete = state->step == (uint64_t)record->epoch * state->steps_per_epoch;
    record->steps = state->step;
    record->learning_rate = rate_of(t, last);
    record->train_loss = dv_mean(state->loss, state->images);
    record->train_top1 = dv_percent(state->correct, state->images);
    record->images_per_second = (double)state->images / state->seconds;
}

/* True if an epoch ends with a test: every so many of them, and when training is done. */
static bool ends_with_test(const training *t, size_t epoch) {
    return epoch % t->options->test_every == 0 || t->state->step >= all_steps(t);
}

/* Enters a record into the state. After a complete epoch, tested if it is to be, none is under way. */
static void enter(training *t, dv_epoch_record *record) {
    dv_train_state *state = t->state;
    record->improved = record->tested && !(state->best_top1 >= record->test_top1);
    if (record->improved) {
        state->best_top1 = record->test_top1;
        state->best_epoch = record->epoch;
    }
    if (!record->complete || (ends_with_test(t, record->epoch) && !record->tested))
        return;
    state->all_images += state->images;
    state->all_seconds += record->seconds;
    state->training_seconds += state->seconds;
    state->loss = state->seconds = 0;
    state->correct = state->images = 0;
}

static size_t workers_of(const training *t) {
    size_t given = t->options->loading.workers;
    return given != DV_WORKERS_AUTO ? given : t->trial.workers;
}

static dv_status run_epoch(training *t, dv_train_result *result, dv_error *error) {
    dv_plan_summary plan = dv_plan_totals(t->plan);
    dv_epoch_record record = {.epoch = epoch_of(t->state) + 1,
                              .test_loss = NAN,
                              .test_top1 = NAN,
                              .activation_bytes = plan.activations,
                              .spilled_bytes = plan.spilled};
    double waited = dv_run_waited_seconds(t->run), for_ranks = dv_world_waited_seconds(t->options->world);
    dv_ranks_waiting waiting;
    DV_TRY(train_epoch(t, &record, error));
    record.waited_seconds = dv_run_waited_seconds(t->run) - waited;
    for_ranks = dv_world_waited_seconds(t->options->world) - for_ranks;
    DV_TRY(dv_ranks_waited(t->options->world, for_ranks, &waiting, error));
    record.ranks = dv_options_ranks(t->options);
    record.network_seconds = waiting.network;
    record.others_seconds = waiting.others;
    if (t->state->images == 0) /* stopped before the first step */
        return save(t, error);
    describe_training(t, &record);
    if (!t->stopped && ends_with_test(t, record.epoch))
        DV_TRY(test_epoch(t, &record, error));
    record.seconds = t->state->seconds + (record.tested ? t->test_seconds : 0);
    record.peak_bytes = dv_memory_peak();
    record.workers = workers_of(t);
    enter(t, &record);
    result->last = record;
    result->stopped = t->stopped;
    if (t->callbacks != NULL && t->callbacks->epoch != NULL)
        DV_TRY(t->callbacks->epoch(t->callbacks->context, &record, error));
    return save(t, error);
}

/* True if the epoch that is under way is all trained and waits for its test. */
static bool test_is_due(const dv_train_state *state) {
    return state->images > 0 && steps_in_epoch(state) == state->steps_per_epoch;
}

/* Asked behind tests alone: epochs between them have nothing to be better by. */
int dv_train_lost_patience(const dv_train_state *state, const dv_options *options) {
    if (state == NULL || options == NULL || options->patience == 0 || state->best_epoch == 0 || state->images > 0)
        return 0;
    uint64_t epochs = dv_train_state_epochs(state);
    return epochs % options->test_every == 0 && epochs >= state->best_epoch + options->patience;
}

int dv_train_is_finished(const dv_train_state *state, const dv_options *options) {
    if (state == NULL || options == NULL || state->steps_per_epoch == 0)
        return 0;
    if (dv_train_lost_patience(state, options))
        return 1;
    return state->step >= steps_at_end(state, options) && !test_is_due(state);
}

/* Everything that can be wrong with the call is known when this returns. */
static dv_status begin(training *t, const dv_dataset *data, dv_error *error) {
    const dv_options *options = t->options;
    DV_TRY(dv_learning_loader(t->run, data, options, &t->loader, error));
    DV_TRY(dv_testing_loader(t->run, data, DV_TEST, &options->loading, options->world, &t->test_loader, error));
    bool choose = options->loading.workers == DV_WORKERS_AUTO;
    t->trial = dv_worker_trial_new(choose ? dv_loader_most_workers(data) : 0, (size_t)omp_get_max_threads());
    t->data_images = dv_dataset_describe(data).images[DV_TRAIN];
    size_t batches = dv_loader_batches(t->loader), own = dv_options_own_batches(options);
    uint64_t steps = options->drop_last ? batches / own : dv_divide_up(batches, own);
    if (batches < own)
        return dv_fail(error, DV_ERROR_OPTION, "accumulate: %zu: an epoch has %zu batches: use at most as many",
                       options->accumulate, batches);
    DV_TRY(check_state(t, steps, error));
    t->state->steps_per_epoch = steps;
    t->state->step_images = step_images(t);
    t->state->data_images = t->data_images;
    t->state->seed = options->seed;
    if (t->state->best_epoch == 0 && !isnan(t->state->best_top1)) /* of a version that did not note it */
        t->state->best_epoch = dv_train_state_epochs(t->state);
    DV_TRY(share_tally(t, &(dv_tally){0}, error));
    t->stopped = t->asked;
    if (t->stopped || t->callbacks == NULL || t->callbacks->begin == NULL)
        return DV_OK;
    return t->callbacks->begin(t->callbacks->context, error);
}

static dv_status run_epochs(training *t, dv_train_result *result, dv_error *error) {
    t->saved = dv_now();
    if (t->options->average > 0 && t->state->step == 0)
        dv_average_begin(t->run);
    while (!t->stopped && !dv_train_is_finished(t->state, t->options))
        DV_TRY(run_epoch(t, result, error));
    result->stopped = t->stopped;
    return DV_OK;
}

dv_status dv_train(dv_run *run, const dv_plan *plan, const dv_dataset *data, const dv_options *options,
                   const dv_train_callbacks *callbacks, dv_train_state *state, dv_train_result *result,
                   dv_error *error) {
    if (run == NULL || plan == NULL || data == NULL || options == NULL || state == NULL || result == NULL)
        return dv_fail(error, DV_ERROR_ARGUMENT, "train: run, plan, data, options, state or result is NULL");
    *result = (dv_train_result){0};
    DV_TRY(dv_options_check(options, error));
    DV_TRY(dv_check_input(run, error));
    DV_TRY(dv_check_planned(run, options, error));
    if (options->accumulate % dv_options_ranks(options) != 0)
        return dv_fail(error, DV_ERROR_ARGUMENT, "train: accumulate: %zu: must be a multiple of the ranks, %zu",
                       options->accumulate, dv_options_ranks(options));
    DV_TRY(dv_run_join(run, options->world, error));
    if (options->average > 0 && !has_averages(run))
        return dv_fail(error, DV_ERROR_ARGUMENT, "train: an average of the weights is asked for, but not planned");
    training t = {.run = run, .plan = plan, .options = options, .callbacks = callbacks, .state = state};
    dv_status status = begin(&t, data, error);
    if (status == DV_OK)
        status = run_epochs(&t, result, error);
    (void)dv_run_set_images(run, dv_run_input_map(run)->images, NULL);
    dv_loader_free(t.loader);
    dv_loader_free(t.test_loader);
    return status;
}
