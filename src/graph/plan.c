/* Planning: from keepers to lifetimes, from lifetimes to offsets. Nothing is allocated but the plan itself. */
#include "graph/plan.h"

#include "base/sizes.h"
#include "base/status.h"
#include "optimizer/kind.h"

#include <stdlib.h>
#include <string.h>

/* On a disk, on most machines: /tmp is often memory. */
#define DEFAULT_SPILL_FOLDER "/var/tmp"

dv_plan_options dv_plan_options_default(void) {
    return (dv_plan_options){.method = "division", .optimizer = "sgd"};
}

/* ---- pieces -------------------------------------------------------------------------------- */

int dv_plan_book(dv_plan *plan, size_t bytes, int first, int last) {
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

int dv_plan_book_pool(dv_plan *plan, size_t bytes, int first, int last) {
    if (plan->pool == DV_NO_PIECE)
        return plan->pool = dv_plan_book(plan, bytes, first, last);
    dv_piece *pool = &plan->pieces[plan->pool];
    pool->bytes += bytes;
    pool->first = first < pool->first ? first : pool->first;
    pool->last = last > pool->last ? last : pool->last;
    return plan->pool;
}

static int book_permanent(dv_plan *plan, size_t bytes) {
    return dv_plan_book(plan, bytes, 0, (int)plan->operation_count - 1);
}

static void extend(dv_plan *plan, int piece, int last) {
    if (piece != DV_NO_PIECE && plan->pieces[piece].last < last)
        plan->pieces[piece].last = last;
}

/* ---- positions ----------------------------------------------------------------------------- */

static int later(int a, int b) {
    return a > b ? a : b;
}

static const dv_segment *segment_ended_by(const dv_plan *plan, int layer) {
    for (size_t s = 0; s < plan->segment_count; s++)
        if (plan->segments[s].last == layer)
            return &plan->segments[s];
    return NULL;
}

int dv_first_read(const dv_plan *plan, dv_readers readers) {
    const dv_segment *segment = segment_ended_by(plan, readers.first);
    for (int i = segment ? segment->first : readers.first; i < readers.first; i++)
        if (plan->layers[i].replay_at >= 0)
            return plan->layers[i].replay_at;
    return plan->layers[readers.first].backward_at;
}

int dv_last_read(const dv_plan *plan, dv_readers readers) {
    return dv_is_read(readers) ? plan->layers[readers.last].backward_at : -1;
}

int dv_times_taken(const dv_graph_layer *node, dv_value value) {
    int times = 0;
    for (size_t k = 0; k < node->layer.input_count; k++)
        times += node->inputs[k] == value;
    return times;
}

/* ---- forward ------------------------------------------------------------------------------- */

/* The layer's output may lie where its first input is, if nothing needs that any more. */
static bool can_run_in_place(const dv_plan *plan, int layer) {
    const dv_graph_layer *node = &plan->graph->layers[layer];
    const dv_graph_value *input = &plan->graph->values[node->inputs[0]];
    const dv_value_plan *v = &plan->values[node->inputs[0]];
    const dv_keeper *keeper = dv_keeper_in_memory(v);
    bool held = keeper && keeper->holds_until;
    return node->layer.kind->in_place && !plan->guard.apart && input->last_user == layer &&
           dv_times_taken(node, node->inputs[0]) == 1 && !held &&
           dv_map_bytes(&input->map) == dv_map_bytes(&node->layer.output);
}

/* Books what is left of a value when its memory is needed for others. */
static dv_status plan_keeping(dv_plan *plan, dv_value value, int made, dv_error *error) {
    const dv_value_plan *v = &plan->values[value];
    if (v->keeper && v->keeper->book)
        DV_TRY(v->keeper->book(plan, value, made, error));
    if (v->mask_keeper == &dv_keep_mask)
        DV_TRY(v->mask_keeper->book(plan, value, made, error));
    return DV_OK;
}

/* The last position at which the value itself must be there. */
static int data_until(const dv_plan *plan, dv_value value, int made) {
    const dv_value_plan *v = &plan->values[value];
    int user = plan->graph->values[value].last_user;
    int last = user < 0 ? made : later(plan->layers[user].forward_at, made);
    if (value == plan->graph->logits)
        last = plan->loss_at;
    const dv_keeper *keeper = dv_keeper_in_memory(v);
    return keeper && keeper->holds_until ? later(last, keeper->holds_until(plan, value)) : last;
}

/* Books a value's memory from `made` to `last`, or lengthens the life of the piece that it takes over. */
static int plan_data(dv_plan *plan, dv_value value, int made, int last, int taken_over) {
    if (taken_over == DV_NO_PIECE)
        return dv_plan_book(plan, dv_map_bytes(&plan->graph->values[value].map), made, last);
    extend(plan, taken_over, last);
    return taken_over;
}

/* Its layer runs again before backward, and only then is anything kept of it. */
static bool is_replayed(const dv_plan *plan, dv_value value) {
    int producer = plan->graph->values[value].producer;
    return producer != DV_INPUT && plan->layers[producer].replay_at >= 0;
}

static dv_status plan_value(dv_plan *plan, dv_value value, int made, int taken_over, dv_error *error) {
    if (!is_replayed(plan, value))
        DV_TRY(plan_keeping(plan, value, made, error));
    int producer = plan->graph->values[value].producer;
    if (producer == DV_INPUT || plan->layers[producer].run_by < 0)
        plan->values[value].data = plan_data(plan, value, made, data_until(plan, value, made), taken_over);
    return DV_OK;
}

/* The memory that the output of layer `i` takes over: that of its first input or, if it makes that by slices, of the
 * second. */
static int output_over(const dv_plan *plan, int i) {
    const dv_value *inputs = plan->graph->layers[i].inputs;
    if (dv_plan_runs_before(plan, i))
        return plan->guard.apart ? DV_NO_PIECE : plan->values[inputs[1]].data;
    return can_run_in_place(plan, i) ? plan->values[inputs[0]].data : DV_NO_PIECE;
}

/* What layer `i` works in: the input that it makes by slices lies behind its own workspace, and then comes that of the
 * layer before. A layer that another runs has none of its own. */
static size_t forward_workspace(const dv_plan *plan, int i) {
    const dv_graph_layer *node = &plan->graph->layers[i];
    const dv_value_plan *input = &plan->values[node->inputs[0]];
    size_t bytes = node->layer.forward_workspace_bytes;
    if (plan->layers[i].run_by >= 0)
        return 0;
    if (dv_plan_runs_before(plan, i))
        return bytes + node->layer.input_slice_bytes + plan->graph->layers[i - 1].layer.forward_workspace_bytes;
    return bytes + (input->keeper && input->stored_by == i ? node->layer.store_input_bytes : 0);
}

static dv_status plan_forward(dv_plan *plan, dv_error *error) {
    const dv_graph *graph = plan->graph;
    DV_TRY(plan_value(plan, graph->input, 0, DV_NO_PIECE, error));
    for (int i = 0; i < (int)graph->layer_count; i++) {
        const dv_graph_layer *node = &graph->layers[i];
        dv_layer_plan *layer = &plan->layers[i];
        int at = layer->forward_at, until = layer->backward && layer->replay_at < 0 ? layer->backward_at : at;
        DV_TRY(plan_value(plan, node->output, at, output_over(plan, i), error));
        layer->forward_workspace = dv_plan_book(plan, forward_workspace(plan, i), at, at);
        layer->saved = dv_plan_book(plan, dv_plan_saved_bytes(plan, i), at, until);
    }
    return DV_OK;
}

/* ---- replays ------------------------------------------------------------------------------- */

/* The last position at which backward or a replay reads a value that was replayed. */
static int again_until(const dv_plan *plan, dv_value value, int made) {
    const dv_value_plan *v = &plan->values[value];
    int last = later(made, dv_last_read(plan, v->numbers_read));
    for (int i = plan->graph->values[value].producer + 1; i <= plan->graph->values[value].last_user; i++)
        if (dv_times_taken(&plan->graph->layers[i], value) > 0)
            last = later(last, plan->layers[i].replay_at);
    return v->mask_keeper == v->keeper ? later(last, dv_last_read(plan, v->mask_read)) : last;
}

/* A replayed layer may work in the memory of an input that was replayed for it alone. */
static bool can_replay_in_place(const dv_plan *plan, int layer) {
    dv_value input = plan->graph->layers[layer].inputs[0];
    const dv_value_plan *v = &plan->values[input];
    return v->again != DV_NO_PIECE && !dv_is_read(v->numbers_read) &&
           plan->pieces[v->again].last == plan->layers[layer].replay_at && can_run_in_place(plan, layer);
}

static dv_status plan_replay(dv_plan *plan, int i, dv_error *error) {
    const dv_graph_layer *node = &plan->graph->layers[i];
    dv_layer_plan *layer = &plan->layers[i];
    dv_value_plan *v = &plan->values[node->output];
    int at = layer->replay_at;
    DV_TRY(plan_keeping(plan, node->output, at, error));
    v->again = plan_data(plan, node->output, at, again_until(plan, node->output, at),
                         can_replay_in_place(plan, i) ? plan->values[node->inputs[0]].again : DV_NO_PIECE);
    layer->replay_workspace = dv_plan_book(plan, node->layer.forward_workspace_bytes, at, at);
    layer->saved_again = dv_plan_book(plan, dv_plan_saved_bytes(plan, i), at, later(at, layer->backward_at));
    return DV_OK;
}

static dv_status plan_replays(dv_plan *plan, dv_error *error) {
    for (size_t p = 0; p < plan->operation_count; p++)
        if (plan->operations[p].kind == DV_REPLAY)
            DV_TRY(plan_replay(plan, plan->operations[p].index, error));
    return DV_OK;
}

/* ---- backward ------------------------------------------------------------------------------ */

/* The input of layer `i` whose gradient can take over the memory of the output's: the layer must be the first
 * to contribute to it, and contribute once: the second time it would add what it has just overwritten. What is added to
 * a norm's output comes last, and takes over before what is normalised: its gradient is the output's. */
static int takes_over(const dv_plan *plan, int i) {
    const dv_graph_layer *node = &plan->graph->layers[i];
    for (int k = (int)dv_smaller(node->layer.input_count, 32); !plan->guard.apart && k-- > 0;) {
        dv_value input = node->inputs[k];
        if ((node->layer.kind->diff_in_place >> k & 1) && plan->values[input].wants_diff &&
            plan->graph->values[input].last_user == i && dv_times_taken(node, input) == 1 &&
            plan->values[input].diff == DV_NO_PIECE &&
            dv_map_bytes(&plan->graph->values[input].map) == dv_map_bytes(&node->layer.output))
            return k;
    }
    return -1;
}

/* Books the gradients that the backward of layer `i` is the first to write. */
static void plan_diffs(dv_plan *plan, int i) {
    const dv_graph *graph = plan->graph;
    const dv_graph_layer *node = &graph->layers[i];
    for (int k = 0; k < (int)node->layer.input_count; k++) {
        dv_value input = node->inputs[k];
        dv_value_plan *v = &plan->values[input];
        if (!v->wants_diff || v->diff != DV_NO_PIECE || (k == 0 && dv_plan_slices(plan, i)))
            continue;
        bool in_place = k == plan->layers[i].diff_in_place;
        v->diff =
            plan_data(plan, input, plan->layers[i].backward_at, plan->layers[graph->values[input].producer].backward_at,
                      in_place ? plan->values[node->output].diff : DV_NO_PIECE);
    }
}

/* Of the layer before, if its output's gradient is made by slices: until then what they are made of is there. */
static void plan_slices(dv_plan *plan, int i) {
    if (!dv_plan_slices(plan, i))
        return;
    int until = plan->layers[i - 1].backward_at;
    extend(plan, plan->values[plan->graph->layers[i].output].diff, until);
    plan->layers[i].diff_state =
        dv_plan_book(plan, plan->graph->layers[i].layer.diff_state_bytes, plan->layers[i].backward_at, until);
}

static size_t backward_workspace(const dv_plan *plan, int i) {
    const dv_graph_layer *layers = plan->graph->layers;
    int by = plan->layers[i].sliced_by;
    size_t more = by < 0 ? 0 : layers[i].layer.diff_slice_bytes + layers[by].layer.diff_images_bytes;
    return layers[i].layer.backward_workspace_bytes + more;
}

static void plan_backward(dv_plan *plan) {
    const dv_graph *graph = plan->graph;
    const dv_graph_value *logits = &graph->values[graph->logits];
    plan->values[graph->logits].diff = dv_plan_book(plan, dv_map_bytes(&logits->map), plan->loss_at,
                                                    later(plan->loss_at, plan->layers[logits->producer].backward_at));
    for (int i = (int)graph->layer_count - 1; i >= 0; i--) {
        dv_layer_plan *layer = &plan->layers[i];
        if (!layer->backward)
            continue;
        layer->backward_workspace =
            dv_plan_book(plan, backward_workspace(plan, i), layer->backward_at, layer->backward_at);
        layer->diff_in_place = takes_over(plan, i);
        plan_diffs(plan, i);
        plan_slices(plan, i);
    }
}

/* ---- what is permanent --------------------------------------------------------------------- */

/* A parameter, and if it is trained its gradient, the optimizer's arrays and its average. */
static void plan_parameter(dv_plan *plan, dv_layer_plan *layer, size_t k, size_t bytes) {
    dv_plan_summary *totals = &plan->totals;
    size_t slots = bytes * dv_optimizer_slot_count(&plan->optimizer), average = plan->options.average ? bytes : 0;
    layer->data[k] = book_permanent(plan, bytes);
    totals->parameters += bytes;
    if (!(layer->trained >> k & 1))
        return;
    if (layer->bucket >= 0) {
        layer->gradient[k] = plan->buckets[layer->bucket].piece;
    } else if (layer->update_at >= 0) {
        layer->gradient[k] = dv_plan_book(plan, bytes, layer->backward_at, layer->update_at);
    } else {
        layer->gradient[k] = book_permanent(plan, bytes);
        totals->gradients += bytes;
    }
    layer->optimizer[k] = book_permanent(plan, slots);
    layer->average[k] = book_permanent(plan, average);
    totals->optimizer += slots + average;
}

/* A running statistic, and its average if it moves. */
static void plan_buffer(dv_plan *plan, dv_layer_plan *layer, size_t k, size_t bytes) {
    size_t average = plan->options.average && layer->trained ? bytes : 0;
    layer->buffers[k] = book_permanent(plan, bytes);
    layer->buffer_average[k] = book_permanent(plan, average);
    plan->totals.buffers += bytes;
    plan->totals.optimizer += average;
}

/* What the loss compares with, and its workspace. */
static void plan_loss(dv_plan *plan) {
    const dv_layer *loss = &plan->graph->loss.layer;
    size_t batch = plan->graph->batch, mixed = loss->mixes_labels ? batch : 0;
    plan->targets = book_permanent(plan, batch * loss->target_bytes);
    plan->second_labels = book_permanent(plan, mixed * sizeof(int32_t));
    plan->label_weights = book_permanent(plan, mixed * sizeof(float));
    plan->loss_workspace = dv_plan_book(plan, loss->forward_workspace_bytes, plan->loss_at, plan->loss_at);
}

static void plan_permanent(dv_plan *plan) {
    const dv_graph *graph = plan->graph;
    plan_loss(plan);
    bool learns = plan->method.kind->state_count && !plan->options.inference;
    plan->state_count = learns ? plan->method.kind->state_count(plan) : 0;
    plan->state = book_permanent(plan, plan->state_count * sizeof(float));
    plan->totals.buffers += plan->state_count * sizeof(float);
    for (size_t i = 0; i < graph->layer_count; i++) {
        const dv_layer *layer = &graph->layers[i].layer;
        for (size_t k = 0; k < layer->parameter_count; k++)
            plan_parameter(plan, &plan->layers[i], k, layer->parameters[k].count * sizeof(float));
        for (size_t k = 0; k < layer->buffer_count; k++)
            plan_buffer(plan, &plan->layers[i], k, layer->buffers[k].count * sizeof(float));
    }
}

/* ---- the plan ------------------------------------------------------------------------------ */

static bool allocate(dv_plan *plan) {
    const dv_graph *graph = plan->graph;
    plan->values = calloc(graph->value_count + 1, sizeof *plan->values);
    plan->layers = calloc(graph->layer_count + 1, sizeof *plan->layers);
    plan->rows = calloc(graph->layer_count + 1, sizeof *plan->rows);
    plan->keeper_texts = calloc(graph->layer_count + 1, sizeof *plan->keeper_texts);
    plan->segments = calloc(graph->layer_count + 1, sizeof *plan->segments);
    if (!plan->values || !plan->layers || !plan->rows || !plan->keeper_texts || !plan->segments)
        return false;
    for (size_t v = 0; v < graph->value_count; v++)
        plan->values[v] = (dv_value_plan){.data = DV_NO_PIECE,
                                          .again = DV_NO_PIECE,
                                          .packed = DV_NO_PIECE,
                                          .mask = DV_NO_PIECE,
                                          .recompute_workspace = DV_NO_PIECE,
                                          .diff = DV_NO_PIECE,
                                          .written_at = -1,
                                          .read_at = -1};
    for (size_t i = 0; i < graph->layer_count; i++) {
        plan->layers[i] = (dv_layer_plan){.forward_at = -1,
                                          .replay_at = -1,
                                          .backward_at = -1,
                                          .update_at = -1,
                                          .saved = DV_NO_PIECE,
                                          .forward_workspace = DV_NO_PIECE,
                                          .backward_workspace = DV_NO_PIECE,
                                          .saved_again = DV_NO_PIECE,
                                          .replay_workspace = DV_NO_PIECE,
                                          .diff_in_place = -1,
                                          .run_by = -1,
                                          .sliced_by = -1,
                                          .diff_state = DV_NO_PIECE};
        memset(plan->layers[i].data, -1, sizeof plan->layers[i].data); /* DV_NO_PIECE */
        memset(plan->layers[i].gradient, -1, sizeof plan->layers[i].gradient);
        memset(plan->layers[i].optimizer, -1, sizeof plan->layers[i].optimizer);
        memset(plan->layers[i].buffers, -1, sizeof plan->layers[i].buffers);
        memset(plan->layers[i].average, -1, sizeof plan->layers[i].average);
        memset(plan->layers[i].buffer_average, -1, sizeof plan->layers[i].buffer_average);
    }
    return true;
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

/* The schedule, and all pieces. */
static dv_status book(dv_plan *plan, dv_error *error) {
    DV_TRY(dv_schedule_make(plan, error));
    dv_buckets_book(plan);
    plan_permanent(plan);
    DV_TRY(plan_forward(plan, error));
    if (!plan->options.inference) {
        DV_TRY(plan_replays(plan, error));
        plan_backward(plan);
    }
    plan->spill_memory = book_permanent(plan, dv_spill_plan_bytes(plan));
    return DV_OK;
}

/* What values and layers were before they were booked, but for who runs whom. */
static void unbook(dv_plan *plan, const dv_value_plan *values, const dv_layer_plan *layers) {
    const dv_graph *graph = plan->graph;
    memcpy(plan->values, values, graph->value_count * sizeof *values);
    for (size_t i = 0; i < graph->layer_count; i++) {
        int run_by = plan->layers[i].run_by;
        plan->layers[i] = layers[i];
        plan->layers[i].run_by = run_by;
    }
    free(plan->operations);
    free(plan->buckets);
    plan->operations = NULL;
    plan->buckets = NULL;
    plan->piece_count = plan->operation_count = plan->bucket_count = plan->file_bytes = 0;
    plan->pool = DV_NO_PIECE;
    plan->totals = (dv_plan_summary){0};
}

/* Books twice where that shows layers that are better run twice. */
static dv_status book_well(dv_plan *plan, dv_error *error) {
    const dv_graph *graph = plan->graph;
    dv_value_plan *values = malloc((graph->value_count + 1) * sizeof *values);
    dv_layer_plan *layers = malloc((graph->layer_count + 1) * sizeof *layers);
    dv_status status = values && layers ? DV_OK : dv_fail(error, DV_ERROR_MEMORY, "plan: no memory");
    bool twice = false;
    if (status == DV_OK) {
        memcpy(values, plan->values, graph->value_count * sizeof *values);
        memcpy(layers, plan->layers, graph->layer_count * sizeof *layers);
        status = book(plan, error);
    }
    if (status == DV_OK)
        status = dv_plan_run_twice(plan, &twice, error);
    if (status == DV_OK && twice) {
        unbook(plan, values, layers);
        status = book(plan, error);
    }
    free(values);
    free(layers);
    return status;
}

static dv_status make(dv_plan *plan, dv_error *error) {
    DV_TRY(dv_method_parse(plan->options.method, &plan->method, error));
    if (!allocate(plan))
        return dv_fail(error, DV_ERROR_MEMORY, "plan: no memory");
    DV_TRY(dv_plan_freeze(plan, error));
    DV_TRY(dv_plan_read_optimizer(plan, error));
    DV_TRY(dv_plan_needs(plan, error));
    plan->method.text = NULL; /* the caller's */
    DV_TRY(book_well(plan, error));
    DV_TRY(place(plan, error));
    dv_plan_fill_rows(plan);
    DV_TRY(dv_plan_tell_schedule(plan, error));
    return dv_plan_check_updates(plan, error);
}

dv_status dv_plan_new(dv_graph *graph, const dv_plan_options *options, dv_plan **plan, dv_error *error) {
    dv_guard_options guard = dv_guard_options_default();
    return dv_plan_new_guarded(graph, options, &guard, plan, error);
}

dv_status dv_plan_new_guarded(dv_graph *graph, const dv_plan_options *options, const dv_guard_options *guard,
                              dv_plan **plan, dv_error *error) {
    if (!graph || !graph->finished || !options || !options->method || !plan)
        return dv_fail(error, DV_ERROR_ARGUMENT, "plan: the graph is not finished, or an argument is NULL");
    dv_plan *made = calloc(1, sizeof *made);
    if (!made)
        return dv_fail(error, DV_ERROR_MEMORY, "plan: no memory");
    made->holders = 1;
    made->graph = graph;
    atomic_fetch_add(&graph->holders, 1);
    made->options = *options;
    made->guard = *guard;
    made->freeze = strdup(options->freeze ? options->freeze : "");
    made->pool = DV_NO_PIECE;
    made->spill_folder = strdup(options->spill ? options->spill : DEFAULT_SPILL_FOLDER);
    if (!made->freeze || !made->spill_folder) {
        dv_plan_free(made);
        return dv_fail(error, DV_ERROR_MEMORY, "plan: no memory");
    }
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
    free(plan->freeze);
    free(plan->spill_folder);
    free(plan->segments);
    free(plan->operations);
    free(plan->pieces);
    free(plan->values);
    free(plan->layers);
    free(plan->rows);
    free(plan->keeper_texts);
    free(plan->told);
    free(plan->touched);
    free(plan->buckets);
    free(plan);
}
