/* Softmax cross-entropy with label smoothing. For one pixel with logits z of K classes and label l:
 *
 *     log p = z - max - log(sum exp(z - max))
 *     target t = smoothing / K, plus 1 - smoothing at l
 *     loss = -sum t log p,   d loss / d z = p - t
 *
 * An image without sides is one pixel. The logits of a batch are an array [pixels of all images][K], whose rows are
 * independent: threads share them, and their losses are added in an order that the shape gives. */
#include "base/float16.h"
#include "base/sizes.h"
#include "nn/parts.h"
#include "nn/shape.h"

#include <math.h>
#include <string.h>

static float load(dv_type type, const void *src, size_t index) {
    return type == DV_F32 ? ((const float *)src)[index] : dv_bf16_to_f32(((const uint16_t *)src)[index]);
}

static void store(dv_type type, void *dst, size_t index, float value) {
    if (type == DV_F32)
        ((float *)dst)[index] = value;
    else
        ((uint16_t *)dst)[index] = dv_bf16_nearest(value);
}

/* One pixel's logits, and what its loss is made of. */
typedef struct softmax {
    dv_type type;
    size_t classes;
    const void *logits;
    float largest;
    double log_sum; /* of exp(z - largest) */
    double total;   /* of z - largest */
    bool finite;
} softmax;

/* What one pixel should be: label `first` with its weight, `second` with the rest. */
typedef struct target {
    size_t first, second;
    double weight, smoothing;
} target;

static const int32_t *labels_of(const dv_targets *targets) {
    return targets->data;
}

