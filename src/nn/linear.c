/* A linear layer: output [N, O] = input [N, I] weight' + bias, weight [O, I], bias [O].
 *
 *     backward   d weight += diff' input,  d bias += sum of diff over N,  d input = diff weight
 *
 * It is a 1x1 convolution of one image whose N pixels are the batch's images, and computed as one: a convolution's
 * passes run in memory that is booked beforehand, which a matrix product of oneDNN's does not.
 *
 * Products are f32: bf16 inputs are converted in workspace, which is small because there are no sides. */
#include "base/sizes.h"
#include "base/status.h"
#include "nn/parts.h"
#include "nn/pass.h"
#include "nn/shape.h"

#include <stdlib.h>
#include <string.h>

enum { WEIGHT, BIAS }; /* parameters */

static bool has_bias(const dv_layer *layer) {
    return ((const dv_linear_options *)layer->options)->bias;
}

static dv_status infer(dv_layer *layer, dv_error *error) {
    DV_TRY(dv_layer_check_options(layer, error));
    DV_TRY(dv_layer_check_inputs(layer, 1, 1, error));
    size_t in = layer->inputs[0].channels, out = ((const dv_linear_options *)layer->options)->channels;
    if (layer->inputs[0].rank != 0)
        return dv_layer_fail(layer, error, DV_ERROR_ARGUMENT, "input %s has sides: pool over them before",
                             dv_shape(&layer->inputs[0]).text);
    if (out == 0)
        return dv_layer_fail(layer, error, DV_ERROR_OPTION, "%s", "0 output channels: at least 1 is needed");
    layer->output = layer->inputs[0];
    layer->output.channels = out;
    dv_error inner;
    if (dv_map_check(&layer->output, &inner) != DV_OK || out > (UINT64_C(1) << 40) / in)
        return dv_layer_fail(layer, error, DV_ERROR_UNSUPPORTED, "weight of %zu x %zu does not fit in memory", out, in);
    layer->parameter_count = has_bias(layer) ? 2 : 1;
    layer->parameters[WEIGHT] = (dv_parameter){.name = "weight",
                                               .rank = 2,
                                               .shape = {out, in},
                                               .count = out * in,
                                               .initialisation = DV_INITIALISE_UNIFORM,
                                               .fan = in};
    layer->parameters[BIAS] = (dv_parameter){
        .name = "bias", .rank = 1, .shape = {out}, .count = out, .initialisation = DV_INITIALISE_UNIFORM, .fan = in};
    layer->input_need = DV_NEED_NUMBERS;
    layer->needed_for = 1u << WEIGHT;
    layer->output_need = DV_NEED_NOTHING;
    return DV_OK;
}

/* ---- preparing ------------------------------------------------------------------------------ */

/* layer->prepared */
typedef struct linear {
    dv_pass *to_output, *to_input, *to_weights;
} linear;

static void destroy(dv_layer *layer) {
    linear *made = layer->prepared;
    if (!made)
        return;
    dv_pass_free(made->to_output);
    dv_pass_free(made->to_input);
    dv_pass_free(made->to_weights);
    free(made);
    layer->prepared = NULL;
}

static const dv_pass *pass_at(const dv_layer *layer, int index, size_t *runs) {
    const linear *made = layer->prepared;
    *runs = 1;
    const dv_pass *passes[] = {made->to_output, made->to_input, made->to_weights};
    return index < 3 ? passes[index] : NULL;
}

static dv_status make_passes(linear *made, const dv_layer *layer, dv_error *error) {
    size_t images = layer->output.images;
    const dv_convolution_shape shape = {.type = DV_F32,
                                        .rank = 1,
                                        .images = 1,
                                        .groups = 1,
                                        .src_channels = layer->inputs[0].channels,
                                        .dst_channels = layer->output.channels,
                                        .src_sides = {images},
                                        .dst_sides = {images},
                                        .window = dv_window_square(1, 1, 0)};
    dv_pass_kind forward = has_bias(layer) ? DV_PASS_FORWARD : DV_PASS_FORWARD_NO_BIAS;
    DV_TRY(dv_pass_new(&made->to_output, layer->choices, forward, &shape, layer->name, error));
    DV_TRY(dv_pass_new(&made->to_input, layer->choices, DV_PASS_BACKWARD_DATA, &shape, layer->name, error));
    return dv_pass_new(&made->to_weights, layer->choices, DV_PASS_BACKWARD_WEIGHTS, &shape, layer->name, error);
}

