/* Building graphs. Failures are remembered in the graph, so that a model reads as a list of layers. */
#include "base/status.h"
#include "graph/graph.h"

#include <stdlib.h>
#include <string.h>

dv_status dv_graph_new(dv_type type, size_t batch, dv_graph **graph, dv_error *error) {
    if (!graph)
        return dv_fail(error, DV_ERROR_ARGUMENT, "graph is NULL");
    if (type != DV_F32 && type != DV_BF16)
        return dv_fail(error, DV_ERROR_UNSUPPORTED, "graph: values are f32 or bf16, not %s", dv_type_name(type));
    if (batch == 0 || batch > 1 << 20)
        return dv_fail(error, DV_ERROR_OPTION, "graph: a batch of %zu images: must be 1 to 1048576", batch);
    dv_graph *made = calloc(1, sizeof *made);
    if (!made)
        return dv_fail(error, DV_ERROR_MEMORY, "graph: no memory");
    made->holders = 1;
    made->type = type;
    made->batch = batch;
    made->input = made->logits = -1;
    *graph = made;
    return DV_OK;
}

void dv_graph_layer_destroy(dv_graph_layer *layer) {
    if (layer->layer.kind && layer->layer.kind->destroy)
        layer->layer.kind->destroy(&layer->layer);
    free((void *)layer->layer.name);
    free((void *)layer->layer.options);
    free((void *)layer->layer.inputs);
    free(layer->inputs);
}

void dv_graph_free(dv_graph *graph) {
    if (!graph || atomic_fetch_sub(&graph->holders, 1) > 1)
        return;
    for (size_t i = 0; i < graph->layer_count; i++)
        dv_graph_layer_destroy(&graph->layers[i]);
    dv_graph_layer_destroy(&graph->loss);
    dv_choices_free(&graph->choices);
    free(graph->layers);
    free(graph->values);
    free(graph);
}

/* Remembers the first failure. Returns the value that stands for it. */
static dv_value failed(dv_graph *graph, dv_status status, const dv_error *error) {
    if (graph->error.status == DV_OK) {
        graph->error = *error;
        graph->error.status = status;
    }
    return -1;
}

static dv_value no_memory(dv_graph *graph) {
    dv_error error;
    return failed(graph, dv_fail(&error, DV_ERROR_MEMORY, "graph: no memory"), &error);
}

/* Makes room for one more of `count` things of `bytes` each. */
static bool grow(void **array, size_t count, size_t *capacity, size_t bytes) {
    if (count < *capacity)
        return true;
    size_t more = *capacity ? 2 * *capacity : 64;
    void *moved = realloc(*array, more * bytes);
    if (!moved)
        return false;
    *array = moved;
    *capacity = more;
    return true;
}

static dv_value add_value(dv_graph *graph, const dv_map *map, int producer) {
    if (!grow((void **)&graph->values, graph->value_count, &graph->value_capacity, sizeof *graph->values))
        return no_memory(graph);
    graph->values[graph->value_count] = (dv_graph_value){.map = *map, .producer = producer, .last_user = -1};
    return (dv_value)graph->value_count++;
}

dv_value dv_graph_input(dv_graph *graph, size_t channels, int rank, const size_t *sides) {
    dv_error error;
    if (!graph)
        return -1;
    if (!sides && rank > 0)
        return failed(graph, dv_fail(&error, DV_ERROR_ARGUMENT, "graph: the input's sides are NULL"), &error);
    dv_map map = {.type = graph->type, .layout = DV_NHWC, .images = graph->batch, .channels = channels, .rank = rank};
    if (graph->input >= 0)
        return failed(graph, dv_fail(&error, DV_ERROR_ARGUMENT, "graph: a second input: there can be one"), &error);
    for (int d = 0; d < rank && d < DV_MAX_RANK; d++)
        map.sides[d] = sides[d];
    dv_status status = dv_map_check(&map, &error);
    if (status != DV_OK)
        return failed(graph, status, &error);
    return graph->input = add_value(graph, &map, DV_INPUT);
}

