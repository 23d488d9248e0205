/* The codec that changes nothing: what a value is kept as where every bit counts. It keeps NaN and
 * infinity too. */
#include "codec/kind.h"

#include <string.h>

static size_t image_bytes(const dv_map *map) {
    return dv_map_image_elements(map) * dv_type_bytes(map->type);
}

static size_t record_bytes(const dv_codec *codec, const dv_map *map) {
    (void)codec;
    return image_bytes(map);
}

/* Copies `count` images between rows of different strides, on all threads. */
static void copy_images(const dv_codec_call *call, const char *src, size_t src_stride, char *dst, size_t dst_stride) {
    size_t bytes = image_bytes(call->map);
#pragma omp parallel for num_threads(dv_codec_threads(call->codec)) schedule(static)
    for (size_t n = 0; n < call->count; n++)
        memcpy(dst + n * dst_stride, src + n * src_stride, bytes);
}

static dv_status encode(const dv_codec_call *call, const void *elements, uint8_t *records, dv_error *error) {
    (void)error;
    copy_images(call, elements, image_bytes(call->map), (char *)records, call->record_bytes);
    return DV_OK;
}

static dv_status decode(const dv_codec_call *call, const uint8_t *records, void *elements, dv_error *error) {
    (void)error;
    copy_images(call, (const char *)records, call->record_bytes, elements, image_bytes(call->map));
    return DV_OK;
}

dv_status dv_codec_encode_exact(const dv_codec_call *call, const void *elements, uint8_t *records, dv_error *error) {
    if (!dv_codec_all_finite(call, elements))
        return dv_codec_fail_nonfinite(call, elements, error);
    return encode(call, elements, records, error);
}

const dv_codec_kind dv_codec_exact = {
    .name = "exact",
    .help = "every bit as it was",
    .record_bytes = record_bytes,
    .encode = encode,
    .decode = decode,
};
