/* Running a plan: the arena, the calls of all layers with their pointers filled in once, and the steps. A step
 * allocates nothing. */
#include "base/random.h"
#include "base/status.h"
#include "graph/guard.h"
#include "graph/memory.h"
#include "graph/plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The calls of one layer, and the arrays that they point to. */
typedef struct layer_calls {
    dv_forward forward;
    dv_backward backward;
    const void **inputs;
    void **diff_inputs;
    bool *accumulate;
    const dv_kept **kept;
} layer_calls;

struct dv_run {
    dv_plan *plan; /* held */
    uint64_t seed;
    char *arena;
    dv_guard *guard;         /* or NULL */
    dv_layer_arrays *arrays; /* [layer_count] */
    layer_calls *calls;      /* [layer_count] */
    dv_kept *kept;           /* [value_count] */
    size_t parameter_count;
    dv_run_parameter *parameters;
};

static void *piece_at(const dv_run *run, int piece) {
    return piece == DV_NO_PIECE ? NULL : run->arena + run->plan->pieces[piece].offset;
}

/* ---- parameters ---------------------------------------------------------------------------- */

/* A normal number from position `i` of a key's sequence (Box-Muller). */
static float normal(dv_random key, uint32_t i) {
    double u = ((double)dv_random_word(key, 2 * i) + 0.5) * 0x1p-32;
    double v = (double)dv_random_word(key, 2 * i + 1) * 0x1p-32;
    return (float)(sqrt(-2 * log(u)) * cos(6.283185307179586 * v));
}

static float initial(const dv_parameter *parameter, dv_random key, uint32_t i) {
    switch (parameter->init) {
    case DV_INIT_ONE:
        return 1;
    case DV_INIT_FAN_OUT:
        return sqrtf(2.0f / (float)parameter->fan) * normal(key, i);
    case DV_INIT_UNIFORM:
        return ((float)dv_random_word(key, i) * 0x1p-31f - 1.0f) / sqrtf((float)parameter->fan);
    default:
        return 0;
    }
}

static void initialise(const dv_parameter *parameter, uint64_t seed, uint64_t number, float *data) {
    const uint64_t words[] = {seed, 0x706172616d, number};
    dv_random key = dv_random_key(words, 3);
    for (size_t i = 0; i < parameter->count; i++)
        data[i] = initial(parameter, key, (uint32_t)i);
}

/* "layer1.0.conv2" + "weight". NULL if there is no memory. */
static char *joined(const char *layer, const char *name) {
    size_t bytes = strlen(layer) + strlen(name) + 2;
    char *text = malloc(bytes);
    if (text) {
        strcpy(text, layer);
        strcat(text, ".");
        strcat(text, name);
    }
    return text;
}

static dv_status add_parameter(dv_run *run, const char *layer, const char *name, int rank, const size_t *shape,
                               size_t count, float *data, float *gradient, float *optimizer, float *average,
                               dv_error *error) {
    dv_run_parameter *made = &run->parameters[run->parameter_count];
    *made = (dv_run_parameter){.name = joined(layer, name),
                               .rank = rank,
                               .count = count,
                               .data = data,
                               .gradient = gradient,
                               .optimizer = optimizer,
                               .average = average};
    if (!made->name)
        return dv_fail(error, DV_ERROR_MEMORY, "run: no memory");
    memcpy(made->shape, shape, (size_t)rank * sizeof *shape);
    run->parameter_count++;
    return DV_OK;
}

/* The parameters of layer `i`. */
static dv_status fill_parameters(dv_run *run, size_t i, dv_error *error) {
    const dv_layer *layer = &run->plan->graph->layers[i].layer;
    const dv_layer_plan *where = &run->plan->layers[i];
    dv_layer_arrays *arrays = &run->arrays[i];
    for (size_t k = 0; k < layer->parameter_count; k++) {
        const dv_parameter *p = &layer->parameters[k];
        arrays->parameters[k] = piece_at(run, where->data[k]);
        arrays->gradients[k] = piece_at(run, where->gradient[k]);
        initialise(p, run->seed, run->parameter_count, arrays->parameters[k]);
        DV_TRY(add_parameter(run, layer->name, p->name, p->rank, p->shape, p->count, arrays->parameters[k],
                             arrays->gradients[k], piece_at(run, where->optimizer[k]), piece_at(run, where->average[k]),
                             error));
    }
    return DV_OK;
}

