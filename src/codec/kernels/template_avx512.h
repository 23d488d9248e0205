/* The part of template.h that AVX-512 has by hand: what encoding spends its time with. Compilers narrow 32-bit numbers
 * to 16 bits by a permutation of three operations, and mix loading with computing badly. */

enum { DV_LANES = 16 }; /* floats of a vector */

INLINE __m512i fixed_of(const float *x, const float *low, const float *offset, const float *scale) {
    __m512 above = _mm512_sub_ps(_mm512_sub_ps(_mm512_loadu_ps(x), _mm512_loadu_ps(low)), _mm512_loadu_ps(offset));
    return _mm512_cvttps_epi32(_mm512_mul_ps(above, _mm512_loadu_ps(scale)));
}

/* quantize, of as much of a row as whole pairs of vectors take, which is what it returns. Fixed-point numbers are below
 * 2^16, so that narrowing with saturation changes none. Elements `ahead` bytes further on are asked for. */
INLINE size_t quantize_vectors(const float *x, size_t width, const float *low, const float *offset, const float *scale,
                               uint16_t *fixed, ptrdiff_t ahead) {
    const __m512i order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
    size_t i = 0;
    for (; i + 2 * DV_LANES <= width; i += 2 * DV_LANES) {
        __m512i first = fixed_of(x + i, low + i, offset + i, scale + i);
        size_t j = i + DV_LANES;
        __m512i second = fixed_of(x + j, low + j, offset + j, scale + j);
        _mm512_storeu_si512(fixed + i, _mm512_permutexvar_epi64(order, _mm512_packus_epi32(first, second)));
        if (ahead) {
            __builtin_prefetch((const char *)(x + i) + ahead, 0, 2);
            __builtin_prefetch((const char *)(x + j) + ahead, 0, 2);
        }
    }
    return i;
}

/* dv_random_word of 16 positions. */
INLINE __m512i random_words(__m512i positions, __m512i high) {
    __m512i x = positions;
    x = _mm512_mullo_epi32(_mm512_xor_si512(x, _mm512_srli_epi32(x, 16)), _mm512_set1_epi32(0x7feb352d));
    x = _mm512_add_epi32(x, high);
    x = _mm512_mullo_epi32(_mm512_xor_si512(x, _mm512_srli_epi32(x, 15)), _mm512_set1_epi32((int)0x846ca68b));
    return _mm512_xor_si512(x, _mm512_srli_epi32(x, 16));
}

/* Fixed-point numbers of a quarter of 32 elements, rounded at random: their codes are the upper two bits. */
INLINE __m512i rounded_of(const uint16_t *fixed, size_t at, __m512i positions, __m512i high) {
    __m512i words = _mm512_add_epi32(positions, _mm512_set1_epi32((int)at / 2));
    return _mm512_add_epi16(_mm512_loadu_si512(fixed + at), _mm512_srli_epi16(random_words(words, high), 2));
}

/* 32 of a chunk's 64 bytes, each in 16 bits. */
INLINE __m512i packed_half(const uint16_t *fixed, size_t at, __m512i positions, __m512i high) {
    enum { QUARTER = DV_CHUNK / 4, OR_MASKED = 0xf8 };
    __m512i packed = _mm512_srli_epi16(rounded_of(fixed, at, positions, high), 14);
    __m512i second = _mm512_srli_epi16(rounded_of(fixed, at + QUARTER, positions, high), 12);
    packed = _mm512_ternarylogic_epi32(packed, second, _mm512_set1_epi16(0x0c), OR_MASKED);
    __m512i third = _mm512_srli_epi16(rounded_of(fixed, at + 2 * QUARTER, positions, high), 10);
    packed = _mm512_ternarylogic_epi32(packed, third, _mm512_set1_epi16(0x30), OR_MASKED);
    __m512i fourth = _mm512_srli_epi16(rounded_of(fixed, at + 3 * QUARTER, positions, high), 8);
    return _mm512_ternarylogic_epi32(packed, fourth, _mm512_set1_epi16(0xc0), OR_MASKED);
}

/* Codes of two bits of a whole chunk. */
LOOP void pack_two(dv_random key, uint32_t chunk, const uint16_t *fixed, uint8_t *dst) {
    const __m512i order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
    __m512i positions = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    positions = _mm512_add_epi32(positions, _mm512_set1_epi32((int)(chunk * (DV_CHUNK / 2) + key.low)));
    const __m512i high = _mm512_set1_epi32((int)key.high);
    __m512i first = packed_half(fixed, 0, positions, high), second = packed_half(fixed, 32, positions, high);
    _mm512_storeu_si512(dst, _mm512_permutexvar_epi64(order, _mm512_packus_epi16(first, second)));
}
