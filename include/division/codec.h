/* Codecs: pack a map of activations into few bits per element, and unpack it again.
 *
 *     dv_codec codec;
 *     dv_codec_parse("division:block=8,bits=2", &codec, &error);
 *     size_t bytes;
 *     dv_codec_packed_bytes(&codec, &map, &bytes, &error);
 *     dv_codec_encode(&codec, &map, &noise, src, packed, bytes, &error);
 *     dv_codec_decode(&codec, &map, &noise, packed, bytes, dst, &error);
 *
 * The packed size follows from the shape alone, and the packed bytes from the input and the noise alone: not from the
 * instruction set, not from the number of threads. docs/codec.md has the method and the byte layout.
 *
 * - Threads: Nothing here keeps state between calls: any thread may call any function at any time. Calls at once write
 *   to different memory; they may write different images of one packed map.
 * - Fork: Packing and unpacking use OpenMP's threads: division/threads.h says what a child may do.
 * - Freeing: Nothing here allocates: the caller owns all memory. */
#ifndef DIVISION_CODEC_H
#define DIVISION_CODEC_H

#include <division/export.h>
#include <division/option.h>
#include <division/status.h>
#include <division/threads.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- maps ---------------------------------------------------------------------------------- */

typedef enum dv_type { DV_F32, DV_BF16, DV_F16, DV_TYPE_COUNT } dv_type;

typedef enum dv_layout {
    DV_NCHW, /* [images][channels][sides...]: channels first */
    DV_NHWC, /* [images][sides...][channels]: channels last */
    DV_LAYOUT_COUNT
} dv_layout;

enum { DV_MAX_RANK = 3 };

/* The shape of a map: `images` of `channels`, each with `rank` spatial sides (0 to 3, slowest
 * first: depth, height, width). Elements are dense, in the order that the layout says. */
typedef struct dv_map {
    dv_type type;
    dv_layout layout;
    size_t images;
    size_t channels;
    int rank;
    size_t sides[DV_MAX_RANK];
} dv_map;

/* Succeeds if the map is one that can exist: known type and layout, no side of zero, at most
 * 2^32 elements an image, a byte count that fits in size_t. */
DV_API dv_status dv_map_check(const dv_map *map, dv_error *error);

/* Sizes of a map that dv_map_check accepts. */
DV_API size_t dv_map_elements(const dv_map *map);       /* in all */
DV_API size_t dv_map_image_elements(const dv_map *map); /* of one image */
DV_API size_t dv_map_bytes(const dv_map *map);          /* unpacked, in all */
DV_API size_t dv_type_bytes(dv_type type);              /* of one element */

/* "f32", "bf16", "f16"; "nchw", "nhwc". Static text. */
DV_API const char *dv_type_name(dv_type type);
DV_API const char *dv_layout_name(dv_layout layout);

/* ---- codecs -------------------------------------------------------------------------------- */

struct dv_codec_kind;

enum { DV_CODEC_MAX_OPTIONS = 8 };

/* A codec and its options, made by dv_codec_parse. A plain value: copy it, drop it. */
typedef struct dv_codec {
    const struct dv_codec_kind *kind;      /* static */
    int32_t options[DV_CODEC_MAX_OPTIONS]; /* in the order of dv_codec_option_at */
    int threads;                           /* to use, up to DV_MAX_THREADS; 0: dv_threads() */
} dv_codec;

/* What keys the random numbers of a packing. The same noise must be given to decode; NULL stands for zeros. */
typedef struct dv_noise {
    uint64_t seed;  /* of the training */
    uint64_t step;  /* of the training */
    uint64_t value; /* which value of the network */
    uint64_t image; /* the number of the map's first image in the step */
} dv_noise;

enum { DV_PACKED_ALIGNMENT = 64 }; /* of the packed buffer and of each image's record in it */

/* Reads "name" or "name:option=value,...": "division:block=8,bits=2,dither=subtractive", "exact",
 * "bits". An error names the option, its value and its bounds. */
DV_API dv_status dv_codec_parse(const char *text, dv_codec *codec, dv_error *error);

/* Writes the codec with all its options in the form that dv_codec_parse reads, terminated, cut to
 * `bytes`. Returns the length of the whole text. */
DV_API size_t dv_codec_format(const dv_codec *codec, char *text, size_t bytes);

/* The codecs there are, and their options; NULL past the last. Static. */
DV_API const char *dv_codec_name_at(size_t index);
DV_API const char *dv_codec_help_at(size_t index);
DV_API const dv_option *dv_codec_option_at(size_t codec, size_t index);

/* Bytes of the packed map, a multiple of DV_PACKED_ALIGNMENT. Image n's record starts at
 * n * (packed bytes / images), and can be decoded without the others. */
DV_API dv_status dv_codec_packed_bytes(const dv_codec *codec, const dv_map *map, size_t *bytes, dv_error *error);

/* Packs `src`, all of the map, into `packed`. `packed` is aligned to DV_PACKED_ALIGNMENT and holds
 * at least the bytes of dv_codec_packed_bytes. DV_ERROR_NONFINITE names the first bad element's
 * image and channel; the contents of `packed` are then undefined. */
DV_API dv_status dv_codec_encode(const dv_codec *codec, const dv_map *map, const dv_noise *noise, const void *src,
                                 void *packed, size_t packed_bytes, dv_error *error);

/* Unpacks all of the map into `dst`, which holds dv_map_bytes(map). */
DV_API dv_status dv_codec_decode(const dv_codec *codec, const dv_map *map, const dv_noise *noise, const void *packed,
                                 size_t packed_bytes, void *dst, dv_error *error);

/* The same for images first .. first + count - 1 only. `packed` is still the whole packed map;
 * `src` and `dst` hold just those images. */
DV_API dv_status dv_codec_encode_images(const dv_codec *codec, const dv_map *map, const dv_noise *noise, size_t first,
                                        size_t count, const void *src, void *packed, size_t packed_bytes,
                                        dv_error *error);
DV_API dv_status dv_codec_decode_images(const dv_codec *codec, const dv_map *map, const dv_noise *noise, size_t first,
                                        size_t count, const void *packed, size_t packed_bytes, void *dst,
                                        dv_error *error);

/* The low-frequency component alone: every element of `dst` (f32, the map's shape and layout) is the
 * average of its block of edge `block`, not rounded. For looking at a map, not for speed. */
DV_API dv_status dv_map_low_frequency(const dv_map *map, size_t block, const void *src, float *dst, dv_error *error);

/* Converts `count` elements of `type` to f32. */
DV_API void dv_convert_to_f32(dv_type type, const void *src, size_t count, float *dst);

#ifdef __cplusplus
}
#endif

#endif
