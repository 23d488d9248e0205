/* A value as it survived from forward to backward, whichever way that was. Layers ask for images of it,
 * a slice at a time, right before they use them, and do not know how it was kept. */
#ifndef DV_NN_KEPT_H
#define DV_NN_KEPT_H

#include <division/codec.h>
#include <division/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct dv_kept dv_kept;
struct dv_lean_norm;

/* The part of a keeper that layers meet (graph/keeper.h has the rest). */
typedef struct dv_keeper_access {
    /* Stores images first .. first + count - 1 of a value, which have just been made and are at `images`. NULL: there
     * is nothing to store. */
    dv_status (*store)(const dv_kept *kept, size_t first, size_t count, const void *images, dv_error *error);

    /* The same of what a layer normalises, which stores it itself: with the output that it has made of these images, at
     * `gate`, whose mask the keeper wants to know. NULL: it does not, and `store` is called. */
    dv_status (*store_gated)(const dv_kept *kept, size_t first, size_t count, const void *images, const void *gate,
                             dv_error *error);
    bool whole; /* it wants all images at once, and so behind the layer */

    /* Leaves in *images where these images are, in the map's type: some place of their own, or `buffer`, which has room
     * for them. */
    dv_status (*load)(const dv_kept *kept, size_t first, size_t count, void *buffer, const void **images,
                      dv_error *error);

    /* What a batch norm makes of these images, in the same pass: at `images`, where what it adds may be before. NULL:
     * they are to be loaded, and normalised then. */
    dv_status (*load_normalized)(const dv_kept *kept, size_t first, size_t count, const struct dv_lean_norm *norm,
                                 void *images, dv_error *error);

    /* The same of their mask, which follows from what is kept of the numbers. NULL: it does not. */
    dv_status (*load_mask)(const dv_kept *kept, size_t first, size_t count, uint8_t *buffer, const uint8_t **mask,
                           dv_error *error);
} dv_keeper_access;

struct dv_kept {
    const dv_keeper_access *access;      /* NULL: the numbers are not kept */
    dv_map map;                          /* of the value */
    dv_codec codec;                      /* how `packed` is packed */
    dv_noise noise;                      /* that it was packed with */
    const void *exact;                   /* the value itself, once it is loaded, or NULL */
    void *stored;                        /* where its packed form goes in forward, or NULL */
    const void *packed;                  /* where backward finds it: there, or where it was read back to */
    size_t packed_bytes;                 /* of it */
    const uint8_t *mask;                 /* where it is positive, image n at n * dv_mask_stride(map), or NULL */
    const dv_keeper_access *mask_access; /* how the mask is kept, or NULL: nobody reads it */
    const dv_kept *mask_in;     /* what it is to be asked of: this value, or another whose code has it inside */
    float *state;               /* the method's, or NULL */
    const struct dv_plan *plan; /* of the run, and which of its values this is: for keepers */
    int value;
    bool zero_outside; /* it is zero where the mask is not set: a ReLU made it */

    /* A value that is recomputed by the layer that made it, from what is kept of its inputs; or the batch norm that
     * normalises it, if its code is made with that one's statistics (`unit`): */
    const struct dv_layer *producer;
    const dv_kept *const *inputs;         /* [producer->input_count] */
    const struct dv_layer_arrays *arrays; /* the producer's */
    const void *saved;                    /* what the producer saved in forward */
    bool one_pass;                        /* the producer is a batch norm, whose first input can be had normalised */
    void *workspace; /* [producer->recompute_bytes] or more, with one pass recompute_pass_bytes. Values of which one is
                        the last input of the other may share it: a producer gets its last input first */

    /* A value that lies in a file in the meantime: */
    const dv_keeper_access *behind; /* how it is kept beside that */
    void *transfer;                 /* of the run: its reading, which must have ended before it is loaded */
};

/* Stores images first .. first + count - 1 of a value that has just been made, which are at `images`. */
dv_status dv_kept_store(const dv_kept *kept, size_t first, size_t count, const void *images, dv_error *error);

/* The same of a layer's input, when it has made its output, which is at `gate`. */
dv_status dv_kept_store_input(const dv_kept *kept, size_t first, size_t count, const void *images, const void *gate,
                              dv_error *error);

/* Whether it is to be stored as a whole, or what stands behind it in a file. */
static inline bool dv_kept_whole(const dv_kept *kept) {
    return kept->access->whole || (kept->behind && kept->behind->whole);
}

/* Images first .. first + count - 1 of the value, in the map's type: a pointer to them where they are, or
 * `buffer`, which has room for them. */
dv_status dv_kept_images(const dv_kept *kept, size_t first, size_t count, void *buffer, const void **images,
                         dv_error *error);

/* What a batch norm makes of those images: for the producers of values with `one_pass`. */
dv_status dv_kept_normalized(const dv_kept *kept, size_t first, size_t count, const struct dv_lean_norm *norm,
                             void *images, dv_error *error);

/* The mask of those images, as bits in the order of the `bits` codec, dv_mask_stride(map) apart: where they are, or
 * in `buffer`, which has room for them. */
dv_status dv_kept_mask(const dv_kept *kept, size_t first, size_t count, uint8_t *buffer, const uint8_t **mask,
                       dv_error *error);

#endif
