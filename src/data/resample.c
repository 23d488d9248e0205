/* The weights, and both passes.
 *
 * A weight has 23 bits, a vector multiplication of SSE2 takes 16 and adds products in pairs. Along rows a pair is two
 * pixels of the source, and weights are used in halves of 11 bits, whose sums are put together in the end. Along
 * columns a pair is one byte p as p and 128 p, and its weight w as w % 128 and w / 128: one multiplication is exact.
 * Where there is no SSE2, and where a load would reach over the end of a row, plain code does the same. */
#include "data/resample.h"

#include <math.h>
#include <stdbool.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum {
    PRECISION = 22,
    ROUNDING = 1 << (PRECISION - 1),
    LOW_BITS = 11, /* of a weight of a column's pair */
    SLACK = 4      /* numbers that a vector is written over the end of the line */
};

/* ---- memory -------------------------------------------------------------------------------- */

/* Of a side: a pixel of the result covers 2 * scale + 1 pixels of the source, or 3 where it is enlarged. */
static size_t most_weights(size_t side) {
    return 2 * (size_t)DV_IMAGE_MAX_SIDE + 3 * side;
}

/* Of the columns' pairs: each pixel has as many as the one with most weights, and each pair is two numbers. */
static size_t most_pairs(size_t width) {
    return most_weights(width) + width;
}

size_t dv_resample_bytes(size_t width, size_t height) {
    size_t numbers = most_weights(width) + most_weights(height) + most_pairs(width) + width * height * DV_PIXEL +
                     width * DV_PIXEL + SLACK;
    return (width + height) * sizeof(dv_taps) + numbers * sizeof(int32_t);
}

void dv_resample_init(dv_resample *resample, size_t width, size_t height, void *memory) {
    *resample = (dv_resample){.columns = memory};
    resample->rows = resample->columns + width;
    resample->weights = (int32_t *)(resample->rows + height);
    resample->pairs = resample->weights + most_weights(width) + most_weights(height);
    resample->sums = resample->pairs + most_pairs(width);
    resample->line = resample->sums + width * height * DV_PIXEL;
}

/* ---- weights ------------------------------------------------------------------------------- */

static double triangle(double x) {
    x = fabs(x);
    return x < 1 ? 1 - x : 0;
}

/* The weights of one pixel of the result, `center` in pixels of the source. They sum up to one. */
static void make_taps(double center, double scale, size_t source, int32_t *weights, dv_taps *taps) {
    double first = floor(center - scale + 0.5), end = floor(center + scale + 0.5), sum = 0, per_pixel = 1 / scale;
    size_t low = first < 0 ? 0 : (size_t)first, high = end > (double)source ? source : (size_t)end;
    for (size_t i = low; i < high; i++)
        sum += triangle(((double)i - center + 0.5) * per_pixel);
    for (size_t i = low; i < high; i++) {
        double weight = triangle(((double)i - center + 0.5) * per_pixel) / sum;
        weights[i - low] = (int32_t)(weight * (1 << PRECISION) + 0.5);
    }
    *taps = (dv_taps){(uint32_t)low, (uint32_t)(high - low), weights};
}

/* Those of `count` pixels from `begin` on, of `target` that a side of `source` becomes. Returns what follows. */
static int32_t *make_axis(size_t source, size_t target, size_t begin, size_t count, int32_t *weights, dv_taps *taps) {
    double step = (double)source / (double)target, scale = step < 1 ? 1 : step;
    for (size_t i = 0; i < count; i++) {
        make_taps(((double)(begin + i) + 0.5) * step, scale, source, weights, &taps[i]);
        weights += taps[i].count;
    }
    return weights;
}

/* A mirrored image has the same columns, the other way round. */
static void turn(dv_taps *columns, size_t count) {
    for (size_t x = 0; x < count / 2; x++) {
        dv_taps kept = columns[x];
        columns[x] = columns[count - 1 - x];
        columns[count - 1 - x] = kept;
    }
}

#ifdef __SSE2__
/* Two weights next to each other, as a vector multiplication takes them. */
static int32_t pair_of(int32_t first, int32_t second) {
    return (int32_t)((uint32_t)first | (uint32_t)second << 16);
}

static int32_t weight_at(const dv_taps *taps, uint32_t index) {
    return index < taps->count ? taps->weights[index] : 0;
}

/* Weights in pairs: the low halves of two, then their high ones. */
static void make_pairs(const dv_taps *taps, uint32_t count, int32_t *pairs) {
    const int32_t mask = (1 << LOW_BITS) - 1;
    for (uint32_t i = 0; i < count; i++) {
        int32_t one = weight_at(taps, 2 * i), two = weight_at(taps, 2 * i + 1);
        *pairs++ = pair_of(one & mask, two & mask);
        *pairs++ = pair_of(one >> LOW_BITS, two >> LOW_BITS);
    }
}

