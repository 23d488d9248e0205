/* What backward reads of each value, and how that survives until then. */
#include "graph/plan.h"

#include "base/status.h"

/* ---- backward at all ------------------------------------------------------------------------- */

/* Which values want a gradient, and so which layers have a backward. */
static void find_backward(dv_plan *plan) {
    const dv_graph *graph = plan->graph;
    for (size_t i = 0; i < graph->layer_count; i++) {
        const dv_graph_layer *node = &graph->layers[i];
        bool wanted = plan->layers[i].trained != 0;
        for (size_t k = 0; k < node->layer.input_count; k++)
            wanted = wanted || plan->values[node->inputs[k]].wants_diff;
        plan->layers[i].backward = wanted && !plan->options.inference;
        plan->values[node->output].wants_diff = plan->layers[i].backward;
    }
}

/* ---- who reads ------------------------------------------------------------------------------- */

static void add_readers(dv_readers *to, dv_readers more) {
    if (!dv_is_read(more))
        return;
    if (to->first < more.first)
        to->first = more.first;
    if (to->last < 0 || to->last > more.last)
        to->last = more.last;
}

void dv_plan_ask(dv_plan *plan, dv_value value, dv_readers readers) {
    add_readers(&plan->values[value].numbers_read, readers);
}

void dv_plan_ask_mask(dv_plan *plan, dv_value value, dv_readers readers) {
    add_readers(&plan->values[value].mask_read, readers);
}

static void ask(dv_value_plan *v, dv_need need, int layer) {
    if (need == DV_NEED_NUMBERS)
        add_readers(&v->numbers_read, (dv_readers){layer, layer});
    if (need == DV_NEED_MASK)
        add_readers(&v->mask_read, (dv_readers){layer, layer});
}

/* What the backward of layer `i` reads. */
static void ask_for_layer(dv_plan *plan, int i) {
    const dv_graph_layer *node = &plan->graph->layers[i];
    ask(&plan->values[node->output], node->layer.output_need, i);
    for (size_t k = 0; k < node->layer.input_count; k++)
        ask(&plan->values[node->inputs[k]], dv_plan_input_need(plan, i, k), i);
}

bool dv_plan_reads(const dv_plan *plan, int layer, dv_value value) {
    const dv_graph_layer *node = &plan->graph->layers[layer];
    for (size_t k = 0; plan->layers[layer].backward && k < node->layer.input_count; k++)
        if (node->inputs[k] == value && dv_plan_input_need(plan, layer, k) == DV_NEED_NUMBERS)
            return true;
    return false;
}

bool dv_plan_weighs(const dv_plan *plan, int layer, dv_value value) {
    return dv_plan_reads(plan, layer, value) && !plan->graph->layers[layer].layer.kind->normalises;
}

bool dv_plan_first_to_weigh(const dv_plan *plan, int layer, dv_value value) {
    for (int i = layer + 1; i <= plan->graph->values[value].last_user; i++)
        if (dv_plan_weighs(plan, i, value))
            return false;
    return dv_plan_weighs(plan, layer, value);
}

/* ---- how it survives ------------------------------------------------------------------------- */

void dv_plan_keep(dv_plan *plan, dv_value value, const dv_keeper *keeper) {
    plan->values[value].keeper = keeper;
    if (keeper->ask)
        keeper->ask(plan, value);
}

static void choose_if_read(dv_plan *plan, dv_value value, void (*choose)(dv_plan *plan, dv_value value)) {
    if (dv_is_read(plan->values[value].numbers_read))
        choose(plan, value);
}

void dv_plan_choose(dv_plan *plan, void (*choose)(dv_plan *plan, dv_value value)) {
    for (size_t i = plan->graph->layer_count; i-- > 0;)
        choose_if_read(plan, plan->graph->layers[i].output, choose);
    choose_if_read(plan, plan->graph->input, choose);
}

void dv_plan_mask_in(dv_plan *plan, dv_value value, dv_value in) {
    plan->values[value].mask_in = in;
    add_readers(&plan->values[in].mask_read, plan->values[value].mask_read);
}

bool dv_tells_mask(const dv_value_plan *v) {
    const dv_keeper *keeper = dv_keeper_in_memory(v);
    return keeper && keeper->access.load_mask && (!keeper->tells_mask || keeper->tells_mask(v));
}

dv_readers dv_readers_of(const dv_value_plan *v) {
    dv_readers all = v->numbers_read;
    if (dv_tells_mask(v))
        add_readers(&all, v->mask_read);
    return all;
}

/* A mask follows from the numbers where their keeper can tell it; elsewhere it is kept as bits. */
static void choose_mask(dv_plan *plan, dv_value value) {
    dv_value_plan *v = &plan->values[value];
    const dv_value_plan *in = &plan->values[v->mask_in];
    if (!dv_is_read(v->mask_read))
        return;
    bool told = dv_tells_mask(in);
    v->mask_in = told ? v->mask_in : value;
    v->mask_keeper = told ? in->keeper : &dv_keep_mask;
}

/* A value that its producer does not store is the first input of a layer that can. */
static dv_status check_stores(const dv_plan *plan, dv_error *error) {
    for (size_t v = 0; v < plan->graph->value_count; v++) {
        int by = plan->values[v].stored_by;
        if (by == plan->graph->values[v].producer)
            continue;
        const dv_graph_layer *node = &plan->graph->layers[by];
        if (!node->layer.kind->stores_input || node->inputs[0] != (dv_value)v)
            return dv_fail(error, DV_ERROR_ARGUMENT, "method %s: %s cannot store a value that it does not normalise",
                           plan->method.kind->name, node->layer.name);
    }
    return DV_OK;
}

static void begin_values(dv_plan *plan) {
    for (size_t v = 0; v < plan->graph->value_count; v++) {
        plan->values[v].numbers_read = plan->values[v].mask_read = (dv_readers){-1, -1};
        plan->values[v].mask_in = (dv_value)v;
        plan->values[v].stored_by = plan->graph->values[v].producer;
    }
}

dv_status dv_plan_needs(dv_plan *plan, dv_error *error) {
    begin_values(plan);
    find_backward(plan);
    for (int i = 0; i < (int)plan->graph->layer_count; i++)
        if (plan->layers[i].backward)
            ask_for_layer(plan, i);
    dv_plan_slice_diffs(plan);
    if (!plan->options.inference)
        DV_TRY(plan->method.kind->choose(plan, error));
    DV_TRY(check_stores(plan, error));
    for (size_t v = 0; v < plan->graph->value_count; v++)
        choose_mask(plan, (dv_value)v);
    return DV_OK;
}
