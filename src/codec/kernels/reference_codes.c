/* Codes by channels and by groups in plain C: what the fast kernels must compute, to the last bit. */
#include "codec/kernels/reference.h"

#include <string.h>

/* ---- fields ---------------------------------------------------------------------------------- */

static void put_code(uint8_t *codes, int bits, size_t index, unsigned code) {
    uint8_t *chunk = codes + index / DV_CHUNK * dv_fields_bytes(DV_CHUNK, bits);
    for (int field = 8; field > 0; field /= 2) {
        if (!(bits & field))
            continue;
        size_t bytes = dv_chunk_bytes(DV_CHUNK, field), within = index % DV_CHUNK;
        unsigned part = code & ((1u << field) - 1);
        chunk[within % bytes] |= (uint8_t)(part << within / bytes * (unsigned)field);
        chunk += bytes;
        code >>= field;
    }
}

static unsigned get_code(const uint8_t *codes, int bits, size_t index) {
    const uint8_t *chunk = codes + index / DV_CHUNK * dv_fields_bytes(DV_CHUNK, bits);
    unsigned code = 0;
    int shift = 0;
    for (int field = 8; field > 0; field /= 2) {
        if (!(bits & field))
            continue;
        size_t bytes = dv_chunk_bytes(DV_CHUNK, field), within = index % DV_CHUNK;
        unsigned part = chunk[within % bytes] >> within / bytes * (unsigned)field & ((1u << field) - 1);
        code |= part << shift;
        chunk += bytes;
        shift += field;
    }
    return code;
}

/* ---- tiles ----------------------------------------------------------------------------------- */

/* The index of code `index` in the map's memory, counted from the tile's first element, and its channel and pixel. */
static size_t place_of(const dv_code_tile *tile, size_t index, size_t *channel, size_t *pixel) {
    bool last = tile->layout == DV_NHWC;
    *channel = last ? index % tile->channels : index / tile->pixels;
    *pixel = last ? index / tile->channels : index % tile->pixels;
    return last ? *pixel * tile->pixel_stride + *channel : index;
}

bool dv_reference_affine_encode(const dv_code_tile *tile, const dv_affine *by, const void *src, uint8_t *codes) {
    float top = (float)((1 << tile->bits) - 1);
    bool finite = true;
    memset(codes, 0, dv_code_tile_bytes(tile));
    for (size_t i = 0; i < tile->channels * tile->pixels; i++) {
        size_t c, pixel;
        float x = dv_load_element(tile->type, src, place_of(tile, i, &c, &pixel));
        float code = (x - by->center[c]) * by->scale[c] + by->offset[c];
        code = code > 0 ? code : 0;
        code = code < top ? code : top;
        put_code(codes, tile->bits, i, (unsigned)code);
        finite = finite && isfinite(x);
    }
    return finite;
}

void dv_reference_affine_decode(const dv_code_tile *tile, const dv_affine *by, const uint8_t *codes, void *dst) {
    for (size_t i = 0; i < tile->channels * tile->pixels; i++) {
        size_t c, pixel, place = place_of(tile, i, &c, &pixel);
        dv_store_element(tile->type, dst, place, by->base[c] + by->step[c] * (float)get_code(codes, tile->bits, i));
    }
}

void dv_reference_affine_mask(const dv_code_tile *tile, const dv_affine *by, const uint8_t *codes, size_t first,
                              size_t elements, uint8_t *mask) {
    for (size_t i = 0; i < tile->channels * tile->pixels; i++) {
        size_t c, pixel, index = first + place_of(tile, i, &c, &pixel), chunk = index / DV_CHUNK * DV_CHUNK;
        size_t rest = elements - chunk, bytes = dv_chunk_bytes(rest < DV_CHUNK ? rest : DV_CHUNK, 1);
        bool positive = by->base[c] + by->step[c] * (float)get_code(codes, tile->bits, i) > 0;
        mask[chunk / 8 + (index - chunk) % bytes] |= (uint8_t)((unsigned)positive << (index - chunk) / bytes);
    }
}

