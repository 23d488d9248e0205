/* A codec for the input of a batch norm with a ReLU behind it. Where the ReLU cuts off, the gradient is zero, and the
 * input is read in two means alone: so "cut off" is one state of the code, which all such elements have, and the other
 * states are levels of what is left. Each block has levels of its own, from its minimum to its maximum, which are told
 * in 8 bits each within the range of the channel.
 *
 *     levels   states   bits          record of a tile:  minima | units | outside | lows | spans | codes
 *     3        4        2
 *     7        8        3             [channels]: bf16, the range of what is inside of the mask, and the mean of what
 *     15       16       4                         is outside
 *     255      256      8             [blocks]: 8 bits, the block's place in that range; not if there is one block
 *
 *     sample   at the end:  reaches | samples
 *
 *     128      [channels]: 8 bits, and of one pixel in 128 a code for each channel: what is outside there. It stands
 * for 0        all that is outside around it, which is so right on average. 0: neither
 *
 * Without a mask (mask=off) all states are levels. By itself the codec takes for inside what is positive; batch norm
 * says it by its own output (dv_lean_encode). */
#include "codec/lean.h"

#include "base/status.h"
#include "codec/tiles.h"

#include <string.h>

const char *const dv_lean_level_words[] = {
    [DV_LEAN_3] = "3", [DV_LEAN_7] = "7", [DV_LEAN_15] = "15", [DV_LEAN_255] = "255", NULL};
static const int level_bits[] = {[DV_LEAN_3] = 2, [DV_LEAN_7] = 3, [DV_LEAN_15] = 4, [DV_LEAN_255] = 8};
static const char *const dither_words[] = {
    [DV_DITHER_STOCHASTIC] = "stochastic", [DV_DITHER_SUBTRACTIVE] = "subtractive", [DV_DITHER_NONE] = "none", NULL};
static const char *const mask_words[] = {[DV_LEAN_MASK_OFF] = "off", [DV_LEAN_MASK_ON] = "on", NULL};

static const dv_option options[DV_LEAN_OPTIONS] = {
    [DV_LEAN_BLOCK] = {"block", "N", "edge of a block, in elements", DV_INTEGER_IN(DV_LEAN_BLOCK, 2, 64),
                       .preset = "8"},
    [DV_LEAN_LEVELS] = {"levels", NULL, "levels of a block, in 2, 3, 4 or 8 bits; one more without a mask",
                        DV_WORD_IN(DV_LEAN_LEVELS, dv_lean_level_words), .preset = "3"},
    [DV_LEAN_DITHER] = {"dither", NULL, "what is added before rounding; subtractive: and taken off again at decode",
                        DV_WORD_IN(DV_LEAN_DITHER, dither_words), .preset = "subtractive"},
    [DV_LEAN_MASK] = {"mask", NULL, "on: what is not positive is one state of the code, and decoded as its mean",
                      DV_WORD_IN(DV_LEAN_MASK, mask_words), .preset = "on"},
    [DV_LEAN_SAMPLE] = {"sample", "N",
                        "of one pixel in N, at random, what the mask leaves out is packed as well, so that it is right "
                        "on average; 0: of none, and its mean comes back",
                        DV_INTEGER_IN(DV_LEAN_SAMPLE, 0, 1024), .preset = "128"},
};

/* ---- layout -------------------------------------------------------------------------------- */

static dv_tile describe_tile(const dv_codec *codec, const dv_map *map) {
    dv_tile tile = dv_tile_first(map, (size_t)codec->options[DV_LEAN_BLOCK]);
    tile.bits = level_bits[codec->options[DV_LEAN_LEVELS]];
    tile.dither = (dv_dithering)codec->options[DV_LEAN_DITHER];
    tile.masked = codec->options[DV_LEAN_MASK] == DV_LEAN_MASK_ON;
    tile.sample = tile.masked && tile.dither != DV_DITHER_NONE ? (size_t)codec->options[DV_LEAN_SAMPLE] : 0;
    return tile;
}

