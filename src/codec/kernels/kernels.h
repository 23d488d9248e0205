/* The codecs' inner loops, one table of functions per instruction set.
 *
 * Drivers (division.c, bits.c) cut a map into pieces, hand them to threads and report errors; the
 * kernels below do one piece, on one thread, and know nothing of the rest. All tables give the same
 * bits: what must agree is written in reference.c, plainly, and the tests hold the others to it. */
#ifndef DV_CODEC_KERNELS_H
#define DV_CODEC_KERNELS_H

#include "base/float16.h"
#include "base/random.h"

#include <division/codec.h>
#include <division/info.h>
#include <stdbool.h>

enum {
    DV_CHUNK = 256,         /* elements whose codes are packed together */
    DV_TILE_CHANNELS = 512, /* channels packed together, so that their statistics stay in the L1 cache */
};

/* Codes are `bits` wide, `per byte` = 8 / bits of them share a byte. A chunk of n elements takes
 * k = ceil(n / per byte) bytes, and byte j holds the codes of elements j, j + k, j + 2k, ... from its
 * lowest bits up: neighbours in memory land in neighbouring bytes, so packing is shifts and ors of
 * whole vectors. Only the last chunk of a stream may have n < DV_CHUNK. Of codes of three bits a chunk
 * has the lower two first, then the third. */
static inline size_t dv_chunk_bytes(size_t elements, int bits) {
    if (bits == 3)
        return (elements + 3) / 4 + (elements + 7) / 8;
    size_t per_byte = 8 / (size_t)bits;
    return (elements + per_byte - 1) / per_byte;
}

/* Bytes of a stream of codes: every whole chunk has no remainder, so chunks simply follow each other. */
static inline size_t dv_stream_bytes(size_t elements, int bits) {
    return dv_chunk_bytes(elements, bits);
}

/* How an element between two codes becomes one of them. */
typedef enum dv_dithering {
    DV_DITHER_STOCHASTIC,  /* at random, the nearer one more often */
    DV_DITHER_SUBTRACTIVE, /* the same, and what was added at random is taken off again at decode */
    DV_DITHER_NONE,        /* the nearest */
} dv_dithering;

/* A tile: up to DV_TILE_CHANNELS channels of one image, packed on their own by the codecs division and lean.
 * Spatial sides are always three; a map of lower rank has leading sides of 1. */
typedef struct dv_tile {
    dv_type type;
    dv_layout layout;
    size_t channels;     /* of the tile */
    size_t pixel_stride; /* NHWC: elements from one pixel to the next, the map's channels */
    size_t sides[3];
    size_t edges[3];  /* of a block, per side */
    size_t blocks[3]; /* per side */
    int bits;         /* per code: 1, 2, 4 or 8; lean: 2, 3, 4 or 8 */
    dv_dithering dither;
    bool lfc, hfc;  /* division: which parts the record has: averages; minima, steps and codes */
    bool masked;    /* lean: code 0 is that of an element outside of the mask */
    size_t sample;  /* lean: of one pixel in so many the record has what is outside as well; 0: of none */
    bool streams;   /* division: what is decoded is not read again soon, so that it need not be in caches */
    ptrdiff_t next; /* bytes from this tile's elements to those that are encoded after it; 0 if none are */
} dv_tile;

/* Where the parts of a packed tile are, as far as it has them. Sizes in elements; [blocks][channels] in NHWC,
 * [channels][blocks] in NCHW, as the pixels are. */
typedef struct dv_tile_record {
    uint16_t *averages; /* bf16 [blocks x channels]: the LFC */
    uint16_t *minima;   /* bf16 [channels]: of the HFC, rounded down */
    uint16_t *steps;    /* bf16 [channels]: between two codes, rounded up */
    uint8_t *codes;     /* a stream, in the order of the tile's elements in memory */
} dv_tile_record;

static inline size_t dv_tile_pixels(const dv_tile *tile) {
    return tile->sides[0] * tile->sides[1] * tile->sides[2];
}

static inline size_t dv_tile_blocks(const dv_tile *tile) {
    return tile->blocks[0] * tile->blocks[1] * tile->blocks[2];
}

/* Length of block `index` along `dimension`: the edge, or what is left at the end. */
static inline size_t dv_block_length(const dv_tile *tile, int dimension, size_t index) {
    size_t rest = tile->sides[dimension] - index * tile->edges[dimension];
    return rest < tile->edges[dimension] ? rest : tile->edges[dimension];
}

