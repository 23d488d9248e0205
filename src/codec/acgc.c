/* Channels with steps and widths of their own. As a codec by itself, all channels have the same width, and steps that
 * reach from the largest number of an image to its negative. */
#include "codec/acgc.h"

#include "base/status.h"
#include "codec/code_tiles.h"

#include <division/tools/option.h>
#include <math.h>
#include <string.h>

enum { OPTION_BITS };

static const dv_option options[] = {
    [OPTION_BITS] = {"bits", "N", "bits of a code", DV_INTEGER_IN(OPTION_BITS, 3, 16), .preset = "8"},
};

#define HAIR 1e-6f

static size_t pixels_of(const dv_map *map) {
    return dv_map_image_elements(map) / map->channels;
}

static const char *image_at(const dv_map *map, const void *images, size_t n) {
    return (const char *)images + n * dv_map_image_elements(map) * dv_type_bytes(map->type);
}

/* ---- steps and widths ------------------------------------------------------------------------- */

dv_channel_code dv_acgc_choose(float most, double error, bool is_signed, int fewer) {
    double reach = (double)(most + HAIR), fbits = trunc(-0.5 * log2(error) + log2(reach) - 1);
    fbits = fmax(1, fmin(fbits, 15) - fewer);
    return (dv_channel_code){(float)ldexp(reach, -(int)fbits - 1), (uint32_t)fbits + (is_signed ? 2 : 1)};
}

/* Images share one tile of channels after the other; the largest of all does not depend on who finds it. */
bool dv_acgc_measure(const dv_map *map, size_t count, const void *images, float *most) {
    const dv_codec_kernels *kernels = dv_codec_kernels_current();
    int finite = 1;
    memset(most, 0, map->channels * sizeof *most);
    for (size_t t = 0; t < dv_code_tiles(map); t++) {
        const dv_code_tile tile = dv_code_tile_at(map, 8, t);
        size_t begin = dv_code_tile_first(map, t) * dv_type_bytes(map->type);
#pragma omp parallel reduction(&& : finite)
        {
            float found[DV_TILE_CHANNELS] = {0};
#pragma omp for schedule(static)
            for (size_t n = 0; n < count; n++)
                finite = kernels->channels_measure(&tile, image_at(map, images, n) + begin, found) && finite;
#pragma omp critical(dv_acgc_measure)
            for (size_t c = 0; c < tile.channels; c++) {
                float *largest = &most[t * DV_TILE_CHANNELS + c];
                *largest = found[c] > *largest ? found[c] : *largest;
            }
        }
    }
    return finite;
}

/* ---- images ----------------------------------------------------------------------------------- */

size_t dv_acgc_bytes(const dv_map *map, const dv_channel_code *by) {
    size_t bytes = 0;
    for (size_t c = 0; c < map->channels; c++)
        bytes += dv_channel_bytes(pixels_of(map), by[c].width);
    return bytes;
}

/* Pixels that are done at once. Where channels are last, all channels of a chunk are done before the next: lines of
 * memory that a few channels share with others are still near when those come. */
static size_t span_of(const dv_map *map) {
    return map->layout == DV_NHWC ? DV_CHUNK : pixels_of(map);
}

/* A few channels of a span of pixels, and where their codes are. */
typedef struct piece {
    dv_code_tile tile;
    size_t first; /* its first element in the image */
    uint8_t *places[DV_CHANNELS_TOGETHER];
} piece;

/* From a channel and a pixel on; `codes` has those of the channel, and moves on behind the piece's last channel. */
static void piece_at(const dv_map *map, size_t channel, size_t pixel, const dv_channel_code *by, uint8_t **codes,
                     piece *p) {
    size_t pixels = pixels_of(map), channels = map->channels - channel, span = span_of(map);
    p->tile = (dv_code_tile){.type = map->type,
                             .layout = map->layout,
                             .channels = channels < DV_CHANNELS_TOGETHER ? channels : DV_CHANNELS_TOGETHER,
                             .pixel_stride = map->channels,
                             .pixels = pixels - pixel < span ? pixels - pixel : span};
    p->first = map->layout == DV_NHWC ? pixel * map->channels + channel : channel * pixels + pixel;
    for (size_t c = 0; c < p->tile.channels; c++) {
        p->places[c] = *codes + dv_channel_bytes(pixel, by[channel + c].width);
        *codes += dv_channel_bytes(pixels, by[channel + c].width);
    }
}

