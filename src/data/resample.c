/* The weights, and both passes. */
#include "data/resample.h"

#include <math.h>
#include <string.h>

enum { PRECISION = 22, HALF = 1 << (PRECISION - 1) };

/* ---- memory -------------------------------------------------------------------------------- */

/* Of a side: a pixel of the result covers 2 * scale + 1 pixels of the source, or 3 where it is enlarged. */
static size_t most_weights(size_t side) {
    return 2 * (size_t)DV_IMAGE_MAX_SIDE + 3 * side;
}

size_t dv_resample_bytes(size_t width, size_t height) {
    return (width + height) * sizeof(dv_taps) + (most_weights(width) + most_weights(height)) * sizeof(int32_t) +
           width * height * DV_PIXEL * sizeof(int32_t) + width * DV_PIXEL;
}

void dv_resample_init(dv_resample *resample, size_t width, size_t height, void *memory) {
    *resample = (dv_resample){.columns = memory};
    resample->rows = resample->columns + width;
    resample->weights = (int32_t *)(resample->rows + height);
    resample->sums = resample->weights + most_weights(width) + most_weights(height);
    resample->line = (uint8_t *)(resample->sums + width * height * DV_PIXEL);
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

/* ---- rows ---------------------------------------------------------------------------------- */

void dv_resample_begin(dv_resample *resample, const dv_resample_size *size, uint8_t *dst) {
    resample->size = *size;
    resample->dst = dst;
    int32_t *rest =
        make_axis(size->width, size->target_width, size->left, size->part_width, resample->weights, resample->columns);
    make_axis(size->height, size->target_height, size->top, size->part_height, rest, resample->rows);
    resample->next = dv_resample_first(resample);
    resample->open = 0;
    size_t elements = size->part_width * size->part_height * DV_PIXEL;
    for (size_t i = 0; i < elements; i++)
        resample->sums[i] = HALF;
}

size_t dv_resample_first(const dv_resample *resample) {
    return resample->rows[0].first;
}

size_t dv_resample_end(const dv_resample *resample) {
    const dv_taps *last = &resample->rows[resample->size.part_height - 1];
    return last->first + last->count;
}

static uint8_t to_byte(int32_t sum) {
    int32_t level = sum >> PRECISION;
    return (uint8_t)(level < 0 ? 0 : level > 255 ? 255 : level);
}

static void resize_line(const dv_resample *resample, const uint8_t *row) {
    uint8_t *dst = resample->line;
    for (size_t x = 0; x < resample->size.part_width; x++, dst += DV_PIXEL) {
        const dv_taps *taps = &resample->columns[x];
        const uint8_t *src = row + (size_t)taps->first * DV_PIXEL;
        int32_t red = HALF, green = HALF, blue = HALF;
        for (uint32_t i = 0; i < taps->count; i++, src += DV_PIXEL) {
            red += taps->weights[i] * src[0];
            green += taps->weights[i] * src[1];
            blue += taps->weights[i] * src[2];
        }
        dst[0] = to_byte(red);
        dst[1] = to_byte(green);
        dst[2] = to_byte(blue);
    }
}

static void add_line(const uint8_t *restrict line, int32_t weight, size_t elements, int32_t *restrict sums) {
    for (size_t i = 0; i < elements; i++)
        sums[i] += weight * line[i];
}

static void finish_row(const int32_t *restrict sums, size_t elements, uint8_t *restrict dst) {
    for (size_t i = 0; i < elements; i++)
        dst[i] = to_byte(sums[i]);
}

/* Rows of the result begin and end in order, so those that a row of the source is part of lie together. */
void dv_resample_row(dv_resample *resample, const uint8_t *row) {
    size_t elements = resample->size.part_width * DV_PIXEL, at = resample->next++;
    resize_line(resample, row);
    for (size_t y = resample->open; y < resample->size.part_height && resample->rows[y].first <= at; y++) {
        const dv_taps *taps = &resample->rows[y];
        int32_t *sums = resample->sums + y * elements;
        if (at < taps->first + taps->count)
            add_line(resample->line, taps->weights[at - taps->first], elements, sums);
        if (at + 1 == taps->first + taps->count) {
            finish_row(sums, elements, resample->dst + y * elements);
            resample->open = y + 1;
        }
    }
}