/* Second labels are those of images, and so of rows only where an image is one. */
static target target_of(const dv_targets *targets, size_t row) {
    bool mixed = targets->seconds != NULL && targets->weights[row] < 1;
    size_t first = (size_t)labels_of(targets)[row];
    return (target){.first = first,
                    .second = mixed ? (size_t)targets->seconds[row] : first,
                    .weight = mixed ? (double)targets->weights[row] : 1,
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

static size_t pixels_of(const dv_map *map) {
    return dv_map_image_elements(map) / map->channels;
}

static bool is_label(const dv_map *map, int32_t label) {
    return label >= 0 && (size_t)label < map->channels;
}

static dv_status refuse_label(const dv_map *map, int32_t label, size_t row, dv_error *error) {
    size_t pixels = pixels_of(map);
    if (map->rank == 0)
        return dv_fail(error, DV_ERROR_ARGUMENT,
                       "label %d of image %zu is out of range: the model has classes 0 to %zu", (int)label, row,
                       map->channels - 1);
    return dv_fail(error, DV_ERROR_ARGUMENT,
                   "label %d of pixel %zu of image %zu is out of range: the model has classes 0 to %zu, and pixels "
                   "without a label have %d",
                   (int)label, row % pixels, row / pixels, map->channels - 1, DV_NO_LABEL);
}

static dv_status check_labels(const dv_map *map, size_t rows, const dv_targets *targets, size_t *counted,
                              dv_error *error) {
    const int32_t *labels = labels_of(targets);
    *counted = 0;
    for (size_t i = 0; i < rows; i++) {
        bool none = map->rank > 0 && labels[i] == DV_NO_LABEL;
        if (!none && !is_label(map, labels[i]))
            return refuse_label(map, labels[i], i, error);
        *counted += !none;
    }
    return DV_OK;
}

static dv_status check_mixed(const dv_map *map, size_t images, const dv_targets *targets, dv_error *error) {
    for (size_t n = 0; n < images; n++) {
        float weight = targets->weights[n];
        if (!(weight >= 0 && weight <= 1))
            return dv_fail(error, DV_ERROR_ARGUMENT, "the label of image %zu has weight %g: it must be from 0 to 1", n,
                           (double)weight);
        if (weight < 1 && !is_label(map, targets->seconds[n]))
            return refuse_label(map, targets->seconds[n], n, error);
    }
    return DV_OK;
}

/* ---- the batch ----------------------------------------------------------------------------- */

/* A batch as rows of logits. */
typedef struct batch {
    const dv_map *map;
    const dv_loss_call *call;
    size_t rows, row_bytes;
    double factor; /* of the gradient */
} batch;

/* Adds a row to `result`. False: its logits are not finite. */
static bool add_row(const batch *b, size_t row, dv_loss_result *result) {
    softmax s = softmax_of(b->map->type, (const char *)b->call->input + row * b->row_bytes, b->map->channels);
    void *diff = b->call->diff_input ? (char *)b->call->diff_input + row * b->row_bytes : NULL;
    if (!s.finite)
        return false;
    if (labels_of(&b->call->targets)[row] == DV_NO_LABEL) {
        if (diff)
            memset(diff, 0, b->row_bytes);
        return true;
    }
    target t = target_of(&b->call->targets, row);
    size_t rank = rank_of(&s, t.weight >= 0.5 ? t.first : t.second);
    result->loss += loss_of(&s, &t);
    result->correct += rank == 0;
    result->correct5 += rank < 5;
    if (diff)
        write_diff(&s, &t, b->factor, diff);
    return true;
}

/* Adds rows first .. last - 1. Returns the first of them with logits that are not finite, or the count of all rows. */
static size_t add_rows(const batch *b, size_t first, size_t last, dv_loss_result *result) {
    for (size_t row = first; row < last; row++)
        if (!add_row(b, row, result))
            return row;
    return b->rows;
}

/* Sums of all rows. Returns what add_rows does. */
static size_t add_all(const batch *b, dv_loss_result *result) {
    size_t each = (b->rows + DV_MAX_PARTS - 1) / DV_MAX_PARTS, bad = b->rows;
    dv_loss_result parts[DV_MAX_PARTS] = {{0}};
#pragma omp parallel for schedule(static) reduction(min : bad)
    for (size_t p = 0; p < DV_MAX_PARTS; p++) {
        size_t first = dv_smaller(p * each, b->rows), last = dv_smaller(first + each, b->rows);
        bad = dv_smaller(bad, add_rows(b, first, last, &parts[p]));
    }
    for (size_t p = 0; p < DV_MAX_PARTS; p++) {
        result->loss += parts[p].loss;
        result->correct += parts[p].correct;
        result->correct5 += parts[p].correct5;
    }
    return bad;
}

/* ---- the layer ----------------------------------------------------------------------------- */

static dv_status infer(dv_layer *layer, dv_error *error) {
    DV_TRY(dv_layer_check_inputs(layer, 1, 1, error));
    const dv_map *logits = &layer->inputs[0];
    layer->output = (dv_map){.type = logits->type, .layout = DV_NHWC, .images = logits->images, .channels = 1};
    layer->input_need = layer->output_need = DV_NEED_NOTHING;
    layer->target_bytes = pixels_of(logits) * sizeof(int32_t);
    layer->takes_labels = true;
    layer->mixes_labels = logits->rank == 0;
    return DV_OK;
}

static dv_status loss(const dv_layer *layer, const dv_loss_call *call, dv_loss_result *result, dv_error *error) {
    const dv_map *map = &layer->inputs[0];
    const dv_targets *targets = &call->targets;
    size_t counted, pixels = pixels_of(map), rows = call->images * pixels;
    if (!(targets->smoothing >= 0 && targets->smoothing <= 1))
        return dv_fail(error, DV_ERROR_OPTION, "label smoothing is %g: it must be from 0 to 1",
                       (double)targets->smoothing);
    DV_TRY(check_labels(map, rows, targets, &counted, error));
    if (targets->seconds)
        DV_TRY(check_mixed(map, call->images, targets, error));
    double divisor = (double)dv_larger(counted, 1); /* without a label: no loss */
    const batch b = {map, call, rows, map->channels * dv_type_bytes(map->type), (double)call->scale / divisor};
    *result = (dv_loss_result){.counted = counted};
    size_t bad = add_all(&b, result);
    if (bad < rows)
        return dv_fail(error, DV_ERROR_NONFINITE, "logits of image %zu are not finite", bad / pixels);
    result->loss /= divisor;
    return DV_OK;
}

const dv_layer_kind dv_softmax_cross_entropy = {.name = "softmax_cross_entropy", .infer = infer, .loss = loss};