/* Arrays that are NULL are not needed: f32 values are used where they are. */
typedef struct workspace {
    float *input;  /* [N, I], bf16 only; in backward first the input, then its gradient */
    float *output; /* [N, O], bf16 only; in backward its gradient */
    void *weights; /* as the pass takes them */
    void *decoded; /* backward: the input as it was kept; then, if f32, a gradient that is to be added */
    double *sums;  /* backward: [O] */
    void *pass;    /* what the pass works in */
} workspace;

/* Cuts `memory` into arrays, or books it if it is NULL. Returns its bytes. */
static size_t cut_workspace(const dv_layer *layer, void *memory, bool backward, workspace *w) {
    const linear *made = layer->prepared;
    size_t offset = 0;
    *w = (workspace){0};
    if (layer->output.type != DV_F32) {
        w->input = dv_carve(memory, &offset, dv_map_elements(&layer->inputs[0]) * sizeof(float));
        w->output = dv_carve(memory, &offset, dv_map_elements(&layer->output) * sizeof(float));
    }
    w->weights = dv_carve(memory, &offset, (backward ? made->to_input : made->to_output)->weights_bytes);
    if (backward) {
        w->decoded = dv_carve(memory, &offset, dv_map_bytes(&layer->inputs[0]));
        w->sums = dv_carve(memory, &offset, layer->output.channels * sizeof(double));
    }
    w->pass = dv_carve(memory, &offset,
                       backward ? dv_larger(made->to_input->workspace_bytes, made->to_weights->workspace_bytes)
                                : made->to_output->workspace_bytes);
    return offset;
}

static dv_status prepare(dv_layer *layer, dv_error *error) {
    linear *made = calloc(1, sizeof *made);
    workspace w;
    if (!made)
        return dv_fail(error, DV_ERROR_MEMORY, "%s: no memory to prepare it", layer->name);
    layer->prepared = made;
    dv_status status = make_passes(made, layer, error);
    if (status != DV_OK) {
        destroy(layer);
        return status;
    }
    layer->forward_workspace_bytes = cut_workspace(layer, NULL, false, &w);
    layer->backward_workspace_bytes = cut_workspace(layer, NULL, true, &w);
    return DV_OK;
}

/* ---- running -------------------------------------------------------------------------------- */

/* Elements of `images` images: rows of the map. */
static size_t elements_of(const dv_map *map, size_t images) {
    return images * map->channels;
}

/* A map's values as f32: where they are, or in `buffer`. */
static const float *as_f32(const dv_map *map, size_t images, const void *values, float *buffer) {
    if (map->type == DV_F32)
        return values;
    dv_convert_to_f32(map->type, values, elements_of(map, images), buffer);
    return buffer;
}

static dv_status forward(const dv_layer *layer, const dv_forward *call, dv_error *error) {
    const linear *made = layer->prepared;
    const dv_map *output = &layer->output;
    workspace w;
    cut_workspace(layer, call->workspace, false, &w);
    float *y = output->type == DV_F32 ? call->output : w.output;
    dv_pass_arrays arrays = {.src = as_f32(&layer->inputs[0], call->images, call->inputs[0], w.input),
                             .dst = y,
                             .bias = call->arrays->parameters[BIAS],
                             .workspace = w.pass};
    DV_TRY(dv_pass_pack_weights(made->to_output, call->arrays->parameters[WEIGHT], w.weights, w.pass, &arrays.weights,
                                error));
    DV_TRY(dv_pass_run(made->to_output, &arrays, error));
    if (y != call->output)
        dv_elementwise()->from_f32(output->type, y, elements_of(output, call->images), false, call->output);
    dv_write_mask(output, call->images, call->output, call->output_mask);
    return DV_OK;
}

