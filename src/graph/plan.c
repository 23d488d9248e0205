/* Planning: from keepers to lifetimes, from lifetimes to offsets. Nothing is allocated but the plan itself. */
#include "graph/plan.h"

#include "base/sizes.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

dv_plan_options dv_plan_options_default(void) {
    return (dv_plan_options){.method = "division", .optimizer_slots = 1};
}

/* ---- pieces -------------------------------------------------------------------------------- */

/* Books `bytes` from moment `first` to moment `last`. DV_NO_PIECE for no bytes; what fails is found when the
 * pieces are placed. */
static int book(dv_plan *plan, size_t bytes, int first, int last) {
    if (bytes == 0)
        return DV_NO_PIECE;
    if (plan->piece_count == plan->piece_capacity) {
        size_t more = plan->piece_capacity ? 2 * plan->piece_capacity : 256;
        dv_piece *moved = realloc(plan->pieces, more * sizeof *moved);
        if (!moved)
            return DV_NO_PIECE;
        plan->pieces = moved;
        plan->piece_capacity = more;
    }
    plan->pieces[plan->piece_count] = (dv_piece){.bytes = bytes, .first = first, .last = last};
    return (int)plan->piece_count++;
}

static int book_permanent(dv_plan *plan, size_t bytes) {
    return book(plan, bytes, 0, dv_backward_moment(plan->graph, 0));
}

static void extend(dv_plan *plan, int piece, int last) {
    if (piece != DV_NO_PIECE && plan->pieces[piece].last < last)
        plan->pieces[piece].last = last;
}

/* ---- forward ------------------------------------------------------------------------------- */

/* How many times a layer takes the value. */
static int times_taken(const dv_graph_layer *node, dv_value value) {
    int times = 0;
    for (size_t k = 0; k < node->layer.input_count; k++)
        times += node->inputs[k] == value;
    return times;
}

/* The layer's output may lie where its first input is, if nothing needs that any more. */
static bool can_run_in_place(const dv_plan *plan, int layer) {
    const dv_graph_layer *node = &plan->graph->layers[layer];
    const dv_graph_value *input = &plan->graph->values[node->inputs[0]];
    return node->layer.kind->in_place && !plan->guard.apart && input->last_user == layer &&
           times_taken(node, node->inputs[0]) == 1 && plan->values[node->inputs[0]].keeper != DV_KEEP_EXACT &&
           dv_map_bytes(&input->map) == dv_map_bytes(&node->layer.output);
}

/* Books the scratch with which a value is recomputed. What a batch norm adds is there before it uses its own, and is
 * asked for whenever the value is: if that is recomputed too, they share one, and so does a whole chain of them. Not so
 * if x is recomputed as well, which it is into the scratch, and must not be in it. */
static void plan_scratch(dv_plan *plan, dv_value value) {
    dv_value_plan *v = &plan->values[value];
    const dv_graph_layer *node = &plan->graph->layers[plan->graph->values[value].producer];
    size_t bytes = node->layer.recompute_bytes;
    int added = DV_NO_PIECE;
    if (!plan->guard.apart && node->layer.kind == &dv_batch_norm && node->layer.input_count == 2 &&
        plan->values[node->inputs[0]].keeper != DV_KEEP_RECOMPUTED)
        added = plan->values[node->inputs[1]].scratch;
    v->scratch = added == DV_NO_PIECE ? book(plan, bytes, v->numbers_first, v->numbers_last) : added;
    if (added != DV_NO_PIECE)
        plan->pieces[added].bytes = dv_larger(plan->pieces[added].bytes, bytes);
}

/* Books what is left of a value when its memory is needed for others. */
static dv_status plan_keeping(dv_plan *plan, dv_value value, int moment, dv_error *error) {
    const dv_graph_value *made = &plan->graph->values[value];
    dv_value_plan *v = &plan->values[value];
    if (v->keeper == DV_KEEP_PACKED) {
        size_t bytes;
        DV_TRY(dv_codec_packed_bytes(v->codec, &made->map, &bytes, error));
        v->packed = book(plan, bytes, moment, v->numbers_last);
        v->kept_bytes += bytes;
    }
    if (v->keeper == DV_KEEP_RECOMPUTED)
        plan_scratch(plan, value);
    if (v->keeper == DV_KEEP_EXACT)
        v->kept_bytes += dv_map_bytes(&made->map);
    if (v->bits_last >= 0 && v->keeper != DV_KEEP_EXACT) {
        size_t bytes = made->map.images * dv_bits_stride(&made->map);
        v->bits = book(plan, bytes, moment, v->bits_last);
        v->kept_bytes += bytes;
    }
    return DV_OK;
}

