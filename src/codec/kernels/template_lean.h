/* The part of template.h for the codec `lean`.
 *
 * A tile is read twice. The first pass takes the range of every block inside of the mask, and the sum outside; ranges
 * of channels follow from those of blocks. The second makes codes; it goes by bands, rows of blocks, and finds its
 * input in a cache. What a block's elements are measured by is in a window of as many blocks of a band as fit, which is
 * most often all of them. In a tile with more blocks than there is room for, those of a band are read once more before
 * it is coded.
 *
 * A channel of a map with channels first is a tile of one channel with channels last: it is done so, one after the
 * other, and all share one stream of codes. */

/* ---- ranges -------------------------------------------------------------------------------- */

/* Of columns side by side: what is inside. Nothing: minimum > maximum. */
typedef struct lean_ranges {
    float *minimum, *maximum;
} lean_ranges;

/* Of channels: the sum of what is outside, and how many. */
typedef struct lean_sums {
    float sum[DV_RUN], outside[DV_RUN];
    uint32_t top[DV_RUN]; /* the largest magnitude of all, as bits */
} lean_sums;

static void lean_ranges_clear(const lean_ranges *all, size_t count) {
    for (size_t i = 0; i < count; i++) {
        all->minimum[i] = INFINITY;
        all->maximum[i] = -INFINITY;
    }
}

/* Element `index` of an array, f32 or bf16. `type` is a constant. */
INLINE float lean_at(dv_type type, const void *array, size_t index) {
    return type == DV_F32 ? ((const float *)array)[index] : dv_bf16_to_f32(((const uint16_t *)array)[index]);
}

/* Adds `items` pixels, each `count` channels long and `stride` after the one before. `items` and `type` are constants,
 * as are `masked` and `whole`: whether sums are wanted too. */
INLINE void lean_add_items(const lean_ranges *all, lean_sums *sums, dv_type type, const void *restrict x,
                           const void *restrict gate, size_t stride, size_t items, size_t count, bool masked,
                           bool whole) {
    float *restrict minima = all->minimum, *restrict maxima = all->maximum;
    for (size_t i = 0; i < count; i++) {
        float minimum = minima[i], maximum = maxima[i];
        float sum = whole ? sums->sum[i] : 0, outside = whole ? sums->outside[i] : 0;
        uint32_t top = whole ? sums->top[i] : 0;
        _Pragma("GCC unroll 8") for (size_t j = 0; j < items; j++) {
            float value = lean_at(type, x, j * stride + i);
            float open = masked ? lean_at(type, gate, j * stride + i) : 1.0f;
            float low = open > 0 ? value : INFINITY, high = open > 0 ? value : -INFINITY;
            minimum = smaller(low, minimum);
            maximum = larger(high, maximum);
            if (whole && masked) {
                sum += open > 0 ? 0.0f : value;
                outside += open > 0 ? 0.0f : 1.0f;
            }
            uint32_t magnitude = dv_float_bits(value) & 0x7fffffff;
            if (whole)
                top = magnitude > top ? magnitude : top;
        }
        minima[i] = minimum;
        maxima[i] = maximum;
        if (whole) {
            sums->sum[i] = sum;
            sums->outside[i] = outside;
            sums->top[i] = top;
        }
    }
}

INLINE void lean_add_pixels(const lean_ranges *all, lean_sums *sums, dv_type type, const char *x, const char *gate,
                            size_t stride, size_t items, size_t count, bool masked, bool whole) {
    const size_t pixel = stride * (type == DV_F32 ? sizeof(float) : sizeof(uint16_t));
    for (; items >= DV_GROUP; items -= DV_GROUP, x += DV_GROUP * pixel, gate += DV_GROUP * pixel)
        lean_add_items(all, sums, type, x, gate, stride, DV_GROUP, count, masked, whole);
    for (; items > 0; items--, x += pixel, gate += pixel)
        lean_add_items(all, sums, type, x, gate, stride, 1, count, masked, whole);
}

INLINE void lean_add_wanted(const lean_ranges *all, lean_sums *sums, dv_type type, const void *x, const void *gate,
                            size_t stride, size_t items, size_t count, bool masked) {
    if (sums)
        lean_add_pixels(all, sums, type, x, gate, stride, items, count, masked, true);
    else
        lean_add_pixels(all, sums, type, x, gate, stride, items, count, masked, false);
}

