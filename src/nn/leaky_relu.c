/* Leaky ReLU: output = input where that is positive, else input * slope. Backward has to know where the output is
 * positive, as ReLU's; but elsewhere it is not zero, so that its mask says nothing about its numbers. */
#include "base/sizes.h"
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
    layer->output_need = DV_NEED_BITS;
    return DV_OK;
}

/* For the mask of a slice, where it is not kept as such. */
static dv_status prepare(dv_layer *layer, dv_error *error) {
    (void)error;
    layer->backward_workspace_bytes = dv_map_slice_images(&layer->output) * dv_bits_stride(&layer->output);
    return DV_OK;
}

static dv_status forward(const dv_layer *layer, const dv_forward *call, dv_error *error) {
    (void)error;
    const dv_map *map = &layer->output;
    size_t elements = dv_map_image_elements(map), parts = dv_part_count(call->images, elements);
#pragma omp parallel for schedule(static)
    for (size_t p = 0; p < parts; p++) {
        dv_part part = dv_part_at(call->images, elements, p);
        dv_span span = dv_part_span(map, &part);
        for (size_t n = part.first; n < part.last; n++)
            dv_elementwise()->leak(&span, dv_image(map, call->inputs[0], n), slope_of(layer),
                                   dv_image_in(map, call->output, n),
                                   call->output_bits ? call->output_bits + n * dv_bits_stride(map) : NULL);
    }
    return DV_OK;
}

/* Images first .. first + count - 1, whose mask is at `bits`. */
static void pass_on(const dv_layer *layer, const dv_backward *call, size_t first, size_t count, const uint8_t *bits) {
    const dv_map *map = &layer->output;
    size_t elements = dv_map_image_elements(map), parts = dv_part_count(count, elements);
#pragma omp parallel for schedule(static)
    for (size_t p = 0; p < parts; p++) {
        dv_part part = dv_part_at(count, elements, p);
        dv_span span = dv_part_span(map, &part);
        for (size_t n = part.first; n < part.last; n++)
            dv_elementwise()->leak_backward(&span, dv_image(map, call->diff_output, first + n),
                                            bits + n * dv_bits_stride(map), slope_of(layer), call->accumulate[0],
                                            dv_image_in(map, call->diff_inputs[0], first + n));
    }
}

static dv_status backward(const dv_layer *layer, const dv_backward *call, dv_error *error) {
    const dv_map *map = &layer->output;
    size_t step = call->output->bits ? call->images : dv_map_slice_images(map);
    for (size_t first = 0; call->diff_inputs[0] && first < call->images; first += step) {
        size_t now = dv_smaller(step, call->images - first);
        const uint8_t *bits;
        DV_TRY(dv_kept_mask(call->output, first, now, call->workspace, &bits, error));
        pass_on(layer, call, first, now, bits);
    }
    return DV_OK;
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
