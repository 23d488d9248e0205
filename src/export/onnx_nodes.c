/* Nodes and arrays: lists that grow. */
#include "export/onnx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Room for one more in a list, zeros; NULL: no memory. */
static void *grow(dv_onnx *onnx, void **list, size_t *count, size_t *room, size_t bytes) {
    if (*count == *room) {
        size_t larger = *room > 0 ? 2 * *room : 64;
        void *grown = realloc(*list, larger * bytes);
        if (grown == NULL) {
            onnx->no_memory = true;
            return NULL;
        }
        *list = grown;
        *room = larger;
    }
    return memset((char *)*list + (*count)++ * bytes, 0, bytes);
}

static char *copy(dv_onnx *onnx, const char *text) {
    char *made = strdup(text);
    onnx->no_memory |= made == NULL;
    return made;
}

/* Images and logits have names of their own; other values those of their layers, with their numbers: layers without
 * parameters may share a name. */
const char *dv_onnx_value(const dv_onnx *onnx, dv_value value, char name[DV_ONNX_NAME_BYTES]) {
    const dv_graph *graph = onnx->graph;
    if (value == graph->input)
        snprintf(name, DV_ONNX_NAME_BYTES, "images");
    else if (value == graph->logits)
        snprintf(name, DV_ONNX_NAME_BYTES, "logits");
    else
        snprintf(name, DV_ONNX_NAME_BYTES, "%.120s/%d", graph->layers[graph->values[value].producer].layer.name, value);
    return name;
}

dv_onnx_node *dv_onnx_add(dv_onnx *onnx, const char *operation, const char *output) {
    dv_onnx_node *node = grow(onnx, (void **)&onnx->nodes, &onnx->node_count, &onnx->node_room, sizeof *node);
    if (node == NULL)
        return NULL;
    node->operation = operation;
    node->output = copy(onnx, output);
    node->name = copy(onnx, output);
    return node;
}

void dv_onnx_take(dv_onnx *onnx, dv_onnx_node *node, const char *input) {
    if (node == NULL)
        return;
    char **inputs = realloc(node->inputs, (node->input_count + 1) * sizeof *inputs);
    if (inputs == NULL) {
        onnx->no_memory = true;
        return;
    }
    node->inputs = inputs;
    node->inputs[node->input_count++] = copy(onnx, input);
}

/* An attribute more. A node that there was no memory for has one that nobody reads. */
static dv_onnx_attribute *add_attribute(dv_onnx_node *node, const char *name, int kind) {
    static _Thread_local dv_onnx_attribute nowhere;
    dv_onnx_attribute *made = node != NULL ? &node->attributes[node->attribute_count++] : &nowhere;
    *made = (dv_onnx_attribute){.name = name};
    made->kind = kind;
    return made;
}

void dv_onnx_integer(dv_onnx_node *node, const char *name, int64_t value) {
    add_attribute(node, name, DV_ONNX_INTEGER)->integers[0] = value;
}

void dv_onnx_number(dv_onnx_node *node, const char *name, float value) {
    add_attribute(node, name, DV_ONNX_NUMBER)->number = value;
}

dv_onnx_attribute *dv_onnx_integers(dv_onnx_node *node, const char *name) {
    return add_attribute(node, name, DV_ONNX_INTEGERS);
}

dv_onnx_array *dv_onnx_array_for(dv_onnx *onnx, dv_onnx_node *node, const char *layer, const char *name, int rank,
                                 const size_t *shape, const float *data) {
    char text[DV_ONNX_NAME_BYTES];
    dv_onnx_array *array = grow(onnx, (void **)&onnx->arrays, &onnx->array_count, &onnx->array_room, sizeof *array);
    if (array == NULL)
        return NULL;
    snprintf(text, sizeof text, "%.120s.%.30s", layer, name);
    *array = (dv_onnx_array){.name = copy(onnx, text), .rank = rank, .count = 1, .data = data};
    for (int d = 0; d < rank; d++) {
        array->shape[d] = shape[d];
        array->count *= shape[d];
    }
    dv_onnx_take(onnx, node, text);
    return array;
}

void dv_onnx_free(dv_onnx *onnx) {
    for (size_t i = 0; i < onnx->node_count; i++) {
        for (size_t k = 0; k < onnx->nodes[i].input_count; k++)
            free(onnx->nodes[i].inputs[k]);
        free(onnx->nodes[i].inputs);
        free(onnx->nodes[i].output);
        free(onnx->nodes[i].name);
    }
    for (size_t i = 0; i < onnx->array_count; i++) {
        free(onnx->arrays[i].name);
        free(onnx->arrays[i].owned);
    }
    for (size_t i = 0; onnx->folds != NULL && i < onnx->graph->layer_count; i++) {
        free(onnx->folds[i].scale);
        free(onnx->folds[i].bias);
    }
    free(onnx->nodes);
    free(onnx->arrays);
    free(onnx->folds);
    free(onnx->is_folded);
}
