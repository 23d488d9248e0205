/* The codecs in plain C, element by element, in the order of docs/codec.md. Slow, and kept for ever:
 * this file says what the fast kernels must compute, to the last bit. */
#include "codec/kernels/reference.h"

#include <math.h>

/* ---- elements ------------------------------------------------------------------------------ */

static void to_f32(dv_type type, const void *src, size_t count, float *dst) {
    for (size_t i = 0; i < count; i++)
        dst[i] = dv_load_element(type, src, i);
}

/* ---- division ------------------------------------------------------------------------------ */

typedef struct statistics {
    float sum, minimum, maximum;
} statistics;

static void include(statistics *all, float sum, float minimum, float maximum) {
    all->sum += sum;
    all->minimum = minimum < all->minimum ? minimum : all->minimum;
    all->maximum = maximum > all->maximum ? maximum : all->maximum;
}

/* Sum, minimum and maximum of one block. The order of the sum follows memory: NHWC adds pixel after
 * pixel; NCHW adds each column from top to bottom, then the columns from left to right. */
static statistics reduce_block(const dv_tile *tile, const void *src, size_t channel, const size_t block[3]) {
    size_t length[3], origin[3];
    for (int d = 0; d < 3; d++) {
        length[d] = dv_block_length(tile, d, block[d]);
        origin[d] = block[d] * tile->edges[d];
    }
    bool by_column = tile->layout == DV_NCHW;
    size_t rows = length[0] * length[1], columns = length[2];
    statistics all = {0, INFINITY, -INFINITY}, column = all;
    for (size_t i = 0; i < rows * columns; i++) {
        size_t row = by_column ? i % rows : i / columns, x = by_column ? i / rows : i % columns;
        size_t z = origin[0] + row / length[1], y = origin[1] + row % length[1];
        size_t pixel = (z * tile->sides[1] + y) * tile->sides[2] + origin[2] + x;
        float value = dv_load_element(tile->type, src, dv_element_index(tile, channel, pixel));
        if (!by_column) {
            include(&all, value, value, value);
            continue;
        }
        include(&column, value, value, value);
        if (row == rows - 1) {
            include(&all, column.sum, column.minimum, column.maximum);
            column = (statistics){0, INFINITY, -INFINITY};
        }
    }
    return all;
}

/* The average of a block, rounded, and what the block has. */
static uint16_t average_block(const dv_tile *tile, const void *src, size_t channel, size_t index, statistics *all) {
    size_t block[3] = {index / tile->blocks[2] / tile->blocks[1], index / tile->blocks[2] % tile->blocks[1],
                       index % tile->blocks[2]};
    size_t count =
        dv_block_length(tile, 0, block[0]) * dv_block_length(tile, 1, block[1]) * dv_block_length(tile, 2, block[2]);
    *all = reduce_block(tile, src, channel, block);
    return dv_bf16_nearest_number(all->minimum == all->maximum ? all->maximum : all->sum / (float)count);
}

/* Averages of a channel's blocks, and the range of what remains. False if anything is not finite. */
static bool split_channel(const dv_tile *tile, const void *src, size_t channel, uint16_t *averages, statistics *rest) {
    bool finite = true;
    *rest = (statistics){0, INFINITY, -INFINITY};
    for (size_t b = 0; b < dv_tile_blocks(tile); b++) {
        statistics all;
        uint16_t average = average_block(tile, src, channel, b, &all);
        if (tile->lfc)
            averages[dv_block_index(tile, channel, b)] = average;
        float low = dv_bf16_to_f32(average);
        include(rest, 0, all.minimum - low, all.maximum - low);
        finite = finite && isfinite(all.sum) && fmaxf(all.maximum, -all.minimum) < DV_VALUE_LIMIT;
    }
    return finite;
}

/* Minimum and step of a channel whose HFC spans `rest`. A channel with one HFC value only gets it
 * exactly: its step is negative, and the value is the minimum less the step. */
static bool choose_step(const statistics *rest, int bits, uint16_t *minimum, uint16_t *step) {
    *minimum = dv_bf16_down(rest->minimum + 0.0f); /* so that -0 and +0 give the same bytes */
    float range = rest->maximum - dv_bf16_to_f32(*minimum);
    float wanted = range / (float)((1 << bits) - 1);
    if (rest->minimum == rest->maximum)
        *step = dv_bf16_up(range) | 0x8000;
    else
        *step = dv_bf16_up(wanted < DV_STEP_MIN ? DV_STEP_MIN : wanted);
    return isfinite(dv_bf16_to_f32(*minimum)) && isfinite(dv_bf16_to_f32(*step));
}

/* The average that an element is measured against: kept, or made again. */
static float average_of(const dv_tile *tile, const dv_tile_record *record, const void *src, size_t channel,
                        size_t block) {
    statistics all;
    return dv_bf16_to_f32(tile->lfc ? record->averages[dv_block_index(tile, channel, block)]
                                    : average_block(tile, src, channel, block, &all));
}

