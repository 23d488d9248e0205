/* Layers as nodes of ONNX: a function for each kind, in a table. */
#include "export/onnx.h"

#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>

/* What a function is given: the layer, and the names of what it takes and makes. */
typedef struct task {
    dv_onnx *onnx;
    const dv_graph_layer *of;
    const dv_layer *layer;
    const dv_layer_arrays *arrays;
    size_t index;
    char input[DV_ONNX_NAME_BYTES], output[DV_ONNX_NAME_BYTES]; /* of the first input */
} task;

typedef dv_status (*translation)(task *t, dv_error *error);

/* ---- parts --------------------------------------------------------------------------------- */

/* A node of the layer's first input. */
static dv_onnx_node *add(task *t, const char *operation, const char *input, const char *output) {
    dv_onnx_node *node = dv_onnx_add(t->onnx, operation, output);
    dv_onnx_take(t->onnx, node, input);
    return node;
}

/* The name of what is between the nodes of one layer. */
static const char *between(const task *t, const char *what, char name[DV_ONNX_NAME_BYTES]) {
    snprintf(name, DV_ONNX_NAME_BYTES, "%.120s/%d.%s", t->layer->name, t->of->output, what);
    return name;
}

static void set_sides(dv_onnx_node *node, const char *name, const size_t *sides, int rank) {
    dv_onnx_attribute *attribute = dv_onnx_integers(node, name);
    for (int d = 0; d < rank; d++)
        attribute->integers[attribute->count++] = (int64_t)sides[d];
}

/* Where windows reach beyond the map: before it, then behind it, along each side. */
static void set_window(dv_onnx_node *node, const dv_window *window, const size_t *behind, int rank) {
    set_sides(node, "kernel_shape", window->kernel, rank);
    set_sides(node, "strides", window->stride, rank);
    dv_onnx_attribute *pads = dv_onnx_integers(node, "pads");
    for (int d = 0; d < 2 * rank; d++)
        pads->integers[pads->count++] = (int64_t)(d < rank ? window->padding[d] : behind[d - rank]);
}

static void take_parameter(task *t, dv_onnx_node *node, size_t index) {
    const dv_parameter *p = &t->layer->parameters[index];
    dv_onnx_array_for(t->onnx, node, t->layer->name, p->name, p->rank, p->shape, t->arrays->parameters[index]);
}

static void take_buffer(task *t, dv_onnx_node *node, size_t index) {
    const dv_buffer *b = &t->layer->buffers[index];
    dv_onnx_array_for(t->onnx, node, t->layer->name, b->name, 1, &b->count, t->arrays->buffers[index]);
}

/* ---- kinds --------------------------------------------------------------------------------- */

/* Weights that take a batch norm over, and the bias that they get by it. */
static void take_folded(task *t, dv_onnx_node *node, dv_onnx_fold *by) {
    const dv_parameter *weight = &t->layer->parameters[0];
    dv_onnx_array *array = dv_onnx_array_for(t->onnx, node, t->layer->name, weight->name, weight->rank, weight->shape,
                                             t->arrays->parameters[0]);
    if (array != NULL)
        array->scale = by->scale;
    array = dv_onnx_array_for(t->onnx, node, t->layer->name, "bias", 1, &t->layer->output.channels, by->bias);
    if (array == NULL)
        return;
    array->owned = by->bias;
    by->bias = NULL;
}

static dv_status add_convolution(task *t, const char *operation, bool transposed) {
    const dv_convolution_options *options = t->layer->options;
    int rank = t->layer->output.rank;
    dv_onnx_node *node = add(t, operation, t->input, t->output);
    set_window(node, &options->window, options->window.padding, rank);
    set_sides(node, "dilations", options->window.dilation, rank);
    dv_onnx_integer(node, "group", (int64_t)options->groups);
    if (transposed)
        set_sides(node, "output_padding", options->output_padding, rank);
    if (t->onnx->folds[t->index].scale != NULL)
        take_folded(t, node, &t->onnx->folds[t->index]);
    for (size_t i = 0; i < t->layer->parameter_count && t->onnx->folds[t->index].scale == NULL; i++)
        take_parameter(t, node, i);
    return DV_OK;
}

