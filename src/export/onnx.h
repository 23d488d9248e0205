/* A network as ONNX has it, before it is written: nodes with their attributes, arrays, and what comes in and out. */
#ifndef DV_EXPORT_ONNX_H
#define DV_EXPORT_ONNX_H

#include "graph/run.h"

#include <division/onnx.h>

enum { DV_ONNX_NAME_BYTES = 160, DV_ONNX_MOST_ATTRIBUTES = 8, DV_ONNX_MOST_INTEGERS = 2 * DV_MAX_RANK };

/* An attribute: integers, one integer or one number. */
typedef struct dv_onnx_attribute {
    const char *name;
    enum { DV_ONNX_INTEGER, DV_ONNX_INTEGERS, DV_ONNX_NUMBER } kind;
    size_t count; /* of integers */
    int64_t integers[DV_ONNX_MOST_INTEGERS];
    float number;
} dv_onnx_attribute;

typedef struct dv_onnx_node {
    const char *operation; /* "Conv" */
    char **inputs;         /* [input_count], owned */
    size_t input_count;
    char *output, *name; /* owned */
    dv_onnx_attribute attributes[DV_ONNX_MOST_ATTRIBUTES];
    size_t attribute_count;
} dv_onnx_node;

/* An array: [count] numbers of the run's, each times the scale of its channel where there is one. */
typedef struct dv_onnx_array {
    char *name; /* owned */
    int rank;
    size_t shape[DV_PARAMETER_MAX_RANK], count;
    const float *data;
    float *owned;        /* the data, where it is made here; or NULL */
    const double *scale; /* [shape[0]], or NULL */
} dv_onnx_array;

/* What a batch norm in front of nothing but its convolution does to that: weights times scale, and a bias. */
typedef struct dv_onnx_fold {
    double *scale; /* [channels], owned; NULL: the layer's output is as it is */
    float *bias;   /* [channels], owned by the array that it becomes */
} dv_onnx_fold;

typedef struct dv_onnx {
    const dv_run *run;
    const dv_graph *graph;
    const dv_onnx_options *options;
    dv_onnx_node *nodes;
    size_t node_count, node_room;
    dv_onnx_array *arrays;
    size_t array_count, array_room;
    dv_onnx_fold *folds; /* [layer_count] */
    bool *is_folded;     /* [layer_count]: a batch norm that is part of its convolution */
    bool no_memory;
} dv_onnx;

/* onnx_layers.c: all layers as nodes and arrays. dv_onnx_free releases them, also after a failure. */
dv_status dv_onnx_translate(dv_onnx *onnx, dv_error *error);
void dv_onnx_free(dv_onnx *onnx);

/* onnx_nodes.c: what layers are made of. Failures for want of memory are remembered in `no_memory`. */

/* The name of a value, in `name`. */
const char *dv_onnx_value(const dv_onnx *onnx, dv_value value, char name[DV_ONNX_NAME_BYTES]);

/* A node that makes `output`; its inputs are added one by one. NULL: no memory. */
dv_onnx_node *dv_onnx_add(dv_onnx *onnx, const char *operation, const char *output);
void dv_onnx_take(dv_onnx *onnx, dv_onnx_node *node, const char *input);
void dv_onnx_integer(dv_onnx_node *node, const char *name, int64_t value);
void dv_onnx_number(dv_onnx_node *node, const char *name, float value);
dv_onnx_attribute *dv_onnx_integers(dv_onnx_node *node, const char *name);

/* An array of the file that the node takes: a parameter's data, or one of the node's own. */
dv_onnx_array *dv_onnx_array_for(dv_onnx *onnx, dv_onnx_node *node, const char *layer, const char *name, int rank,
                                 const size_t *shape, const float *data);

/* onnx_fold.c: finds batch norms that convolutions can take over, and what becomes of these. */
dv_status dv_onnx_find_folds(dv_onnx *onnx, dv_error *error);

/* onnx_write.c */
void dv_onnx_serialise(const dv_onnx *onnx, FILE *stream);

#endif
