/* Leaky ReLU: output = input where that is positive, else input * slope. Backward has to know where the output is
 * positive, as ReLU's; but elsewhere it is not zero, so that its mask says nothing about its numbers. */
#include "nn/parts.h"
#include "nn/shape.h"

static float slope_of(const dv_layer *layer) {
    return ((const dv_leaky_relu_options *)layer->options)->slope;
}

static dv_status infer(dv_layer *layer, dv_error *error) {
    DV_TRY(dv_layer_check_options(layer, error));
    DV_TRY(dv_layer_check_inputs(layer, 1, 1, error));
    if (!(slope_of(layer) > 0 && slope_of(layer) < 1))
        return dv_layer_fail(layer, error, DV_ERROR_OPTION, "slope is %g: it must be above 0 and below 1",
                             (double)slope_of(layer));
    layer->output = layer->inputs[0];
    layer->input_need = DV_NEED_NOTHING;
    layer->output_need = DV_NEED_MASK;
    return DV_OK;
}

/* For the mask of a slice, where it is not kept as such. */
static dv_status prepare(dv_layer *layer, dv_error *error) {
    (void)error;
    layer->backward_workspace_bytes = dv_map_slice_images(&layer->output) * dv_mask_stride(&layer->output);
    return DV_OK;
}

static void leak(const dv_layer *layer, const dv_forward *call, const dv_span *span, size_t n) {
    const dv_map *map = &layer->output;
    dv_elementwise()->leak(span, dv_image(map, call->inputs[0], n), slope_of(layer), dv_image_in(map, call->output, n),
                           call->output_mask ? call->output_mask + n * dv_mask_stride(map) : NULL);
}

static dv_status forward(const dv_layer *layer, const dv_forward *call, dv_error *error) {
    (void)error;
    dv_forward_spans(layer, call, leak);
    return DV_OK;
}

static void pass_on(const dv_layer *layer, const dv_backward *call, const dv_span *span, size_t n,
                    const uint8_t *mask) {
    const dv_map *map = &layer->output;
    dv_elementwise()->leak_backward(span, dv_image(map, call->diff_output, n), mask, slope_of(layer),
                                    call->accumulate[0], dv_image_in(map, call->diff_inputs[0], n));
}

static dv_status backward(const dv_layer *layer, const dv_backward *call, dv_error *error) {
    return call->diff_inputs[0] ? dv_masked_spans(layer, call, pass_on, error) : DV_OK;
}

const dv_layer_kind dv_leaky_relu = {
    .name = "leaky relu",
    .infer = infer,
    .prepare = prepare,
    .forward = forward,
    .backward = backward,
    .in_place = true,
    .diff_in_place = 1u << 0,
};
