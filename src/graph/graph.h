/* A graph of layers, as the folder's files see it: an array of layers in the order they run, an array of
 * values, and who uses what. */
#ifndef DV_GRAPH_GRAPH_H
#define DV_GRAPH_GRAPH_H

#include "nn/choices.h"
#include "nn/layer.h"

#include <division/graph.h>
#include <stdatomic.h>

enum { DV_INPUT = -1 }; /* producer of the images */

typedef struct dv_graph_layer {
    dv_layer layer;
    dv_value *inputs; /* [layer.input_count] */
    dv_value output;
} dv_graph_layer;

typedef struct dv_graph_value {
    dv_map map;
    int producer;  /* index of a layer, or DV_INPUT */
    int uses;      /* how many times layers take it */
    int last_user; /* index of the last layer that takes it, or -1 */
    uint64_t key;  /* of the dither that packs it */
} dv_graph_value;

struct dv_graph {
    atomic_size_t holders; /* its maker, and plans */
    dv_type type;
    size_t batch;
    dv_error error; /* the first of building */
    size_t layer_count, layer_capacity;
    dv_graph_layer *layers;
    size_t value_count, value_capacity;
    dv_graph_value *values;
    dv_value input, logits;
    dv_choices choices;  /* who computes the layers' passes */
    dv_graph_layer loss; /* of the logits: no part of `layers`, and without an output */
    bool finished;
};

/* Appends a layer of any kind: what the builder functions of division/graph.h call. Name, inputs [count] and options
 * are copied. Its output, or a negative value. */
dv_value dv_graph_add(dv_graph *graph, const dv_layer_kind *kind, const char *name, const dv_value *inputs,
                      size_t count, const void *options, size_t option_bytes);

/* Fuses what can be: batch norm + sum, batch norm (+ sum) + ReLU. Layers that went into others are gone. */
dv_status dv_graph_fuse(dv_graph *graph, dv_error *error);

/* Sets producer, uses and last_user of all values. */
void dv_graph_link(dv_graph *graph);

/* Releases what a layer owns. */
void dv_graph_layer_destroy(dv_graph_layer *layer);

#endif
