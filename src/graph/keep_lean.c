/* The input x of a batch norm with a ReLU behind it, as the codec `lean` has it: the mask of the norm's output is one
 * state of the code. The norm stores it, in its forward, when it has made that output. From the code come x, for the
 * norm's own backward, and the mask; and from both the output, which the norm recomputes. */
#include "base/status.h"
#include "codec/lean.h"
#include "graph/plan.h"
#include "graph/run.h"

static dv_status store_gated(const dv_kept *kept, size_t first, size_t count, const void *images, const void *gate,
                             dv_error *error) {
    return dv_lean_encode(&kept->codec, &kept->map, &kept->noise, first, count, images, gate, kept->stored,
                          kept->packed_bytes, error);
}

/* Nothing of it is zero outside of the mask, which is another value's. */
static dv_status load(const dv_kept *kept, size_t first, size_t count, void *buffer, const void **images,
                      dv_error *error) {
    *images = buffer;
    return dv_codec_decode_images(&kept->codec, &kept->map, &kept->noise, first, count, kept->packed,
                                  kept->packed_bytes, buffer, error);
}

/* Of the norm's output. */
static dv_status load_mask(const dv_kept *kept, size_t first, size_t count, uint8_t *buffer, const uint8_t **mask,
                           dv_error *error) {
    *mask = buffer;
    return dv_codec_decode_mask(&kept->codec, &kept->map, first, count, kept->packed, kept->packed_bytes, buffer,
                                dv_mask_stride(&kept->map), error);
}

static dv_status book(dv_plan *plan, dv_value value, int made, dv_error *error) {
    return dv_keep_packed.book(plan, value, made, error);
}

static int form(const dv_value_plan *v) {
    return v->packed;
}

static void fill(const dv_run *run, dv_value value, dv_kept *kept) {
    dv_keep_packed.fill(run, value, kept);
}

const dv_keeper dv_keep_lean = {
    .name = "lean",
    .access = {.store_gated = store_gated, .load = load, .load_mask = load_mask},
    .book = book,
    .form = form,
    .fill = fill,
};
