/* Parts of a batch, and arrays in a workspace. */
#include "nn/parts.h"

#include "base/sizes.h"

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

void *dv_carve(void *workspace, size_t *offset, size_t bytes) {
    void *at = workspace ? (char *)workspace + *offset : NULL;
    *offset += (bytes + 63) / 64 * 64;
    return at;
}

void dv_extend(float *values, size_t channels) {
    for (size_t i = channels; i < dv_extended(channels); i++)
        values[i] = values[i - channels];
}

void dv_write_bits(const dv_map *map, size_t images, const void *output, uint8_t *bits) {
    const dv_codec_kernels *kernels = dv_codec_kernels_current();
    size_t elements = dv_map_image_elements(map), stride = dv_bits_stride(map);
    if (!bits)
        return;
#pragma omp parallel for schedule(static)
    for (size_t n = 0; n < images; n++)
        (void)kernels->bits_encode(map->type, dv_image(map, output, n), elements, bits + n * stride);
}

void dv_clear_images(void *batch, size_t bytes, size_t first, size_t last) {
    if (first < last)
        memset((char *)batch + first * bytes, 0, (last - first) * bytes);
}
