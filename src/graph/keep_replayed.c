/* Nothing is kept: the layers of a segment run forward again right before its backward, and the value is there as it
 * was. What they compute is the same to the bit: statistics do not move a second time, random numbers repeat. */
#include "base/status.h"
#include "graph/plan.h"

/* Inputs from outside of the segment are asked for as if by the layer that ends it, because that is when the others
 * run again. */
void dv_plan_replay(dv_plan *plan, int first, int last) {
    plan->segments[plan->segment_count++] = (dv_segment){first, last};
    for (int i = first; i < last; i++) {
        const dv_graph_layer *node = &plan->graph->layers[i];
        for (size_t k = 0; k < node->layer.input_count; k++)
            if (plan->graph->values[node->inputs[k]].producer < first)
                dv_plan_ask(plan, node->inputs[k], (dv_readers){last, last});
    }
}

bool dv_plan_can_replay(const dv_plan *plan, dv_value value) {
    int producer = plan->graph->values[value].producer;
    for (size_t s = 0; s < plan->segment_count; s++)
        if (plan->segments[s].first <= producer && producer < plan->segments[s].last)
            return true;
    return false;
}

const dv_keeper dv_keep_replayed = {
    .name = "replayed",
    .access = {.load = dv_exact_load, .load_mask = dv_exact_load_mask},
    .replays = true,
    .fill = dv_exact_fill,
};
