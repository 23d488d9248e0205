/* Making a run: the arena, and the calls of all layers with their pointers filled in once. */
#include "graph/run.h"

#include "base/sizes.h"
#include "base/status.h"
#include "graph/memory.h"

#include <stdlib.h>

/* ---- calls --------------------------------------------------------------------------------- */

static void fill_kept(dv_run *run, dv_value value) {
    const dv_graph_value *made = &run->plan->graph->values[value];
    const dv_value_plan *v = &run->plan->values[value];
    dv_kept *kept = &run->kept[value];
    *kept = (dv_kept){.access = v->keeper ? &v->keeper->access : NULL,
                      .map = made->map,
                      .codec = v->codec,
                      .noise = {.seed = run->seed, .value = made->key},
                      .state = run->state.data,
                      .plan = run->plan,
                      .value = value,
                      .mask_access = v->mask_keeper ? &v->mask_keeper->access : NULL,
                      .mask_in = &run->kept[v->mask_in],
                      .zero_outside = made->producer != DV_INPUT &&
                                      run->plan->graph->layers[made->producer].layer.zero_outside_mask};
    if (v->keeper)
        v->keeper->fill(run, value, kept);
    if (v->mask_keeper == &dv_keep_mask)
        v->mask_keeper->fill(run, value, kept);
}

/* True if layer `i` is not the first to contribute to the gradient of its input `k`. */
static bool must_accumulate(const dv_graph *graph, int i, size_t k) {
    const dv_graph_layer *node = &graph->layers[i];
    for (size_t j = 0; j < k; j++)
        if (node->inputs[j] == node->inputs[k])
            return true;
    return graph->values[node->inputs[k]].last_user != i;
}

/* Where an input is during forward, and where it is when the layer is replayed. */
static void fill_input(dv_run *run, int i, size_t k) {
    const dv_plan *plan = run->plan;
    dv_value value = plan->graph->layers[i].inputs[k];
    const dv_value_plan *input = &plan->values[value];
    dv_layer_calls *calls = &run->calls[i];
    calls->inputs[k] = dv_run_piece(run, input->data);
    calls->inputs_again[k] = dv_run_piece(run, input->again == DV_NO_PIECE ? input->data : input->again);
    calls->diff_inputs[k] = input->wants_diff ? dv_run_piece(run, input->diff) : NULL;
    calls->accumulate[k] = must_accumulate(plan->graph, i, k);
    calls->kept[k] = input->keeper || input->mask_keeper ? &run->kept[value] : NULL;
}

/* Where layer `i` gets slices of its output's gradient from. Their memory, and that in which they are made, lie behind
 * its own workspace. */
static const dv_sliced_diff *fill_slices(dv_run *run, int i) {
    const dv_layer *layer = &run->plan->graph->layers[i].layer;
    int by = run->plan->layers[i].sliced_by;
    if (by < 0)
        return NULL;
    char *workspace = dv_run_piece(run, run->plan->layers[i].backward_workspace);
    run->calls[i].sliced =
        (dv_sliced_diff){.layer = &run->plan->graph->layers[by].layer,
                         .call = &run->calls[by].backward,
                         .workspace = workspace + layer->backward_workspace_bytes + layer->diff_slice_bytes};
    return &run->calls[i].sliced;
}

/* The first input of layer `i`, if it has that made by slices. The slice, and then what the layer before works in, lie
 * behind its own workspace. */
static void fill_input_slices(dv_run *run, int i) {
    const dv_layer *layer = &run->plan->graph->layers[i].layer;
    if (!dv_plan_runs_before(run->plan, i))
        return;
    char *workspace = run->calls[i].forward.workspace;
    dv_forward *before = &run->calls[i - 1].forward;
    before->workspace = workspace + layer->forward_workspace_bytes + layer->input_slice_bytes;
    run->calls[i].made = (dv_sliced_input){.layer = &run->plan->graph->layers[i - 1].layer, .call = before};
    run->calls[i].forward.sliced = &run->calls[i].made;
}

static void fill_calls(dv_run *run, int i) {
    const dv_plan *plan = run->plan;
    const dv_graph_layer *node = &plan->graph->layers[i];
    const dv_layer_plan *where = &plan->layers[i];
    const dv_value_plan *output = &plan->values[node->output];
    dv_layer_calls *calls = &run->calls[i];
    bool replayed = where->replay_at >= 0;
    for (size_t k = 0; k < node->layer.input_count; k++)
        fill_input(run, i, k);
    dv_forward forward = {.arrays = &run->arrays[i], .seed = run->seed, .key = node->layer.key};
    calls->forward = calls->replay = forward;
    calls->forward.inputs = calls->inputs;
    calls->forward.output = dv_run_piece(run, output->data);
    calls->forward.output_mask = replayed ? NULL : dv_run_piece(run, output->mask);
    calls->forward.saved = dv_run_piece(run, where->saved);
    calls->forward.workspace = dv_run_piece(run, where->forward_workspace);
    fill_input_slices(run, i);
    calls->replay.inputs = calls->inputs_again;
    calls->replay.output = dv_run_piece(run, output->again);
    calls->replay.output_mask = dv_run_piece(run, output->mask);
    calls->replay.saved = dv_run_piece(run, where->saved_again);
    calls->replay.workspace = dv_run_piece(run, where->replay_workspace);
    calls->replay.training = calls->replay.replay = true;
    calls->backward = (dv_backward){.arrays = &run->arrays[i],
                                    .diff_output = dv_run_piece(run, output->diff),
                                    .sliced = fill_slices(run, i),
                                    .diff_state = dv_run_piece(run, where->diff_state),
                                    .diff_inputs = calls->diff_inputs,
                                    .accumulate = calls->accumulate,
                                    .inputs = calls->kept,
                                    .output = &run->kept[node->output],
                                    .saved = replayed ? calls->replay.saved : calls->forward.saved,
                                    .workspace = dv_run_piece(run, where->backward_workspace),
                                    .seed = run->seed,
                                    .key = node->layer.key};
}

