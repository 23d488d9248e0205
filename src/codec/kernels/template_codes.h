/* The part of template.h for codes of 1 to 8 bits that are cut into fields, and for channels that become codes each in
 * their own way.
 *
 * A tile is walked through in the order of its codes, by pieces that lie in one chunk. Coefficients of channels are in
 * extended arrays: behind the last channel's the first ones' come again, so that a piece that begins at any channel
 * finds its own one behind the other, however many pixels it spans. */

/* ---- fields -------------------------------------------------------------------------------- */

/* Of a whole chunk: `bits` bits from bit `shift` on of each code. */
INLINE void pack_field(const uint16_t *restrict codes, int bits, int shift, uint8_t *restrict dst) {
    const size_t bytes = DV_CHUNK * (size_t)bits / 8;
    const uint16_t mask = (uint16_t)((1 << bits) - 1);
    for (size_t j = 0; j < bytes; j++) {
        uint16_t packed = 0;
        for (size_t i = 0; i < 8 / (size_t)bits; i++) {
            uint16_t part = (uint16_t)(codes[i * bytes + j] >> shift & mask);
            packed = (uint16_t)(packed | part << (i * (size_t)bits));
        }
        dst[j] = (uint8_t)packed;
    }
}

/* Packs a whole chunk. Returns where the next begins. */
LOOP uint8_t *pack_codes(const uint16_t *codes, int bits, uint8_t *dst) {
    if (bits & 8)
        pack_field(codes, 8, 0, dst);
    if (bits & 4)
        pack_field(codes, 4, 0, dst);
    if (bits & 2)
        pack_field(codes, 2, bits & 4, dst + (bits & 4) * 32);
    if (bits & 1)
        pack_field(codes, 1, bits & 6, dst + (bits & 6) * 32);
    return dst + bits * 32;
}

/* Adds `weight` times a field to the levels, or begins with it. */
INLINE void unpack_field(const uint8_t *restrict src, int bits, float weight, bool add, float *restrict levels) {
    const size_t bytes = DV_CHUNK * (size_t)bits / 8;
    for (size_t i = 0; i < 8 / (size_t)bits; i++)
        for (size_t j = 0; j < bytes; j++) {
            float part = (float)(src[j] >> (i * (size_t)bits) & ((1 << bits) - 1)) * weight;
            levels[i * bytes + j] = add ? levels[i * bytes + j] + part : part;
        }
}

LOOP const uint8_t *unpack_codes(const uint8_t *src, int bits, float *levels) {
    if (bits & 8)
        unpack_field(src, 8, 1, false, levels);
    if (bits & 4)
        unpack_field(src, 4, 1, false, levels);
    if ((bits & 6) == 6)
        unpack_field(src + 4 * 32, 2, 16, true, levels);
    else if (bits & 2)
        unpack_field(src, 2, 1, false, levels);
    if (bits & 1 && bits > 1)
        unpack_field(src + (bits & 6) * 32, 1, (float)(1 << (bits & 6)), true, levels);
    else if (bits & 1)
        unpack_field(src, 1, 1, false, levels);
    return src + bits * 32;
}

/* ---- walking through a tile ---------------------------------------------------------------- */

/* Elements that lie one behind the other in memory, and in one chunk of codes. */
typedef struct code_piece {
    size_t at;      /* the first of them, in the order of codes */
    size_t channel; /* of the first */
    size_t place;   /* in memory, from the tile's first element */
    size_t count;
} code_piece;

/* The piece that begins with code `at` and ends before code `end`, at most. */
INLINE code_piece piece_from(const dv_code_tile *tile, size_t at, size_t end) {
    bool last = tile->layout == DV_NHWC, dense = tile->channels == tile->pixel_stride;
    size_t row = last ? tile->channels : tile->pixels, within = at % row;
    code_piece p = {.at = at, .channel = last ? within : at / row, .place = at};
    p.count = least(DV_CHUNK - at % DV_CHUNK, end - at);
    if (!last || !dense)
        p.count = least(p.count, row - within);
    if (last && !dense)
        p.place = at / row * tile->pixel_stride + within;
    return p;
}

typedef struct extended {
    float at[DV_TILE_CHANNELS + DV_CHUNK];
} extended;

/* Sets a channel's coefficient, and what is behind the last channel. */
INLINE void extended_set(extended *all, size_t channels, size_t channel, float value) {
    for (size_t i = channel; i < channels + DV_CHUNK; i += channels)
        all->at[i] = value;
}

static void extend(const dv_code_tile *tile, const float *values, extended *all) {
    for (size_t i = 0, from = 0; i < tile->channels + DV_CHUNK; i++) {
        all->at[i] = values[from];
        from = from + 1 == tile->channels ? 0 : from + 1;
    }
}

/* The coefficients of a piece: of one channel after the other, or of one channel alone. */
INLINE const float *piece_values(const dv_code_tile *tile, const extended *all, const code_piece *p, float *buffer) {
    if (tile->layout == DV_NHWC)
        return all->at + p->channel;
    for (size_t i = 0; i < p->count; i++)
        buffer[i] = all->at[p->channel];
    return buffer;
}

INLINE const float *piece_load(const dv_code_tile *tile, const void *src, const code_piece *p, float *buffer) {
    return as_f32(tile->type, element(tile->type, src, p->place), p->count, buffer);
}

