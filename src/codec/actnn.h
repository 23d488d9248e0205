/* The codec of ActNN, image by image: each image of a map may have another number of bits. */
#ifndef DV_CODEC_ACTNN_H
#define DV_CODEC_ACTNN_H

#include "codec/kernels/kernels.h"
#include "codec/kind.h"

/* Groups of an image. */
size_t dv_actnn_groups(const dv_map *map);

/* Minimum and range of an image's groups. False if an element cannot be packed. */
bool dv_actnn_measure(const dv_map *map, const void *image, dv_group *groups);

/* The codes of image `number` of a map, whose groups have been measured: dv_codes_bytes(map, bits) of them. */
void dv_actnn_encode(const dv_map *map, int bits, const dv_noise *noise, size_t number, const void *image,
                     const dv_group *groups, uint8_t *codes);
void dv_actnn_decode(const dv_map *map, int bits, const dv_group *groups, const uint8_t *codes, void *image);

#endif
