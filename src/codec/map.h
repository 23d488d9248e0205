/* What folders above the codec ask of a map beside division/codec.h. */
#ifndef DV_CODEC_MAP_H
#define DV_CODEC_MAP_H

#include <division/codec.h>

/* Elements of one channel of an image. */
static inline size_t dv_map_pixels(const dv_map *map) {
    size_t pixels = 1;
    for (int d = 0; d < map->rank; d++)
        pixels *= map->sides[d];
    return pixels;
}

#endif
