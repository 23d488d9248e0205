/* What backward asks for of each value, when, and how that survives until then. */
#include "graph/plan.h"

/* ---- backward at all ------------------------------------------------------------------------- */

/* Which values want a gradient, and so which layers have a backward. */
static void find_backward(dv_plan *plan) {
    const dv_graph *graph = plan->graph;
    for (size_t i = 0; i < graph->layer_count; i++) {
        const dv_graph_layer *node = &graph->layers[i];
        bool wanted = node->layer.parameter_count > 0;
        for (size_t k = 0; k < node->layer.input_count; k++)
            wanted = wanted || plan->values[node->inputs[k]].wants_diff;
        plan->layers[i].backward = wanted && !plan->options.inference;
        plan->values[node->output].wants_diff = plan->layers[i].backward;
    }
}

/* ---- who asks, and when ---------------------------------------------------------------------- */

static void ask_numbers(dv_value_plan *v, int first, int last) {
    if (v->numbers_last < 0 || v->numbers_first > first)
        v->numbers_first = first;
    if (v->numbers_last < last)
        v->numbers_last = last;
}

static void ask(dv_value_plan *v, dv_need need, int moment) {
    if (need == DV_NEED_NUMBERS)
        ask_numbers(v, moment, moment);
    if (need == DV_NEED_BITS && v->bits_last < moment)
        v->bits_last = moment;
}

/* What the backward of layer `i` needs. */
static void ask_for_layer(dv_plan *plan, int i) {
    const dv_graph_layer *node = &plan->graph->layers[i];
    int moment = dv_backward_moment(plan->graph, i);
    ask(&plan->values[node->output], node->layer.output_need, moment);
    for (size_t k = 0; k < node->layer.input_count; k++)
        if (dv_layer_needs_input(&node->layer, k))
            ask(&plan->values[node->inputs[k]], node->layer.input_need, moment);
}

/* ---- how it survives ------------------------------------------------------------------------- */

/* A value that is recomputed: whenever it is asked for, so are its layer's inputs. What a batch norm normalises
 * is packed for both, and is a source; if it is a concatenation, its parts are. */
static void ask_for_recomputing(dv_plan *plan, const dv_graph_layer *node) {
    const dv_value_plan *made = &plan->values[node->output];
    bool norm = node->layer.kind == &dv_batch_norm;
    for (size_t k = 0; k < node->layer.input_count; k++) {
        dv_value_plan *from = &plan->values[node->inputs[k]];
        ask_numbers(from, made->numbers_first, made->numbers_last);
        from->is_source = from->is_source || (norm ? k == 0 : made->is_source);
    }
}

static const dv_codec *choose_codec(const dv_plan *plan, dv_value value) {
    const dv_method *method = &plan->method;
    if (value == plan->graph->input)
        return &method->input;
    return plan->values[value].is_source ? &method->source : &method->codec;
}

static void choose_keeper(dv_plan *plan, dv_value value) {
    dv_value_plan *v = &plan->values[value];
    v->keeper = DV_KEEP_NOTHING;
    if (v->numbers_last >= 0)
        v->keeper = plan->method.kind->keeper(&plan->method, plan->graph, value);
    v->codec = choose_codec(plan, value);
}

/* From the last layer to the first, so that all who ask for a value have asked when its turn comes. */
void dv_plan_needs(dv_plan *plan) {
    const dv_graph *graph = plan->graph;
    find_backward(plan);
    for (size_t v = 0; v < graph->value_count; v++) {
        plan->values[v].numbers_last = plan->values[v].bits_last = -1;
        plan->values[v].codec = &plan->method.codec;
    }
    for (int i = 0; i < (int)graph->layer_count; i++)
        if (plan->layers[i].backward)
            ask_for_layer(plan, i);
    for (size_t i = graph->layer_count; i-- > 0;) {
        const dv_graph_layer *node = &graph->layers[i];
        choose_keeper(plan, node->output);
        if (plan->values[node->output].keeper == DV_KEEP_RECOMPUTED)
            ask_for_recomputing(plan, node);
    }
    choose_keeper(plan, graph->input);
}