/* The last moment at which a value itself must be there. */
static int last_moment(const dv_plan *plan, dv_value value, int moment) {
    const dv_value_plan *v = &plan->values[value];
    int last = plan->graph->values[value].last_user;
    last = last < moment ? moment : last;
    if (value == plan->graph->logits)
        last = (int)plan->graph->layer_count;
    if (v->keeper == DV_KEEP_EXACT) {
        last = v->numbers_last > last ? v->numbers_last : last;
        last = v->bits_last > last ? v->bits_last : last;
    }
    return last;
}

static dv_status plan_value(dv_plan *plan, dv_value value, int moment, int in_place_of, dv_error *error) {
    dv_value_plan *v = &plan->values[value];
    DV_TRY(plan_keeping(plan, value, moment, error));
    int last = last_moment(plan, value, moment);
    if (in_place_of < 0) {
        v->data = book(plan, dv_map_bytes(&plan->graph->values[value].map), moment, last);
    } else {
        v->data = plan->values[in_place_of].data;
        extend(plan, v->data, last);
    }
    return DV_OK;
}

static dv_status plan_forward(dv_plan *plan, dv_error *error) {
    dv_graph *graph = plan->graph;
    DV_TRY(plan_value(plan, graph->input, 0, -1, error));
    for (int i = 0; i < (int)graph->layer_count; i++) {
        const dv_graph_layer *node = &graph->layers[i];
        dv_layer_plan *layer = &plan->layers[i];
        DV_TRY(plan_value(plan, node->output, i, can_run_in_place(plan, i) ? node->inputs[0] : -1, error));
        layer->forward_workspace = book(plan, node->layer.forward_workspace_bytes, i, i);
        int until = layer->backward ? dv_backward_moment(graph, i) : i;
        layer->saved = book(plan, node->layer.saved_bytes, i, until);
    }
    return DV_OK;
}

/* ---- backward ------------------------------------------------------------------------------ */

/* The input of layer `i` whose gradient can take over the memory of the output's: the layer must be the first
 * to contribute to it, and contribute once: the second time it would add what it has just overwritten. */
static int takes_over(const dv_plan *plan, int i) {
    const dv_graph_layer *node = &plan->graph->layers[i];
    for (int k = 0; !plan->guard.apart && k < (int)node->layer.input_count && k < 32; k++) {
        dv_value input = node->inputs[k];
        if ((node->layer.kind->diff_in_place >> k & 1) && plan->values[input].wants_diff &&
            plan->graph->values[input].last_user == i && times_taken(node, input) == 1 &&
            plan->values[input].diff == DV_NO_PIECE &&
            dv_map_bytes(&plan->graph->values[input].map) == dv_map_bytes(&node->layer.output))
            return k;
    }
    return -1;
}

static void plan_backward(dv_plan *plan) {
    const dv_graph *graph = plan->graph;
    int end = (int)graph->layer_count;
    dv_value_plan *logits = &plan->values[graph->logits];
    logits->diff = book(plan, dv_map_bytes(&graph->values[graph->logits].map), end,
                        dv_backward_moment(graph, graph->values[graph->logits].producer));
    for (int i = end - 1; i >= 0; i--) {
        const dv_graph_layer *node = &graph->layers[i];
        dv_layer_plan *layer = &plan->layers[i];
        if (!layer->backward)
            continue;
        int moment = dv_backward_moment(graph, i);
        layer->backward_workspace = book(plan, node->layer.backward_workspace_bytes, moment, moment);
        layer->diff_in_place = takes_over(plan, i);
        for (int k = 0; k < (int)node->layer.input_count; k++) {
            dv_value_plan *v = &plan->values[node->inputs[k]];
            if (!v->wants_diff || v->diff != DV_NO_PIECE)
                continue;
            int until = dv_backward_moment(graph, graph->values[node->inputs[k]].producer);
            if (k == layer->diff_in_place) {
                v->diff = plan->values[node->output].diff;
                extend(plan, v->diff, until);
            } else {
                v->diff = book(plan, dv_map_bytes(&graph->values[node->inputs[k]].map), moment, until);
            }
        }
    }
}

/* ---- what is permanent --------------------------------------------------------------------- */

