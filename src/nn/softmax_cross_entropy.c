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
    size_t classes;
    const void *logits;
    float largest;
    double log_sum; /* of exp(z - largest) */
    double total;   /* of z - largest */
    bool finite;
} softmax;

/* What one image should be: label `first` with its weight, `second` with the rest. */
typedef struct target {
    size_t first, second;
    double weight, smoothing;
} target;

static target target_of(const dv_targets *targets, size_t image) {
    bool mixed = targets->seconds != NULL && targets->weights[image] < 1;
    size_t first = (size_t)targets->labels[image];
    return (target){.first = first,
                    .second = mixed ? (size_t)targets->seconds[image] : first,
                    .weight = mixed ? (double)targets->weights[image] : 1,
                    .smoothing = (double)targets->smoothing};
}

static softmax softmax_of(dv_type type, const void *logits, size_t classes) {
    softmax s = {type, classes, logits, load(type, logits, 0), 0, 0, true};
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

/* The logarithm of the probability of a class. */
static double log_probability(const softmax *s, size_t class) {
    return (double)(load(s->type, s->logits, class) - s->largest) - s->log_sum;
}

static double loss_of(const softmax *s, const target *t) {
    double classes = (double)s->classes, all = s->total - classes * s->log_sum; /* sum of log p */
    double own = log_probability(s, t->first);
    if (t->weight < 1)
        own = t->weight * own + (1 - t->weight) * log_probability(s, t->second);
    return -(1 - t->smoothing) * own - t->smoothing / classes * all;
}

static void write_diff(const softmax *s, const target *t, double factor, void *diff) {
    double share = t->smoothing / (double)s->classes, inverse = exp(-s->log_sum);
    double first = (1 - t->smoothing) * t->weight, second = (1 - t->smoothing) * (1 - t->weight);
    for (size_t k = 0; k < s->classes; k++) {
        double p = (double)expf(load(s->type, s->logits, k) - s->largest) * inverse;
        double wanted = share + (k == t->first ? first : 0) + (k == t->second ? second : 0);
        store(s->type, diff, k, (float)((p - wanted) * factor));
    }
}

/* Place of a class among the logits, from 0; of equals the first comes first. */
static size_t rank_of(const softmax *s, size_t class) {
    float own = load(s->type, s->logits, class);
    size_t before = 0;
    for (size_t k = 0; k < s->classes; k++) {
        float logit = load(s->type, s->logits, k);
        before += logit > own || (logit == own && k < class);
    }
    return before;
}

/* ---- checks -------------------------------------------------------------------------------- */

static dv_status check_label(const dv_map *map, int32_t label, size_t image, dv_error *error) {
    if (label >= 0 && (size_t)label < map->channels)
        return DV_OK;
    return dv_fail(error, DV_ERROR_ARGUMENT, "label %d of image %zu is out of range: the model has classes 0 to %zu",
                   (int)label, image, map->channels - 1);
}

static dv_status check_labels(const dv_map *map, const dv_targets *targets, dv_error *error) {
    for (size_t n = 0; n < map->images; n++) {
        DV_TRY(check_label(map, targets->labels[n], n, error));
        if (targets->seconds == NULL)
            continue;
        float weight = targets->weights[n];
        if (!(weight >= 0 && weight <= 1))
            return dv_fail(error, DV_ERROR_ARGUMENT, "the label of image %zu has weight %g: it must be from 0 to 1", n,
                           (double)weight);
        if (weight < 1)
            DV_TRY(check_label(map, targets->seconds[n], n, error));
    }
    return DV_OK;
}

static dv_status check(const dv_map *map, const dv_targets *targets, dv_error *error) {
    DV_TRY(dv_map_check(map, error));
    if (map->rank != 0 || (map->type != DV_F32 && map->type != DV_BF16))
        return dv_fail(error, DV_ERROR_UNSUPPORTED, "logits are %s %s: they must be f32 or bf16 [images, classes]",
                       dv_type_name(map->type), dv_shape(map).text);
    if (!(targets->smoothing >= 0 && targets->smoothing <= 1))
        return dv_fail(error, DV_ERROR_OPTION, "label smoothing is %g: it must be from 0 to 1",
                       (double)targets->smoothing);
    return check_labels(map, targets, error);
}

/* ---- the batch ----------------------------------------------------------------------------- */

/* Adds images first .. last - 1 to `result`. Returns the first of them with logits that are not finite, or last. */
static size_t add_images(const dv_map *map, const void *logits, const dv_targets *targets, double factor, void *diff,
                         size_t first, size_t last, dv_loss_result *result) {
    for (size_t n = first; n < last; n++) {
        softmax s = softmax_of(map->type, dv_image(map, logits, n), map->channels);
        target t = target_of(targets, n);
        if (!s.finite)
            return n;
        size_t rank = rank_of(&s, t.weight >= 0.5 ? t.first : t.second);
        result->loss += loss_of(&s, &t);
        result->correct += rank == 0;
        result->correct5 += rank < 5;
        if (diff)
            write_diff(&s, &t, factor, dv_image_in(map, diff, n));
    }
    return last;
}

dv_status dv_softmax_cross_entropy(const dv_map *logits_map, const void *logits, const dv_targets *targets, float scale,
                                   void *diff, dv_loss_result *result, dv_error *error) {
    DV_TRY(check(logits_map, targets, error));
    size_t images = logits_map->images, each = (images + DV_MAX_PARTS - 1) / DV_MAX_PARTS;
    dv_loss_result parts[DV_MAX_PARTS] = {{0}};
    size_t bad = images;
#pragma omp parallel for schedule(static) reduction(min : bad)
    for (size_t p = 0; p < DV_MAX_PARTS; p++) {
        size_t first = p * each < images ? p * each : images, last = first + each < images ? first + each : images;
        size_t stop =
            add_images(logits_map, logits, targets, (double)scale / (double)images, diff, first, last, &parts[p]);
        if (stop < last && stop < bad)
            bad = stop;
    }
    if (bad < images)
        return dv_fail(error, DV_ERROR_NONFINITE, "logits of image %zu are not finite", bad);
    *result = (dv_loss_result){0};
    for (size_t p = 0; p < DV_MAX_PARTS; p++) {
        result->loss += parts[p].loss;
        result->correct += parts[p].correct;
        result->correct5 += parts[p].correct5;
    }
    return DV_OK;
}