/* A copy of `bytes` bytes, or NULL. */
static void *copy_of(const void *memory, size_t bytes) {
    void *copy = malloc(bytes ? bytes : 1);
    if (copy && bytes)
        memcpy(copy, memory, bytes);
    return copy;
}

/* Copies everything a layer owns. False if memory ran out; what was made is in `made`. */
static bool fill_layer(dv_graph *graph, dv_graph_layer *made, const char *name, const dv_value *inputs, size_t count,
                       const void *options, size_t option_bytes) {
    dv_map *maps = calloc(count + 1, sizeof *maps);
    made->layer.input_count = count;
    made->layer.inputs = maps;
    made->layer.name = copy_of(name, strlen(name) + 1);
    made->layer.options = copy_of(options, option_bytes);
    made->inputs = copy_of(inputs, count * sizeof *inputs);
    if (!maps || !made->layer.name || !made->layer.options || !made->inputs)
        return false;
    for (size_t i = 0; i < count; i++)
        maps[i] = graph->values[inputs[i]].map;
    return true;
}

dv_value dv_graph_add(dv_graph *graph, const dv_layer_kind *kind, const char *name, const dv_value *inputs,
                      size_t count, const void *options, size_t option_bytes) {
    dv_error error;
    if (!graph)
        return -1;
    if (!name || !inputs || (!options && option_bytes))
        return failed(
            graph,
            dv_fail(&error, DV_ERROR_ARGUMENT, "%s: its name, inputs or options are NULL", name ? name : kind->name),
            &error);
    for (size_t i = 0; i < count; i++)
        if (inputs[i] < 0 || (size_t)inputs[i] >= graph->value_count)
            return failed(graph, dv_fail(&error, DV_ERROR_ARGUMENT, "%s: its input is not a value of this graph", name),
                          &error);
    if (graph->finished)
        return failed(graph, dv_fail(&error, DV_ERROR_ARGUMENT, "%s: the graph is finished", name), &error);
    if (!grow((void **)&graph->layers, graph->layer_count, &graph->layer_capacity, sizeof *graph->layers))
        return no_memory(graph);
    dv_graph_layer *made = &graph->layers[graph->layer_count];
    *made = (dv_graph_layer){.layer.kind = kind, .layer.input_need_mask = ~0u};
    if (!fill_layer(graph, made, name, inputs, count, options, option_bytes)) {
        dv_graph_layer_destroy(made);
        return no_memory(graph);
    }
    graph->layer_count++;
    dv_status status = kind->infer(&made->layer, &error);
    if (status != DV_OK)
        return failed(graph, status, &error);
    return made->output = add_value(graph, &made->layer.output, (int)graph->layer_count - 1);
}

dv_value dv_graph_convolution(dv_graph *graph, const char *name, dv_value input,
                              const dv_convolution_options *options) {
    return dv_graph_add(graph, &dv_convolution, name, &input, 1, options, sizeof *options);
}

dv_value dv_graph_transposed_convolution(dv_graph *graph, const char *name, dv_value input,
                                         const dv_convolution_options *options) {
    return dv_graph_add(graph, &dv_transposed_convolution, name, &input, 1, options, sizeof *options);
}

dv_value dv_graph_batch_norm(dv_graph *graph, const char *name, dv_value input) {
    const dv_batch_norm_options options = {.epsilon = 1e-5f, .momentum = 0.1f};
    return dv_graph_add(graph, &dv_batch_norm, name, &input, 1, &options, sizeof options);
}

dv_value dv_graph_relu(dv_graph *graph, const char *name, dv_value input) {
    return dv_graph_add(graph, &dv_relu, name, &input, 1, NULL, 0);
}

