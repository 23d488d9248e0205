/* The part of template.h for the codec `lean`.
 *
 * A tile is read twice. The first pass takes the range of every block inside of the mask, and of every channel the sum
 * outside. The second turns elements into codes.
 *
 *     record   | minima | units | outside | lows | spans | codes                     |
 *     pass 1                                               ranges [blocks][2][channels]   f32, as they are found
 *     between    written from the ranges ................
 *     pass 2                                               written
 *
 * Ranges of blocks lie where the codes will be: 8 bytes for each block and channel, which codes of blocks of 8 x 8 have
 * twice over. Where blocks are too small for that they are measured again, by bands, rows of blocks, in the second
 * pass. What a block's elements are measured by is in a window of as many blocks of a band as fit, which is most often
 * all of them.
 *
 * A channel of a map with channels first is a tile of one channel with channels last: it is done so, one after the
 * other, and all share one stream of codes. */

/* ---- ranges -------------------------------------------------------------------------------- */

/* Floats among the codes, at any address. */
typedef float anywhere __attribute__((aligned(1), may_alias));

/* The range of a block's channels, inside of the mask: minima, then maxima. */
typedef anywhere *lean_range;

INLINE void lean_range_clear(lean_range range, size_t channels) {
    for (size_t i = 0; i < channels; i++) {
        range[i] = INFINITY;
        range[channels + i] = -INFINITY;
    }
}

/* Of all elements of a channel. */
typedef struct lean_columns {
    float sum[DV_RUN], outside[DV_RUN]; /* outside of the mask: their sum, and how many */
    uint32_t top[DV_RUN];               /* the largest magnitude, as bits */
} lean_columns;

static void lean_clear(lean_columns *all, size_t count) {
    for (size_t i = 0; i < count; i++) {
        all->sum[i] = all->outside[i] = 0;
        all->top[i] = 0;
    }
}

INLINE float lean_load(dv_type type, const void *src, size_t index) {
    return type == DV_F32 ? ((const float *)src)[index] : dv_bf16_to_f32(((const uint16_t *)src)[index]);
}

/* `value` where it is inside, else `other`. As integers, or compilers make of this and the comparison that follows one
 * of two conditions, which takes longer than both. */
INLINE float lean_inside(bool inside, float value, float other) {
    return dv_bits_float(inside ? dv_float_bits(value) : dv_float_bits(other));
}

/* Adds `items` pixels, each `count` channels long and `stride` after the one before. All but the pointers, `stride` and
 * `count` are constants. */
INLINE void lean_add_items(dv_type type, lean_columns *restrict all, lean_range range, const void *restrict x,
                           const void *restrict gate, size_t stride, size_t items, size_t count, bool masked) {
    anywhere *restrict minima = range, *restrict maxima = range + count;
    for (size_t i = 0; i < count; i++) {
        float minimum = minima[i], maximum = maxima[i], sum = all->sum[i], outside = all->outside[i];
        uint32_t top = all->top[i];
        _Pragma("GCC unroll 8") for (size_t j = 0; j < items; j++) {
            float value = lean_load(type, x, j * stride + i);
            bool inside = !masked || lean_load(type, gate, j * stride + i) > 0;
            minimum = smaller(lean_inside(inside, value, INFINITY), minimum);
            maximum = larger(lean_inside(inside, value, -INFINITY), maximum);
            if (masked) {
                sum += lean_inside(inside, 0.0f, value);
                outside += lean_inside(inside, 0.0f, 1.0f);
            }
            uint32_t magnitude = dv_float_bits(value) & 0x7fffffff;
            top = magnitude > top ? magnitude : top;
        }
        minima[i] = minimum;
        maxima[i] = maximum;
        all->sum[i] = sum;
        all->outside[i] = outside;
        all->top[i] = top;
    }
}