/* ---- lean ------------------------------------------------------------------------------------ */

/* Where the parts of a tile are that `lean` has packed, as far as it has them. Blocks as above. */
typedef struct dv_lean_record {
    uint16_t *minima;  /* bf16 [channels]: of what is inside of the mask, rounded down */
    uint16_t *units;   /* bf16 [channels]: the 255th part of its range, rounded up; 0: there is none */
    uint16_t *outside; /* bf16 [channels]: the mean of what is outside of the mask; NULL: there is no mask */
    uint8_t *lows;     /* [blocks x channels]: the block's minimum above the channel's, in units, rounded down */
    uint8_t *spans;    /* [blocks x channels]: its range from there, in units, rounded up; both NULL: one block */
    uint8_t *codes;    /* a stream, in the order of the tile's elements in memory */
    uint8_t *reaches; /* [channels]: how far from their mean sampled elements outside are; NULL: there are no samples */
    uint8_t *samples; /* of each sampled pixel, whatever the layout is, a stream of a code for each channel */
} dv_lean_record;

/* What a batch norm makes of decoded elements: (x - mean) * scale + bias by channel, and `addend` to that, laid out as
 * the elements are, or NULL; what it is added to may be in its place. Of a code with a mask, all outside becomes 0. */
typedef struct dv_lean_norm {
    const float *mean, *scale, *bias; /* [channels] */
    const void *addend;
} dv_lean_norm;

/* The value of level 0 and the step to the next, normalised in the stead of what they become. */
static inline void dv_lean_normalize(float mean, float scale, float bias, float *base, float *step) {
    *base = (*base - mean) * scale + bias;
    *step = *step * scale;
}

/* A tile of one block needs no places of blocks: it begins at its channel's minimum, and has all of its range. */
static inline bool dv_lean_has_blocks(const dv_tile *tile) {
    return dv_tile_blocks(tile) > 1;
}

/* No step is smaller, so that scales are finite. */
#define DV_STEP_MIN 0x1p-100f

enum { DV_LEAN_UNITS = 255 }; /* of a channel's range */

/* Steps from the lowest level to the highest. */
static inline float dv_lean_steps(const dv_tile *tile) {
    return (float)((1 << tile->bits) - (tile->masked ? 2 : 1));
}

/* The 255th part of a range, a hair (2^-20) more, rounded up to bf16: 255 of them reach over the range however its
 * difference was rounded. */
static inline uint16_t dv_lean_unit(float range) {
    float part = range * ((1.0f + 0x1p-20f) / (float)DV_LEAN_UNITS);
    uint16_t unit = dv_bf16_up(part < DV_STEP_MIN ? DV_STEP_MIN : part);
    return (uint16_t)(unit & -(range > 0)); /* no branch, for loops */
}

/* Where a block of a channel lies, in units. */
typedef struct dv_lean_place {
    int32_t low, span;
} dv_lean_place;

/* A product of a bf16 and 8 bits is exact, so that comparing with it is. */
static inline dv_lean_place dv_lean_place_of(float least, float most, float minimum, float unit) {
    float per = unit > 0 ? 1.0f / unit : 0.0f;
    dv_lean_place place;
    place.low = (int32_t)((least - minimum) * per);
    place.low -= minimum + (float)place.low * unit > least;
    float range = most - (minimum + (float)place.low * unit);
    place.span = (int32_t)(range * per);
    place.span += (float)place.span * unit < range;
    return place;
}

/* The step of a block whose range is `span` units, which is exact. A hair (2^-20) more than its share, so that no
 * rounding lets the highest level end below the block's maximum. */
static inline float dv_lean_step(float span, float unit, float steps) {
    return span * unit * ((1.0f + 0x1p-20f) / steps);
}

/* Samples. What is outside of the mask has no code but that it is, and comes back as its mean m. One pixel of each
 * stretch of pixels, taken at random, has codes for it as well: there an element x outside comes back as
 * m + pixels * (x - m), so that every one of them is right on average. */
enum { DV_LEAN_SAMPLE_BITS = 2 }; /* 0: inside; else one of three levels, a reach below the mean, at it and above */