dv_value dv_graph_leaky_relu(dv_graph *graph, const char *name, dv_value input, float slope) {
    const dv_leaky_relu_options options = {.slope = slope};
    return dv_graph_add(graph, &dv_leaky_relu, name, &input, 1, &options, sizeof options);
}

dv_value dv_graph_max_pooling(dv_graph *graph, const char *name, dv_value input, const dv_pooling_options *options) {
    return dv_graph_add(graph, &dv_max_pooling, name, &input, 1, options, sizeof *options);
}

dv_value dv_graph_average_pooling(dv_graph *graph, const char *name, dv_value input,
                                  const dv_pooling_options *options) {
    return dv_graph_add(graph, &dv_average_pooling, name, &input, 1, options, sizeof *options);
}

dv_value dv_graph_global_average_pooling(dv_graph *graph, const char *name, dv_value input) {
    return dv_graph_add(graph, &dv_global_average_pooling, name, &input, 1, NULL, 0);
}

dv_value dv_graph_dropout(dv_graph *graph, const char *name, dv_value input, float probability) {
    const dv_dropout_options options = {.probability = probability};
    return dv_graph_add(graph, &dv_dropout, name, &input, 1, &options, sizeof options);
}

dv_value dv_graph_linear(dv_graph *graph, const char *name, dv_value input, const dv_linear_options *options) {
    return dv_graph_add(graph, &dv_linear, name, &input, 1, options, sizeof *options);
}

dv_value dv_graph_sum(dv_graph *graph, const char *name, dv_value a, dv_value b) {
    const dv_value inputs[] = {a, b};
    return dv_graph_add(graph, &dv_sum, name, inputs, 2, NULL, 0);
}

dv_value dv_graph_concatenation(dv_graph *graph, const char *name, const dv_value *inputs, size_t count) {
    return dv_graph_add(graph, &dv_concatenation, name, inputs, count, NULL, 0);
}

dv_value dv_graph_softmax_cross_entropy(dv_graph *graph, const char *name, dv_value logits) {
    return dv_graph_add(graph, &dv_softmax_cross_entropy, name, &logits, 1, NULL, 0);
}

void dv_graph_link(dv_graph *graph) {
    for (size_t v = 0; v < graph->value_count; v++) {
        graph->values[v].producer = DV_INPUT;
        graph->values[v].uses = 0;
        graph->values[v].last_user = -1;
    }
    for (size_t i = 0; i < graph->layer_count; i++) {
        const dv_graph_layer *node = &graph->layers[i];
        graph->values[node->output].producer = (int)i;
        for (size_t k = 0; k < node->layer.input_count; k++) {
            graph->values[node->inputs[k]].uses++;
            graph->values[node->inputs[k]].last_user = (int)i;
        }
    }
}

/* Names tell parameters apart in files. */
static dv_status check_names(const dv_graph *graph, dv_error *error) {
    for (size_t i = 0; i < graph->layer_count; i++)
        for (size_t j = 0; j < i; j++) {
            const dv_layer *a = &graph->layers[i].layer, *b = &graph->layers[j].layer;
            if (a->parameter_count && b->parameter_count && strcmp(a->name, b->name) == 0)
                return dv_fail(error, DV_ERROR_ARGUMENT, "graph: two layers named %s: name them differently", a->name);
        }
    return DV_OK;
}

/* Random numbers depend on these keys, and so do the bits of a training: a value's is its number in the order of
 * building, a layer's its number among those that fusing left, a parameter's its number among all parameters and
 * running statistics. */
static void give_keys(dv_graph *graph) {
    uint64_t arrays = 0;
    for (size_t v = 0; v < graph->value_count; v++)
        graph->values[v].key = v;
    for (size_t i = 0; i < graph->layer_count; i++) {
        dv_layer *layer = &graph->layers[i].layer;
        layer->key = i;
        for (size_t k = 0; k < layer->parameter_count; k++)
            layer->parameters[k].key = arrays++;
        arrays += layer->buffer_count;
    }
    graph->loss.layer.key = graph->layer_count;
}

