/* The part of template.h for channels whose codes have different widths: each is a stream of its own. A map with
 * channels last is turned round on the way, by squares of DV_CHANNELS_TOGETHER channels (a line of a cache) and 256
 * pixels. */

/* Adds to the largest magnitudes of `width` columns; returns whether anything is not finite. */
LOOP uint32_t magnitudes_add(const float *restrict x, size_t stride, size_t rows, size_t width, float *restrict most) {
    uint32_t bad = 0;
    for (size_t j = 0; j < rows; j++, x += stride)
        UNROLL for (size_t i = 0; i < width; i++) {
            uint32_t bits = dv_float_bits(x[i]) & 0x7fffffff;
            bad |= bits >= 0x7f800000;
            most[i] = larger(dv_bits_float(bits), most[i]);
        }
    return bad;
}

static bool channels_measure(const dv_code_tile *tile, const void *src, float *most) {
    float buffer[DV_TILE_CHANNELS];
    uint32_t bad = 0;
    code_piece p;
    for (size_t at = 0; tile->layout == DV_NCHW && at < tile->channels * tile->pixels; at += p.count) {
        float largest[DV_CHUNK] = {0};
        p = piece_from(tile, at, tile->channels * tile->pixels);
        bad |= magnitudes_add(piece_load(tile, src, &p, buffer), 0, 1, p.count, largest);
        for (size_t i = 0; i < p.count; i++)
            most[p.channel] = larger(largest[i], most[p.channel]);
    }
    if (tile->layout == DV_NHWC && tile->type == DV_F32)
        bad |= magnitudes_add(src, tile->pixel_stride, tile->pixels, tile->channels, most);
    for (size_t j = 0; tile->layout == DV_NHWC && tile->type != DV_F32 && j < tile->pixels; j++) {
        to_f32(tile->type, element(tile->type, src, j * tile->pixel_stride), tile->channels, buffer);
        bad |= magnitudes_add(buffer, 0, 1, tile->channels, most);
    }
    return !bad;
}

/* ---- one channel ---------------------------------------------------------------------------- */

/* Of `count` codes: a field each, behind the last zeros. `bits` is a constant. */
INLINE uint8_t *put_field(const uint16_t *restrict codes, size_t count, int bits, unsigned shift,
                          uint8_t *restrict dst) {
    const size_t bytes = dv_chunk_bytes(count, bits);
    for (size_t j = 0; j < bytes; j++) {
        uint16_t packed = 0;
        for (size_t i = 0; i < 8 / (size_t)bits; i++) {
            uint16_t part = (uint16_t)(codes[i * bytes + j] >> shift & ((1 << bits) - 1));
            packed = (uint16_t)(packed | part << (i * (size_t)bits));
        }
        dst[j] = (uint8_t)packed;
    }
    return dst + bytes;
}

/* Codes below 2^16 of a chunk, all but the field of 16 bits. */
INLINE uint8_t *put_fields(const uint16_t *codes, size_t count, uint32_t width, uint8_t *dst) {
    unsigned shift = 0;
    if (width & 8) {
        dst = put_field(codes, count, 8, shift, dst);
        shift += 8;
    }
    if (width & 4) {
        dst = put_field(codes, count, 4, shift, dst);
        shift += 4;
    }
    if (width & 2) {
        dst = put_field(codes, count, 2, shift, dst);
        shift += 2;
    }
    return width & 1 ? put_field(codes, count, 1, shift, dst) : dst;
}

/* Packs a chunk; `low` and `high` hold codes and what is above 16 bits of them, with zeros behind. */
LOOP uint8_t *put_chunk(const uint16_t *low, const uint16_t *high, size_t count, uint32_t width, uint8_t *dst) {
    if (width & 16) {
        memcpy(dst, low, 2 * count);
        return put_fields(high, count, width, dst + 2 * count);
    }
    return count == DV_CHUNK ? put_fields(low, DV_CHUNK, width, dst) : put_fields(low, count, width, dst);
}

INLINE const uint8_t *add_field(const uint8_t *restrict src, size_t count, int bits, float weight,
                                float *restrict levels) {
    const size_t bytes = dv_chunk_bytes(count, bits);
    for (size_t i = 0; i < 8 / (size_t)bits; i++)
        for (size_t j = 0; j < bytes; j++)
            levels[i * bytes + j] += (float)(src[j] >> (i * (size_t)bits) & ((1 << bits) - 1)) * weight;
    return src + bytes;
}

