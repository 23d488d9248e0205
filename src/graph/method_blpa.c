/* BLPA: of a batch norm, the ReLU behind it and the convolution behind that, one tensor is kept for all three, in 4 or
 * 8 bits and in bins of a fixed width. Whatever does not fit the pattern stays exact: layers without batch norm, norms
 * that add a value before the ReLU or have none, outputs that no convolution reads, what is read by others too. */
#include "base/status.h"
#include "graph/plan.h"

/* How many layers' backward read it, and the last of them. */
static int count_readers(const dv_plan *plan, dv_value value, int *last) {
    const dv_graph_value *v = &plan->graph->values[value];
    int count = 0;
    for (int i = v->producer + 1; i <= v->last_user; i++)
        if (dv_plan_reads(plan, i, value)) {
            *last = i;
            count++;
        }
    return count;
}

/* The norm that makes a unit with the value that it normalises, or -1. */
static int norm_of(const dv_plan *plan, dv_value value) {
    int norm = -1, other = -1;
    if (value == plan->graph->input || count_readers(plan, value, &norm) != 1)
        return -1;
    const dv_graph_layer *node = &plan->graph->layers[norm];
    bool fits = node->layer.kind->normalisation && node->layer.input_count == 1 && node->layer.zero_outside_mask;
    return fits && count_readers(plan, node->output, &other) > 0 ? norm : -1;
}

/* Made by the norm of a unit. */
static bool ends_unit(const dv_plan *plan, dv_value value) {
    int producer = plan->graph->values[value].producer;
    return producer != DV_INPUT && norm_of(plan, plan->graph->layers[producer].inputs[0]) == producer;
}

static void keep(dv_plan *plan, dv_value value) {
    int norm = norm_of(plan, value);
    if (ends_unit(plan, value)) {
        dv_plan_keep(plan, value, &dv_keep_recomputed);
        dv_plan_mask_in(plan, value, plan->graph->layers[plan->graph->values[value].producer].inputs[0]);
    } else if (norm >= 0) {
        plan->values[value].codec = plan->method.codec;
        plan->values[value].stored_by = norm;
        dv_plan_keep(plan, value, &dv_keep_unit);
    } else {
        dv_plan_keep(plan, value, &dv_keep_exact);
    }
}

static dv_status choose(dv_plan *plan, dv_error *error) {
    (void)error;
    dv_plan_choose(plan, keep);
    return DV_OK;
}

const dv_method_kind dv_method_blpa = {
    .name = "blpa",
    .help = "one code for a batch norm, its ReLU and the convolution behind; option: bits",
    .codec = "blpa",
    .choose = choose,
};