/* A parameter, and in training its gradient, the optimizer's arrays and its average. */
static void plan_parameter(dv_plan *plan, dv_layer_plan *layer, size_t k, size_t bytes) {
    dv_plan_summary *totals = &plan->totals;
    size_t slots = bytes * (size_t)plan->options.optimizer_slots, average = plan->options.average ? bytes : 0;
    layer->data[k] = book_permanent(plan, bytes);
    totals->parameters += bytes;
    if (plan->options.inference)
        return;
    layer->gradient[k] = book_permanent(plan, bytes);
    totals->gradients += bytes;
    layer->optimizer[k] = book_permanent(plan, slots);
    layer->average[k] = book_permanent(plan, average);
    totals->optimizer += slots + average;
}

static void plan_buffer(dv_plan *plan, dv_layer_plan *layer, size_t k, size_t bytes) {
    size_t average = plan->options.average && !plan->options.inference ? bytes : 0;
    layer->buffers[k] = book_permanent(plan, bytes);
    layer->buffer_average[k] = book_permanent(plan, average);
    plan->totals.buffers += bytes;
    plan->totals.optimizer += average;
}

static void plan_permanent(dv_plan *plan) {
    const dv_graph *graph = plan->graph;
    plan->labels = book_permanent(plan, graph->batch * sizeof(int32_t));
    plan->second_labels = book_permanent(plan, graph->batch * sizeof(int32_t));
    plan->label_weights = book_permanent(plan, graph->batch * sizeof(float));
    for (size_t i = 0; i < graph->layer_count; i++) {
        const dv_layer *layer = &graph->layers[i].layer;
        for (size_t k = 0; k < layer->parameter_count; k++)
            plan_parameter(plan, &plan->layers[i], k, layer->parameters[k].count * sizeof(float));
        for (size_t k = 0; k < layer->buffer_count; k++)
            plan_buffer(plan, &plan->layers[i], k, layer->buffers[k].count * sizeof(float));
    }
}

/* ---- the plan ------------------------------------------------------------------------------ */

static const char *keeper_text(const dv_value_plan *v) {
    switch (v->keeper) {
    case DV_KEEP_EXACT:
        return "exact";
    case DV_KEEP_RECOMPUTED:
        return v->bits == DV_NO_PIECE ? "recomputed" : "recomputed + bits";
    case DV_KEEP_PACKED:
        return v->bits == DV_NO_PIECE ? "packed" : "packed + bits";
    default:
        return v->bits == DV_NO_PIECE ? "-" : "bits";
    }
}

/* What is kept of a value, by whom it is made. */
static dv_plan_row row_of(const dv_plan *plan, dv_value value, const char *layer, const char *kind, size_t saved) {
    const dv_map *map = &plan->graph->values[value].map;
    const dv_value_plan *v = &plan->values[value];
    return (dv_plan_row){
        .layer = layer,
        .kind = kind,
        .output = *map,
        .keeper = keeper_text(v),
        .kept_bytes = v->kept_bytes,
        .saved_bytes = saved,
        .bits_per_element = 8.0 * (double)v->kept_bytes / (double)dv_map_elements(map),
    };
}

static void fill_rows(dv_plan *plan) {
    const dv_graph *graph = plan->graph;
    plan->rows[0] = row_of(plan, graph->input, "input", "images", 0);
    for (size_t i = 0; i < graph->layer_count; i++) {
        const dv_graph_layer *node = &graph->layers[i];
        size_t saved = plan->layers[i].backward ? node->layer.saved_bytes : 0;
        plan->rows[i + 1] = row_of(plan, node->output, node->layer.name, node->layer.kind->name, saved);
    }
    dv_plan_summary *t = &plan->totals;
    for (size_t i = 0; i <= graph->layer_count; i++)
        t->activations += plan->rows[i].kept_bytes + plan->rows[i].saved_bytes;
    t->workspace = t->planned - t->activations - t->parameters - t->gradients - t->optimizer - t->buffers;
}

