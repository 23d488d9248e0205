/* What a plan tells of its schedule: for each operation the pieces of the arena that it touches, and the bytes that are
 * alive while it is done. A new kind of operation is an entry in the table below.
 *
 * tests/test_plan_schedule.c holds the lists to what a step does: pieces that an operation is not listed to touch are
 * hidden from it (graph/guard.h). */
#include "base/status.h"
#include "graph/plan.h"

#include <stdlib.h>

/* The list of one operation, which begins at `first` of the plan's touched pieces. */
typedef struct list {
    dv_plan *plan;
    size_t first;
    bool failed; /* no memory */
} list;

static const char *value_name(const dv_graph *graph, dv_value value) {
    int producer = graph->values[value].producer;
    return producer == DV_INPUT ? "input" : graph->layers[producer].layer.name;
}

/* ---- pieces ---------------------------------------------------------------------------------- */

static bool is_listed(const list *l, const dv_plan_touched *piece) {
    for (size_t i = l->first; i < l->plan->touched_count; i++) {
        const dv_plan_touched *other = &l->plan->touched[i];
        if (other->piece == piece->piece && other->role == piece->role && other->owner == piece->owner)
            return true;
    }
    return false;
}

static bool has_room(dv_plan *plan) {
    if (plan->touched_count < plan->touched_capacity)
        return true;
    size_t more = plan->touched_capacity ? 2 * plan->touched_capacity : 256;
    dv_plan_touched *moved = realloc(plan->touched, more * sizeof *moved);
    if (!moved)
        return false;
    plan->touched = moved;
    plan->touched_capacity = more;
    return true;
}

static void touch(list *l, const char *owner, const char *role, int piece) {
    if (piece == DV_NO_PIECE)
        return;
    const dv_plan_touched touched = {owner, role, l->plan->pieces[piece].bytes, (size_t)piece};
    if (is_listed(l, &touched))
        return;
    l->failed = l->failed || !has_room(l->plan);
    if (!l->failed)
        l->plan->touched[l->plan->touched_count++] = touched;
}

static void touch_of_value(list *l, dv_value value, int piece) {
    touch(l, value_name(l->plan->graph, value), dv_value_role(&l->plan->values[value], piece), piece);
}

/* `count` pieces of a layer's. */
static void touch_of_layer(list *l, int layer, const int *pieces, size_t count) {
    for (size_t k = 0; k < count; k++)
        touch(l, l->plan->graph->layers[layer].layer.name, dv_layer_role(&l->plan->layers[layer], pieces[k]),
              pieces[k]);
}

/* A piece of the plan's own, for a value. */
static void touch_of_plan(list *l, dv_value value, int piece) {
    touch(l, value_name(l->plan->graph, value), dv_plan_role(l->plan, piece), piece);
}

/* ---- forward --------------------------------------------------------------------------------- */

/* What a value is stored in by layer `i` (DV_INPUT: before the first). */
static void touch_stored(list *l, dv_value value, int i) {
    if (l->plan->values[value].stored_by == i)
        touch_of_value(l, value, l->plan->values[value].packed);
}

/* The method's, which keepers use when they store and load, and which it observes backward in. */
static void touch_state(list *l, int i) {
    touch_of_plan(l, l->plan->graph->layers[i].output, l->plan->state);
}

static void touch_arrays(list *l, int i) {
    touch_state(l, i);
    touch_of_layer(l, i, l->plan->layers[i].data, DV_LAYER_MAX_PARAMETERS);
    touch_of_layer(l, i, l->plan->layers[i].buffers, DV_LAYER_MAX_BUFFERS);
}

/* The inputs of layer `i`; if it runs the layer before, that one's too. */
static void touch_inputs(list *l, int i) {
    const dv_graph_layer *node = &l->plan->graph->layers[i];
    for (size_t k = 0; k < node->layer.input_count; k++)
        touch_of_value(l, node->inputs[k], l->plan->values[node->inputs[k]].data);
    if (dv_plan_runs_before(l->plan, i)) {
        touch_inputs(l, i - 1);
        touch_of_layer(l, i - 1, l->plan->layers[i - 1].data, DV_LAYER_MAX_PARAMETERS);
    }
}