/* The codes of a chunk, onto the lowest one. May write 7 more. */
LOOP const uint8_t *get_chunk(const uint8_t *src, size_t count, uint32_t width, float lowest, float *levels) {
    float weight = 1;
    for (size_t i = 0; i < DV_CHUNK + 8; i++)
        levels[i] = lowest;
    if (width & 16) {
        for (size_t i = 0; i < count; i++) {
            uint16_t code;
            memcpy(&code, src + 2 * i, sizeof code);
            levels[i] += (float)code;
        }
        src += 2 * count;
        weight = 65536;
    }
    if (width & 8) {
        src = add_field(src, count, 8, weight, levels);
        weight *= 256;
    }
    if (width & 4) {
        src = add_field(src, count, 4, weight, levels);
        weight *= 16;
    }
    if (width & 2) {
        src = add_field(src, count, 2, weight, levels);
        weight *= 4;
    }
    return width & 1 ? add_field(src, count, 1, weight, levels) : src;
}

/* Adding and taking off 1.5 x 2^23 rounds to the nearest whole number, ties to even. */
LOOP void quantize_channel_codes(const float *restrict x, size_t count, float scale, float lowest, float highest,
                                 uint16_t *restrict low, uint16_t *restrict high) {
    UNROLL for (size_t i = 0; i < count; i++) {
        float code = x[i] * scale;
        code = larger(code, lowest);
        code = smaller(code, highest);
        code = (code + 0x1.8p23f) - 0x1.8p23f;
        int32_t above = (int32_t)(code - lowest);
        low[i] = (uint16_t)above;
        high[i] = (uint16_t)(above >> 16);
    }
}

/* ---- squares --------------------------------------------------------------------------------- */

enum { SQUARE_ROW = DV_CHUNK + 8 };

typedef float square[DV_CHANNELS_TOGETHER][SQUARE_ROW];

/* Whether pixels of all channels of a square follow each other, so that they are turned by groups. */
INLINE bool is_whole_square(const dv_code_tile *tile) {
    return tile->layout == DV_NHWC && tile->channels == DV_CHANNELS_TOGETHER;
}

/* DV_GROUP pixels, in f32. */
INLINE void turn_group(const float *x, size_t stride, square to, size_t pixel) {
    for (size_t c = 0; c < DV_CHANNELS_TOGETHER; c += DV_GROUP)
        transpose(x + c, stride, to[c] + pixel, SQUARE_ROW);
}

INLINE void turn_group_back(square from, size_t pixel, size_t stride, float *out) {
    for (size_t c = 0; c < DV_CHANNELS_TOGETHER; c += DV_GROUP)
        transpose(from[c] + pixel, SQUARE_ROW, out + c, stride);
}

/* The groups among `count` pixels of a whole square, the first at src: returns how many pixels these are. */
LOOP size_t turn_groups(const dv_code_tile *tile, const void *src, size_t count, square to) {
    float rows[DV_GROUP][DV_CHANNELS_TOGETHER];
    size_t stride = tile->pixel_stride, j = 0;
    for (; j + DV_GROUP <= count; j += DV_GROUP) {
        const char *x = element(tile->type, src, j * stride);
        if (tile->type == DV_F32) {
            turn_group((const float *)(const void *)x, stride, to, j);
            continue;
        }
        for (size_t i = 0; i < DV_GROUP; i++)
            to_f32(tile->type, element(tile->type, x, i * stride), DV_CHANNELS_TOGETHER, rows[i]);
        turn_group(rows[0], DV_CHANNELS_TOGETHER, to, j);
    }
    return j;
}

LOOP size_t turn_groups_back(const dv_code_tile *tile, square from, size_t count, void *dst) {
    float rows[DV_GROUP][DV_CHANNELS_TOGETHER];
    size_t stride = tile->pixel_stride, j = 0;
    for (; j + DV_GROUP <= count; j += DV_GROUP) {
        char *out = element_in(tile->type, dst, j * stride);
        if (tile->type == DV_F32) {
            turn_group_back(from, j, stride, (float *)(void *)out);
            continue;
        }
        turn_group_back(from, j, DV_CHANNELS_TOGETHER, rows[0]);
        for (size_t i = 0; i < DV_GROUP; i++)
            from_f32(tile->type, rows[i], DV_CHANNELS_TOGETHER, element_in(tile->type, out, i * stride));
    }
    return j;
}

