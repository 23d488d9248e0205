/* Bytes of images become numbers: (byte / 255 - mean) / deviation, in the type of the graph. */
#ifndef DV_DATA_NORMALISER_H
#define DV_DATA_NORMALISER_H

#include <division/data.h>

enum { DV_NORMALISER_LEVELS = 256, DV_NORMALISER_RUN = 16 * DV_DATA_CHANNELS };

typedef struct dv_normaliser {
    float mean[DV_NORMALISER_RUN], scale[DV_NORMALISER_RUN]; /* of a run of elements, channel after channel */
    uint16_t bf16[DV_DATA_CHANNELS][DV_NORMALISER_LEVELS];   /* what each byte becomes */
} dv_normaliser;

/* By means and deviations that are given: not by those that stand for the data's own. */
void dv_normaliser_init(dv_normaliser *normaliser, const dv_image_normalisation *by);

/* Writes the bytes [elements] of an image as numbers of a type, f32 or bf16. */
void dv_normaliser_write(const dv_normaliser *normaliser, dv_type type, const uint8_t *bytes, size_t elements,
                         void *dst);

#endif