static bool allocate(dv_plan *plan) {
    const dv_graph *graph = plan->graph;
    plan->values = calloc(graph->value_count + 1, sizeof *plan->values);
    plan->layers = calloc(graph->layer_count + 1, sizeof *plan->layers);
    plan->rows = calloc(graph->layer_count + 1, sizeof *plan->rows);
    if (!plan->values || !plan->layers || !plan->rows)
        return false;
    for (size_t v = 0; v < graph->value_count; v++)
        plan->values[v] = (dv_value_plan){.data = DV_NO_PIECE,
                                          .packed = DV_NO_PIECE,
                                          .bits = DV_NO_PIECE,
                                          .scratch = DV_NO_PIECE,
                                          .diff = DV_NO_PIECE};
    for (size_t i = 0; i < graph->layer_count; i++) {
        plan->layers[i] = (dv_layer_plan){.diff_in_place = -1};
        memset(plan->layers[i].data, -1, sizeof plan->layers[i].data); /* DV_NO_PIECE */
        memset(plan->layers[i].gradient, -1, sizeof plan->layers[i].gradient);
        memset(plan->layers[i].optimizer, -1, sizeof plan->layers[i].optimizer);
        memset(plan->layers[i].buffers, -1, sizeof plan->layers[i].buffers);
        memset(plan->layers[i].average, -1, sizeof plan->layers[i].average);
        memset(plan->layers[i].buffer_average, -1, sizeof plan->layers[i].buffer_average);
        plan->layers[i].saved = plan->layers[i].forward_workspace = plan->layers[i].backward_workspace = DV_NO_PIECE;
    }
    return true;
}

/* Primitives and workspaces of all layers; made once per graph. */
static dv_status prepare_layers(dv_graph *graph, dv_error *error) {
    for (size_t i = 0; i < graph->layer_count; i++) {
        dv_layer *layer = &graph->layers[i].layer;
        if (layer->kind->prepare && !layer->prepared)
            DV_TRY(layer->kind->prepare(layer, error));
    }
    return DV_OK;
}

/* Offsets: as they would be without guards, for the bytes that the plan tells, and then with them. */
static dv_status place(dv_plan *plan, dv_error *error) {
    size_t zone = dv_guard_zone_bytes(&plan->guard);
    bool placed = dv_place(plan->pieces, plan->piece_count, 0, &plan->totals.planned);
    plan->arena_bytes = plan->totals.planned;
    if (plan->guard.apart)
        dv_place_apart(plan->pieces, plan->piece_count, zone, &plan->arena_bytes);
    else if (zone)
        placed = placed && dv_place(plan->pieces, plan->piece_count, zone, &plan->arena_bytes);
    return placed ? DV_OK : dv_fail(error, DV_ERROR_MEMORY, "plan: no memory");
}

static dv_status make(dv_plan *plan, dv_error *error) {
    DV_TRY(dv_method_parse(plan->options.method, &plan->method, error));
    DV_TRY(prepare_layers(plan->graph, error));
    if (!allocate(plan))
        return dv_fail(error, DV_ERROR_MEMORY, "plan: no memory");
    dv_plan_needs(plan);
    plan_permanent(plan);
    DV_TRY(plan_forward(plan, error));
    if (!plan->options.inference)
        plan_backward(plan);
    DV_TRY(place(plan, error));
    fill_rows(plan);
    return DV_OK;
}

dv_status dv_plan_new(dv_graph *graph, const dv_plan_options *options, dv_plan **plan, dv_error *error) {
    dv_guard_options guard = dv_guard_options_default();
    return dv_plan_new_guarded(graph, options, &guard, plan, error);
}

dv_status dv_plan_new_guarded(dv_graph *graph, const dv_plan_options *options, const dv_guard_options *guard,
                              dv_plan **plan, dv_error *error) {
    if (!graph || !graph->finished || !options || !options->method || !plan)
        return dv_fail(error, DV_ERROR_ARGUMENT, "plan: the graph is not finished, or an argument is NULL");
    if (options->optimizer_slots < 0 || options->optimizer_slots > 8)
        return dv_fail(error, DV_ERROR_OPTION, "plan: %d optimizer slots: must be 0 to 8", options->optimizer_slots);
    dv_plan *made = calloc(1, sizeof *made);
    if (!made)
        return dv_fail(error, DV_ERROR_MEMORY, "plan: no memory");
    made->holders = 1;
    made->graph = graph;
    atomic_fetch_add(&graph->holders, 1);
    made->options = *options;
    made->guard = *guard;
    dv_status status = make(made, error);
    if (status == DV_OK)
        *plan = made;
    else
        dv_plan_free(made);
    return status;
}

void dv_plan_free(dv_plan *plan) {
    if (!plan || atomic_fetch_sub(&plan->holders, 1) > 1)
        return;
    dv_graph_free(plan->graph);
    free(plan->pieces);
    free(plan->values);
    free(plan->layers);
    free(plan->rows);
    free(plan);
}

dv_plan_summary dv_plan_totals(const dv_plan *plan) {
    return plan->totals;
}

const dv_plan_row *dv_plan_row_at(const dv_plan *plan, size_t index) {
    return index <= plan->graph->layer_count ? &plan->rows[index] : NULL;
}
