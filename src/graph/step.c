/* A step: one loop over the plan's schedule. Nothing is allocated in it. */
#include "base/clock.h"
#include "base/status.h"
#include "graph/run.h"

#include <math.h>

/* Adds to a failure where it was. */
static dv_status explain(dv_error *error, dv_status status, const char *where) {
    if (!error)
        return status;
    return dv_fail(error, status, "%s: %s", where, error->text);
}

static const char *value_name(const dv_graph *graph, dv_value value) {
    int producer = graph->values[value].producer;
    return producer == DV_INPUT ? "input" : graph->layers[producer].layer.name;
}

/* ---- forward ------------------------------------------------------------------------------- */

/* What a value is to be stored in by layer `i` (DV_INPUT: before the first), or NULL. */
static dv_kept *to_store(dv_run *run, dv_value value, int i, const dv_under_way *now) {
    dv_kept *kept = &run->kept[value];
    if (!now->training || !kept->access || !(kept->access->store || kept->access->store_gated) ||
        run->plan->values[value].stored_by != i)
        return NULL;
    kept->noise.step = now->told.batch;
    kept->noise.image = now->told.first_image;
    return kept;
}

/* Stores a value that has just been made, if that is how it is kept. */
static dv_status store(dv_run *run, dv_value value, const dv_kept *kept, dv_error *error) {
    if (!kept)
        return DV_OK;
    dv_status status = dv_kept_store(kept, 0, run->images, dv_run_piece(run, run->plan->values[value].data), error);
    return status == DV_OK ? status : explain(error, status, value_name(run->plan->graph, value));
}

/* What all forwards of a step have in common. */
static void tell(const dv_run *run, const dv_under_way *now, dv_forward *call) {
    call->images = run->images;
    call->step = now->told.batch;
    call->first_image = now->told.first_image;
    call->training = now->training;
    call->norm = dv_run_norm(run);
}

static dv_status forward(dv_run *run, int i, const dv_under_way *now, dv_error *error) {
    const dv_graph_layer *node = &run->plan->graph->layers[i];
    const dv_layer_kind *kind = node->layer.kind;
    dv_forward *call = &run->calls[i].forward;
    dv_kept *output = to_store(run, node->output, i, now);
    tell(run, now, call);
    if (call->sliced)
        tell(run, now, &run->calls[i - 1].forward);
    bool stores = kind->stores_output && !(output && dv_kept_whole(output));
    call->store_output = stores ? output : NULL;
    call->store_input = kind->stores_input ? to_store(run, node->inputs[0], i, now) : NULL;
    dv_status status = kind->forward(&node->layer, call, error);
    if (status != DV_OK)
        return explain(error, status, node->layer.name);
    return stores ? DV_OK : store(run, node->output, output, error);
}

static dv_status replay(dv_run *run, int i, const dv_under_way *now, dv_error *error) {
    const dv_layer *layer = &run->plan->graph->layers[i].layer;
    dv_forward *call = &run->calls[i].replay;
    call->images = run->images;
    call->step = now->told.batch;
    call->first_image = now->told.first_image;
    call->norm = dv_run_norm(run);
    dv_status status = layer->kind->forward(layer, call, error);
    return status == DV_OK ? status : explain(error, status, layer->name);
}

/* ---- loss ---------------------------------------------------------------------------------- */

/* Images that are mixed of two are for training alone. */
static dv_targets targets_of(dv_run *run, const dv_under_way *now) {
    return (dv_targets){.data = dv_run_targets(run),
                        .seconds = now->training ? dv_run_second_labels(run) : NULL,
                        .weights = now->training ? dv_run_label_weights(run) : NULL,
                        .smoothing = now->told.label_smoothing};
}

static dv_status loss(dv_run *run, int index, const dv_under_way *now, dv_error *error) {
    (void)index;
    const dv_layer *layer = &run->plan->graph->loss.layer;
    const dv_value_plan *logits = &run->plan->values[run->plan->graph->logits];
    const dv_loss_call call = {.images = run->images,
                               .input = dv_run_piece(run, logits->data),
                               .targets = targets_of(run, now),
                               .scale = now->told.scale,
                               .diff_input = now->training ? dv_run_piece(run, logits->diff) : NULL,
                               .workspace = dv_run_piece(run, run->plan->loss_workspace)};
    dv_loss_result found;
    dv_status status = layer->kind->loss(layer, &call, &found, error);
    if (status != DV_OK)
        return explain(error, status, layer->name);
    run->result = (dv_step_result){found.loss, found.correct, found.correct5, found.counted};
    if (now->training && !isfinite(found.loss)) /* nothing may be updated by its gradient */
        return dv_fail(error, DV_ERROR_NONFINITE, "%s: %g", layer->name, found.loss);
    return DV_OK;
}

