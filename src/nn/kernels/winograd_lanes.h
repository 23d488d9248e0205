/* As many numbers as an instruction takes, and what Winograd's kernels do with them. A product is always fused with the
 * sum that follows it, so that all instruction sets round alike. */
#ifndef DV_NN_KERNELS_WINOGRAD_LANES_H
#define DV_NN_KERNELS_WINOGRAD_LANES_H

#include <stddef.h>

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

ALWAYS lanes all(float value) {
    return LANES_DO(set1)(value);
}

ALWAYS lanes load(const float *src) {
    return LANES_DO(loadu)(src);
}

ALWAYS void store(float *dst, lanes x) {
    LANES_DO(storeu)(dst, x);
}

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