/* Cuts the bytes of a tile's record into its parts; returns how many there are. */
static size_t cut_record(const dv_tile *tile, uint8_t *bytes, dv_lean_record *record) {
    size_t heads = 2 * tile->channels, places = dv_lean_has_blocks(tile) ? tile->channels * dv_tile_blocks(tile) : 0;
    size_t outside = 2 * heads, lows = outside + (tile->masked ? heads : 0), spans = lows + places;
    size_t codes = spans + places, reaches = codes + dv_stream_bytes(tile->channels * dv_tile_pixels(tile), tile->bits);
    size_t samples = reaches + (tile->sample ? tile->channels : 0);
    if (record)
        *record = (dv_lean_record){
            .minima = (uint16_t *)(void *)bytes,
            .units = (uint16_t *)(void *)(bytes + heads),
            .outside = tile->masked ? (uint16_t *)(void *)(bytes + outside) : NULL,
            .lows = places ? bytes + lows : NULL,
            .spans = places ? bytes + spans : NULL,
            .codes = bytes + codes,
            .reaches = tile->sample ? bytes + reaches : NULL,
            .samples = tile->sample ? bytes + samples : NULL,
        };
    return samples + dv_lean_samples(tile) * dv_stream_bytes(tile->channels, DV_LEAN_SAMPLE_BITS);
}

static size_t used_bytes(const dv_tile *tile) {
    return cut_record(tile, NULL, NULL);
}

static size_t record_bytes(const dv_codec *codec, const dv_map *map) {
    if (dv_map_pixels(map) == 1) /* no block to speak of: kept exact */
        return dv_codec_exact.record_bytes(codec, map);
    return dv_tiles_bytes(map, describe_tile(codec, map), used_bytes);
}

/* ---- work ---------------------------------------------------------------------------------- */

static dv_status encode_gated(const dv_codec_call *call, const void *elements, const void *gate, uint8_t *records,
                              dv_error *error) {
    const dv_codec_kernels *kernels = dv_codec_kernels_current();
    const dv_tile tile = describe_tile(call->codec, call->map);
    size_t pieces = call->count * dv_map_tiles(call->map), element_bytes = dv_type_bytes(call->map->type);
    size_t bytes = dv_tile_padded(used_bytes(&tile));
    int finite = 1;
#pragma omp parallel for num_threads(dv_codec_threads(call->codec)) schedule(static) reduction(&& : finite)
    for (size_t i = 0; i < pieces; i++) {
        dv_tile_piece p = dv_tile_piece_at(call, &tile, bytes, i);
        size_t at = p.element * element_bytes;
        dv_lean_record record;
        size_t used = cut_record(&p.tile, records + p.byte, &record);
        memset(records + p.byte + used, 0, dv_tile_padded(used) - used);
        finite = kernels->lean_encode(&p.tile, p.key, (const char *)elements + at, (const char *)gate + at, &record) &&
                 finite;
    }
    return finite ? DV_OK : dv_codec_fail_nonfinite(call, elements, error);
}

static dv_status encode(const dv_codec_call *call, const void *elements, uint8_t *records, dv_error *error) {
    if (dv_map_pixels(call->map) == 1)
        return dv_codec_encode_exact(call, elements, records, error);
    return encode_gated(call, elements, elements, records, error);
}

/* Coefficients and addend of a piece, whose channels are last. */
static dv_lean_norm norm_at(const dv_lean_norm *norm, const dv_codec_call *call, const dv_tile_piece *p) {
    size_t channel = p->element % call->map->channels, byte = p->element * dv_type_bytes(call->map->type);
    return (dv_lean_norm){norm->mean + channel, norm->scale + channel, norm->bias + channel,
                          norm->addend ? (const char *)norm->addend + byte : NULL};
}

static void decode_pieces(const dv_codec_call *call, const uint8_t *records, const dv_lean_norm *norm, void *elements) {
    const dv_codec_kernels *kernels = dv_codec_kernels_current();
    const dv_tile tile = describe_tile(call->codec, call->map);
    size_t pieces = call->count * dv_map_tiles(call->map), element_bytes = dv_type_bytes(call->map->type);
    size_t bytes = dv_tile_padded(used_bytes(&tile));
#pragma omp parallel for num_threads(dv_codec_threads(call->codec)) schedule(static)
    for (size_t i = 0; i < pieces; i++) {
        dv_tile_piece p = dv_tile_piece_at(call, &tile, bytes, i);
        dv_lean_record record;
        (void)cut_record(&p.tile, (uint8_t *)records + p.byte, &record);
        dv_lean_norm by = norm ? norm_at(norm, call, &p) : (dv_lean_norm){0};
        kernels->lean_decode(&p.tile, p.key, &record, norm ? &by : NULL, (char *)elements + p.element * element_bytes);
    }
}

