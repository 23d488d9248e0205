/* Fusing: a batch norm takes over the sum and the ReLU that follow it, so that normalising, adding, cutting at
 * zero and writing the mask are one pass over memory, and what would lie between them is never stored. */
#include "graph/graph.h"

#include <stdlib.h>
#include <string.h>

/* The layer whose output is `value`, if nobody else takes it and it can take over what follows. -1 if there is none. */
static int can_take_over(const dv_graph *graph, dv_value value, dv_role role) {
    const dv_graph_value *v = &graph->values[value];
    if (v->producer == DV_INPUT || v->uses != 1)
        return -1;
    const dv_layer *layer = &graph->layers[v->producer].layer;
    return layer->kind->can_take_over && layer->kind->can_take_over(layer, role) ? v->producer : -1;
}

/* Takes layer `index` out of the array. */
static void remove_layer(dv_graph *graph, size_t index) {
    dv_graph_layer_destroy(&graph->layers[index]);
    memmove(&graph->layers[index], &graph->layers[index + 1], (graph->layer_count - index - 1) * sizeof *graph->layers);
    graph->layer_count--;
}

/* The ReLU at `index` goes into the batch norm at `norm`. */
static dv_status fuse_relu(dv_graph *graph, size_t index, size_t norm, dv_error *error) {
    dv_graph_layer *into = &graph->layers[norm];
    into->layer.kind->take_over(&into->layer, DV_ROLE_RELU);
    into->output = graph->layers[index].output;
    dv_status status = into->layer.kind->infer(&into->layer, error);
    remove_layer(graph, index);
    return status;
}

/* The sum at `index` becomes the batch norm at `norm`, which adds the sum's other operand. It runs where the
 * sum did, when both operands are there. */
static dv_status fuse_sum(dv_graph *graph, size_t index, size_t norm, dv_error *error) {
    dv_graph_layer *sum = &graph->layers[index], *from = &graph->layers[norm];
    size_t own = sum->inputs[0] == from->output ? 0 : 1;
    dv_map *maps = (dv_map *)sum->layer.inputs;
    maps[own] = from->layer.inputs[0]; /* of the same shape, but for clarity */
    sum->inputs[own] = from->inputs[0];
    if (own == 1) { /* inputs[0] is what is normalised */
        dv_value other = sum->inputs[0];
        sum->inputs[0] = sum->inputs[1];
        sum->inputs[1] = other;
    }
    const char *name = sum->layer.name;
    const void *options = sum->layer.options;
    sum->layer.kind = from->layer.kind;
    sum->layer.name = from->layer.name;
    sum->layer.options = from->layer.options;
    from->layer.name = name;
    from->layer.options = options;
    sum->layer.kind->take_over(&sum->layer, DV_ROLE_SUM);
    dv_status status = sum->layer.kind->infer(&sum->layer, error);
    remove_layer(graph, norm);
    return status;
}

dv_status dv_graph_fuse(dv_graph *graph, dv_error *error) {
    for (size_t i = 0; i < graph->layer_count;) {
        const dv_graph_layer *node = &graph->layers[i];
        dv_role role = node->layer.kind->role;
        dv_status status = DV_OK;
        int norm = -1;
        if (role == DV_ROLE_RELU && (norm = can_take_over(graph, node->inputs[0], role)) >= 0) {
            status = fuse_relu(graph, i, (size_t)norm, error);
        } else if (role == DV_ROLE_SUM && node->layer.input_count == 2) {
            int a = can_take_over(graph, node->inputs[0], role), b = can_take_over(graph, node->inputs[1], role);
            norm = a > b ? a : b; /* the later one: its input waits less long */
            if (norm >= 0)
                status = fuse_sum(graph, i, (size_t)norm, error);
        }
        if (status != DV_OK)
            return status;
        if (norm < 0) {
            i++;
            continue;
        }
        dv_graph_link(graph); /* indices have moved: this layer's place is now i - 1 or i */
        i = i ? i - 1 : 0;
    }
    return DV_OK;
}
