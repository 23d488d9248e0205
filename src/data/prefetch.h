/* Batches made ahead by worker threads, or, without workers, at once when they are asked for.
 *
 * A batch is made in a slot: its images as bytes, its labels, and what was wrong with which. The slots are a ring.
 * Its head is the batch that is expected to be asked for next; those behind it follow in order. A worker takes single
 * images, of the batch nearest to the head that has any left, so that even the first batch is made by all. */
#ifndef DV_DATA_PREFETCH_H
#define DV_DATA_PREFETCH_H

#include "data/maker.h"

typedef struct dv_prefetch dv_prefetch;

/* What there is to make. */
typedef struct dv_prefetch_options {
    const dv_dataset *data;
    dv_loader_options loader; /* resolved: nothing that is left for the data to say */
    size_t images;            /* of the split */
    size_t batches;           /* of an epoch */
} dv_prefetch_options;

/* A batch. */
typedef struct dv_slot {
    uint64_t epoch;
    size_t batch;
    uint8_t *bytes;   /* [batch][side][side][3] */
    int32_t *labels;  /* [batch] */
    size_t *shown;    /* [batch]: which images these are; in place of a corrupt one another */
    dv_error *damage; /* [batch]; where the status is DV_OK there is none */
    dv_error error;   /* why it could not be made, unless its status is DV_OK */
    size_t count;     /* images to make */
    size_t begun, done;
    size_t failed; /* the place of the error */
} dv_slot;

dv_status dv_prefetch_new(const dv_prefetch_options *options, dv_prefetch **prefetch, dv_error *error);
void dv_prefetch_free(dv_prefetch *prefetch);
size_t dv_prefetch_bytes(const dv_prefetch_options *options);

/* Where in the order of an epoch the images of a batch are that this rank has: those from `first` on. */
typedef struct dv_share {
    size_t first, count;
} dv_share;

dv_share dv_prefetch_share(const dv_prefetch_options *options, size_t batch);

/* The index of the image at a place of a batch. */
size_t dv_prefetch_index(const dv_prefetch_options *options, uint64_t epoch, size_t batch, size_t place);

/* Waits for a batch. It is the caller's until dv_prefetch_done. */
const dv_slot *dv_prefetch_take(dv_prefetch *prefetch, uint64_t epoch, size_t batch);
void dv_prefetch_done(dv_prefetch *prefetch);

#endif
