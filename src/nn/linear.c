/* A linear layer: output [N, O] = input [N, I] weight' + bias, weight [O, I], bias [O].
 *
 *     backward   d weight += diff' input,  d bias += sum of diff over N,  d input = diff weight
 *
 * Products are f32: bf16 inputs are converted in workspace, which is small because there are no sides. */
#include "nn/gemm.h"
#include "nn/parts.h"
#include "nn/shape.h"

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
    layer->parameters[WEIGHT] = (dv_parameter){
        .name = "weight", .rank = 2, .shape = {out, in}, .count = out * in, .init = DV_INIT_UNIFORM, .fan = in};
    layer->parameters[BIAS] =
        (dv_parameter){.name = "bias", .rank = 1, .shape = {out}, .count = out, .init = DV_INIT_UNIFORM, .fan = in};
    layer->input_need = DV_NEED_NUMBERS;
    layer->output_need = DV_NEED_NOTHING;
    return DV_OK;
}

/* Arrays that are NULL are not needed: f32 values are used where they are. */
typedef struct workspace {
    float *input;  /* [N, I]; in backward first the input, then its gradient */
    float *output; /* [N, O]; in backward its gradient */
    void *decoded; /* backward: the input as it was kept */
    double *sums;  /* backward: [O] */
} workspace;

/* Cuts `memory` into arrays, or books it if it is NULL. Returns its bytes. */
static size_t cut_workspace(const dv_layer *layer, void *memory, bool backward, workspace *w) {
    size_t offset = 0;
    *w = (workspace){0};
    if (layer->output.type != DV_F32) {
        w->input = dv_carve(memory, &offset, dv_map_elements(&layer->inputs[0]) * sizeof(float));
        w->output = dv_carve(memory, &offset, dv_map_elements(&layer->output) * sizeof(float));
    }
    if (backward) {
        w->decoded = dv_carve(memory, &offset, dv_map_bytes(&layer->inputs[0]));
        w->sums = dv_carve(memory, &offset, layer->output.channels * sizeof(double));
    }
    return offset;
}

static dv_status prepare(dv_layer *layer, dv_error *error) {
    (void)error;
    workspace w;
    layer->forward_workspace_bytes = cut_workspace(layer, NULL, false, &w);
    layer->backward_workspace_bytes = cut_workspace(layer, NULL, true, &w);
    return DV_OK;
}

/* A map's values as f32: where they are, or in `buffer`. */
static const float *as_f32(const dv_map *map, const void *values, float *buffer) {
    if (map->type == DV_F32)
        return values;
    dv_convert_to_f32(map->type, values, dv_map_elements(map), buffer);
    return buffer;
}

static dv_status forward(dv_layer *layer, const dv_forward *call, dv_error *error) {
    const dv_map *input = &layer->inputs[0], *output = &layer->output;
    size_t images = output->images, out = output->channels;
    workspace w;
    cut_workspace(layer, call->workspace, false, &w);
    const float *x = as_f32(input, call->inputs[0], w.input);
    float *y = output->type == DV_F32 ? call->output : w.output;
    DV_TRY(dv_gemm(false, true, images, out, input->channels, x, layer->parameters[WEIGHT].data, 0, y, error));
    for (size_t n = 0; has_bias(layer) && n < images; n++)
        dv_elementwise()->from_f32(DV_F32, layer->parameters[BIAS].data, out, true, y + n * out);
    if (y != call->output)
        dv_elementwise()->from_f32(output->type, y, images * out, false, call->output);
    dv_write_bits(output, call->output, call->output_bits);
    return DV_OK;
}

static void add_bias_gradient(const dv_layer *layer, const float *diff, double *sums) {
    size_t out = layer->output.channels;
    memset(sums, 0, out * sizeof *sums);
    dv_elementwise()->sum_rows(DV_F32, diff, layer->output.images, out, sums);
    for (size_t i = 0; i < out; i++)
        layer->parameters[BIAS].gradient[i] += (float)sums[i];
}

static dv_status write_input_gradient(const dv_layer *layer, const dv_backward *call, const float *diff, float *buffer,
                                      dv_error *error) {
    const dv_map *input = &layer->inputs[0];
    bool direct = input->type == DV_F32;
    float *dx = direct ? call->diff_inputs[0] : buffer;
    float beta = direct && call->accumulate[0] ? 1 : 0;
    DV_TRY(dv_gemm(false, false, input->images, input->channels, layer->output.channels, diff,
                   layer->parameters[WEIGHT].data, beta, dx, error));
    if (!direct)
        dv_elementwise()->from_f32(input->type, dx, dv_map_elements(input), call->accumulate[0], call->diff_inputs[0]);
    return DV_OK;
}

static dv_status backward(dv_layer *layer, const dv_backward *call, dv_error *error) {
    const dv_map *input = &layer->inputs[0], *output = &layer->output;
    workspace w;
    cut_workspace(layer, call->workspace, true, &w);
    const float *diff = as_f32(output, call->diff_output, w.output);
    const float *x = as_f32(input, dv_kept_images(call->inputs[0], 0, input->images, w.decoded), w.input);
    DV_TRY(dv_gemm(true, false, output->channels, input->channels, input->images, diff, x, 1,
                   layer->parameters[WEIGHT].gradient, error));
    if (has_bias(layer))
        add_bias_gradient(layer, diff, w.sums);
    return call->diff_inputs[0] ? write_input_gradient(layer, call, diff, w.input, error) : DV_OK;
}

const dv_layer_kind dv_linear = {
    .name = "linear",
    .infer = infer,
    .prepare = prepare,
    .forward = forward,
    .backward = backward,
};
