/* The code of a batch norm with a ReLU behind it, which the convolution behind both and the norm itself are given back
 * from. For each channel, with x̂ = (x - mean) istd and nb = 2^bits bins over a width of 6:
 *
 *     a = (x̂ weight + bias) / weight
 *     shift = max(1, nb/2 - floor(bias / weight · nb/6))
 *     code = clip(floor((a - 1e-6) nb/6) + shift, 0, nb - 1)             deterministic
 *     a' = (code - shift + 1/2) · 6/nb,  x' from a',  z' = max(a' weight, 0),  z is positive where code >= shift
 *
 * A weight below zero is taken with its sign apart: a is divided by its magnitude, which is 1e-8 at least, and x̂ is
 * minus that. The published code has no such weights. As a codec by itself it packs maps that are normalised: mean 0,
 * deviation 1, weight 1, bias 0. */
#include "codec/blpa.h"

#include "base/status.h"
#include "codec/code_tiles.h"

#include <division/tools/option.h>
#include <math.h>
#include <string.h>

enum { OPTION_BITS };

static const dv_option options[] = {
    [OPTION_BITS] = {"bits", "N", "bits of a code", DV_POWER_IN(OPTION_BITS, 4, 8), .preset = "4"},
};

#define WIDTH 6.0
#define WEIGHT_MIN 1e-8
#define HAIR 1e-6

/* ---- coefficients ---------------------------------------------------------------------------- */

/* Of the channels of a tile. */
typedef struct coefficients {
    float center[DV_TILE_CHANNELS], scale[DV_TILE_CHANNELS], offset[DV_TILE_CHANNELS];
    float base[DV_TILE_CHANNELS], step[DV_TILE_CHANNELS];
} coefficients;

static double value_at(const float *values, size_t channel, double otherwise) {
    return values ? (double)values[channel] : otherwise;
}

/* bias / weight, by which a is moved, and the first code of what is positive. */
static double shift_of(double ratio, double bins) {
    return fmax(1, bins / 2 - floor(ratio * bins / WIDTH));
}

static double ratio_of(const dv_normalisation *norm, size_t channel) {
    double weight = fmax(fabs(value_at(norm->weight, channel, 1)), WEIGHT_MIN);
    return value_at(norm->bias, channel, 0) / weight;
}

static void choose_channel(const dv_normalisation *norm, int bits, size_t channel, coefficients *to, size_t i) {
    double mean = value_at(norm->mean, channel, 0), istd = value_at(norm->istd, channel, 1);
    double sign = value_at(norm->weight, channel, 1) < 0 ? -1 : 1, ratio = ratio_of(norm, channel);
    double bins = (double)(1 << bits), per = bins / WIDTH, shift = shift_of(ratio, bins);
    to->center[i] = (float)mean;
    to->scale[i] = (float)(sign * istd * per);
    to->offset[i] = (float)((ratio - HAIR) * per + shift);
    to->step[i] = (float)(sign / (per * istd));
    to->base[i] = (float)(mean + sign * ((0.5 - shift) / per - ratio) / istd);
}

static dv_affine choose(const dv_normalisation *norm, int bits, size_t first, size_t count, coefficients *to) {
    for (size_t i = 0; i < count; i++)
        choose_channel(norm, bits, first + i, to, i);
    return (dv_affine){to->center, to->scale, to->offset, to->base, to->step};
}

/* That a' is positive: as 1/2 + code - shift. */
static dv_affine choose_mask(const dv_normalisation *norm, int bits, size_t first, size_t count, coefficients *to) {
    for (size_t i = 0; i < count; i++) {
        to->base[i] = (float)(0.5 - shift_of(ratio_of(norm, first + i), (double)(1 << bits)));
        to->step[i] = 1;
    }
    return (dv_affine){.base = to->base, .step = to->step};
}

/* ---- calls ----------------------------------------------------------------------------------- */

static int bits_of(const dv_codec *codec) {
    return codec->options[OPTION_BITS];
}

static size_t record_bytes(const dv_codec *codec, const dv_map *map) {
    return dv_codes_bytes(map, bits_of(codec));
}

/* A tile of an image of a call. */
typedef struct piece {
    size_t image, number, channel;
    dv_code_tile tile;
    size_t element, byte; /* where it begins among the call's elements and records */
} piece;

static piece piece_at(const dv_codec_call *call, size_t index) {
    const dv_map *map = call->map;
    size_t tiles = dv_code_tiles(map);
    piece p = {.image = index / tiles, .number = index % tiles};
    p.channel = p.number * DV_TILE_CHANNELS;
    p.tile = dv_code_tile_at(map, bits_of(call->codec), p.number);
    p.element = p.image * dv_map_image_elements(map) + dv_code_tile_first(map, p.number);
    p.byte = p.image * call->record_bytes + dv_code_tile_offset(map, bits_of(call->codec), p.number);
    return p;
}

