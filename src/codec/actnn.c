/* Groups of 256 elements of an image, channel after channel and pixel after pixel: minimum and range of each in bf16,
 * elements in codes of 1 to 8 bits between them, rounded up or down at random. */
#include "codec/actnn.h"

#include "base/status.h"
#include "codec/code_tiles.h"

#include <division/tools/option.h>

enum { OPTION_BITS };

static const dv_option options[] = {
    [OPTION_BITS] = {"bits", "N", "bits of a code", DV_INTEGER_IN(OPTION_BITS, 1, 8), .preset = "2"},
};

size_t dv_actnn_groups(const dv_map *map) {
    return (dv_map_image_elements(map) + DV_CHUNK - 1) / DV_CHUNK;
}

static size_t first_group(const dv_map *map, size_t number) {
    return number * DV_TILE_CHANNELS * (dv_map_image_elements(map) / map->channels) / DV_CHUNK;
}

static const void *tile_elements(const dv_map *map, const void *image, size_t number) {
    return (const char *)image + dv_code_tile_first(map, number) * dv_type_bytes(map->type);
}

bool dv_actnn_measure(const dv_map *map, const void *image, dv_group *groups) {
    bool finite = true;
    for (size_t t = 0; t < dv_code_tiles(map); t++) {
        dv_code_tile tile = dv_code_tile_at(map, 8, t);
        finite = dv_codec_kernels_current()->groups_measure(&tile, tile_elements(map, image, t),
                                                            groups + first_group(map, t)) &&
                 finite;
    }
    return finite;
}

void dv_actnn_encode(const dv_map *map, int bits, const dv_noise *noise, size_t number, const void *image,
                     const dv_group *groups, uint8_t *codes) {
    for (size_t t = 0; t < dv_code_tiles(map); t++) {
        dv_code_tile tile = dv_code_tile_at(map, bits, t);
        const uint64_t words[] = {noise->seed, noise->step, noise->value, noise->image + number, t};
        dv_random key = dv_random_key(words, sizeof words / sizeof *words);
        dv_codec_kernels_current()->groups_encode(&tile, key, groups + first_group(map, t),
                                                  tile_elements(map, image, t),
                                                  codes + dv_code_tile_offset(map, bits, t));
    }
}

void dv_actnn_decode(const dv_map *map, int bits, const dv_group *groups, const uint8_t *codes, void *image) {
    for (size_t t = 0; t < dv_code_tiles(map); t++) {
        dv_code_tile tile = dv_code_tile_at(map, bits, t);
        dv_codec_kernels_current()->groups_decode(&tile, groups + first_group(map, t),
                                                  codes + dv_code_tile_offset(map, bits, t),
                                                  (void *)tile_elements(map, image, t));
    }
}

/* ---- the codec ------------------------------------------------------------------------------- */

static size_t record_bytes(const dv_codec *codec, const dv_map *map) {
    return dv_actnn_groups(map) * sizeof(dv_group) + dv_codes_bytes(map, codec->options[OPTION_BITS]);
}

static dv_status encode(const dv_codec_call *call, const void *elements, uint8_t *records, dv_error *error) {
    size_t bytes = dv_map_image_elements(call->map) * dv_type_bytes(call->map->type);
    size_t groups = dv_actnn_groups(call->map);
    int finite = 1;
#pragma omp parallel for num_threads(dv_codec_threads(call->codec)) schedule(static) reduction(&& : finite)
    for (size_t n = 0; n < call->count; n++) {
        const char *image = (const char *)elements + n * bytes;
        dv_group *head = (dv_group *)(void *)(records + n * call->record_bytes);
        bool good = dv_actnn_measure(call->map, image, head);
        if (good)
            dv_actnn_encode(call->map, call->codec->options[OPTION_BITS], &call->noise, call->first + n, image, head,
                            (uint8_t *)(head + groups));
        finite = good && finite;
    }
    return finite ? DV_OK : dv_codec_fail_nonfinite(call, elements, error);
}

static dv_status decode(const dv_codec_call *call, const uint8_t *records, void *elements, dv_error *error) {
    (void)error;
    size_t bytes = dv_map_image_elements(call->map) * dv_type_bytes(call->map->type);
    size_t groups = dv_actnn_groups(call->map);
#pragma omp parallel for num_threads(dv_codec_threads(call->codec)) schedule(static)
    for (size_t n = 0; n < call->count; n++) {
        const dv_group *head = (const dv_group *)(const void *)(records + n * call->record_bytes);
        dv_actnn_decode(call->map, call->codec->options[OPTION_BITS], head, (const uint8_t *)(head + groups),
                        (char *)elements + n * bytes);
    }
    return DV_OK;
}

const dv_codec_kind dv_codec_actnn = {
    .name = "actnn",
    .help = "groups of 256 elements, each with its minimum and range, in a few bits",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .record_bytes = record_bytes,
    .encode = encode,
    .decode = decode,
};