/* The gradient of the output as f32, zero for images that are not there. */
static const float *find_diff(const dv_layer *layer, const dv_backward *call, const workspace *w) {
    const dv_map *output = &layer->output;
    float *diff = output->type == DV_F32 ? call->diff_output : w->output;
    as_f32(output, call->images, call->diff_output, diff);
    dv_clear_images(diff, output->channels * sizeof *diff, call->images, output->images);
    return diff;
}

/* The same of the input as it was kept. */
static dv_status find_input(const dv_layer *layer, const dv_backward *call, const workspace *w, const float **x,
                            dv_error *error) {
    const dv_map *input = &layer->inputs[0];
    size_t bytes = input->channels * sizeof **x;
    const void *kept;
    DV_TRY(dv_kept_images(call->inputs[0], 0, call->images, w->decoded, &kept, error));
    *x = as_f32(input, call->images, kept, w->input);
    if (call->images == input->images)
        return DV_OK;
    float *own = input->type == DV_F32 ? w->decoded : w->input;
    if (*x != own)
        memcpy(own, *x, call->images * bytes);
    dv_clear_images(own, bytes, call->images, input->images);
    *x = own;
    return DV_OK;
}

static dv_status add_weights_gradient(const dv_layer *layer, const dv_backward *call, const workspace *w,
                                      const float *diff, dv_error *error) {
    const linear *made = layer->prepared;
    const float *input;
    DV_TRY(find_input(layer, call, w, &input, error));
    dv_pass_arrays arrays = {
        .src = input, .dst = diff, .gradient = call->arrays->gradients[WEIGHT], .workspace = w->pass};
    return dv_pass_run(made->to_weights, &arrays, error);
}

static void add_bias_gradient(const dv_layer *layer, const dv_backward *call, const float *diff, double *sums) {
    size_t out = layer->output.channels;
    memset(sums, 0, out * sizeof *sums);
    dv_elementwise()->sum_rows(DV_F32, diff, call->images, out, sums);
    for (size_t i = 0; i < out; i++)
        call->arrays->gradients[BIAS][i] += (float)sums[i];
}

/* Straight to where it belongs, or through the memory of the input, which has been used. */
static dv_status write_input_gradient(const dv_layer *layer, const dv_backward *call, const workspace *w,
                                      const float *diff, dv_error *error) {
    const linear *made = layer->prepared;
    const dv_map *input = &layer->inputs[0];
    bool wide = input->type == DV_F32, direct = wide && !call->accumulate[0];
    void *dx = direct ? call->diff_inputs[0] : wide ? w->decoded : (void *)w->input;
    dv_pass_arrays arrays = {.src = dx, .dst = diff, .workspace = w->pass};
    DV_TRY(dv_pass_pack_weights(made->to_input, call->arrays->parameters[WEIGHT], w->weights, w->pass, &arrays.weights,
                                error));
    DV_TRY(dv_pass_run(made->to_input, &arrays, error));
    if (!direct)
        dv_elementwise()->from_f32(input->type, dx, elements_of(input, call->images), call->accumulate[0],
                                   call->diff_inputs[0]);
    return DV_OK;
}

static dv_status backward(const dv_layer *layer, const dv_backward *call, dv_error *error) {
    workspace w;
    cut_workspace(layer, call->workspace, true, &w);
    const float *diff = find_diff(layer, call, &w);
    if (call->arrays->gradients[WEIGHT])
        DV_TRY(add_weights_gradient(layer, call, &w, diff, error));
    if (call->arrays->gradients[BIAS])
        add_bias_gradient(layer, call, diff, w.sums);
    return call->diff_inputs[0] ? write_input_gradient(layer, call, &w, diff, error) : DV_OK;
}

const dv_layer_kind dv_linear = {
    .name = "linear",
    .infer = infer,
    .prepare = prepare,
    .destroy = destroy,
    .pass = pass_at,
    .forward = forward,
    .backward = backward,
};
