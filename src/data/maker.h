/* Makes single images: finds, decodes, varies. Each thread has one of its own. */
#ifndef DV_DATA_MAKER_H
#define DV_DATA_MAKER_H

#include "data/dataset.h"
#include "data/image.h"

typedef struct dv_maker {
    const dv_dataset *data; /* not owned */
    dv_split split;
    dv_view_options view;
    uint64_t seed;
    dv_decoder *decoder;      /* NULL where nothing is decoded or resized */
    uint8_t *source, *square; /* an image of the data as it is, of data of one size; one before it is moved */
} dv_maker;

/* A maker of images [side][side][3] of a split. The options are resolved: see dv_view_options. */
dv_status dv_maker_init(dv_maker *maker, const dv_dataset *data, dv_split split, const dv_view_options *view,
                        uint64_t seed, dv_error *error);
void dv_maker_destroy(dv_maker *maker);

/* Bytes that one takes. */
size_t dv_maker_bytes(const dv_dataset *data, const dv_view_options *view);

/* Makes an image as it is seen in an epoch. If it is corrupt, what is wrong goes to `damage`, whose status is else
 * DV_OK, and in its place there is the next one of the data that is good; `made` is which. */
dv_status dv_maker_make(dv_maker *maker, uint64_t epoch, size_t index, uint8_t *dst, int32_t *label, size_t *made,
                        dv_error *damage, dv_error *error);

/* Makes one image, varied as the showing says, also where that is another image's. If it is corrupt, that is
 * DV_ERROR_FORMAT. */
dv_status dv_maker_make_only(dv_maker *maker, dv_showing showing, size_t index, uint8_t *dst, int32_t *label,
                             dv_error *error);

#endif