/* Pixels first .. first + count - 1 of all channels, channel by channel. */
LOOP void turn(const dv_code_tile *tile, const void *src, size_t first, size_t count, square to) {
    const char *pixels = element(tile->type, src, first * tile->pixel_stride);
    size_t done = is_whole_square(tile) ? turn_groups(tile, pixels, count, to) : 0;
    for (size_t c = 0; tile->layout == DV_NCHW && c < tile->channels; c++)
        to_f32(tile->type, element(tile->type, src, c * tile->pixels + first), count, to[c]);
    for (size_t j = done; tile->layout == DV_NHWC && j < count; j++) {
        float row[DV_CHANNELS_TOGETHER];
        const float *x = as_f32(tile->type, element(tile->type, pixels, j * tile->pixel_stride), tile->channels, row);
        for (size_t c = 0; c < tile->channels; c++)
            to[c][j] = x[c];
    }
}

LOOP void turn_back(const dv_code_tile *tile, square from, size_t first, size_t count, void *dst) {
    char *pixels = element_in(tile->type, dst, first * tile->pixel_stride);
    size_t done = is_whole_square(tile) ? turn_groups_back(tile, from, count, pixels) : 0;
    for (size_t c = 0; tile->layout == DV_NCHW && c < tile->channels; c++)
        from_f32(tile->type, from[c], count, element_in(tile->type, dst, c * tile->pixels + first));
    for (size_t j = done; tile->layout == DV_NHWC && j < count; j++) {
        float row[DV_CHANNELS_TOGETHER];
        for (size_t c = 0; c < tile->channels; c++)
            row[c] = from[c][j];
        from_f32(tile->type, row, tile->channels, element_in(tile->type, pixels, j * tile->pixel_stride));
    }
}

static void channels_encode(const dv_code_tile *tile, const dv_channel_code *by, bool is_signed, const void *src,
                            uint8_t *const *codes) {
    square x;
    uint16_t low[DV_CHUNK + 8], high[DV_CHUNK + 8];
    size_t done[DV_CHANNELS_TOGETHER] = {0};
    for (size_t first = 0; first < tile->pixels; first += DV_CHUNK) {
        size_t count = least(DV_CHUNK, tile->pixels - first);
        turn(tile, src, first, count, x);
        for (size_t c = 0; c < tile->channels; c++) {
            float lowest = dv_lowest_code(by[c].width, is_signed), highest = dv_highest_code(by[c].width, is_signed);
            quantize_channel_codes(x[c], count, 1 / by[c].step, lowest, highest, low, high);
            for (size_t i = count; i < count + 8; i++)
                low[i] = high[i] = 0;
            done[c] += (size_t)(put_chunk(low, high, count, by[c].width, codes[c] + done[c]) - (codes[c] + done[c]));
        }
    }
}

/* Asks for the memory that a square is written to, while its codes are read: lines far apart, which the processor does
 * not foresee. */
INLINE void prefetch_square(const dv_code_tile *tile, size_t first, size_t count, void *dst) {
    for (size_t j = 0; tile->layout == DV_NHWC && j < count; j++)
        __builtin_prefetch(element_in(tile->type, dst, (first + j) * tile->pixel_stride), 1, 3);
}

static void channels_decode(const dv_code_tile *tile, const dv_channel_code *by, bool is_signed,
                            const uint8_t *const *codes, void *dst) {
    square x;
    size_t done[DV_CHANNELS_TOGETHER] = {0};
    for (size_t first = 0; first < tile->pixels; first += DV_CHUNK) {
        size_t count = least(DV_CHUNK, tile->pixels - first);
        prefetch_square(tile, first, count, dst);
        for (size_t c = 0; c < tile->channels; c++) {
            const uint8_t *from = codes[c] + done[c];
            float lowest = dv_lowest_code(by[c].width, is_signed), step = by[c].step;
            done[c] += (size_t)(get_chunk(from, count, by[c].width, lowest, x[c]) - from);
            for (size_t i = 0; i < count; i++)
                x[c][i] *= step;
        }
        turn_back(tile, x, first, count, dst);
    }
}