INLINE void lean_add_pixels(dv_type type, lean_columns *all, lean_range range, const void *x, const void *gate,
                            size_t stride, size_t items, size_t count, bool masked) {
    size_t done = 0;
    for (; items - done >= DV_GROUP; done += DV_GROUP)
        lean_add_items(type, all, range, element(type, x, done * stride), element(type, gate, done * stride), stride,
                       DV_GROUP, count, masked);
    for (; items - done >= 2; done += 2)
        lean_add_items(type, all, range, element(type, x, done * stride), element(type, gate, done * stride), stride, 2,
                       count, masked);
    if (done < items)
        lean_add_items(type, all, range, element(type, x, done * stride), element(type, gate, done * stride), stride, 1,
                       count, masked);
}

LOOP void lean_add_f32(lean_columns *all, lean_range range, const float *x, const float *gate, size_t stride,
                       size_t items, size_t count, bool masked) {
    if (masked)
        lean_add_pixels(DV_F32, all, range, x, gate, stride, items, count, true);
    else
        lean_add_pixels(DV_F32, all, range, x, gate, stride, items, count, false);
}

LOOP void lean_add_bf16(lean_columns *all, lean_range range, const uint16_t *x, const uint16_t *gate, size_t stride,
                        size_t items, size_t count, bool masked) {
    if (masked)
        lean_add_pixels(DV_BF16, all, range, x, gate, stride, items, count, true);
    else
        lean_add_pixels(DV_BF16, all, range, x, gate, stride, items, count, false);
}

/* Adds `pixels` pixels that follow each other from `pixel` on. */
static void lean_measure(const dv_tile *tile, const void *src, const void *gate, size_t pixel, size_t pixels,
                         lean_columns *all, lean_range range) {
    size_t stride = tile->pixel_stride, channels = tile->channels;
    const void *x = element(tile->type, src, pixel * stride), *open = element(tile->type, gate, pixel * stride);
    if (tile->type == DV_F32) {
        lean_add_f32(all, range, x, open, stride, pixels, channels, tile->masked);
        return;
    }
    if (tile->type == DV_BF16) {
        lean_add_bf16(all, range, x, open, stride, pixels, channels, tile->masked);
        return;
    }
    float values[DV_RUN], gates[DV_RUN];
    for (size_t done = 0; done < pixels; done++) {
        load_pixels(tile, element(tile->type, x, done * stride), 1, values);
        load_pixels(tile, element(tile->type, open, done * stride), 1, gates);
        lean_add_f32(all, range, values, gates, channels, 1, channels, tile->masked);
    }
}

/* Whether ranges of all blocks have room where the codes will be. A tile of one channel may be one of many that share
 * their codes, and has none. */
static bool lean_has_room(const dv_tile *tile) {
    size_t ranges = dv_tile_blocks(tile) * tile->channels * 2 * sizeof(float);
    return tile->channels > 1 && ranges <= dv_stream_bytes(tile->channels * dv_tile_pixels(tile), tile->bits);
}

/* The range of block `block`, or of the channel if they have no room. */
INLINE lean_range lean_range_at(const dv_tile *tile, anywhere *ranges, bool room, size_t block) {
    return ranges + (room ? block * 2 * tile->channels : 0);
}

/* Measures a tile in the order of its pixels, which is that of the sums. */
static void lean_measure_tile(const dv_tile *tile, const void *src, const void *gate, bool room, lean_columns *all,
                              anywhere *ranges) {
    lean_clear(all, tile->channels);
    for (size_t block = 0; block < (room ? dv_tile_blocks(tile) : 1); block++)
        lean_range_clear(lean_range_at(tile, ranges, room, block), tile->channels);
    pixel_run now = pixel_run_first(tile, tile->edges[2]);
    do {
        lean_measure(tile, src, gate, now.pixel, now.pixels, all, lean_range_at(tile, ranges, room, now.block));
    } while (pixel_run_next(tile, &now, tile->edges[2]));
}

/* That of the channels, from all blocks'. */
static void lean_join_ranges(const dv_tile *tile, const anywhere *ranges, size_t count, lean_range whole) {
    size_t channels = tile->channels;
    lean_range_clear(whole, channels);
    for (size_t block = 0; block < count; block++, ranges += 2 * channels)
        for (size_t i = 0; i < channels; i++) {
            whole[i] = smaller(ranges[i], whole[i]);
            whole[channels + i] = larger(ranges[channels + i], whole[channels + i]);
        }
}

