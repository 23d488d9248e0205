/* Writing the schedule. */
#include "graph/schedule.h"

#include "base/status.h"
#include "graph/plan.h"

#include <stdlib.h>

static int emit(dv_plan *plan, dv_operation_kind kind, int index) {
    plan->operations[plan->operation_count] = (dv_operation){kind, index};
    return (int)plan->operation_count++;
}

/* ---- replays --------------------------------------------------------------------------------- */

/* Whether layer `i` of a segment has to run again: for a value that backward reads, for what it saves, or for a later
 * layer that has to. */
static bool must_replay(const dv_plan *plan, const dv_segment *segment, int i) {
    const dv_graph_layer *node = &plan->graph->layers[i];
    const dv_value_plan *made = &plan->values[node->output];
    if (made->keeper && !made->keeper->replays)
        return false; /* it is kept in another way */
    if (dv_is_read(made->numbers_read) || dv_is_read(made->mask_read))
        return true;
    if (plan->layers[i].backward && dv_plan_saved_bytes(plan, i) > 0)
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

/* ---- the file -------------------------------------------------------------------------------- */

static bool is_spilled(const dv_plan *plan, dv_value value) {
    return plan->values[value].keeper && plan->values[value].keeper->spills;
}

/* Behind the forward of layer `i`: what it made begins to be written, and what was to be written by now is waited
 * for. */
static void emit_writes(dv_plan *plan, int i) {
    dv_value made = i == DV_INPUT ? plan->graph->input : plan->graph->layers[i].output;
    if (is_spilled(plan, made))
        emit(plan, DV_WRITE, made);
    for (size_t v = 0; v < plan->graph->value_count; v++)
        if (is_spilled(plan, (dv_value)v) && dv_spill_written_behind(plan, (dv_value)v) == i)
            plan->values[v].written_at = emit(plan, DV_WRITTEN, (int)v);
}

/* Before the backward of layer `i`: what will be read soon. */
static void emit_reads(dv_plan *plan, int i) {
    for (size_t v = plan->graph->value_count; v-- > 0;)
        if (is_spilled(plan, (dv_value)v) && dv_spill_read_before(plan, (dv_value)v) == i)
            plan->values[v].read_at = emit(plan, DV_READ, (int)v);
}

/* ---- the step -------------------------------------------------------------------------------- */

static void emit_forward(dv_plan *plan) {
    emit_writes(plan, DV_INPUT);
    for (int i = 0; i < (int)plan->graph->layer_count; i++) {
        if (plan->layers[i].run_by < 0)
            plan->layers[i].forward_at = emit(plan, DV_FORWARD, i);
        if (dv_plan_runs_before(plan, i))
            plan->layers[i - 1].forward_at = plan->layers[i].forward_at;
        emit_writes(plan, i);
    }
}

/* ---- several ranks --------------------------------------------------------------------------- */

/* The updates of a bucket's layers, in the order of backward. */
static void emit_updates(dv_plan *plan, int bucket) {
    for (int i = (int)plan->graph->layer_count - 1; i >= 0; i--)
        if (plan->layers[i].bucket == bucket && dv_plan_updates(plan, i))
            plan->layers[i].update_at = emit(plan, DV_UPDATE, i);
}

/* Behind the backward of layer `i`. A bucket that it completes begins to be reduced; one that began some buckets ago
 * should have arrived, and is used. */
static void emit_reduce(dv_plan *plan, int i) {
    if (plan->layers[i].trained == 0 || !dv_bucket_add(plan, i))
        return;
    int bucket = plan->layers[i].bucket;
    plan->buckets[bucket].reduce_at = emit(plan, DV_REDUCE, i);
    if (bucket >= DV_REDUCE_BEHIND)
        emit_updates(plan, bucket - DV_REDUCE_BEHIND);
}

/* Of the buckets that are still on their way. */
static void emit_last_updates(dv_plan *plan) {
    int first = plan->bucket_count > DV_REDUCE_BEHIND ? (int)plan->bucket_count - DV_REDUCE_BEHIND : 0;
    for (int bucket = first; bucket < (int)plan->bucket_count; bucket++)
        emit_updates(plan, bucket);
}

/* ---- backward -------------------------------------------------------------------------------- */

static void emit_backward(dv_plan *plan) {
    size_t segment = plan->segment_count;
    for (int i = (int)plan->graph->layer_count - 1; i >= 0; i--) {
        emit_reads(plan, i);
        if (segment > 0 && plan->segments[segment - 1].last == i)
            emit_replay(plan, &plan->segments[--segment]);
        if (!plan->layers[i].backward)
            continue;
        plan->layers[i].backward_at = emit(plan, DV_BACKWARD, i);
        if (dv_plan_has_buckets(plan))
            emit_reduce(plan, i);
        else if (dv_plan_updates(plan, i))
            plan->layers[i].update_at = emit(plan, DV_UPDATE, i);
    }
    emit_last_updates(plan);
}

dv_status dv_schedule_make(dv_plan *plan, dv_error *error) {
    size_t layers = plan->graph->layer_count;
    plan->operations = calloc(5 * layers + 3 * plan->graph->value_count + 1, sizeof *plan->operations);
    if (!plan->operations)
        return dv_fail(error, DV_ERROR_MEMORY, "plan: no memory");
    DV_TRY(dv_buckets_begin(plan, error));
    emit_forward(plan);
    plan->loss_at = emit(plan, DV_LOSS, -1);
    if (!plan->options.inference)
        emit_backward(plan);
    return DV_OK;
}
