/* Parts of a batch, and arrays in a workspace. */
#include "nn/parts.h"

#include "base/sizes.h"
#include "base/status.h"

#include <string.h>

enum { LEAST_CHUNKS = 16 }; /* of a piece of an image: less is not worth a thread's start */

/* Chunks of each piece that an image is cut into. */
static size_t piece_chunks(size_t images, size_t elements) {
    size_t chunks = dv_divide_up(elements, DV_CHUNK), pieces = images < DV_MAX_PARTS ? DV_MAX_PARTS / images : 1;
    size_t each = dv_divide_up(chunks, pieces);
    return each < LEAST_CHUNKS ? LEAST_CHUNKS : each;
}

static size_t pieces_per_image(size_t images, size_t elements) {
    return dv_divide_up(dv_divide_up(elements, DV_CHUNK), piece_chunks(images, elements));
}

size_t dv_part_count(size_t images, size_t elements) {
    if (images >= DV_MAX_PARTS)
        return dv_divide_up(images, dv_divide_up(images, DV_MAX_PARTS));
    return images * pieces_per_image(images, elements);
}

dv_part dv_part_at(size_t images, size_t elements, size_t index) {
    if (images >= DV_MAX_PARTS) {
        size_t each = dv_divide_up(images, DV_MAX_PARTS), last = (index + 1) * each;
        return (dv_part){index * each, last < images ? last : images, 0, elements};
    }
    size_t pieces = pieces_per_image(images, elements), length = piece_chunks(images, elements) * DV_CHUNK;
    size_t image = index / pieces, begin = index % pieces * length;
    return (dv_part){image, image + 1, begin, begin + length < elements ? begin + length : elements};
}

void dv_forward_spans(const dv_layer *layer, const dv_forward *call, dv_forward_span *forward) {
    const dv_map *map = &layer->output;
    size_t elements = dv_map_image_elements(map), parts = dv_part_count(call->images, elements);
#pragma omp parallel for schedule(static)
    for (size_t p = 0; p < parts; p++) {
        dv_part part = dv_part_at(call->images, elements, p);
        dv_span span = dv_part_span(map, &part);
        for (size_t n = part.first; n < part.last; n++)
            forward(layer, call, &span, n);
    }
}

/* Images first .. first + count - 1, whose mask is at `mask`. */
static void masked_slice(const dv_layer *layer, const dv_backward *call, dv_masked_span *backward, size_t first,
                         size_t count, const uint8_t *mask) {
    const dv_map *map = &layer->output;
    size_t elements = dv_map_image_elements(map), parts = dv_part_count(count, elements);
#pragma omp parallel for schedule(static)
    for (size_t p = 0; p < parts; p++) {
        dv_part part = dv_part_at(count, elements, p);
        dv_span span = dv_part_span(map, &part);
        for (size_t n = part.first; n < part.last; n++)
            backward(layer, call, &span, first + n, mask + n * dv_mask_stride(map));
    }
}

dv_status dv_masked_spans(const dv_layer *layer, const dv_backward *call, dv_masked_span *backward, dv_error *error) {
    const dv_map *map = &layer->output;
    size_t step = call->output->mask ? call->images : dv_map_slice_images(map);
    for (size_t first = 0; first < call->images; first += step) {
        size_t now = dv_smaller(step, call->images - first);
        const uint8_t *mask;
        DV_TRY(dv_kept_mask(call->output, first, now, call->workspace, &mask, error));
        masked_slice(layer, call, backward, first, now, mask);
    }
    return DV_OK;
}

void *dv_carve(void *workspace, size_t *offset, size_t bytes) {
    void *at = workspace ? (char *)workspace + *offset : NULL;
    *offset += (bytes + 63) / 64 * 64;
    return at;
}

void dv_extend(float *values, size_t channels) {
    for (size_t i = channels; i < dv_extended(channels); i++)
        values[i] = values[i - channels];
}

void dv_write_mask(const dv_map *map, size_t images, const void *output, uint8_t *mask) {
    const dv_codec_kernels *kernels = dv_codec_kernels_current();
    size_t elements = dv_map_image_elements(map), stride = dv_mask_stride(map);
    if (!mask)
        return;
#pragma omp parallel for schedule(static)
    for (size_t n = 0; n < images; n++)
        (void)kernels->bits_encode(map->type, dv_image(map, output, n), elements, mask + n * stride);
}

void dv_clear_images(void *batch, size_t bytes, size_t first, size_t last) {
    if (first < last)
        memset((char *)batch + first * bytes, 0, (last - first) * bytes);
}
