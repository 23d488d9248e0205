/* The codecs' fast kernels, written once and compiled once per instruction set: a file defines
 * DV_KERNELS, the name of its table, and includes this one.
 *
 * There is hardly an intrinsic here. The loops are shaped so that gcc and clang turn them into
 * vector code: runs of at most DV_RUN elements in local arrays, no branches, the same work for each.
 *
 * A tile is read twice. The first pass takes sum, minimum and maximum of every block, and that is
 * enough for everything: rounding is monotonic, so the smallest HFC of a block is its minimum less
 * its average, and no third pass is needed to find the range. The second pass goes through the
 * tile in the order of its memory, turns runs of elements into fixed-point multiples of the step, and
 * from each chunk of those makes codes. The second pass finds its input in a cache.
 *
 * What is computed, to the last bit, is what reference.c computes. */
#ifndef DV_KERNELS
#error "define DV_KERNELS, the name of the table, before including this file"
#endif

#include "base/float16.h"
#include "codec/kernels/kernels.h"

#include <math.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#define INLINE static inline __attribute__((always_inline))
/* The innermost loops are functions of their own: inlined into large ones they lack registers. */
#define LOOP static __attribute__((noinline))
/* Converts numbers that need not fit, and that are not used if they do not. */
#define ANY_NUMBER __attribute__((no_sanitize("float-cast-overflow")))
/* Before a loop whose vector form is worth unrolling: those that are the time a codec takes. */
#define UNROLL _Pragma("GCC unroll 4")

/* Before a loop each of whose elements has nothing to do with the others, which the compiler cannot know. */
#if defined(__clang__)
#define EACH _Pragma("clang loop vectorize(assume_safety)")
#else
#define EACH _Pragma("GCC ivdep")
#endif

/* Of arrays that loops go through: a vector that begins in the middle of a cache line costs twice. */
#define ALIGNED _Alignas(64)

enum {
    DV_RUN = DV_TILE_CHANNELS, /* elements handled together: arrays of them stay in the L1 cache */
    DV_GROUP = 8,              /* pixels or rows that one step of the first pass takes */
    DV_PADDING = 16,           /* floats of a cache line */
};

INLINE float smaller(float a, float b) {
    return a < b ? a : b;
}

INLINE float larger(float a, float b) {
    return a > b ? a : b;
}

INLINE size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

/* ---- conversion of runs -------------------------------------------------------------------- */

static void f16_to_f32(const uint16_t *src, size_t count, float *dst) {
    size_t i = 0;
#if defined(__F16C__)
    for (; i + 8 <= count; i += 8)
        _mm256_storeu_ps(dst + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(src + i))));
#elif defined(__aarch64__)
    for (; i + 4 <= count; i += 4)
        vst1q_f32(dst + i, vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(src + i))));
#endif
    for (; i < count; i++)
        dst[i] = dv_f16_to_f32(src[i]);
}

static void f32_to_f16(const float *src, size_t count, uint16_t *dst) {
    float clamped[DV_GROUP];
    size_t i = 0;
#if defined(__F16C__) || defined(__aarch64__)
    for (; i + DV_GROUP <= count; i += DV_GROUP) {
        for (size_t j = 0; j < DV_GROUP; j++)
            clamped[j] = larger(-DV_F16_MAX, smaller(src[i + j], DV_F16_MAX));
#if defined(__F16C__)
        _mm_storeu_si128((__m128i *)(dst + i), _mm256_cvtps_ph(_mm256_loadu_ps(clamped), _MM_FROUND_TO_NEAREST_INT));
#else
        vst1_u16(dst + i, vreinterpret_u16_f16(vcvt_f16_f32(vld1q_f32(clamped))));
        vst1_u16(dst + i + 4, vreinterpret_u16_f16(vcvt_f16_f32(vld1q_f32(clamped + 4))));
#endif
    }
#else
    (void)clamped;
#endif
    for (; i < count; i++)
        dst[i] = dv_f16_nearest(larger(-DV_F16_MAX, smaller(src[i], DV_F16_MAX)));
}

INLINE void bf16_to_f32(const uint16_t *src, size_t count, float *dst) {
    for (size_t i = 0; i < count; i++)
        dst[i] = dv_bf16_to_f32(src[i]);
}

