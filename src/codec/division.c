/* The codec of the paper: block averages in bf16, what remains in 1, 2, 4 or 8 bits.
 *
 * Here: options, the layout of a record, and the work shared out among threads. The arithmetic is
 * in kernels/. An image's channels are cut into tiles of DV_TILE_CHANNELS, each packed on its own:
 * averages, minima, steps and codes, one tile's after the other's. */
#include "codec/division.h"

#include "base/status.h"
#include "codec/tiles.h"

#include <string.h>

enum { OFF, ON };

static const char *const dither_words[] = {
    [DV_DITHER_STOCHASTIC] = "stochastic", [DV_DITHER_SUBTRACTIVE] = "subtractive", [DV_DITHER_NONE] = "none", NULL};
static const char *const part_words[] = {[OFF] = "off", [ON] = "on", NULL};

const dv_option dv_division_options[DV_DIVISION_OPTIONS] = {
    [DV_DIVISION_BLOCK] = {"block", "N", "edge of a block, in elements", DV_INTEGER_IN(DV_DIVISION_BLOCK, 2, 64),
                           .preset = "8"},
    [DV_DIVISION_BITS] = {"bits", "N", "bits of a code", DV_POWER_IN(DV_DIVISION_BITS, 1, 8), .preset = "2"},
    [DV_DIVISION_DITHER] =
        {"dither", NULL,
         "what is added before rounding; subtractive: and taken off again at decode (half the variance)",
         DV_WORD_IN(DV_DIVISION_DITHER, dither_words), .preset = "stochastic"},
    [DV_DIVISION_LFC] = {"lfc", NULL, "whether block averages are kept", DV_WORD_IN(DV_DIVISION_LFC, part_words),
                         .preset = "on"},
    [DV_DIVISION_HFC] = {"hfc", NULL, "whether anything but block averages is kept",
                         DV_WORD_IN(DV_DIVISION_HFC, part_words), .preset = "on"},
};

dv_status dv_division_check(const dv_codec *codec, dv_error *error) {
    if (codec->options[DV_DIVISION_LFC] == ON || codec->options[DV_DIVISION_HFC] == ON)
        return DV_OK;
    return dv_fail(error, DV_ERROR_OPTION, "%s: lfc=off and hfc=off leave nothing of a map: give one of them",
                   codec->kind->name);
}

/* ---- layout -------------------------------------------------------------------------------- */

static dv_tile describe_tile(const dv_codec *codec, const dv_map *map) {
    dv_tile tile = dv_tile_first(map, (size_t)codec->options[DV_DIVISION_BLOCK]);
    tile.bits = codec->options[DV_DIVISION_BITS];
    tile.dither = (dv_dithering)codec->options[DV_DIVISION_DITHER];
    tile.lfc = codec->options[DV_DIVISION_LFC] == ON;
    tile.hfc = codec->options[DV_DIVISION_HFC] == ON;
    return tile;
}

/* Averages that the record of a tile has. */
static size_t tile_averages(const dv_tile *tile) {
    return tile->lfc ? tile->channels * dv_tile_blocks(tile) : 0;
}

/* Bytes of a tile's record: bf16 averages, minima and steps, then codes; as far as they are kept. */
static size_t tile_used_bytes(const dv_tile *tile) {
    size_t averages = 2 * tile_averages(tile);
    size_t codes = dv_stream_bytes(tile->channels * dv_tile_pixels(tile), tile->bits);
    return averages + (tile->hfc ? 2 * 2 * tile->channels + codes : 0);
}

static size_t tile_bytes(const dv_tile *tile) {
    return dv_tile_padded(tile_used_bytes(tile));
}

static dv_tile_record tile_record(const dv_tile *tile, uint8_t *bytes) {
    uint16_t *averages = (uint16_t *)(void *)bytes;
    uint16_t *minima = averages + tile_averages(tile);
    uint16_t *steps = minima + tile->channels;
    return (dv_tile_record){averages, minima, steps, (uint8_t *)(steps + tile->channels)};
}

static size_t record_bytes(const dv_codec *codec, const dv_map *map) {
    if (dv_map_pixels(map) == 1) /* nothing to average: kept exact */
        return dv_codec_exact.record_bytes(codec, map);
    return dv_tiles_bytes(map, describe_tile(codec, map), tile_used_bytes);
}

/* ---- work ---------------------------------------------------------------------------------- */

static dv_status encode(const dv_codec_call *call, const void *elements, uint8_t *records, dv_error *error) {
    if (dv_map_pixels(call->map) == 1)
        return dv_codec_encode_exact(call, elements, records, error);
    const dv_codec_kernels *kernels = dv_codec_kernels_current();
    const dv_tile tile = describe_tile(call->codec, call->map);
    size_t pieces = call->count * dv_map_tiles(call->map), element_bytes = dv_type_bytes(call->map->type);
    size_t bytes = tile_bytes(&tile);
    int finite = 1;
#pragma omp parallel for num_threads(dv_codec_threads(call->codec)) schedule(static) reduction(&& : finite)
    for (size_t i = 0; i < pieces; i++) {
        dv_tile_piece p = dv_tile_piece_at(call, &tile, bytes, i);
        dv_tile_record record = tile_record(&p.tile, records + p.byte);
        const void *src = (const char *)elements + p.element * element_bytes;
        size_t used = tile_used_bytes(&p.tile);
        memset(records + p.byte + used, 0, tile_bytes(&p.tile) - used);
        finite = kernels->division_encode(&p.tile, p.key, src, &record) && finite;
    }
    return finite ? DV_OK : dv_codec_fail_nonfinite(call, elements, error);
}

static dv_status decode(const dv_codec_call *call, const uint8_t *records, void *elements, dv_error *error) {
    if (dv_map_pixels(call->map) == 1)
        return dv_codec_exact.decode(call, records, elements, error);
    const dv_codec_kernels *kernels = dv_codec_kernels_current();
    dv_tile tile = describe_tile(call->codec, call->map);
    tile.streams = call->streams;
    size_t pieces = call->count * dv_map_tiles(call->map), element_bytes = dv_type_bytes(call->map->type);
    size_t bytes = tile_bytes(&tile);
#pragma omp parallel for num_threads(dv_codec_threads(call->codec)) schedule(static)
    for (size_t i = 0; i < pieces; i++) {
        dv_tile_piece p = dv_tile_piece_at(call, &tile, bytes, i);
        dv_tile_record record = tile_record(&p.tile, (uint8_t *)records + p.byte);
        kernels->division_decode(&p.tile, p.key, &record, (char *)elements + p.element * element_bytes);
    }
    return DV_OK;
}

const dv_codec_kind dv_codec_division = {
    .name = "division",
    .help = "block averages in bf16, the rest in a few bits",
    .options = dv_division_options,
    .option_count = DV_DIVISION_OPTIONS,
    .check = dv_division_check,
    .record_bytes = record_bytes,
    .encode = encode,
    .decode = decode,
};
