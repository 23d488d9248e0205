/* The codec `lean` in plain C, element by element, in the order of docs/codec.md: what the fast kernels must compute,
 * to the last bit. */
#include "codec/kernels/reference.h"

static bool is_inside(const dv_tile *tile, const void *gate, size_t element) {
    return !tile->masked || dv_load_element(tile->type, gate, element) > 0;
}

/* ---- encoding ------------------------------------------------------------------------------ */

/* Of what is inside of the mask: minimum and maximum; of what is outside: sum and count. */
typedef struct statistics {
    float minimum, maximum, sum, outside;
    bool valid; /* nothing is NaN, infinite or beyond DV_VALUE_LIMIT */
} statistics;

static void include(statistics *all, float value, bool inside) {
    all->minimum = inside && value < all->minimum ? value : all->minimum;
    all->maximum = inside && value > all->maximum ? value : all->maximum;
    all->sum += inside ? 0.0f : value;
    all->outside += inside ? 0.0f : 1.0f;
    all->valid = all->valid && fabsf(value) < DV_VALUE_LIMIT;
}

/* Of the pixels of a channel from `origin` on, `length` along each side, one after the other. */
static statistics measure(const dv_tile *tile, const void *src, const void *gate, size_t channel,
                          const size_t origin[3], const size_t length[3]) {
    statistics all = {INFINITY, -INFINITY, 0, 0, true};
    for (size_t i = 0; i < length[0] * length[1] * length[2]; i++) {
        size_t x = origin[2] + i % length[2], y = origin[1] + i / length[2] % length[1];
        size_t z = origin[0] + i / length[2] / length[1];
        size_t at = dv_element_index(tile, channel, (z * tile->sides[1] + y) * tile->sides[2] + x);
        include(&all, dv_load_element(tile->type, src, at), is_inside(tile, gate, at));
    }
    return all;
}

/* Minimum and unit of a channel, and the mean of what is outside. Both are 0 where nothing is inside. */
static bool encode_channel(const dv_tile *tile, const void *src, const void *gate, size_t channel,
                           const dv_lean_record *record) {
    statistics all = measure(tile, src, gate, channel, (const size_t[3]){0}, tile->sides);
    bool empty = all.minimum > all.maximum;
    record->minima[channel] = dv_bf16_down((empty ? 0.0f : all.minimum) + 0.0f);
    float range = empty ? 0.0f : all.maximum - dv_bf16_to_f32(record->minima[channel]);
    record->units[channel] = dv_lean_unit(range);
    float mean = all.outside > 0 ? all.sum / all.outside : 0.0f;
    if (tile->masked)
        record->outside[channel] = dv_bf16_nearest_number(mean + 0.0f);
    return all.valid && isfinite(mean);
}

/* Where a block begins above its channel's minimum, and its range from there, in units. A block with nothing inside has
 * neither. */
static void encode_block(const dv_tile *tile, const void *src, const void *gate, size_t channel, size_t block,
                         const dv_lean_record *record) {
    size_t at[3] = {block / tile->blocks[2] / tile->blocks[1], block / tile->blocks[2] % tile->blocks[1],
                    block % tile->blocks[2]};
    size_t origin[3], length[3];
    for (int d = 0; d < 3; d++) {
        origin[d] = at[d] * tile->edges[d];
        length[d] = dv_block_length(tile, d, at[d]);
    }
    statistics all = measure(tile, src, gate, channel, origin, length);
    float minimum = dv_bf16_to_f32(record->minima[channel]), unit = dv_bf16_to_f32(record->units[channel]);
    bool empty = all.minimum > all.maximum;
    dv_lean_place place = dv_lean_place_of(empty ? minimum : all.minimum, empty ? minimum : all.maximum, minimum, unit);
    record->lows[dv_block_index(tile, channel, block)] = (uint8_t)place.low;
    record->spans[dv_block_index(tile, channel, block)] = (uint8_t)place.span;
}

