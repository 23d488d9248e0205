/* ReLU: output = max(input, 0). Backward passes on what the mask of its output says. */
#include "nn/parts.h"
#include "nn/shape.h"

static dv_status infer(dv_layer *layer, dv_error *error) {
    DV_TRY(dv_layer_check_inputs(layer, 1, 1, error));
    layer->output = layer->inputs[0];
    layer->input_need = DV_NEED_NOTHING;
    layer->output_need = DV_NEED_MASK;
    layer->zero_outside_mask = true;
    return DV_OK;
}

static dv_status prepare(dv_layer *layer, dv_error *error) {
    (void)error;
    layer->backward_workspace_bytes = dv_map_slice_images(&layer->output) * dv_mask_stride(&layer->output);
    return DV_OK;
}

static void rectify(const dv_layer *layer, const dv_forward *call, const dv_span *span, size_t n) {
    const dv_map *map = &layer->output;
    dv_elementwise()->rectify(span, dv_image(map, call->inputs[0], n), dv_image_in(map, call->output, n),
                              call->output_mask ? call->output_mask + n * dv_mask_stride(map) : NULL);
}

static dv_status forward(const dv_layer *layer, const dv_forward *call, dv_error *error) {
    (void)error;
    dv_forward_spans(layer, call, rectify);
    return DV_OK;
}

static void pass_on(const dv_layer *layer, const dv_backward *call, const dv_span *span, size_t n,
                    const uint8_t *mask) {
    const dv_map *map = &layer->output;
    dv_elementwise()->apply_mask(span, dv_image(map, call->diff_output, n), mask, 1, call->accumulate[0],
                                 dv_image_in(map, call->diff_inputs[0], n));
}

static dv_status backward(const dv_layer *layer, const dv_backward *call, dv_error *error) {
    return call->diff_inputs[0] ? dv_masked_spans(layer, call, pass_on, error) : DV_OK;
}

const dv_layer_kind dv_relu = {
    .name = "relu",
    .infer = infer,
    .prepare = prepare,
    .forward = forward,
    .backward = backward,
    .role = DV_ROLE_RELU,
    .in_place = true,
    .diff_in_place = 1u << 0,
};
