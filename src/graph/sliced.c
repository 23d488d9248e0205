/* Gradients that are never there as a whole. A norm passes on the gradient z' of what it adds in the memory of its
 * output's; the gradient x' of what it normalises would be a second map of that size. If the layer right before made x,
 * for the norm alone, x' is made by slices when that layer asks for them, from what is still there:
 *
 *     backward norm     sums over the batch; z' in the place of the output's gradient; coefficients are left
 *     backward before   slice by slice: x decoded, x' of it from x, z' and the coefficients, and used at once
 *
 * It costs to decode x once more, and spares to write and read x'. A norm that adds nothing writes x' over its output's
 * gradient, which nobody else reads then. */
#include "graph/plan.h"

static dv_slicing forced;

void dv_slicing_force(dv_slicing wish) {
    forced = wish;
}

dv_slicing dv_slicing_forced(void) {
    return forced;
}

/* The gradient of what is added can take over the memory of the output's: nobody has contributed to it before. */
static bool passes_in_place(const dv_plan *plan, int i) {
    const dv_graph_layer *node = &plan->graph->layers[i];
    if (node->layer.input_count != 2 || !(node->layer.kind->diff_in_place >> 1 & 1))
        return false;
    dv_value added = node->inputs[1];
    return plan->values[added].wants_diff && plan->graph->values[added].last_user == i &&
           dv_times_taken(node, added) == 1;
}

/* Nothing but an update is done between the two, so that what the norm has passed on is as it left it. Methods that
 * observe backward want to see whole gradients. */
static bool is_sliced(const dv_plan *plan, int i) {
    const dv_graph_layer *node = &plan->graph->layers[i];
    const dv_graph_value *input = &plan->graph->values[node->inputs[0]];
    return node->layer.kind->diff_images && i > 0 && input->producer == i - 1 && input->uses == 1 &&
           plan->values[node->inputs[0]].wants_diff && plan->graph->layers[i - 1].layer.diff_slice_bytes > 0 &&
           !plan->method.kind->observe && passes_in_place(plan, i);
}

/* What layer `i` reads of its input and its output is read by the layer before too. */
static void ask(dv_plan *plan, int i) {
    const dv_graph_layer *node = &plan->graph->layers[i];
    const dv_readers before = {i - 1, i - 1};
    if (dv_plan_input_need(plan, i, 0) == DV_NEED_NUMBERS)
        dv_plan_ask(plan, node->inputs[0], before);
    if (node->layer.output_need == DV_NEED_MASK)
        dv_plan_ask_mask(plan, node->output, before);
}

void dv_plan_slice_diffs(dv_plan *plan) {
    for (int i = 0; i < (int)plan->graph->layer_count; i++) {
        plan->layers[i].sliced_by = -1;
        if (forced == DV_SLICING_NEVER || !plan->layers[i].backward || !is_sliced(plan, i))
            continue;
        plan->layers[i - 1].sliced_by = i;
        ask(plan, i);
    }
}