/* ---- groups ---------------------------------------------------------------------------------- */

static size_t group_of(const dv_code_tile *tile, size_t channel, size_t pixel) {
    return (channel * tile->pixels + pixel) / DV_CHUNK;
}

/* While elements are looked at, `range` holds the maximum, rounded up. */
static void include(dv_group *group, float x) {
    if (x < dv_bf16_to_f32(group->minimum))
        group->minimum = dv_bf16_down(x + 0.0f);
    if (x > dv_bf16_to_f32(group->range))
        group->range = dv_bf16_up(x + 0.0f);
}

bool dv_reference_groups_measure(const dv_code_tile *tile, const void *src, dv_group *groups) {
    size_t count = dv_tile_groups(tile), elements = tile->channels * tile->pixels;
    bool finite = true;
    for (size_t g = 0; g < count; g++)
        groups[g] = (dv_group){0x7f80, 0xff80}; /* infinity and its negative */
    if (elements % DV_CHUNK)
        groups[count - 1] = (dv_group){0, 0};
    for (size_t i = 0; i < elements; i++) {
        size_t channel, pixel;
        float x = dv_load_element(tile->type, src, place_of(tile, i, &channel, &pixel));
        include(&groups[group_of(tile, channel, pixel)], x);
        finite = finite && fabsf(x) < DV_VALUE_LIMIT;
    }
    for (size_t g = 0; g < count; g++)
        groups[g].range = dv_bf16_up(dv_bf16_to_f32(groups[g].range) - dv_bf16_to_f32(groups[g].minimum));
    return finite;
}

void dv_reference_groups_encode(const dv_code_tile *tile, dv_random key, const dv_group *groups, const void *src,
                                uint8_t *codes) {
    memset(codes, 0, dv_code_tile_bytes(tile));
    for (size_t i = 0; i < tile->channels * tile->pixels; i++) {
        size_t channel, pixel, place = place_of(tile, i, &channel, &pixel);
        const dv_group *group = &groups[group_of(tile, channel, pixel)];
        float step = dv_group_step(dv_bf16_to_f32(group->range), tile->bits);
        float scale = dv_fixed_scale(step, tile->bits);
        float offset = dv_fixed_offset(dv_bf16_to_f32(group->minimum), scale);
        float x = dv_load_element(tile->type, src, place);
        uint32_t fixed = (uint32_t)(int32_t)((x - offset) * scale);
        put_code(codes, tile->bits, i, (fixed + dv_dither(key, i, tile->bits)) / dv_fixed_one(tile->bits));
    }
}

void dv_reference_groups_decode(const dv_code_tile *tile, const dv_group *groups, const uint8_t *codes, void *dst) {
    for (size_t i = 0; i < tile->channels * tile->pixels; i++) {
        size_t channel, pixel, place = place_of(tile, i, &channel, &pixel);
        const dv_group *group = &groups[group_of(tile, channel, pixel)];
        float step = dv_group_step(dv_bf16_to_f32(group->range), tile->bits);
        float code = (float)get_code(codes, tile->bits, i);
        dv_store_element(tile->type, dst, place, dv_bf16_to_f32(group->minimum) + step * code);
    }
}

/* ---- channels of different widths -------------------------------------------------------------- */

bool dv_reference_channels_measure(const dv_code_tile *tile, const void *src, float *most) {
    bool finite = true;
    for (size_t i = 0; i < tile->channels * tile->pixels; i++) {
        size_t c, pixel;
        float x = fabsf(dv_load_element(tile->type, src, place_of(tile, i, &c, &pixel)));
        most[c] = x > most[c] ? x : most[c];
        finite = finite && isfinite(x);
    }
    return finite;
}

