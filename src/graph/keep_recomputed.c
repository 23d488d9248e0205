/* Nothing is kept: the layer that made the value makes slices of it again, from what is kept of its inputs, whenever a
 * later layer's backward reads them. Inputs may be recomputed themselves.
 *
 * The memory of a chain. z2 = norm(x2) + z1 and z1 = norm(x1) + z0, all z recomputed, all x packed. A layer whose kind
 * gets its last input first (`last_input_first`) has that input made where its own output goes, and touches its
 * workspace only then; so the workspace of z1 is free again when z2 begins to use it, and the whole chain shares one:
 *
 *     who asks          into            uses the chain's workspace for
 *     z2 asks for z1    z2's images     nothing yet
 *     z1 asks for z0    z2's images     nothing yet
 *     z1: x1 decoded    the workspace   x1, coefficients           z2's images = norm(x1) + z0
 *     z2: x2 decoded    the workspace   x2, coefficients           z2's images = norm(x2) + z1
 *
 * Where another input is recomputed as well it is made into the workspace, and must not use the same: then the layer
 * has a workspace of its own.
 *
 * A batch norm whose x is a lean code has it decoded, normalised and added to z's images in one pass (one_pass), and
 * needs a place for its coefficients alone. */
#include "base/sizes.h"
#include "base/status.h"
#include "codec/lean.h"
#include "graph/plan.h"
#include "graph/run.h"

static dv_status load(const dv_kept *kept, size_t first, size_t count, void *buffer, const void **images,
                      dv_error *error) {
    *images = buffer;
    return kept->producer->kind->recompute(kept->producer, kept, first, count, buffer, error);
}

static const dv_graph_layer *layer_of(const dv_plan *plan, dv_value value) {
    return &plan->graph->layers[plan->graph->values[value].producer];
}

/* Whenever the value is read, so are its layer's inputs and the mask that says where it was cut off: that of a frozen
 * layer may have no other reader. */
static void ask(dv_plan *plan, dv_value value) {
    const dv_graph_layer *node = layer_of(plan, value);
    if (node->layer.zero_outside_mask)
        dv_plan_ask_mask(plan, value, plan->values[value].numbers_read);
    for (size_t k = 0; k < node->layer.input_count; k++)
        dv_plan_ask(plan, node->inputs[k], plan->values[value].numbers_read);
}

/* The workspace that the value's layer may share with its last input's, or DV_NO_PIECE. */
static int workspace_to_share(const dv_plan *plan, const dv_graph_layer *node) {
    size_t last = node->layer.input_count - 1;
    if (!node->layer.kind->last_input_first || last == 0 || plan->guard.apart)
        return DV_NO_PIECE;
    for (size_t k = 0; k < last; k++)
        if (plan->values[node->inputs[k]].keeper && plan->values[node->inputs[k]].keeper->recomputes)
            return DV_NO_PIECE;
    return plan->values[node->inputs[last]].recompute_workspace;
}

/* A batch norm made the value, and what it normalises is kept by a code that comes back normalised, cut off just where
 * the norm's output is. */
static bool is_one_pass(const dv_plan *plan, dv_value value) {
    const dv_graph_layer *node = layer_of(plan, value);
    dv_value x = node->inputs[0];
    const dv_value_plan *of = &plan->values[x];
    const dv_keeper *keeper = dv_keeper_in_memory(of);
    const dv_graph_value *made = &plan->graph->values[x];
    if (!node->layer.kind->normalises || !keeper || !keeper->access.load_normalized ||
        !dv_lean_can_normalize(&of->codec, &made->map))
        return false;
    if (made->producer != DV_INPUT && layer_of(plan, x)->layer.zero_outside_mask)
        return false; /* zeros of its own are put back */
    bool cut_off = node->layer.zero_outside_mask, by_code = plan->values[value].mask_in == x;
    return dv_lean_has_mask(&of->codec) ? cut_off && by_code : !cut_off;
}

/* What the value's layer works in. A mask that lies in a code, and not beside it as bits, is decoded there. */
static size_t workspace_bytes(const dv_value_plan *v, const dv_layer *layer) {
    if (v->one_pass)
        return layer->recompute_pass_bytes;
    bool mask_in_code = v->mask_keeper && v->mask_keeper != &dv_keep_mask;
    return layer->recompute_bytes + (mask_in_code ? layer->recompute_mask_bytes : 0);
}

static dv_status book(dv_plan *plan, dv_value value, int made, dv_error *error) {
    (void)made;
    (void)error;
    dv_value_plan *v = &plan->values[value];
    const dv_graph_layer *node = layer_of(plan, value);
    v->one_pass = is_one_pass(plan, value);
    size_t bytes = workspace_bytes(v, &node->layer);
    int first = dv_first_read(plan, v->numbers_read), last = dv_last_read(plan, v->numbers_read);
    int shared = workspace_to_share(plan, node);
    v->recompute_workspace = shared == DV_NO_PIECE ? dv_plan_book(plan, bytes, first, last) : shared;
    if (shared != DV_NO_PIECE)
        plan->pieces[shared].bytes = dv_larger(plan->pieces[shared].bytes, bytes);
    return DV_OK;
}

/* From the same kept inputs that the producer's backward is given. */
static void fill(const dv_run *run, dv_value value, dv_kept *kept) {
    const dv_plan *plan = run->plan;
    int producer = plan->graph->values[value].producer;
    kept->producer = &plan->graph->layers[producer].layer;
    kept->inputs = run->calls[producer].kept;
    kept->arrays = &run->arrays[producer];
    kept->saved = dv_run_piece(run, plan->layers[producer].saved);
    kept->one_pass = plan->values[value].one_pass;
    kept->workspace = dv_run_piece(run, plan->values[value].recompute_workspace);
}

const dv_keeper dv_keep_recomputed = {
    .name = "recomputed",
    .access = {.load = load},
    .recomputes = true,
    .ask = ask,
    .book = book,
    .fill = fill,
};