static dv_status decode(const dv_codec_call *call, const uint8_t *records, void *elements, dv_error *error) {
    if (dv_map_pixels(call->map) == 1)
        return dv_codec_exact.decode(call, records, elements, error);
    decode_pieces(call, records, NULL, elements);
    return DV_OK;
}

/* Of a record that is the image itself. */
static void exact_mask(const dv_codec_call *call, const uint8_t *records, uint8_t *mask, size_t stride) {
    for (size_t n = 0; n < call->count; n++)
        (void)dv_codec_kernels_current()->bits_encode(call->map->type, records + n * call->record_bytes,
                                                      call->map->channels, mask + n * stride);
}

/* Image by image: tiles of one image may share bytes of its mask. */
static void decode_mask(const dv_codec_call *call, const uint8_t *records, uint8_t *mask, size_t stride) {
    if (dv_map_pixels(call->map) == 1) {
        exact_mask(call, records, mask, stride);
        return;
    }
    const dv_codec_kernels *kernels = dv_codec_kernels_current();
    const dv_tile tile = describe_tile(call->codec, call->map);
    size_t tiles = dv_map_tiles(call->map), elements = dv_map_image_elements(call->map);
    size_t bytes = dv_tile_padded(used_bytes(&tile));
#pragma omp parallel for num_threads(dv_codec_threads(call->codec)) schedule(static)
    for (size_t n = 0; n < call->count; n++) {
        memset(mask + n * stride, 0, stride);
        for (size_t t = 0; t < tiles; t++) {
            dv_tile_piece p = dv_tile_piece_at(call, &tile, bytes, n * tiles + t);
            dv_lean_record record;
            (void)cut_record(&p.tile, (uint8_t *)records + p.byte, &record);
            kernels->lean_mask(&p.tile, record.codes, p.element - n * elements, elements, mask + n * stride);
        }
    }
}

dv_status dv_lean_encode(const dv_codec *codec, const dv_map *map, const dv_noise *noise, size_t first, size_t count,
                         const void *src, const void *gate, void *packed, size_t packed_bytes, dv_error *error) {
    dv_codec_call call = {.codec = codec, .map = map, .first = first, .count = count};
    if (noise)
        call.noise = *noise;
    DV_TRY(dv_codec_check_call(&call, src, packed, packed_bytes, error));
    DV_TRY(dv_codec_check_call(&call, gate, packed, packed_bytes, error));
    if (dv_map_pixels(map) == 1)
        return dv_fail(error, DV_ERROR_UNSUPPORTED, "lean: a map of one pixel is kept exact, and has no mask inside");
    uint8_t *records = (uint8_t *)packed + first * call.record_bytes;
    return encode_gated(&call, src, gate, records, error);
}

bool dv_lean_can_normalize(const dv_codec *codec, const dv_map *map) {
    return codec->kind == &dv_codec_lean && map->layout == DV_NHWC && map->type != DV_F16 && dv_map_pixels(map) > 1;
}

dv_status dv_lean_decode_normalized(const dv_codec *codec, const dv_map *map, const dv_noise *noise, size_t first,
                                    size_t count, const void *packed, size_t packed_bytes, const dv_lean_norm *norm,
                                    void *images, dv_error *error) {
    dv_codec_call call = {.codec = codec, .map = map, .first = first, .count = count};
    if (noise)
        call.noise = *noise;
    DV_TRY(dv_codec_check_call(&call, images, packed, packed_bytes, error));
    if (!dv_lean_can_normalize(codec, map))
        return dv_fail(error, DV_ERROR_UNSUPPORTED, "lean: only maps of f32 or bf16 with channels last are normalised");
    decode_pieces(&call, (const uint8_t *)packed + first * call.record_bytes, norm, images);
    return DV_OK;
}

static bool tells_mask(const dv_codec *codec) {
    return dv_lean_has_mask(codec);
}

const dv_codec_kind dv_codec_lean = {
    .name = "lean",
    .help = "a few levels by block, and one code for all that a ReLU cuts off",
    .options = options,
    .option_count = DV_LEAN_OPTIONS,
    .record_bytes = record_bytes,
    .encode = encode,
    .decode = decode,
    .decode_mask = decode_mask,
    .tells_mask = tells_mask,
};