/* Those of all columns; all have as many, zeros in the end: a loop that always turns as often is faster than one that
 * turns less often sometimes. */
static void make_all_pairs(dv_resample *resample) {
    size_t width = resample->size.part_width;
    resample->pair_count = 0;
    for (size_t x = 0; x < width; x++)
        if (resample->pair_count < (resample->columns[x].count + 1) / 2)
            resample->pair_count = (resample->columns[x].count + 1) / 2;
    for (size_t x = 0; x < width; x++)
        make_pairs(&resample->columns[x], resample->pair_count, resample->pairs + 2 * x * resample->pair_count);
}
#endif

/* ---- along rows ---------------------------------------------------------------------------- */

/* A sum of weights times bytes as a byte. Weights are positive and sum up to one but for their rounding, so it is one.
 */
static int32_t to_byte(int32_t sum) {
    return sum >> PRECISION;
}

static int32_t widen(int32_t byte) {
    return byte | (int32_t)((uint32_t)byte << 23);
}

/* A pixel of the line. */
static void make_pixel(const dv_taps *taps, const uint8_t *row, int32_t *dst) {
    const uint8_t *src = row + (size_t)taps->first * DV_PIXEL;
    int32_t red = ROUNDING, green = ROUNDING, blue = ROUNDING;
    for (uint32_t i = 0; i < taps->count; i++, src += DV_PIXEL) {
        red += taps->weights[i] * src[0];
        green += taps->weights[i] * src[1];
        blue += taps->weights[i] * src[2];
    }
    dst[0] = widen(to_byte(red));
    dst[1] = widen(to_byte(green));
    dst[2] = widen(to_byte(blue));
}

#ifdef __SSE2__
/* The same for all pixels. Eight bytes are loaded at each pixel of the source, and the next one's eight beside them,
 * which makes pairs r r g g b b; not where that is too near to the end of the row. `count` is pair_count. */
__attribute__((always_inline)) static inline void make_with(const dv_resample *resample, const uint8_t *row,
                                                            uint32_t count) {
    const __m128i zero = _mm_setzero_si128();
    const int32_t *pairs = resample->pairs;
    const dv_taps *taps = resample->columns;
    int32_t *dst = resample->line;
    size_t width = resample->size.part_width, last = resample->size.width;
    for (size_t x = 0; x < width; x++) {
        if (taps[x].first + 2 * count + 2 > last) { /* eight bytes from the last but one pixel on */
            make_pixel(&taps[x], row, dst + x * DV_PIXEL);
            pairs += 2 * count;
            continue;
        }
        const uint8_t *src = row + (size_t)taps[x].first * DV_PIXEL;
        __m128i low = _mm_set1_epi32(ROUNDING), high = zero;
        for (uint32_t i = 0; i < count; i++, src += 2 * DV_PIXEL, pairs += 2) {
            __m128i one = _mm_loadl_epi64((const __m128i *)(const void *)src);
            __m128i two = _mm_loadl_epi64((const __m128i *)(const void *)(src + DV_PIXEL));
            __m128i both = _mm_unpacklo_epi8(_mm_unpacklo_epi8(one, two), zero);
            low = _mm_add_epi32(low, _mm_madd_epi16(both, _mm_set1_epi32(pairs[0])));
            high = _mm_add_epi32(high, _mm_madd_epi16(both, _mm_set1_epi32(pairs[1])));
        }
        __m128i bytes = _mm_srai_epi32(_mm_add_epi32(_mm_slli_epi32(high, LOW_BITS), low), PRECISION);
        __m128i wide = _mm_or_si128(bytes, _mm_slli_epi32(bytes, 23));
        _mm_storeu_si128((__m128i *)(void *)(dst + x * DV_PIXEL), wide); /* and one number too much */
    }
}

/* Enlarged, and reduced to a half at least, pixels have one to three pairs: those loops are written out. */
static void make_line(const dv_resample *resample, const uint8_t *row) {
    switch (resample->pair_count) {
    case 1:
        make_with(resample, row, 1);
        break;
    case 2:
        make_with(resample, row, 2);
        break;
    case 3:
        make_with(resample, row, 3);
        break;
    default:
        make_with(resample, row, resample->pair_count);
    }
}
#else
static void make_line(const dv_resample *resample, const uint8_t *row) {
    for (size_t x = 0; x < resample->size.part_width; x++)
        make_pixel(&resample->columns[x], row, resample->line + x * DV_PIXEL);
}
#endif

