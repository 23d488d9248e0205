/* Packed maps for other languages: text and plain arguments, where division/codec.h has structs.
 *
 *     size_t bytes;
 *     char message[DV_ERROR_TEXT_BYTES];
 *     dv_packed_bytes("division:block=8,bits=2", "f32 nhwc 32x64x56x56", &bytes, message);
 *     dv_packed_encode("division:block=8,bits=2", "f32 nhwc 32x64x56x56", 1, 2, 3, src, packed, bytes, message);
 *     dv_packed_decode("division:block=8,bits=2", "f32 nhwc 32x64x56x56", 1, 2, 3, packed, bytes, dst, message);
 *
 * `codec` is what dv_codec_parse reads, `map` what dv_map_parse reads. `message` has room for DV_ERROR_TEXT_BYTES or is
 * NULL; where a call fails, it is one line that says why, and else it is left alone. bindings/python is made of these
 * functions.
 *
 * - Threads: Nothing here keeps state between calls: any thread may call any function at any time. Calls at once write
 *   to different memory.
 * - Fork: Packing and unpacking use OpenMP's threads: division/threads.h says what a child may do.
 * - Freeing: Nothing here allocates: the caller owns all memory. */
#ifndef DIVISION_PACKED_H
#define DIVISION_PACKED_H

#include <division/codec.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Reads "f32 nhwc 32x64x56x56": the type, the layout, and images, channels and sides, in this order whatever the layout
 * is. One blank between the three. The map is one that dv_map_check accepts. */
DV_API dv_status dv_map_parse(const char *text, dv_map *map, dv_error *error);

/* Bytes of the packed map, as dv_codec_packed_bytes has them. */
DV_API dv_status dv_packed_bytes(const char *codec, const char *map, size_t *bytes, char *message);

/* Packs `src`, dense in the map's layout, into `packed`, aligned to DV_PACKED_ALIGNMENT. The numbers key the dither, as
 * those of dv_noise do, and are given again to unpack. DV_ERROR_NONFINITE: `src` has NaN or infinity, and is to be kept
 * in another way. Decoding a packed map that was damaged gives other numbers, or DV_ERROR_FORMAT; it stays in its
 * buffers. */
DV_API dv_status dv_packed_encode(const char *codec, const char *map, uint64_t seed, uint64_t step, uint64_t value,
                                  const void *src, void *packed, size_t packed_bytes, char *message);
DV_API dv_status dv_packed_decode(const char *codec, const char *map, uint64_t seed, uint64_t step, uint64_t value,
                                  const void *packed, size_t packed_bytes, void *dst, char *message);

/* The backward pass of a ReLU, without a decoded map: `dst` is `gradient` where the packed map is positive, else zero.
 * Of the codecs that hold a mask, `rectified` and `bits`; others are DV_ERROR_UNSUPPORTED. `gradient` and `dst` have
 * the map's shape, type and layout, and may be the same memory. */
DV_API dv_status dv_packed_apply_mask(const char *codec, const char *map, const void *packed, size_t packed_bytes,
                                      const void *gradient, void *dst, char *message);

#ifdef __cplusplus
}
#endif

#endif
