/* Dropout: in training each element is dropped with the given probability, and the others are scaled up by
 * 1 / (1 - probability); in inference nothing happens. Which ones follows from seed, step, layer, image and
 * element alone. One bit per element is saved, in the order of the `bits` codec, set where it was kept. */
#include "nn/parts.h"
#include "nn/shape.h"

static float probability(const dv_layer *layer) {
    return ((const dv_dropout_options *)layer->options)->probability;
}

static dv_status infer(dv_layer *layer, dv_error *error) {
    DV_TRY(dv_layer_check_options(layer, error));
    DV_TRY(dv_layer_check_inputs(layer, 1, 1, error));
    if (!(probability(layer) >= 0 && probability(layer) < 1))
        return dv_layer_fail(layer, error, DV_ERROR_OPTION, "probability is %g: it must be at least 0 and below 1",
                             (double)probability(layer));
    layer->output = layer->inputs[0];
    layer->input_need = layer->output_need = DV_NEED_NOTHING;
    return DV_OK;
}

static dv_status prepare(dv_layer *layer, dv_error *error) {
    (void)error;
    layer->saved_bytes = layer->output.images * dv_mask_stride(&layer->output);
    return DV_OK;
}

static float scale_of(const dv_layer *layer) {
    return 1.0f / (1.0f - probability(layer));
}

/* One part, of one image of the batch in training. */
static void drop_some(const dv_layer *layer, const dv_forward *call, const dv_span *span, size_t n) {
    const dv_map *map = &layer->output;
    dv_random key = dv_random_key((uint64_t[]){call->seed, call->step, call->key, call->first_image + n}, 4);
    uint32_t threshold = (uint32_t)((double)probability(layer) * 0x1p32);
    dv_elementwise()->dropout(span, key, threshold, scale_of(layer), dv_image(map, call->inputs[0], n),
                              dv_image_in(map, call->output, n), (uint8_t *)call->saved + n * dv_mask_stride(map));
}

/* The same in inference. */
static void keep_all(const dv_layer *layer, const dv_forward *call, const dv_span *span, size_t n) {
    const dv_map *map = &layer->output;
    size_t offset = span->begin * dv_type_bytes(map->type);
    const char *image = (const char *)dv_image(map, call->inputs[0], n) + offset;
    char *output = (char *)dv_image_in(map, call->output, n) + offset;
    if (image != output)
        dv_elementwise()->copy(map->type, image, 0, output, 0, 1, span->end - span->begin, false);
}

static dv_status forward(const dv_layer *layer, const dv_forward *call, dv_error *error) {
    (void)error;
    dv_forward_spans(layer, call, call->training ? drop_some : keep_all);
    dv_write_mask(&layer->output, call->images, call->output, call->output_mask);
    return DV_OK;
}

static dv_status backward(const dv_layer *layer, const dv_backward *call, dv_error *error) {
    (void)error;
    const dv_map *map = &layer->output;
    const uint8_t *saved = call->saved;
    size_t elements = dv_map_image_elements(map), parts = dv_part_count(call->images, elements);
    if (!call->diff_inputs[0])
        return DV_OK;
#pragma omp parallel for schedule(static)
    for (size_t p = 0; p < parts; p++) {
        dv_part part = dv_part_at(call->images, elements, p);
        dv_span span = dv_part_span(map, &part);
        for (size_t n = part.first; n < part.last; n++)
            dv_elementwise()->apply_mask(&span, dv_image(map, call->diff_output, n), saved + n * dv_mask_stride(map),
                                         scale_of(layer), call->accumulate[0],
                                         dv_image_in(map, call->diff_inputs[0], n));
    }
    return DV_OK;
}

const dv_layer_kind dv_dropout = {
    .name = "dropout",
    .infer = infer,
    .prepare = prepare,
    .forward = forward,
    .backward = backward,
    .in_place = true,
    .diff_in_place = 1u << 0,
};
