/* The learning rate as a function of the step: nothing is remembered, so that a training that resumes goes on as
 * if it had never stopped. */
#include <division/train.h>

#include "base/option_text.h"
#include "base/status.h"

#include <math.h>

static const double PI = 3.14159265358979323846;

/* Where a step is in the training. */
typedef struct moment {
    double step, warmup, total, epoch_steps; /* in steps */
    uint64_t epoch;                          /* from 0 */
} moment;

static double constant(const dv_schedule *schedule, const moment *now) {
    (void)now;
    return schedule->rate;
}

/* How far a step, or the first of its epoch, is from the warm-up's end to the training's, from 0 to 1. */
static double part_done(const dv_schedule *schedule, const moment *now) {
    double step = schedule->per_epoch ? (double)now->epoch * now->epoch_steps : now->step;
    return step > now->warmup ? fmin((step - now->warmup) / (now->total - now->warmup), 1) : 0;
}

static double cosine(const dv_schedule *schedule, const moment *now) {
    return schedule->minimum + (schedule->rate - schedule->minimum) * 0.5 * (1 + cos(PI * part_done(schedule, now)));
}

static double linear(const dv_schedule *schedule, const moment *now) {
    return schedule->minimum + (schedule->rate - schedule->minimum) * (1 - part_done(schedule, now));
}

static double exponential(const dv_schedule *schedule, const moment *now) {
    double epochs = floor((now->step - now->warmup) / now->epoch_steps);
    return fmax(schedule->minimum, schedule->rate * pow(schedule->factor, epochs));
}

static double step(const dv_schedule *schedule, const moment *now) {
    uint64_t times = now->epoch / schedule->every;
    return schedule->rate * pow(schedule->factor, (double)times);
}

static double multi_step(const dv_schedule *schedule, const moment *now) {
    size_t passed = 0;
    for (size_t i = 0; i < schedule->milestones.count; i++)
        passed += now->epoch >= schedule->milestones.at[i];
    return schedule->rate * pow(schedule->factor, (double)passed);
}

#define FACTOR \
    { "factor", "F", "by which the rate is multiplied", DV_NUMBER_AT(dv_schedule, factor, 0, 1) }

static const char *const pers[] = {"step", "epoch", NULL};

static const dv_option falling_options[] = {
    {"per", NULL, "how often the rate changes", DV_WORD_AT(dv_schedule, per_epoch, pers)},
};

static const dv_option step_options[] = {
    {"every", "EPOCHS", "after which it is", DV_COUNT_AT(dv_schedule, every, 1, 100000)},
    FACTOR,
};

static const dv_option multi_step_options[] = {
    {"at", "EPOCHS", "at whose beginning it is", DV_COUNTS_AT(dv_schedule, milestones, 1, 100000)},
    FACTOR,
};

static const dv_option exponential_options[] = {FACTOR};

static const struct {
    const char *name, *shown;
    double (*rate)(const dv_schedule *schedule, const moment *now);
    const dv_option *options;
    size_t option_count;
} kinds[DV_SCHEDULE_KIND_COUNT] = {
    [DV_SCHEDULE_CONSTANT] = {"constant", "constant", constant, NULL, 0},
    [DV_SCHEDULE_COSINE] = {"cosine", "cosine:per=step", cosine, falling_options, 1},
    [DV_SCHEDULE_LINEAR] = {"linear", "linear:per=step", linear, falling_options, 1},
    [DV_SCHEDULE_STEP] = {"step", "step:every=30,factor=0.1", step, step_options, 2},
    [DV_SCHEDULE_MULTI_STEP] = {"multistep", "multistep:at=60+120+160,factor=0.2", multi_step, multi_step_options, 2},
    [DV_SCHEDULE_EXPONENTIAL] = {"exponential", "exponential:factor=0.97", exponential, exponential_options, 1},
};

const char *dv_schedule_name_at(size_t index) {
    return index < DV_SCHEDULE_KIND_COUNT ? kinds[index].shown : NULL;
}