static bool division_encode(const dv_tile *tile, dv_random key, const void *src, const dv_tile_record *record) {
    size_t pixels = dv_tile_pixels(tile), count = tile->channels * pixels;
    for (size_t channel = 0; channel < tile->channels; channel++) {
        statistics rest;
        if (!split_channel(tile, src, channel, record->averages, &rest))
            return false;
        if (tile->hfc && !choose_step(&rest, tile->bits, &record->minima[channel], &record->steps[channel]))
            return false;
    }
    for (size_t index = 0; tile->hfc && index < count; index++) {
        bool last = tile->layout == DV_NHWC;
        size_t channel = last ? index % tile->channels : index / pixels;
        size_t pixel = last ? index / tile->channels : index % pixels;
        float low = average_of(tile, record, src, channel, dv_block_of(tile, pixel));
        float scale = dv_fixed_scale(dv_bf16_to_f32(record->steps[channel]), tile->bits);
        float offset = dv_fixed_offset(dv_bf16_to_f32(record->minima[channel]), scale);
        float high = dv_load_element(tile->type, src, dv_element_index(tile, channel, pixel)) - low;
        uint32_t fixed = (uint32_t)(int32_t)((high - offset) * scale);
        uint32_t code = (fixed + dv_dither_of(tile, key, index)) / dv_fixed_one(tile->bits);
        dv_put_code(record->codes, count, tile->bits, index, code);
    }
    return true;
}

/* A part that the record does not have is 0. */
static void division_decode(const dv_tile *tile, dv_random key, const dv_tile_record *record, void *dst) {
    size_t pixels = dv_tile_pixels(tile);
    for (size_t channel = 0; channel < tile->channels; channel++) {
        float minimum = tile->hfc ? dv_bf16_to_f32(record->minima[channel]) : 0.0f;
        float step = tile->hfc ? dv_bf16_to_f32(record->steps[channel]) : 0.0f;
        if (step < 0) {
            minimum -= step;
            step = 0;
        }
        for (size_t pixel = 0; pixel < pixels; pixel++) {
            size_t average = dv_block_index(tile, channel, dv_block_of(tile, pixel));
            float low = tile->lfc ? dv_bf16_to_f32(record->averages[average]) : 0.0f;
            float level = tile->hfc ? dv_level_of(tile, key, record->codes, dv_code_index(tile, channel, pixel)) : 0.0f;
            dv_store_element(tile->type, dst, dv_element_index(tile, channel, pixel), (low + minimum) + step * level);
        }
    }
}

/* ---- bits ---------------------------------------------------------------------------------- */

static bool bits_encode(dv_type type, const void *src, size_t count, uint8_t *packed) {
    bool finite = true;
    for (size_t i = 0; i < count; i++) {
        float value = dv_load_element(type, src, i);
        dv_put_code(packed, count, 1, i, value > 0);
        finite = finite && isfinite(value);
    }
    return finite;
}

static void bits_decode(dv_type type, const uint8_t *packed, size_t count, void *dst) {
    for (size_t i = 0; i < count; i++)
        dv_store_element(type, dst, i, (float)dv_get_code(packed, count, 1, i));
}

static void mask_apply(dv_type type, const uint8_t *mask, size_t count, const void *src, void *dst) {
    size_t bytes = dv_type_bytes(type);
    for (size_t i = 0; i < count; i++)
        if (dv_get_code(mask, count, 1, i))
            memmove((char *)dst + i * bytes, (const char *)src + i * bytes, bytes);
        else
            memset((char *)dst + i * bytes, 0, bytes);
}

/* ---- bf16 ---------------------------------------------------------------------------------- */

static bool bf16_encode(dv_type type, const void *src, size_t count, uint16_t *halves) {
    bool finite = true;
    for (size_t i = 0; i < count; i++) {
        float value = dv_load_element(type, src, i);
        uint16_t half = dv_bf16_nearest(value);
        halves[i] = value > 0 && half == 0 ? 1 : half;
        finite = finite && isfinite(dv_bf16_to_f32(half));
    }
    return finite;
}

static void bf16_decode(dv_type type, const uint16_t *halves, size_t count, void *dst) {
    for (size_t i = 0; i < count; i++)
        dv_store_element(type, dst, i, dv_bf16_to_f32(halves[i]));
}

const dv_codec_kernels dv_codec_kernels_reference = {
    .division_encode = division_encode,
    .division_decode = division_decode,
    .lean_encode = dv_reference_lean_encode,
    .lean_decode = dv_reference_lean_decode,
    .lean_mask = dv_reference_lean_mask,
    .bits_encode = bits_encode,
    .bits_decode = bits_decode,
    .mask_apply = mask_apply,
    .bf16_encode = bf16_encode,
    .bf16_decode = bf16_decode,
    .affine_encode = dv_reference_affine_encode,
    .affine_decode = dv_reference_affine_decode,
    .affine_mask = dv_reference_affine_mask,
    .groups_measure = dv_reference_groups_measure,
    .groups_encode = dv_reference_groups_encode,
    .groups_decode = dv_reference_groups_decode,
    .channels_measure = dv_reference_channels_measure,
    .channels_encode = dv_reference_channels_encode,
    .channels_decode = dv_reference_channels_decode,
    .to_f32 = to_f32,
};
