/* The codec `lean`: a few levels by block, and the mask of a ReLU as one state of the code. */
#ifndef DV_CODEC_LEAN_H
#define DV_CODEC_LEAN_H

#include "codec/kernels/kernels.h"
#include "codec/kind.h"

/* Levels are an index: of 3, 7, 15 and 255. */
enum { DV_LEAN_BLOCK, DV_LEAN_LEVELS, DV_LEAN_DITHER, DV_LEAN_MASK, DV_LEAN_SAMPLE, DV_LEAN_OPTIONS };
extern const char *const dv_lean_level_words[];
enum { DV_LEAN_3, DV_LEAN_7, DV_LEAN_15, DV_LEAN_255 };
enum { DV_LEAN_MASK_OFF, DV_LEAN_MASK_ON };

/* As dv_codec_encode_images, with a mask that another map of the same shape and type has: an element is inside where
 * that of `gate`, which begins with image `first` as `src` does, is positive. For maps of more than one pixel. */
dv_status dv_lean_encode(const dv_codec *codec, const dv_map *map, const dv_noise *noise, size_t first, size_t count,
                         const void *src, const void *gate, void *packed, size_t packed_bytes, dv_error *error);

/* As dv_codec_decode_images, and what a batch norm makes of that in the same pass. `norm` has the channels of the map,
 * and an addend, if any, that begins with image `first`, as `images` does, and may be what is at `images` before. */
bool dv_lean_can_normalize(const dv_codec *codec, const dv_map *map);
dv_status dv_lean_decode_normalized(const dv_codec *codec, const dv_map *map, const dv_noise *noise, size_t first,
                                    size_t count, const void *packed, size_t packed_bytes, const dv_lean_norm *norm,
                                    void *images, dv_error *error);

/* Whether the codec's records have a mask inside. */
static inline bool dv_lean_has_mask(const dv_codec *codec) {
    return codec->kind == &dv_codec_lean && codec->options[DV_LEAN_MASK] == DV_LEAN_MASK_ON;
}

#endif
