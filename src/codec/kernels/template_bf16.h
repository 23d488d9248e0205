/* The part of template.h for the codec `bf16`. */

/* Rounds `count` numbers; returns whether all of them are finite as bf16. NaN and infinity are found by the exponent
 * of what is written: of NaN the upper half, so that rounding cannot carry it into a number. */
LOOP bool round_to_bf16(const float *restrict x, size_t count, uint16_t *restrict rounded) {
    uint16_t bad = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = dv_float_bits(x[i]);
        uint32_t number = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
        uint32_t nan = (bits & 0x7fffffff) > 0x7f800000 ? 0x7fc0 : 0;
        uint32_t tiny = bits - 1 < 0x8000 ? 1 : 0; /* positive, and rounded to zero */
        uint16_t half = (uint16_t)(number | nan | tiny);
        bad |= (uint16_t)((half & 0x7f80) == 0x7f80);
        rounded[i] = half;
    }
    return !bad;
}

/* bf16 as it is; false if any is not finite. */
LOOP bool copy_bf16(const uint16_t *restrict src, size_t count, uint16_t *restrict rounded) {
    uint16_t bad = 0;
    for (size_t i = 0; i < count; i++) {
        bad |= (uint16_t)((src[i] & 0x7f80) == 0x7f80);
        rounded[i] = src[i];
    }
    return !bad;
}

static bool bf16_encode(dv_type type, const void *src, size_t count, uint16_t *rounded) {
    float buffer[DV_RUN];
    bool finite = true;
    if (type == DV_BF16)
        return copy_bf16(src, count, rounded);
    if (type == DV_F32)
        return round_to_bf16(src, count, rounded);
    for (size_t done = 0; done < count; done += DV_RUN) {
        size_t now = least(DV_RUN, count - done);
        to_f32(type, element(type, src, done), now, buffer);
        finite = round_to_bf16(buffer, now, rounded + done) && finite;
    }
    return finite;
}

static void bf16_decode(dv_type type, const uint16_t *rounded, size_t count, void *dst) {
    float buffer[DV_RUN];
    if (type == DV_BF16)
        memcpy(dst, rounded, count * sizeof *rounded);
    else if (type == DV_F32)
        bf16_to_f32(rounded, count, dst);
    else
        for (size_t done = 0; done < count; done += DV_RUN) {
            size_t now = least(DV_RUN, count - done);
            bf16_to_f32(rounded + done, now, buffer);
            from_f32(type, buffer, now, element_in(type, dst, done));
        }
}
