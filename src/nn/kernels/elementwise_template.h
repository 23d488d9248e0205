/* The layers' fast kernels, written once and compiled once per instruction set: a file defines
 * DV_KERNELS, the name of its table, and includes this one.
 *
 * There is no intrinsic here. The loops are shaped so that gcc and clang turn them into vector code: one
 * chunk or one tile of channels at a time, no branches, the same work for each element. A function marked
 * LOOP has one body per element type, chosen by a constant, and is not inlined: inlined into large ones
 * loops lack registers.
 *
 * What is computed, to the last bit, is what elementwise_reference.c computes. */
#ifndef DV_KERNELS
#error "define DV_KERNELS, the name of the table, before including this file"
#endif

#include "base/float16.h"
#include "nn/kernels/elementwise.h"

#define INLINE static inline __attribute__((always_inline))
#define LOOP static __attribute__((noinline))

/* The next loop's iterations do not depend on each other. Where an output may be the memory of an input this
 * says what `restrict` would deny: they meet in the same element only. */
#if defined(__clang__)
#define EACH _Pragma("clang loop vectorize(assume_safety)")
#else
#define EACH _Pragma("GCC ivdep")
#endif

/* Calls `body` with the type as a constant. */
#define BY_TYPE(body, type, ...)        \
    do {                                \
        if ((type) == DV_F32)           \
            body(DV_F32, __VA_ARGS__);  \
        else                            \
            body(DV_BF16, __VA_ARGS__); \
    } while (0)

/* ---- elements ------------------------------------------------------------------------------- */

INLINE float load(dv_type type, const void *src, size_t index) {
    return type == DV_F32 ? ((const float *)src)[index] : dv_bf16_to_f32(((const uint16_t *)src)[index]);
}

INLINE void store(dv_type type, void *dst, size_t index, float value) {
    if (type == DV_F32)
        ((float *)dst)[index] = value;
    else
        ((uint16_t *)dst)[index] = dv_bf16_nearest(value);
}

INLINE void put(dv_type type, void *dst, size_t index, float value, bool accumulate) {
    store(type, dst, index, accumulate ? load(type, dst, index) + value : value);
}

INLINE const void *at(dv_type type, const void *src, size_t index) {
    return (const char *)src + index * (type == DV_F32 ? 4 : 2);
}

INLINE void *at_in(dv_type type, void *dst, size_t index) {
    return (char *)dst + index * (type == DV_F32 ? 4 : 2);
}

INLINE float rectified(float value) {
    return value <= 0 ? 0 : value;
}

INLINE size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

/* ---- chunks ----------------------------------------------------------------------------------- */

/* The chunk of a span at hand. */
typedef struct chunk {
    size_t first, count; /* its elements, counted from the image's first */
    size_t channel;      /* of its first element */
} chunk;

INLINE chunk chunk_first(const dv_span *span) {
    return (chunk){span->begin, least(DV_CHUNK, span->end - span->begin), span->begin % span->channels};
}

/* `step` is DV_CHUNK mod channels. */
INLINE void chunk_next(const dv_span *span, chunk *now, size_t step) {
    now->first += now->count;
    now->count = least(DV_CHUNK, span->end - now->first);
    now->channel += step;
    now->channel -= now->channel >= span->channels ? span->channels : 0;
}

/* NOLINTBEGIN(bugprone-macro-parentheses): `now` is declared here */
#define FOR_CHUNKS(now, span)                                                     \
    for (size_t step_ = DV_CHUNK % (span)->channels, once_ = 1; once_; once_ = 0) \
        for (chunk now = chunk_first(span); now.first < (span)->end; chunk_next(span, &now, step_))
/* NOLINTEND(bugprone-macro-parentheses) */

/* ---- masks -------------------------------------------------------------------------------------- */

INLINE unsigned positive(dv_type type, const void *src, size_t index) {
    if (type == DV_F32)
        return ((const float *)src)[index] > 0;
    return (uint16_t)(((const uint16_t *)src)[index] - 1) < 0x7f80; /* neither 0, nor negative, nor NaN */
}

