/* Convolution: its shapes. How it is computed is in convolution_run.c. */
#include "nn/convolution.h"
#include "nn/shape.h"

/* Output side: floor((side + 2 padding - reach) / stride) + 1. */
static dv_status infer(dv_layer *layer, dv_error *error) {
    const dv_convolution_options *options = layer->options;
    const dv_window *window = &options->window;
    size_t sides[DV_MAX_RANK] = {0};
    DV_TRY(dv_convolution_check(layer, error));
    const dv_map *input = &layer->inputs[0];
    for (int d = 0; d < input->rank; d++) {
        size_t padded = input->sides[d] + 2 * window->padding[d], reach = dv_window_reach(window, d);
        if (reach > padded)
            return dv_layer_fail(layer, error, DV_ERROR_ARGUMENT,
                                 "a window of %zu (kernel %zu, dilation %zu) does not fit in side %d of the input, %zu "
                                 "with its padding: use larger images, a smaller kernel or more padding",
                                 reach, window->kernel[d], window->dilation[d], d + 1, padded);
        sides[d] = (padded - reach) / window->stride[d] + 1;
    }
    return dv_convolution_declare(layer, sides, options->channels, input->channels / options->groups, error);
}

static dv_status prepare(dv_layer *layer, dv_error *error) {
    return dv_convolution_prepare(layer, false, error);
}

const dv_layer_kind dv_convolution = {
    .name = "convolution",
    .infer = infer,
    .prepare = prepare,
    .destroy = dv_convolution_destroy,
    .pass = dv_convolution_pass,
    .forward = dv_convolution_forward,
    .forward_slice = dv_convolution_forward_slice,
    .backward = dv_convolution_backward,
    .stores_output = true,
};