/* Minimum, unit and the mean outside of each channel. Returns 0 if all of it can be packed. */
LOOP uint32_t lean_describe(const lean_columns *restrict all, const anywhere *restrict range, size_t channels,
                            uint16_t *restrict minima, uint16_t *restrict units, uint16_t *restrict outside) {
    uint32_t bad = 0;
    for (size_t i = 0; i < channels; i++) {
        float minimum = range[i], maximum = range[channels + i];
        bool empty = minimum > maximum;
        minima[i] = dv_bf16_down((empty ? 0.0f : minimum) + 0.0f);
        units[i] = dv_lean_unit(empty ? 0.0f : maximum - dv_bf16_to_f32(minima[i]));
        float mean = all->outside[i] > 0 ? all->sum[i] / all->outside[i] : 0.0f;
        outside[i] = dv_bf16_nearest_number(mean + 0.0f);
        bad |= all->top[i] >= dv_float_bits(DV_VALUE_LIMIT);
        bad |= (dv_float_bits(mean) & 0x7f800000) == 0x7f800000;
    }
    return bad;
}

/* False if anything cannot be packed. */
static bool lean_channels(const dv_tile *tile, const lean_columns *all, const anywhere *range,
                          const dv_lean_record *record) {
    uint16_t none[DV_RUN];
    return !lean_describe(all, range, tile->channels, record->minima, record->units,
                          tile->masked ? record->outside : none);
}

/* Where a block's channels lie among their range: to `lows` and `spans`. */
LOOP void lean_place(const anywhere *restrict range, size_t channels, const uint16_t *restrict minima,
                     const uint16_t *restrict units, uint8_t *restrict lows, uint8_t *restrict spans) {
    for (size_t i = 0; i < channels; i++) {
        float minimum = dv_bf16_to_f32(minima[i]), unit = dv_bf16_to_f32(units[i]);
        float least_ = range[i], most = range[channels + i];
        bool empty = least_ > most;
        dv_lean_place place = dv_lean_place_of(empty ? minimum : least_, empty ? minimum : most, minimum, unit);
        lows[i] = (uint8_t)place.low;
        spans[i] = (uint8_t)place.span;
    }
}

static void lean_place_block(const dv_tile *tile, const anywhere *range, size_t block, const dv_lean_record *record) {
    lean_place(range, tile->channels, record->minima, record->units, record->lows + block * tile->channels,
               record->spans + block * tile->channels);
}

/* The first pass: all of the record but the codes, and but the places of blocks where ranges have no room. False if
 * anything cannot be packed. */
static bool lean_measure_all(const dv_tile *tile, const void *src, const void *gate, const dv_lean_record *record) {
    bool room = record->lows && lean_has_room(tile);
    lean_columns all;
    float whole[2 * DV_RUN];
    anywhere *ranges = room ? (void *)record->codes : whole;
    lean_measure_tile(tile, src, gate, room, &all, ranges);
    if (room)
        lean_join_ranges(tile, ranges, dv_tile_blocks(tile), whole);
    if (!lean_channels(tile, &all, whole, record))
        return false;
    for (size_t block = 0; room && block < dv_tile_blocks(tile); block++)
        lean_place_block(tile, ranges + block * 2 * tile->channels, block, record);
    return true;
}

/* ---- blocks -------------------------------------------------------------------------------- */

enum { DV_LEAN_WINDOW = 16 * DV_RUN };

/* Of the blocks from `first` to before `end`, which are in one band: what their channels' elements or levels are
 * measured by. Encoding: offset and scale of the fixed point; decoding: the value of level 0, and the step. */
typedef struct lean_window {
    size_t first, end;
    float offset[DV_LEAN_WINDOW], scale[DV_LEAN_WINDOW];
} lean_window;