/* Bits of a whole chunk: 32 bytes, bit i of byte j for element 32 i + j. */
INLINE void pack_whole(dv_type type, const void *restrict y, uint8_t *restrict mask) {
    for (size_t j = 0; j < DV_CHUNK / 8; j++) {
        unsigned packed = 0;
        for (size_t i = 0; i < 8; i++)
            packed |= positive(type, y, i * (DV_CHUNK / 8) + j) << i;
        mask[j] = (uint8_t)packed;
    }
}

INLINE void pack_rest(dv_type type, const void *restrict y, size_t count, uint8_t *restrict mask) {
    size_t bytes = dv_chunk_bytes(count, 1);
    for (size_t j = 0; j < bytes; j++) {
        unsigned packed = 0;
        for (size_t i = 0; i * bytes + j < count; i++)
            packed |= positive(type, y, i * bytes + j) << i;
        mask[j] = (uint8_t)packed;
    }
}

INLINE void pack_body(dv_type type, const void *y, size_t count, uint8_t *mask) {
    if (count == DV_CHUNK)
        pack_whole(type, y, mask);
    else
        pack_rest(type, y, count, mask);
}

/* One bit for each of a chunk's elements, set where it is positive. */
LOOP void pack(dv_type type, const void *y, size_t count, uint8_t *mask) {
    BY_TYPE(pack_body, type, y, count, mask);
}

INLINE float where(unsigned bit, float value) {
    return dv_bits_float(dv_float_bits(value) & (0 - (uint32_t)bit));
}

INLINE void masked_body(dv_type type, const void *restrict x, const uint8_t *restrict mask, size_t count,
                        float *restrict z) {
    if (count == DV_CHUNK) {
        for (size_t i = 0; i < 8; i++)
            for (size_t j = 0; j < DV_CHUNK / 8; j++)
                z[i * (DV_CHUNK / 8) + j] = where(mask[j] >> i & 1u, load(type, x, i * (DV_CHUNK / 8) + j));
        return;
    }
    size_t bytes = dv_chunk_bytes(count, 1);
    for (size_t i = 0; i < count; i++)
        z[i] = where(mask[i % bytes] >> (i / bytes) & 1u, load(type, x, i));
}

/* z = x where a bit is set, else 0. */
LOOP void masked(dv_type type, const void *x, const uint8_t *mask, size_t count, float *z) {
    BY_TYPE(masked_body, type, x, mask, count, z);
}

LOOP void widen(const uint16_t *restrict x, size_t count, float *restrict z) {
    for (size_t i = 0; i < count; i++)
        z[i] = dv_bf16_to_f32(x[i]);
}

/* The chunk of diff as f32, masked if there is a mask: where it is, or in `buffer`. */
INLINE const float *load_diff(const dv_span *span, const chunk *now, const void *diff, const uint8_t *mask,
                              float *buffer) {
    const void *x = at(span->type, diff, now->first);
    if (!mask && span->type == DV_F32)
        return x;
    if (mask)
        masked(span->type, x, mask + now->first / 8, now->count, buffer);
    else
        widen(x, now->count, buffer);
    return buffer;
}

/* ---- batch norm ------------------------------------------------------------------------------- */

INLINE void statistics_body(dv_type type, const void *restrict x, size_t count, const float *restrict shift,
                            float *restrict sums, float *restrict squares) {
    for (size_t i = 0; i < count; i++) {
        float distance = load(type, x, i) - shift[i];
        sums[i] += distance;
        squares[i] += distance * distance;
    }
}

LOOP void statistics_chunk(dv_type type, const void *x, size_t count, const float *shift, float *sums, float *squares) {
    BY_TYPE(statistics_body, type, x, count, shift, sums, squares);
}

static void statistics(const dv_span *span, const void *x, const float *shift, float *sums, float *squares) {
    FOR_CHUNKS(now, span)
    statistics_chunk(span->type, at(span->type, x, now.first), now.count, shift + now.channel, sums + now.channel,
                     squares + now.channel);
}

