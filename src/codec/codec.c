/* The codec interface: the table of codecs, options from text, and the checks that every call gets
 * before its codec sees it. */
#include "base/option_text.h"
#include "base/status.h"
#include "codec/kernels/kernels.h"
#include "codec/kind.h"

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const dv_codec_kind *const kinds[] = {
    &dv_codec_division, &dv_codec_exact, &dv_codec_bits,      &dv_codec_bf16, &dv_codec_blpa,
    &dv_codec_actnn,    &dv_codec_acgc,  &dv_codec_rectified, &dv_codec_lean,
};

enum { KIND_COUNT = sizeof kinds / sizeof *kinds };

const char *dv_codec_name_at(size_t index) {
    return index < KIND_COUNT ? kinds[index]->name : NULL;
}

const char *dv_codec_help_at(size_t index) {
    return index < KIND_COUNT ? kinds[index]->help : NULL;
}

const dv_option *dv_codec_option_at(size_t codec, size_t index) {
    return codec < KIND_COUNT && index < kinds[codec]->option_count ? &kinds[codec]->options[index] : NULL;
}

/* ---- options from text --------------------------------------------------------------------- */

static dv_status find_kind(const char *text, const dv_codec_kind **kind, const char **rest, dv_error *error) {
    char known[120] = "";
    for (size_t i = 0; i < KIND_COUNT; i++) {
        if (dv_option_text_names(text, kinds[i]->name, rest)) {
            *kind = kinds[i];
            return DV_OK;
        }
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i ? ", " : "", kinds[i]->name);
    }
    size_t length = strcspn(text, ":");
    return dv_fail(error, DV_ERROR_OPTION, "unknown codec \"%.*s\": there are %s", (int)(length < 40 ? length : 40),
                   text, known);
}

dv_status dv_codec_parse(const char *text, dv_codec *codec, dv_error *error) {
    if (!text || !codec)
        return dv_fail(error, DV_ERROR_ARGUMENT, "codec: text or codec is NULL");
    dv_codec made = {0};
    const char *rest;
    DV_TRY(find_kind(text, &made.kind, &rest, error));
    const dv_option_table table = {made.kind->options, made.kind->option_count, made.options};
    dv_option_text_preset(&table);
    DV_TRY(dv_option_text_parse(made.kind->name, rest, &table, 1, error));
    DV_TRY(dv_codec_check(&made, error));
    *codec = made;
    return DV_OK;
}

/* True if the codec's kind is one of ours, and not what happened to be in memory. */
static int is_known(const dv_codec *codec) {
    for (size_t i = 0; codec && i < KIND_COUNT; i++)
        if (codec->kind == kinds[i])
            return 1;
    return 0;
}

size_t dv_codec_format(const dv_codec *codec, char *text, size_t bytes) {
    if (bytes)
        *text = 0;
    if (!is_known(codec))
        return 0;
    dv_codec copy = *codec;
    const dv_option_table table = {codec->kind->options, codec->kind->option_count, copy.options};
    size_t length = (size_t)snprintf(text, bytes, "%s", codec->kind->name);
    return dv_option_text_format(&table, ':', text, length, bytes);
}

/* Bytes that a thread decodes of a whole map from which on they are written past the caches. Slices of a map are
 * decoded to be used at once, and never are. */
enum { STREAMED_SHARE = 1 << 20 };

/* ---- calls --------------------------------------------------------------------------------- */

int dv_codec_threads(const dv_codec *codec) {
    return codec->threads > 0 ? codec->threads : omp_get_max_threads();
}

/* A codec that dv_codec_parse could have made: one copied from memory that is not a codec, or with
 * options changed by hand, must not reach the kernels. */