static void to_f32(dv_type type, const void *src, size_t count, float *dst) {
    if (type == DV_F32)
        memcpy(dst, src, count * sizeof(float));
    else if (type == DV_BF16)
        bf16_to_f32(src, count, dst);
    else
        f16_to_f32(src, count, dst);
}

static void from_f32(dv_type type, const float *src, size_t count, void *dst) {
    uint16_t *half = dst;
    if (type == DV_F32)
        memcpy(dst, src, count * sizeof(float));
    else if (type == DV_BF16)
        for (size_t i = 0; i < count; i++)
            half[i] = dv_bf16_nearest_number(src[i]);
    else
        f32_to_f16(src, count, half);
}

/* A run of `count` elements as f32: in place if they are, else converted into `buffer`. */
INLINE const float *as_f32(dv_type type, const void *src, size_t count, float *buffer) {
    if (type == DV_F32)
        return src;
    to_f32(type, src, count, buffer);
    return buffer;
}

INLINE const char *element(dv_type type, const void *src, size_t index) {
    return (const char *)src + index * (type == DV_F32 ? 4 : 2);
}

INLINE char *element_in(dv_type type, void *dst, size_t index) {
    return (char *)dst + index * (type == DV_F32 ? 4 : 2);
}

/* Asks for memory that is read soon, while this tile's arithmetic leaves the memory idle: as many
 * bytes as this run has, of the tile that comes next. */
INLINE void prefetch_next(const dv_tile *tile, const void *run, size_t bytes) {
    if (tile->next == 0)
        return;
    const char *soon = (const char *)run + tile->next;
    for (size_t i = 0; i < bytes; i += 64)
        __builtin_prefetch(soon + i, 0, 2);
}

/* ---- streaming ------------------------------------------------------------------------------ */

/* Writes past the caches what is next to nothing to them: half of the memory traffic of a write is reading the line
 * before. The other threads see it after stream_end. */
INLINE void stream_lines(const void *restrict src, size_t bytes, void *restrict dst) {
#if defined(__AVX512BW__)
    for (size_t i = 0; i < bytes; i += 64)
        _mm512_stream_si512((void *)((char *)dst + i), _mm512_load_si512((const char *)src + i));
#elif defined(__AVX__)
    for (size_t i = 0; i < bytes; i += 32)
        _mm256_stream_si256((void *)((char *)dst + i), _mm256_load_si256((const void *)((const char *)src + i)));
#elif defined(__x86_64__)
    for (size_t i = 0; i < bytes; i += 16)
        _mm_stream_si128((void *)((char *)dst + i), _mm_load_si128((const void *)((const char *)src + i)));
#else
    memcpy(dst, src, bytes);
#endif
}

INLINE void stream_end(void) {
#if defined(__x86_64__)
    _mm_sfence();
#endif
}

/* ---- chunks of codes ----------------------------------------------------------------------- */

/* 16 random bits for each element of a chunk: one word serves two neighbours, on a little-endian
 * machine the lower half the first. (8 more than a chunk, for last chunks that are packed in whole bytes.) */
typedef union chunk_random {
    ALIGNED uint32_t words[DV_CHUNK / 2 + 4];
    uint16_t halves[DV_CHUNK + 8];
} chunk_random;

INLINE void dither_chunk(dv_random key, uint32_t chunk, chunk_random *random) {
    for (uint32_t j = 0; j < DV_CHUNK / 2; j++)
        random->words[j] = dv_random_word(key, chunk * (DV_CHUNK / 2) + j);
}

/* A fixed-point number rounded up or down at random, to a code. */
INLINE uint16_t round_at_random(uint16_t fixed, uint16_t random, int bits) {
    return (uint16_t)((uint16_t)(fixed + (uint16_t)(random >> bits)) >> (16 - bits));
}

/* Makes codes of a chunk and packs them. `bits` and, but for a last chunk, `bytes` are constants. */
INLINE void pack_bytes(const uint16_t *restrict fixed, const uint16_t *restrict random, size_t bytes, int bits,
                       uint8_t *restrict dst) {
    for (size_t j = 0; j < bytes; j++) {
        uint16_t packed = 0;
        for (size_t i = 0; i < 8 / (size_t)bits; i++) {
            uint16_t code = round_at_random(fixed[i * bytes + j], random[i * bytes + j], bits);
            packed = (uint16_t)(packed | code << (i * (size_t)bits));
        }
        dst[j] = (uint8_t)packed;
    }
}