/* Where the field of code `within` of a chunk of `count` is: its byte, and how far up. */
static uint8_t *field_place(uint8_t *chunk, size_t count, int field, size_t within, unsigned *shift) {
    size_t bytes = dv_chunk_bytes(count, field);
    *shift = (unsigned)(within / bytes) * (unsigned)field;
    return chunk + within % bytes;
}

static size_t chunk_count(const dv_code_tile *tile, size_t pixel) {
    size_t rest = tile->pixels - pixel / DV_CHUNK * DV_CHUNK;
    return rest < DV_CHUNK ? rest : DV_CHUNK;
}

static void put_wide_code(const dv_code_tile *tile, uint8_t *codes, uint32_t width, size_t pixel, uint32_t code) {
    size_t count = chunk_count(tile, pixel), within = pixel % DV_CHUNK;
    uint8_t *chunk = codes + pixel / DV_CHUNK * dv_wide_fields_bytes(DV_CHUNK, width);
    if (width & 16) {
        chunk[2 * within] = (uint8_t)code;
        chunk[2 * within + 1] = (uint8_t)(code >> 8);
        chunk += 2 * count;
        code >>= 16;
    }
    for (int field = 8; field > 0; field /= 2) {
        unsigned shift;
        if (!(width & (uint32_t)field))
            continue;
        uint8_t *byte = field_place(chunk, count, field, within, &shift);
        *byte = (uint8_t)((shift ? *byte : 0) | (code & ((1u << field) - 1)) << shift);
        chunk += dv_chunk_bytes(count, field);
        code >>= field;
    }
}

static uint32_t get_wide_code(const dv_code_tile *tile, const uint8_t *codes, uint32_t width, size_t pixel) {
    size_t count = chunk_count(tile, pixel), within = pixel % DV_CHUNK;
    const uint8_t *chunk = codes + pixel / DV_CHUNK * dv_wide_fields_bytes(DV_CHUNK, width);
    uint32_t code = 0;
    unsigned done = 0;
    if (width & 16) {
        code = chunk[2 * within] | (uint32_t)chunk[2 * within + 1] << 8;
        chunk += 2 * count;
        done = 16;
    }
    for (int field = 8; field > 0; field /= 2) {
        unsigned shift;
        if (!(width & (uint32_t)field))
            continue;
        const uint8_t *byte = field_place((uint8_t *)chunk, count, field, within, &shift);
        code |= (uint32_t)(*byte >> shift & ((1u << field) - 1)) << done;
        chunk += dv_chunk_bytes(count, field);
        done += (unsigned)field;
    }
    return code;
}

void dv_reference_channels_encode(const dv_code_tile *tile, const dv_channel_code *by, bool is_signed, const void *src,
                                  uint8_t *const *codes) {
    for (size_t pixel = 0; pixel < tile->pixels; pixel++)
        for (size_t c = 0; c < tile->channels; c++) {
            size_t place = tile->layout == DV_NHWC ? pixel * tile->pixel_stride + c : c * tile->pixels + pixel;
            float low = dv_lowest_code(by[c].width, is_signed), high = dv_highest_code(by[c].width, is_signed);
            float x = dv_load_element(tile->type, src, place) * (1 / by[c].step);
            x = x > low ? x : low;
            x = x < high ? x : high;
            put_wide_code(tile, codes[c], by[c].width, pixel, (uint32_t)((int32_t)rintf(x) - (int32_t)low));
        }
}

void dv_reference_channels_decode(const dv_code_tile *tile, const dv_channel_code *by, bool is_signed,
                                  const uint8_t *const *codes, void *dst) {
    for (size_t pixel = 0; pixel < tile->pixels; pixel++)
        for (size_t c = 0; c < tile->channels; c++) {
            size_t place = tile->layout == DV_NHWC ? pixel * tile->pixel_stride + c : c * tile->pixels + pixel;
            float code = (float)get_wide_code(tile, codes[c], by[c].width, pixel);
            dv_store_element(tile->type, dst, place, (code + dv_lowest_code(by[c].width, is_signed)) * by[c].step);
        }
}