/* Its running statistics. */
static dv_status fill_buffers(dv_run *run, size_t i, dv_error *error) {
    const dv_layer *layer = &run->plan->graph->layers[i].layer;
    const dv_layer_plan *where = &run->plan->layers[i];
    for (size_t k = 0; k < layer->buffer_count; k++) {
        const dv_buffer *b = &layer->buffers[k];
        float *data = run->arrays[i].buffers[k] = piece_at(run, where->buffers[k]);
        for (size_t j = 0; j < b->count; j++)
            data[j] = b->start;
        DV_TRY(add_parameter(run, layer->name, b->name, 1, &b->count, b->count, data, NULL, NULL,
                             piece_at(run, where->buffer_average[k]), error));
    }
    return DV_OK;
}

static dv_status fill_arrays(dv_run *run, dv_error *error) {
    for (size_t i = 0; i < run->plan->graph->layer_count; i++) {
        DV_TRY(fill_parameters(run, i, error));
        DV_TRY(fill_buffers(run, i, error));
    }
    return DV_OK;
}

/* ---- calls --------------------------------------------------------------------------------- */

/* A value that its producer recomputes: from the same kept inputs that the producer's backward is given. */
static void fill_producer(dv_run *run, dv_value value) {
    const dv_plan *plan = run->plan;
    int producer = plan->graph->values[value].producer;
    run->kept[value].producer = &plan->graph->layers[producer].layer;
    run->kept[value].inputs = run->calls[producer].kept;
    run->kept[value].arrays = &run->arrays[producer];
    run->kept[value].saved = piece_at(run, plan->layers[producer].saved);
}

static void fill_kept(dv_run *run) {
    const dv_plan *plan = run->plan;
    for (size_t v = 0; v < plan->graph->value_count; v++) {
        const dv_value_plan *where = &plan->values[v];
        run->kept[v] = (dv_kept){
            .map = plan->graph->values[v].map,
            .codec = *where->codec,
            .noise = {.seed = run->seed, .value = v},
            .exact = where->keeper == DV_KEEP_EXACT ? piece_at(run, where->data) : NULL,
            .packed = piece_at(run, where->packed),
            .packed_bytes = where->packed == DV_NO_PIECE ? 0 : plan->pieces[where->packed].bytes,
            .bits = piece_at(run, where->bits),
            .scratch = piece_at(run, where->scratch),
        };
        if (where->keeper == DV_KEEP_RECOMPUTED)
            fill_producer(run, (dv_value)v);
    }
}

/* True if layer `i` is not the first to contribute to the gradient of its input `k`. */
static bool must_accumulate(const dv_graph *graph, int i, size_t k) {
    const dv_graph_layer *node = &graph->layers[i];
    for (size_t j = 0; j < k; j++)
        if (node->inputs[j] == node->inputs[k])
            return true;
    return graph->values[node->inputs[k]].last_user != i;
}

static void fill_calls(dv_run *run, int i) {
    const dv_plan *plan = run->plan;
    const dv_graph_layer *node = &plan->graph->layers[i];
    const dv_layer_plan *where = &plan->layers[i];
    layer_calls *calls = &run->calls[i];
    for (size_t k = 0; k < node->layer.input_count; k++) {
        const dv_value_plan *input = &plan->values[node->inputs[k]];
        bool kept = input->keeper != DV_KEEP_NOTHING || input->bits != DV_NO_PIECE;
        calls->inputs[k] = piece_at(run, input->data);
        calls->diff_inputs[k] = input->wants_diff ? piece_at(run, input->diff) : NULL;
        calls->accumulate[k] = must_accumulate(plan->graph, i, k);
        calls->kept[k] = kept ? &run->kept[node->inputs[k]] : NULL;
    }
    const dv_value_plan *output = &plan->values[node->output];
    calls->forward = (dv_forward){.arrays = &run->arrays[i],
                                  .inputs = calls->inputs,
                                  .output = piece_at(run, output->data),
                                  .output_bits = piece_at(run, output->bits),
                                  .saved = piece_at(run, where->saved),
                                  .workspace = piece_at(run, where->forward_workspace),
                                  .seed = run->seed,
                                  .key = (uint64_t)i};
    calls->backward = (dv_backward){.arrays = &run->arrays[i],
                                    .diff_output = piece_at(run, output->diff),
                                    .diff_inputs = calls->diff_inputs,
                                    .accumulate = calls->accumulate,
                                    .inputs = calls->kept,
                                    .output = &run->kept[node->output],
                                    .saved = piece_at(run, where->saved),
                                    .workspace = piece_at(run, where->backward_workspace),
                                    .seed = run->seed,
                                    .key = (uint64_t)i};
}