/* The same with three bits: the lower two of all codes first, then the third. */
INLINE void pack_three(const uint16_t *restrict fixed, const uint16_t *restrict random, size_t count,
                       uint8_t *restrict dst) {
    uint16_t codes[DV_CHUNK + 8];
    size_t pairs = dv_chunk_bytes(count, 2), bytes = dv_chunk_bytes(count, 1);
    for (size_t j = 0; j < (count == DV_CHUNK ? DV_CHUNK : count + 8); j++)
        codes[j] = round_at_random(fixed[j], random[j], 3);
    for (size_t j = 0; j < pairs; j++) {
        unsigned packed = 0;
        for (size_t i = 0; i < 4; i++)
            packed |= (codes[i * pairs + j] & 3u) << (2 * i);
        dst[j] = (uint8_t)packed;
    }
    for (size_t j = 0; j < bytes; j++) {
        unsigned packed = 0;
        for (size_t i = 0; i < 8; i++)
            /* cppcheck-suppress uninitvar ; set above: 8 bytes - 1 is less than count + 8 */
            packed |= (unsigned)(codes[i * bytes + j] >> 2) << i;
        dst[pairs + j] = (uint8_t)packed;
    }
}

#if defined(__AVX512BW__)
#include "codec/kernels/template_avx512.h"
#endif

/* Numbers behind the last of a chunk that is not whole must be 0, and get 0 for random. Without dither half a code is
 * added in its place. */
LOOP void pack_chunk(dv_random key, bool nearest, uint32_t chunk, const uint16_t *fixed, size_t count, int bits,
                     uint8_t *dst) {
    chunk_random random;
    size_t bytes = dv_chunk_bytes(count, bits);
#if defined(__AVX512BW__)
    if (bits == 2 && count == DV_CHUNK && !nearest) {
        pack_two(key, chunk, fixed, dst);
        return;
    }
#endif
    if (nearest)
        for (size_t j = 0; j < DV_CHUNK; j++)
            random.halves[j] = 0x8000;
    else
        dither_chunk(key, chunk, &random);
    for (size_t j = count; count < DV_CHUNK && j < DV_CHUNK + 8; j++)
        random.halves[j] = 0;
    if (bits == 2 && count == DV_CHUNK)
        pack_bytes(fixed, random.halves, DV_CHUNK / 4, 2, dst);
    else if (bits == 4 && count == DV_CHUNK)
        pack_bytes(fixed, random.halves, DV_CHUNK / 2, 4, dst);
    else if (bits == 2)
        pack_bytes(fixed, random.halves, bytes, 2, dst);
    else if (bits == 1)
        pack_bytes(fixed, random.halves, bytes, 1, dst);
    else if (bits == 3 && count == DV_CHUNK)
        pack_three(fixed, random.halves, DV_CHUNK, dst);
    else if (bits == 3)
        pack_three(fixed, random.halves, count, dst);
    else if (bits == 4)
        pack_bytes(fixed, random.halves, bytes, 4, dst);
    else
        pack_bytes(fixed, random.halves, bytes, 8, dst);
}

/* Codes of a chunk as numbers. `bits` and, but for a last chunk, `bytes` are constants. */
INLINE void unpack_bytes(const uint8_t *restrict src, size_t bytes, int bits, float *restrict levels) {
    for (size_t i = 0; i < 8 / (size_t)bits; i++)
        for (size_t j = 0; j < bytes; j++)
            levels[i * bytes + j] = (float)(src[j] >> (i * (size_t)bits) & ((1 << bits) - 1));
}

INLINE void unpack_three(const uint8_t *restrict src, size_t count, float *restrict levels) {
    size_t pairs = dv_chunk_bytes(count, 2), bytes = dv_chunk_bytes(count, 1);
    unpack_bytes(src, pairs, 2, levels);
    for (size_t i = 0; i < 8; i++)
        for (size_t j = 0; j < bytes && i * bytes + j < count; j++)
            levels[i * bytes + j] += (float)((src[pairs + j] >> i & 1) << 2);
}