dv_status dv_codec_check(const dv_codec *codec, dv_error *error) {
    if (!is_known(codec))
        return dv_fail(error, DV_ERROR_ARGUMENT, "codec is NULL or was not made by dv_codec_parse");
    for (size_t i = 0; i < codec->kind->option_count; i++)
        if (!dv_option_holds(&codec->kind->options[i], codec->options))
            return dv_fail(error, DV_ERROR_OPTION, "%s: %s=%d is out of bounds", codec->kind->name,
                           codec->kind->options[i].name, codec->options[i]);
    if (codec->threads < 0 || codec->threads > DV_MAX_THREADS)
        return dv_fail(error, DV_ERROR_OPTION, "%s: threads=%d: must be 0 to %d", codec->kind->name, codec->threads,
                       DV_MAX_THREADS);
    return codec->kind->check != NULL ? codec->kind->check(codec, error) : DV_OK;
}

/* Bytes of one image's record with its padding. */
static size_t padded_record_bytes(const dv_codec *codec, const dv_map *map) {
    size_t bytes = codec->kind->record_bytes(codec, map);
    return (bytes + DV_PACKED_ALIGNMENT - 1) / DV_PACKED_ALIGNMENT * DV_PACKED_ALIGNMENT;
}

dv_status dv_codec_packed_bytes(const dv_codec *codec, const dv_map *map, size_t *bytes, dv_error *error) {
    DV_TRY(dv_codec_check(codec, error));
    DV_TRY(dv_map_check(map, error));
    if (!map || !bytes)
        return dv_fail(error, DV_ERROR_ARGUMENT, "packed bytes: map or bytes is NULL");
    size_t record = padded_record_bytes(codec, map);
    if (record > SIZE_MAX / map->images)
        return dv_fail(error, DV_ERROR_UNSUPPORTED, "map: %zu packed images do not fit in memory", map->images);
    *bytes = record * map->images;
    return DV_OK;
}

dv_status dv_codec_check_call(dv_codec_call *call, const void *elements, const void *packed, size_t packed_bytes,
                              dv_error *error) {
    size_t needed;
    DV_TRY(dv_codec_packed_bytes(call->codec, call->map, &needed, error));
    if (!elements || !packed)
        return dv_fail(error, DV_ERROR_ARGUMENT, "codec: %s is NULL", elements ? "packed" : "the map's buffer");
    if ((uintptr_t)elements % dv_type_bytes(call->map->type))
        return dv_fail(error, DV_ERROR_BUFFER, "codec: the map's buffer is not aligned to its %s elements",
                       dv_type_name(call->map->type));
    if ((uintptr_t)packed % DV_PACKED_ALIGNMENT)
        return dv_fail(error, DV_ERROR_BUFFER, "codec: packed must be aligned to %d bytes", DV_PACKED_ALIGNMENT);
    if (packed_bytes < needed)
        return dv_fail(error, DV_ERROR_BUFFER, "codec: packed has %zu bytes: %zu are needed", packed_bytes, needed);
    if (call->first > call->map->images || call->count > call->map->images - call->first)
        return dv_fail(error, DV_ERROR_ARGUMENT, "codec: images %zu to %zu: the map has %zu", call->first,
                       call->first + call->count, call->map->images);
    call->record_bytes = needed / call->map->images;
    return DV_OK;
}

static dv_noise noise_or_zero(const dv_noise *noise) {
    return noise ? *noise : (dv_noise){0};
}

dv_status dv_codec_encode_images(const dv_codec *codec, const dv_map *map, const dv_noise *noise, size_t first,
                                 size_t count, const void *src, void *packed, size_t packed_bytes, dv_error *error) {
    dv_codec_call call = {.codec = codec, .map = map, .noise = noise_or_zero(noise), .first = first, .count = count};
    DV_TRY(dv_codec_check_call(&call, src, packed, packed_bytes, error));
    uint8_t *records = (uint8_t *)packed + first * call.record_bytes;
    size_t used = codec->kind->record_bytes(codec, map), padding = call.record_bytes - used;
    for (size_t n = 0; padding > 0 && n < count; n++)
        memset(records + n * call.record_bytes + used, 0, padding);
    return codec->kind->encode(&call, src, records, error);
}