static void touch_forward(list *l, int i) {
    const dv_plan *plan = l->plan;
    const dv_graph_layer *node = &plan->graph->layers[i];
    const dv_layer_plan *layer = &plan->layers[i];
    touch_inputs(l, i);
    for (size_t k = 0; k < node->layer.input_count; k++)
        touch_stored(l, node->inputs[k], i);
    touch_of_value(l, node->output, plan->values[node->output].data);
    touch_stored(l, node->output, i);
    if (layer->replay_at < 0)
        touch_of_value(l, node->output, plan->values[node->output].mask);
    touch_of_layer(l, i, &layer->saved, 1);
    touch_of_layer(l, i, &layer->forward_workspace, 1);
    touch_arrays(l, i);
}

static void touch_replay(list *l, int i) {
    const dv_plan *plan = l->plan;
    const dv_graph_layer *node = &plan->graph->layers[i];
    const dv_layer_plan *layer = &plan->layers[i];
    for (size_t k = 0; k < node->layer.input_count; k++) {
        const dv_value_plan *input = &plan->values[node->inputs[k]];
        touch_of_value(l, node->inputs[k], input->again == DV_NO_PIECE ? input->data : input->again);
    }
    touch_of_value(l, node->output, plan->values[node->output].again);
    touch_of_value(l, node->output, plan->values[node->output].mask);
    touch_of_layer(l, i, &layer->saved_again, 1);
    touch_of_layer(l, i, &layer->replay_workspace, 1);
    touch_arrays(l, i);
}

/* ---- loss ------------------------------------------------------------------------------------ */

static void touch_loss(list *l, int index) {
    (void)index;
    const dv_plan *plan = l->plan;
    dv_value logits = plan->graph->logits, images = plan->graph->input;
    touch_of_value(l, logits, plan->values[logits].data);
    touch_of_value(l, logits, plan->values[logits].diff);
    touch_of_plan(l, images, plan->targets);
    touch_of_plan(l, images, plan->second_labels);
    touch_of_plan(l, images, plan->label_weights);
    touch_of_plan(l, images, plan->loss_workspace);
}

/* ---- backward -------------------------------------------------------------------------------- */

/* Where the numbers of a value are when backward reads them: where they were brought back to, in their packed form, or
 * still where forward left them. DV_NO_PIECE: nowhere. */
static int where_numbers_are(const dv_value_plan *v) {
    if (v->again != DV_NO_PIECE)
        return v->again;
    if (v->packed != DV_NO_PIECE)
        return v->packed;
    return v->keeper && v->keeper->holds_until ? v->data : DV_NO_PIECE;
}

static void touch_numbers(list *l, dv_value value);

/* What backward and recomputing read of a layer's arrays: running statistics where the layer is frozen. */
static void touch_fixed(list *l, int i) {
    touch_of_layer(l, i, l->plan->layers[i].data, DV_LAYER_MAX_PARAMETERS);
    if (dv_plan_is_frozen(l->plan, i))
        touch_of_layer(l, i, l->plan->layers[i].buffers, DV_LAYER_MAX_BUFFERS);
}

/* A value that its layer makes again, from what is kept of the inputs. */
static void touch_sources(list *l, dv_value value) {
    const dv_plan *plan = l->plan;
    int producer = plan->graph->values[value].producer;
    const dv_graph_layer *node = &plan->graph->layers[producer];
    touch_of_value(l, value, plan->values[value].recompute_workspace);
    touch_of_layer(l, producer, &plan->layers[producer].saved, 1);
    touch_fixed(l, producer);
    for (size_t k = 0; k < node->layer.input_count; k++)
        touch_numbers(l, node->inputs[k]);
}

