/* One bit an element: whether it is positive. All that the backward pass of ReLU or dropout needs. */
#include "codec/kernels/kernels.h"
#include "codec/kind.h"

static size_t record_bytes(const dv_codec *codec, const dv_map *map) {
    (void)codec;
    return dv_stream_bytes(dv_map_image_elements(map), 1);
}

static dv_status encode(const dv_codec_call *call, const void *elements, uint8_t *records, dv_error *error) {
    const dv_codec_kernels *kernels = dv_codec_kernels_current();
    size_t count = dv_map_image_elements(call->map), bytes = count * dv_type_bytes(call->map->type);
    int finite = 1;
#pragma omp parallel for num_threads(dv_codec_threads(call->codec)) schedule(static) reduction(&& : finite)
    for (size_t n = 0; n < call->count; n++)
        finite = kernels->bits_encode(call->map->type, (const char *)elements + n * bytes, count,
                                      records + n * call->record_bytes) &&
                 finite;
    return finite ? DV_OK : dv_codec_fail_nonfinite(call, elements, error);
}

static dv_status decode(const dv_codec_call *call, const uint8_t *records, void *elements, dv_error *error) {
    (void)error;
    const dv_codec_kernels *kernels = dv_codec_kernels_current();
    size_t count = dv_map_image_elements(call->map), bytes = count * dv_type_bytes(call->map->type);
#pragma omp parallel for num_threads(dv_codec_threads(call->codec)) schedule(static)
    for (size_t n = 0; n < call->count; n++)
        kernels->bits_decode(call->map->type, records + n * call->record_bytes, count, (char *)elements + n * bytes);
    return DV_OK;
}

static size_t mask_at(const dv_codec *codec, const dv_map *map) {
    (void)codec;
    (void)map;
    return 0;
}

const dv_codec_kind dv_codec_bits = {
    .name = "bits",
    .help = "one bit an element: set where it is positive; decodes to 1 and 0",
    .record_bytes = record_bytes,
    .encode = encode,
    .decode = decode,
    .mask_at = mask_at,
};