static bool allocate_calls(dv_run *run) {
    const dv_graph *graph = run->plan->graph;
    bool made = (run->calls = calloc(graph->layer_count + 1, sizeof *run->calls)) != NULL;
    for (size_t i = 0; made && i < graph->layer_count; i++) {
        size_t count = graph->layers[i].layer.input_count;
        layer_calls *calls = &run->calls[i];
        calls->inputs = calloc(count, sizeof *calls->inputs);
        calls->diff_inputs = calloc(count, sizeof *calls->diff_inputs);
        calls->accumulate = calloc(count, sizeof *calls->accumulate);
        calls->kept = calloc(count, sizeof *calls->kept);
        made = calls->inputs && calls->diff_inputs && calls->accumulate && calls->kept;
    }
    run->arrays = calloc(graph->layer_count + 1, sizeof *run->arrays);
    run->kept = calloc(graph->value_count + 1, sizeof *run->kept);
    run->parameters = calloc(4 * graph->layer_count + 1, sizeof *run->parameters);
    return made && run->arrays && run->kept && run->parameters;
}

/* ---- making a run -------------------------------------------------------------------------- */

static dv_status make(dv_run *run, dv_error *error) {
    if (!allocate_calls(run))
        return dv_fail(error, DV_ERROR_MEMORY, "run: no memory");
    void *arena;
    DV_TRY(dv_arena_map(run->plan->arena_bytes, &arena, error));
    run->arena = arena;
    DV_TRY(dv_guard_new(run->plan, arena, &run->guard, error));
    DV_TRY(fill_arrays(run, error));
    fill_kept(run);
    for (size_t i = 0; i < run->plan->graph->batch; i++)
        dv_run_label_weights(run)[i] = 1;
    for (size_t i = 0; i < run->plan->graph->layer_count; i++)
        fill_calls(run, (int)i);
    return DV_OK;
}

dv_status dv_run_new(dv_plan *plan, uint64_t seed, dv_run **run, dv_error *error) {
    if (!plan || !run)
        return dv_fail(error, DV_ERROR_ARGUMENT, "run: plan or run is NULL");
    dv_run *made = calloc(1, sizeof *made);
    if (!made)
        return dv_fail(error, DV_ERROR_MEMORY, "run: no memory");
    made->plan = plan;
    atomic_fetch_add(&plan->holders, 1);
    made->seed = seed;
    dv_status status = make(made, error);
    if (status == DV_OK)
        *run = made;
    else
        dv_run_free(made);
    return status;
}

void dv_run_free(dv_run *run) {
    if (!run)
        return;
    for (size_t i = 0; run->calls && i < run->plan->graph->layer_count; i++) {
        free(run->calls[i].inputs);
        free(run->calls[i].diff_inputs);
        free(run->calls[i].accumulate);
        free(run->calls[i].kept);
    }
    for (size_t i = 0; i < run->parameter_count; i++)
        free((void *)run->parameters[i].name);
    dv_guard_free(run->guard);
    dv_arena_unmap(run->arena, run->plan->arena_bytes);
    free(run->calls);
    free(run->arrays);
    free(run->kept);
    free(run->parameters);
    dv_plan_free(run->plan);
    free(run);
}

const dv_map *dv_run_input_map(const dv_run *run) {
    return &run->plan->graph->values[run->plan->graph->input].map;
}

void *dv_run_input(dv_run *run) {
    return piece_at(run, run->plan->values[run->plan->graph->input].data);
}

int32_t *dv_run_labels(dv_run *run) {
    return piece_at(run, run->plan->labels);
}

int32_t *dv_run_second_labels(dv_run *run) {
    return piece_at(run, run->plan->second_labels);
}

float *dv_run_label_weights(dv_run *run) {
    return piece_at(run, run->plan->label_weights);
}

const dv_run_parameter *dv_run_parameter_at(const dv_run *run, size_t index) {
    return index < run->parameter_count ? &run->parameters[index] : NULL;
}

/* ---- steps --------------------------------------------------------------------------------- */

/* Adds to a failure where it was. */
static dv_status explain(dv_error *error, dv_status status, const char *where) {
    if (!error)
        return status;
    return dv_fail(error, status, "%s: %s", where, error->text);
}

static const char *value_name(const dv_graph *graph, dv_value value) {
    int producer = graph->values[value].producer;
    return producer == DV_INPUT ? "input" : graph->layers[producer].layer.name;
}

/* The place of a value that is to be packed with this batch, or NULL. */
static dv_kept *to_pack(dv_run *run, dv_value value, uint64_t batch, bool training) {
    if (!training || run->plan->values[value].keeper != DV_KEEP_PACKED)
        return NULL;
    run->kept[value].noise.step = batch;
    return &run->kept[value];
}

/* Packs a value that has just been made, if that is how it is kept. */
static dv_status pack(dv_run *run, dv_value value, const dv_kept *kept, dv_error *error) {
    if (!kept)
        return DV_OK;
    dv_status status = dv_kept_pack(kept, 0, kept->map.images, piece_at(run, run->plan->values[value].data), error);
    return status == DV_OK ? status : explain(error, status, value_name(run->plan->graph, value));
}

