/* The codec of BLPA: one code for a batch norm and the ReLU behind it. */
#ifndef DV_CODEC_BLPA_H
#define DV_CODEC_BLPA_H

#include "codec/kind.h"

/* What a batch norm did: z = (x - mean) istd weight + bias, per channel. NULL: 0, 1, 1, 0. */
typedef struct dv_normalisation {
    const float *mean, *istd, *weight, *bias;
} dv_normalisation;

/* As dv_codec_encode_images and dv_codec_decode_images, of the input x of that batch norm. */
dv_status dv_blpa_encode(const dv_codec *codec, const dv_map *map, const dv_normalisation *norm, size_t first,
                         size_t count, const void *src, void *packed, size_t packed_bytes, dv_error *error);
dv_status dv_blpa_decode(const dv_codec *codec, const dv_map *map, const dv_normalisation *norm, size_t first,
                         size_t count, const void *packed, size_t packed_bytes, void *dst, dv_error *error);

/* Where z is positive, as the codes have it; images `stride` bytes apart. */
dv_status dv_blpa_mask(const dv_codec *codec, const dv_map *map, const dv_normalisation *norm, size_t first,
                       size_t count, const void *packed, size_t packed_bytes, uint8_t *mask, size_t stride,
                       dv_error *error);

#endif
