/* The layers' kernels in plain C, element by element. Slow, and kept for ever: this file says what the fast
 * kernels must compute, to the last bit. */
#include "base/float16.h"
#include "nn/kernels/elementwise.h"

#include <math.h>

/* ---- elements and masks --------------------------------------------------------------------- */

static float load(dv_type type, const void *src, size_t index) {
    return type == DV_F32 ? ((const float *)src)[index] : dv_bf16_to_f32(((const uint16_t *)src)[index]);
}

static void store(dv_type type, void *dst, size_t index, float value) {
    if (type == DV_F32)
        ((float *)dst)[index] = value;
    else
        ((uint16_t *)dst)[index] = dv_bf16_nearest(value);
}

static void put(dv_type type, void *dst, size_t index, float value, bool accumulate) {
    store(type, dst, index, accumulate ? load(type, dst, index) + value : value);
}

/* Where the code of element `index` is, in a stream that ends with element `end`. */
static size_t code_byte(size_t end, size_t index, int bits, int *shift) {
    size_t chunk = index / DV_CHUNK * DV_CHUNK, rest = end - chunk;
    size_t bytes = dv_chunk_bytes(rest < DV_CHUNK ? rest : DV_CHUNK, bits);
    *shift = (int)((index - chunk) / bytes) * bits;
    return dv_stream_bytes(chunk, bits) + (index - chunk) % bytes;
}

static void put_code(uint8_t *stream, size_t end, size_t index, int bits, unsigned code) {
    int shift;
    uint8_t *byte = stream + code_byte(end, index, bits, &shift);
    *byte = (uint8_t)((shift ? *byte : 0) | code << shift);
}

static unsigned get_code(const uint8_t *stream, size_t end, size_t index, int bits) {
    int shift;
    size_t byte = code_byte(end, index, bits, &shift);
    return (unsigned)stream[byte] >> shift & ((1u << bits) - 1);
}

/* The entry of an extended array that belongs to element `index`. */
static size_t entry(const dv_span *span, size_t index) {
    size_t chunk = index / DV_CHUNK * DV_CHUNK;
    return chunk % span->channels + (index - chunk);
}

static float rectified(float value) {
    return value <= 0 ? 0 : value;
}

/* Element `index` of diff, or 0 where its bit is not set. */
static float masked(const dv_span *span, const void *diff, const uint8_t *mask, size_t index) {
    return !mask || get_code(mask, span->end, index, 1) ? load(span->type, diff, index) : 0;
}

/* ---- batch norm ------------------------------------------------------------------------------ */

static void statistics(const dv_span *span, const void *x, const float *shift, float *sums, float *squares) {
    for (size_t i = span->begin; i < span->end; i++) {
        size_t c = entry(span, i);
        float distance = load(span->type, x, i) - shift[c];
        sums[c] += distance;
        squares[c] += distance * distance;
    }
}

static void normalize(const dv_span *span, const void *x, const void *addend, const float *mean, const float *scale,
                      const float *bias, bool relu, void *out, uint8_t *mask) {
    for (size_t i = span->begin; i < span->end; i++) {
        size_t c = entry(span, i);
        float y = (load(span->type, x, i) - mean[c]) * scale[c] + bias[c];
        if (addend)
            y += load(span->type, addend, i);
        store(span->type, out, i, relu ? rectified(y) : y);
        if (mask)
            put_code(mask, span->end, i, 1, load(span->type, out, i) > 0);
    }
}

static void normalize_again(const dv_span *span, const void *x, const void *addend, const float *mean,
                            const float *scale, const float *bias, const uint8_t *mask, void *out) {
    for (size_t i = span->begin; i < span->end; i++) {
        size_t c = entry(span, i);
        float y = (load(span->type, x, i) - mean[c]) * scale[c] + bias[c];
        if (addend)
            y += load(span->type, addend, i);
        store(span->type, out, i, !mask || get_code(mask, span->end, i, 1) ? y : 0);
    }
}

static void normalize_sums(const dv_span *span, const void *diff, const uint8_t *mask, const void *x, const float *mean,
                           float *sums, float *products) {
    for (size_t i = span->begin; i < span->end; i++) {
        size_t c = entry(span, i);
        float dz = masked(span, diff, mask, i);
        sums[c] += dz;
        products[c] += dz * (load(span->type, x, i) - mean[c]);
    }
}

static void normalize_backward(const dv_span *span, const void *diff, const uint8_t *mask, const void *x,
                               const dv_normalize_diff *by, void *dx, bool accumulate_dx, void *passed,
                               bool accumulate_passed) {
    for (size_t i = span->begin; i < span->end; i++) {
        size_t c = entry(span, i);
        float dz = masked(span, diff, mask, i);
        if (dx)
            put(span->type, dx, i,
                dz * by->scale[c] + (load(span->type, x, i) - by->mean[c]) * by->slope[c] + by->offset[c],
                accumulate_dx);
        if (passed)
            put(span->type, passed, i, dz, accumulate_passed);
    }
}

static void fold(size_t channels, float *sums, double *totals) {
    for (size_t i = 0; i < dv_extended(channels); i++) {
        totals[i % channels] += (double)sums[i];
        sums[i] = 0;
    }
}

/* ---- element by element ------------------------------------------------------------------------ */