/* Of one block, whose range had no room in the first pass. */
static void lean_place_again(const dv_tile *tile, const void *src, const void *gate, size_t block,
                             const dv_lean_record *record) {
    lean_columns unused;
    float range[2 * DV_RUN];
    size_t at[3] = {block / tile->blocks[2] / tile->blocks[1], block / tile->blocks[2] % tile->blocks[1],
                    block % tile->blocks[2]};
    size_t depth = dv_block_length(tile, 0, at[0]), height = dv_block_length(tile, 1, at[1]);
    lean_clear(&unused, tile->channels);
    lean_range_clear(range, tile->channels);
    for (size_t z = 0; z < depth; z++)
        for (size_t y = 0; y < height; y++) {
            size_t row = (at[0] * tile->edges[0] + z) * tile->sides[1] + at[1] * tile->edges[1] + y;
            lean_measure(tile, src, gate, row * tile->sides[2] + at[2] * tile->edges[2],
                         dv_block_length(tile, 2, at[2]), &unused, range);
        }
    lean_place_block(tile, range, block, record);
}

/* The lowest level of a block's channels, and their step. */
INLINE void lean_levels(const dv_tile *tile, const dv_lean_record *record, size_t block, float *restrict base,
                        float *restrict step) {
    const float steps = dv_lean_steps(tile);
    const uint8_t *lows = record->lows ? record->lows + block * tile->channels : NULL;
    const uint8_t *spans = record->spans ? record->spans + block * tile->channels : NULL;
    for (size_t i = 0; i < tile->channels; i++) {
        float unit = dv_bf16_to_f32(record->units[i]);
        base[i] = dv_bf16_to_f32(record->minima[i]) + (lows ? (float)lows[i] : 0.0f) * unit;
        step[i] = dv_lean_step(spans ? (float)spans[i] : (float)DV_LEAN_UNITS, unit, steps);
    }
}

/* The blocks that a window has from `block` on. */
INLINE void lean_window_move(const dv_tile *tile, size_t block, lean_window *seen) {
    size_t across = tile->blocks[2], x = block % across;
    seen->first = block;
    seen->end = block + least(DV_LEAN_WINDOW / tile->channels, across - x);
}

static void lean_window_encode(const dv_tile *tile, const void *src, const void *gate, size_t block,
                               const dv_lean_record *record, lean_window *seen) {
    lean_window_move(tile, block, seen);
    for (size_t at = 0; block < seen->end; block++, at += tile->channels) {
        if (record->lows && !lean_has_room(tile))
            lean_place_again(tile, src, gate, block, record);
        lean_levels(tile, record, block, seen->offset + at, seen->scale + at);
        for (size_t i = at; i < at + tile->channels; i++) {
            seen->scale[i] = dv_fixed_scale(seen->scale[i], tile->bits);
            seen->offset[i] = dv_fixed_offset(seen->offset[i], seen->scale[i]);
        }
    }
}

/* What levels become is normalised in their stead. */
INLINE void lean_normalize_levels(const dv_lean_norm *norm, size_t channels, float *restrict base,
                                  float *restrict step) {
    for (size_t i = 0; i < channels; i++) {
        base[i] = (base[i] - norm->mean[i]) * norm->scale[i] + norm->bias[i];
        step[i] = step[i] * norm->scale[i];
    }
}

/* With a mask, codes of levels begin with 1. */
static void lean_window_decode(const dv_tile *tile, size_t block, const dv_lean_record *record,
                               const dv_lean_norm *norm, lean_window *seen) {
    const float unit = mark_unit(tile);
    lean_window_move(tile, block, seen);
    for (size_t at = 0; block < seen->end; block++, at += tile->channels) {
        float *base = seen->offset + at, *step = seen->scale + at;
        lean_levels(tile, record, block, base, step);
        for (size_t i = 0; tile->masked && i < tile->channels; i++)
            base[i] = base[i] - step[i];
        if (norm)
            lean_normalize_levels(norm, tile->channels, base, step);
        for (size_t i = 0; i < tile->channels; i++)
            step[i] = step[i] * unit;
    }
}