static dv_status forward_layer(dv_run *run, size_t i, uint64_t batch, bool training, dv_error *error) {
    dv_value output = run->plan->graph->layers[i].output;
    const dv_layer *layer = &run->plan->graph->layers[i].layer;
    dv_forward *call = &run->calls[i].forward;
    dv_kept *kept = to_pack(run, output, batch, training);
    call->step = batch;
    call->training = training;
    call->pack = layer->kind->packs_output ? kept : NULL;
    dv_status status = layer->kind->forward(layer, call, error);
    if (status != DV_OK)
        return explain(error, status, layer->name);
    if (!layer->kind->packs_output)
        DV_TRY(pack(run, output, kept, error));
    return dv_guard_leave(run->guard, layer->name, error);
}

static dv_status forward(dv_run *run, uint64_t batch, bool training, dv_error *error) {
    const dv_graph *graph = run->plan->graph;
    DV_TRY(dv_guard_enter(run->guard, 0, error));
    DV_TRY(pack(run, graph->input, to_pack(run, graph->input, batch, training), error));
    for (size_t i = 0; i < graph->layer_count; i++) {
        DV_TRY(dv_guard_enter(run->guard, (int)i, error));
        DV_TRY(forward_layer(run, i, batch, training, error));
    }
    return DV_OK;
}

/* Images before those that only fill up the batch, whose label is -1. */
static size_t labelled(dv_run *run, size_t images) {
    const int32_t *labels = dv_run_labels(run);
    while (images > 1 && labels[images - 1] == -1)
        images--;
    return images;
}

static dv_status loss(dv_run *run, float smoothing, float scale, bool training, dv_step_result *result,
                      dv_error *error) {
    const dv_graph *graph = run->plan->graph;
    const dv_value_plan *logits = &run->plan->values[graph->logits];
    dv_map map = graph->values[graph->logits].map;
    dv_targets targets = {.labels = dv_run_labels(run), .smoothing = smoothing};
    dv_loss_result sums;
    if (training) {
        targets.seconds = dv_run_second_labels(run);
        targets.weights = dv_run_label_weights(run);
    } else {
        map.images = labelled(run, map.images);
    }
    DV_TRY(dv_guard_enter(run->guard, (int)graph->layer_count, error));
    dv_status status = dv_softmax_cross_entropy(&map, piece_at(run, logits->data), &targets, scale,
                                                training ? piece_at(run, logits->diff) : NULL, &sums, error);
    if (status != DV_OK)
        return explain(error, status, "loss");
    *result = (dv_step_result){sums.loss / (double)map.images, sums.correct, sums.correct5};
    return dv_guard_leave(run->guard, "the loss", error);
}

static dv_status backward(dv_run *run, uint64_t batch, dv_error *error) {
    const dv_graph *graph = run->plan->graph;
    for (size_t i = graph->layer_count; i-- > 0;) {
        const dv_layer *layer = &graph->layers[i].layer;
        dv_backward *call = &run->calls[i].backward;
        call->step = batch;
        if (!run->plan->layers[i].backward)
            continue;
        DV_TRY(dv_guard_enter(run->guard, dv_backward_moment(graph, (int)i), error));
        dv_status status = layer->kind->backward(layer, call, error);
        if (status != DV_OK)
            return explain(error, status, layer->name);
        DV_TRY(dv_guard_leave(run->guard, layer->name, error));
    }
    return DV_OK;
}

static dv_status train(dv_run *run, uint64_t batch, float label_smoothing, float scale, dv_step_result *result,
                       dv_error *error) {
    DV_TRY(forward(run, batch, true, error));
    DV_TRY(loss(run, label_smoothing, scale, true, result, error));
    return backward(run, batch, error);
}

dv_status dv_run_train(dv_run *run, uint64_t batch, float label_smoothing, float scale, dv_step_result *result,
                       dv_error *error) {
    DV_NEED(run);
    DV_NEED(result);
    if (run->plan->options.inference)
        return dv_fail(error, DV_ERROR_ARGUMENT, "run: planned for inference, asked to train");
    dv_status status = train(run, batch, label_smoothing, scale, result, error);
    dv_guard_rest(run->guard);
    return status;
}

dv_status dv_run_evaluate(dv_run *run, dv_step_result *result, dv_error *error) {
    DV_NEED(run);
    DV_NEED(result);
    dv_status status = forward(run, 0, false, error);
    if (status == DV_OK)
        status = loss(run, 0, 1, false, result, error);
    dv_guard_rest(run->guard);
    return status;
}