/* Primitives and workspaces of all layers. */
static dv_status prepare_layers(dv_graph *graph, dv_error *error) {
    for (size_t i = 0; i <= graph->layer_count; i++) {
        dv_layer *layer = i < graph->layer_count ? &graph->layers[i].layer : &graph->loss.layer;
        layer->choices = &graph->choices;
        if (layer->kind->prepare)
            DV_TRY(layer->kind->prepare(layer, error));
    }
    return DV_OK;
}

static bool is_loss(const dv_graph *graph, dv_value value) {
    int producer = graph->values[value].producer;
    return producer != DV_INPUT && graph->layers[producer].layer.kind->loss != NULL;
}

/* Everything that was built leads to the loss, which is `output`. */
static dv_status check_uses(const dv_graph *graph, dv_value output, dv_error *error) {
    for (size_t i = 0; i < graph->layer_count; i++) {
        const dv_graph_layer *node = &graph->layers[i];
        if (graph->values[node->output].uses == 0 && node->output != output)
            return dv_fail(error, DV_ERROR_ARGUMENT, "graph: the output of %s is not used", node->layer.name);
        if (graph->values[node->output].uses > 0 && node->layer.kind->loss)
            return dv_fail(error, DV_ERROR_ARGUMENT, "graph: %s is a loss: no layer can take it", node->layer.name);
    }
    return DV_OK;
}

static dv_status check_loss(const dv_graph *graph, const dv_graph_layer *loss, dv_error *error) {
    if (loss->inputs[0] == graph->input)
        return dv_fail(error, DV_ERROR_ARGUMENT, "graph: the loss is taken of the images: put a layer between them");
    if (graph->values[loss->inputs[0]].uses > 1)
        return dv_fail(error, DV_ERROR_ARGUMENT, "graph: the logits are used by a layer");
    if (loss->layer.input_count != 1 || loss->layer.parameter_count > 0 || loss->layer.buffer_count > 0)
        return dv_fail(error, DV_ERROR_ARGUMENT, "graph: %s: a loss has one input, and no parameters",
                       loss->layer.name);
    return DV_OK;
}

/* The loss is the last layer, for everything else leads to it. It leaves the array: layers that stay make values. */
static void take_loss(dv_graph *graph) {
    graph->loss = graph->layers[--graph->layer_count];
    graph->logits = graph->loss.inputs[0];
    graph->value_count--;
}

static dv_status finish(dv_graph *graph, dv_value output, dv_error *error) {
    if (graph->finished)
        return dv_fail(error, DV_ERROR_ARGUMENT, "graph: it is finished already");
    if (output < 0 || (size_t)output >= graph->value_count)
        return dv_fail(error, DV_ERROR_ARGUMENT, "graph: its output is not a value of this graph");
    if (!is_loss(graph, output))
        output = dv_graph_softmax_cross_entropy(graph, "loss", output);
    if (output < 0)
        return graph->error.status;
    dv_graph_link(graph);
    DV_TRY(check_uses(graph, output, error));
    DV_TRY(check_loss(graph, &graph->layers[graph->layer_count - 1], error));
    take_loss(graph);
    dv_graph_link(graph);
    DV_TRY(check_names(graph, error));
    DV_TRY(dv_graph_fuse(graph, error));
    dv_graph_link(graph);
    give_keys(graph);
    DV_TRY(prepare_layers(graph, error));
    graph->finished = true;
    return DV_OK;
}

dv_status dv_graph_finish(dv_graph *graph, dv_value output, dv_error *error) {
    dv_error own = {0};
    DV_NEED(graph);
    dv_status status = graph->error.status == DV_OK ? finish(graph, output, &own) : graph->error.status;
    if (status == DV_OK)
        return DV_OK;
    (void)failed(graph, status, &own);
    return dv_fail(error, graph->error.status, "%s", graph->error.text);
}
