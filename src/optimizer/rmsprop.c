/* RMSprop: a step is the gradient by the root of the average of its square. */
#include "optimizer/kind.h"

#include <math.h>

enum { ALPHA, EPS, MOMENTUM, CENTERED };        /* options */
enum { SQUARE_AVG, GRAD_AVG, MOMENTUM_BUFFER }; /* slots */

static const dv_option options[] = {
    [ALPHA] = {"alpha", "A", "of the average of squares", DV_NUMBER_IN(ALPHA, 0, 0.999999), .preset = "0.99"},
    [EPS] = {"eps", "E", "added to the root", DV_NUMBER_IN(EPS, 0, 1), .preset = "1e-8"},
    [MOMENTUM] = {"momentum", "M", "of steps", DV_NUMBER_IN(MOMENTUM, 0, 0.999999), .preset = "0"},
    [CENTERED] = {"centered", NULL, "the average gradient is subtracted", DV_FLAG_IN(CENTERED), .preset = "no"},
};

static const dv_optimizer_slot slots[] = {
    [SQUARE_AVG] = {"square_avg", DV_SLOT_ALWAYS},
    [GRAD_AVG] = {"grad_avg", CENTERED},
    [MOMENTUM_BUFFER] = {"momentum_buffer", MOMENTUM},
};

/* With and without each slot: the compiler makes four loops of one. A centered square can come out below 0 by rounding,
 * where PyTorch's root would be NaN. */
static inline void update_with(const dv_update *u, int centered, int momentum) {
    const dv_optimizer_value *of = u->options;
    const float rate = (float)u->rate, decay = (float)u->decay, scale = u->scale, eps = (float)of[EPS].number;
    const float alpha = (float)of[ALPHA].number, part = (float)(1 - of[ALPHA].number),
                kept = (float)of[MOMENTUM].number;
    float *restrict p = u->parameter, *restrict gradient = u->gradient, *restrict square = u->slots[SQUARE_AVG];
    float *restrict mean = u->slots[GRAD_AVG], *restrict buffer = u->slots[MOMENTUM_BUFFER];
#pragma omp simd
    for (size_t i = 0; i < u->count; i++) {
        float g = scale * gradient[i] + decay * p[i];
        float under = square[i] = alpha * square[i] + part * g * g;
        if (centered) {
            mean[i] += part * (g - mean[i]);
            under -= mean[i] * mean[i];
            under = under > 0 ? under : 0;
        }
        float step = g / (sqrtf(under) + eps);
        if (momentum)
            step = buffer[i] = kept * buffer[i] + step;
        p[i] -= rate * step;
        gradient[i] = 0;
    }
}

static void update(const dv_update *u) {
    int centered = u->slots[GRAD_AVG] != NULL, momentum = u->slots[MOMENTUM_BUFFER] != NULL;
    if (centered && momentum)
        update_with(u, 1, 1);
    else if (centered)
        update_with(u, 1, 0);
    else if (momentum)
        update_with(u, 0, 1);
    else
        update_with(u, 0, 0);
}

const dv_optimizer_kind dv_optimizer_rmsprop = {
    .name = "rmsprop",
    .help = "RMSprop; options: alpha, eps, momentum, centered, decay",
    .decay = 0,
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .slots = slots,
    .slot_count = sizeof slots / sizeof *slots,
    .update = update,
};
