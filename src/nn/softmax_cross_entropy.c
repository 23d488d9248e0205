/* Softmax cross-entropy with label smoothing. For one image with logits z of K classes and label l:
 *
 *     log p = z - max - log(sum exp(z - max))
 *     target t = smoothing / K, plus 1 - smoothing at l
 *     loss = -sum t log p,   d loss / d z = p - t
 *
 * Images are independent; their losses are added in their order. */
#include "base/float16.h"
#include "nn/parts.h"
#include "nn/shape.h"

#include <math.h>

static float load(dv_type type, const void *src, size_t index) {
    return type == DV_F32 ? ((const float *)src)[index] : dv_bf16_to_f32(((const uint16_t *)src)[index]);
}

static void store(dv_type type, void *dst, size_t index, float value) {
    if (type == DV_F32)
        ((float *)dst)[index] = value;
    else
        ((uint16_t *)dst)[index] = dv_bf16_nearest(value);
}

/* One image's logits, and what its loss is made of. */
typedef struct softmax {
    dv_type type;
    size_t classes, label;
    const void *logits;
    float largest;
    double log_sum; /* of exp(z - largest) */
    double total;   /* of z - largest */
    bool finite;
} softmax;

static softmax softmax_of(dv_type type, const void *logits, size_t classes, size_t label) {
    softmax s = {type, classes, label, logits, load(type, logits, 0), 0, 0, true};
    for (size_t k = 0; k < classes; k++) {
        float logit = load(type, logits, k);
        s.finite = s.finite && isfinite(logit);
        s.largest = logit > s.largest ? logit : s.largest;
    }
    double sum = 0;
    for (size_t k = 0; k < classes; k++) {
        float below = load(type, logits, k) - s.largest;
        sum += (double)expf(below);
        s.total += (double)below;
    }
    s.log_sum = log(sum); /* cppcheck-suppress invalidFunctionArg; there is at least one class */
    return s;
}

static double loss_of(const softmax *s, float smoothing) {
    double classes = (double)s->classes, own = (double)(load(s->type, s->logits, s->label) - s->largest) - s->log_sum;
    double all = s->total - classes * s->log_sum; /* sum of log p */
    return -(1 - (double)smoothing) * own - (double)smoothing / classes * all;
}

static void write_diff(const softmax *s, float smoothing, double factor, void *diff) {
    double share = (double)smoothing / (double)s->classes, inverse = exp(-s->log_sum);
    for (size_t k = 0; k < s->classes; k++) {
        double p = (double)expf(load(s->type, s->logits, k) - s->largest) * inverse;
        double target = share + (k == s->label ? 1 - (double)smoothing : 0);
        store(s->type, diff, k, (float)((p - target) * factor));
    }
}

/* Place of the label among the logits, from 0; of equals the first comes first. */
static size_t rank_of(const softmax *s) {
    float own = load(s->type, s->logits, s->label);
    size_t before = 0;
    for (size_t k = 0; k < s->classes; k++) {
        float logit = load(s->type, s->logits, k);
        before += logit > own || (logit == own && k < s->label);
    }
    return before;
}

static dv_status check(const dv_map *map, const int32_t *labels, float smoothing, dv_error *error) {
    DV_TRY(dv_map_check(map, error));
    if (map->rank != 0 || (map->type != DV_F32 && map->type != DV_BF16))
        return dv_fail(error, DV_ERROR_UNSUPPORTED,
                       "loss: logits are %s %s: they must be f32 or bf16 [images, classes]", dv_type_name(map->type),
                       dv_shape(map).text);
    if (!(smoothing >= 0 && smoothing <= 1))
        return dv_fail(error, DV_ERROR_OPTION, "loss: label smoothing is %g: it must be from 0 to 1",
                       (double)smoothing);
    for (size_t n = 0; n < map->images; n++)
        if (labels[n] < 0 || (size_t)labels[n] >= map->channels)
            return dv_fail(error, DV_ERROR_ARGUMENT,
                           "loss: label %d of image %zu is out of range: the model has classes 0 to %zu",
                           (int)labels[n], n, map->channels - 1);
    return DV_OK;
}

/* Adds images first .. last - 1 to `result`. Returns the first of them with logits that are not finite, or last. */
static size_t add_images(const dv_map *map, const void *logits, const int32_t *labels, float smoothing, double factor,
                         void *diff, size_t first, size_t last, dv_loss_result *result) {
    for (size_t n = first; n < last; n++) {
        softmax s = softmax_of(map->type, dv_image(map, logits, n), map->channels, (size_t)labels[n]);
        if (!s.finite)
            return n;
        size_t rank = rank_of(&s);
        result->loss += loss_of(&s, smoothing);
        result->correct += rank == 0;
        result->correct5 += rank < 5;
        if (diff)
            write_diff(&s, smoothing, factor, dv_image_in(map, diff, n));
    }
    return last;
}

dv_status dv_softmax_cross_entropy(const dv_map *logits_map, const void *logits, const int32_t *labels, float smoothing,
                                   float scale, void *diff, dv_loss_result *result, dv_error *error) {
    DV_TRY(check(logits_map, labels, smoothing, error));
    size_t images = logits_map->images, each = (images + DV_MAX_PARTS - 1) / DV_MAX_PARTS;
    dv_loss_result parts[DV_MAX_PARTS] = {{0}};
    size_t bad = images;
#pragma omp parallel for schedule(static) reduction(min : bad)
    for (size_t p = 0; p < DV_MAX_PARTS; p++) {
        size_t first = p * each < images ? p * each : images, last = first + each < images ? first + each : images;
        size_t stop = add_images(logits_map, logits, labels, smoothing, (double)scale / (double)images, diff, first,
                                 last, &parts[p]);
        if (stop < last && stop < bad)
            bad = stop;
    }
    if (bad < images)
        return dv_fail(error, DV_ERROR_NONFINITE,
                       "loss: logits of image %zu are not finite: lower the learning rate, or look for NaN in the data",
                       bad);
    *result = (dv_loss_result){0};
    for (size_t p = 0; p < DV_MAX_PARTS; p++) {
        result->loss += parts[p].loss;
        result->correct += parts[p].correct;
        result->correct5 += parts[p].correct5;
    }
    return DV_OK;
}