static dv_status convolution(task *t, dv_error *error) {
    (void)error;
    return add_convolution(t, "Conv", false);
}

static dv_status transposed_convolution(task *t, dv_error *error) {
    (void)error;
    return add_convolution(t, "ConvTranspose", true);
}

/* Up to three nodes: the norm, unless it is folded, the sum and the ReLU. One that is folded and nothing else only
 * passes on. */
static dv_status batch_norm(task *t, dv_error *error) {
    const dv_batch_norm_options *options = t->layer->options;
    bool folded = t->onnx->is_folded[t->index];
    char at[DV_ONNX_NAME_BYTES], norm[DV_ONNX_NAME_BYTES], sum[DV_ONNX_NAME_BYTES], added[DV_ONNX_NAME_BYTES];
    (void)error;
    snprintf(at, sizeof at, "%s", t->input);
    if (!folded) {
        dv_onnx_node *node =
            add(t, "BatchNormalization", at, options->add || options->relu ? between(t, "norm", norm) : t->output);
        dv_onnx_number(node, "epsilon", options->epsilon);
        for (size_t i = 0; i < 2; i++)
            take_parameter(t, node, i);
        for (size_t i = 0; i < 2; i++)
            take_buffer(t, node, i);
        snprintf(at, sizeof at, "%s", node != NULL && node->output != NULL ? node->output : "");
    }
    if (options->add) {
        dv_onnx_node *node = add(t, "Add", at, options->relu ? between(t, "sum", sum) : t->output);
        dv_onnx_take(t->onnx, node, dv_onnx_value(t->onnx, t->of->inputs[1], added));
        snprintf(at, sizeof at, "%s", node != NULL && node->output != NULL ? node->output : "");
    }
    if (options->relu || (folded && !options->add))
        add(t, options->relu ? "Relu" : "Identity", at, t->output);
    return DV_OK;
}

static dv_status relu(task *t, dv_error *error) {
    (void)error;
    add(t, "Relu", t->input, t->output);
    return DV_OK;
}

static dv_status leaky_relu(task *t, dv_error *error) {
    (void)error;
    dv_onnx_number(add(t, "LeakyRelu", t->input, t->output), "alpha",
                   ((const dv_leaky_relu_options *)t->layer->options)->slope);
    return DV_OK;
}

/* Sides that are rounded up have windows that reach further beyond the map: said by padding behind it, because
 * programs differ in what rounding up is. */
static void padding_behind(const task *t, const dv_pooling_options *options, size_t behind[DV_MAX_RANK]) {
    const dv_map *in = &t->layer->inputs[0], *out = &t->layer->output;
    for (int d = 0; d < in->rank; d++) {
        size_t reach = (out->sides[d] - 1) * options->window.stride[d] + options->window.kernel[d];
        size_t there = in->sides[d] + 2 * options->window.padding[d];
        behind[d] = options->window.padding[d] + (reach > there ? reach - there : 0);
    }
}

static dv_status max_pooling(task *t, dv_error *error) {
    const dv_pooling_options *options = t->layer->options;
    size_t behind[DV_MAX_RANK];
    (void)error;
    padding_behind(t, options, behind);
    set_window(add(t, "MaxPool", t->input, t->output), &options->window, behind, t->layer->output.rank);
    return DV_OK;
}

static dv_status average_pooling(task *t, dv_error *error) {
    const dv_pooling_options *options = t->layer->options;
    size_t behind[DV_MAX_RANK] = {0};
    padding_behind(t, options, behind);
    for (int d = 0; d < t->layer->output.rank && d < DV_MAX_RANK; d++)
        if (behind[d] > options->window.padding[d] && options->count_padding)
            return dv_fail(error, DV_ERROR_UNSUPPORTED,
                           "%.100s: an average that counts padding, with sides rounded up: ONNX has no such layer",
                           t->layer->name);
    dv_onnx_node *node = add(t, "AveragePool", t->input, t->output);
    set_window(node, &options->window, behind, t->layer->output.rank);
    dv_onnx_integer(node, "count_include_pad", options->count_padding);
    return DV_OK;
}