LOOP void lean_add_masked(const lean_ranges *all, lean_sums *sums, const void *x, const void *gate, size_t stride,
                          size_t items, size_t count) {
    lean_add_wanted(all, sums, DV_F32, x, gate, stride, items, count, true);
}

LOOP void lean_add_all(const lean_ranges *all, lean_sums *sums, const void *x, size_t stride, size_t items,
                       size_t count) {
    lean_add_wanted(all, sums, DV_F32, x, x, stride, items, count, false);
}

LOOP void lean_add_masked_bf16(const lean_ranges *all, lean_sums *sums, const void *x, const void *gate, size_t stride,
                               size_t items, size_t count) {
    lean_add_wanted(all, sums, DV_BF16, x, gate, stride, items, count, true);
}

LOOP void lean_add_all_bf16(const lean_ranges *all, lean_sums *sums, const void *x, size_t stride, size_t items,
                            size_t count) {
    lean_add_wanted(all, sums, DV_BF16, x, x, stride, items, count, false);
}

/* Adds pixels in f32 or bf16. */
INLINE void lean_add(const dv_tile *tile, dv_type type, const void *x, const void *gate, size_t stride, size_t items,
                     const lean_ranges *all, lean_sums *sums) {
    size_t count = tile->channels;
    if (tile->masked && type == DV_F32)
        lean_add_masked(all, sums, x, gate, stride, items, count);
    else if (tile->masked)
        lean_add_masked_bf16(all, sums, x, gate, stride, items, count);
    else if (type == DV_F32)
        lean_add_all(all, sums, x, stride, items, count);
    else
        lean_add_all_bf16(all, sums, x, stride, items, count);
}

/* Adds `pixels` pixels that follow each other from `pixel` on; to sums too, unless they are NULL. f16 is converted. */
static void lean_measure(const dv_tile *tile, const void *src, const void *gate, size_t pixel, size_t pixels,
                         const lean_ranges *all, lean_sums *sums) {
    const char *x = element(tile->type, src, pixel * tile->pixel_stride);
    const char *open = element(tile->type, gate, pixel * tile->pixel_stride);
    if (tile->type != DV_F16) {
        lean_add(tile, tile->type, x, open, tile->pixel_stride, pixels, all, sums);
        return;
    }
    float values[DV_GROUP * DV_RUN], gates[DV_GROUP * DV_RUN];
    for (size_t done = 0; done < pixels; done += DV_GROUP) {
        size_t now = least(DV_GROUP, pixels - done), at = done * tile->pixel_stride;
        load_pixels(tile, element(tile->type, x, at), now, values);
        if (tile->masked)
            load_pixels(tile, element(tile->type, open, at), now, gates);
        lean_add(tile, DV_F32, values, gates, tile->channels, now, all, sums);
    }
}

/* Of the channels of all blocks, a tile's if there is room for them; then nothing is read twice for it. */
enum { DV_LEAN_BLOCKS = 48 * DV_RUN };

typedef struct lean_blocks {
    bool known;
    float minimum[DV_LEAN_BLOCKS], maximum[DV_LEAN_BLOCKS];
} lean_blocks;

INLINE lean_ranges lean_block_ranges(const dv_tile *tile, lean_blocks *blocks, size_t block) {
    size_t at = block * tile->channels;
    return (lean_ranges){blocks->minimum + at, blocks->maximum + at};
}

/* Ranges of all blocks, and the tile's sums. Pixels are taken in their order; where a block is as wide as the map, all
 * its rows together. */
static void lean_measure_blocks(const dv_tile *tile, const void *src, const void *gate, lean_blocks *blocks,
                                lean_sums *sums) {
    lean_ranges all = lean_block_ranges(tile, blocks, 0);
    lean_ranges_clear(&all, dv_tile_blocks(tile) * tile->channels);
    size_t pixel = 0, rows;
    for (size_t z = 0; z < tile->sides[0]; z++)
        for (size_t y = 0; y < tile->sides[1]; y += rows) {
            size_t band = (z / tile->edges[0] * tile->blocks[1] + y / tile->edges[1]) * tile->blocks[2];
            rows = tile->blocks[2] == 1 ? dv_block_length(tile, 1, y / tile->edges[1]) : 1;
            for (size_t x = 0; x < tile->blocks[2]; x++) {
                size_t pixels = rows * dv_block_length(tile, 2, x);
                lean_ranges one = lean_block_ranges(tile, blocks, band + x);
                lean_measure(tile, src, gate, pixel, pixels, &one, sums);
                pixel += pixels;
            }
        }
}

