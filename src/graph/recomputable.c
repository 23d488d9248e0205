/* Which values can be recomputed from others that are kept anyway, as methods ask before they choose. */
#include "graph/plan.h"

static const dv_graph_layer *producer_of(const dv_graph *graph, dv_value value) {
    int producer = graph->values[value].producer;
    return producer == DV_INPUT ? NULL : &graph->layers[producer];
}

static bool is_join(const dv_graph_layer *node) {
    return node && node->layer.kind->joins;
}

bool dv_plan_is_joined(const dv_plan *plan, dv_value value) {
    const dv_graph_layer *node = producer_of(plan->graph, value);
    if (!is_join(node))
        return false;
    for (size_t k = 0; k < node->layer.input_count; k++)
        if (is_join(producer_of(plan->graph, node->inputs[k])))
            return false;
    return true;
}

/* A later layer's backward needs its numbers. */
static bool is_needed(const dv_plan *plan, dv_value value) {
    const dv_graph_value *v = &plan->graph->values[value];
    for (int i = v->producer + 1; i <= v->last_user; i++) {
        const dv_graph_layer *node = &plan->graph->layers[i];
        for (size_t k = 0; k < node->layer.input_count; k++)
            if (node->inputs[k] == value && dv_plan_input_need(plan, i, k) == DV_NEED_NUMBERS)
                return true;
    }
    return false;
}

/* The batch norm that made the value. One that is frozen does not read its input again: to recompute its output would
 * keep that in the output's place, with twice the bits. */
static const dv_graph_layer *norm_of(const dv_plan *plan, dv_value value) {
    const dv_graph_layer *node = producer_of(plan->graph, value);
    return node && node->layer.kind->normalises && !dv_plan_is_frozen(plan, plan->graph->values[value].producer) ? node
                                                                                                                 : NULL;
}

int dv_plan_count_sources(const dv_plan *plan, dv_value value, int most) {
    const dv_graph_layer *norm = norm_of(plan, value);
    if (!norm || norm_of(plan, norm->inputs[0]))
        return 0;
    if (norm->layer.input_count == 1)
        return 1;
    int added = dv_plan_count_sources(plan, norm->inputs[1], most);
    if (added == 0 && is_needed(plan, norm->inputs[1]))
        added = 1;
    return added > 0 && added < most ? added + 1 : 0;
}
