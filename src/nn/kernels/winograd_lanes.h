/* As many numbers as an instruction takes, and what Winograd's kernels do with them. A product is always fused with the
 * sum that follows it, so that all instruction sets round alike. */
#ifndef DV_NN_KERNELS_WINOGRAD_LANES_H
#define DV_NN_KERNELS_WINOGRAD_LANES_H

#include <division/codec.h>
#include <stddef.h>
#include <stdint.h>

#define ALWAYS static inline __attribute__((always_inline))

#if defined(__AVX512F__)
#include <immintrin.h>
enum { LANES = 16 };
typedef __m512 lanes;
#define LANES_DO(operation) _mm512_##operation##_ps
#define LANES_FUSED(x, y, z) _mm512_fmadd_ps(x, y, z)
#define LANES_FUSED_LESS(x, y, z) _mm512_fnmadd_ps(x, y, z)
#elif defined(__FMA__)
#include <immintrin.h>
enum { LANES = 8 };
typedef __m256 lanes;
#define LANES_DO(operation) _mm256_##operation##_ps
#define LANES_FUSED(x, y, z) _mm256_fmadd_ps(x, y, z)
#define LANES_FUSED_LESS(x, y, z) _mm256_fnmadd_ps(x, y, z)
#elif defined(__ARM_NEON)
#include <arm_neon.h>
enum { LANES = 4 };
typedef float32x4_t lanes;
#define LANES_DO_set1 vdupq_n_f32
#define LANES_DO_loadu vld1q_f32
#define LANES_DO_storeu vst1q_f32
#define LANES_DO_add vaddq_f32
#define LANES_DO_sub vsubq_f32
#define LANES_DO_mul vmulq_f32
#define LANES_DO(operation) LANES_DO_##operation
#define LANES_FUSED(x, y, z) vfmaq_f32(z, x, y)
#define LANES_FUSED_LESS(x, y, z) vfmsq_f32(z, x, y)
#else
#error "this instruction set has no fused multiply-add"
#endif

/* ---- bf16 ------------------------------------------------------------------------------------ */

/* To the nearest, ties to even, NaN made quiet: the bits of dv_bf16_nearest (base/float16.h). */
#if defined(__AVX512F__)
ALWAYS lanes widened_halves(__m256i halves) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
}

ALWAYS lanes widened(const uint16_t *src) {
    return widened_halves(_mm256_loadu_si256((const __m256i *)src));
}

ALWAYS __m256i narrowed_halves(lanes x) {
    __m512i bits = _mm512_castps_si512(x), upper = _mm512_srli_epi32(bits, 16);
    __m512i odd = _mm512_and_si512(upper, _mm512_set1_epi32(1));
    __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    __m512i quiet = _mm512_or_si512(upper, _mm512_set1_epi32(0x40));
    __mmask16 is_nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    __m512i halves = _mm512_mask_mov_epi32(_mm512_srli_epi32(rounded, 16), is_nan, quiet);
    return _mm512_cvtepi32_epi16(halves);
}

ALWAYS void store_narrowed(uint16_t *dst, lanes x) {
    _mm256_storeu_si256((__m256i *)dst, narrowed_halves(x));
}
#elif defined(__FMA__)
ALWAYS lanes widened(const uint16_t *src) {
    __m256i bits = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)src));
    return _mm256_castsi256_ps(_mm256_slli_epi32(bits, 16));
}

ALWAYS void store_narrowed(uint16_t *dst, lanes x) {
    __m256i bits = _mm256_castps_si256(x), upper = _mm256_srli_epi32(bits, 16);
    __m256i odd = _mm256_and_si256(upper, _mm256_set1_epi32(1));
    __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    __m256i quiet = _mm256_or_si256(upper, _mm256_set1_epi32(0x40));
    __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    __m256i halves = _mm256_blendv_epi8(_mm256_srli_epi32(rounded, 16), quiet, is_nan);
    __m128i low = _mm256_castsi256_si128(halves), high = _mm256_extracti128_si256(halves, 1);
    _mm_storeu_si128((__m128i *)dst, _mm_packus_epi32(low, high));
}
#else
ALWAYS lanes widened(const uint16_t *src) {
    return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(src), 16));
}