/* A run's own offsets and scales: those of its block, repeated if it has several pixels in a row. */
typedef struct lean_run {
    float offset[DV_RUN], scale[DV_RUN];
} lean_run;

INLINE const float *lean_values(const dv_tile *tile, const pixel_run *now, const float *of_block, float *buffer) {
    if (now->rows != 1 || now->pixels == 1)
        return of_block;
    memcpy(buffer, of_block, tile->channels * sizeof *buffer);
    repeat(buffer, tile->channels, now->pixels);
    return buffer;
}

/* ---- codes --------------------------------------------------------------------------------- */

/* Rows of elements to fixed point, above that of code 0, which elements outside have, whatever number they are. `type`
 * and `masked` are constants. */
ANY_NUMBER INLINE void lean_quantize_rows(dv_type type, const void *restrict x, const void *restrict gate,
                                          size_t stride, size_t rows, size_t width, const float *restrict offset,
                                          const float *restrict scale, bool masked, uint16_t one,
                                          uint16_t *restrict fixed) {
    for (size_t j = 0; j < rows; j++, fixed += width)
        UNROLL for (size_t i = 0; i < width; i++) {
            float value = lean_load(type, x, j * stride + i);
            uint16_t above = (uint16_t)(int32_t)((value - offset[i]) * scale[i]);
            bool inside = !masked || lean_load(type, gate, j * stride + i) > 0;
            fixed[i] = inside ? (uint16_t)(above + one) : 0;
        }
}

ANY_NUMBER LOOP void lean_quantize(dv_type type, const void *x, const void *gate, size_t stride, size_t rows,
                                   size_t width, const float *offset, const float *scale, uint16_t one,
                                   uint16_t *fixed) {
    if (type == DV_F32)
        lean_quantize_rows(DV_F32, x, gate, stride, rows, width, offset, scale, true, one, fixed);
    else
        lean_quantize_rows(DV_BF16, x, gate, stride, rows, width, offset, scale, true, one, fixed);
}

/* The same without a mask. */
ANY_NUMBER LOOP void lean_quantize_all(dv_type type, const void *x, size_t stride, size_t rows, size_t width,
                                       const float *offset, const float *scale, uint16_t *fixed) {
    if (type == DV_F32)
        lean_quantize_rows(DV_F32, x, x, stride, rows, width, offset, scale, false, 0, fixed);
    else
        lean_quantize_rows(DV_BF16, x, x, stride, rows, width, offset, scale, false, 0, fixed);
}

/* A run's elements: where they are, or f16 as f32. */
INLINE const void *lean_run_load(const dv_tile *tile, const void *src, const pixel_run *run, float *buffer) {
    size_t stride;
    return tile->type == DV_F16 ? (const void *)pixel_run_load(tile, src, run, buffer, &stride)
                                : pixel_run_at(tile, src, run);
}

INLINE void lean_encode_run(const dv_tile *tile, const void *src, const void *gate, const pixel_run *run,
                            const float *offset, const float *scale, uint16_t *fixed) {
    dv_tile behind = *tile; /* whose gates are not asked for early */
    behind.next = 0;
    float values[DV_RUN], gates[DV_RUN];
    dv_type type = tile->type == DV_BF16 ? DV_BF16 : DV_F32;
    size_t stride = tile->type == DV_F16 ? run->width : tile->pixel_stride;
    const void *x = lean_run_load(tile, src, run, values);
    if (tile->masked)
        lean_quantize(type, x, lean_run_load(&behind, gate, run, gates), stride, run->rows, run->width, offset, scale,
                      (uint16_t)dv_fixed_one(tile->bits), fixed);
    else
        lean_quantize_all(type, x, stride, run->rows, run->width, offset, scale, fixed);
}

