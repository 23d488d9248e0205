/* Sizes that several kinds of layers share. */
#include "nn/layer.h"

size_t dv_mask_stride(const dv_map *map) {
    size_t bytes = (dv_map_image_elements(map) + 7) / 8;
    return (bytes + 63) / 64 * 64;
}

static size_t slice_bytes = DV_SLICE_BYTES;

void dv_slice_bytes_force(size_t bytes) {
    slice_bytes = bytes ? bytes : DV_SLICE_BYTES;
}

size_t dv_slice_images(size_t images, size_t image_bytes) {
    size_t slice = images;
    while (slice > 1 && (images % slice != 0 || slice * image_bytes > slice_bytes))
        slice--;
    return slice;
}

size_t dv_map_slice_images(const dv_map *map) {
    return dv_slice_images(map->images, dv_map_image_elements(map) * dv_type_bytes(map->type));
}
