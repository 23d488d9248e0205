/* The part of template.h that applies a mask: numbers are not computed with, so that one loop serves f32 as 32-bit
 * words, and one both 16-bit floats. */

/* A chunk's bits as words of ones or zeros. `bytes` is a constant, but for a last chunk. */
INLINE void mask_words(const uint8_t *restrict mask, size_t bytes, uint32_t *restrict words) {
    for (size_t i = 0; i < 8; i++)
        for (size_t j = 0; j < bytes; j++)
            words[i * bytes + j] = -(uint32_t)(mask[j] >> i & 1);
}

LOOP void mask_chunk(const uint8_t *mask, size_t count, uint32_t *words) {
    if (count == DV_CHUNK)
        mask_words(mask, DV_CHUNK / 8, words);
    else
        mask_words(mask, dv_chunk_bytes(count, 1), words);
}

/* `dst` may be `src`, element for element. */
LOOP void keep_words(const uint32_t *restrict words, size_t count, const uint32_t *src, uint32_t *dst) {
    UNROLL for (size_t i = 0; i < count; i++) dst[i] = src[i] & words[i];
}

LOOP void keep_halves(const uint32_t *restrict words, size_t count, const uint16_t *src, uint16_t *dst) {
    UNROLL for (size_t i = 0; i < count; i++) dst[i] = (uint16_t)(src[i] & words[i]);
}

static void mask_apply(dv_type type, const uint8_t *mask, size_t count, const void *src, void *dst) {
    for (size_t done = 0; done < count; done += DV_CHUNK) {
        uint32_t words[DV_CHUNK + 8];
        size_t now = least(DV_CHUNK, count - done);
        mask_chunk(mask + done / 8, now, words);
        if (type == DV_F32)
            keep_words(words, now, (const uint32_t *)src + done, (uint32_t *)dst + done);
        else
            keep_halves(words, now, (const uint16_t *)src + done, (uint16_t *)dst + done);
    }
}
