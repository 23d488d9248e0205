/* The input x of a batch norm with a ReLU behind it, as one code from which both are given back (codec/blpa.h): x for
 * the norm's own backward, the mask of its output, and so the output itself, which the norm recomputes from x. The norm
 * stores it, in its forward, when it knows mean and deviation. */
#include "base/status.h"
#include "codec/blpa.h"
#include "graph/plan.h"
#include "graph/run.h"

static dv_normalisation norm_of(const dv_kept *kept) {
    return kept->producer->kind->normalisation(kept->producer, kept->arrays, kept->saved);
}

static dv_status store(const dv_kept *kept, size_t first, size_t count, const void *images, dv_error *error) {
    dv_normalisation norm = norm_of(kept);
    return dv_blpa_encode(&kept->codec, &kept->map, &norm, first, count, images, kept->stored, kept->packed_bytes,
                          error);
}

static dv_status load(const dv_kept *kept, size_t first, size_t count, void *buffer, const void **images,
                      dv_error *error) {
    dv_normalisation norm = norm_of(kept);
    *images = buffer;
    return dv_blpa_decode(&kept->codec, &kept->map, &norm, first, count, kept->packed, kept->packed_bytes, buffer,
                          error);
}

/* Of the norm's output. */
static dv_status load_mask(const dv_kept *kept, size_t first, size_t count, uint8_t *buffer, const uint8_t **mask,
                           dv_error *error) {
    dv_normalisation norm = norm_of(kept);
    *mask = buffer;
    return dv_blpa_mask(&kept->codec, &kept->map, &norm, first, count, kept->packed, kept->packed_bytes, buffer,
                        dv_mask_stride(&kept->map), error);
}

static void fill(const dv_run *run, dv_value value, dv_kept *kept) {
    int norm = run->plan->values[value].stored_by;
    dv_packed_fill(run, value, kept);
    kept->producer = &run->plan->graph->layers[norm].layer;
    kept->arrays = &run->arrays[norm];
    kept->saved = dv_run_piece(run, run->plan->layers[norm].saved);
}

const dv_keeper dv_keep_unit = {
    .name = "unit",
    .access = {.store = store, .load = load, .load_mask = load_mask},
    .book = dv_packed_book,
    .form = dv_packed_form,
    .fill = fill,
};