/* A chunk of normalize: extended arrays from its first channel on. */
typedef struct normalization {
    const float *mean, *scale, *bias;
} normalization;

INLINE void normalize_body(dv_type type, const void *x, const void *addend, bool relu, size_t count,
                           const normalization *by, void *out) {
    const float *restrict mean = by->mean, *restrict scale = by->scale, *restrict bias = by->bias;
    EACH for (size_t i = 0; i < count; i++) {
        float y = (load(type, x, i) - mean[i]) * scale[i] + bias[i];
        if (addend)
            y += load(type, addend, i);
        store(type, out, i, relu ? rectified(y) : y);
    }
}

LOOP void normalize_chunk(dv_type type, const void *x, bool relu, size_t count, const normalization *by, void *out) {
    if (relu)
        BY_TYPE(normalize_body, type, x, NULL, true, count, by, out);
    else
        BY_TYPE(normalize_body, type, x, NULL, false, count, by, out);
}

LOOP void normalize_add_chunk(dv_type type, const void *x, const void *addend, bool relu, size_t count,
                              const normalization *by, void *out) {
    if (relu)
        BY_TYPE(normalize_body, type, x, addend, true, count, by, out);
    else
        BY_TYPE(normalize_body, type, x, addend, false, count, by, out);
}

static void normalize(const dv_span *span, const void *x, const void *addend, const float *mean, const float *scale,
                      const float *bias, bool relu, void *out, uint8_t *mask) {
    FOR_CHUNKS(now, span) {
        normalization by = {mean + now.channel, scale + now.channel, bias + now.channel};
        const void *from = at(span->type, x, now.first);
        void *to = at_in(span->type, out, now.first);
        if (addend)
            normalize_add_chunk(span->type, from, at(span->type, addend, now.first), relu, now.count, &by, to);
        else
            normalize_chunk(span->type, from, relu, now.count, &by, to);
        if (mask)
            pack(span->type, to, now.count, mask + now.first / 8);
    }
}

INLINE void sums_body(dv_type type, const void *restrict x, const float *restrict dz, size_t count,
                      const float *restrict mean, float *restrict sums, float *restrict products) {
    for (size_t i = 0; i < count; i++) {
        sums[i] += dz[i];
        products[i] += dz[i] * (load(type, x, i) - mean[i]);
    }
}

LOOP void sums_chunk(dv_type type, const void *x, const float *dz, size_t count, const float *mean, float *sums,
                     float *products) {
    BY_TYPE(sums_body, type, x, dz, count, mean, sums, products);
}

static void normalize_sums(const dv_span *span, const void *diff, const uint8_t *mask, const void *x, const float *mean,
                           float *sums, float *products) {
    float buffer[DV_CHUNK];
    FOR_CHUNKS(now, span) {
        const float *dz = load_diff(span, &now, diff, mask, buffer);
        sums_chunk(span->type, at(span->type, x, now.first), dz, now.count, mean + now.channel, sums + now.channel,
                   products + now.channel);
    }
}

INLINE void backward_body(dv_type type, const void *x, const float *dz, size_t count, const dv_normalize_diff *by,
                          bool accumulate, void *dx) {
    const float *restrict mean = by->mean, *restrict scale = by->scale, *restrict slope = by->slope;
    const float *restrict offset = by->offset;
    EACH for (size_t i = 0; i < count; i++)
        put(type, dx, i, dz[i] * scale[i] + (load(type, x, i) - mean[i]) * slope[i] + offset[i], accumulate);
}

LOOP void backward_chunk(dv_type type, const void *x, const float *dz, size_t count, const dv_normalize_diff *by,
                         bool accumulate, void *dx) {
    if (accumulate)
        BY_TYPE(backward_body, type, x, dz, count, by, true, dx);
    else
        BY_TYPE(backward_body, type, x, dz, count, by, false, dx);
}

INLINE void scaled_body(dv_type type, const float *x, float scale, size_t count, bool accumulate, void *out) {
    EACH for (size_t i = 0; i < count; i++) put(type, out, i, x[i] * scale, accumulate);
}

