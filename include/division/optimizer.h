/* Optimizers: how parameters follow their gradients. A plan is told which one, as text (dv_plan_options.optimizer):
 *
 *     sgd:momentum=0.9,nesterov=yes,decay=5e-4
 *     adamw:beta1=0.9,beta2=0.999,eps=1e-8,decay=0.01
 *     rmsprop:alpha=0.99,eps=1e-8,momentum=0.9,centered=yes
 *
 * Each computes what PyTorch's of that name does. `rate` is the learning rate of the step, g the gradient:
 *
 *     sgd      g += decay * parameter;  velocity = momentum * velocity + g                (starts at 0)
 *              parameter -= rate * velocity                  (nesterov: rate * (g + momentum * velocity))
 *              Without momentum there is no velocity, and parameter -= rate * g.
 *     adamw    parameter *= 1 - rate * decay
 *              exp_avg = beta1 * exp_avg + (1 - beta1) * g;  exp_avg_sq likewise of g * g with beta2
 *              parameter -= rate * exp_avg / (1 - beta1^n) / (sqrt(exp_avg_sq / (1 - beta2^n)) + eps), n-th step from 1
 *     rmsprop  g += decay * parameter;  square_avg = alpha * square_avg + (1 - alpha) * g * g
 *              step = g / (sqrt(square_avg) + eps)         (centered: the square of grad_avg, an average of g like
 *                                                           square_avg, is subtracted under the root)
 *              parameter -= rate * step                    (momentum: rate * momentum_buffer, which is
 *                                                           momentum * momentum_buffer + step)
 *
 * Groups of parameters can have another decay or rate (dv_plan_options.groups), as text too: "GLOB:NAME=VALUE,...",
 * with semicolons between groups:
 *
 *     vectors:decay=0;fc:rate=10
 *
 * A glob names parameters as those of dv_plan_options.freeze do: "fc" stands for fc.weight and fc.bias. `vectors` are
 * all parameters of rank 1: those of norms, and biases. `decay` takes the place of the optimizer's, `rate` is a factor
 * of the learning rate. A parameter is of the first group that names it. A group that names none is an error.
 *
 * - Threads, fork, freeing: Tables are static and never change, an optimizer is a plain value: nothing is freed. */
#ifndef DIVISION_OPTIMIZER_H
#define DIVISION_OPTIMIZER_H

#include <division/export.h>
#include <division/option.h>
#include <division/status.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct dv_optimizer_kind;

enum { DV_OPTIMIZER_MAX_OPTIONS = 8, DV_OPTIMIZER_MAX_SLOTS = 4 };

typedef union dv_optimizer_value {
    double number;
    int flag; /* 0 or 1 */
} dv_optimizer_value;

/* An optimizer and its options, made by dv_optimizer_parse. A plain value: copy it, drop it. */
typedef struct dv_optimizer {
    const struct dv_optimizer_kind *kind;                 /* static */
    double decay;                                         /* of the parameters, 0 to 1; every kind has it */
    dv_optimizer_value options[DV_OPTIMIZER_MAX_OPTIONS]; /* in the order of dv_optimizer_option_at */
} dv_optimizer;

/* Reads "name" or "name:option=value,...". An error names the option, its value and its bounds. */
DV_API dv_status dv_optimizer_parse(const char *text, dv_optimizer *optimizer, dv_error *error);

/* Its name, and the arrays that it keeps for each parameter, by which checkpoints know them: "velocity". NULL past the
 * last. Static. */
DV_API const char *dv_optimizer_name(const dv_optimizer *optimizer);
DV_API const char *dv_optimizer_slot_at(const dv_optimizer *optimizer, size_t index);

/* The optimizers there are; NULL past the last. Static. */
DV_API const char *dv_optimizer_name_at(size_t index);
DV_API const char *dv_optimizer_help_at(size_t index);
DV_API const dv_option *dv_optimizer_option_at(size_t optimizer, size_t index);

#ifdef __cplusplus
}
#endif

#endif
