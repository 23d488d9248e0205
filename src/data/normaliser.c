/* From bytes to numbers. f32 are computed in runs of whole vectors, over which the channels repeat; bf16, of which
 * there are few different ones, are looked up. */
#include "data/normaliser.h"

#include "base/float16.h"

enum { LEVELS = DV_NORMALISER_LEVELS, RUN = DV_NORMALISER_RUN };

void dv_normaliser_init(dv_normaliser *normaliser, const dv_image_normalisation *by) {
    for (size_t i = 0; i < RUN; i++) {
        normaliser->mean[i] = 255 * (float)by->mean[i % DV_DATA_CHANNELS];
        normaliser->scale[i] = 1 / (255 * (float)by->deviation[i % DV_DATA_CHANNELS]);
    }
    for (size_t channel = 0; channel < DV_DATA_CHANNELS; channel++)
        for (int level = 0; level < LEVELS; level++)
            normaliser->bf16[channel][level] =
                dv_bf16_nearest(((float)level - normaliser->mean[channel]) * normaliser->scale[channel]);
}

static void write_f32(const dv_normaliser *by, const uint8_t *restrict bytes, size_t elements, float *restrict dst) {
    size_t i = 0;
    for (; i + RUN <= elements; i += RUN)
        for (size_t k = 0; k < RUN; k++)
            dst[i + k] = ((float)bytes[i + k] - by->mean[k]) * by->scale[k];
    for (size_t k = 0; i + k < elements; k++)
        dst[i + k] = ((float)bytes[i + k] - by->mean[k]) * by->scale[k];
}

static void write_bf16(const dv_normaliser *by, const uint8_t *restrict bytes, size_t elements,
                       uint16_t *restrict dst) {
    for (size_t i = 0; i < elements; i += DV_DATA_CHANNELS)
        for (size_t channel = 0; channel < DV_DATA_CHANNELS; channel++)
            dst[i + channel] = by->bf16[channel][bytes[i + channel]];
}

void dv_normaliser_write(const dv_normaliser *normaliser, dv_type type, const uint8_t *bytes, size_t elements,
                         void *dst) {
    if (type == DV_F32)
        write_f32(normaliser, bytes, elements, dst);
    else
        write_bf16(normaliser, bytes, elements, dst);
}