/* out = x * scale, or out += x * scale. */
LOOP void scaled(dv_type type, const float *x, float scale, size_t count, bool accumulate, void *out) {
    if (accumulate)
        BY_TYPE(scaled_body, type, x, scale, count, true, out);
    else
        BY_TYPE(scaled_body, type, x, scale, count, false, out);
}

/* Element `i` of a chunk of normalize, as it was where its bit is set. */
INLINE void again_element(dv_type type, const void *x, const void *addend, size_t i, unsigned bit,
                          const normalization *by, void *out) {
    float y = (load(type, x, i) - by->mean[i]) * by->scale[i] + by->bias[i];
    if (addend)
        y += load(type, addend, i);
    store(type, out, i, where(bit, y));
}

INLINE void again_body(dv_type type, const void *x, const void *addend, const uint8_t *mask, size_t count,
                       const normalization *by, void *out) {
    if (count == DV_CHUNK) {
        for (size_t i = 0; i < 8; i++)
            EACH for (size_t j = 0; j < DV_CHUNK / 8; j++)
                again_element(type, x, addend, i * (DV_CHUNK / 8) + j, mask[j] >> i & 1u, by, out);
        return;
    }
    size_t bytes = dv_chunk_bytes(count, 1);
    for (size_t i = 0; i < count; i++)
        again_element(type, x, addend, i, mask[i % bytes] >> (i / bytes) & 1u, by, out);
}

LOOP void again_chunk(dv_type type, const void *x, const uint8_t *mask, size_t count, const normalization *by,
                      void *out) {
    BY_TYPE(again_body, type, x, NULL, mask, count, by, out);
}

LOOP void again_add_chunk(dv_type type, const void *x, const void *addend, const uint8_t *mask, size_t count,
                          const normalization *by, void *out) {
    BY_TYPE(again_body, type, x, addend, mask, count, by, out);
}

static void normalize_again(const dv_span *span, const void *x, const void *addend, const float *mean,
                            const float *scale, const float *bias, const uint8_t *mask, void *out) {
    if (!mask) {
        normalize(span, x, addend, mean, scale, bias, false, out, NULL);
        return;
    }
    FOR_CHUNKS(now, span) {
        normalization by = {mean + now.channel, scale + now.channel, bias + now.channel};
        const void *from = at(span->type, x, now.first);
        const uint8_t *set = mask + now.first / 8;
        void *to = at_in(span->type, out, now.first);
        if (addend)
            again_add_chunk(span->type, from, at(span->type, addend, now.first), set, now.count, &by, to);
        else
            again_chunk(span->type, from, set, now.count, &by, to);
    }
}

static void normalize_backward(const dv_span *span, const void *diff, const uint8_t *mask, const void *x,
                               const dv_normalize_diff *by, void *dx, bool accumulate_dx, void *passed,
                               bool accumulate_passed) {
    float buffer[DV_CHUNK];
    FOR_CHUNKS(now, span) {
        const float *dz = load_diff(span, &now, diff, mask, buffer);
        dv_normalize_diff here = {by->mean + now.channel, by->scale + now.channel, by->slope + now.channel,
                                  by->offset + now.channel};
        void *to = passed ? at_in(span->type, passed, now.first) : NULL;
        if (to && dx == diff) /* dz may be what is overwritten next */
            scaled(span->type, dz, 1, now.count, accumulate_passed, to);
        if (dx)
            backward_chunk(span->type, at(span->type, x, now.first), dz, now.count, &here, accumulate_dx,
                           at_in(span->type, dx, now.first));
        if (to && dx != diff) /* it may be added to dx */
            scaled(span->type, dz, 1, now.count, accumulate_passed, to);
    }
}

LOOP void fold_row(float *restrict sums, size_t count, double *restrict totals) {
    for (size_t c = 0; c < count; c++) {
        totals[c] += (double)sums[c];
        sums[c] = 0;
    }
}

