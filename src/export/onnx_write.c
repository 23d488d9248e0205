/* The file: messages of onnx.proto, by their field numbers. */
#include "export/onnx.h"

#include "base/file.h"
#include "base/status.h"
#include "export/protobuf.h"

#include <division/version.h>

#include <stdlib.h>

/* Opset 13 came with version 7 of the format. */
enum { IR_VERSION = 7, OPSET = 13, FLOAT = 1, PIECE = 4096 };

/* Field numbers of each message, and numbers of the kinds of attributes. */
enum {
    MODEL_IR = 1,
    MODEL_PRODUCER = 2,
    MODEL_PRODUCER_VERSION = 3,
    MODEL_GRAPH = 7,
    MODEL_OPSET = 8,
    MODEL_NOTE = 14
};
enum { OPSET_VERSION = 2 };
enum { NOTE_NAME = 1, NOTE_VALUE = 2 };
enum { GRAPH_NODE = 1, GRAPH_NAME = 2, GRAPH_ARRAY = 5, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12 };
enum { NODE_INPUT = 1, NODE_OUTPUT = 2, NODE_NAME = 3, NODE_OPERATION = 4, NODE_ATTRIBUTE = 5 };
enum { ATTRIBUTE_NAME = 1, ATTRIBUTE_F = 2, ATTRIBUTE_I = 3, ATTRIBUTE_INTS = 8, ATTRIBUTE_TYPE = 20 };
enum { TYPE_FLOAT = 1, TYPE_INT = 2, TYPE_INTS = 7 };
enum { TENSOR_DIM = 1, TENSOR_TYPE = 2, TENSOR_NAME = 8, TENSOR_RAW = 9 };
enum { VALUE_NAME = 1, VALUE_TYPE = 2, VALUE_TENSOR = 1, ELEMENT_TYPE = 1, SHAPE = 2, SHAPE_DIM = 1 };
enum { DIM_VALUE = 1, DIM_NAME = 2 };

/* ---- arrays -------------------------------------------------------------------------------- */

/* In pieces: each number times the scale of its channel, the first dimension. */
static void write_scaled(dv_protobuf *to, const dv_onnx_array *array) {
    float piece[PIECE];
    size_t inner = array->count / array->shape[0];
    for (size_t i = 0; i < array->count;) {
        size_t count = 0;
        for (; count < PIECE && i < array->count; count++, i++)
            piece[count] = (float)((double)array->data[i] * array->scale[i / inner]);
        dv_protobuf_raw(to, piece, count * sizeof *piece);
    }
}

static void write_array(dv_protobuf *to, const void *context) {
    const dv_onnx_array *array = context;
    size_t bytes = array->count * sizeof(float);
    for (int d = 0; d < array->rank; d++)
        dv_protobuf_integer(to, TENSOR_DIM, (int64_t)array->shape[d]);
    dv_protobuf_integer(to, TENSOR_TYPE, FLOAT);
    dv_protobuf_text(to, TENSOR_NAME, array->name);
    dv_protobuf_begin(to, TENSOR_RAW, bytes);
    if (array->scale != NULL && to->stream != NULL)
        write_scaled(to, array);
    else
        dv_protobuf_raw(to, array->data, bytes);
}

/* ---- nodes --------------------------------------------------------------------------------- */

static void write_attribute(dv_protobuf *to, const void *context) {
    static const int types[] = {
        [DV_ONNX_INTEGER] = TYPE_INT, [DV_ONNX_INTEGERS] = TYPE_INTS, [DV_ONNX_NUMBER] = TYPE_FLOAT};
    const dv_onnx_attribute *attribute = context;
    dv_protobuf_text(to, ATTRIBUTE_NAME, attribute->name);
    if (attribute->kind == DV_ONNX_NUMBER)
        dv_protobuf_float(to, ATTRIBUTE_F, attribute->number);
    if (attribute->kind == DV_ONNX_INTEGER)
        dv_protobuf_integer(to, ATTRIBUTE_I, attribute->integers[0]);
    for (size_t i = 0; i < attribute->count; i++)
        dv_protobuf_integer(to, ATTRIBUTE_INTS, attribute->integers[i]);
    dv_protobuf_integer(to, ATTRIBUTE_TYPE, types[attribute->kind]);
}

static void write_node(dv_protobuf *to, const void *context) {
    const dv_onnx_node *node = context;
    for (size_t i = 0; i < node->input_count; i++)
        dv_protobuf_text(to, NODE_INPUT, node->inputs[i]);
    dv_protobuf_text(to, NODE_OUTPUT, node->output);
    dv_protobuf_text(to, NODE_NAME, node->name);
    dv_protobuf_text(to, NODE_OPERATION, node->operation);
    for (size_t i = 0; i < node->attribute_count; i++)
        dv_protobuf_message(to, NODE_ATTRIBUTE, write_attribute, &node->attributes[i]);
}

