/* Max pooling. Forward saves which pixel of its window won each output element: its number in the window, slowest
 * dimension first, in 4 bits if the window has at most 16 pixels, else in 8. Saved are, image by image and
 * pixel by pixel, dv_winner_bytes each: a stream of codes in the order of the channels (codec/kernels/kernels.h).
 *
 * Of equal pixels the first wins, and NaN wins over numbers, as in PyTorch. Padding never wins.
 *
 * Backward asks, for each pixel of the input, the windows that hold it whether it won there: every gradient is
 * written once, and rounded once. */
#include "nn/parts.h"
#include "nn/pooling.h"
#include "nn/shape.h"

enum { MOST = 256 }; /* pixels of a window */

static dv_status infer(dv_layer *layer, dv_error *error) {
    return dv_pooling_infer(layer, MOST, error);
}

static int winner_bits(const dv_pooling *pooling) {
    return dv_pooling_window(pooling) <= 16 ? 4 : 8;
}

/* Of one image. */
static size_t winners_bytes(const dv_layer *layer, int bits) {
    const dv_map *map = &layer->output;
    return dv_map_image_elements(map) / map->channels * dv_winner_bytes(map->channels, bits);
}

static dv_status prepare(dv_layer *layer, dv_error *error) {
    (void)error;
    dv_pooling pooling = dv_pooling_of(layer);
    layer->saved_bytes = layer->output.images * winners_bytes(layer, winner_bits(&pooling));
    return DV_OK;
}

/* One row of one image: `row` counts rows of the output, of all images. */
static void forward_row(const dv_layer *layer, const dv_pooling *p, const dv_forward *call, size_t row) {
    const dv_map *map = &layer->output;
    size_t channels = map->channels, rows = p->output[0] * p->output[1], n = row / rows;
    int bits = winner_bits(p);
    const void *image = dv_image(&layer->inputs[0], call->inputs[0], n);
    char *output = dv_image_in(map, call->output, n);
    uint8_t *saved = call->training ? (uint8_t *)call->saved + n * winners_bytes(layer, bits) : NULL;
    for (size_t x = 0; x < p->output[2]; x++) {
        dv_tap taps[MOST];
        size_t pixel = row % rows * p->output[2] + x, at[3];
        dv_pooling_position(p->output, pixel, at);
        size_t count = dv_pooling_taps(p, at, taps);
        dv_elementwise()->max_taps(map->type, image, taps, count, channels, bits,
                                   output + pixel * channels * dv_type_bytes(map->type),
                                   saved ? saved + pixel * dv_winner_bytes(channels, bits) : NULL);
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
    int bits = winner_bits(p);
    const void *diff = dv_image(&layer->output, call->diff_output, n);
    const uint8_t *saved = (const uint8_t *)call->saved + n * winners_bytes(layer, bits);
    char *dx = dv_image_in(map, call->diff_inputs[0], n);
    for (size_t x = 0; x < p->input[2]; x++) {
        dv_tap taps[MOST];
        size_t pixel = row % rows * p->input[2] + x, at[3];
        dv_pooling_position(p->input, pixel, at);
        size_t count = dv_pooling_taps_back(p, at, taps);
        dv_elementwise()->max_taps_backward(map->type, diff, saved, taps, count, channels, bits, call->accumulate[0],
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

const dv_layer_kind dv_max_pooling = {
    .name = "max pooling",
    .infer = infer,
    .prepare = prepare,
    .forward = forward,
    .backward = backward,
};
