/* Adam with decoupled weight decay: the decay is not in the gradient, so that the averages do not see it. */
#include "optimizer/kind.h"

#include <math.h>

enum { BETA1, BETA2, EPS };   /* options */
enum { EXP_AVG, EXP_AVG_SQ }; /* slots */

static const dv_option options[] = {
    [BETA1] = {"beta1", "B", "of the average of gradients", DV_NUMBER_IN(BETA1, 0, 0.999999), .preset = "0.9"},
    [BETA2] = {"beta2", "B", "of the average of their squares", DV_NUMBER_IN(BETA2, 0, 0.999999), .preset = "0.999"},
    [EPS] = {"eps", "E", "added to the root", DV_NUMBER_IN(EPS, 0, 1), .preset = "1e-8"},
};

static const dv_optimizer_slot slots[] = {
    [EXP_AVG] = {"exp_avg", DV_SLOT_ALWAYS},
    [EXP_AVG_SQ] = {"exp_avg_sq", DV_SLOT_ALWAYS},
};

/* Averages that start at 0 are too small by a factor that is known: what is left of 0 after so many steps. */
static double correction(double beta, uint64_t number) {
    return 1 - pow(beta, (double)number);
}

static void update(const dv_update *u) {
    const double beta1 = u->options[BETA1].number, beta2 = u->options[BETA2].number;
    const float stays2 = (float)beta2, part1 = (float)(1 - beta1), part2 = (float)(1 - beta2);
    const float left = (float)(1 - u->rate * u->decay), scale = u->scale, eps = (float)u->options[EPS].number;
    const float step = (float)(u->rate / correction(beta1, u->number));
    const float root = (float)(1 / sqrt(correction(beta2, u->number)));
    float *restrict p = u->parameter, *restrict gradient = u->gradient;
    float *restrict mean = u->slots[EXP_AVG], *restrict square = u->slots[EXP_AVG_SQ];
#pragma omp simd
    for (size_t i = 0; i < u->count; i++) {
        float g = scale * gradient[i];
        mean[i] += part1 * (g - mean[i]);
        square[i] = stays2 * square[i] + part2 * g * g;
        p[i] = left * p[i] - step * (mean[i] / (sqrtf(square[i]) * root + eps));
        gradient[i] = 0;
    }
}

const dv_optimizer_kind dv_optimizer_adamw = {
    .name = "adamw",
    .help = "Adam with decoupled weight decay; options: beta1, beta2, eps, decay",
    .decay = 0.01,
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .slots = slots,
    .slot_count = sizeof slots / sizeof *slots,
    .update = update,
};
