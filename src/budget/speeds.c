/* How fast codecs are here: seconds to pack and to unpack an element, the least of a few tries. */
#include "base/clock.h"
#include "base/sizes.h"
#include "base/status.h"
#include "budget/probe.h"

#include <float.h>
#include <stdlib.h>

enum { TRIES = 5, MOST_ELEMENTS = 1 << 20 };

/* Numbers that are not alike; as bf16 too. */
static void fill(const dv_map *map, void *elements) {
    uint16_t *to = elements;
    size_t halves = dv_map_bytes(map) / sizeof *to;
    for (size_t i = 0; i < halves; i++)
        to[i] = (uint16_t)(0x3f00 + (i * 2654435761u >> 16) % 256 + (i % 3 == 0 ? 0x8000 : 0));
}

static dv_status time_codec(const dv_codec *codec, const dv_map *map, void *elements, void *packed, size_t bytes,
                            double *encode, double *decode, dv_error *error) {
    *encode = *decode = DBL_MAX;
    for (int i = 0; i < TRIES; i++) {
        double begun = dv_now();
        DV_TRY(dv_codec_encode(codec, map, NULL, elements, packed, bytes, error));
        double packed_at = dv_now();
        DV_TRY(dv_codec_decode(codec, map, NULL, packed, bytes, elements, error));
        double end = dv_now();
        *encode = packed_at - begun < *encode ? packed_at - begun : *encode;
        *decode = end - packed_at < *decode ? end - packed_at : *decode;
    }
    return DV_OK;
}

/* As codecs want it. */
static void *allocate(size_t bytes) {
    enum { ALIGNED = 64 };
    return aligned_alloc(ALIGNED, (bytes + ALIGNED - 1) / ALIGNED * ALIGNED);
}

static dv_status time_candidate(const dv_candidate *candidate, const dv_map *map, double *encode, double *decode,
                                dv_error *error) {
    dv_codec codec;
    size_t bytes;
    DV_TRY(dv_codec_parse(candidate->codec, &codec, error));
    DV_TRY(dv_codec_packed_bytes(&codec, map, &bytes, error));
    void *elements = allocate(dv_map_bytes(map)), *packed = allocate(bytes);
    dv_status status = DV_OK;
    if (!elements || !packed)
        status = dv_fail(error, DV_ERROR_MEMORY, "probe: no memory");
    if (status == DV_OK) {
        fill(map, elements);
        status = time_codec(&codec, map, elements, packed, bytes, encode, decode, error);
    }
    free(elements);
    free(packed);
    *encode /= (double)dv_map_elements(map);
    *decode /= (double)dv_map_elements(map);
    return status;
}

dv_status dv_probe_codecs(const dv_map *like, dv_profile *profile, dv_error *error) {
    dv_map map = *like;
    map.images = dv_larger(dv_smaller(map.images, MOST_ELEMENTS / dv_map_image_elements(like)), 1);
    for (size_t i = 0; dv_candidate_at(i) && i < DV_PROFILE_MOST_CANDIDATES; i++)
        if (dv_candidate_at(i)->codec)
            DV_TRY(time_candidate(dv_candidate_at(i), &map, &profile->encode[i], &profile->decode[i], error));
    return DV_OK;
}