typedef struct dv_lean_sample {
    size_t pixel, pixels; /* the one taken, and the length of its stretch */
} dv_lean_sample;

static inline size_t dv_lean_samples(const dv_tile *tile) {
    return tile->sample ? (dv_tile_pixels(tile) + tile->sample - 1) / tile->sample : 0;
}

/* The random numbers of a tile's samples are a sequence of their own: first the pixels, then the dither. */
static inline dv_random dv_lean_sample_key(dv_random key) {
    const uint64_t words[] = {key.low, key.high};
    return dv_random_key(words, 2);
}

/* Stretches are as long as each other, but for a pixel. `samples` is how many there are, `key` theirs, here and below.
 */
static inline dv_lean_sample dv_lean_sample_at(const dv_tile *tile, dv_random key, size_t samples, size_t index) {
    size_t pixels = dv_tile_pixels(tile), first = pixels * index / samples;
    size_t length = pixels * (index + 1) / samples - first;
    return (dv_lean_sample){first + ((uint64_t)dv_random_word(key, (uint32_t)index) * length >> 32), length};
}

/* What is added to a sample before its code is cut off: 16 random bits. `first` is the number of its pixel's first. */
static inline float dv_lean_sample_dither(dv_random key, size_t first, size_t channel) {
    return (float)(int32_t)(dv_random_word(key, (uint32_t)(first + channel)) >> 16) * 0x1p-16f;
}

static inline size_t dv_lean_sample_first(const dv_tile *tile, size_t samples, size_t index) {
    return samples + index * tile->channels;
}

/* A reach is the power of two that is not below the farthest sample's distance, told by its exponent, whatever that is
 * but for the two ends: what is nearer has the least; and 0, no reach at all, what is at its mean, or so far from it
 * that a multiple might not be finite. */
#define DV_LEAN_REACH_MIN 0x1p-100f
#define DV_LEAN_REACH_MAX 0x1p110f

static inline uint8_t dv_lean_reach(float farthest) {
    uint32_t bits = dv_float_bits(farthest < DV_LEAN_REACH_MIN ? DV_LEAN_REACH_MIN : farthest);
    uint32_t exponent = (bits + 0x7fffff) >> 23;
    return (uint8_t)(farthest > 0 && farthest <= DV_LEAN_REACH_MAX ? exponent : 0);
}

static inline float dv_lean_reach_length(uint8_t reach) {
    return dv_bits_float((uint32_t)reach << 23);
}

/* By which a distance is measured in reaches: 1 / length, which is exact; 0 without a reach. */
static inline float dv_lean_reach_scale(uint8_t reach) {
    return reach ? dv_bits_float((254u - reach) << 23) : 0.0f;
}

/* The code of a sample outside, which is `distance` from the mean. */
static inline uint32_t dv_lean_sample_code(float distance, float scale, float dither) {
    return 1 + (uint32_t)(int32_t)(distance * scale + 1.0f + dither);
}

/* Where it lies, in reaches from the mean. The mean of the dither is half of what its last bit is worth below a half.
 */
static inline float dv_lean_sample_level(float code, float dither, bool subtractive) {
    return code - 2.0f + (subtractive ? 0.5f - 0x1p-17f - dither : 0.0f);
}

/* ---- codes by channels and by groups ---------------------------------------------------------- */

/* Codes of any number of bits: those of a chunk are cut into fields of 8, 4, 2 and 1 bits, as many as `bits` is the sum
 * of, the widest first and with the lowest bits in it. Each field is a chunk of its own. */
static inline size_t dv_fields_bytes(size_t elements, int bits) {
    size_t bytes = 0;
    for (int field = 8; field > 0; field /= 2)
        bytes += bits & field ? dv_chunk_bytes(elements, field) : 0;
    return bytes;
}

/* Up to DV_TILE_CHANNELS channels of one image, as the codecs `blpa` and `actnn` pack them. */
typedef struct dv_code_tile {
    dv_type type;
    dv_layout layout;
    size_t channels;     /* of the tile */
    size_t pixel_stride; /* NHWC: elements from one pixel to the next, the map's channels */
    size_t pixels;
    int bits; /* per code: 1 to 8 */
} dv_code_tile;

/* Bytes of all codes of a tile: chunks in the order of its elements, the last with zeros where there are none. */
static inline size_t dv_code_tile_bytes(const dv_code_tile *tile) {
    return (tile->channels * tile->pixels + DV_CHUNK - 1) / DV_CHUNK * dv_fields_bytes(DV_CHUNK, tile->bits);
}