/* A value that is zero outside of its mask is read with the mask, if that is kept beside it. */
static void touch_numbers(list *l, dv_value value) {
    const dv_plan *plan = l->plan;
    const dv_value_plan *v = &plan->values[value];
    int producer = plan->graph->values[value].producer;
    touch_of_value(l, value, where_numbers_are(v));
    if (producer != DV_INPUT && plan->graph->layers[producer].layer.zero_outside_mask)
        touch_of_value(l, value, v->mask);
    if (v->keeper && v->keeper->ask)
        touch_sources(l, value);
}

/* A mask that is not kept as such follows from the numbers. */
static void touch_mask(list *l, dv_value value) {
    dv_value in = l->plan->values[value].mask_in;
    touch_of_value(l, in, l->plan->values[in].mask);
    if (l->plan->values[in].mask == DV_NO_PIECE)
        touch_numbers(l, in);
}

static void (*const touch_need[])(list *l, dv_value value) = {
    [DV_NEED_NOTHING] = NULL,
    [DV_NEED_MASK] = touch_mask,
    [DV_NEED_NUMBERS] = touch_numbers,
};

static void touch_backward_input(list *l, int i, size_t k) {
    const dv_graph_layer *node = &l->plan->graph->layers[i];
    dv_need need = dv_plan_input_need(l->plan, i, k);
    if (need != DV_NEED_NOTHING)
        touch_need[need](l, node->inputs[k]);
    if (l->plan->values[node->inputs[k]].wants_diff)
        touch_of_value(l, node->inputs[k], l->plan->values[node->inputs[k]].diff);
}

/* What the gradient of layer `i`'s output is made of, if it is made by slices. */
static void touch_slices(list *l, int i) {
    const dv_plan *plan = l->plan;
    int by = plan->layers[i].sliced_by;
    if (by < 0)
        return;
    const dv_graph_layer *node = &plan->graph->layers[by];
    touch_of_value(l, node->output, plan->values[node->output].diff);
    touch_of_layer(l, by, &plan->layers[by].diff_state, 1);
    if (dv_plan_input_need(plan, by, 0) != DV_NEED_NOTHING)
        touch_numbers(l, node->inputs[0]);
    if (node->layer.output_need != DV_NEED_NOTHING)
        touch_need[node->layer.output_need](l, node->output);
}

static void touch_backward(list *l, int i) {
    const dv_plan *plan = l->plan;
    const dv_graph_layer *node = &plan->graph->layers[i];
    const dv_layer_plan *layer = &plan->layers[i];
    touch_of_value(l, node->output, plan->values[node->output].diff);
    if (node->layer.output_need != DV_NEED_NOTHING)
        touch_need[node->layer.output_need](l, node->output);
    for (size_t k = 0; k < node->layer.input_count; k++)
        touch_backward_input(l, i, k);
    touch_of_layer(l, i, layer->replay_at < 0 ? &layer->saved : &layer->saved_again, 1);
    touch_of_layer(l, i, &layer->backward_workspace, 1);
    touch_of_layer(l, i, &layer->diff_state, 1);
    touch_slices(l, i);
    touch_fixed(l, i);
    touch_of_layer(l, i, layer->gradient, DV_LAYER_MAX_PARAMETERS);
    touch_state(l, i);
}

static void touch_update(list *l, int i) {
    const dv_layer_plan *layer = &l->plan->layers[i];
    touch_of_layer(l, i, layer->data, DV_LAYER_MAX_PARAMETERS);
    touch_of_layer(l, i, layer->gradient, DV_LAYER_MAX_PARAMETERS);
    touch_of_layer(l, i, layer->optimizer, DV_LAYER_MAX_PARAMETERS);
}

static void touch_reduce(list *l, int i) {
    const dv_layer_plan *layer = &l->plan->layers[i];
    touch_of_layer(l, i, layer->gradient, DV_LAYER_MAX_PARAMETERS);
    touch_of_layer(l, i, &layer->wire, 1);
}

