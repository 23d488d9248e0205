/* Global average pooling: [N, sides..., C] to [N, C], the mean over all pixels. */
#include "nn/parts.h"
#include "nn/shape.h"

static dv_status infer(dv_layer *layer, dv_error *error) {
    DV_TRY(dv_layer_check_inputs(layer, 1, 1, error));
    layer->output = layer->inputs[0];
    layer->output.rank = 0;
    layer->input_need = layer->output_need = DV_NEED_NOTHING;
    return DV_OK;
}

static size_t pixels_of(const dv_layer *layer) {
    return dv_map_image_elements(&layer->inputs[0]) / layer->inputs[0].channels;
}

static dv_status forward(const dv_layer *layer, const dv_forward *call, dv_error *error) {
    (void)error;
    const dv_map *input = &layer->inputs[0], *output = &layer->output;
#pragma omp parallel for schedule(static)
    for (size_t n = 0; n < call->images; n++)
        dv_elementwise()->average_pixels(output->type, dv_image(input, call->inputs[0], n), pixels_of(layer),
                                         output->channels, dv_image_in(output, call->output, n));
    dv_write_mask(output, call->images, call->output, call->output_mask);
    return DV_OK;
}

static dv_status backward(const dv_layer *layer, const dv_backward *call, dv_error *error) {
    (void)error;
    const dv_map *input = &layer->inputs[0], *output = &layer->output;
    size_t pixels = pixels_of(layer), bytes = input->channels * dv_type_bytes(input->type);
    const dv_tap tap = {.weight = 1.0f / (float)pixels};
    if (!call->diff_inputs[0])
        return DV_OK;
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < call->images * pixels; i++)
        dv_elementwise()->average_taps(input->type, dv_image(output, call->diff_output, i / pixels), &tap, 1,
                                       input->channels, call->accumulate[0], (char *)call->diff_inputs[0] + i * bytes);
    return DV_OK;
}

const dv_layer_kind dv_global_average_pooling = {
    .name = "global average pooling",
    .infer = infer,
    .forward = forward,
    .backward = backward,
};
