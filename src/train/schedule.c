/* The learning rate as a function of the step: nothing is remembered, so that a training that resumes goes on as
 * if it had never stopped. */
#include <division/train.h>

#include "base/settings.h"
#include "base/status.h"

#include <math.h>

static const double PI = 3.14159265358979323846;

/* Where a step is in the training. */
typedef struct moment {
    double step, warmup, total; /* in steps */
    uint64_t epoch;             /* from 0 */
} moment;

static double constant(const dv_schedule *schedule, const moment *now) {
    (void)now;
    return schedule->rate;
}

/* How far a step is from the warm-up's end to the training's, from 0 to 1. */
static double part_done(const moment *now) {
    return now->step > now->warmup ? fmin((now->step - now->warmup) / (now->total - now->warmup), 1) : 0;
}

static double cosine(const dv_schedule *schedule, const moment *now) {
    return schedule->rate * 0.5 * (1 + cos(PI * part_done(now)));
}

static double linear(const dv_schedule *schedule, const moment *now) {
    return schedule->rate * (1 - part_done(now));
}

static double step(const dv_schedule *schedule, const moment *now) {
    uint64_t times = now->epoch / schedule->every;
    return schedule->rate * pow(schedule->factor, (double)times);
}

static double multi_step(const dv_schedule *schedule, const moment *now) {
    size_t passed = 0;
    for (size_t i = 0; i < schedule->milestone_count; i++)
        passed += now->epoch >= schedule->milestones[i];
    return schedule->rate * pow(schedule->factor, (double)passed);
}

static const struct {
    const char *name, *shown;
    double (*rate)(const dv_schedule *schedule, const moment *now);
} kinds[DV_SCHEDULE_KIND_COUNT] = {
    [DV_SCHEDULE_CONSTANT] = {"constant", "constant", constant},
    [DV_SCHEDULE_COSINE] = {"cosine", "cosine", cosine},
    [DV_SCHEDULE_LINEAR] = {"linear", "linear", linear},
    [DV_SCHEDULE_STEP] = {"step", "step:every=30,factor=0.1", step},
    [DV_SCHEDULE_MULTI_STEP] = {"multistep", "multistep:at=60+120+160,factor=0.2", multi_step},
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
    DV_TRY(check_bounds("schedule factor", schedule->factor, 0, 1, error));
    DV_TRY(check_bounds("schedule every", (double)schedule->every, 1, 100000, error));
    return check_bounds("schedule milestones", (double)schedule->milestone_count, 0, DV_SCHEDULE_MAX_MILESTONES, error);
}

/* The settings that a kind takes. */
static dv_status parse_settings(const char *text, dv_schedule *made, dv_error *error) {
    const dv_setting none[] = {DV_SETTINGS_END};
    const dv_setting for_step[] = {
        {"every", DV_COUNT_SETTING(&made->every, 1, 100000)},
        {"factor", DV_NUMBER_SETTING(&made->factor, 0, 1)},
        DV_SETTINGS_END,
    };
    const dv_setting for_multi_step[] = {
        {"at", DV_COUNTS_SETTING(made->milestones, DV_SCHEDULE_MAX_MILESTONES, &made->milestone_count, 1, 100000)},
        {"factor", DV_NUMBER_SETTING(&made->factor, 0, 1)},
        DV_SETTINGS_END,
    };
    const dv_setting *const tables[DV_SCHEDULE_KIND_COUNT] = {none, none, none, for_step, for_multi_step};
    DV_TRY(dv_settings_parse(kinds[made->kind].name, text, tables[made->kind], error));
    if (made->kind == DV_SCHEDULE_MULTI_STEP && made->milestone_count == 0)
        return dv_fail(error, DV_ERROR_OPTION, "multistep: no epochs: give them, as in multistep:at=60+120");
    return DV_OK;
}

dv_status dv_schedule_parse(const char *text, dv_schedule *schedule, dv_error *error) {
    const char *settings;
    DV_NEED(text);
    DV_NEED(schedule);
    for (dv_schedule_kind kind = 0; kind < DV_SCHEDULE_KIND_COUNT; kind++) {
        if (!dv_settings_name(text, kinds[kind].name, &settings))
            continue;
        dv_schedule made = *schedule;
        made.kind = kind;
        made.milestone_count = 0;
        DV_TRY(parse_settings(settings, &made, error));
        *schedule = made;
        return DV_OK;
    }
    return dv_fail(error, DV_ERROR_OPTION,
                   "schedule: \"%.40s\" is none: there are constant, cosine, linear, step and multistep", text);
}

double dv_schedule_rate(const dv_schedule *schedule, uint64_t at, uint64_t steps_per_epoch, uint64_t epochs) {
    moment now = {.step = (double)at,
                  .warmup = floor(schedule->warmup * (double)steps_per_epoch + 0.5),
                  .total = (double)epochs * (double)steps_per_epoch,
                  .epoch = at / (steps_per_epoch > 0 ? steps_per_epoch : 1)};
    if (now.step >= now.warmup)
        return kinds[schedule->kind].rate(schedule, &now);
    double warm = (now.step + 1) / now.warmup;
    now.step = now.warmup; /* the kind has not begun; its epochs go on counting */
    return warm * kinds[schedule->kind].rate(schedule, &now);
}