/* `out` is where the piece was restored to, as f32. */
INLINE float *piece_out(const dv_code_tile *tile, void *dst, const code_piece *p, float *buffer) {
    return tile->type == DV_F32 ? (float *)dst + p->place : buffer;
}

INLINE void piece_store(const dv_code_tile *tile, const float *out, const code_piece *p, void *dst) {
    if (tile->type != DV_F32)
        from_f32(tile->type, out, p->count, element_in(tile->type, dst, p->place));
}

/* ---- channels each in their own way -------------------------------------------------------- */

/* Codes of a piece; returns whether all of it is finite. */
LOOP bool quantize_affine(const float *restrict x, size_t count, const float *restrict center,
                          const float *restrict scale, const float *restrict offset, float top,
                          uint16_t *restrict codes) {
    uint32_t bad = 0;
    UNROLL for (size_t i = 0; i < count; i++) {
        float code = (x[i] - center[i]) * scale[i] + offset[i];
        code = larger(code, 0);
        code = smaller(code, top);
        codes[i] = (uint16_t)(int32_t)code;
        bad |= (dv_float_bits(x[i]) & 0x7f800000) == 0x7f800000;
    }
    return !bad;
}

static bool affine_encode(const dv_code_tile *tile, const dv_affine *by, const void *src, uint8_t *dst) {
    extended center, scale, offset;
    float buffer[DV_CHUNK], centers[DV_CHUNK], factors[DV_CHUNK], offsets[DV_CHUNK];
    uint16_t codes[DV_CHUNK];
    size_t total = tile->channels * tile->pixels;
    bool finite = true;
    extend(tile, by->center, &center);
    extend(tile, by->scale, &scale);
    extend(tile, by->offset, &offset);
    code_piece p;
    for (size_t at = 0; at < total; at += p.count) {
        p = piece_from(tile, at, total);
        size_t within = at % DV_CHUNK;
        finite = quantize_affine(piece_load(tile, src, &p, buffer), p.count, piece_values(tile, &center, &p, centers),
                                 piece_values(tile, &scale, &p, factors), piece_values(tile, &offset, &p, offsets),
                                 (float)((1 << tile->bits) - 1), codes + within) &&
                 finite;
        if (at + p.count == total)
            memset(codes + within + p.count, 0, (DV_CHUNK - within - p.count) * sizeof *codes);
        if (within + p.count == DV_CHUNK || at + p.count == total)
            dst = pack_codes(codes, tile->bits, dst);
    }
    return finite;
}

static void affine_decode(const dv_code_tile *tile, const dv_affine *by, const uint8_t *src, void *dst) {
    extended base, step;
    float levels[DV_CHUNK], buffer[DV_CHUNK], bases[DV_CHUNK], steps[DV_CHUNK];
    size_t total = tile->channels * tile->pixels;
    extend(tile, by->base, &base);
    extend(tile, by->step, &step);
    code_piece p;
    for (size_t at = 0; at < total; at += p.count) {
        p = piece_from(tile, at, total);
        if (at % DV_CHUNK == 0)
            src = unpack_codes(src, tile->bits, levels);
        float *out = piece_out(tile, dst, &p, buffer);
        restore(levels + at % DV_CHUNK, p.count, 1, p.count, piece_values(tile, &base, &p, bases),
                piece_values(tile, &step, &p, steps), out);
        piece_store(tile, out, &p, dst);
    }
}

/* Sets the bit of element `index` of an image of `elements`, as streams of 1-bit codes have it. */
INLINE void set_bit(uint8_t *mask, size_t elements, size_t index) {
    size_t chunk = index / DV_CHUNK * DV_CHUNK, within = index - chunk;
    size_t bytes = dv_chunk_bytes(least(DV_CHUNK, elements - chunk), 1);
    mask[chunk / 8 + within % bytes] |= (uint8_t)(1u << within / bytes);
}

/* Chunks of codes are chunks of the mask where a tile's elements lie one behind the other. */
static void affine_mask(const dv_code_tile *tile, const dv_affine *by, const uint8_t *src, size_t first,
                        size_t elements, uint8_t *mask) {
    extended base, step;
    float levels[DV_CHUNK], values[DV_CHUNK], bases[DV_CHUNK], steps[DV_CHUNK];
    size_t total = tile->channels * tile->pixels;
    bool dense = tile->layout == DV_NCHW || tile->channels == tile->pixel_stride;
    extend(tile, by->base, &base);
    extend(tile, by->step, &step);
    code_piece p;
    for (size_t at = 0; at < total; at += p.count) {
        p = piece_from(tile, at, total);
        size_t within = at % DV_CHUNK, filled = within + p.count;
        if (within == 0)
            src = unpack_codes(src, tile->bits, levels);
        restore(levels + within, p.count, 1, p.count, piece_values(tile, &base, &p, bases),
                piece_values(tile, &step, &p, steps), values + within);
        for (size_t i = 0; !dense && i < p.count; i++)
            if (values[within + i] > 0)
                set_bit(mask, elements, first + p.place + i);
        if (dense && (filled == DV_CHUNK || at + p.count == total))
            (void)bits_encode_f32(values, filled, mask + (first + at - within) / 8);
    }
}
