/* How the codecs `division` and `lean` cut an image into tiles: DV_TILE_CHANNELS channels each, the last what is left.
 * Each is packed on its own, one tile's record after the other's, and is a piece of work for a thread. */
#ifndef DV_CODEC_TILES_H
#define DV_CODEC_TILES_H

#include "codec/kernels/kernels.h"
#include "codec/kind.h"
#include "codec/map.h"

static inline size_t dv_map_tiles(const dv_map *map) {
    return (map->channels + DV_TILE_CHANNELS - 1) / DV_TILE_CHANNELS;
}

/* The first tile of any image, with blocks of edge `block`; the last may have fewer channels. How its elements are
 * packed is for the codec to say. */
static inline dv_tile dv_tile_first(const dv_map *map, size_t block) {
    dv_tile tile = {
        .type = map->type,
        .layout = map->layout,
        .channels = map->channels < DV_TILE_CHANNELS ? map->channels : DV_TILE_CHANNELS,
        .pixel_stride = map->channels,
    };
    for (int d = 0; d < 3; d++) {
        int missing = 3 - map->rank;
        tile.sides[d] = d < missing ? 1 : map->sides[d - missing];
        tile.edges[d] = tile.sides[d] < block ? tile.sides[d] : block;
        tile.blocks[d] = (tile.sides[d] + tile.edges[d] - 1) / tile.edges[d];
    }
    return tile;
}

/* Bytes of a tile's record rounded up, so that the next tile is aligned. */
static inline size_t dv_tile_padded(size_t bytes) {
    return (bytes + DV_PACKED_ALIGNMENT - 1) / DV_PACKED_ALIGNMENT * DV_PACKED_ALIGNMENT;
}

/* Of all tiles of an image, whose records have so many bytes (`used`) as the codec says. */
static inline size_t dv_tiles_bytes(const dv_map *map, dv_tile first, size_t (*used)(const dv_tile *tile)) {
    size_t whole = (dv_map_tiles(map) - 1) * dv_tile_padded(used(&first));
    first.channels = map->channels - (dv_map_tiles(map) - 1) * DV_TILE_CHANNELS;
    return whole + dv_tile_padded(used(&first));
}

/* One piece of work: a tile of an image, where its elements and its record start, its random key. */
typedef struct dv_tile_piece {
    dv_tile tile;
    size_t image;   /* of the call */
    size_t element; /* in the elements of the call */
    size_t byte;    /* in the records of the call */
    dv_random key;
} dv_tile_piece;

/* The largest tile beside which the next one is asked for: what a core's own cache has no room for, the shared one has,
 * which is still nearer than memory. */
enum { DV_TILE_BESIDE_NEXT = 8 << 20 };

/* Bytes from a tile's elements to the next tile's, which the same thread most likely takes next; 0 if caches have no
 * room for both. */
static inline ptrdiff_t dv_tile_next(const dv_codec_call *call, const dv_tile *tile, size_t image, size_t number) {
    const dv_map *map = call->map;
    if (tile->channels * dv_tile_pixels(tile) * dv_type_bytes(map->type) > DV_TILE_BESIDE_NEXT)
        return 0;
    size_t tiles = dv_map_tiles(map), pixels = dv_map_pixels(map), elements = map->channels * pixels;
    size_t in_image = DV_TILE_CHANNELS * (map->layout == DV_NHWC ? 1 : pixels);
    if (number + 1 < tiles)
        return (ptrdiff_t)(in_image * dv_type_bytes(map->type));
    if (image + 1 < call->count)
        return (ptrdiff_t)((elements - number * in_image) * dv_type_bytes(map->type));
    return 0;
}

/* Piece `index` of a call, of whose records whole tiles have `bytes`. */
static inline dv_tile_piece dv_tile_piece_at(const dv_codec_call *call, const dv_tile *first, size_t bytes,
                                             size_t index) {
    size_t tiles = dv_map_tiles(call->map), image = tiles ? index / tiles : 0, number = index - image * tiles;
    size_t channel = number * DV_TILE_CHANNELS, pixels = dv_map_pixels(call->map);
    dv_tile_piece p = {.tile = *first, .image = image};
    p.byte = image * call->record_bytes + number * bytes;
    p.element = (image * call->map->channels * pixels) + channel * (call->map->layout == DV_NHWC ? 1 : pixels);
    if (call->map->channels - channel < p.tile.channels)
        p.tile.channels = call->map->channels - channel;
    p.tile.next = dv_tile_next(call, &p.tile, image, number);
    const uint64_t words[] = {call->noise.seed, call->noise.step, call->noise.value,
                              call->noise.image + call->first + image, number};
    p.key = dv_random_key(words, sizeof words / sizeof *words);
    return p;
}

#endif