/* ---- along columns ------------------------------------------------------------------------- */

/* What a line adds to an element: weight times its byte. */
static int32_t product_of(int32_t wide, int32_t weight) {
    return weight * (wide & 255);
}

#ifdef __SSE2__
/* A weight as a vector multiplication takes it. A weight of one has no room in the high part: more is left for the low.
 */
static __m128i split(int32_t weight) {
    int32_t high = weight >> 7 < 32767 ? weight >> 7 : 32767;
    return _mm_set1_epi32(pair_of(weight - high * 128, high));
}

/* Four sums, with what four elements of a line add to them; a row's first line begins them. */
static __m128i add_four(const int32_t *line, __m128i weight, bool first, const int32_t *sums) {
    __m128i products = _mm_madd_epi16(_mm_loadu_si128((const __m128i *)(const void *)line), weight);
    __m128i sum = first ? _mm_set1_epi32(ROUNDING) : _mm_loadu_si128((const __m128i *)(const void *)sums);
    return _mm_add_epi32(sum, products);
}

static __m128i finish_four(const int32_t *line, __m128i weight, bool first, const int32_t *sums) {
    return _mm_srai_epi32(add_four(line, weight, first, sums), PRECISION);
}
#endif

/* Adds a line to the sums of a row; those of its first one begin with it. */
static void add_line(const int32_t *restrict line, int32_t weight, bool first, size_t elements,
                     int32_t *restrict sums) {
    size_t i = 0;
#ifdef __SSE2__
    __m128i weights = split(weight);
    for (; i + 4 <= elements; i += 4)
        _mm_storeu_si128((__m128i *)(void *)(sums + i), add_four(line + i, weights, first, sums + i));
#endif
    for (; i < elements; i++)
        sums[i] = (first ? ROUNDING : sums[i]) + product_of(line[i], weight);
}

/* Adds the last line, and makes bytes of the sums. */
static void finish_row(const int32_t *restrict line, int32_t weight, bool first, size_t elements,
                       const int32_t *restrict sums, uint8_t *restrict dst) {
    size_t i = 0;
#ifdef __SSE2__
    __m128i weights = split(weight);
    for (; i + 16 <= elements; i += 16) {
        __m128i a = finish_four(line + i, weights, first, sums + i);
        __m128i b = finish_four(line + i + 4, weights, first, sums + i + 4);
        __m128i c = finish_four(line + i + 8, weights, first, sums + i + 8);
        __m128i d = finish_four(line + i + 12, weights, first, sums + i + 12);
        __m128i bytes = _mm_packus_epi16(_mm_packs_epi32(a, b), _mm_packs_epi32(c, d));
        _mm_storeu_si128((__m128i *)(void *)(dst + i), bytes);
    }
#endif
    for (; i < elements; i++)
        dst[i] = (uint8_t)to_byte((first ? ROUNDING : sums[i]) + product_of(line[i], weight));
}

/* ---- rows ---------------------------------------------------------------------------------- */

void dv_resample_begin(dv_resample *resample, const dv_resample_size *size, uint8_t *dst) {
    resample->size = *size;
    resample->dst = dst;
    int32_t *rest =
        make_axis(size->width, size->target_width, size->left, size->part_width, resample->weights, resample->columns);
    make_axis(size->height, size->target_height, size->top, size->part_height, rest, resample->rows);
    if (size->flip)
        turn(resample->columns, size->part_width);
#ifdef __SSE2__
    make_all_pairs(resample);
#endif
    resample->next = dv_resample_first(resample);
    resample->open = 0;
}

size_t dv_resample_first(const dv_resample *resample) {
    return resample->rows[0].first;
}

size_t dv_resample_end(const dv_resample *resample) {
    const dv_taps *last = &resample->rows[resample->size.part_height - 1];
    return last->first + last->count;
}

/* Rows of the result begin and end in order, so those that a row of the source is part of lie together. */
void dv_resample_row(dv_resample *resample, const uint8_t *row) {
    size_t elements = resample->size.part_width * DV_PIXEL, at = resample->next++;
    make_line(resample, row);
    for (size_t y = resample->open; y < resample->size.part_height && resample->rows[y].first <= at; y++) {
        const dv_taps *taps = &resample->rows[y];
        int32_t *sums = resample->sums + y * elements, weight = taps->weights[at - taps->first];
        if (at + 1 < taps->first + taps->count) {
            add_line(resample->line, weight, at == taps->first, elements, sums);
            continue;
        }
        finish_row(resample->line, weight, at == taps->first, elements, sums, resample->dst + y * elements);
        resample->open = y + 1;
    }
}