void dv_acgc_encode(const dv_map *map, const dv_channel_code *by, bool is_signed, const void *image, uint8_t *codes) {
    const dv_codec_kernels *kernels = dv_codec_kernels_current();
    for (size_t pixel = 0; pixel < pixels_of(map); pixel += span_of(map)) {
        uint8_t *at = codes;
        for (size_t c = 0; c < map->channels; c += DV_CHANNELS_TOGETHER) {
            piece p;
            piece_at(map, c, pixel, by, &at, &p);
            const char *src = (const char *)image + p.first * dv_type_bytes(map->type);
            kernels->channels_encode(&p.tile, by + c, is_signed, src, p.places);
        }
    }
}

void dv_acgc_decode(const dv_map *map, const dv_channel_code *by, bool is_signed, const uint8_t *codes, void *image) {
    const dv_codec_kernels *kernels = dv_codec_kernels_current();
    for (size_t pixel = 0; pixel < pixels_of(map); pixel += span_of(map)) {
        uint8_t *at = (uint8_t *)codes;
        for (size_t c = 0; c < map->channels; c += DV_CHANNELS_TOGETHER) {
            piece p;
            piece_at(map, c, pixel, by, &at, &p);
            char *dst = (char *)image + p.first * dv_type_bytes(map->type);
            kernels->channels_decode(&p.tile, by + c, is_signed, (const uint8_t *const *)p.places, dst);
        }
    }
}

/* ---- the codec --------------------------------------------------------------------------------- */

static size_t record_bytes(const dv_codec *codec, const dv_map *map) {
    uint32_t width = (uint32_t)codec->options[OPTION_BITS];
    return map->channels * (sizeof(dv_channel_code) + dv_channel_bytes(pixels_of(map), width));
}

/* Leaves steps and widths at the head of a record: of magnitudes, which are where steps will be. */
static void choose_all(const dv_codec_call *call, dv_channel_code *head, const float *most) {
    int width = call->codec->options[OPTION_BITS];
    for (size_t c = call->map->channels; c-- > 0;) /* from behind: magnitudes lie at the head, and are half as long */
        head[c] = (dv_channel_code){(float)ldexp((double)(most[c] + HAIR), 1 - width), (uint32_t)width};
}

static dv_status encode(const dv_codec_call *call, const void *elements, uint8_t *records, dv_error *error) {
    const dv_map *map = call->map;
    int finite = 1;
#pragma omp parallel for num_threads(dv_codec_threads(call->codec)) schedule(static) reduction(&& : finite)
    for (size_t n = 0; n < call->count; n++) {
        float *most = (float *)(void *)(records + n * call->record_bytes);
        dv_channel_code *head = (dv_channel_code *)(void *)most;
        const void *image = image_at(map, elements, n);
        finite = dv_acgc_measure(map, 1, image, most) && finite;
        choose_all(call, head, most);
        dv_acgc_encode(map, head, true, image, (uint8_t *)(head + map->channels));
    }
    return finite ? DV_OK : dv_codec_fail_nonfinite(call, elements, error);
}

/* Widths say how far decoding reads: those of a record that was damaged must not be believed. */
static dv_status check_widths(const dv_codec_call *call, const uint8_t *records, dv_error *error) {
    uint32_t width = (uint32_t)call->codec->options[OPTION_BITS];
    for (size_t n = 0; n < call->count; n++) {
        const dv_channel_code *head = (const dv_channel_code *)(const void *)(records + n * call->record_bytes);
        for (size_t c = 0; c < call->map->channels; c++)
            if (head[c].width != width)
                return dv_fail(error, DV_ERROR_FORMAT,
                               "damaged packed map: image %zu, channel %zu says codes of %u bits, the codec has %u", n,
                               c, head[c].width, width);
    }
    return DV_OK;
}

static dv_status decode(const dv_codec_call *call, const uint8_t *records, void *elements, dv_error *error) {
    const dv_map *map = call->map;
    DV_TRY(check_widths(call, records, error));
#pragma omp parallel for num_threads(dv_codec_threads(call->codec)) schedule(static)
    for (size_t n = 0; n < call->count; n++) {
        const dv_channel_code *head = (const dv_channel_code *)(const void *)(records + n * call->record_bytes);
        dv_acgc_decode(map, head, true, (const uint8_t *)(head + map->channels), (void *)image_at(map, elements, n));
    }
    return DV_OK;
}

const dv_codec_kind dv_codec_acgc = {
    .name = "acgc",
    .help = "each channel to the nearest multiple of a step of its own",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .record_bytes = record_bytes,
    .encode = encode,
    .decode = decode,
};
