/* The codec `division` for the output of a ReLU: with a mask of one bit an element behind the rest. What is not
 * positive comes back as zero, and the backward pass of the ReLU itself needs nothing but the mask. One form then
 * serves both readers of such a map, the ReLU and the layer behind it.
 *
 *     record:  as division's, up to a multiple of DV_PACKED_ALIGNMENT | one bit an element, as `bits` has it */
#include "codec/division.h"

#include "base/status.h"
#include "codec/kernels/kernels.h"
#include "codec/kind.h"

#include <string.h>

static size_t mask_at(const dv_codec *codec, const dv_map *map) {
    size_t bytes = dv_codec_division.record_bytes(codec, map);
    return (bytes + DV_PACKED_ALIGNMENT - 1) / DV_PACKED_ALIGNMENT * DV_PACKED_ALIGNMENT;
}

static size_t record_bytes(const dv_codec *codec, const dv_map *map) {
    return mask_at(codec, map) + dv_stream_bytes(dv_map_image_elements(map), 1);
}

static size_t image_bytes(const dv_map *map) {
    return dv_map_image_elements(map) * dv_type_bytes(map->type);
}

/* Images that both halves of the work take one after the other, so that the second finds them in a cache. */
static size_t images_together(const dv_codec_call *call) {
    const size_t cache = 1 << 20;
    size_t threads = (size_t)dv_codec_threads(call->codec), fit = cache / image_bytes(call->map);
    return fit > threads ? fit : threads;
}

static dv_codec_call part_of(const dv_codec_call *call, size_t done, size_t count) {
    dv_codec_call part = *call;
    part.first += done;
    part.count = call->count - done < count ? call->count - done : count;
    return part;
}

/* division's part finds what is not finite, and zeroes what lies between its end and the mask. */
static dv_status encode(const dv_codec_call *call, const void *elements, uint8_t *records, dv_error *error) {
    const dv_codec_kernels *kernels = dv_codec_kernels_current();
    size_t count = dv_map_image_elements(call->map), bytes = image_bytes(call->map), together = images_together(call);
    size_t mask = mask_at(call->codec, call->map), used = dv_codec_division.record_bytes(call->codec, call->map);
    for (size_t done = 0; done < call->count; done += together) {
        dv_codec_call part = part_of(call, done, together);
        const char *src = (const char *)elements + done * bytes;
        uint8_t *dst = records + done * call->record_bytes;
        DV_TRY(dv_codec_division.encode(&part, src, dst, error));
#pragma omp parallel for num_threads(dv_codec_threads(call->codec)) schedule(static)
        for (size_t n = 0; n < part.count; n++) {
            memset(dst + n * call->record_bytes + used, 0, mask - used);
            (void)kernels->bits_encode(call->map->type, src + n * bytes, count, dst + n * call->record_bytes + mask);
        }
    }
    return DV_OK;
}

static dv_status decode(const dv_codec_call *call, const uint8_t *records, void *elements, dv_error *error) {
    size_t bytes = image_bytes(call->map), together = images_together(call);
    for (size_t done = 0; done < call->count; done += together) {
        dv_codec_call part = part_of(call, done, together);
        char *dst = (char *)elements + done * bytes;
        const uint8_t *src = records + done * call->record_bytes;
        DV_TRY(dv_codec_division.decode(&part, src, dst, error));
        dv_codec_apply_mask(&part, src, dst, dst);
    }
    return DV_OK;
}

const dv_codec_kind dv_codec_rectified = {
    .name = "rectified",
    .help = "division and one bit an element: what is not positive comes back as zero",
    .options = dv_division_options,
    .option_count = DV_DIVISION_OPTIONS,
    .check = dv_division_check,
    .record_bytes = record_bytes,
    .encode = encode,
    .decode = decode,
    .mask_at = mask_at,
};
