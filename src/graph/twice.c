/* Layers that run twice. A norm with an addend needs three things at once: its input x, of which it takes statistics
 * before it can use an element; what it adds; and what the layer before has made x of. If that layer is cheap, x need
 * not be there as a whole: the norm has slices of it made for the statistics, and once more for its output, which goes
 * where the addend was.
 *
 *     position         as ever                                by slices, in one operation
 *     forward before   its input, x, the addend
 *     forward norm     x and the output, the addend           its input, a slice of x, the addend and the output
 *
 * The layers are those without which the most crowded moment would be another one. */
#include "base/status.h"
#include "graph/plan.h"

#include <stdlib.h>

/* Nothing has to have the value itself when the norm `i`, which takes it once and last, is done. */
static bool ends_with(const dv_plan *plan, dv_value value, int i) {
    const dv_keeper *keeper = dv_keeper_in_memory(&plan->values[value]);
    return plan->graph->values[value].last_user == i && dv_times_taken(&plan->graph->layers[i], value) == 1 &&
           !(keeper && keeper->holds_until);
}

/* The norm stores x itself, of which no mask and no file is wanted. */
static bool stores_alone(const dv_plan *plan, dv_value x, int i) {
    const dv_value_plan *v = &plan->values[x];
    return v->keeper && v->stored_by == i && !v->behind && v->mask_keeper != &dv_keep_mask;
}

static bool can_run(const dv_plan *plan, int i) {
    const dv_graph_layer *node = &plan->graph->layers[i];
    if (i == 0 || node->layer.input_slice_bytes == 0 || node->layer.input_count != 2)
        return false;
    const dv_layer *before = &plan->graph->layers[i - 1].layer;
    dv_value x = node->inputs[0];
    return before->cheap_twice && before->kind->forward_slice && plan->graph->values[x].producer == i - 1 &&
           plan->graph->values[x].uses == 1 && ends_with(plan, x, i) && ends_with(plan, node->inputs[1], i) &&
           stores_alone(plan, x, i) && plan->layers[i].replay_at < 0 && plan->layers[i - 1].replay_at < 0;
}

/* Bytes that are alive at each position; the caller frees it. */
static size_t *find_alive(const dv_plan *plan) {
    size_t *alive = calloc(plan->operation_count + 1, sizeof *alive);
    for (size_t i = 0; alive && i < plan->piece_count; i++) {
        alive[plan->pieces[i].first] += plan->pieces[i].bytes;
        alive[plan->pieces[i].last + 1] -= plan->pieces[i].bytes;
    }
    for (size_t p = 1; alive && p <= plan->operation_count; p++)
        alive[p] += alive[p - 1];
    return alive;
}

static size_t most_alive(const dv_plan *plan, const size_t *alive) {
    size_t most = 0;
    for (size_t p = 0; p < plan->operation_count; p++)
        most = alive[p] > most ? alive[p] : most;
    return most;
}

/* Leaves out of `alive` the two forwards of each norm that could run the layer before it. */
static void leave_out(const dv_plan *plan, size_t *alive, size_t *before, size_t *behind) {
    for (int i = 1; i < (int)plan->graph->layer_count; i++) {
        before[i] = behind[i] = 0;
        if (!can_run(plan, i))
            continue;
        before[i] = alive[plan->layers[i - 1].forward_at];
        behind[i] = alive[plan->layers[i].forward_at];
        alive[plan->layers[i - 1].forward_at] = alive[plan->layers[i].forward_at] = 0;
    }
}

dv_status dv_plan_run_twice(dv_plan *plan, bool *any, dv_error *error) {
    const dv_slicing wish = dv_slicing_forced();
    size_t layers = plan->graph->layer_count + 1, *alive = find_alive(plan);
    size_t *before = calloc(2 * layers, sizeof *before);
    bool made = alive && before;
    *any = false;
    if (made && !plan->options.inference && wish != DV_SLICING_NEVER) {
        size_t *behind = before + layers;
        leave_out(plan, alive, before, behind);
        size_t most = wish == DV_SLICING_ALWAYS ? 0 : most_alive(plan, alive);
        for (int i = 1; i < (int)plan->graph->layer_count; i++)
            if (before[i] > most || behind[i] > most) {
                plan->layers[i - 1].run_by = i;
                *any = true;
            }
    }
    free(alive);
    free(before);
    return made ? DV_OK : dv_fail(error, DV_ERROR_MEMORY, "plan: no memory");
}