/* ---- backward ------------------------------------------------------------------------------ */

static void observe(dv_run *run, int i, bool done) {
    const dv_observation seen = {run->plan, i, &run->calls[i].backward, done};
    if (run->state.data && run->plan->method.kind->observe)
        run->plan->method.kind->observe(&seen, run->state.data);
}

static dv_status backward(dv_run *run, int i, const dv_under_way *now, dv_error *error) {
    const dv_layer *layer = &run->plan->graph->layers[i].layer;
    dv_backward *call = &run->calls[i].backward;
    call->images = run->images;
    call->step = now->told.batch;
    call->norm = dv_run_norm(run);
    if (run->plan->layers[i].update_at >= 0)
        dv_run_clear_gradients(run, i);
    observe(run, i, false);
    dv_status status = layer->kind->backward(layer, call, error);
    if (status != DV_OK)
        return explain(error, status, layer->name);
    observe(run, i, true);
    return DV_OK;
}

static dv_status reduce(dv_run *run, int i, const dv_under_way *now, dv_error *error) {
    return now->told.more || run->reduce_last ? DV_OK : dv_run_reduce(run, run->plan->layers[i].bucket, error);
}

static dv_status update(dv_run *run, int i, const dv_under_way *now, dv_error *error) {
    if (run->plan->layers[i].bucket >= 0)
        DV_TRY(dv_run_reduced(run, run->plan->layers[i].bucket, error));
    dv_run_update_layer(run, i, now->told.rate, now->told.update, 1);
    return DV_OK;
}

/* ---- the file ------------------------------------------------------------------------------ */

static dv_status transfer(dv_run *run, dv_value value, const dv_under_way *now,
                          dv_status (*what)(dv_run *run, dv_value value, dv_error *error), dv_error *error) {
    dv_status status = now->training ? what(run, value, error) : DV_OK;
    return status == DV_OK ? status : explain(error, status, value_name(run->plan->graph, value));
}

static dv_status write_value(dv_run *run, int value, const dv_under_way *now, dv_error *error) {
    return transfer(run, value, now, dv_spilled_write, error);
}

static dv_status wait_for_value(dv_run *run, int value, const dv_under_way *now, dv_error *error) {
    return transfer(run, value, now, dv_spilled_wait, error);
}

static dv_status read_value(dv_run *run, int value, const dv_under_way *now, dv_error *error) {
    return transfer(run, value, now, dv_spilled_read, error);
}

/* ---- the loop ------------------------------------------------------------------------------ */

static dv_status (*const perform[DV_OPERATION_KINDS])(dv_run *run, int index, const dv_under_way *now,
                                                      dv_error *error) = {
    [DV_FORWARD] = forward, [DV_LOSS] = loss,     [DV_REPLAY] = replay,     [DV_BACKWARD] = backward,
    [DV_UPDATE] = update,   [DV_REDUCE] = reduce, [DV_WRITE] = write_value, [DV_WRITTEN] = wait_for_value,
    [DV_READ] = read_value,
};

/* Who works in an operation, for messages. */
static const char *operation_name(const dv_plan *plan, const dv_operation *operation) {
    if (operation->kind == DV_LOSS)
        return "the loss";
    return operation->kind >= DV_WRITE ? value_name(plan->graph, operation->index)
                                       : plan->graph->layers[operation->index].layer.name;
}

/* The images are stored before the first operation, as part of it. */
static dv_status begin(dv_run *run, dv_error *error) {
    dv_value images = run->plan->graph->input;
    DV_TRY(dv_guard_enter(run->guard, 0, error));
    return store(run, images, to_store(run, images, DV_INPUT, &run->now), error);
}

/* Does one operation. Its time is noted, if somebody wants to know. */
static dv_status operate(dv_run *run, int p, dv_error *error) {
    const dv_plan *plan = run->plan;
    const dv_operation *operation = &plan->operations[p];
    double begun = run->seconds || run->watch.done ? dv_now() : 0;
    if (p == 0)
        DV_TRY(begin(run, error));
    DV_TRY(dv_guard_enter(run->guard, p, error));
    DV_TRY(perform[operation->kind](run, operation->index, &run->now, error));
    if (run->watch.done)
        run->watch.done(run->watch.context, run, p, dv_now() - begun);
    DV_TRY(dv_guard_leave(run->guard, operation_name(plan, operation), error));
    if (run->seconds)
        run->seconds[p] += dv_now() - begun;
    return DV_OK;
}

dv_status dv_run_operations(dv_run *run, int first, int last, dv_error *error) {
    for (int p = first; p < last; p++)
        DV_TRY(operate(run, p, error));
    return DV_OK;
}
