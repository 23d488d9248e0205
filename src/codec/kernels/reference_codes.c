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