ALWAYS void store_narrowed(uint16_t *dst, lanes x) {
    uint32x4_t bits = vreinterpretq_u32_f32(x), upper = vshrq_n_u32(bits, 16);
    uint32x4_t odd = vandq_u32(upper, vdupq_n_u32(1));
    uint32x4_t rounded = vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7fff)));
    uint32x4_t quiet = vorrq_u32(upper, vdupq_n_u32(0x40));
    vst1_u16(dst, vmovn_u32(vbslq_u32(vceqq_f32(x, x), vshrq_n_u32(rounded, 16), quiet)));
}
#endif

/* ---- f32, and either ------------------------------------------------------------------------- */

ALWAYS lanes all(float value) {
    return LANES_DO(set1)(value);
}

ALWAYS lanes load(const float *src) {
    return LANES_DO(loadu)(src);
}

ALWAYS void store(float *dst, lanes x) {
    LANES_DO(storeu)(dst, x);
}

ALWAYS size_t bytes_of(dv_type type) {
    return type == DV_F32 ? sizeof(float) : sizeof(uint16_t);
}

/* Of a type, f32 or bf16, a constant. */
ALWAYS lanes load_typed(dv_type type, const void *src) {
    return type == DV_F32 ? load(src) : widened(src);
}

ALWAYS void store_typed(dv_type type, void *dst, lanes x) {
    if (type == DV_F32)
        store(dst, x);
    else
        store_narrowed(dst, x);
}

/* ---- some of the lanes ----------------------------------------------------------------------- */

/* `count` of them, fewer than all: the others read as zeros, and are not written. */
#if defined(__AVX512F__)
ALWAYS __mmask16 first_lanes(size_t count) {
    return (__mmask16)((1u << count) - 1);
}

ALWAYS lanes load_some(dv_type type, const void *src, size_t count) {
    return type == DV_F32 ? _mm512_maskz_loadu_ps(first_lanes(count), src)
                          : widened_halves(_mm256_maskz_loadu_epi16(first_lanes(count), src));
}

ALWAYS void store_some(dv_type type, void *dst, lanes x, size_t count) {
    if (type == DV_F32)
        _mm512_mask_storeu_ps(dst, first_lanes(count), x);
    else
        _mm256_mask_storeu_epi16(dst, first_lanes(count), narrowed_halves(x));
}
#else
ALWAYS lanes load_some(dv_type type, const void *src, size_t count) {
    char values[LANES * sizeof(float)] = {0};
    for (size_t i = 0; i < count * bytes_of(type); i++)
        values[i] = ((const char *)src)[i];
    return load_typed(type, values);
}

ALWAYS void store_some(dv_type type, void *dst, lanes x, size_t count) {
    char values[LANES * sizeof(float)];
    store_typed(type, values, x);
    for (size_t i = 0; i < count * bytes_of(type); i++)
        ((char *)dst)[i] = values[i];
}
#endif

/* ---- arithmetic ------------------------------------------------------------------------------ */

ALWAYS lanes add(lanes x, lanes y) {
    return LANES_DO(add)(x, y);
}

ALWAYS lanes subtract(lanes x, lanes y) {
    return LANES_DO(sub)(x, y);
}

ALWAYS lanes times(lanes x, float y) {
    return LANES_DO(mul)(x, all(y));
}

/* x y + z, z - x y */
ALWAYS lanes fused(lanes x, float y, lanes z) {
    return LANES_FUSED(x, all(y), z);
}

ALWAYS lanes fused_less(lanes x, float y, lanes z) {
    return LANES_FUSED_LESS(x, all(y), z);
}

ALWAYS lanes fused_lanes(lanes x, lanes y, lanes z) {
    return LANES_FUSED(x, y, z);
}

#endif
