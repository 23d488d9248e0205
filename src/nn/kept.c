/* Gets kept values back. */
#include "nn/kept.h"

#include "codec/kernels/kernels.h"
#include "nn/layer.h"

const void *dv_kept_images(const dv_kept *kept, size_t first, size_t count, void *buffer) {
    if (kept->exact)
        return (const char *)kept->exact + first * dv_map_image_elements(&kept->map) * dv_type_bytes(kept->map.type);
    (void)dv_codec_decode_images(&kept->codec, &kept->map, &kept->noise, first, count, kept->packed, kept->packed_bytes,
                                 buffer, NULL);
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
