/* What the plain kernels have in common. */
#ifndef DV_CODEC_REFERENCE_H
#define DV_CODEC_REFERENCE_H

#include "base/float16.h"
#include "codec/kernels/kernels.h"

#include <math.h>

static inline float dv_load_element(dv_type type, const void *src, size_t index) {
    switch (type) {
    case DV_BF16:
        return dv_bf16_to_f32(((const uint16_t *)src)[index]);
    case DV_F16:
        return dv_f16_to_f32(((const uint16_t *)src)[index]);
    default:
        return ((const float *)src)[index];
    }
}

static inline void dv_store_element(dv_type type, void *dst, size_t index, float value) {
    switch (type) {
    case DV_BF16:
        ((uint16_t *)dst)[index] = dv_bf16_nearest_number(value);
        break;
    case DV_F16:
        ((uint16_t *)dst)[index] = dv_f16_nearest(fmaxf(-DV_F16_MAX, fminf(value, DV_F16_MAX)));
        break;
    default:
        ((float *)dst)[index] = value;
    }
}

/* 16 - bits random bits for element `index`: one word serves two neighbours. */
static inline uint32_t dv_dither(dv_random key, size_t index, int bits) {
    uint32_t word = dv_random_word(key, (uint32_t)(index / 2));
    return (index % 2 ? word >> 16 : word & 0xffff) >> bits;
}

/* reference_codes.c */
bool dv_reference_affine_encode(const dv_code_tile *tile, const dv_affine *by, const void *src, uint8_t *codes);
void dv_reference_affine_decode(const dv_code_tile *tile, const dv_affine *by, const uint8_t *codes, void *dst);
void dv_reference_affine_mask(const dv_code_tile *tile, const dv_affine *by, const uint8_t *codes, size_t first,
                              size_t elements, uint8_t *mask);
bool dv_reference_groups_measure(const dv_code_tile *tile, const void *src, dv_group *groups);
void dv_reference_groups_encode(const dv_code_tile *tile, dv_random key, const dv_group *groups, const void *src,
                                uint8_t *codes);
void dv_reference_groups_decode(const dv_code_tile *tile, const dv_group *groups, const uint8_t *codes, void *dst);
bool dv_reference_channels_measure(const dv_code_tile *tile, const void *src, float *most);
void dv_reference_channels_encode(const dv_code_tile *tile, const dv_channel_code *by, bool is_signed, const void *src,
                                  uint8_t *const *codes);
void dv_reference_channels_decode(const dv_code_tile *tile, const dv_channel_code *by, bool is_signed,
                                  const uint8_t *const *codes, void *dst);

#endif