/* ---- the file -------------------------------------------------------------------------------- */

static void touch_written(list *l, dv_value value) {
    const dv_value_plan *v = &l->plan->values[value];
    touch_of_value(l, value, v->behind->form(v));
    touch_of_plan(l, value, l->plan->spill_memory);
}

static void touch_read(list *l, dv_value value) {
    touch_of_value(l, value, l->plan->values[value].again);
    touch_of_plan(l, value, l->plan->spill_memory);
}

/* ---- operations ------------------------------------------------------------------------------ */

static const char *layer_subject(const dv_graph *graph, int index) {
    return graph->layers[index].layer.name;
}

static const char *logits_subject(const dv_graph *graph, int index) {
    (void)index;
    return value_name(graph, graph->logits);
}

static const struct {
    const char *name;
    const char *(*subject)(const dv_graph *graph, int index);
    void (*touch)(list *l, int index);
} kinds[DV_OPERATION_KINDS] = {
    [DV_FORWARD] = {"forward", layer_subject, touch_forward},
    [DV_LOSS] = {"loss", logits_subject, touch_loss},
    [DV_REPLAY] = {"replay", layer_subject, touch_replay},
    [DV_BACKWARD] = {"backward", layer_subject, touch_backward},
    [DV_UPDATE] = {"update", layer_subject, touch_update},
    [DV_REDUCE] = {"reduce", layer_subject, touch_reduce},
    [DV_WRITE] = {"write", value_name, touch_written},
    [DV_WRITTEN] = {"written", value_name, touch_written},
    [DV_READ] = {"read", value_name, touch_read},
};

static size_t alive_bytes(const dv_plan *plan, int at) {
    size_t bytes = 0;
    for (size_t i = 0; i < plan->piece_count; i++)
        if (plan->pieces[i].first <= at && at <= plan->pieces[i].last)
            bytes += dv_place_aligned(plan->pieces[i].bytes);
    return bytes;
}

/* The images are stored before the first operation, as part of it. */
static bool tell(dv_plan *plan, int at) {
    const dv_operation *operation = &plan->operations[at];
    list l = {.plan = plan, .first = plan->touched_count};
    if (at == 0)
        touch_stored(&l, plan->graph->input, DV_INPUT);
    kinds[operation->kind].touch(&l, operation->index);
    plan->told[at].first = l.first;
    plan->told[at].operation = (dv_plan_operation){
        .kind = kinds[operation->kind].name,
        .subject = kinds[operation->kind].subject(plan->graph, operation->index),
        .alive_bytes = alive_bytes(plan, at),
        .touched_count = plan->touched_count - l.first,
    };
    return !l.failed;
}

dv_status dv_plan_tell_schedule(dv_plan *plan, dv_error *error) {
    plan->told = calloc(plan->operation_count, sizeof *plan->told);
    bool told = plan->told != NULL;
    for (size_t p = 0; told && p < plan->operation_count; p++)
        told = tell(plan, (int)p);
    return told ? DV_OK : dv_fail(error, DV_ERROR_MEMORY, "plan: no memory");
}

bool dv_plan_touches(const dv_plan *plan, int at, size_t piece) {
    const dv_plan_touched *touched = plan->touched + plan->told[at].first;
    for (size_t i = 0; i < plan->told[at].operation.touched_count; i++)
        if (touched[i].piece == piece)
            return true;
    return false;
}

const dv_plan_operation *dv_plan_operation_at(const dv_plan *plan, size_t index) {
    return index < plan->operation_count ? &plan->told[index].operation : NULL;
}

const dv_plan_touched *dv_plan_touched_at(const dv_plan *plan, size_t operation, size_t index) {
    const dv_plan_operation *of = dv_plan_operation_at(plan, operation);
    return of && index < of->touched_count ? &plan->touched[plan->told[operation].first + index] : NULL;
}