static void fold(size_t channels, float *sums, double *totals) {
    size_t entries = dv_extended(channels);
    for (size_t first = 0; first < entries; first += channels)
        fold_row(sums + first, least(channels, entries - first), totals);
}

/* ---- element by element ------------------------------------------------------------------------ */

INLINE void rectify_body(dv_type type, const void *x, size_t count, void *out) {
    EACH for (size_t i = 0; i < count; i++) store(type, out, i, rectified(load(type, x, i)));
}

LOOP void rectify_chunk(dv_type type, const void *x, size_t count, void *out) {
    BY_TYPE(rectify_body, type, x, count, out);
}

static void rectify(const dv_span *span, const void *x, void *out, uint8_t *mask) {
    FOR_CHUNKS(now, span) {
        void *to = at_in(span->type, out, now.first);
        rectify_chunk(span->type, at(span->type, x, now.first), now.count, to);
        if (mask)
            pack(span->type, to, now.count, mask + now.first / 8);
    }
}

INLINE void leak_body(dv_type type, const void *x, float slope, size_t count, void *out) {
    EACH for (size_t i = 0; i < count; i++) {
        float value = load(type, x, i);
        store(type, out, i, value <= 0 ? value * slope : value);
    }
}

LOOP void leak_chunk(dv_type type, const void *x, float slope, size_t count, void *out) {
    BY_TYPE(leak_body, type, x, slope, count, out);
}

static void leak(const dv_span *span, const void *x, float slope, void *out, uint8_t *mask) {
    FOR_CHUNKS(now, span) {
        void *to = at_in(span->type, out, now.first);
        leak_chunk(span->type, at(span->type, x, now.first), slope, now.count, to);
        if (mask)
            pack(span->type, to, now.count, mask + now.first / 8);
    }
}

INLINE void factors_body(const uint8_t *restrict mask, float slope, size_t bytes, size_t count,
                         float *restrict factors) {
    for (size_t i = 0; i * bytes < count; i++)
        for (size_t j = 0; j < least(bytes, count - i * bytes); j++)
            factors[i * bytes + j] = mask[j] >> i & 1u ? 1 : slope;
}

/* 1 where a chunk's bit is set, else slope. */
LOOP void find_factors(const uint8_t *mask, float slope, size_t count, float *factors) {
    if (count == DV_CHUNK)
        factors_body(mask, slope, DV_CHUNK / 8, DV_CHUNK, factors);
    else
        factors_body(mask, slope, dv_chunk_bytes(count, 1), count, factors);
}

INLINE void multiply_body(dv_type type, const void *x, const float *factors, size_t count, bool accumulate, void *out) {
    EACH for (size_t i = 0; i < count; i++) put(type, out, i, load(type, x, i) * factors[i], accumulate);
}

LOOP void multiply(dv_type type, const void *x, const float *factors, size_t count, bool accumulate, void *out) {
    if (accumulate)
        BY_TYPE(multiply_body, type, x, factors, count, true, out);
    else
        BY_TYPE(multiply_body, type, x, factors, count, false, out);
}

static void leak_backward(const dv_span *span, const void *x, const uint8_t *mask, float slope, bool accumulate,
                          void *out) {
    float factors[DV_CHUNK];
    FOR_CHUNKS(now, span) {
        find_factors(mask + now.first / 8, slope, now.count, factors);
        multiply(span->type, at(span->type, x, now.first), factors, now.count, accumulate,
                 at_in(span->type, out, now.first));
    }
}

static void apply_mask(const dv_span *span, const void *x, const uint8_t *mask, float scale, bool accumulate,
                       void *out) {
    float buffer[DV_CHUNK];
    FOR_CHUNKS(now, span) {
        masked(span->type, at(span->type, x, now.first), mask + now.first / 8, now.count, buffer);
        scaled(span->type, buffer, scale, now.count, accumulate, at_in(span->type, out, now.first));
    }
}

