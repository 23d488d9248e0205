/* Writing the schedule. */
#include "graph/schedule.h"

#include "base/status.h"
#include "graph/plan.h"

#include <stdlib.h>

static int emit(dv_plan *plan, dv_operation_kind kind, int index) {
    plan->operations[plan->operation_count] = (dv_operation){kind, index};
    return (int)plan->operation_count++;
}

/* Whether layer `i` of a segment has to run again: for a value that backward reads, for what it saves, or for a later
 * layer that has to. */
static bool must_replay(const dv_plan *plan, const dv_segment *segment, int i) {
    const dv_graph_layer *node = &plan->graph->layers[i];
    const dv_value_plan *made = &plan->values[node->output];
    if (made->keeper != &dv_keep_replayed && dv_is_read(made->numbers_read))
        return false; /* it is kept in another way */
    if (dv_is_read(made->numbers_read) || dv_is_read(made->mask_read))
        return true;
    if (plan->layers[i].backward && node->layer.saved_bytes > 0)
        return true;
    for (int j = i + 1; j <= segment->last; j++)
        if (plan->layers[j].replay_at >= 0 && dv_times_taken(&plan->graph->layers[j], node->output) > 0)
            return true;
    return false;
}

/* The layer of a segment that ends it keeps its output and what it saved: only those before run again. */
static void emit_replay(dv_plan *plan, const dv_segment *segment) {
    for (int i = segment->last - 1; i >= segment->first; i--)
        plan->layers[i].replay_at = must_replay(plan, segment, i) ? 0 : -1;
    for (int i = segment->first; i < segment->last; i++)
        if (plan->layers[i].replay_at >= 0)
            plan->layers[i].replay_at = emit(plan, DV_REPLAY, i);
}

static void emit_backward(dv_plan *plan) {
    size_t segment = plan->segment_count;
    for (int i = (int)plan->graph->layer_count - 1; i >= 0; i--) {
        if (segment > 0 && plan->segments[segment - 1].last == i)
            emit_replay(plan, &plan->segments[--segment]);
        if (plan->layers[i].backward)
            plan->layers[i].backward_at = emit(plan, DV_BACKWARD, i);
    }
}

dv_status dv_schedule_make(dv_plan *plan, dv_error *error) {
    size_t layers = plan->graph->layer_count;
    plan->operations = calloc(3 * layers + 1, sizeof *plan->operations);
    if (!plan->operations)
        return dv_fail(error, DV_ERROR_MEMORY, "plan: no memory");
    for (size_t i = 0; i < layers; i++)
        plan->layers[i].forward_at = emit(plan, DV_FORWARD, (int)i);
    plan->loss_at = emit(plan, DV_LOSS, -1);
    if (!plan->options.inference)
        emit_backward(plan);
    return DV_OK;
}
