/* A map that went through a codec, and what came of it: what `division codec` prints and draws. */
#ifndef DV_CLI_CODEC_H
#define DV_CLI_CODEC_H

#include <division/codec.h>
#include <division/status.h>
#include <stddef.h>

/* Sums over elements, and what follows from them. */
typedef struct codec_measure {
    double signal;  /* sum of squares of the input */
    double low;     /* ... of its LFC */
    double noise;   /* ... of decoded minus input */
    double largest; /* largest absolute error */
} codec_measure;

/* A map and its copies. All arrays have the map's shape and layout, and are owned. */
typedef struct codec_trial {
    dv_map map;
    dv_codec codec;
    void *src;      /* as read: the map's type */
    void *dst;      /* decoded: the map's type */
    float *input;   /* src as f32 */
    float *low;     /* the LFC of src */
    float *decoded; /* dst as f32 */
    size_t packed_bytes;
} codec_trial;

/* Writes the map's shape in the order of its axes, its type and layout: "4 x 64 x 56 x 56, f32, nchw".
 * Returns `text`. */
enum { CLI_CODEC_TEXT = 160 };
const char *cli_codec_describe(const dv_map *map, char text[CLI_CODEC_TEXT]);

/* Signal-to-noise ratio in dB: infinite if there is no noise. */
double cli_codec_snr(const codec_measure *measure);

/* Bits that an element takes when packed. */
double cli_codec_bits(const codec_trial *trial);

/* Adds the element `index` of the trial to the sums. */
void cli_codec_measure_element(const codec_trial *trial, size_t index, codec_measure *measure);

/* Draws input, LFC, HFC and decoded map of some channels of the first image, and writes it as a PNG. */
dv_status cli_codec_draw(const codec_trial *trial, const codec_measure *measure, const char *path, dv_error *error);

#endif