/* keep = 1 where the element's random word is at least `threshold`, else 0. */
LOOP void draw(dv_random key, uint32_t first, size_t count, uint32_t threshold, float *restrict keep) {
    for (uint32_t i = 0; i < (uint32_t)count; i++)
        keep[i] = dv_random_word(key, first + i) >= threshold ? 1.0f : 0.0f;
}

INLINE void drop_body(dv_type type, const void *x, const float *restrict keep, float scale, size_t count, void *out) {
    EACH for (size_t i = 0; i < count; i++) {
        float value = load(type, x, i) * scale;
        store(type, out, i, keep[i] > 0 ? value : 0);
    }
}

LOOP void drop(dv_type type, const void *x, const float *keep, float scale, size_t count, void *out) {
    BY_TYPE(drop_body, type, x, keep, scale, count, out);
}

static void dropout(const dv_span *span, dv_random key, uint32_t threshold, float scale, const void *x, void *out,
                    uint8_t *mask) {
    float keep[DV_CHUNK];
    FOR_CHUNKS(now, span) {
        draw(key, (uint32_t)now.first, now.count, threshold, keep);
        drop(span->type, at(span->type, x, now.first), keep, scale, now.count, at_in(span->type, out, now.first));
        pack(DV_F32, keep, now.count, mask + now.first / 8);
    }
}

INLINE void add_two_body(dv_type type, const void *a, const void *b, size_t count, void *out) {
    EACH for (size_t i = 0; i < count; i++) store(type, out, i, load(type, a, i) + load(type, b, i));
}

LOOP void add_two(dv_type type, const void *a, const void *b, size_t count, void *out) {
    BY_TYPE(add_two_body, type, a, b, count, out);
}

INLINE void add_to_body(dv_type type, const void *restrict x, size_t count, float *restrict sum) {
    for (size_t i = 0; i < count; i++)
        sum[i] += load(type, x, i);
}

/* sum += x. */
LOOP void add_to(dv_type type, const void *x, size_t count, float *sum) {
    BY_TYPE(add_to_body, type, x, count, sum);
}

LOOP void clear(float *restrict x, size_t count) {
    for (size_t i = 0; i < count; i++)
        x[i] = 0;
}

static void add_many(const dv_span *span, const void *const *inputs, size_t count, void *out) {
    float sum[DV_CHUNK];
    FOR_CHUNKS(now, span) {
        if (span->type == DV_F32)
            scaled(DV_F32, at(DV_F32, inputs[0], now.first), 1, now.count, false, sum);
        else
            widen(at(DV_BF16, inputs[0], now.first), now.count, sum);
        for (size_t k = 1; k < count; k++)
            add_to(span->type, at(span->type, inputs[k], now.first), now.count, sum);
        scaled(span->type, sum, 1, now.count, false, at_in(span->type, out, now.first));
    }
}

static void add(const dv_span *span, const void *const *inputs, size_t count, void *out) {
    if (count == 2)
        add_two(span->type, at(span->type, inputs[0], span->begin), at(span->type, inputs[1], span->begin),
                span->end - span->begin, at_in(span->type, out, span->begin));
    else
        add_many(span, inputs, count, out);
}

INLINE void copy_row_body(dv_type type, const void *restrict src, size_t width, void *restrict dst) {
    for (size_t i = 0; i < width; i++)
        if (type == DV_F32)
            ((float *)dst)[i] = ((const float *)src)[i];
        else
            ((uint16_t *)dst)[i] = ((const uint16_t *)src)[i];
}

INLINE void add_row_body(dv_type type, const void *restrict src, size_t width, void *restrict dst) {
    for (size_t i = 0; i < width; i++)
        put(type, dst, i, load(type, src, i), true);
}

LOOP void copy(dv_type type, const void *src, size_t from, void *dst, size_t to, size_t rows, size_t width,
               bool accumulate) {
    for (size_t row = 0; row < rows; row++) {
        const void *x = at(type, src, row * from);
        void *y = at_in(type, dst, row * to);
        if (accumulate)
            BY_TYPE(add_row_body, type, x, width, y);
        else
            BY_TYPE(copy_row_body, type, x, width, y);
    }
}