/* ---- what comes in and out ----------------------------------------------------------------- */

static void write_batch(dv_protobuf *to, const void *context) {
    (void)context;
    dv_protobuf_text(to, DIM_NAME, "batch");
}

static void write_side(dv_protobuf *to, const void *context) {
    dv_protobuf_integer(to, DIM_VALUE, (int64_t) * (const size_t *)context);
}

static void write_shape(dv_protobuf *to, const void *context) {
    const dv_map *map = context;
    dv_protobuf_message(to, SHAPE_DIM, write_batch, NULL);
    dv_protobuf_message(to, SHAPE_DIM, write_side, &map->channels);
    for (int d = 0; d < map->rank; d++)
        dv_protobuf_message(to, SHAPE_DIM, write_side, &map->sides[d]);
}

static void write_tensor(dv_protobuf *to, const void *context) {
    dv_protobuf_integer(to, ELEMENT_TYPE, FLOAT);
    dv_protobuf_message(to, SHAPE, write_shape, context);
}

static void write_type(dv_protobuf *to, const void *context) {
    dv_protobuf_message(to, VALUE_TENSOR, write_tensor, context);
}

typedef struct end {
    const char *name;
    const dv_map *map;
} end;

static void write_end(dv_protobuf *to, const void *context) {
    const end *of = context;
    dv_protobuf_text(to, VALUE_NAME, of->name);
    dv_protobuf_message(to, VALUE_TYPE, write_type, of->map);
}

/* ---- the model ----------------------------------------------------------------------------- */

static void write_graph(dv_protobuf *to, const void *context) {
    const dv_onnx *onnx = context;
    const dv_graph *graph = onnx->graph;
    const end images = {"images", &graph->values[graph->input].map},
              logits = {"logits", &graph->values[graph->logits].map};
    for (size_t i = 0; i < onnx->node_count; i++)
        dv_protobuf_message(to, GRAPH_NODE, write_node, &onnx->nodes[i]);
    dv_protobuf_text(to, GRAPH_NAME, onnx->options->name != NULL ? onnx->options->name : "division");
    for (size_t i = 0; i < onnx->array_count; i++)
        dv_protobuf_message(to, GRAPH_ARRAY, write_array, &onnx->arrays[i]);
    dv_protobuf_message(to, GRAPH_INPUT, write_end, &images);
    dv_protobuf_message(to, GRAPH_OUTPUT, write_end, &logits);
}

static void write_opset(dv_protobuf *to, const void *context) {
    (void)context;
    dv_protobuf_integer(to, OPSET_VERSION, OPSET);
}

static void write_note(dv_protobuf *to, const void *context) {
    const dv_note *note = context;
    dv_protobuf_text(to, NOTE_NAME, note->name);
    dv_protobuf_text(to, NOTE_VALUE, note->value);
}

void dv_onnx_serialise(const dv_onnx *onnx, FILE *stream) {
    dv_protobuf to = {.stream = stream};
    dv_protobuf_integer(&to, MODEL_IR, IR_VERSION);
    dv_protobuf_text(&to, MODEL_PRODUCER, "division");
    dv_protobuf_text(&to, MODEL_PRODUCER_VERSION, dv_version());
    dv_protobuf_message(&to, MODEL_GRAPH, write_graph, onnx);
    dv_protobuf_message(&to, MODEL_OPSET, write_opset, NULL);
    for (size_t i = 0; i < onnx->options->note_count; i++)
        dv_protobuf_message(&to, MODEL_NOTE, write_note, &onnx->options->notes[i]);
}

static dv_status write_file(const dv_onnx *onnx, const char *path, dv_error *error) {
    dv_file file;
    DV_TRY(dv_file_begin(&file, path, error));
    dv_onnx_serialise(onnx, file.stream);
    return dv_file_commit(&file, error);
}

dv_onnx_options dv_onnx_options_default(void) {
    return (dv_onnx_options){.fold = 0};
}

dv_status dv_onnx_write(const char *path, const dv_run *run, const dv_onnx_options *options, dv_error *error) {
    const dv_onnx_options defaults = dv_onnx_options_default();
    DV_NEED(path);
    DV_NEED(run);
    options = options != NULL ? options : &defaults;
    if (options->notes == NULL && options->note_count > 0)
        return dv_fail(error, DV_ERROR_ARGUMENT, "onnx: %zu notes, and their pointer is NULL", options->note_count);
    dv_onnx onnx = {.run = run, .graph = run->plan->graph, .options = options};
    dv_status status = dv_onnx_translate(&onnx, error);
    if (status == DV_OK)
        status = write_file(&onnx, path, error);
    dv_onnx_free(&onnx);
    return status;
}
