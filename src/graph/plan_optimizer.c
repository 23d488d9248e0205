/* What a plan has of its optimizer: which it is, the decay and rate of each parameter, and where updates stand. */
#include "base/status.h"
#include "graph/plan.h"

#include <math.h>
#include <stdio.h>

enum { NAME_BYTES = 512 };

static bool is_transient(const dv_plan *plan) {
    return plan->options.gradients == DV_GRADIENTS_TRANSIENT;
}

/* ---- reading ------------------------------------------------------------------------------- */

static dv_status check_options(const dv_plan_options *options, dv_error *error) {
    if (!(options->clip >= 0 && isfinite(options->clip)))
        return dv_fail(error, DV_ERROR_OPTION, "clip: %g: must be a norm, or 0 for none", options->clip);
    if (options->gradients != DV_GRADIENTS_TRANSIENT)
        return DV_OK;
    if (!options->optimizer)
        return dv_fail(error, DV_ERROR_OPTION, "plan: transient gradients need an optimizer: give one, or keep them");
    if (options->clip > 0)
        return dv_fail(error, DV_ERROR_OPTION,
                       "plan: transient gradients can't be clipped: their norm is known when all are there: keep them");
    return DV_OK;
}

static void give_groups(dv_plan *plan, dv_groups *groups, int i) {
    const dv_layer *layer = &plan->graph->layers[i].layer;
    for (size_t k = 0; k < layer->parameter_count; k++) {
        char name[NAME_BYTES];
        snprintf(name, sizeof name, "%s.%s", layer->name, layer->parameters[k].name);
        dv_parameter_group group = dv_groups_find(groups, name, layer->parameters[k].rank);
        if (isnan(group.decay))
            group.decay = plan->optimizer.decay;
        plan->layers[i].groups[k] = group;
    }
}

dv_status dv_plan_read_optimizer(dv_plan *plan, dv_error *error) {
    dv_groups *groups;
    DV_TRY(check_options(&plan->options, error));
    if (plan->options.optimizer)
        DV_TRY(dv_optimizer_parse(plan->options.optimizer, &plan->optimizer, error));
    DV_TRY(dv_groups_new(plan->options.groups, &groups, error));
    for (int i = 0; i < (int)plan->graph->layer_count; i++)
        give_groups(plan, groups, i);
    dv_status status = dv_groups_check(groups, error);
    dv_groups_free(groups);
    return status;
}

/* ---- updates ------------------------------------------------------------------------------- */

bool dv_plan_updates(const dv_plan *plan, int layer) {
    return is_transient(plan) && plan->layers[layer].trained != 0;
}

static dv_status check_update(const dv_plan *plan, int i, dv_error *error) {
    const dv_layer_plan *layer = &plan->layers[i];
    for (int at = layer->update_at + 1; layer->update_at >= 0 && at < (int)plan->operation_count; at++)
        for (size_t k = 0; k < DV_LAYER_MAX_PARAMETERS; k++)
            if (layer->data[k] != DV_NO_PIECE && dv_plan_touches(plan, at, (size_t)layer->data[k]))
                return dv_fail(error, DV_ERROR_ARGUMENT,
                               "plan: %s of %s reads parameters of %s, which are updated before it: a fault of the "
                               "method: keep gradients",
                               plan->told[at].operation.kind, plan->told[at].operation.subject,
                               plan->graph->layers[i].layer.name);
    return DV_OK;
}

dv_status dv_plan_check_updates(const dv_plan *plan, dv_error *error) {
    for (int i = 0; i < (int)plan->graph->layer_count; i++)
        DV_TRY(check_update(plan, i, error));
    return DV_OK;
}
