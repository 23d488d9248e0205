/* A codec's form of the value, stored slice by slice in forward, while they are in cache, and decoded slice by slice
 * right before they are used. */
#include "base/status.h"
#include "codec/kind.h"
#include "codec/lean.h"
#include "graph/plan.h"
#include "graph/run.h"
#include "nn/parts.h"

static dv_status store(const dv_kept *kept, size_t first, size_t count, const void *images, dv_error *error) {
    return dv_codec_encode_images(&kept->codec, &kept->map, &kept->noise, first, count, images, kept->stored,
                                  kept->packed_bytes, error);
}

/* Sets what has no bit to zero. */
static void clear_zeros(const dv_kept *kept, size_t first, size_t count, void *images) {
    const dv_map *map = &kept->map;
    size_t elements = dv_map_image_elements(map), parts = dv_part_count(count, elements), stride = dv_mask_stride(map);
#pragma omp parallel for schedule(static)
    for (size_t p = 0; p < parts; p++) {
        dv_part part = dv_part_at(count, elements, p);
        dv_span span = dv_part_span(map, &part);
        for (size_t n = part.first; n < part.last; n++) {
            void *image = dv_image_in(map, images, n);
            dv_elementwise()->apply_mask(&span, image, kept->mask + (first + n) * stride, 1, false, image);
        }
    }
}

/* Where a value is known to be zero, decoding leaves no noise. */
static dv_status load(const dv_kept *kept, size_t first, size_t count, void *buffer, const void **images,
                      dv_error *error) {
    DV_TRY(dv_codec_decode_images(&kept->codec, &kept->map, &kept->noise, first, count, kept->packed,
                                  kept->packed_bytes, buffer, error));
    if (kept->mask && kept->zero_outside)
        clear_zeros(kept, first, count, buffer);
    *images = buffer;
    return DV_OK;
}

dv_status dv_packed_load_normalized(const dv_kept *kept, size_t first, size_t count, const dv_lean_norm *norm,
                                    void *images, dv_error *error) {
    return dv_lean_decode_normalized(&kept->codec, &kept->map, &kept->noise, first, count, kept->packed,
                                     kept->packed_bytes, norm, images, error);
}

static dv_status load_mask(const dv_kept *kept, size_t first, size_t count, uint8_t *buffer, const uint8_t **mask,
                           dv_error *error) {
    *mask = buffer;
    return dv_codec_decode_mask(&kept->codec, &kept->map, first, count, kept->packed, kept->packed_bytes, buffer,
                                dv_mask_stride(&kept->map), error);
}

static bool tells_mask(const dv_value_plan *v) {
    const dv_codec_kind *kind = v->codec.kind;
    return kind->decode_mask && (!kind->tells_mask || kind->tells_mask(&v->codec));
}

dv_status dv_packed_book(dv_plan *plan, dv_value value, int made, dv_error *error) {
    dv_value_plan *v = &plan->values[value];
    int stored_at = v->stored_by == DV_INPUT ? made : plan->layers[v->stored_by].forward_at;
    size_t bytes;
    DV_TRY(dv_codec_packed_bytes(&v->codec, &plan->graph->values[value].map, &bytes, error));
    v->packed =
        dv_plan_book(plan, bytes, stored_at, v->written_at >= 0 ? v->written_at : dv_last_read(plan, dv_readers_of(v)));
    v->kept_bytes += bytes;
    return DV_OK;
}

int dv_packed_form(const dv_value_plan *v) {
    return v->packed;
}

void dv_packed_fill(const dv_run *run, dv_value value, dv_kept *kept) {
    const dv_value_plan *v = &run->plan->values[value];
    kept->stored = dv_run_piece(run, v->packed);
    kept->packed = dv_run_piece(run, v->again == DV_NO_PIECE ? v->packed : v->again);
    kept->packed_bytes = run->plan->pieces[v->packed].bytes;
}

const dv_keeper dv_keep_packed = {
    .name = "packed",
    .access = {.store = store, .load = load, .load_normalized = dv_packed_load_normalized, .load_mask = load_mask},
    .book = dv_packed_book,
    .form = dv_packed_form,
    .tells_mask = tells_mask,
    .fill = dv_packed_fill,
};