/* How the channels of a tile become codes: code = floor((x - center) scale + offset), cut to what the bits hold; and
 * back: x = base + step code. Arrays [channels]. */
typedef struct dv_affine {
    const float *center, *scale, *offset, *base, *step;
} dv_affine;

/* A group is DV_CHUNK elements of a tile, channel after channel and pixel after pixel, whatever the layout is. */
static inline size_t dv_tile_groups(const dv_code_tile *tile) {
    return (tile->channels * tile->pixels + DV_CHUNK - 1) / DV_CHUNK;
}

/* The minimum of a group, rounded down, and its range, rounded up: bf16. */
typedef struct dv_group {
    uint16_t minimum, range;
} dv_group;

/* How a channel becomes codes of `acgc`: x / step, to the nearest, in `width` bits, 2 to 17. */
typedef struct dv_channel_code {
    float step;
    uint32_t width;
} dv_channel_code;

enum { DV_CHANNELS_TOGETHER = 16, DV_WIDTH_MOST = 17 };

/* Bytes of a channel's codes: chunks of fields as above, and before them fields of 16 bits; the last chunk as long as
 * it is. */
static inline size_t dv_wide_fields_bytes(size_t elements, uint32_t width) {
    return (width & 16 ? 2 * elements : 0) + dv_fields_bytes(elements, (int)(width & 15));
}

static inline size_t dv_channel_bytes(size_t pixels, uint32_t width) {
    return pixels / DV_CHUNK * dv_wide_fields_bytes(DV_CHUNK, width) + dv_wide_fields_bytes(pixels % DV_CHUNK, width);
}

typedef struct dv_codec_kernels {
    /* Packs a tile whose first element is at `src`. False if it holds NaN, infinity, numbers
     * beyond DV_VALUE_LIMIT or such whose sums overflow; the record is then undefined. */
    bool (*division_encode)(const dv_tile *tile, dv_random key, const void *src, const dv_tile_record *record);
    void (*division_decode)(const dv_tile *tile, dv_random key, const dv_tile_record *record, void *dst);

    /* Packs a tile whose first element is at `src`. If it is masked, elements whose gate, an element of the same place
     * and type from `gate` on, is not positive are outside. False as division_encode. */
    bool (*lean_encode)(const dv_tile *tile, dv_random key, const void *src, const void *gate,
                        const dv_lean_record *record);
    /* `norm` may be NULL; else the tile has channels last, and f32 or bf16. */
    void (*lean_decode)(const dv_tile *tile, dv_random key, const dv_lean_record *record, const dv_lean_norm *norm,
                        void *dst);

    /* What is inside, as bits of a mask of the whole image of `elements`, whose element `first` is the tile's first.
     * The mask is zero before. */
    void (*lean_mask)(const dv_tile *tile, const uint8_t *codes, size_t first, size_t elements, uint8_t *mask);

    /* One bit an element, set where it is positive, as a stream of 1-bit codes. False if any of the
     * `count` elements is NaN or infinite. Decodes to 1 and 0. */
    bool (*bits_encode)(dv_type type, const void *src, size_t count, uint8_t *packed);
    void (*bits_decode)(dv_type type, const uint8_t *packed, size_t count, void *dst);

    /* dst = src where the mask has a bit, else 0; they may be the same. NaN goes as any other number. */
    void (*mask_apply)(dv_type type, const uint8_t *mask, size_t count, const void *src, void *dst);

    /* Rounded to bf16, to the nearest; a positive number does not become zero. False if any of the `count` elements is
     * not finite, or beyond what bf16 has. */
    bool (*bf16_encode)(dv_type type, const void *src, size_t count, uint16_t *halves);
    void (*bf16_decode)(dv_type type, const uint16_t *halves, size_t count, void *dst);

    /* Codes of a tile by `by`. False if any element is not finite. */
    bool (*affine_encode)(const dv_code_tile *tile, const dv_affine *by, const void *src, uint8_t *codes);
    void (*affine_decode)(const dv_code_tile *tile, const dv_affine *by, const uint8_t *codes, void *dst);

    /* Where base + step code is positive, as bits of a mask of the whole image of `elements`, whose element `first` is
     * the tile's first. The mask is zero before. */
    void (*affine_mask)(const dv_code_tile *tile, const dv_affine *by, const uint8_t *codes, size_t first,
                        size_t elements, uint8_t *mask);

    /* Minimum and range of each group of a tile; of the last, zeros fill up what is missing. False as
     * division_encode. */
    bool (*groups_measure)(const dv_code_tile *tile, const void *src, dv_group *groups);
    void (*groups_encode)(const dv_code_tile *tile, dv_random key, const dv_group *groups, const void *src,
                          uint8_t *codes);
    void (*groups_decode)(const dv_code_tile *tile, const dv_group *groups, const uint8_t *codes, void *dst);

    /* most[c] becomes the largest magnitude in channel c, if that is larger. False if any element is not finite. */
    bool (*channels_measure)(const dv_code_tile *tile, const void *src, float *most);

    /* Codes of at most DV_CHANNELS_TOGETHER channels, each to its own place; of numbers that are not below zero, or of
     * signed ones. */
    void (*channels_encode)(const dv_code_tile *tile, const dv_channel_code *by, bool is_signed, const void *src,
                            uint8_t *const *codes);
    void (*channels_decode)(const dv_code_tile *tile, const dv_channel_code *by, bool is_signed,
                            const uint8_t *const *codes, void *dst);

    void (*to_f32)(dv_type type, const void *src, size_t count, float *dst);
} dv_codec_kernels;

