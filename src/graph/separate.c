/* Where a network can be cut into segments: at values that separate all that comes before from all that comes after. */
#include "graph/plan.h"

int dv_plan_first_backward(const dv_plan *plan) {
    int first = 0;
    while (first < (int)plan->graph->layer_count && !plan->layers[first].backward)
        first++;
    return first;
}

/* Of the values that a layer takes, those that no later one does. */
static int count_last_uses(const dv_graph *graph, int layer) {
    const dv_graph_layer *node = &graph->layers[layer];
    int last = 0;
    for (size_t k = 0; k < node->layer.input_count; k++) {
        bool again = false;
        for (size_t j = 0; j < k; j++)
            again = again || node->inputs[j] == node->inputs[k];
        last += !again && graph->values[node->inputs[k]].last_user == layer;
    }
    return last;
}

/* So many values are there that a later layer takes: with one alone, it separates. */
void dv_plan_separators(const dv_plan *plan, bool *separates) {
    const dv_graph *graph = plan->graph;
    int alive = graph->values[graph->input].last_user >= 0;
    for (int i = 0; i < (int)graph->layer_count; i++) {
        bool taken = graph->values[graph->layers[i].output].last_user > i;
        alive += taken - count_last_uses(graph, i);
        separates[i] = alive == 1 && taken;
    }
}
