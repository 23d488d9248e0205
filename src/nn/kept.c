/* Gets kept values back. */
#include "nn/kept.h"

#include "codec/kernels/kernels.h"
#include "nn/kernels/elementwise.h"
#include "nn/layer.h"
#include "nn/parts.h"

dv_status dv_kept_pack(const dv_kept *kept, size_t first, size_t count, const void *images, dv_error *error) {
    return dv_codec_encode_images(&kept->codec, &kept->map, &kept->noise, first, count, images, (void *)kept->packed,
                                  kept->packed_bytes, error);
}

/* Sets what has no bit to zero. */
static void clear_zeros(const dv_kept *kept, size_t first, size_t count, void *images) {
    const dv_map *map = &kept->map;
    size_t elements = dv_map_image_elements(map), parts = dv_part_count(count, elements), stride = dv_bits_stride(map);
#pragma omp parallel for schedule(static)
    for (size_t p = 0; p < parts; p++) {
        dv_part part = dv_part_at(count, elements, p);
        dv_span span = dv_part_span(map, &part);
        for (size_t n = part.first; n < part.last; n++) {
            void *image = dv_image_in(map, images, n);
            dv_elementwise()->mask(&span, image, kept->bits + (first + n) * stride, 1, false, image);
        }
    }
}

const void *dv_kept_images(const dv_kept *kept, size_t first, size_t count, void *buffer) {
    if (kept->exact)
        return (const char *)kept->exact + first * dv_map_image_elements(&kept->map) * dv_type_bytes(kept->map.type);
    if (kept->producer) {
        kept->producer->kind->recompute(kept->producer, kept, first, count, buffer);
        return buffer;
    }
    (void)dv_codec_decode_images(&kept->codec, &kept->map, &kept->noise, first, count, kept->packed, kept->packed_bytes,
                                 buffer, NULL);
    if (kept->bits)
        clear_zeros(kept, first, count, buffer);
    return buffer;
}

const uint8_t *dv_kept_bits(const dv_kept *kept, size_t first, size_t count, uint8_t *buffer) {
    size_t stride = dv_bits_stride(&kept->map), elements = dv_map_image_elements(&kept->map);
    if (kept->bits)
        return kept->bits + first * stride;
    const dv_codec_kernels *kernels = dv_codec_kernels_current();
    const char *exact = (const char *)kept->exact + first * elements * dv_type_bytes(kept->map.type);
#pragma omp parallel for schedule(static)
    for (size_t n = 0; n < count; n++)
        (void)kernels->bits_encode(kept->map.type, exact + n * elements * dv_type_bytes(kept->map.type), elements,
                                   buffer + n * stride);
    return buffer;
}
