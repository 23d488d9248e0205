/* The value stays where forward left it. */
#include "base/status.h"
#include "codec/kernels/kernels.h"
#include "graph/plan.h"
#include "graph/run.h"

static const char *images_of(const dv_kept *kept, size_t first) {
    return (const char *)kept->exact + first * dv_map_image_elements(&kept->map) * dv_type_bytes(kept->map.type);
}

dv_status dv_exact_load(const dv_kept *kept, size_t first, size_t count, void *buffer, const void **images,
                        dv_error *error) {
    (void)count;
    (void)buffer;
    (void)error;
    *images = images_of(kept, first);
    return DV_OK;
}

dv_status dv_exact_load_mask(const dv_kept *kept, size_t first, size_t count, uint8_t *buffer, const uint8_t **mask,
                             dv_error *error) {
    (void)error;
    size_t stride = dv_mask_stride(&kept->map), elements = dv_map_image_elements(&kept->map);
    const dv_codec_kernels *kernels = dv_codec_kernels_current();
    const char *exact = images_of(kept, first);
#pragma omp parallel for schedule(static)
    for (size_t n = 0; n < count; n++)
        (void)kernels->bits_encode(kept->map.type, exact + n * elements * dv_type_bytes(kept->map.type), elements,
                                   buffer + n * stride);
    *mask = buffer;
    return DV_OK;
}

static dv_status book(dv_plan *plan, dv_value value, int made, dv_error *error) {
    (void)made;
    (void)error;
    plan->values[value].kept_bytes += dv_map_bytes(&plan->graph->values[value].map);
    return DV_OK;
}

static int holds_until(const dv_plan *plan, dv_value value) {
    const dv_value_plan *v = &plan->values[value];
    if (v->written_at >= 0)
        return v->written_at;
    return dv_last_read(plan, dv_readers_of(v));
}

static int form(const dv_value_plan *v) {
    return v->data;
}

void dv_exact_fill(const dv_run *run, dv_value value, dv_kept *kept) {
    const dv_value_plan *v = &run->plan->values[value];
    kept->exact = dv_run_piece(run, v->again == DV_NO_PIECE ? v->data : v->again);
}

const dv_keeper dv_keep_exact = {
    .name = "exact",
    .access = {.load = dv_exact_load, .load_mask = dv_exact_load_mask},
    .book = book,
    .holds_until = holds_until,
    .form = form,
    .fill = dv_exact_fill,
};
