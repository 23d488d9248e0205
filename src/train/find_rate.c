/* A search for the learning rate: a short training whose rates rise from step to step by one ratio. Where the loss
 * falls fastest, and where it begins to rise again, says what rate a training can have. It is dv_train with rates of
 * its own, stopped before any test. */
#include "train/training.h"

#include "base/sizes.h"
#include "base/status.h"

#include <math.h>

/* A moving average over about twenty steps; losses so much higher than the lowest do not come back. */
#define SMOOTHING 0.95
#define TOO_HIGH 4.0

/* A fall is more than so many standard errors of the first average. */
#define SURE 2.0

/* The first losses, of rates that change nothing yet, say where it begins and how much chance is in them: as many as
 * the average is over, a fifth of a short search. */
enum { FEWEST_POINTS = 10, MOST_STEPS = 10000, MOST_FIRST = 20, FIRST_SHARE = 5 };

typedef struct search {
    const dv_training *training;
    const dv_rate_search *options;
    dv_train_state state;
    dv_rate_point *points;
    dv_rate_found *found;
    double average, least; /* of losses, not yet corrected for its start; the lowest that was behind the first ones */
    double loss;           /* sums of the epoch under way, before the last step */
    uint64_t images;
    volatile sig_atomic_t stop;
} search;

dv_rate_search dv_rate_search_default(void) {
    return (dv_rate_search){.steps = 200, .first = 1e-6, .last = 10};
}

static double rate_at(void *context, uint64_t step) {
    const search *s = context;
    double share = (double)step / (double)(s->options->steps - 1);
    return s->options->first * pow(s->options->last / s->options->first, share);
}

/* The loss of the last step, from the sums that the loop has. */
static double last_loss(search *s) {
    bool begins = s->state.images <= s->images;
    double loss = s->state.loss - (begins ? 0 : s->loss);
    uint64_t images = s->state.images - (begins ? 0 : s->images);
    s->loss = s->state.loss;
    s->images = s->state.images;
    return loss / (double)images;
}

static bool is_asked_to_stop(const search *s) {
    const volatile sig_atomic_t *stop = s->training->callbacks.stop;
    return stop != NULL && *stop != 0;
}

static size_t first_points(const search *s) {
    return dv_smaller(MOST_FIRST, dv_larger(FEWEST_POINTS, s->options->steps / FIRST_SHARE));
}

/* The loss is of the weights before the step, and so of the rates before its own. */
static void add_point(search *s, double rate) {
    dv_rate_found *found = s->found;
    dv_rate_point *point = &s->points[found->points++];
    point->rate = rate;
    point->loss = last_loss(s);
    s->average = SMOOTHING * s->average + (1 - SMOOTHING) * point->loss;
    point->smoothed = s->average / (1 - pow(SMOOTHING, (double)found->points));
    if (found->points <= first_points(s) || point->smoothed < s->least) {
        s->least = point->smoothed;
        found->lowest = rate;
    }
}

static void after_step(void *context, const dv_train_progress *progress) {
    search *s = context;
    const dv_training_callbacks *callbacks = &s->training->callbacks;
    const dv_rate_found *found = s->found;
    add_point(s, progress->learning_rate);
    const dv_rate_point *point = &s->points[found->points - 1];
    dv_train_progress told = *progress;
    told.epoch = told.epochs = 1;
    told.step = found->points;
    told.steps = s->options->steps;
    told.loss = point->smoothed;
    if (callbacks->progress != NULL)
        callbacks->progress(callbacks->context, &told);
    s->found->stopped = is_asked_to_stop(s);
    s->stop = s->found->stopped || found->points == s->options->steps ||
              (found->points >= FEWEST_POINTS && point->smoothed > TOO_HIGH * s->least);
}

/* What the first losses have to fall by, so that it is no chance: batches differ. */
static double least_fall(const search *s, size_t count) {
    double sum = 0, squares = 0;
    for (size_t i = 0; i < count; i++)
        sum += s->points[i].loss;
    for (size_t i = 0; i < count; i++)
        squares += (s->points[i].loss - sum / (double)count) * (s->points[i].loss - sum / (double)count);
    return SURE * sqrt(squares / (double)(count - 1) / (double)count);
}

/* The lowest loss must be below that of the start. */
static void conclude(search *s) {
    dv_rate_found *found = s->found;
    size_t first = first_points(s);
    bool fell = found->points > first && s->least < s->points[first - 1].smoothed - least_fall(s, first);
    found->suggested = fell ? found->lowest / 10 : NAN;
    found->at_end = fell && found->lowest == s->options->last;
}

/* As many epochs as it takes, none of them tested. */
static dv_options options_of(const dv_training *training) {
    dv_options options = training->options;
    options.epochs = options.test_every = 100000;
    options.steps = 0;
    options.patience = 0;
    options.save_minutes = 0;
    return options;
}

static dv_status check(const dv_rate_search *options, dv_error *error) {
    DV_TRY(dv_check_count("steps", options->steps, FEWEST_POINTS, MOST_STEPS, error));
    if (options->first > 0 && options->first < options->last && isfinite(options->last))
        return DV_OK;
    return dv_fail(error, DV_ERROR_OPTION, "rates from %g to %g: they must rise, from more than 0 on", options->first,
                   options->last);
}

dv_status dv_training_find_rate(dv_training *training, const dv_rate_search *options, dv_rate_point *points,
                                dv_rate_found *found, dv_error *error) {
    DV_NEED(training);
    DV_NEED(options);
    DV_NEED(points);
    DV_NEED(found);
    DV_TRY(check(options, error));
    *found = (dv_rate_found){.lowest = NAN};
    search s = {
        .training = training, .options = options, .state = dv_train_state_default(), .points = points, .found = found};
    const dv_train_callbacks callbacks = {.progress = after_step, .rate = rate_at, .context = &s, .stop = &s.stop};
    const dv_options trained = options_of(training);
    dv_train_result result;
    dv_status status =
        dv_train(training->run, training->plan, training->data, &trained, &callbacks, &s.state, &result, error);
    conclude(&s);
    return status == DV_ERROR_NONFINITE && found->points >= FEWEST_POINTS ? DV_OK : status;
}
