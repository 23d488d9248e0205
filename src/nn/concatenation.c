/* Concatenation of inputs along their channels. */
#include "base/sizes.h"
#include "nn/parts.h"
#include "nn/shape.h"

static dv_status infer(dv_layer *layer, dv_error *error) {
    DV_TRY(dv_layer_check_inputs(layer, 1, SIZE_MAX, error));
    layer->output = layer->inputs[0];
    for (size_t i = 1; i < layer->input_count; i++) {
        const dv_map *map = &layer->inputs[i];
        if (!dv_same_sides(map, &layer->output))
            return dv_layer_fail(layer, error, DV_ERROR_ARGUMENT,
                                 "joins %s to %s: inputs may differ in channels, the last, only", dv_shape(map).text,
                                 dv_shape(&layer->inputs[0]).text);
        layer->output.channels += map->channels;
    }
    dv_error inner;
    if (dv_map_check(&layer->output, &inner) != DV_OK)
        return dv_layer_fail(layer, error, DV_ERROR_UNSUPPORTED, "%s", inner.text);
    layer->input_need = layer->output_need = DV_NEED_NOTHING;
    return DV_OK;
}

enum { ROW_PIXELS = 64 }; /* that a thread takes at once */

/* Pixels of `images` images. */
static size_t pixels_of(const dv_map *map, size_t images) {
    return images * (dv_map_image_elements(map) / map->channels);
}

/* Copies all inputs' channels of pixels first .. first + count - 1 into the output. */
static void join(const dv_layer *layer, const dv_forward *call, size_t first, size_t count) {
    size_t bytes = dv_type_bytes(layer->output.type), to = layer->output.channels;
    char *output = (char *)call->output + first * to * bytes;
    for (size_t i = 0; i < layer->input_count; i++) {
        size_t from = layer->inputs[i].channels;
        dv_elementwise()->copy(layer->output.type, (const char *)call->inputs[i] + first * from * bytes, from, output,
                               to, count, from, false);
        output += from * bytes;
    }
}

static dv_status forward(const dv_layer *layer, const dv_forward *call, dv_error *error) {
    (void)error;
    size_t pixels = pixels_of(&layer->output, call->images);
#pragma omp parallel for schedule(static)
    for (size_t first = 0; first < pixels; first += ROW_PIXELS)
        join(layer, call, first, pixels - first < ROW_PIXELS ? pixels - first : ROW_PIXELS);
    dv_write_mask(&layer->output, call->images, call->output, call->output_mask);
    return DV_OK;
}

/* The other way: each wanted gradient gets its channels of diff_output. */
static void split(const dv_layer *layer, const dv_backward *call, size_t first, size_t count) {
    size_t bytes = dv_type_bytes(layer->output.type), from = layer->output.channels;
    const char *diff = (const char *)call->diff_output + first * from * bytes;
    for (size_t i = 0; i < layer->input_count; i++) {
        size_t to = layer->inputs[i].channels;
        if (call->diff_inputs[i])
            dv_elementwise()->copy(layer->output.type, diff, from, (char *)call->diff_inputs[i] + first * to * bytes,
                                   to, count, to, call->accumulate[i]);
        diff += to * bytes;
    }
}

static dv_status backward(const dv_layer *layer, const dv_backward *call, dv_error *error) {
    (void)error;
    size_t pixels = pixels_of(&layer->output, call->images);
#pragma omp parallel for schedule(static)
    for (size_t first = 0; first < pixels; first += ROW_PIXELS)
        split(layer, call, first, pixels - first < ROW_PIXELS ? pixels - first : ROW_PIXELS);
    return DV_OK;
}

/* ---- recompute -------------------------------------------------------------------------------- */

static dv_status prepare(dv_layer *layer, dv_error *error) {
    (void)error;
    size_t largest = 0;
    for (size_t i = 0; i < layer->input_count; i++)
        largest = dv_larger(largest, dv_map_image_elements(&layer->inputs[i]));
    layer->recompute_bytes = dv_map_slice_images(&layer->output) * largest * dv_type_bytes(layer->output.type);
    return DV_OK;
}

/* Copies `pixels` pixels of an input into its channels of the output. */
static void place(const dv_map *part, const char *src, const dv_map *whole, size_t pixels, char *dst) {
    size_t bytes = dv_type_bytes(part->type), from = part->channels, to = whole->channels;
#pragma omp parallel for schedule(static)
    for (size_t p = 0; p < pixels; p += ROW_PIXELS)
        dv_elementwise()->copy(part->type, src + p * from * bytes, from, dst + p * to * bytes, to,
                               dv_smaller(pixels - p, ROW_PIXELS), from, false);
}

static dv_status recompute(const dv_layer *layer, const dv_kept *output, size_t first, size_t count, void *images,
                           dv_error *error) {
    const dv_map *map = &layer->output;
    size_t slice = dv_map_slice_images(map);
    for (size_t done = 0; done < count; done += slice) {
        size_t now = dv_smaller(slice, count - done);
        char *dst = dv_image_in(map, images, done);
        for (size_t i = 0; i < layer->input_count; i++) {
            const void *src;
            DV_TRY(dv_kept_images(output->inputs[i], first + done, now, output->workspace, &src, error));
            place(&layer->inputs[i], src, map, pixels_of(map, now), dst);
            dst += layer->inputs[i].channels * dv_type_bytes(map->type);
        }
    }
    return DV_OK;
}

const dv_layer_kind dv_concatenation = {
    .name = "concatenation",
    .infer = infer,
    .prepare = prepare,
    .forward = forward,
    .backward = backward,
    .recompute = recompute,
    .joins = true,
};