static void from_f32(dv_type type, const float *src, size_t count, bool accumulate, void *dst) {
    scaled(type, src, 1, count, accumulate, dst);
}

/* ---- over pixels ----------------------------------------------------------------------------- */

/* Columns first .. first + count - 1 (count <= DV_CHUNK) of up to DV_ROW_GROUP rows, summed up. */
static void sum_group(dv_type type, const void *x, size_t rows, size_t columns, size_t count, float *sum) {
    clear(sum, count);
    for (size_t row = 0; row < rows; row++)
        add_to(type, at(type, x, row * columns), count, sum);
}

static void sum_rows(dv_type type, const void *x, size_t rows, size_t columns, double *sums) {
    float group[DV_CHUNK];
    for (size_t c = 0; c < columns; c += DV_CHUNK)
        for (size_t first = 0; first < rows; first += DV_ROW_GROUP) {
            size_t count = least(DV_CHUNK, columns - c);
            sum_group(type, at(type, x, first * columns + c), least(DV_ROW_GROUP, rows - first), columns, count, group);
            fold_row(group, count, sums + c);
        }
}

INLINE void quotient_body(dv_type type, const float *restrict x, float divisor, size_t count, void *restrict out) {
    for (size_t i = 0; i < count; i++)
        store(type, out, i, x[i] / divisor);
}

LOOP void quotient(dv_type type, const float *x, float divisor, size_t count, void *out) {
    BY_TYPE(quotient_body, type, x, divisor, count, out);
}

static void average_pixels(dv_type type, const void *x, size_t pixels, size_t channels, void *out) {
    float group[DV_CHUNK], all[DV_CHUNK];
    for (size_t c = 0; c < channels; c += DV_CHUNK) {
        size_t count = least(DV_CHUNK, channels - c);
        clear(all, count);
        for (size_t first = 0; first < pixels; first += DV_ROW_GROUP) {
            sum_group(type, at(type, x, first * channels + c), least(DV_ROW_GROUP, pixels - first), channels, count,
                      group);
            add_to(DV_F32, group, count, all);
        }
        quotient(type, all, (float)pixels, count, at_in(type, out, c));
    }
}

INLINE void add_weighted_body(dv_type type, const void *restrict x, float weight, size_t count, float *restrict sum) {
    for (size_t i = 0; i < count; i++)
        sum[i] += load(type, x, i) * weight;
}

LOOP void add_weighted(dv_type type, const void *x, float weight, size_t count, float *sum) {
    BY_TYPE(add_weighted_body, type, x, weight, count, sum);
}

static void average_taps(dv_type type, const void *image, const dv_tap *taps, size_t count, size_t channels,
                         bool accumulate, void *out) {
    float sum[DV_CHUNK];
    for (size_t c = 0; c < channels; c += DV_CHUNK) {
        size_t width = least(DV_CHUNK, channels - c);
        clear(sum, width);
        for (size_t k = 0; k < count; k++)
            add_weighted(type, at(type, image, taps[k].pixel * channels + c), taps[k].weight, width, sum);
        scaled(type, sum, 1, width, accumulate, at_in(type, out, c));
    }
}

/* The largest so far of a tile of channels, and its code. */
typedef struct contest {
    float largest[DV_CHUNK];
    int32_t code[DV_CHUNK];
} contest;

INLINE void challenge_body(dv_type type, const void *restrict x, int32_t code, size_t count, contest *all) {
    float *restrict largest = all->largest;
    int32_t *restrict codes = all->code;
    for (size_t i = 0; i < count; i++) {
        float value = load(type, x, i), before = largest[i];
        int wins = (value > before) | (value != value);
        largest[i] = wins ? value : before;
        codes[i] = wins ? code : codes[i];
    }
}

LOOP void challenge(dv_type type, const void *x, int32_t code, size_t count, contest *all) {
    BY_TYPE(challenge_body, type, x, code, count, all);
}

INLINE void start_body(dv_type type, const void *restrict x, int32_t code, size_t count, contest *all) {
    for (size_t i = 0; i < count; i++) {
        all->largest[i] = load(type, x, i);
        all->code[i] = code;
    }
}

