/* The part of template_lean.h for samples of what is outside of the mask: one pixel in `sample`, all its channels, of
 * maps with channels last or first. */

/* The channels of a pixel as f32: in place, if they lie so, else in `buffer`. */
static const float *lean_channels_of(const dv_tile *tile, const void *src, size_t pixel, float *buffer) {
    if (tile->layout == DV_NHWC)
        return as_f32(tile->type, element(tile->type, src, pixel * tile->pixel_stride), tile->channels, buffer);
    for (size_t c = 0; c < tile->channels; c++)
        to_f32(tile->type, element(tile->type, src, c * dv_tile_pixels(tile) + pixel), 1, buffer + c);
    return buffer;
}

/* Back to where they come from. */
static void lean_channels_to(const dv_tile *tile, const float *values, size_t pixel, void *dst) {
    if (tile->layout == DV_NHWC) {
        from_f32(tile->type, values, tile->channels, element_in(tile->type, dst, pixel * tile->pixel_stride));
        return;
    }
    for (size_t c = 0; c < tile->channels; c++)
        from_f32(tile->type, values + c, 1, element_in(tile->type, dst, c * dv_tile_pixels(tile) + pixel));
}

LOOP void lean_farther(const float *restrict x, const float *restrict gate, const float *restrict mean, size_t count,
                       float *restrict farthest) {
    for (size_t i = 0; i < count; i++) {
        float distance = gate[i] > 0 ? 0.0f : fabsf(x[i] - mean[i]);
        farthest[i] = larger(distance, farthest[i]);
    }
}

/* Codes of a pixel's channels, in the topmost bits of fixed-point numbers. What is inside may be beyond any reach. */
LOOP void lean_sample(dv_random key, size_t first, const float *restrict x, const float *restrict gate,
                      const float *restrict mean, const float *restrict scale, size_t count, uint16_t *restrict fixed) {
    for (size_t i = 0; i < count; i++) {
        float distance = gate[i] > 0 ? 0.0f : x[i] - mean[i];
        uint32_t code = dv_lean_sample_code(distance, scale[i], dv_lean_sample_dither(key, first, i));
        fixed[i] = gate[i] > 0 ? 0 : (uint16_t)(code << (16 - DV_LEAN_SAMPLE_BITS));
    }
}

/* Rows of samples have chunks of their own. Nothing is added to them any more. */
static uint8_t *lean_sample_pack(uint16_t *fixed, size_t count, uint8_t *dst) {
    static const uint16_t nothing[DV_CHUNK + DV_GROUP];
    memset(fixed + count, 0, DV_GROUP * sizeof *fixed);
    for (size_t done = 0; done < count; done += DV_CHUNK) {
        size_t bytes = dv_chunk_bytes(least(DV_CHUNK, count - done), DV_LEAN_SAMPLE_BITS);
        pack_bytes(fixed + done, nothing, bytes, DV_LEAN_SAMPLE_BITS, dst);
        dst += bytes;
    }
    return dst;
}

static void lean_choose_reaches(const dv_tile *tile, dv_random key, const void *src, const void *gate,
                                const float *mean, const dv_lean_record *record) {
    float farthest[DV_RUN], values[DV_RUN], gates[DV_RUN];
    const size_t samples = dv_lean_samples(tile);
    memset(farthest, 0, tile->channels * sizeof *farthest);
    for (size_t i = 0; i < samples; i++) {
        size_t pixel = dv_lean_sample_at(tile, key, samples, i).pixel;
        lean_farther(lean_channels_of(tile, src, pixel, values), lean_channels_of(tile, gate, pixel, gates), mean,
                     tile->channels, farthest);
    }
    for (size_t c = 0; c < tile->channels; c++)
        record->reaches[c] = dv_lean_reach(farthest[c]);
}

static void lean_encode_samples(const dv_tile *tile, dv_random key, const void *src, const void *gate,
                                const dv_lean_record *record) {
    float mean[DV_RUN], scale[DV_RUN], values[DV_RUN], gates[DV_RUN];
    uint16_t fixed[DV_RUN + DV_GROUP];
    const size_t samples = dv_lean_samples(tile);
    uint8_t *dst = record->samples;
    bf16_to_f32(record->outside, tile->channels, mean);
    lean_choose_reaches(tile, key, src, gate, mean, record);
    for (size_t c = 0; c < tile->channels; c++)
        scale[c] = dv_lean_reach_scale(record->reaches[c]);
    for (size_t i = 0; i < samples; i++) {
        size_t pixel = dv_lean_sample_at(tile, key, samples, i).pixel;
        lean_sample(key, dv_lean_sample_first(tile, samples, i), lean_channels_of(tile, src, pixel, values),
                    lean_channels_of(tile, gate, pixel, gates), mean, scale, tile->channels, fixed);
        dst = lean_sample_pack(fixed, tile->channels, dst);
    }
}

/* What is outside becomes what its codes say, the rest stays as it is. */
LOOP void lean_put(dv_random key, size_t first, bool subtractive, const float *restrict codes,
                   const float *restrict mean, const float *restrict reach, float pixels, size_t count,
                   const float *restrict before, float *restrict out) {
    for (size_t i = 0; i < count; i++) {
        float level = dv_lean_sample_level(codes[i], dv_lean_sample_dither(key, first, i), subtractive);
        float value = mean[i] + pixels * reach[i] * level;
        out[i] = codes[i] > 0 ? value : before[i];
    }
}

static const uint8_t *lean_sample_unpack(const uint8_t *src, size_t count, float *codes) {
    for (size_t done = 0; done < count; done += DV_CHUNK) {
        size_t now = least(DV_CHUNK, count - done);
        unpack_plain(src, now, DV_LEAN_SAMPLE_BITS, codes + done);
        src += dv_chunk_bytes(now, DV_LEAN_SAMPLE_BITS);
    }
    return src;
}

static void lean_decode_samples(const dv_tile *tile, dv_random key, const dv_lean_record *record, void *dst) {
    float mean[DV_RUN], reach[DV_RUN], values[DV_RUN], codes[DV_RUN + DV_GROUP], out[DV_RUN];
    const uint8_t *src = record->samples;
    const size_t samples = dv_lean_samples(tile);
    bf16_to_f32(record->outside, tile->channels, mean);
    for (size_t c = 0; c < tile->channels; c++)
        reach[c] = dv_lean_reach_length(record->reaches[c]);
    for (size_t i = 0; i < samples; i++) {
        dv_lean_sample sample = dv_lean_sample_at(tile, key, samples, i);
        src = lean_sample_unpack(src, tile->channels, codes);
        lean_put(key, dv_lean_sample_first(tile, samples, i), tile->dither == DV_DITHER_SUBTRACTIVE, codes, mean, reach,
                 (float)sample.pixels, tile->channels, lean_channels_of(tile, dst, sample.pixel, values), out);
        lean_channels_to(tile, out, sample.pixel, dst);
    }
}
