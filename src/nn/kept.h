/* A value as it survived from forward to backward, whichever way that was. Layers ask for images of it,
 * a slice at a time, right before they use them, and do not know how it was kept. */
#ifndef DV_NN_KEPT_H
#define DV_NN_KEPT_H

#include <division/codec.h>
#include <division/status.h>
#include <stddef.h>
#include <stdint.h>

typedef struct dv_kept {
    dv_map map;          /* of the value */
    dv_codec codec;      /* how `packed` is packed */
    dv_noise noise;      /* that it was packed with */
    const void *exact;   /* the value itself, or NULL */
    const void *packed;  /* its packed form, or NULL */
    size_t packed_bytes; /* of it */
    const uint8_t *bits; /* where it is positive, image n at n * dv_bits_stride(map), or NULL. Elsewhere it is zero:
                            they are there for the ReLU that made it */

    /* A value that is not kept, but recomputed by the layer that made it from what is kept of its inputs: */
    const struct dv_layer *producer;      /* or NULL */
    const struct dv_kept *const *inputs;  /* [producer->input_count] */
    const struct dv_layer_arrays *arrays; /* the producer's */
    const void *saved;                    /* what the producer saved in forward */
    void *scratch;                        /* [producer->recompute_bytes] or more. Values of which one is the last input
                                             of the other may share it: a producer gets its last input first */
} dv_kept;

/* Packs images first .. first + count - 1 of a value that has just been made, which are at `images`. */
dv_status dv_kept_pack(const dv_kept *kept, size_t first, size_t count, const void *images, dv_error *error);

/* Images first .. first + count - 1 of the value, in the map's type: a pointer to them where they are, or
 * `buffer`, which has room for them, after unpacking or recomputing them there. Where bits are kept as well they
 * say what is zero, and there unpacking leaves no noise. Never fails on what was packed before. */
const void *dv_kept_images(const dv_kept *kept, size_t first, size_t count, void *buffer);

/* The bits of those images, in the order of the `bits` codec, dv_bits_stride(map) apart: where they are, or
 * in `buffer`, which has room for them, made from the exact value. */
const uint8_t *dv_kept_bits(const dv_kept *kept, size_t first, size_t count, uint8_t *buffer);

#endif