static void lean_encode_codes(const dv_tile *tile, const void *src, const void *gate, const dv_lean_record *record,
                              packer *p) {
    lean_window seen;
    lean_run run;
    size_t channels = tile->channels;
    seen.first = seen.end = 0;
    const size_t most = DV_RUN / channels;
    pixel_run now = pixel_run_first(tile, most);
    do {
        if (now.block < seen.first || now.block >= seen.end)
            lean_window_encode(tile, src, gate, now.block, record, &seen);
        size_t at = (now.block - seen.first) * channels;
        const float *offset = lean_values(tile, &now, seen.offset + at, run.offset);
        const float *scale = lean_values(tile, &now, seen.scale + at, run.scale);
        lean_encode_run(tile, src, gate, &now, offset, scale, p->fixed + p->fill);
        packer_add(p, now.rows * now.width);
    } while (pixel_run_next(tile, &now, most));
}

/* Rows of marks to elements; those of code 0 are outside. */
LOOP void lean_restore(const uint16_t *restrict marks, float middle, int32_t one, size_t stride, size_t rows,
                       size_t width, const float *restrict base, const float *restrict step,
                       const float *restrict outside, float *restrict out) {
    for (size_t j = 0; j < rows; j++, marks += width, out += stride)
        UNROLL for (size_t i = 0; i < width; i++) {
            float value = base[i] + step[i] * ((float)marks[i] + middle);
            out[i] = marks[i] < one ? outside[i] : value;
        }
}

LOOP void lean_restore_bf16(const uint16_t *restrict marks, float middle, int32_t one, size_t stride, size_t rows,
                            size_t width, const float *restrict base, const float *restrict step,
                            const float *restrict outside, uint16_t *restrict out) {
    for (size_t j = 0; j < rows; j++, marks += width, out += stride)
        UNROLL for (size_t i = 0; i < width; i++) {
            float value = base[i] + step[i] * ((float)marks[i] + middle);
            out[i] = dv_bf16_nearest_number(marks[i] < one ? outside[i] : value);
        }
}

/* The same where something is added to what is inside, and nothing is outside; `one` is 0 if all is inside. `addend`
 * may be `out`, element for element. */
LOOP void lean_restore_add(const uint16_t *restrict marks, float middle, int32_t one, size_t stride, size_t rows,
                           size_t width, const float *restrict base, const float *restrict step, const float *addend,
                           float *out) {
    for (size_t j = 0; j < rows; j++, marks += width, addend += stride, out += stride)
        UNROLL_EACH for (size_t i = 0; i < width; i++) {
            float value = base[i] + step[i] * ((float)marks[i] + middle) + addend[i];
            out[i] = marks[i] < one ? 0.0f : value;
        }
}

LOOP void lean_restore_add_bf16(const uint16_t *restrict marks, float middle, int32_t one, size_t stride, size_t rows,
                                size_t width, const float *restrict base, const float *restrict step,
                                const uint16_t *addend, uint16_t *out) {
    for (size_t j = 0; j < rows; j++, marks += width, addend += stride, out += stride)
        UNROLL_EACH for (size_t i = 0; i < width; i++) {
            float value = base[i] + step[i] * ((float)marks[i] + middle) + dv_bf16_to_f32(addend[i]);
            out[i] = dv_bf16_nearest_number(marks[i] < one ? 0.0f : value);
        }
}

/* A run of a tile, and what its marks become. */
typedef struct lean_levels_of_run {
    const float *base, *step, *outside;
} lean_levels_of_run;

INLINE void lean_run_restore(const dv_tile *tile, const uint16_t *marks, const pixel_run *run,
                             const lean_levels_of_run *to, void *dst) {
    const float middle = mark_middle(tile);
    const int32_t one = mark_one(tile);
    size_t stride = tile->pixel_stride;
    char *at = element_in(tile->type, dst, run->pixel * stride);
    float buffer[DV_RUN];
    if (!tile->masked) {
        pixel_run_restore(tile, marks, run, to->base, to->step, buffer, dst);
    } else if (tile->type == DV_F32) {
        lean_restore(marks, middle, one, stride, run->rows, run->width, to->base, to->step, to->outside,
                     (float *)(void *)at);
    } else if (tile->type == DV_BF16) {
        lean_restore_bf16(marks, middle, one, stride, run->rows, run->width, to->base, to->step, to->outside,
                          (uint16_t *)(void *)at);
    } else {
        lean_restore(marks, middle, one, run->width, run->rows, run->width, to->base, to->step, to->outside, buffer);
        pixel_run_store(tile, buffer, run, at);
    }
}

