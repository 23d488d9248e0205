/* Stochastic gradient descent with momentum. */
#include "base/status.h"
#include "optimizer/kind.h"

enum { MOMENTUM, NESTEROV }; /* options */

static const dv_option options[] = {
    [MOMENTUM] = {"momentum", "M", "part of the velocity that stays", DV_NUMBER_IN(MOMENTUM, 0, 0.999999),
                  .preset = "0.9"},
    [NESTEROV] = {"nesterov", NULL, "Nesterov's momentum", DV_FLAG_IN(NESTEROV), .preset = "no"},
};

static const dv_optimizer_slot slots[] = {{"velocity", MOMENTUM}};

static dv_status check(const dv_optimizer_value *of, dv_error *error) {
    if (of[NESTEROV].flag && of[MOMENTUM].number == 0)
        return dv_fail(error, DV_ERROR_OPTION, "nesterov: needs momentum, which is 0: give one, 0.9 for example");
    return DV_OK;
}

static void update_plain(const dv_update *u) {
    const float rate = (float)u->rate, decay = (float)u->decay, scale = u->scale;
    float *restrict p = u->parameter, *restrict gradient = u->gradient;
#pragma omp simd
    for (size_t i = 0; i < u->count; i++) {
        p[i] -= rate * (scale * gradient[i] + decay * p[i]);
        gradient[i] = 0;
    }
}

static void update_momentum(const dv_update *u) {
    const float rate = (float)u->rate, decay = (float)u->decay, scale = u->scale;
    const float momentum = (float)u->options[MOMENTUM].number;
    float *restrict p = u->parameter, *restrict gradient = u->gradient, *restrict velocity = u->slots[0];
#pragma omp simd
    for (size_t i = 0; i < u->count; i++) {
        velocity[i] = momentum * velocity[i] + (scale * gradient[i] + decay * p[i]);
        p[i] -= rate * velocity[i];
        gradient[i] = 0;
    }
}

static void update_nesterov(const dv_update *u) {
    const float rate = (float)u->rate, decay = (float)u->decay, scale = u->scale;
    const float momentum = (float)u->options[MOMENTUM].number;
    float *restrict p = u->parameter, *restrict gradient = u->gradient, *restrict velocity = u->slots[0];
#pragma omp simd
    for (size_t i = 0; i < u->count; i++) {
        float g = scale * gradient[i] + decay * p[i];
        velocity[i] = momentum * velocity[i] + g;
        p[i] -= rate * (g + momentum * velocity[i]);
        gradient[i] = 0;
    }
}

static void update(const dv_update *u) {
    if (u->options[MOMENTUM].number == 0)
        update_plain(u);
    else if (u->options[NESTEROV].flag)
        update_nesterov(u);
    else
        update_momentum(u);
}

const dv_optimizer_kind dv_optimizer_sgd = {
    .name = "sgd",
    .help = "stochastic gradient descent; options: momentum, nesterov, decay",
    .decay = 5e-4,
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .slots = slots,
    .slot_count = sizeof slots / sizeof *slots,
    .check = check,
    .update = update,
};
