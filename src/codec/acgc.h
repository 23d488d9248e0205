/* The codec of AC-GC: each channel has a step and a width of its own. */
#ifndef DV_CODEC_ACGC_H
#define DV_CODEC_ACGC_H

#include "codec/kernels/kernels.h"
#include "codec/kind.h"

/* most[c] becomes the largest magnitude of channel c in `count` images. False if an element is not finite. */
bool dv_acgc_measure(const dv_map *map, size_t count, const void *images, float *most);

/* The code of a channel of numbers up to `most` whose allowed mean squared error is `error`:
 *
 *     fbits = clip(trunc(-log2(error) / 2 + log2(most + 1e-6) - 1), 1, 15),  step = (most + 1e-6) / 2^(fbits + 1)
 *
 * in fbits + 1 bits, or fbits + 2 of signed numbers; `fewer` of these are taken off again, down to fbits of 1. */
dv_channel_code dv_acgc_choose(float most, double error, bool is_signed, int fewer);

/* Bytes of the codes of an image. */
size_t dv_acgc_bytes(const dv_map *map, const dv_channel_code *by);

void dv_acgc_encode(const dv_map *map, const dv_channel_code *by, bool is_signed, const void *image, uint8_t *codes);
void dv_acgc_decode(const dv_map *map, const dv_channel_code *by, bool is_signed, const uint8_t *codes, void *image);

#endif