static dv_status global_average_pooling(task *t, dv_error *error) {
    char mean[DV_ONNX_NAME_BYTES];
    (void)error;
    add(t, "GlobalAveragePool", t->input, between(t, "mean", mean));
    dv_onnx_integer(add(t, "Flatten", mean, t->output), "axis", 1);
    return DV_OK;
}

/* Nothing is dropped in inference. */
static dv_status dropout(task *t, dv_error *error) {
    (void)error;
    add(t, "Identity", t->input, t->output);
    return DV_OK;
}

static dv_status linear(task *t, dv_error *error) {
    dv_onnx_node *node = add(t, "Gemm", t->input, t->output);
    (void)error;
    dv_onnx_integer(node, "transB", 1);
    for (size_t i = 0; i < t->layer->parameter_count; i++)
        take_parameter(t, node, i);
    return DV_OK;
}

static dv_onnx_node *add_all(task *t, const char *operation) {
    char name[DV_ONNX_NAME_BYTES];
    dv_onnx_node *node = add(t, operation, t->input, t->output);
    for (size_t i = 1; i < t->layer->input_count; i++)
        dv_onnx_take(t->onnx, node, dv_onnx_value(t->onnx, t->of->inputs[i], name));
    return node;
}

static dv_status sum(task *t, dv_error *error) {
    (void)error;
    add_all(t, "Sum");
    return DV_OK;
}

static dv_status concatenation(task *t, dv_error *error) {
    (void)error;
    dv_onnx_integer(add_all(t, "Concat"), "axis", 1);
    return DV_OK;
}

static const struct {
    const dv_layer_kind *kind;
    translation translate;
} table[] = {
    {&dv_convolution, convolution},
    {&dv_transposed_convolution, transposed_convolution},
    {&dv_batch_norm, batch_norm},
    {&dv_relu, relu},
    {&dv_leaky_relu, leaky_relu},
    {&dv_max_pooling, max_pooling},
    {&dv_average_pooling, average_pooling},
    {&dv_global_average_pooling, global_average_pooling},
    {&dv_dropout, dropout},
    {&dv_linear, linear},
    {&dv_sum, sum},
    {&dv_concatenation, concatenation},
};

/* ---- all layers ---------------------------------------------------------------------------- */

static dv_status translate(dv_onnx *onnx, size_t index, dv_error *error) {
    const dv_graph_layer *of = &onnx->graph->layers[index];
    task t = {.onnx = onnx, .of = of, .layer = &of->layer, .arrays = &onnx->run->arrays[index], .index = index};
    dv_onnx_value(onnx, of->inputs[0], t.input);
    dv_onnx_value(onnx, of->output, t.output);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].kind == of->layer.kind)
            return table[i].translate(&t, error);
    return dv_fail(error, DV_ERROR_UNSUPPORTED, "%.100s: a %s: ONNX has nothing for it: leave that layer out",
                   of->layer.name, of->layer.kind->name);
}

dv_status dv_onnx_translate(dv_onnx *onnx, dv_error *error) {
    size_t layers = onnx->graph->layer_count;
    onnx->folds = calloc(layers + 1, sizeof *onnx->folds);
    onnx->is_folded = calloc(layers + 1, sizeof *onnx->is_folded);
    onnx->no_memory = onnx->folds == NULL || onnx->is_folded == NULL;
    if (!onnx->no_memory)
        DV_TRY(dv_onnx_find_folds(onnx, error));
    for (size_t i = 0; i < layers && !onnx->no_memory; i++)
        DV_TRY(translate(onnx, i, error));
    return onnx->no_memory ? dv_fail(error, DV_ERROR_MEMORY, "no memory to export a network: free some") : DV_OK;
}
