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

/* ---- streams of codes ---------------------------------------------------------------------- */

/* Where in a stream of `count` elements the `field` bits of element `index` are, in chunks of `bits` bits an element;
 * `before` of them come first. */
static inline uint8_t *dv_code_byte(uint8_t *stream, size_t count, int bits, int before, int field, size_t index,
                                    int *shift) {
    size_t chunk = index / DV_CHUNK, within = index % DV_CHUNK;
    size_t rest = count - chunk * DV_CHUNK, elements = rest < DV_CHUNK ? rest : DV_CHUNK;
    size_t bytes = dv_chunk_bytes(elements, field), skipped = before ? dv_chunk_bytes(elements, before) : 0;
    *shift = (int)(within / bytes) * field;
    return stream + dv_stream_bytes(chunk * DV_CHUNK, bits) + skipped + within % bytes;
}

static inline void dv_put_field(uint8_t *stream, size_t count, int bits, int before, int field, size_t index,
                                unsigned code) {
    int shift;
    uint8_t *byte = dv_code_byte(stream, count, bits, before, field, index, &shift);
    *byte = (uint8_t)((shift ? *byte : 0) | code << shift);
}

static inline unsigned dv_get_field(const uint8_t *stream, size_t count, int bits, int before, int field,
                                    size_t index) {
    int shift;
    const uint8_t *byte = dv_code_byte((uint8_t *)stream, count, bits, before, field, index, &shift);
    return *byte >> shift & ((1u << field) - 1);
}

static inline void dv_put_code(uint8_t *stream, size_t count, int bits, size_t index, unsigned code) {
    if (bits != 3) {
        dv_put_field(stream, count, bits, 0, bits, index, code);
        return;
    }
    dv_put_field(stream, count, 3, 0, 2, index, code & 3);
    dv_put_field(stream, count, 3, 2, 1, index, code >> 2);
}

static inline unsigned dv_get_code(const uint8_t *stream, size_t count, int bits, size_t index) {
    if (bits != 3)
        return dv_get_field(stream, count, bits, 0, bits, index);
    return dv_get_field(stream, count, 3, 0, 2, index) | dv_get_field(stream, count, 3, 2, 1, index) << 2;
}

/* ---- tiles --------------------------------------------------------------------------------- */

/* Index of an element counted from the tile's first, in the map's memory. */
static inline size_t dv_element_index(const dv_tile *tile, size_t channel, size_t pixel) {
    return tile->layout == DV_NHWC ? pixel * tile->pixel_stride + channel : channel * dv_tile_pixels(tile) + pixel;
}

/* The same where the tile's elements alone are counted: the position of its code. */
static inline size_t dv_code_index(const dv_tile *tile, size_t channel, size_t pixel) {
    return tile->layout == DV_NHWC ? pixel * tile->channels + channel : channel * dv_tile_pixels(tile) + pixel;
}

/* Where in [blocks][channels], or [channels][blocks], a block of a channel is. */
static inline size_t dv_block_index(const dv_tile *tile, size_t channel, size_t block) {
    return tile->layout == DV_NHWC ? block * tile->channels + channel : channel * dv_tile_blocks(tile) + block;
}

/* The block that a pixel is in. */
static inline size_t dv_block_of(const dv_tile *tile, size_t pixel) {
    size_t x = pixel % tile->sides[2], y = pixel / tile->sides[2] % tile->sides[1];
    size_t z = pixel / tile->sides[2] / tile->sides[1];
    return (z / tile->edges[0] * tile->blocks[1] + y / tile->edges[1]) * tile->blocks[2] + x / tile->edges[2];
}

/* What is added before a code is cut off: random bits, or half a code for the nearest one. */
static inline uint32_t dv_dither_of(const dv_tile *tile, dv_random key, size_t index) {
    return tile->dither == DV_DITHER_NONE ? dv_fixed_one(tile->bits) / 2 : dv_dither(key, index, tile->bits);
}

/* Where an element lies above the lowest level, in steps. */
static inline float dv_level_of(const dv_tile *tile, dv_random key, const uint8_t *codes, size_t index) {
    float level = (float)dv_get_code(codes, tile->channels * dv_tile_pixels(tile), tile->bits, index);
    if (tile->dither == DV_DITHER_SUBTRACTIVE)
        level += dv_undither(dv_dither(key, index, tile->bits), tile->bits);
    return level;
}

/* reference_lean.c */
bool dv_reference_lean_encode(const dv_tile *tile, dv_random key, const void *src, const void *gate,
                              const dv_lean_record *record);
void dv_reference_lean_decode(const dv_tile *tile, dv_random key, const dv_lean_record *record,
                              const dv_lean_norm *norm, void *dst);
void dv_reference_lean_mask(const dv_tile *tile, const uint8_t *codes, size_t first, size_t elements, uint8_t *mask);

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