LOOP void start(dv_type type, const void *x, int32_t code, size_t count, contest *all) {
    BY_TYPE(start_body, type, x, code, count, all);
}

/* Codes of `count` (<= DV_CHUNK) channels, in the chunk's order. */
LOOP void pack_codes(const int32_t *restrict codes, size_t count, int bits, uint8_t *restrict packed) {
    size_t bytes = dv_chunk_bytes(count, bits), upper = bits == 4 ? count - bytes : 0;
    for (size_t j = 0; j < bytes; j++)
        packed[j] = (uint8_t)codes[j];
    for (size_t j = 0; j < upper; j++)
        packed[j] = (uint8_t)(packed[j] | codes[bytes + j] << 4);
}

static void max_taps(dv_type type, const void *image, const dv_tap *taps, size_t count, size_t channels, int bits,
                     void *out, uint8_t *winners) {
    contest all;
    for (size_t c = 0; c < channels; c += DV_CHUNK) {
        size_t width = least(DV_CHUNK, channels - c);
        start(type, at(type, image, taps[0].pixel * channels + c), taps[0].code, width, &all);
        for (size_t k = 1; k < count; k++)
            challenge(type, at(type, image, taps[k].pixel * channels + c), taps[k].code, width, &all);
        scaled(type, all.largest, 1, width, false, at_in(type, out, c));
        if (winners)
            pack_codes(all.code, width, bits, winners + dv_stream_bytes(c, bits));
    }
}

/* sum += x where the code, the bits of `winners` from `shift` on, is `code`. */
INLINE void add_won_body(dv_type type, const void *restrict x, const uint8_t *restrict winners, int shift, int mask_,
                         int code, size_t count, float *restrict sum) {
    for (size_t i = 0; i < count; i++)
        sum[i] += where((winners[i] >> shift & mask_) == code, load(type, x, i));
}

LOOP void add_won(dv_type type, const void *x, const uint8_t *winners, int bits, int code, size_t count, float *sum) {
    size_t bytes = dv_chunk_bytes(count, bits);
    if (bits == 8) {
        BY_TYPE(add_won_body, type, x, winners, 0, 255, code, count, sum);
        return;
    }
    BY_TYPE(add_won_body, type, x, winners, 0, 15, code, bytes, sum);
    BY_TYPE(add_won_body, type, at(type, x, bytes), winners, 4, 15, code, count - bytes, sum + bytes);
}

static void max_taps_backward(dv_type type, const void *diff, const uint8_t *winners, const dv_tap *taps, size_t count,
                              size_t channels, int bits, bool accumulate, void *dx) {
    float sum[DV_CHUNK];
    size_t bytes = dv_winner_bytes(channels, bits);
    for (size_t c = 0; c < channels; c += DV_CHUNK) {
        size_t width = least(DV_CHUNK, channels - c);
        clear(sum, width);
        for (size_t k = 0; k < count; k++)
            add_won(type, at(type, diff, taps[k].pixel * channels + c),
                    winners + taps[k].pixel * bytes + dv_stream_bytes(c, bits), bits, taps[k].code, width, sum);
        scaled(type, sum, 1, width, accumulate, at_in(type, dx, c));
    }
}

/* ---- the table ----------------------------------------------------------------------------- */

const dv_elementwise_kernels DV_KERNELS = {
    .statistics = statistics,
    .normalize = normalize,
    .normalize_again = normalize_again,
    .normalize_sums = normalize_sums,
    .normalize_backward = normalize_backward,
    .fold = fold,
    .rectify = rectify,
    .leak = leak,
    .leak_backward = leak_backward,
    .apply_mask = apply_mask,
    .dropout = dropout,
    .add = add,
    .copy = copy,
    .from_f32 = from_f32,
    .sum_rows = sum_rows,
    .average_pixels = average_pixels,
    .average_taps = average_taps,
    .max_taps = max_taps,
    .max_taps_backward = max_taps_backward,
};
