/* The two 16-bit floats, as bits in a uint16_t, by integer arithmetic alone: the same result on any
 * machine. bf16 is the upper half of an f32; f16 is IEEE binary16. */
#ifndef DV_BASE_FLOAT16_H
#define DV_BASE_FLOAT16_H

#include <division/codec.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t dv_float_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float dv_bits_float(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline float dv_bf16_to_f32(uint16_t half) {
    return dv_bits_float((uint32_t)half << 16);
}

/* To the nearest, ties to even; too large becomes infinity. Not for NaN, whose lower bits could carry
 * into infinity or further. */
static inline uint16_t dv_bf16_nearest_number(float value) {
    uint32_t bits = dv_float_bits(value);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* The same for any value: NaN stays NaN. */
static inline uint16_t dv_bf16_nearest(float value) {
    uint32_t bits = dv_float_bits(value);
    uint16_t quiet = (uint16_t)(bits >> 16 | 0x40);
    return (bits & 0x7fffffff) > 0x7f800000 ? quiet : dv_bf16_nearest_number(value);
}

/* The largest bf16 that is not above `value`, and the smallest that is not below. Towards zero is
 * dropping the lower half; away from zero is one more, if anything was dropped. Not for NaN. */
static inline uint16_t dv_bf16_down(float value) {
    uint32_t bits = dv_float_bits(value);
    uint32_t away = (bits >> 31) & ((bits & 0xffff) != 0);
    return (uint16_t)((bits >> 16) + away);
}

static inline uint16_t dv_bf16_up(float value) {
    uint32_t bits = dv_float_bits(value);
    uint32_t away = (~bits >> 31) & ((bits & 0xffff) != 0);
    return (uint16_t)((bits >> 16) + away);
}

static inline float dv_f16_to_f32(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000) << 16;
    uint32_t magnitude = half & 0x7fff;
    if (magnitude >= 0x7c00) /* infinity and NaN, made quiet as processors do */
        return dv_bits_float(sign | 0x7f800000 | magnitude << 13 | (magnitude > 0x7c00 ? 0x400000 : 0));
    if (magnitude < 0x0400) { /* zero and subnormal: a multiple of 2^-24 */
        float tiny = (float)magnitude * 0x1p-24f;
        return sign ? -tiny : tiny;
    }
    return dv_bits_float(sign | ((magnitude << 13) + ((127 - 15) << 23)));
}

/* To the nearest, ties to even; too large becomes infinity; NaN stays NaN. */
static inline uint16_t dv_f16_nearest(float value) {
    uint32_t bits = dv_float_bits(value);
    uint32_t sign = bits >> 16 & 0x8000;
    uint32_t magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000)
        return (uint16_t)(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
    if (magnitude >= 0x477ff000) /* 65520 and above round to infinity */
        return (uint16_t)(sign | 0x7c00);
    if (magnitude < 0x38800000) { /* below 2^-14: subnormal. Adding 0.5 puts 2^-24 in the last place. */
        float shifted = dv_bits_float(magnitude) + 0.5f;
        return (uint16_t)(sign | (dv_float_bits(shifted) - dv_float_bits(0.5f)));
    }
    uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
    return (uint16_t)(sign | (rounded - ((127 - 15) << 23)) >> 13);
}

/* Numbers of a type, f32 or bf16, as f32. */
static inline void dv_numbers_to_f32(dv_type type, const void *src, size_t count, float *dst) {
    if (type == DV_F32)
        memcpy(dst, src, count * sizeof *dst);
    else
        for (size_t i = 0; i < count; i++)
            dst[i] = dv_bf16_to_f32(((const uint16_t *)src)[i]);
}

#endif
