/* The upper half of an f32: every value rounded to bf16, to the nearest. A positive number stays positive, however
 * small it is, so that the mask of a value can be read out of its record. */
#include "codec/kernels/kernels.h"
#include "codec/kind.h"

static size_t record_bytes(const dv_codec *codec, const dv_map *map) {
    (void)codec;
    return dv_map_image_elements(map) * sizeof(uint16_t);
}

/* Pieces of a call that threads share: a few thousand elements of an image each. */
enum { PIECE = 1 << 14 };

static size_t pieces_of(size_t elements) {
    return (elements + PIECE - 1) / PIECE;
}

static size_t piece_elements(size_t elements, size_t index) {
    size_t rest = elements - index * PIECE;
    return rest < PIECE ? rest : PIECE;
}

static dv_status encode(const dv_codec_call *call, const void *elements, uint8_t *records, dv_error *error) {
    const dv_codec_kernels *kernels = dv_codec_kernels_current();
    size_t count = dv_map_image_elements(call->map), pieces = pieces_of(count);
    size_t element_bytes = dv_type_bytes(call->map->type);
    int finite = 1;
#pragma omp parallel for num_threads(dv_codec_threads(call->codec)) schedule(static) reduction(&& : finite)
    for (size_t i = 0; i < call->count * pieces; i++) {
        size_t image = i / pieces, first = i % pieces * PIECE;
        uint16_t *halves = (uint16_t *)(void *)(records + image * call->record_bytes);
        finite = kernels->bf16_encode(call->map->type, (const char *)elements + (image * count + first) * element_bytes,
                                      piece_elements(count, i % pieces), halves + first) &&
                 finite;
    }
    return finite ? DV_OK : dv_codec_fail_nonfinite(call, elements, error);
}

static dv_status decode(const dv_codec_call *call, const uint8_t *records, void *elements, dv_error *error) {
    (void)error;
    const dv_codec_kernels *kernels = dv_codec_kernels_current();
    size_t count = dv_map_image_elements(call->map), pieces = pieces_of(count);
    size_t element_bytes = dv_type_bytes(call->map->type);
#pragma omp parallel for num_threads(dv_codec_threads(call->codec)) schedule(static)
    for (size_t i = 0; i < call->count * pieces; i++) {
        size_t image = i / pieces, first = i % pieces * PIECE;
        const uint16_t *halves = (const uint16_t *)(const void *)(records + image * call->record_bytes);
        kernels->bf16_decode(call->map->type, halves + first, piece_elements(count, i % pieces),
                             (char *)elements + (image * count + first) * element_bytes);
    }
    return DV_OK;
}

static void decode_mask(const dv_codec_call *call, const uint8_t *records, uint8_t *mask, size_t stride) {
    const dv_codec_kernels *kernels = dv_codec_kernels_current();
    size_t count = dv_map_image_elements(call->map);
#pragma omp parallel for num_threads(dv_codec_threads(call->codec)) schedule(static)
    for (size_t n = 0; n < call->count; n++)
        (void)kernels->bits_encode(DV_BF16, records + n * call->record_bytes, count, mask + n * stride);
}

const dv_codec_kind dv_codec_bf16 = {
    .name = "bf16",
    .help = "every element rounded to bf16",
    .record_bytes = record_bytes,
    .encode = encode,
    .decode = decode,
    .decode_mask = decode_mask,
};