/* The same less their dither. */
INLINE void unpack_dithered(const uint8_t *restrict src, const uint16_t *restrict random, size_t bytes, int bits,
                            float *restrict levels) {
    for (size_t i = 0; i < 8 / (size_t)bits; i++)
        for (size_t j = 0; j < bytes; j++) {
            float code = (float)(src[j] >> (i * (size_t)bits) & ((1 << bits) - 1));
            levels[i * bytes + j] = code + dv_undither(random[i * bytes + j] >> bits, bits);
        }
}

/* The level of each code of a chunk, in steps: the code itself. May write 7 levels more than `count`. */
LOOP void unpack_plain(const uint8_t *src, size_t count, int bits, float *levels) {
    size_t bytes = dv_chunk_bytes(count, bits);
    if (bits == 2 && count == DV_CHUNK)
        unpack_bytes(src, DV_CHUNK / 4, 2, levels);
    else if (bits == 4 && count == DV_CHUNK)
        unpack_bytes(src, DV_CHUNK / 2, 4, levels);
    else if (bits == 2)
        unpack_bytes(src, bytes, 2, levels);
    else if (bits == 1)
        unpack_bytes(src, bytes, 1, levels);
    else if (bits == 3 && count == DV_CHUNK)
        unpack_three(src, DV_CHUNK, levels);
    else if (bits == 3)
        unpack_three(src, count, levels);
    else if (bits == 4)
        unpack_bytes(src, bytes, 4, levels);
    else
        unpack_bytes(src, bytes, 8, levels);
}

/* The level of each code with the dither taken off again. Likewise. */
LOOP void unpack_subtractive(dv_random key, uint32_t chunk, const uint8_t *src, size_t count, int bits, float *levels) {
    chunk_random random;
    dither_chunk(key, chunk, &random);
    if (bits == 2 && count == DV_CHUNK) {
        unpack_dithered(src, random.halves, DV_CHUNK / 4, 2, levels);
    } else if (bits == 4 && count == DV_CHUNK) {
        unpack_dithered(src, random.halves, DV_CHUNK / 2, 4, levels);
    } else {
        unpack_plain(src, count, bits, levels);
        for (size_t j = 0; j < count; j++)
            levels[j] += dv_undither(random.halves[j] >> bits, bits);
    }
}

/* 16 fixed-point numbers that the compiler keeps in vector registers, at any address. */
typedef uint16_t halves __attribute__((vector_size(32), aligned(2), may_alias));

/* Collects runs of fixed-point numbers and writes them out by chunks. */
typedef struct packer {
    dv_random key;
    bool nearest; /* no dither */
    int bits;
    uint32_t chunk; /* the next */
    uint8_t *dst;
    size_t fill;
    ALIGNED uint16_t fixed[DV_CHUNK + DV_RUN + 16]; /* a run may write a vector further */
} packer;

INLINE void packer_write(packer *p, size_t first, size_t count) {
    pack_chunk(p->key, p->nearest, p->chunk++, p->fixed + first, count, p->bits, p->dst);
    p->dst += dv_chunk_bytes(count, p->bits);
}

/* Takes over the `count` numbers that the caller has put behind the first `fill`. */
INLINE void packer_add(packer *p, size_t count) {
    size_t end = p->fill + count, done = 0;
    for (; end - done >= DV_CHUNK; done += DV_CHUNK)
        packer_write(p, done, DV_CHUNK);
    p->fill = end - done;
    for (size_t i = 0; done && i < p->fill; i += 16) /* whole vectors; what is behind the last is of no account */
        *(halves *)(p->fixed + i) = *(const halves *)(p->fixed + done + i);
}

static void packer_finish(packer *p) {
    for (size_t i = p->fill; i < DV_CHUNK + DV_GROUP; i++)
        p->fixed[i] = 0;
    if (p->fill)
        packer_write(p, 0, p->fill);
}