/* An element above its channel's minimum, in steps, is a 16-bit fixed-point number with `bits` bits
 * before the point: plus 16 - bits random bits, cut at the point, it is the code. */
static inline uint32_t dv_fixed_one(int bits) {
    return UINT32_C(1) << (16 - bits);
}

/* What an element is multiplied with to get there, from its channel's step. A hair (2^-22) small, so that
 * rounding never lifts the largest element above the largest code. Channels without a step get 0. */
static inline float dv_fixed_scale(float step, int bits) {
    float scale = (float)dv_fixed_one(bits) * (1.0f - 0x1p-22f) / step; /* for any step, so that loops have no branch */
    return step > 0 ? scale : 0.0f;
}

/* What is subtracted before: the minimum, less half a unit of the fixed point, so that cutting what is
 * behind the unit rounds to the nearest. */
static inline float dv_fixed_offset(float minimum, float scale) {
    float offset = minimum - 0.5f / scale;
    return scale > 0 ? offset : minimum;
}

/* The lowest code of a channel, and the highest. */
static inline float dv_lowest_code(uint32_t width, bool is_signed) {
    return is_signed ? -(float)(UINT32_C(1) << (width - 1)) : 0.0f;
}

static inline float dv_highest_code(uint32_t width, bool is_signed) {
    return (float)((UINT32_C(1) << (width - (is_signed ? 1 : 0))) - 1);
}

/* The step of a group's codes. None is so small that its scale is not finite; a group of one number has none. */
static inline float dv_group_step(float range, int bits) {
    float step = range / (float)((1 << bits) - 1);
    return range > 0 ? (step < 0x1p-100f ? 0x1p-100f : step) : 0.0f;
}

/* What subtractive dither adds to a code again: half a step less the mean of what the random bits stand for, so
 * that its own mean is 0. */
static inline float dv_undither(uint32_t random, int bits) {
    float unit = 1.0f / (float)dv_fixed_one(bits);
    return (0.5f - 0.5f * unit) - (float)(int32_t)random * unit;
}

/* Values from here on are refused as infinity is: half a step beyond the largest could be more than f32
 * holds. With |value| < 2^125 averages are below that, what remains and its range below 2^126 and 2^127, and
 * so a decoded value is below 2^125 + 2^126 + 2^126 and what rounding adds. */
#define DV_VALUE_LIMIT 0x1p125f

/* f16 ends at 65504; a decoded value just above must not become infinite. */
#define DV_F16_MAX 65504.0f

extern const dv_codec_kernels dv_codec_kernels_reference;
extern const dv_codec_kernels dv_codec_kernels_baseline; /* SSE2 or NEON: what every such processor has */
extern const dv_codec_kernels dv_codec_kernels_avx2;
extern const dv_codec_kernels dv_codec_kernels_avx512;

/* The table for the instruction set in use. */
const dv_codec_kernels *dv_codec_kernels_current(void);

#endif