/* The lowest level of a block, and the step between two. */
static float base_of(const dv_tile *tile, const dv_lean_record *record, size_t channel, size_t block, float *step) {
    float minimum = dv_bf16_to_f32(record->minima[channel]), unit = dv_bf16_to_f32(record->units[channel]);
    size_t at = dv_block_index(tile, channel, block);
    float low = record->lows ? (float)record->lows[at] : 0.0f;
    float span = record->spans ? (float)record->spans[at] : (float)DV_LEAN_UNITS;
    *step = dv_lean_step(span, unit, dv_lean_steps(tile));
    return minimum + low * unit;
}

/* An element as a fixed-point number of steps; one more where code 0 is taken. */
static uint32_t fixed_of(const dv_tile *tile, const dv_lean_record *record, size_t channel, size_t block, float value) {
    float step, base = base_of(tile, record, channel, block, &step);
    float scale = dv_fixed_scale(step, tile->bits), offset = dv_fixed_offset(base, scale);
    uint32_t above = (uint32_t)(int32_t)((value - offset) * scale);
    return above + (tile->masked ? dv_fixed_one(tile->bits) : 0);
}

/* ---- samples of what is outside -------------------------------------------------------------- */

/* How far an element outside is from its channel's mean; one inside is at it. */
static float distance_of(const dv_tile *tile, const dv_lean_record *record, const void *src, const void *gate,
                         size_t channel, size_t pixel) {
    size_t at = dv_element_index(tile, channel, pixel);
    float mean = dv_bf16_to_f32(record->outside[channel]);
    return is_inside(tile, gate, at) ? 0.0f : dv_load_element(tile->type, src, at) - mean;
}

static uint8_t *sample_row(const dv_tile *tile, const dv_lean_record *record, size_t index) {
    return record->samples + index * dv_stream_bytes(tile->channels, DV_LEAN_SAMPLE_BITS);
}

static void encode_samples(const dv_tile *tile, dv_random key, const void *src, const void *gate,
                           const dv_lean_record *record) {
    const size_t samples = dv_lean_samples(tile);
    for (size_t channel = 0; channel < tile->channels; channel++) {
        float farthest = 0;
        for (size_t i = 0; i < samples; i++) {
            size_t pixel = dv_lean_sample_at(tile, key, samples, i).pixel;
            farthest = fmaxf(farthest, fabsf(distance_of(tile, record, src, gate, channel, pixel)));
        }
        record->reaches[channel] = dv_lean_reach(farthest);
        for (size_t i = 0; i < samples; i++) {
            size_t pixel = dv_lean_sample_at(tile, key, samples, i).pixel;
            float distance = distance_of(tile, record, src, gate, channel, pixel);
            float dither = dv_lean_sample_dither(key, dv_lean_sample_first(tile, samples, i), channel);
            uint32_t code = dv_lean_sample_code(distance, dv_lean_reach_scale(record->reaches[channel]), dither);
            dv_put_code(sample_row(tile, record, i), tile->channels, DV_LEAN_SAMPLE_BITS, channel,
                        is_inside(tile, gate, dv_element_index(tile, channel, pixel)) ? 0 : code);
        }
    }
}

static void decode_samples(const dv_tile *tile, dv_random key, const dv_lean_record *record, void *dst) {
    const size_t samples = dv_lean_samples(tile);
    for (size_t i = 0; i < samples; i++) {
        dv_lean_sample sample = dv_lean_sample_at(tile, key, samples, i);
        for (size_t channel = 0; channel < tile->channels; channel++) {
            unsigned code = dv_get_code(sample_row(tile, record, i), tile->channels, DV_LEAN_SAMPLE_BITS, channel);
            float dither = dv_lean_sample_dither(key, dv_lean_sample_first(tile, samples, i), channel);
            float level = dv_lean_sample_level((float)code, dither, tile->dither == DV_DITHER_SUBTRACTIVE);
            float weight = (float)sample.pixels * dv_lean_reach_length(record->reaches[channel]);
            float value = dv_bf16_to_f32(record->outside[channel]) + weight * level;
            if (code != 0)
                dv_store_element(tile->type, dst, dv_element_index(tile, channel, sample.pixel), value);
        }
    }
}