static bool allocate_calls(dv_run *run) {
    const dv_graph *graph = run->plan->graph;
    bool made = (run->calls = calloc(graph->layer_count + 1, sizeof *run->calls)) != NULL;
    for (size_t i = 0; made && i < graph->layer_count; i++) {
        size_t count = graph->layers[i].layer.input_count;
        dv_layer_calls *calls = &run->calls[i];
        calls->inputs = calloc(count, sizeof *calls->inputs);
        calls->inputs_again = calloc(count, sizeof *calls->inputs_again);
        calls->diff_inputs = calloc(count, sizeof *calls->diff_inputs);
        calls->accumulate = calloc(count, sizeof *calls->accumulate);
        calls->kept = calloc(count, sizeof *calls->kept);
        made = calls->inputs && calls->inputs_again && calls->diff_inputs && calls->accumulate && calls->kept;
    }
    run->arrays = calloc(graph->layer_count + 1, sizeof *run->arrays);
    run->kept = calloc(graph->value_count + 1, sizeof *run->kept);
    run->transfers = calloc(graph->value_count + 1, sizeof *run->transfers);
    run->reductions = calloc(run->plan->bucket_count + 1, sizeof *run->reductions);
    run->reduced = calloc(run->plan->bucket_count + 1, sizeof *run->reduced);
    run->parameters = calloc(4 * graph->layer_count + 1, sizeof *run->parameters);
    return made && run->reductions && run->reduced && run->arrays && run->kept && run->transfers && run->parameters;
}

/* ---- making a run -------------------------------------------------------------------------- */

static dv_status make(dv_run *run, dv_error *error) {
    if (!allocate_calls(run))
        return dv_fail(error, DV_ERROR_MEMORY, "run: no memory");
    void *arena;
    DV_TRY(dv_arena_map(run->plan->arena_bytes, &arena, error));
    run->arena = arena;
    DV_TRY(dv_guard_new(run->plan, arena, &run->guard, error));
    DV_TRY(dv_spilled_open(run, error));
    run->state = (dv_run_parameter){.name = "state",
                                    .rank = 1,
                                    .shape = {run->plan->state_count},
                                    .count = run->plan->state_count,
                                    .data = dv_run_piece(run, run->plan->state)};
    DV_TRY(dv_run_fill_arrays(run, error));
    for (size_t v = 0; v < run->plan->graph->value_count; v++)
        fill_kept(run, (dv_value)v);
    float *weights = dv_run_label_weights(run);
    for (size_t i = 0; weights && i < run->plan->graph->batch; i++)
        weights[i] = 1;
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
    made->images = plan->graph->batch;
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
        free(run->calls[i].inputs_again);
        free(run->calls[i].diff_inputs);
        free(run->calls[i].accumulate);
        free(run->calls[i].kept);
    }
    for (size_t i = 0; i < run->parameter_count; i++)
        free((void *)run->parameters[i].name);
    dv_run_leave(run);
    dv_spill_free(run->spill);
    dv_guard_free(run->guard);
    dv_arena_unmap(run->arena, run->plan->arena_bytes);
    free(run->calls);
    free(run->arrays);
    free(run->kept);
    free(run->transfers);
    free(run->reductions);
    free(run->reduced);
    free(run->parameters);
    dv_plan_free(run->plan);
    free(run);
}

size_t dv_run_images(const dv_run *run) {
    return run->images;
}

size_t dv_run_fewest_images(const dv_run *run) {
    const dv_graph *graph = run->plan->graph;
    size_t fewest = 1;
    for (size_t i = 0; i < graph->layer_count; i++)
        if (!dv_plan_is_frozen(run->plan, (int)i))
            fewest = dv_larger(fewest, graph->layers[i].layer.fewest_images);
    return fewest;
}

const dv_map *dv_run_input_map(const dv_run *run) {
    return &run->plan->graph->values[run->plan->graph->input].map;
}

void *dv_run_targets(dv_run *run) {
    return run ? dv_run_piece(run, run->plan->targets) : NULL;
}

int32_t *dv_run_labels(dv_run *run) {
    return run && run->plan->graph->loss.layer.takes_labels ? dv_run_targets(run) : NULL;
}

int32_t *dv_run_second_labels(dv_run *run) {
    return dv_run_piece(run, run->plan->second_labels);
}

float *dv_run_label_weights(dv_run *run) {
    return dv_run_piece(run, run->plan->label_weights);
}

const char *dv_run_freeze(const dv_run *run) {
    return run ? run->plan->freeze : "";
}

const dv_run_parameter *dv_run_method_state(const dv_run *run) {
    return run && run->state.data ? &run->state : NULL;
}

const dv_run_parameter *dv_run_parameter_at(const dv_run *run, size_t index) {
    return index < run->parameter_count ? &run->parameters[index] : NULL;
}