/* Hands out runs of levels from a stream of codes. */
typedef struct unpacker {
    dv_random key;
    int bits;
    bool subtractive;
    uint32_t chunk;                                         /* the next */
    const uint8_t *src;                                     /* NULL: there are no codes, and all levels are 0 */
    size_t left;                                            /* elements not yet unpacked */
    size_t first, last;                                     /* those unpacked but not taken: levels[first .. last) */
    ALIGNED float levels[DV_RUN + 2 * DV_CHUNK + DV_GROUP]; /* a vector more can be read */
} unpacker;

static void unpacker_begin(unpacker *u, const dv_tile *tile, dv_random key, const uint8_t *codes) {
    u->key = key;
    u->bits = tile->bits;
    u->subtractive = tile->dither == DV_DITHER_SUBTRACTIVE;
    u->chunk = 0;
    u->src = codes;
    u->left = tile->channels * dv_tile_pixels(tile);
    u->first = u->last = 0;
}

static void unpacker_read(unpacker *u) {
    size_t count = least(u->left, DV_CHUNK);
    if (u->src == NULL)
        memset(u->levels + u->last, 0, count * sizeof *u->levels);
    else if (u->subtractive)
        unpack_subtractive(u->key, u->chunk, u->src, count, u->bits, u->levels + u->last);
    else
        unpack_plain(u->src, count, u->bits, u->levels + u->last);
    u->chunk++;
    if (u->src != NULL)
        u->src += dv_chunk_bytes(count, u->bits);
    u->left -= count;
    u->last += count;
}

/* The next `count` (at most DV_RUN) levels. */
INLINE const float *unpacker_take(unpacker *u, size_t count) {
    if (u->last - u->first < count) {
        memmove(u->levels, u->levels + u->first, (u->last - u->first) * sizeof *u->levels);
        u->last -= u->first;
        u->first = 0;
        while (u->last < count)
            unpacker_read(u);
    }
    const float *levels = u->levels + u->first;
    u->first += count;
    return levels;
}

/* ---- statistics ---------------------------------------------------------------------------- */

/* Sum, minimum and maximum of `count` columns side by side: channels in NHWC, columns of pixels in
 * NCHW. */
typedef struct columns {
    ALIGNED float sum[DV_RUN + DV_PADDING];
    float minimum[DV_RUN + DV_PADDING], maximum[DV_RUN + DV_PADDING]; /* a vector more can be read */
} columns;

static void columns_clear(columns *all, size_t count) {
    for (size_t i = 0; i < count; i++) {
        all->sum[i] = 0;
        all->minimum[i] = INFINITY;
        all->maximum[i] = -INFINITY;
    }
}

/* Adds `items` rows, each `count` long and `stride` after the one before. `items` is a constant. */
INLINE void columns_add_items(columns *all, size_t first, const float *restrict x, size_t stride, size_t items,
                              size_t count) {
    float *restrict sums = all->sum + first, *restrict minima = all->minimum + first,
                    *restrict maxima = all->maximum + first;
    for (size_t i = 0; i < count; i++) {
        float sum = sums[i], minimum = minima[i], maximum = maxima[i];
        for (size_t j = 0; j < items; j++) {
            float value = x[j * stride + i];
            sum += value;
            minimum = smaller(value, minimum);
            maximum = larger(value, maximum);
        }
        sums[i] = sum;
        minima[i] = minimum;
        maxima[i] = maximum;
    }
}

LOOP void columns_add(columns *all, size_t first, const float *x, size_t stride, size_t items, size_t count) {
    for (; items >= DV_GROUP; items -= DV_GROUP, x += DV_GROUP * stride)
        columns_add_items(all, first, x, stride, DV_GROUP, count);
    switch (items) { /* what is left at the end of a map is often the same: 28 = 3 x 8 + 4, 14 = 8 + 6, 7 */
    case 7:
        columns_add_items(all, first, x, stride, 7, count);
        break;
    case 6:
        columns_add_items(all, first, x, stride, 6, count);
        break;
    case 4:
        columns_add_items(all, first, x, stride, 4, count);
        break;
    default:
        for (; items > 0; items--, x += stride)
            columns_add_items(all, first, x, stride, 1, count);
    }
}

/* The range of the HFC, and zero or, after anything that cannot be packed, NaN or more. */
typedef struct residue {
    ALIGNED float minimum[DV_RUN], maximum[DV_RUN], poison[DV_RUN];
} residue;