/* Ranges of the channels, in `all`, and their sums; those of blocks, too, if they are wanted and there is room. */
static void lean_measure_tile(const dv_tile *tile, const void *src, const void *gate, bool wanted, lean_blocks *blocks,
                              const lean_ranges *all, lean_sums *sums) {
    size_t channels = tile->channels, count = dv_tile_blocks(tile);
    *sums = (lean_sums){.top = {0}};
    lean_ranges_clear(all, channels);
    blocks->known = wanted && count * channels <= DV_LEAN_BLOCKS;
    if (!blocks->known) {
        lean_measure(tile, src, gate, 0, dv_tile_pixels(tile), all, sums);
        return;
    }
    lean_measure_blocks(tile, src, gate, blocks, sums);
    for (size_t block = 0; block < count; block++) {
        lean_ranges one = lean_block_ranges(tile, blocks, block);
        for (size_t i = 0; i < channels; i++) {
            all->minimum[i] = smaller(one.minimum[i], all->minimum[i]);
            all->maximum[i] = larger(one.maximum[i], all->maximum[i]);
        }
    }
}

/* Minimum, unit and the mean outside of `count` channels. Not zero if anything cannot be packed. */
LOOP uint32_t lean_choose(const float *restrict minimum, const float *restrict maximum, const lean_sums *restrict sums,
                          size_t count, uint16_t *restrict minima, uint16_t *restrict units,
                          uint16_t *restrict outside) {
    uint32_t bad = 0;
    for (size_t i = 0; i < count; i++) {
        bool empty = minimum[i] > maximum[i];
        uint16_t low = dv_bf16_down((empty ? 0.0f : minimum[i]) + 0.0f);
        float range = empty ? 0.0f : maximum[i] - dv_bf16_to_f32(low);
        minima[i] = low;
        units[i] = dv_lean_unit(range);
        float mean = sums->sum[i] / larger(sums->outside[i], 1.0f); /* a sum of none is 0 */
        outside[i] = dv_bf16_nearest_number(mean + 0.0f);
        bad |= sums->top[i] >= dv_float_bits(DV_VALUE_LIMIT);
        bad |= (dv_float_bits(mean) & 0x7f800000) == 0x7f800000;
    }
    return bad;
}

/* The same of a tile, whose record has a mean outside only if there is a mask. */
static bool lean_channels(const dv_tile *tile, const void *src, const void *gate, const dv_lean_record *record,
                          lean_blocks *blocks) {
    float minimum[DV_RUN], maximum[DV_RUN];
    uint16_t unused[DV_RUN];
    const lean_ranges all = {minimum, maximum};
    lean_sums sums;
    lean_measure_tile(tile, src, gate, record->lows != NULL, blocks, &all, &sums);
    return !lean_choose(minimum, maximum, &sums, tile->channels, record->minima, record->units,
                        tile->masked ? record->outside : unused);
}

/* ---- blocks -------------------------------------------------------------------------------- */

enum { DV_LEAN_WINDOW = 16 * DV_RUN };

/* Of the blocks from `first` to before `end`, which are in one band: what their channels' elements or levels are
 * measured by. Encoding: offset and scale of the fixed point; decoding: the value of level 0, and the step. Those of a
 * block are repeated for as many pixels as a run may have, `times`. */
typedef struct lean_window {
    size_t first, end, times;
    float offset[DV_LEAN_WINDOW], scale[DV_LEAN_WINDOW];
} lean_window;

/* The range of a block that is not known yet. */
static void lean_measure_block(const dv_tile *tile, const void *src, const void *gate, size_t block,
                               const lean_ranges *all) {
    size_t at[3] = {block / tile->blocks[2] / tile->blocks[1], block / tile->blocks[2] % tile->blocks[1],
                    block % tile->blocks[2]};
    size_t depth = dv_block_length(tile, 0, at[0]), height = dv_block_length(tile, 1, at[1]);
    lean_ranges_clear(all, tile->channels);
    for (size_t z = 0; z < depth; z++)
        for (size_t y = 0; y < height; y++) {
            size_t row = (at[0] * tile->edges[0] + z) * tile->sides[1] + at[1] * tile->edges[1] + y;
            lean_measure(tile, src, gate, row * tile->sides[2] + at[2] * tile->edges[2],
                         dv_block_length(tile, 2, at[2]), all, NULL);
        }
}

