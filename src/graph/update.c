/* The optimizer's steps: of one layer, where gradients are transient, or of all parameters, where they are kept. */
#include "base/status.h"
#include "graph/run.h"
#include "optimizer/clip.h"
#include "optimizer/kind.h"

#include <math.h>
#include <string.h>

/* With the gap behind them in a bucket, which travels along. */
static size_t cleared(const dv_run *run, int layer, size_t count) {
    return run->plan->layers[layer].bucket >= 0 ? dv_bucket_elements(count) : count;
}

void dv_run_clear_gradients(dv_run *run, int layer) {
    const dv_layer *of = &run->plan->graph->layers[layer].layer;
    for (size_t k = 0; k < of->parameter_count; k++)
        if (run->arrays[layer].gradients[k]) /* not frozen */
            memset(run->arrays[layer].gradients[k], 0, cleared(run, layer, of->parameters[k].count) * sizeof(float));
}

void dv_run_update_layer(dv_run *run, int layer, double rate, uint64_t number, float scale) {
    const dv_layer *of = &run->plan->graph->layers[layer].layer;
    const dv_layer_plan *where = &run->plan->layers[layer];
    for (size_t k = 0; k < of->parameter_count; k++) {
        if (!run->arrays[layer].gradients[k])
            continue;
        dv_update update = {.rate = rate * where->groups[k].rate,
                            .decay = where->groups[k].decay,
                            .number = number + 1,
                            .scale = scale,
                            .count = of->parameters[k].count,
                            .parameter = run->arrays[layer].parameters[k],
                            .gradient = run->arrays[layer].gradients[k]};
        dv_optimizer_update(&run->plan->optimizer, &update, dv_run_piece(run, where->optimizer[k]));
    }
}

/* The norm of all gradients. */
static double norm_of_gradients(const dv_run *run) {
    double sum = 0;
    for (size_t i = 0; i < run->parameter_count; i++)
        if (run->parameters[i].gradient)
            sum += dv_sum_of_squares(run->parameters[i].gradient, run->parameters[i].count);
    return sqrt(sum);
}

/* What gradients are to be multiplied by, so that their norm is no larger than asked for. */
static dv_status find_scale(dv_run *run, float *scale, dv_error *error) {
    double most = run->plan->options.clip, norm = most > 0 ? norm_of_gradients(run) : 0;
    run->failed = !isfinite(norm);
    if (run->failed)
        return dv_fail(error, DV_ERROR_NONFINITE, "the norm of the gradients is %g", norm);
    *scale = most > 0 ? (float)dv_clip_factor(most, norm) : 1;
    return DV_OK;
}

dv_status dv_run_update(dv_run *run, double rate, uint64_t number, dv_error *error) {
    float scale = 1;
    DV_NEED(run);
    if (!run->plan->optimizer.kind || run->plan->options.inference)
        return dv_fail(error, DV_ERROR_ARGUMENT, "run: asked to update, but planned without an optimizer");
    if (run->plan->options.gradients == DV_GRADIENTS_TRANSIENT)
        return dv_fail(error, DV_ERROR_ARGUMENT, "run: gradients are transient: steps update the parameters");
    if (run->failed)
        return dv_fail(error, DV_ERROR_ARGUMENT,
                       "run: an earlier step failed half-way: make a new run, and load a checkpoint");
    DV_TRY(find_scale(run, &scale, error));
    for (size_t i = 0; i < run->plan->graph->layer_count; i++)
        dv_run_update_layer(run, (int)i, rate, number, scale);
    return DV_OK;
}

const dv_optimizer *dv_run_optimizer(const dv_run *run) {
    return run && run->plan->optimizer.kind && !run->plan->options.inference ? &run->plan->optimizer : NULL;
}

dv_gradients dv_run_gradients(const dv_run *run) {
    return run ? run->plan->options.gradients : DV_GRADIENTS_KEPT;
}
