/* Asks a value's keeper. */
#include "nn/kept.h"

dv_status dv_kept_store(const dv_kept *kept, size_t first, size_t count, const void *images, dv_error *error) {
    return kept->access->store(kept, first, count, images, error);
}

dv_status dv_kept_store_input(const dv_kept *kept, size_t first, size_t count, const void *images, const void *gate,
                              dv_error *error) {
    if (kept->access->store_gated)
        return kept->access->store_gated(kept, first, count, images, gate, error);
    return dv_kept_store(kept, first, count, images, error);
}

dv_status dv_kept_images(const dv_kept *kept, size_t first, size_t count, void *buffer, const void **images,
                         dv_error *error) {
    return kept->access->load(kept, first, count, buffer, images, error);
}

dv_status dv_kept_normalized(const dv_kept *kept, size_t first, size_t count, const struct dv_lean_norm *norm,
                             void *images, dv_error *error) {
    return kept->access->load_normalized(kept, first, count, norm, images, error);
}

dv_status dv_kept_mask(const dv_kept *kept, size_t first, size_t count, uint8_t *buffer, const uint8_t **mask,
                       dv_error *error) {
    return kept->mask_access->load_mask(kept->mask_in, first, count, buffer, mask, error);
}
