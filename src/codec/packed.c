/* Codecs and maps by their texts. */
#include <division/packed.h>

#include "base/status.h"
#include "codec/kind.h"

#include <stdio.h>
#include <string.h>

/* ---- maps from text ------------------------------------------------------------------------ */

/* If `text` begins with one of `count` names and a blank, its index, with what follows in *rest; else `count`. */
static int find_word(const char *text, int count, const char *(*name_of)(int), const char **rest) {
    for (int i = 0; i < count; i++) {
        size_t length = strlen(name_of(i));
        if (strncmp(text, name_of(i), length) == 0 && text[length] == ' ') {
            *rest = text + length + 1;
            return i;
        }
    }
    return count;
}

static const char *type_name(int type) {
    return dv_type_name((dv_type)type);
}

static const char *layout_name(int layout) {
    return dv_layout_name((dv_layout)layout);
}

/* Reads digits; false if there are none, or too many for a size. */
static int read_size(const char **text, size_t *size) {
    const char *start = *text;
    for (*size = 0; **text >= '0' && **text <= '9'; (*text)++) {
        size_t digit = (size_t)(**text - '0');
        if (*size > (SIZE_MAX - digit) / 10)
            return 0;
        *size = *size * 10 + digit;
    }
    return *text > start;
}

enum { MOST_SIZES = 2 + DV_MAX_RANK };

/* Reads "32x64x56x56". Returns how many there are, or 0 for what is nothing of the kind. */
static int read_sizes(const char *text, size_t sizes[MOST_SIZES]) {
    for (int count = 0; count < MOST_SIZES; text++) {
        if (!read_size(&text, &sizes[count++]))
            return 0;
        if (*text != 'x')
            return *text == 0 ? count : 0;
    }
    return 0;
}

dv_status dv_map_parse(const char *text, dv_map *map, dv_error *error) {
    DV_NEED(text);
    DV_NEED(map);
    const char *rest = text;
    size_t sizes[MOST_SIZES] = {0};
    dv_map made = {.type = (dv_type)find_word(rest, DV_TYPE_COUNT, type_name, &rest)};
    made.layout = (dv_layout)find_word(rest, DV_LAYOUT_COUNT, layout_name, &rest);
    int count = made.type < DV_TYPE_COUNT && made.layout < DV_LAYOUT_COUNT ? read_sizes(rest, sizes) : 0;
    if (count < 2)
        return dv_fail(error, DV_ERROR_ARGUMENT,
                       "map \"%.60s\": it is to be f32, bf16 or f16, nchw or nhwc, images x channels x 0 to %d sides, "
                       "as in \"f32 nhwc 32x64x56x56\"",
                       text, DV_MAX_RANK);
    made.images = sizes[0];
    made.channels = sizes[1];
    made.rank = count - 2;
    for (int d = 0; d < made.rank; d++)
        made.sides[d] = sizes[2 + d];
    DV_TRY(dv_map_check(&made, error));
    *map = made;
    return DV_OK;
}

/* ---- calls --------------------------------------------------------------------------------- */

/* What the texts of a call mean. */
typedef struct form {
    dv_codec codec;
    dv_map map;
} form;

static dv_status read_form(const char *codec, const char *map, form *made, dv_error *error) {
    DV_TRY(dv_codec_parse(codec, &made->codec, error));
    return dv_map_parse(map, &made->map, error);
}

/* Hands a failure's text to the caller. */
static dv_status tell(dv_status status, const dv_error *error, char *message) {
    if (status != DV_OK && message)
        snprintf(message, DV_ERROR_TEXT_BYTES, "%s", error->text);
    return status;
}

dv_status dv_packed_bytes(const char *codec, const char *map, size_t *bytes, char *message) {
    form made;
    dv_error error;
    dv_status status = read_form(codec, map, &made, &error);
    if (status == DV_OK)
        status = dv_codec_packed_bytes(&made.codec, &made.map, bytes, &error);
    return tell(status, &error, message);
}

dv_status dv_packed_encode(const char *codec, const char *map, uint64_t seed, uint64_t step, uint64_t value,
                           const void *src, void *packed, size_t packed_bytes, char *message) {
    form made;
    dv_error error;
    const dv_noise noise = {.seed = seed, .step = step, .value = value};
    dv_status status = read_form(codec, map, &made, &error);
    if (status == DV_OK)
        status = dv_codec_encode(&made.codec, &made.map, &noise, src, packed, packed_bytes, &error);
    return tell(status, &error, message);
}

dv_status dv_packed_decode(const char *codec, const char *map, uint64_t seed, uint64_t step, uint64_t value,
                           const void *packed, size_t packed_bytes, void *dst, char *message) {
    form made;
    dv_error error;
    const dv_noise noise = {.seed = seed, .step = step, .value = value};
    dv_status status = read_form(codec, map, &made, &error);
    if (status == DV_OK)
        status = dv_codec_decode(&made.codec, &made.map, &noise, packed, packed_bytes, dst, &error);
    return tell(status, &error, message);
}

static dv_status apply_mask(const form *made, const void *packed, size_t packed_bytes, const void *gradient, void *dst,
                            dv_error *error) {
    const dv_codec_kind *kind = made->codec.kind;
    dv_codec_call call = {.codec = &made->codec, .map = &made->map, .count = made->map.images};
    if (!kind->mask_at)
        return dv_fail(error, DV_ERROR_UNSUPPORTED, "%s holds no mask: \"rectified\" and \"bits\" do", kind->name);
    DV_TRY(dv_codec_check_call(&call, gradient, packed, packed_bytes, error));
    DV_TRY(dv_codec_check_call(&call, dst, packed, packed_bytes, error));
    dv_codec_apply_mask(&call, packed, gradient, dst);
    return DV_OK;
}

dv_status dv_packed_apply_mask(const char *codec, const char *map, const void *packed, size_t packed_bytes,
                               const void *gradient, void *dst, char *message) {
    form made;
    dv_error error;
    dv_status status = read_form(codec, map, &made, &error);
    if (status == DV_OK)
        status = apply_mask(&made, packed, packed_bytes, gradient, dst, &error);
    return tell(status, &error, message);
}