static void residue_clear(residue *rest, size_t count) {
    for (size_t i = 0; i < count; i++) {
        rest->minimum[i] = INFINITY;
        rest->maximum[i] = -INFINITY;
        rest->poison[i] = 0;
    }
}

/* Zero for a block whose values may be packed, else NaN or one. */
INLINE float poison_of(float sum, float minimum, float maximum) {
    return sum * 0.0f + (larger(maximum, -minimum) < DV_VALUE_LIMIT ? 0.0f : 1.0f);
}

/* Zero for zero: whole numbers can be summed up by vectors, whose order is none of their business. */
INLINE uint32_t poison_bits(float poison) {
    return dv_float_bits(poison) << 1;
}

/* True if everything could be packed. */
static bool residue_is_clean(const residue *rest, size_t count) {
    uint32_t poison = 0;
    for (size_t i = 0; i < count; i++)
        poison |= poison_bits(rest->poison[i]);
    return poison == 0;
}

/* Averages of the blocks whose columns, from `first` on, are complete, `pixels` each, and what they leave. */
static void average_blocks(const columns *all, size_t first, size_t count, float pixels, uint16_t *averages,
                           residue *rest) {
    const float *sums = all->sum + first, *minima = all->minimum + first, *maxima = all->maximum + first;
    for (size_t i = 0; i < count; i++) {
        float minimum = minima[i], maximum = maxima[i];
        float mean = sums[i] / pixels;
        averages[i] = dv_bf16_nearest_number(minimum == maximum ? maximum : mean);
        float low = dv_bf16_to_f32(averages[i]);
        rest->minimum[i] = smaller(minimum - low, rest->minimum[i]);
        rest->maximum[i] = larger(maximum - low, rest->maximum[i]);
        rest->poison[i] += poison_of(sums[i], minimum, maximum);
    }
}

/* What turns an element less its average into fixed point. */
typedef struct scales {
    ALIGNED float offset[DV_RUN], scale[DV_RUN];
} scales;

/* Chooses minimum and step of `count` channels. False if any of them was not finite. */
static bool choose_steps(const residue *rest, size_t count, int bits, uint16_t *minima, uint16_t *steps, scales *to) {
    const float levels = (float)((1 << bits) - 1);
    uint32_t poison = 0;
    for (size_t i = 0; i < count; i++) {
        minima[i] = dv_bf16_down(rest->minimum[i] + 0.0f);
        float minimum = dv_bf16_to_f32(minima[i]), range = rest->maximum[i] - minimum;
        float wanted = larger(range / levels, DV_STEP_MIN);
        bool constant = rest->minimum[i] == rest->maximum[i];
        steps[i] = (uint16_t)(dv_bf16_up(constant ? range : wanted) | (constant ? 0x8000 : 0));
        float step = dv_bf16_to_f32(steps[i]);
        to->scale[i] = dv_fixed_scale(step, bits);
        to->offset[i] = dv_fixed_offset(minimum, to->scale[i]);
        poison |= poison_bits(rest->poison[i] + minimum * 0.0f + step * 0.0f);
    }
    return poison == 0;
}

/* ---- the second pass ----------------------------------------------------------------------- */

/* The second pass goes by runs: `rows` rows of `width` elements that share their averages, because
 * they are pixels (NHWC) or rows of pixels (NCHW) of the same blocks. */

/* Rows shorter than this are first repeated to longer ones. */
enum { DV_SHORT = 32 };

/* How many rows of `width` to make one of. */
INLINE size_t repetitions(size_t width, size_t rows) {
    return width < DV_SHORT ? least(rows, DV_RUN / width) : 1;
}

/* Repeats the first `width` values `times` times. */
INLINE void repeat(float *values, size_t width, size_t times) {
    for (size_t i = 1; i < times; i++)
        for (size_t j = 0; j < width; j++)
            values[i * width + j] = values[j];
}