/* ---- tiles ----------------------------------------------------------------------------------- */

bool dv_reference_lean_encode(const dv_tile *tile, dv_random key, const void *src, const void *gate,
                              const dv_lean_record *record) {
    size_t pixels = dv_tile_pixels(tile), count = tile->channels * pixels;
    for (size_t channel = 0; channel < tile->channels; channel++) {
        if (!encode_channel(tile, src, gate, channel, record))
            return false;
        for (size_t block = 0; record->lows && block < dv_tile_blocks(tile); block++)
            encode_block(tile, src, gate, channel, block, record);
    }
    for (size_t index = 0; index < count; index++) {
        bool last = tile->layout == DV_NHWC;
        size_t channel = last ? index % tile->channels : index / pixels;
        size_t pixel = last ? index / tile->channels : index % pixels, at = dv_element_index(tile, channel, pixel);
        float value = dv_load_element(tile->type, src, at);
        uint32_t fixed = is_inside(tile, gate, at) ? fixed_of(tile, record, channel, dv_block_of(tile, pixel), value) +
                                                         dv_dither_of(tile, key, index)
                                                   : 0;
        dv_put_code(record->codes, count, tile->bits, index, fixed / dv_fixed_one(tile->bits));
    }
    if (record->samples)
        encode_samples(tile, dv_lean_sample_key(key), src, gate, record);
    return true;
}

/* ---- decoding ------------------------------------------------------------------------------ */

/* An element whose code is `level` steps above code 0, with or without its dither; `added` is what a norm adds. */
static float decoded(const dv_tile *tile, const dv_lean_record *record, const dv_lean_norm *norm, size_t channel,
                     size_t block, float level, float added) {
    float step, base = base_of(tile, record, channel, block, &step);
    if (tile->masked && level < 0.5f) /* code 0 */
        return norm ? 0.0f : dv_bf16_to_f32(record->outside[channel]);
    base = tile->masked ? base - step : base;
    if (norm)
        dv_lean_normalize(norm->mean[channel], norm->scale[channel], norm->bias[channel], &base, &step);
    return norm && norm->addend ? base + step * level + added : base + step * level;
}

void dv_reference_lean_decode(const dv_tile *tile, dv_random key, const dv_lean_record *record,
                              const dv_lean_norm *norm, void *dst) {
    for (size_t channel = 0; channel < tile->channels; channel++)
        for (size_t pixel = 0; pixel < dv_tile_pixels(tile); pixel++) {
            size_t at = dv_element_index(tile, channel, pixel);
            float level = dv_level_of(tile, key, record->codes, dv_code_index(tile, channel, pixel));
            float added = norm && norm->addend ? dv_load_element(tile->type, norm->addend, at) : 0.0f;
            float value = decoded(tile, record, norm, channel, dv_block_of(tile, pixel), level, added);
            dv_store_element(tile->type, dst, at, value);
        }
    if (record->samples && !norm)
        decode_samples(tile, dv_lean_sample_key(key), record, dst);
}

void dv_reference_lean_mask(const dv_tile *tile, const uint8_t *codes, size_t first, size_t elements, uint8_t *mask) {
    size_t count = tile->channels * dv_tile_pixels(tile);
    for (size_t channel = 0; channel < tile->channels; channel++)
        for (size_t pixel = 0; pixel < dv_tile_pixels(tile); pixel++) {
            int shift;
            size_t at = first + dv_element_index(tile, channel, pixel);
            uint8_t *byte = dv_code_byte(mask, elements, 1, 0, 1, at, &shift);
            if (dv_get_code(codes, count, tile->bits, dv_code_index(tile, channel, pixel)) != 0)
                *byte |= (uint8_t)(1u << shift);
        }
}
