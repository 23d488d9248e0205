/* Stochastic gradient descent with momentum. One pass over memory: parameter, velocity and gradient are read
 * and written once, and the gradient is left zero for the next step. */
#include <division/train.h>

#include "base/status.h"

/* Below this it is not worth waking the threads. */
enum { PARALLEL_FROM = 1 << 15 };

dv_sgd_options dv_sgd_options_default(void) {
    return (dv_sgd_options){.momentum = 0.9, .weight_decay = 5e-4};
}

dv_status dv_sgd_check(const dv_sgd_options *options, dv_error *error) {
    DV_NEED(options);
    if (!(options->momentum >= 0 && options->momentum < 1))
        return dv_fail(error, DV_ERROR_OPTION, "momentum: %g: must be at least 0 and less than 1", options->momentum);
    if (!(options->weight_decay >= 0 && options->weight_decay <= 1))
        return dv_fail(error, DV_ERROR_OPTION, "weight decay: %g: must be from 0 to 1", options->weight_decay);
    if (options->nesterov && options->momentum == 0)
        return dv_fail(error, DV_ERROR_OPTION, "nesterov: needs momentum, which is 0: give one, 0.9 for example");
    return DV_OK;
}

int dv_sgd_slots(const dv_sgd_options *options) {
    return options->momentum != 0;
}

static void update_plain(float rate, float decay, size_t count, float *restrict p, float *restrict gradient) {
#pragma omp parallel for simd if (count >= PARALLEL_FROM) schedule(static)
    for (size_t i = 0; i < count; i++) {
        p[i] -= rate * (gradient[i] + decay * p[i]);
        gradient[i] = 0;
    }
}

static void update_momentum(float rate, float momentum, float decay, size_t count, float *restrict p,
                            float *restrict gradient, float *restrict velocity) {
#pragma omp parallel for simd if (count >= PARALLEL_FROM) schedule(static)
    for (size_t i = 0; i < count; i++) {
        velocity[i] = momentum * velocity[i] + (gradient[i] + decay * p[i]);
        p[i] -= rate * velocity[i];
        gradient[i] = 0;
    }
}

static void update_nesterov(float rate, float momentum, float decay, size_t count, float *restrict p,
                            float *restrict gradient, float *restrict velocity) {
#pragma omp parallel for simd if (count >= PARALLEL_FROM) schedule(static)
    for (size_t i = 0; i < count; i++) {
        float g = gradient[i] + decay * p[i];
        velocity[i] = momentum * velocity[i] + g;
        p[i] -= rate * (g + momentum * velocity[i]);
        gradient[i] = 0;
    }
}

void dv_sgd_update(const dv_sgd_options *options, double rate, size_t count, float *parameter, float *gradient,
                   float *velocity) {
    float step = (float)rate, momentum = (float)options->momentum, decay = (float)options->weight_decay;
    if (momentum == 0)
        update_plain(step, decay, count, parameter, gradient);
    else if (options->nesterov)
        update_nesterov(step, momentum, decay, count, parameter, gradient, velocity);
    else
        update_momentum(step, momentum, decay, count, parameter, gradient, velocity);
}

void dv_sgd_step(const dv_sgd_options *options, double rate, dv_run *run) {
    const dv_run_parameter *parameter;
    for (size_t i = 0; (parameter = dv_run_parameter_at(run, i)) != NULL; i++)
        if (parameter->gradient != NULL)
            dv_sgd_update(options, rate, parameter->count, parameter->data, parameter->gradient, parameter->optimizer);
}
