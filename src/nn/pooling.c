/* Windows of pooling layers. */
#include "nn/pooling.h"

#include "nn/shape.h"

/* ---- shapes ---------------------------------------------------------------------------------- */

/* Output side. With `up` a last window that sticks out counts, if it starts inside the input or the padding
 * before it. */
static size_t output_side(size_t input, size_t kernel, size_t stride, size_t padding, bool up) {
    size_t room = input + 2 * padding - kernel, side = room / stride + 1;
    if (up && room % stride != 0 && side * stride < input + padding)
        side++;
    return side;
}

static dv_status check_side(const dv_layer *layer, int d, dv_error *error) {
    const dv_window *window = &((const dv_pooling_options *)layer->options)->window;
    size_t kernel = window->kernel[d], padding = window->padding[d], input = layer->inputs[0].sides[d];
    if (kernel == 0 || window->stride[d] == 0 || window->dilation[d] != 1)
        return dv_layer_fail(layer, error, DV_ERROR_OPTION,
                             "kernel %zu, stride %zu, dilation %zu along dimension %d: kernel and stride must be at "
                             "least 1, dilation 1",
                             kernel, window->stride[d], window->dilation[d], d);
    if (padding > kernel / 2)
        return dv_layer_fail(layer, error, DV_ERROR_OPTION,
                             "padding %zu along dimension %d: it must be at most half of the kernel's %zu", padding, d,
                             kernel);
    if (kernel > input + 2 * padding)
        return dv_layer_fail(layer, error, DV_ERROR_OPTION,
                             "kernel %zu and padding %zu do not fit dimension %d of input %s: use a smaller kernel",
                             kernel, padding, d, dv_shape(&layer->inputs[0]).text);
    return DV_OK;
}

dv_status dv_pooling_infer(dv_layer *layer, size_t most, dv_error *error) {
    DV_TRY(dv_layer_check_options(layer, error));
    DV_TRY(dv_layer_check_inputs(layer, 1, 1, error));
    const dv_pooling_options *options = layer->options;
    const dv_map *input = &layer->inputs[0];
    size_t window = 1;
    if (input->rank == 0)
        return dv_layer_fail(layer, error, DV_ERROR_UNSUPPORTED, "input %s has no sides to pool over",
                             dv_shape(input).text);
    layer->output = *input;
    for (int d = 0; d < input->rank; d++) {
        const dv_window *w = &options->window;
        DV_TRY(check_side(layer, d, error));
        layer->output.sides[d] = output_side(input->sides[d], w->kernel[d], w->stride[d], w->padding[d], options->ceil);
        if (w->kernel[d] > most / window)
            return dv_layer_fail(layer, error, DV_ERROR_UNSUPPORTED,
                                 "windows of more than %zu pixels: use smaller ones, or global average pooling", most);
        window *= w->kernel[d];
    }
    layer->input_need = layer->output_need = DV_NEED_NOTHING;
    return DV_OK;
}

dv_pooling dv_pooling_of(const dv_layer *layer) {
    const dv_window *window = &((const dv_pooling_options *)layer->options)->window;
    int lead = DV_MAX_RANK - layer->output.rank;
    dv_pooling pooling;
    for (int d = 0; d < 3; d++) {
        bool real = d >= lead;
        pooling.input[d] = real ? layer->inputs[0].sides[d - lead] : 1;
        pooling.output[d] = real ? layer->output.sides[d - lead] : 1;
        pooling.kernel[d] = real ? window->kernel[d - lead] : 1;
        pooling.stride[d] = real ? window->stride[d - lead] : 1;
        pooling.padding[d] = real ? window->padding[d - lead] : 0;
    }
    return pooling;
}

size_t dv_pooling_window(const dv_pooling *pooling) {
    return pooling->kernel[0] * pooling->kernel[1] * pooling->kernel[2];
}

void dv_pooling_position(const size_t sides[3], size_t index, size_t position[3]) {
    position[2] = index % sides[2];
    position[1] = index / sides[2] % sides[1];
    position[0] = index / sides[2] / sides[1];
}

/* ---- taps ------------------------------------------------------------------------------------ */

/* What of a window, or of the windows around a pixel, there is along one dimension: positions from first to
 * end - 1. The code's share along it starts at `code` and goes by `step`. */
typedef struct range {
    size_t first, end;
    size_t code;
    ptrdiff_t step;
} range;

/* Input positions in the window of output position `at`. */
static range window_range(const dv_pooling *p, int d, size_t at) {
    size_t start = at * p->stride[d], end = start + p->kernel[d]; /* both with the padding before */
    size_t first = start > p->padding[d] ? start : p->padding[d];
    size_t limit = p->input[d] + p->padding[d];
    return (range){first - p->padding[d], (end < limit ? end : limit) - p->padding[d], first - start, 1};
}

/* Output positions whose windows hold input position `at`. */
static range windows_range(const dv_pooling *p, int d, size_t at) {
    size_t padded = at + p->padding[d], stride = p->stride[d];
    size_t first = padded < p->kernel[d] ? 0 : (padded - p->kernel[d]) / stride + 1;
    size_t end = padded / stride + 1;
    end = end < p->output[d] ? end : p->output[d];
    return (range){first, end, padded - first * stride, -(ptrdiff_t)stride};
}

/* All combinations of three ranges of positions among `sides`. */
static size_t combine(const range ranges[3], const size_t sides[3], const size_t kernel[3], dv_tap *taps) {
    size_t count = 0;
    for (size_t z = ranges[0].first, i = ranges[0].code; z < ranges[0].end; z++, i += (size_t)ranges[0].step)
        for (size_t y = ranges[1].first, j = ranges[1].code; y < ranges[1].end; y++, j += (size_t)ranges[1].step)
            for (size_t x = ranges[2].first, k = ranges[2].code; x < ranges[2].end; x++, k += (size_t)ranges[2].step)
                taps[count++] = (dv_tap){.pixel = (z * sides[1] + y) * sides[2] + x,
                                         .weight = 1,
                                         .code = (uint8_t)((i * kernel[1] + j) * kernel[2] + k)};
    return count;
}

size_t dv_pooling_taps(const dv_pooling *pooling, const size_t at[3], dv_tap *taps) {
    range ranges[3];
    for (int d = 0; d < 3; d++)
        ranges[d] = window_range(pooling, d, at[d]);
    return combine(ranges, pooling->input, pooling->kernel, taps);
}

size_t dv_pooling_taps_back(const dv_pooling *pooling, const size_t at[3], dv_tap *taps) {
    range ranges[3];
    for (int d = 0; d < 3; d++)
        ranges[d] = windows_range(pooling, d, at[d]);
    return combine(ranges, pooling->output, pooling->kernel, taps);
}

size_t dv_pooling_divisor(const dv_pooling *pooling, const size_t at[3], bool count_padding) {
    size_t divisor = 1;
    for (int d = 0; d < 3; d++) {
        range inside = window_range(pooling, d, at[d]);
        size_t start = at[d] * pooling->stride[d], end = start + pooling->kernel[d];
        size_t limit = pooling->input[d] + 2 * pooling->padding[d];
        divisor *= count_padding ? (end < limit ? end : limit) - start : inside.end - inside.first;
    }
    return divisor;
}