dv_schedule dv_schedule_default(void) {
    return (dv_schedule){.kind = DV_SCHEDULE_COSINE, .rate = 0.1, .factor = 0.1, .every = 30};
}

static dv_status check_bounds(const char *name, double value, double low, double high, dv_error *error) {
    if (value >= low && value <= high)
        return DV_OK;
    return dv_fail(error, DV_ERROR_OPTION, "%s: %g: must be from %g to %g", name, value, low, high);
}

dv_status dv_schedule_check(const dv_schedule *schedule, dv_error *error) {
    DV_NEED(schedule);
    if (schedule->kind < 0 || schedule->kind >= DV_SCHEDULE_KIND_COUNT)
        return dv_fail(error, DV_ERROR_ARGUMENT, "schedule: kind %d is none", (int)schedule->kind);
    DV_TRY(check_bounds("learning rate", schedule->rate, 0, 1000, error));
    DV_TRY(check_bounds("warm-up", schedule->warmup, 0, 10000, error));
    DV_TRY(check_bounds("warm-up from", schedule->warmup_from, 0, 1, error));
    DV_TRY(check_bounds("least learning rate", schedule->minimum, 0, schedule->rate, error));
    if (schedule->warmup > 0 && schedule->warmup_constant && schedule->warmup_from == 0)
        return dv_fail(error, DV_ERROR_OPTION,
                       "a constant warm-up at no share of the rate learns nothing: give a share, 0.01 for example");
    DV_TRY(check_bounds("schedule factor", schedule->factor, 0, 1, error));
    DV_TRY(check_bounds("schedule every", (double)schedule->every, 1, 100000, error));
    return check_bounds("schedule milestones", (double)schedule->milestones.count, 0, DV_MOST_COUNTS, error);
}

static dv_status parse_options(const char *rest, dv_schedule *made, dv_error *error) {
    const dv_option_table table = {kinds[made->kind].options, kinds[made->kind].option_count, made};
    DV_TRY(dv_option_text_parse(kinds[made->kind].name, rest, &table, 1, error));
    if (made->kind == DV_SCHEDULE_MULTI_STEP && made->milestones.count == 0)
        return dv_fail(error, DV_ERROR_OPTION, "multistep: no epochs: give them, as in multistep:at=60+120");
    return DV_OK;
}

dv_status dv_schedule_parse(const char *text, dv_schedule *schedule, dv_error *error) {
    const char *rest;
    DV_NEED(text);
    DV_NEED(schedule);
    for (dv_schedule_kind kind = 0; kind < DV_SCHEDULE_KIND_COUNT; kind++) {
        if (!dv_option_text_names(text, kinds[kind].name, &rest))
            continue;
        dv_schedule made = *schedule;
        made.kind = kind;
        made.milestones.count = 0;
        made.per_epoch = 0;
        DV_TRY(parse_options(rest, &made, error));
        *schedule = made;
        return DV_OK;
    }
    return dv_fail(error, DV_ERROR_OPTION,
                   "schedule: \"%.40s\" is none: there are constant, cosine, linear, step, multistep and exponential",
                   text);
}

double dv_schedule_rate(const dv_schedule *schedule, uint64_t at, uint64_t steps_per_epoch, uint64_t epochs) {
    moment now = {.step = (double)at,
                  .warmup = floor(schedule->warmup * (double)steps_per_epoch + 0.5),
                  .total = (double)epochs * (double)steps_per_epoch,
                  .epoch_steps = (double)(steps_per_epoch > 0 ? steps_per_epoch : 1),
                  .epoch = at / (steps_per_epoch > 0 ? steps_per_epoch : 1)};
    if (now.step >= now.warmup)
        return kinds[schedule->kind].rate(schedule, &now);
    double warm = schedule->warmup_constant ? 0 : (now.step + 1) / now.warmup;
    now.step = now.warmup; /* the kind has not begun; its epochs go on counting */
    return (schedule->warmup_from + (1 - schedule->warmup_from) * warm) * kinds[schedule->kind].rate(schedule, &now);
}
