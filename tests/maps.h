/* Maps and codecs for tests: shapes that are awkward, and values in every element type. */
#ifndef DV_TESTS_MAPS_H
#define DV_TESTS_MAPS_H

#include "base/float16.h"
#include "base/random.h"
#include "check.h"

#include <division/codec.h>
#include <math.h>

/* The codec that a text names. */
static inline dv_codec codec_of(const char *text) {
    dv_codec codec = {0};
    assert_ok(dv_codec_parse(text, &codec, &error));
    return codec;
}

static inline size_t packed_bytes_of(const dv_codec *codec, const dv_map *map) {
    size_t bytes = 0;
    assert_ok(dv_codec_packed_bytes(codec, map, &bytes, &error));
    return bytes;
}

/* "f32 nhwc 5x3x28x31": what to print when a case fails. */
static inline const char *map_text(const dv_map *map) {
    static char text[120];
    int length = snprintf(text, sizeof text, "%s %s %zux%zu", dv_type_name(map->type), dv_layout_name(map->layout),
                          map->images, map->channels);
    for (int d = 0; d < map->rank; d++)
        length += snprintf(text + length, sizeof text - (size_t)length, "x%zu", map->sides[d]);
    return text;
}

static inline void store_element(dv_type type, void *dst, size_t index, float value) {
    if (type == DV_F32)
        ((float *)dst)[index] = value;
    else
        ((uint16_t *)dst)[index] = type == DV_BF16 ? dv_bf16_nearest(value) : dv_f16_nearest(value);
}

static inline float load_element(dv_type type, const void *src, size_t index) {
    if (type == DV_F32)
        return ((const float *)src)[index];
    uint16_t half = ((const uint16_t *)src)[index];
    return type == DV_BF16 ? dv_bf16_to_f32(half) : dv_f16_to_f32(half);
}

/* A map's elements: noise on a slope, with the zeros that a ReLU leaves. To be freed. */
static inline void *map_values(const dv_map *map, uint64_t seed) {
    size_t count = dv_map_elements(map);
    void *values = malloc(count * dv_type_bytes(map->type));
    assert_non_null(values);
    dv_random key = dv_random_key(&seed, 1);
    for (size_t i = 0; i < count; i++) {
        float noise = (float)dv_random_word(key, (uint32_t)i) * 0x1p-31f - 1.0f;
        float value = noise + 2.0f * (float)(i % 997) / 997.0f - 0.5f;
        store_element(map->type, values, i, value > 0 ? value : 0);
    }
    return values;
}

/* Every combination of the awkward sides, channels and batches, of ranks 0 to 3, by index. The list
 * is long: callers may take every so-many-th. */
static const size_t awkward_sides[] = {1, 2, 7, 8, 9, 28, 31, 56, 112};
static const size_t awkward_channels[] = {1, 3, 17, 64};
static const size_t awkward_batches[] = {1, 5};

enum { AWKWARD_SIDES = 9, AWKWARD_SHAPES = (1 + 9 + 9 * 9 + 12) * 4 * 2 };

static inline dv_map awkward_map(size_t index) {
    static const size_t volumes[12][3] = {{1, 1, 2},  {2, 7, 8}, {9, 9, 9},   {8, 8, 8},  {3, 17, 28}, {17, 1, 31},
                                          {7, 31, 1}, {1, 9, 9}, {10, 28, 9}, {9, 2, 56}, {8, 16, 24}, {5, 5, 700}};
    dv_map map = {.channels = awkward_channels[index % 4], .images = awkward_batches[index / 4 % 2]};
    size_t shape = index / 8;
    if (shape == 0)
        return map;
    if ((shape -= 1) < AWKWARD_SIDES) {
        map.rank = 1;
        map.sides[0] = awkward_sides[shape];
    } else if ((shape -= AWKWARD_SIDES) < AWKWARD_SIDES * AWKWARD_SIDES) {
        map.rank = 2;
        map.sides[0] = awkward_sides[shape / AWKWARD_SIDES];
        map.sides[1] = awkward_sides[shape % AWKWARD_SIDES];
    } else {
        map.rank = 3;
        memcpy(map.sides, volumes[(shape - AWKWARD_SIDES * AWKWARD_SIDES) % 12], sizeof map.sides);
    }
    return map;
}

#endif