/* f32 or bf16. */
INLINE void lean_run_add(const dv_tile *tile, const uint16_t *marks, const pixel_run *run, const lean_levels_of_run *to,
                         const void *addend, void *dst) {
    const float middle = mark_middle(tile);
    const int32_t one = tile->masked ? mark_one(tile) : 0;
    size_t stride = tile->pixel_stride;
    const void *added = element(tile->type, addend, run->pixel * stride);
    void *at = element_in(tile->type, dst, run->pixel * stride);
    (tile->type == DV_F32)
        ? lean_restore_add(marks, middle, one, stride, run->rows, run->width, to->base, to->step, added, at)
        : lean_restore_add_bf16(marks, middle, one, stride, run->rows, run->width, to->base, to->step, added, at);
}

/* What elements outside are decoded as, for each element of a run. */
static void lean_outside(const dv_tile *tile, const dv_lean_record *record, const dv_lean_norm *norm, float *outside) {
    size_t times = repetitions(tile->channels, tile->edges[2]);
    if (norm)
        memset(outside, 0, tile->channels * times * sizeof *outside);
    else if (tile->masked)
        bf16_to_f32(record->outside, tile->channels, outside);
    repeat(outside, tile->masked && !norm ? tile->channels : 0, times);
}

static void lean_decode_codes(const dv_tile *tile, const dv_lean_record *record, const dv_lean_norm *norm, unpacker *u,
                              void *dst) {
    lean_window seen;
    lean_run run;
    float outside[DV_RUN];
    size_t channels = tile->channels;
    seen.first = seen.end = 0;
    lean_outside(tile, record, norm, outside);
    const size_t most = DV_RUN / channels;
    pixel_run now = pixel_run_first(tile, most);
    do {
        if (now.block < seen.first || now.block >= seen.end)
            lean_window_decode(tile, now.block, record, norm, &seen);
        size_t at = (now.block - seen.first) * channels;
        lean_levels_of_run to = {lean_values(tile, &now, seen.offset + at, run.offset),
                                 lean_values(tile, &now, seen.scale + at, run.scale), outside};
        const uint16_t *marks = unpacker_take(u, now.rows * now.width);
        if (norm && norm->addend)
            lean_run_add(tile, marks, &now, &to, norm->addend, dst);
        else
            lean_run_restore(tile, marks, &now, &to, dst);
    } while (pixel_run_next(tile, &now, most));
}

/* ---- channels first ------------------------------------------------------------------------ */

/* A channel of a tile with channels first, as a tile of its own, and its part of the record. */
static dv_tile lean_channel(const dv_tile *tile) {
    dv_tile one = *tile;
    one.layout = DV_NHWC;
    one.channels = one.pixel_stride = 1;
    one.next = 0;
    return one;
}

static dv_lean_record lean_channel_record(const dv_tile *tile, const dv_lean_record *record, size_t channel) {
    size_t blocks = channel * dv_tile_blocks(tile);
    return (dv_lean_record){
        .minima = record->minima + channel,
        .units = record->units + channel,
        .outside = record->outside ? record->outside + channel : NULL,
        .lows = record->lows ? record->lows + blocks : NULL,
        .spans = record->spans ? record->spans + blocks : NULL,
        .codes = record->codes,
    };
}

/* ---- tiles --------------------------------------------------------------------------------- */