#if !defined(__AVX512BW__)
/* What is done of a row of `width` elements by hand: nothing, but those `ahead` bytes further on are asked for. */
INLINE size_t quantize_vectors(const float *x, size_t width, const float *low, const float *offset, const float *scale,
                               uint16_t *fixed, ptrdiff_t ahead) {
    (void)low, (void)offset, (void)scale, (void)fixed;
    for (size_t i = 0; ahead && i < width; i += 16)
        __builtin_prefetch((const char *)(x + i) + ahead, 0, 2);
    return 0;
}
#endif

/* Rows of elements to fixed point, each element of a row with its own average, offset and scale. */
LOOP void quantize(const float *restrict x, size_t stride, size_t rows, size_t width, const float *restrict low,
                   const float *restrict offset, const float *restrict scale, uint16_t *restrict fixed,
                   ptrdiff_t ahead) {
    for (size_t j = 0; j < rows; j++, x += stride, fixed += width) {
        size_t done = quantize_vectors(x, width, low, offset, scale, fixed, ahead);
        UNROLL for (size_t i = done; i < width; i++) fixed[i] =
            (uint16_t)(int32_t)((x[i] - low[i] - offset[i]) * scale[i]);
    }
}

/* Rows of levels to elements. */
LOOP void restore(const float *restrict levels, size_t stride, size_t rows, size_t width, const float *restrict base,
                  const float *restrict scale, float *restrict out) {
    for (size_t j = 0; j < rows; j++, levels += width, out += stride)
        UNROLL for (size_t i = 0; i < width; i++) out[i] = base[i] + scale[i] * levels[i];
}

/* The same, rounded to bf16. */
LOOP void restore_bf16(const float *restrict levels, size_t stride, size_t rows, size_t width,
                       const float *restrict base, const float *restrict scale, uint16_t *restrict out) {
    for (size_t j = 0; j < rows; j++, levels += width, out += stride)
        UNROLL for (size_t i = 0; i < width; i++) out[i] = dv_bf16_nearest_number(base[i] + scale[i] * levels[i]);
}

/* Minimum and step of each channel for decoding; a channel of one HFC value is its minimum alone. Where the HFC is not
 * kept both are 0. */
static void decoding_scales(const dv_tile *tile, const dv_tile_record *record, float *minimum, float *step) {
    if (!tile->hfc) {
        memset(minimum, 0, tile->channels * sizeof *minimum);
        memset(step, 0, tile->channels * sizeof *step);
        return;
    }
    for (size_t i = 0; i < tile->channels; i++) {
        float low = dv_bf16_to_f32(record->minima[i]), wide = dv_bf16_to_f32(record->steps[i]);
        minimum[i] = wide < 0 ? low - wide : low;
        step[i] = wide < 0 ? 0 : wide;
    }
}

/* ---- pairs of channels ---------------------------------------------------------------------- */
#include "codec/kernels/template_pairs.h"

/* ---- channels last ------------------------------------------------------------------------- */
#include "codec/kernels/template_nhwc.h"

/* ---- channels first ------------------------------------------------------------------------ */
#include "codec/kernels/template_nchw.h"

/* ---- bits ---------------------------------------------------------------------------------- */

enum { SIGN_BYTES = DV_CHUNK / 8 };

/* Packs the signs of `count` numbers; any that is not finite poisons. `bytes` is a constant but for a last chunk. */
INLINE void pack_signs_f32(const float *restrict x, size_t count, size_t bytes, uint8_t *restrict dst,
                           float poison[restrict SIGN_BYTES]) {
    for (size_t j = 0; j < bytes; j++) {
        unsigned packed = 0;
        for (size_t i = 0; i < 8 && (count == DV_CHUNK || i * bytes + j < count); i++) {
            float value = x[i * bytes + j];
            packed |= (unsigned)(value > 0) << i;
            poison[j] += value * 0.0f;
        }
        dst[j] = (uint8_t)packed;
    }
}

static bool bits_encode_f32(const float *src, size_t count, uint8_t *packed) {
    float poison[SIGN_BYTES] = {0}, sum = 0;
    size_t whole = count / DV_CHUNK * DV_CHUNK, rest = count - whole;
    for (size_t done = 0; done < whole; done += DV_CHUNK)
        pack_signs_f32(src + done, DV_CHUNK, SIGN_BYTES, packed + done / 8, poison);
    pack_signs_f32(src + whole, rest, dv_chunk_bytes(rest, 1), packed + whole / 8, poison);
    for (size_t j = 0; j < SIGN_BYTES; j++)
        sum += poison[j];
    return sum == 0;
}

