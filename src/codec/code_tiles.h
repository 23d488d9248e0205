/* How the codecs `blpa` and `actnn` cut an image into tiles: DV_TILE_CHANNELS channels each, the last what is left. */
#ifndef DV_CODEC_CODE_TILES_H
#define DV_CODEC_CODE_TILES_H

#include "codec/kernels/kernels.h"
#include "codec/map.h"

static inline size_t dv_code_tiles(const dv_map *map) {
    return (map->channels + DV_TILE_CHANNELS - 1) / DV_TILE_CHANNELS;
}

static inline dv_code_tile dv_code_tile_at(const dv_map *map, int bits, size_t number) {
    size_t left = map->channels - number * DV_TILE_CHANNELS;
    return (dv_code_tile){
        .type = map->type,
        .layout = map->layout,
        .channels = left < DV_TILE_CHANNELS ? left : DV_TILE_CHANNELS,
        .pixel_stride = map->channels,
        .pixels = dv_map_pixels(map),
        .bits = bits,
    };
}

/* The first element of a tile, in its image. */
static inline size_t dv_code_tile_first(const dv_map *map, size_t number) {
    size_t pixels = dv_map_pixels(map);
    return number * DV_TILE_CHANNELS * (map->layout == DV_NHWC ? 1 : pixels);
}

/* Bytes of the codes of tiles 0 .. number - 1, and of all tiles. All of an image but the last have whole chunks. */
static inline size_t dv_code_tile_offset(const dv_map *map, int bits, size_t number) {
    size_t elements = number * DV_TILE_CHANNELS * dv_map_pixels(map);
    return elements / DV_CHUNK * dv_fields_bytes(DV_CHUNK, bits);
}

static inline size_t dv_codes_bytes(const dv_map *map, int bits) {
    return (dv_map_image_elements(map) + DV_CHUNK - 1) / DV_CHUNK * dv_fields_bytes(DV_CHUNK, bits);
}

#endif
