/* A mask that lies in records as it is, applied to other elements of the same map. */
#include "codec/kernels/kernels.h"
#include "codec/kind.h"

/* Pieces of an image that threads share: whole chunks. */
enum { PIECE = 64 * DV_CHUNK };

void dv_codec_apply_mask(const dv_codec_call *call, const uint8_t *records, const void *src, void *elements) {
    const dv_codec_kernels *kernels = dv_codec_kernels_current();
    size_t count = dv_map_image_elements(call->map), pieces = (count + PIECE - 1) / PIECE;
    size_t bytes = dv_type_bytes(call->map->type), mask = call->codec->kind->mask_at(call->codec, call->map);
#pragma omp parallel for num_threads(dv_codec_threads(call->codec)) schedule(static)
    for (size_t i = 0; i < call->count * pieces; i++) {
        size_t image = i / pieces, first = i % pieces * PIECE, last = first + PIECE < count ? first + PIECE : count;
        size_t at = (image * count + first) * bytes;
        kernels->mask_apply(call->map->type, records + image * call->record_bytes + mask + first / 8, last - first,
                            (const char *)src + at, (char *)elements + at);
    }
}