static dv_status decode(dv_codec_call *call, const void *packed, size_t packed_bytes, void *dst, dv_error *error) {
    DV_TRY(dv_codec_check_call(call, dst, packed, packed_bytes, error));
    const uint8_t *records = (const uint8_t *)packed + call->first * call->record_bytes;
    return call->codec->kind->decode(call, records, dst, error);
}

dv_status dv_codec_decode_images(const dv_codec *codec, const dv_map *map, const dv_noise *noise, size_t first,
                                 size_t count, const void *packed, size_t packed_bytes, void *dst, dv_error *error) {
    dv_codec_call call = {.codec = codec, .map = map, .noise = noise_or_zero(noise), .first = first, .count = count};
    return decode(&call, packed, packed_bytes, dst, error);
}

dv_status dv_codec_decode_mask(const dv_codec *codec, const dv_map *map, size_t first, size_t count, const void *packed,
                               size_t packed_bytes, uint8_t *mask, size_t stride, dv_error *error) {
    dv_codec_call call = {.codec = codec, .map = map, .first = first, .count = count};
    DV_TRY(dv_codec_check_call(&call, mask, packed, packed_bytes, error));
    codec->kind->decode_mask(&call, (const uint8_t *)packed + first * call.record_bytes, mask, stride);
    return DV_OK;
}

dv_status dv_codec_encode(const dv_codec *codec, const dv_map *map, const dv_noise *noise, const void *src,
                          void *packed, size_t packed_bytes, dv_error *error) {
    return dv_codec_encode_images(codec, map, noise, 0, map ? map->images : 0, src, packed, packed_bytes, error);
}

dv_status dv_codec_decode(const dv_codec *codec, const dv_map *map, const dv_noise *noise, const void *packed,
                          size_t packed_bytes, void *dst, dv_error *error) {
    dv_codec_call call = {.codec = codec, .map = map, .noise = noise_or_zero(noise), .count = map ? map->images : 0};
    DV_TRY(dv_codec_check(codec, error));
    DV_TRY(dv_map_check(map, error));
    call.streams = dv_map_bytes(map) / (size_t)dv_codec_threads(codec) > STREAMED_SHARE;
    return decode(&call, packed, packed_bytes, dst, error);
}

/* The first element of the call that is NaN or infinite, or the number of elements. */
static size_t first_nonfinite(const dv_codec_call *call, const void *elements, float *value) {
    enum { TOGETHER = 256 };
    float converted[TOGETHER];
    size_t count = call->count * dv_map_image_elements(call->map), bytes = dv_type_bytes(call->map->type);
    for (size_t done = 0; done < count; done += TOGETHER) {
        size_t now = count - done < TOGETHER ? count - done : TOGETHER;
        dv_convert_to_f32(call->map->type, (const char *)elements + done * bytes, now, converted);
        for (size_t i = 0; i < now; i++)
            if (!isfinite(*value = converted[i]))
                return done + i;
    }
    return count;
}

int dv_codec_all_finite(const dv_codec_call *call, const void *elements) {
    float value;
    return first_nonfinite(call, elements, &value) == call->count * dv_map_image_elements(call->map);
}

dv_status dv_codec_fail_nonfinite(const dv_codec_call *call, const void *elements, dv_error *error) {
    const dv_map *map = call->map;
    const char *name = call->codec->kind->name;
    size_t image_elements = dv_map_image_elements(map), pixels = image_elements / map->channels;
    float value = 0;
    size_t first = first_nonfinite(call, elements, &value);
    if (first == call->count * image_elements)
        return dv_fail(error, DV_ERROR_NONFINITE, "%s: values of 2^125 or more, or a block whose sum overflows", name);
    size_t within = first % image_elements, image = call->first + first / image_elements;
    size_t channel = map->layout == DV_NHWC ? within % map->channels : within / pixels;
    return dv_fail(error, DV_ERROR_NONFINITE, "%s: %s in image %zu, channel %zu", name,
                   isnan(value) ? "NaN" : "infinity", image, channel);
}
