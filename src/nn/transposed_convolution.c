/* Transposed convolution: its shapes. How it is computed is in convolution_run.c. */
#include "nn/convolution.h"
#include "nn/shape.h"

/* Output side: (side - 1) stride - 2 padding + reach + output_padding, which is a side that a convolution
 * brings back to `side`. */
static dv_status infer_side(const dv_layer *layer, int d, size_t *side, dv_error *error) {
    const dv_convolution_options *options = layer->options;
    const dv_window *window = &options->window;
    size_t stride = window->stride[d], more = options->output_padding[d];
    size_t larger = stride > window->dilation[d] ? stride : window->dilation[d];
    if (more >= larger)
        return dv_layer_fail(layer, error, DV_ERROR_ARGUMENT,
                             "output padding %zu of side %d must be smaller than its stride %zu or its dilation %zu",
                             more, d + 1, stride, window->dilation[d]);
    if (more >= window->padding[d] + stride)
        return dv_layer_fail(layer, error, DV_ERROR_UNSUPPORTED,
                             "output padding %zu of side %d must be smaller than padding %zu and stride %zu together",
                             more, d + 1, window->padding[d], stride);
    size_t whole = (layer->inputs[0].sides[d] - 1) * stride + dv_window_reach(window, d) + more;
    if (whole <= 2 * window->padding[d])
        return dv_layer_fail(layer, error, DV_ERROR_ARGUMENT,
                             "padding %zu takes away all %zu elements of side %d of the output: use a smaller one",
                             window->padding[d], whole, d + 1);
    *side = whole - 2 * window->padding[d];
    return DV_OK;
}

static dv_status infer(dv_layer *layer, dv_error *error) {
    const dv_convolution_options *options = layer->options;
    size_t sides[DV_MAX_RANK] = {0};
    DV_TRY(dv_convolution_check(layer, error));
    for (int d = 0; d < layer->inputs[0].rank; d++)
        DV_TRY(infer_side(layer, d, &sides[d], error));
    return dv_convolution_declare(layer, sides, layer->inputs[0].channels, options->channels / options->groups, error);
}

static dv_status prepare(dv_layer *layer, dv_error *error) {
    return dv_convolution_prepare(layer, true, error);
}

const dv_layer_kind dv_transposed_convolution = {
    .name = "transposed convolution",
    .infer = infer,
    .prepare = prepare,
    .destroy = dv_convolution_destroy,
    .pass = dv_convolution_pass,
    .forward = dv_convolution_forward,
    .forward_slice = dv_convolution_forward_slice,
    .backward = dv_convolution_backward,
    .stores_output = true,
};
