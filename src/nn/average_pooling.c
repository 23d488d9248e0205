/* Average pooling. Padding counts as zeros, and whether it counts in the divisor is an option; what a last
 * window with `ceil` has beyond the padding never does: PyTorch's rules.
 *
 * Backward gathers, for each pixel of the input, its shares of the windows that hold it. */
#include "nn/parts.h"
#include "nn/pooling.h"
#include "nn/shape.h"

enum { MOST = 1024 }; /* pixels of a window */

static dv_status infer(dv_layer *layer, dv_error *error) {
    return dv_pooling_infer(layer, MOST, error);
}

static bool count_padding(const dv_layer *layer) {
    return ((const dv_pooling_options *)layer->options)->count_padding;
}

static float share(const dv_layer *layer, const dv_pooling *p, const size_t at[3]) {
    return 1.0f / (float)dv_pooling_divisor(p, at, count_padding(layer));
}

/* One row of one image: `row` counts rows of the output, of all images. */
static void forward_row(const dv_layer *layer, const dv_pooling *p, const dv_forward *call, size_t row) {
    const dv_map *map = &layer->output;
    size_t channels = map->channels, rows = p->output[0] * p->output[1], n = row / rows;
    const void *image = dv_image(&layer->inputs[0], call->inputs[0], n);
    char *output = dv_image_in(map, call->output, n);
    for (size_t x = 0; x < p->output[2]; x++) {
        dv_tap taps[MOST];
        size_t pixel = row % rows * p->output[2] + x, at[3];
        dv_pooling_position(p->output, pixel, at);
        size_t count = dv_pooling_taps(p, at, taps);
        for (size_t k = 0; k < count; k++)
            taps[k].weight = share(layer, p, at);
        dv_elementwise()->average_taps(map->type, image, taps, count, channels, false,
                                       output + pixel * channels * dv_type_bytes(map->type));
    }
}

static dv_status forward(const dv_layer *layer, const dv_forward *call, dv_error *error) {
    (void)error;
    dv_pooling pooling = dv_pooling_of(layer);
    size_t rows = call->images * pooling.output[0] * pooling.output[1];
#pragma omp parallel for schedule(static)
    for (size_t row = 0; row < rows; row++)
        forward_row(layer, &pooling, call, row);
    dv_write_mask(&layer->output, call->images, call->output, call->output_mask);
    return DV_OK;
}

/* The same for rows of the input. */
static void backward_row(const dv_layer *layer, const dv_pooling *p, const dv_backward *call, size_t row) {
    const dv_map *map = &layer->inputs[0];
    size_t channels = map->channels, rows = p->input[0] * p->input[1], n = row / rows;
    const void *diff = dv_image(&layer->output, call->diff_output, n);
    char *dx = dv_image_in(map, call->diff_inputs[0], n);
    for (size_t x = 0; x < p->input[2]; x++) {
        dv_tap taps[MOST];
        size_t pixel = row % rows * p->input[2] + x, at[3];
        dv_pooling_position(p->input, pixel, at);
        size_t count = dv_pooling_taps_back(p, at, taps);
        for (size_t k = 0; k < count; k++) {
            dv_pooling_position(p->output, taps[k].pixel, at);
            taps[k].weight = share(layer, p, at);
        }
        dv_elementwise()->average_taps(map->type, diff, taps, count, channels, call->accumulate[0],
                                       dx + pixel * channels * dv_type_bytes(map->type));
    }
}

static dv_status backward(const dv_layer *layer, const dv_backward *call, dv_error *error) {
    (void)error;
    dv_pooling pooling = dv_pooling_of(layer);
    size_t rows = call->images * pooling.input[0] * pooling.input[1];
    if (!call->diff_inputs[0])
        return DV_OK;
#pragma omp parallel for schedule(static)
    for (size_t row = 0; row < rows; row++)
        backward_row(layer, &pooling, call, row);
    return DV_OK;
}

const dv_layer_kind dv_average_pooling = {
    .name = "average pooling",
    .infer = infer,
    .forward = forward,
    .backward = backward,
};