/* Where `count` ranges lie among those of their channels. What is written are bytes, which might be anything's but for
 * `restrict`. */
LOOP void lean_place(const float *restrict lowest, const float *restrict highest, const uint16_t *restrict minima,
                     const uint16_t *restrict units, size_t count, uint8_t *restrict lows, uint8_t *restrict spans) {
    for (size_t i = 0; i < count; i++) {
        float minimum = dv_bf16_to_f32(minima[i]), unit = dv_bf16_to_f32(units[i]);
        bool empty = lowest[i] > highest[i];
        dv_lean_place place =
            dv_lean_place_of(empty ? minimum : lowest[i], empty ? minimum : highest[i], minimum, unit);
        lows[i] = (uint8_t)place.low;
        spans[i] = (uint8_t)place.span;
    }
}

/* The same of a block's channels, in the record. */
static void lean_place_block(const dv_tile *tile, const void *src, const void *gate, size_t block,
                             const dv_lean_record *record, lean_blocks *blocks) {
    lean_ranges all = lean_block_ranges(tile, blocks, blocks->known ? block : 0);
    if (!blocks->known)
        lean_measure_block(tile, src, gate, block, &all);
    size_t at = block * tile->channels;
    lean_place(all.minimum, all.maximum, record->minima, record->units, tile->channels, record->lows + at,
               record->spans + at);
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

/* The blocks that a window has from `block` on, those together that runs take together. */
INLINE void lean_window_move(const dv_tile *tile, size_t block, lean_window *seen) {
    size_t across = tile->blocks[2], x = block % across, together = blocks_together(tile);
    seen->times = repetitions(tile->channels, tile->edges[2]);
    seen->first = block;
    size_t room = DV_LEAN_WINDOW / (tile->channels * seen->times);
    seen->end = block + least(room - room % together, across - x);
}

/* Where a block's offsets and scales begin. */
INLINE size_t lean_window_place(const dv_tile *tile, size_t block, const lean_window *seen) {
    return (block - seen->first) * tile->channels * seen->times;
}

INLINE void lean_window_repeat(const dv_tile *tile, size_t at, lean_window *seen) {
    repeat(seen->offset + at, tile->channels, seen->times);
    repeat(seen->scale + at, tile->channels, seen->times);
}

static void lean_window_encode(const dv_tile *tile, const void *src, const void *gate, size_t block,
                               const dv_lean_record *record, lean_blocks *blocks, lean_window *seen) {
    lean_window_move(tile, block, seen);
    for (; block < seen->end; block++) {
        size_t at = lean_window_place(tile, block, seen);
        if (record->lows)
            lean_place_block(tile, src, gate, block, record, blocks);
        lean_levels(tile, record, block, seen->offset + at, seen->scale + at);
        for (size_t i = at; i < at + tile->channels; i++) {
            seen->scale[i] = dv_fixed_scale(seen->scale[i], tile->bits);
            seen->offset[i] = dv_fixed_offset(seen->offset[i], seen->scale[i]);
        }
        lean_window_repeat(tile, at, seen);
    }
}

LOOP void lean_normalize(const dv_lean_norm *norm, size_t channels, float *restrict base, float *restrict step) {
    const float *restrict mean = norm->mean, *restrict scale = norm->scale, *restrict bias = norm->bias;
    for (size_t i = 0; i < channels; i++)
        dv_lean_normalize(mean[i], scale[i], bias[i], &base[i], &step[i]);
}

/* With a mask, codes of levels begin with 1. */
static void lean_window_decode(const dv_tile *tile, size_t block, const dv_lean_record *record,
                               const dv_lean_norm *norm, lean_window *seen) {
    lean_window_move(tile, block, seen);
    for (; block < seen->end; block++) {
        size_t at = lean_window_place(tile, block, seen);
        lean_levels(tile, record, block, seen->offset + at, seen->scale + at);
        for (size_t i = at; tile->masked && i < at + tile->channels; i++)
            seen->offset[i] = seen->offset[i] - seen->scale[i];
        if (norm)
            lean_normalize(norm, tile->channels, seen->offset + at, seen->scale + at);
        lean_window_repeat(tile, at, seen);
    }
}

/* ---- codes --------------------------------------------------------------------------------- */

/* Rows of elements to fixed point, above that of code 0, which elements outside have. `type` is a constant. */
ANY_NUMBER INLINE void lean_quantize_rows(dv_type type, const char *x, const char *gate, size_t stride, size_t rows,
                                          size_t width, const float *restrict offset, const float *restrict scale,
                                          uint16_t one, uint16_t *restrict fixed) {
    const size_t row = stride * (type == DV_F32 ? sizeof(float) : sizeof(uint16_t));
    for (size_t j = 0; j < rows; j++, x += row, gate += row, fixed += width)
        UNROLL for (size_t i = 0; i < width; i++) {
            uint16_t above = (uint16_t)((uint16_t)(int32_t)((lean_at(type, x, i) - offset[i]) * scale[i]) + one);
            fixed[i] = lean_at(type, gate, i) > 0 ? above : 0;
        }
}

ANY_NUMBER LOOP void lean_quantize(const char *restrict x, const char *restrict gate, size_t stride, size_t rows,
                                   size_t width, const float *restrict offset, const float *restrict scale,
                                   uint16_t one, uint16_t *restrict fixed) {
    lean_quantize_rows(DV_F32, x, gate, stride, rows, width, offset, scale, one, fixed);
}

ANY_NUMBER LOOP void lean_quantize_bf16(const char *restrict x, const char *restrict gate, size_t stride, size_t rows,
                                        size_t width, const float *restrict offset, const float *restrict scale,
                                        uint16_t one, uint16_t *restrict fixed) {
    lean_quantize_rows(DV_BF16, x, gate, stride, rows, width, offset, scale, one, fixed);
}

/* The same without a mask. */
LOOP void lean_quantize_all(const float *restrict x, size_t stride, size_t rows, size_t width,
                            const float *restrict offset, const float *restrict scale, uint16_t *restrict fixed) {
    for (size_t j = 0; j < rows; j++, x += stride, fixed += width)
        UNROLL for (size_t i = 0; i < width; i++) fixed[i] = (uint16_t)(int32_t)((x[i] - offset[i]) * scale[i]);
}

/* A run of a map with a mask. f16 is converted. */
INLINE void lean_run_quantize(const dv_tile *tile, const void *src, const void *gate, const pixel_run *run,
                              const float *offset, const float *scale, uint16_t *fixed) {
    float values[DV_RUN], gates[DV_RUN];
    const char *x = pixel_run_at(tile, src, run);
    const char *open = element(tile->type, gate, run->pixel * tile->pixel_stride);
    const uint16_t one = (uint16_t)dv_fixed_one(tile->bits);
    if (tile->type == DV_F32) {
        lean_quantize(x, open, tile->pixel_stride, run->rows, run->width, offset, scale, one, fixed);
    } else if (tile->type == DV_BF16) {
        lean_quantize_bf16(x, open, tile->pixel_stride, run->rows, run->width, offset, scale, one, fixed);
    } else {
        load_pixels(tile, x, run->pixels, values);
        load_pixels(tile, open, run->pixels, gates);
        lean_quantize((const char *)values, (const char *)gates, run->width, run->rows, run->width, offset, scale, one,
                      fixed);
    }
}

static void lean_encode_codes(const dv_tile *tile, const void *src, const void *gate, const dv_lean_record *record,
                              lean_blocks *blocks, packer *p) {
    lean_window seen;
    float values[DV_RUN];
    size_t stride, channels = tile->channels;
    seen.first = seen.end = 0;
    const size_t most = DV_RUN / channels;
    pixel_run now = pixel_run_first(tile, most);
    do {
        if (now.block < seen.first || now.block >= seen.end)
            lean_window_encode(tile, src, gate, now.block, record, blocks, &seen);
        size_t at = lean_window_place(tile, now.block, &seen);
        const float *offset = seen.offset + at, *scale = seen.scale + at;
        uint16_t *fixed = p->fixed + p->fill;
        if (tile->masked) {
            lean_run_quantize(tile, src, gate, &now, offset, scale, fixed);
        } else {
            const float *x = pixel_run_load(tile, src, &now, values, &stride);
            lean_quantize_all(x, stride, now.rows, now.width, offset, scale, fixed);
        }
        packer_add(p, now.rows * now.width);
    } while (pixel_run_next(tile, &now, most));
}

/* Rows of levels to elements. Levels below a half are those of code 0, with or without their dither. */
LOOP void lean_restore(const float *restrict levels, size_t stride, size_t rows, size_t width,
                       const float *restrict base, const float *restrict step, const float *restrict outside,
                       float *restrict out) {
    for (size_t j = 0; j < rows; j++, levels += width, out += stride)
        UNROLL for (size_t i = 0; i < width; i++) {
            float value = base[i] + step[i] * levels[i];
            out[i] = levels[i] < 0.5f ? outside[i] : value;
        }
}

LOOP void lean_restore_bf16(const float *restrict levels, size_t stride, size_t rows, size_t width,
                            const float *restrict base, const float *restrict step, const float *restrict outside,
                            uint16_t *restrict out) {
    for (size_t j = 0; j < rows; j++, levels += width, out += stride)
        UNROLL for (size_t i = 0; i < width; i++) {
            float value = base[i] + step[i] * levels[i];
            out[i] = dv_bf16_nearest_number(levels[i] < 0.5f ? outside[i] : value);
        }
}

/* Rows of levels to what a norm makes of them and adds to, below `least` to 0. Each addend is read before what may take
 * its place is written. */
LOOP void lean_restore_add(const float *restrict levels, float least, size_t stride, size_t rows, size_t width,
                           const float *restrict base, const float *restrict step, const float *addend, float *out) {
    for (size_t j = 0; j < rows; j++, levels += width, addend += stride, out += stride)
        EACH for (size_t i = 0; i < width; i++) {
            float value = base[i] + step[i] * levels[i] + addend[i];
            out[i] = levels[i] < least ? 0.0f : value;
        }
}

LOOP void lean_restore_add_bf16(const float *restrict levels, float least, size_t stride, size_t rows, size_t width,
                                const float *restrict base, const float *restrict step, const uint16_t *addend,
                                uint16_t *out) {
    for (size_t j = 0; j < rows; j++, levels += width, addend += stride, out += stride)
        EACH for (size_t i = 0; i < width; i++) {
            float value = base[i] + step[i] * levels[i] + dv_bf16_to_f32(addend[i]);
            out[i] = dv_bf16_nearest_number(levels[i] < least ? 0.0f : value);
        }
}

/* The same of a run of a tile in f32 or bf16. */
INLINE void lean_run_add(const dv_tile *tile, const float *levels, const pixel_run *run, const float *base,
                         const float *step, const void *addend, void *dst) {
    const float inside = tile->masked ? 0.5f : -INFINITY;
    size_t stride = tile->pixel_stride, first = run->pixel * stride;
    if (tile->type == DV_F32)
        lean_restore_add(levels, inside, stride, run->rows, run->width, base, step, (const float *)addend + first,
                         (float *)dst + first);
    else
        lean_restore_add_bf16(levels, inside, stride, run->rows, run->width, base, step,
                              (const uint16_t *)addend + first, (uint16_t *)dst + first);
}

INLINE void lean_run_restore(const dv_tile *tile, const float *levels, const pixel_run *run, const float *base,
                             const float *step, const float *outside, void *dst) {
    char *at = element_in(tile->type, dst, run->pixel * tile->pixel_stride);
    float buffer[DV_RUN];
    if (!tile->masked) {
        pixel_run_restore(tile, levels, run, base, step, buffer, dst);
    } else if (tile->type == DV_F32) {
        lean_restore(levels, tile->pixel_stride, run->rows, run->width, base, step, outside, (float *)(void *)at);
    } else if (tile->type == DV_BF16) {
        lean_restore_bf16(levels, tile->pixel_stride, run->rows, run->width, base, step, outside,
                          (uint16_t *)(void *)at);
    } else {
        lean_restore(levels, run->width, run->rows, run->width, base, step, outside, buffer);
        pixel_run_store(tile, buffer, run, at);
    }
}

/* What elements outside are decoded as, for each of a run. */
static void lean_outside(const dv_tile *tile, const dv_lean_record *record, const dv_lean_norm *norm, float *outside) {
    size_t channels = tile->masked ? tile->channels : 0;
    if (norm)
        memset(outside, 0, channels * sizeof *outside);
    else
        bf16_to_f32(record->outside, channels, outside);
    repeat(outside, channels, run_repetitions(tile));
}

static void lean_decode_codes(const dv_tile *tile, const dv_lean_record *record, const dv_lean_norm *norm, unpacker *u,
                              void *dst) {
    lean_window seen;
    float outside[DV_RUN];
    size_t channels = tile->channels;
    seen.first = seen.end = 0;
    lean_outside(tile, record, norm, outside);
    const size_t most = DV_RUN / channels;
    pixel_run now = pixel_run_first(tile, most);
    do {
        if (now.block < seen.first || now.block >= seen.end)
            lean_window_decode(tile, now.block, record, norm, &seen);
        size_t at = lean_window_place(tile, now.block, &seen);
        const float *levels = unpacker_take(u, now.rows * now.width), *base = seen.offset + at, *step = seen.scale + at;
        if (norm && norm->addend)
            lean_run_add(tile, levels, &now, base, step, norm->addend, dst);
        else
            lean_run_restore(tile, levels, &now, base, step, outside, dst);
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

/* ---- samples of what is outside ------------------------------------------------------------- */
#include "codec/kernels/template_lean_samples.h"

/* ---- tiles --------------------------------------------------------------------------------- */

static bool lean_encode_channels(const dv_tile *tile, const void *src, const void *gate, const dv_lean_record *record,
                                 packer *p) {
    lean_blocks blocks;
    if (tile->layout == DV_NHWC) {
        if (!lean_channels(tile, src, gate, record, &blocks))
            return false;
        lean_encode_codes(tile, src, gate, record, &blocks, p);
        return true;
    }
    const dv_tile one = lean_channel(tile);
    for (size_t c = 0; c < tile->channels; c++) {
        size_t at = c * dv_tile_pixels(tile);
        dv_lean_record part = lean_channel_record(tile, record, c);
        const char *x = element(tile->type, src, at), *open = element(tile->type, gate, at);
        if (!lean_channels(&one, x, open, &part, &blocks))
            return false;
        lean_encode_codes(&one, x, open, &part, &blocks, p);
    }
    return true;
}

static bool lean_encode(const dv_tile *tile, dv_random key, const void *src, const void *gate,
                        const dv_lean_record *record) {
    packer p = {.key = key, .nearest = tile->dither == DV_DITHER_NONE, .bits = tile->bits, .dst = record->codes};
    if (!lean_encode_channels(tile, src, gate, record, &p))
        return false;
    packer_finish(&p);
    if (record->samples)
        lean_encode_samples(tile, dv_lean_sample_key(key), src, gate, record);
    return true;
}

static void lean_decode_channels(const dv_tile *tile, const dv_lean_record *record, const dv_lean_norm *norm,
                                 unpacker *u, void *dst) {
    if (tile->layout == DV_NHWC) {
        lean_decode_codes(tile, record, norm, u, dst);
        return;
    }
    const dv_tile one = lean_channel(tile);
    for (size_t c = 0; c < tile->channels; c++) {
        dv_lean_record part = lean_channel_record(tile, record, c);
        lean_decode_codes(&one, &part, NULL, u, element_in(tile->type, dst, c * dv_tile_pixels(tile)));
    }
}

/* A norm makes 0 of all that is outside, sampled or not. */
static void lean_decode(const dv_tile *tile, dv_random key, const dv_lean_record *record, const dv_lean_norm *norm,
                        void *dst) {
    unpacker u;
    unpacker_begin(&u, tile, key, record->codes);
    lean_decode_channels(tile, record, norm, &u, dst);
    if (record->samples && !norm)
        lean_decode_samples(tile, dv_lean_sample_key(key), record, dst);
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
        float levels[DV_CHUNK + 8];
        size_t now = least(DV_CHUNK, total - index * DV_CHUNK), place;
        bool same = lean_chunk_place(tile, index, &place);
        if (same && tile->bits == 2 && now == DV_CHUNK) {
            lean_mask_chunk(codes, mask + (first + place) / 8);
            continue;
        }
        unpack_plain(codes, now, tile->bits, levels);
        if (same)
            (void)bits_encode_f32(levels, now, mask + (first + place) / 8);
        for (size_t i = 0; !same && i < now; i++) {
            size_t at = index * DV_CHUNK + i;
            if (levels[i] > 0)
                set_bit(mask, elements, first + at / tile->channels * tile->pixel_stride + at % tile->channels);
        }
    }
}