static void rectify(const dv_span *span, const void *x, void *out, uint8_t *mask) {
    for (size_t i = span->begin; i < span->end; i++) {
        store(span->type, out, i, rectified(load(span->type, x, i)));
        if (mask)
            put_code(mask, span->end, i, 1, load(span->type, out, i) > 0);
    }
}

static void leak(const dv_span *span, const void *x, float slope, void *out, uint8_t *mask) {
    for (size_t i = span->begin; i < span->end; i++) {
        float value = load(span->type, x, i);
        store(span->type, out, i, value <= 0 ? value * slope : value);
        if (mask)
            put_code(mask, span->end, i, 1, load(span->type, out, i) > 0);
    }
}

static void leak_backward(const dv_span *span, const void *x, const uint8_t *mask, float slope, bool accumulate,
                          void *out) {
    for (size_t i = span->begin; i < span->end; i++)
        put(span->type, out, i, load(span->type, x, i) * (get_code(mask, span->end, i, 1) ? 1 : slope), accumulate);
}

static void apply_mask(const dv_span *span, const void *x, const uint8_t *mask, float scale, bool accumulate,
                       void *out) {
    for (size_t i = span->begin; i < span->end; i++)
        put(span->type, out, i, masked(span, x, mask, i) * scale, accumulate);
}

static void dropout(const dv_span *span, dv_random key, uint32_t threshold, float scale, const void *x, void *out,
                    uint8_t *mask) {
    for (size_t i = span->begin; i < span->end; i++) {
        bool keep = dv_random_word(key, (uint32_t)i) >= threshold;
        store(span->type, out, i, keep ? load(span->type, x, i) * scale : 0);
        put_code(mask, span->end, i, 1, keep);
    }
}

static void add(const dv_span *span, const void *const *inputs, size_t count, void *out) {
    for (size_t i = span->begin; i < span->end; i++) {
        float sum = load(span->type, inputs[0], i);
        for (size_t k = 1; k < count; k++)
            sum += load(span->type, inputs[k], i);
        store(span->type, out, i, sum);
    }
}

static void copy(dv_type type, const void *src, size_t from, void *dst, size_t to, size_t rows, size_t width,
                 bool accumulate) {
    for (size_t row = 0; row < rows; row++)
        for (size_t i = 0; i < width; i++)
            put(type, dst, row * to + i, load(type, src, row * from + i), accumulate);
}

static void from_f32(dv_type type, const float *src, size_t count, bool accumulate, void *dst) {
    for (size_t i = 0; i < count; i++)
        put(type, dst, i, src[i], accumulate);
}

/* ---- over pixels ----------------------------------------------------------------------------- */

static void sum_rows(dv_type type, const void *x, size_t rows, size_t columns, double *sums) {
    for (size_t c = 0; c < columns; c++) {
        for (size_t first = 0; first < rows; first += DV_ROW_GROUP) {
            float sum = 0;
            for (size_t row = first; row < rows && row < first + DV_ROW_GROUP; row++)
                sum += load(type, x, row * columns + c);
            sums[c] += (double)sum;
        }
    }
}

static void average_pixels(dv_type type, const void *x, size_t pixels, size_t channels, void *out) {
    for (size_t c = 0; c < channels; c++) {
        float all = 0;
        for (size_t first = 0; first < pixels; first += DV_ROW_GROUP) {
            float sum = 0;
            for (size_t p = first; p < pixels && p < first + DV_ROW_GROUP; p++)
                sum += load(type, x, p * channels + c);
            all += sum;
        }
        store(type, out, c, all / (float)pixels);
    }
}

static void average_taps(dv_type type, const void *image, const dv_tap *taps, size_t count, size_t channels,
                         bool accumulate, void *out) {
    for (size_t c = 0; c < channels; c++) {
        float sum = 0;
        for (size_t k = 0; k < count; k++)
            sum += load(type, image, taps[k].pixel * channels + c) * taps[k].weight;
        put(type, out, c, sum, accumulate);
    }
}

static void max_taps(dv_type type, const void *image, const dv_tap *taps, size_t count, size_t channels, int bits,
                     void *out, uint8_t *winners) {
    for (size_t c = 0; c < channels; c++) {
        float largest = load(type, image, taps[0].pixel * channels + c);
        unsigned code = taps[0].code;
        for (size_t k = 1; k < count; k++) {
            float value = load(type, image, taps[k].pixel * channels + c);
            if (value > largest || isnan(value)) {
                largest = value;
                code = taps[k].code;
            }
        }
        store(type, out, c, largest);
        if (winners)
            put_code(winners, channels, c, bits, code);
    }
}

static void max_taps_backward(dv_type type, const void *diff, const uint8_t *winners, const dv_tap *taps, size_t count,
                              size_t channels, int bits, bool accumulate, void *dx) {
    size_t bytes = dv_winner_bytes(channels, bits);
    for (size_t c = 0; c < channels; c++) {
        float sum = 0;
        for (size_t k = 0; k < count; k++) {
            bool won = get_code(winners + taps[k].pixel * bytes, channels, c, bits) == taps[k].code;
            sum += won ? load(type, diff, taps[k].pixel * channels + c) : 0;
        }
        put(type, dx, c, sum, accumulate);
    }
}

const dv_elementwise_kernels dv_elementwise_reference = {
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