static dv_status encode_by(const dv_codec_call *call, const dv_normalisation *norm, const void *elements,
                           uint8_t *records, dv_error *error) {
    const dv_codec_kernels *kernels = dv_codec_kernels_current();
    size_t pieces = call->count * dv_code_tiles(call->map), element_bytes = dv_type_bytes(call->map->type);
    int finite = 1;
#pragma omp parallel for num_threads(dv_codec_threads(call->codec)) schedule(static) reduction(&& : finite)
    for (size_t i = 0; i < pieces; i++) {
        coefficients made;
        piece p = piece_at(call, i);
        dv_affine by = choose(norm, p.tile.bits, p.channel, p.tile.channels, &made);
        const char *src = (const char *)elements + p.element * element_bytes;
        finite = kernels->affine_encode(&p.tile, &by, src, records + p.byte) && finite;
    }
    return finite ? DV_OK : dv_codec_fail_nonfinite(call, elements, error);
}

static dv_status decode_by(const dv_codec_call *call, const dv_normalisation *norm, const uint8_t *records,
                           void *elements) {
    const dv_codec_kernels *kernels = dv_codec_kernels_current();
    size_t pieces = call->count * dv_code_tiles(call->map), element_bytes = dv_type_bytes(call->map->type);
#pragma omp parallel for num_threads(dv_codec_threads(call->codec)) schedule(static)
    for (size_t i = 0; i < pieces; i++) {
        coefficients made;
        piece p = piece_at(call, i);
        dv_affine by = choose(norm, p.tile.bits, p.channel, p.tile.channels, &made);
        kernels->affine_decode(&p.tile, &by, records + p.byte, (char *)elements + p.element * element_bytes);
    }
    return DV_OK;
}

/* Image by image: tiles of one image may share bytes of its mask. */
static void mask_by(const dv_codec_call *call, const dv_normalisation *norm, const uint8_t *records, uint8_t *mask,
                    size_t stride) {
    const dv_codec_kernels *kernels = dv_codec_kernels_current();
    size_t tiles = dv_code_tiles(call->map), elements = dv_map_image_elements(call->map);
#pragma omp parallel for num_threads(dv_codec_threads(call->codec)) schedule(static)
    for (size_t n = 0; n < call->count; n++) {
        memset(mask + n * stride, 0, stride);
        for (size_t t = 0; t < tiles; t++) {
            coefficients made;
            piece p = piece_at(call, n * tiles + t);
            dv_affine by = choose_mask(norm, p.tile.bits, p.channel, p.tile.channels, &made);
            kernels->affine_mask(&p.tile, &by, records + p.byte, p.element - n * elements, elements, mask + n * stride);
        }
    }
}

static const dv_normalisation normalised; /* already */

static dv_status encode(const dv_codec_call *call, const void *elements, uint8_t *records, dv_error *error) {
    return encode_by(call, &normalised, elements, records, error);
}

static dv_status decode(const dv_codec_call *call, const uint8_t *records, void *elements, dv_error *error) {
    (void)error;
    return decode_by(call, &normalised, records, elements);
}

dv_status dv_blpa_encode(const dv_codec *codec, const dv_map *map, const dv_normalisation *norm, size_t first,
                         size_t count, const void *src, void *packed, size_t packed_bytes, dv_error *error) {
    dv_codec_call call = {.codec = codec, .map = map, .first = first, .count = count};
    DV_TRY(dv_codec_check_call(&call, src, packed, packed_bytes, error));
    return encode_by(&call, norm, src, (uint8_t *)packed + first * call.record_bytes, error);
}

dv_status dv_blpa_decode(const dv_codec *codec, const dv_map *map, const dv_normalisation *norm, size_t first,
                         size_t count, const void *packed, size_t packed_bytes, void *dst, dv_error *error) {
    dv_codec_call call = {.codec = codec, .map = map, .first = first, .count = count};
    DV_TRY(dv_codec_check_call(&call, dst, packed, packed_bytes, error));
    return decode_by(&call, norm, (const uint8_t *)packed + first * call.record_bytes, dst);
}

dv_status dv_blpa_mask(const dv_codec *codec, const dv_map *map, const dv_normalisation *norm, size_t first,
                       size_t count, const void *packed, size_t packed_bytes, uint8_t *mask, size_t stride,
                       dv_error *error) {
    dv_codec_call call = {.codec = codec, .map = map, .first = first, .count = count};
    DV_TRY(dv_codec_check_call(&call, mask, packed, packed_bytes, error));
    mask_by(&call, norm, (const uint8_t *)packed + first * call.record_bytes, mask, stride);
    return DV_OK;
}

const dv_codec_kind dv_codec_blpa = {
    .name = "blpa",
    .help = "normalised maps in 16 or 256 bins of a fixed width; the sign is told",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .record_bytes = record_bytes,
    .encode = encode,
    .decode = decode,
};