/* The same of 16-bit floats, as they lie: positive ones are 1 to infinity, those above it NaN. */
INLINE void pack_signs_half(const uint16_t *restrict x, size_t count, size_t bytes, uint16_t infinity,
                            uint8_t *restrict dst, uint16_t poison[restrict SIGN_BYTES]) {
    for (size_t j = 0; j < bytes; j++) {
        uint16_t packed = 0;
        for (size_t i = 0; i < 8 && (count == DV_CHUNK || i * bytes + j < count); i++) {
            uint16_t value = x[i * bytes + j];
            packed |= (uint16_t)(((uint16_t)(value - 1) < infinity) << i);
            poison[j] |= (value & infinity) == infinity;
        }
        dst[j] = (uint8_t)packed;
    }
}

static bool bits_encode_half(const uint16_t *src, size_t count, uint16_t infinity, uint8_t *packed) {
    uint16_t poison[SIGN_BYTES] = {0}, any = 0;
    size_t whole = count / DV_CHUNK * DV_CHUNK, rest = count - whole;
    for (size_t done = 0; done < whole; done += DV_CHUNK)
        pack_signs_half(src + done, DV_CHUNK, SIGN_BYTES, infinity, packed + done / 8, poison);
    pack_signs_half(src + whole, rest, dv_chunk_bytes(rest, 1), infinity, packed + whole / 8, poison);
    for (size_t j = 0; j < SIGN_BYTES; j++)
        any |= poison[j];
    return !any;
}

static bool bits_encode(dv_type type, const void *src, size_t count, uint8_t *packed) {
    if (type == DV_F32)
        return bits_encode_f32(src, count, packed);
    return bits_encode_half(src, count, type == DV_BF16 ? 0x7f80 : 0x7c00, packed);
}

static void bits_decode(dv_type type, const uint8_t *packed, size_t count, void *dst) {
    for (size_t done = 0; done < count; done += DV_CHUNK) {
        float levels[DV_CHUNK + 8];
        size_t now = least(DV_CHUNK, count - done);
        unpack_plain(packed + done / 8, now, 1, levels);
        from_f32(type, levels, now, element_in(type, dst, done));
    }
}

#include "codec/kernels/template_mask.h"

/* ---- bf16 ---------------------------------------------------------------------------------- */
#include "codec/kernels/template_bf16.h"

/* ---- codes by channels and by groups --------------------------------------------------------- */
#include "codec/kernels/template_codes.h"
#include "codec/kernels/template_groups.h"

/* ---- lean ---------------------------------------------------------------------------------- */
#include "codec/kernels/template_lean.h"

/* ---- channels of different widths ------------------------------------------------------------ */
#include "codec/kernels/template_channels.h"

/* ---- the table ----------------------------------------------------------------------------- */

static bool division_encode(const dv_tile *tile, dv_random key, const void *src, const dv_tile_record *record) {
    return (tile->layout == DV_NHWC ? nhwc_encode : nchw_encode)(tile, key, src, record);
}

static void division_decode(const dv_tile *tile, dv_random key, const dv_tile_record *record, void *dst) {
    (tile->layout == DV_NHWC ? nhwc_decode : nchw_decode)(tile, key, record, dst);
}

const dv_codec_kernels DV_KERNELS = {
    .division_encode = division_encode,
    .division_decode = division_decode,
    .lean_encode = lean_encode,
    .lean_decode = lean_decode,
    .lean_mask = lean_mask,
    .bits_encode = bits_encode,
    .bits_decode = bits_decode,
    .mask_apply = mask_apply,
    .bf16_encode = bf16_encode,
    .bf16_decode = bf16_decode,
    .affine_encode = affine_encode,
    .affine_decode = affine_decode,
    .affine_mask = affine_mask,
    .groups_measure = groups_measure,
    .groups_encode = groups_encode,
    .groups_decode = groups_decode,
    .channels_measure = channels_measure,
    .channels_encode = channels_encode,
    .channels_decode = channels_decode,
    .to_f32 = to_f32,
};
