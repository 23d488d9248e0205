/* What a codec is, to codec.c. A new one is a file that defines a dv_codec_kind, its name below, and a line in
 * the table of codec.c. */
#ifndef DV_CODEC_KIND_H
#define DV_CODEC_KIND_H

#include <division/codec.h>
#include <division/tools/option.h>
#include <stdbool.h>

/* A checked call, as a codec gets it: the map can exist, pointers are not NULL, buffers are large
 * enough and aligned, and first + count <= map->images. `elements` are those of the images asked for;
 * `records` start at the record of image `first`, `record_bytes` apart. */
typedef struct dv_codec_call {
    const dv_codec *codec;
    const dv_map *map;
    dv_noise noise;
    size_t first, count;
    size_t record_bytes;
    bool streams; /* of decoding: no cache would hold what is decoded until it is read */
} dv_codec_call;

typedef struct dv_codec_kind {
    const char *name, *help;
    const dv_option *options; /* at most DV_CODEC_MAX_OPTIONS */
    size_t option_count;

    /* Fails where options contradict each other; NULL: none do. */
    dv_status (*check)(const dv_codec *codec, dv_error *error);

    /* Bytes of one image's record. Rounded up to DV_PACKED_ALIGNMENT by the caller, who zeroes what that
     * adds; encode writes every byte before. */
    size_t (*record_bytes)(const dv_codec *codec, const dv_map *map);
    dv_status (*encode)(const dv_codec_call *call, const void *elements, uint8_t *records, dv_error *error);
    dv_status (*decode)(const dv_codec_call *call, const uint8_t *records, void *elements, dv_error *error);

    /* Where the elements were positive, as the `bits` codec has it, images `stride` bytes apart. NULL: records do not
     * tell it exactly. */
    void (*decode_mask)(const dv_codec_call *call, const uint8_t *records, uint8_t *mask, size_t stride);
    bool (*tells_mask)(const dv_codec *codec); /* with these options they do; NULL: with all */

    /* The byte of a record at which that mask lies as it is. NULL: it does not. */
    size_t (*mask_at)(const dv_codec *codec, const dv_map *map);
} dv_codec_kind;

extern const dv_codec_kind dv_codec_division, dv_codec_exact, dv_codec_bits, dv_codec_bf16, dv_codec_blpa,
    dv_codec_actnn, dv_codec_acgc, dv_codec_rectified, dv_codec_lean;

/* The encode of dv_codec_exact, for codecs that keep maps of one element per channel as they are, if all are finite. */
dv_status dv_codec_encode_exact(const dv_codec_call *call, const void *elements, uint8_t *records, dv_error *error);

/* dv_codec_decode_images of the mask alone, for codecs that have decode_mask. */
dv_status dv_codec_decode_mask(const dv_codec *codec, const dv_map *map, size_t first, size_t count, const void *packed,
                               size_t packed_bytes, uint8_t *mask, size_t stride, dv_error *error);

/* Sets elements of the call's images to those of `src` where its record's mask says positive, else to zero. For codecs
 * that have mask_at; `src` and `elements` may be the same. */
void dv_codec_apply_mask(const dv_codec_call *call, const uint8_t *records, const void *src, void *elements);

/* Fails unless the codec is one that dv_codec_parse could have made. */
dv_status dv_codec_check(const dv_codec *codec, dv_error *error);

/* Checks a call, of which codec, map, first and count are set, and sets its record_bytes. For codecs that are called in
 * other ways than by dv_codec_encode. */
dv_status dv_codec_check_call(dv_codec_call *call, const void *elements, const void *packed, size_t packed_bytes,
                              dv_error *error);

/* Threads that a call may use. */
int dv_codec_threads(const dv_codec *codec);

/* True if no element of the call is NaN or infinite. */
int dv_codec_all_finite(const dv_codec_call *call, const void *elements);

/* The status for a call whose elements are not all finite: finds the first bad one, and names it. */
dv_status dv_codec_fail_nonfinite(const dv_codec_call *call, const void *elements, dv_error *error);

#endif