static bool lean_encode_channels(const dv_tile *tile, const void *src, const void *gate, const dv_lean_record *record,
                                 packer *p) {
    if (tile->layout == DV_NHWC) {
        if (!lean_measure_all(tile, src, gate, record))
            return false;
        lean_encode_codes(tile, src, gate, record, p);
        return true;
    }
    const dv_tile one = lean_channel(tile);
    for (size_t c = 0; c < tile->channels; c++) {
        size_t at = c * dv_tile_pixels(tile);
        dv_lean_record part = lean_channel_record(tile, record, c);
        const char *x = element(tile->type, src, at), *open = element(tile->type, gate, at);
        if (!lean_measure_all(&one, x, open, &part))
            return false;
        lean_encode_codes(&one, x, open, &part, p);
    }
    return true;
}

static bool lean_encode(const dv_tile *tile, dv_random key, const void *src, const void *gate,
                        const dv_lean_record *record) {
    packer p = {.key = key, .nearest = tile->dither == DV_DITHER_NONE, .bits = tile->bits, .dst = record->codes};
    if (!lean_encode_channels(tile, src, gate, record, &p))
        return false;
    packer_finish(&p);
    return true;
}

static void lean_decode(const dv_tile *tile, dv_random key, const dv_lean_record *record, const dv_lean_norm *norm,
                        void *dst) {
    unpacker u;
    unpacker_begin(&u, tile, key, record->codes);
    if (tile->layout == DV_NHWC) {
        lean_decode_codes(tile, record, norm, &u, dst);
        return;
    }
    const dv_tile one = lean_channel(tile);
    for (size_t c = 0; c < tile->channels; c++) {
        dv_lean_record part = lean_channel_record(tile, record, c);
        lean_decode_codes(&one, &part, NULL, &u, element_in(tile->type, dst, c * dv_tile_pixels(tile)));
    }
}

/* ---- the mask alone ------------------------------------------------------------------------ */

/* Of a whole chunk of 2-bit codes. Bytes j and j + 32 have the codes of elements j, j + 64, ... and j + 32, j + 96,
 * ...: the even and the odd bits of byte j of the mask. */
LOOP void lean_mask_chunk(const uint8_t *restrict codes, uint8_t *restrict mask) {
    for (size_t j = 0; j < DV_CHUNK / 8; j++) {
        uint8_t even = codes[j], odd = codes[j + DV_CHUNK / 8];
        even = (uint8_t)((even | even >> 1) & 0x55);
        odd = (uint8_t)((odd | odd >> 1) & 0x55);
        mask[j] = (uint8_t)(even | odd << 1);
    }
}

/* Where chunk `index` of a tile's codes lies in its image, if it is a chunk of the image's mask too. */
INLINE bool lean_chunk_place(const dv_tile *tile, size_t index, size_t *place) {
    size_t at = index * DV_CHUNK, channels = tile->channels;
    if (tile->layout == DV_NCHW || channels == tile->pixel_stride) {
        *place = at;
        return true;
    }
    *place = at / channels * tile->pixel_stride + at % channels;
    return channels % DV_CHUNK == 0 && tile->pixel_stride % DV_CHUNK == 0;
}

static void lean_mask(const dv_tile *tile, const uint8_t *codes, size_t first, size_t elements, uint8_t *mask) {
    size_t total = tile->channels * dv_tile_pixels(tile), bytes = dv_chunk_bytes(DV_CHUNK, tile->bits);
    for (size_t index = 0; index * DV_CHUNK < total; index++, codes += bytes) {
        uint16_t inside[DV_CHUNK + 8];
        size_t now = least(DV_CHUNK, total - index * DV_CHUNK), place;
        bool same = lean_chunk_place(tile, index, &place);
        if (same && tile->bits == 2 && now == DV_CHUNK) {
            lean_mask_chunk(codes, mask + (first + place) / 8);
            continue;
        }
        unpack_plain(codes, now, tile->bits, inside);
        if (same)
            (void)bits_encode_half(inside, now, UINT16_MAX, mask + (first + place) / 8);
        for (size_t i = 0; !same && i < now; i++) {
            size_t at = index * DV_CHUNK + i;
            if (inside[i] > 0)
                set_bit(mask, elements, first + at / tile->channels * tile->pixel_stride + at % tile->channels);
        }
    }
}
