/* Mixup and cutmix, in place: an image and its partner are mixed with each other, so that no copy is needed. */
#include <division/train.h>

#include "base/float16.h"
#include "base/random.h"
#include "base/status.h"

#include <math.h>
#include <stdbool.h>

enum { BATCH_KEY = 0x6d6978, PAIR_KEY = 0x70616972 };

dv_status dv_mix_check(const dv_mix_options *options, dv_error *error) {
    DV_NEED(options);
    if (!(options->mixup >= 0 && options->mixup <= 100))
        return dv_fail(error, DV_ERROR_OPTION, "mixup: %g: must be from 0 to 100", options->mixup);
    if (!(options->cutmix >= 0 && options->cutmix <= 100))
        return dv_fail(error, DV_ERROR_OPTION, "cutmix: %g: must be from 0 to 100", options->cutmix);
    return DV_OK;
}

/* ---- shares -------------------------------------------------------------------------------- */

/* Numbers drawn one after the other. */
typedef struct draws {
    dv_random key;
    uint32_t used;
} draws;

/* Between 0 and 1, neither of them. */
static double uniform(draws *from) {
    return ((double)dv_random_word(from->key, from->used++) + 0.5) * 0x1p-32;
}

static double normal(draws *from) {
    double radius = sqrt(-2 * log(uniform(from)));
    return radius * cos(6.283185307179586 * uniform(from));
}

/* The logarithm of a number of the gamma distribution: Marsaglia and Tsang, "A simple method for generating gamma
 * variables" (2000); below 1, by way of alpha + 1. The logarithm, because the number itself can be too small. */
static double log_gamma_number(double alpha, draws *from) {
    double shape = alpha < 1 ? alpha + 1 : alpha;
    double d = shape - 1.0 / 3, c = 1 / sqrt(9 * d);
    double small = alpha < 1 ? log(uniform(from)) / alpha : 0;
    for (;;) {
        double x = normal(from), v = 1 + c * x;
        if (v <= 0)
            continue;
        v = v * v * v;
        if (log(uniform(from)) < 0.5 * x * x + d - d * v + d * log(v))
            return log(d * v) + small;
    }
}

/* A number of the beta distribution with both parameters alpha. */
static double beta(double alpha, draws *from) {
    double one = log_gamma_number(alpha, from), other = log_gamma_number(alpha, from);
    return 1 / (1 + exp(other - one));
}

/* ---- pixels -------------------------------------------------------------------------------- */

static void blend_f32(float share, size_t count, float *restrict a, float *restrict b) {
    for (size_t i = 0; i < count; i++) {
        float one = a[i], other = b[i];
        a[i] = share * one + (1 - share) * other;
        b[i] = share * other + (1 - share) * one;
    }
}

static void blend_bf16(float share, size_t count, uint16_t *restrict a, uint16_t *restrict b) {
    for (size_t i = 0; i < count; i++) {
        float one = dv_bf16_to_f32(a[i]), other = dv_bf16_to_f32(b[i]);
        a[i] = dv_bf16_nearest(share * one + (1 - share) * other);
        b[i] = dv_bf16_nearest(share * other + (1 - share) * one);
    }
}

static float mixup(const dv_map *map, double alpha, draws *from, char *a, char *b) {
    float share = (float)beta(alpha, from);
    size_t count = map->sides[0] * map->sides[1] * map->channels;
    if (map->type == DV_F32)
        blend_f32(share, count, (float *)(void *)a, (float *)(void *)b);
    else
        blend_bf16(share, count, (uint16_t *)(void *)a, (uint16_t *)(void *)b);
    return share;
}

/* A side of the rectangle: from first to last - 1 of `side`, around a random centre. */
static void cut(size_t side, double part, draws *from, size_t *first, size_t *last) {
    double centre = floor(uniform(from) * (double)side), half = floor((double)side * part) / 2;
    double low = ceil(centre - half), high = ceil(centre + half);
    *first = (size_t)fmax(low, 0);
    *last = (size_t)fmin(high, (double)side);
}

static void exchange(size_t bytes, char *restrict a, char *restrict b) {
    for (size_t i = 0; i < bytes; i++) {
        char kept = a[i];
        a[i] = b[i];
        b[i] = kept;
    }
}

static float cutmix(const dv_map *map, double alpha, draws *from, char *a, char *b) {
    double part = sqrt(1 - beta(alpha, from));
    size_t pixel = map->channels * dv_type_bytes(map->type), row = map->sides[1] * pixel;
    size_t top, bottom, left, right;
    cut(map->sides[0], part, from, &top, &bottom);
    cut(map->sides[1], part, from, &left, &right);
    for (size_t y = top; y < bottom; y++)
        exchange((right - left) * pixel, a + y * row + left * pixel, b + y * row + left * pixel);
    return 1 - (float)((bottom - top) * (right - left)) / (float)(map->sides[0] * map->sides[1]);
}

/* ---- the batch ----------------------------------------------------------------------------- */

/* True if this batch is to be cut and not blended. */
static bool cuts(const dv_mix_options *options, uint64_t seed, uint64_t batch) {
    const uint64_t words[] = {seed, BATCH_KEY, batch};
    if (options->mixup == 0 || options->cutmix == 0)
        return options->cutmix != 0;
    return dv_random_word(dv_random_key(words, 3), 0) & 1;
}

void dv_mix_batch(const dv_mix_options *options, uint64_t seed, uint64_t batch, dv_run *run) {
    const dv_map *map = dv_run_input_map(run);
    char *images = dv_run_input(run);
    const int32_t *labels = dv_run_labels(run);
    int32_t *seconds = dv_run_second_labels(run);
    float *weights = dv_run_label_weights(run);
    size_t count = dv_run_images(run), bytes = map->sides[0] * map->sides[1] * map->channels * dv_type_bytes(map->type);
    bool cutting = cuts(options, seed, batch);
    if (options->mixup == 0 && options->cutmix == 0)
        return;
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < (count + 1) / 2; i++) {
        const uint64_t words[] = {seed, PAIR_KEY, batch, i};
        size_t other = count - 1 - i;
        draws from = {.key = dv_random_key(words, 4)};
        float weight = 1;
        seconds[i] = labels[other];
        seconds[other] = labels[i];
        if (i != other)
            weight = cutting ? cutmix(map, options->cutmix, &from, images + i * bytes, images + other * bytes)
                             : mixup(map, options->mixup, &from, images + i * bytes, images + other * bytes);
        weights[i] = weights[other] = weight;
    }
}
