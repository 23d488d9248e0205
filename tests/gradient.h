/* A layer on a test bench: all its memory, guarded, and the checks that every kind must pass.
 *
 *     layer_case c = {.kind = &dv_relu, .input_count = 1, .inputs = {{DV_F32, DV_NHWC, 2, 17, 2, {3, 5}}}};
 *     check_layer(&c);
 *
 * check_layer compares every gradient with central finite differences of a random linear functional of the
 * output, and then holds every other way of running the layer to the first: recomputed, accumulating, in place, with
 * inputs that were packed, with gradients that are not wanted, with parameters that are frozen, in bf16, in memory for
 * twice as many images, on 1, 2 and 5 threads and with every instruction set. A case names the kind, its options and
 * the shapes of its inputs, in f32; parameters can be frozen, and then what is not needed for them is not there. */
#ifndef DV_TESTS_GRADIENT_H
#define DV_TESTS_GRADIENT_H

#include "base/cpu.h"
#include "graph/keeper.h"
#include "maps.h"
#include "nn/layer.h"

#include <omp.h>

enum { BENCH_MAX_INPUTS = 4, BENCH_MAX_ARRAYS = 24, BENCH_SAMPLES = 40 };

typedef struct layer_case {
    const dv_layer_kind *kind;
    const void *options;
    size_t input_count;
    dv_map inputs[BENCH_MAX_INPUTS]; /* f32, NHWC */
    unsigned frozen;                 /* bit p: parameter p is not trained */
    float step;                      /* of the finite difference; 0: 2^-8 */
    float tolerance;                 /* of a gradient, relative to the norm of its array; 0: 2e-3 */
    float bf16_tolerance;            /* of anything in bf16, relative to the norm of its array; 0: 3e-2 */
    bool library_order;              /* a library chooses the order of sums: runs agree to rounding only */
    bool planned_order;              /* ... which depends on the images that were planned for alone */
} layer_case;

/* How one forward and backward is done. All zero is the plain way. */
typedef struct bench_mode {
    bool in_place;         /* output in the memory of inputs[0] */
    int diff_in_place;     /* 1 + the input whose gradient is in the memory of diff_output, or 0 */
    bool accumulate;       /* add to what is in the gradients: then it is subtracted again */
    const char *codec;     /* that kept inputs are packed with; NULL: kept exact */
    bool decoded;          /* with codec: kept exact, but as they come out of it */
    bool mask_from_output; /* no output_mask are asked for: they are made of the exact output */
    unsigned unwanted;     /* bit i: the gradient of input i is not wanted */
    bool inference;        /* forward only, with running statistics */
} bench_mode;

/* What a run leaves, for comparisons: f32, or bytes that must be equal. */
typedef struct bench_array {
    char name[48];
    size_t count;
    float *numbers;
} bench_array;

typedef struct bench_result {
    size_t count;
    bench_array arrays[BENCH_MAX_ARRAYS];
    uint8_t *mask; /* output_mask, or NULL */
    size_t mask_bytes;
} bench_result;

/* The layer and its memory. */
typedef struct bench {
    const layer_case *of;
    dv_type type;
    size_t images; /* that there are; the maps may have room for more, which are NaN */
    dv_layer layer;
    dv_layer_arrays arrays;
    unsigned trained; /* bit p: parameter p */
    dv_map maps[BENCH_MAX_INPUTS];
    void *inputs[BENCH_MAX_INPUTS]; /* values as given */
} bench;

/* ---- numbers ------------------------------------------------------------------------------- */

/* Distinct numbers of either sign in [-2, 2], in a random order, none of them close to zero or to another
 * (for up to some hundred of them): so that a small step passes no kink of a maximum. */
static inline float bench_number(uint64_t seed, size_t index, size_t count) {
    size_t multiplier = 7919; /* a prime: a permutation if it does not divide count */
    while (count % multiplier == 0)
        multiplier++;
    size_t place = (index * multiplier + seed * 31) % count;
    return (float)(((double)place + 0.25) / (double)count - 0.5) * 4.0f;
}

/* What is in the gradient of input `i` before something is added to it: small, so that what is added keeps its
 * digits in bf16. */
static inline float bench_before(size_t i, size_t index, size_t count) {
    return dv_bf16_to_f32(dv_bf16_nearest(bench_number(41 + i, index, count) / 32));
}

static inline float *bench_numbers_of(dv_type type, const void *src, size_t count) {
    float *numbers = malloc((count ? count : 1) * sizeof(float));
    assert_non_null(numbers);
    for (size_t i = 0; i < count; i++)
        numbers[i] = load_element(type, src, i);
    return numbers;
}

/* Numbers that bf16 can hold, in the wanted type, in guarded memory. */
static inline void *bench_fill(dv_type type, size_t count, uint64_t seed, bool rounded) {
    void *memory = guarded_new(count * dv_type_bytes(type));
    for (size_t i = 0; i < count; i++) {
        float value = bench_number(seed, i, count);
        store_element(type, memory, i, rounded ? dv_bf16_to_f32(dv_bf16_nearest(value)) : value);
    }
    return memory;
}

/* The same for the first `images` of a map, and NaN behind them. */
static inline void *bench_fill_images(const dv_map *map, size_t images, uint64_t seed, bool rounded) {
    size_t count = images * dv_map_image_elements(map), bytes = dv_type_bytes(map->type);
    void *memory = guarded_new(dv_map_bytes(map)), *numbers = bench_fill(map->type, count, seed, rounded);
    memset(memory, 0xFF, dv_map_bytes(map));
    memcpy(memory, numbers, count * bytes);
    guarded_free(numbers, count * bytes);
    return memory;
}

static inline double bench_norm(const float *x, size_t count) {
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (double)x[i] * (double)x[i];
    return sqrt(sum);
}

/* ---- the bench ----------------------------------------------------------------------------- */

/* A layer of the case in `type`, with parameters and inputs, planned for so many images. `rounded`: inputs that bf16
 * can hold. */
static inline void bench_init_planned(bench *b, const layer_case *of, size_t planned, dv_type type, bool rounded) {
    *b = (bench){.of = of, .type = type, .images = of->inputs[0].images};
    for (size_t i = 0; i < of->input_count; i++) {
        b->maps[i] = of->inputs[i];
        b->maps[i].type = type;
        b->maps[i].images = planned;
        b->inputs[i] = bench_fill_images(&b->maps[i], b->images, 3 + i, rounded);
    }
    b->layer = (dv_layer){.kind = of->kind,
                          .name = "tested",
                          .options = of->options,
                          .input_count = of->input_count,
                          .inputs = b->maps,
                          .input_need_mask = ~0u};
    assert_ok(of->kind->infer(&b->layer, &error));
    b->trained = ((1u << b->layer.parameter_count) - 1) & ~of->frozen;
    b->arrays.frozen = b->layer.parameter_count > 0 && b->trained == 0;
    for (size_t p = 0; p < b->layer.parameter_count; p++) {
        size_t count = b->layer.parameters[p].count;
        b->arrays.parameters[p] = bench_fill(DV_F32, count, 11 + p, true);
        if (b->trained >> p & 1)
            b->arrays.gradients[p] = bench_fill(DV_F32, count, 17 + p, false);
    }
    for (size_t p = 0; p < b->layer.buffer_count; p++)
        b->arrays.buffers[p] = guarded_new(b->layer.buffers[p].count * sizeof(float));
    if (of->kind->prepare)
        assert_ok(of->kind->prepare(&b->layer, &error));
}

/* The same for the images that there are. */
static inline void bench_init(bench *b, const layer_case *of, dv_type type, bool rounded) {
    bench_init_planned(b, of, of->inputs[0].images, type, rounded);
}

/* Elements of the images that there are. */
static inline size_t bench_elements(const bench *b, const dv_map *map) {
    return b->images * dv_map_image_elements(map);
}

static inline void bench_destroy(bench *b) {
    if (b->of->kind->destroy)
        b->of->kind->destroy(&b->layer);
    for (size_t i = 0; i < b->of->input_count; i++)
        guarded_free(b->inputs[i], dv_map_bytes(&b->maps[i]));
    for (size_t p = 0; p < b->layer.parameter_count; p++) {
        guarded_free(b->arrays.parameters[p], b->layer.parameters[p].count * sizeof(float));
        if (b->arrays.gradients[p])
            guarded_free(b->arrays.gradients[p], b->layer.parameters[p].count * sizeof(float));
    }
    for (size_t p = 0; p < b->layer.buffer_count; p++)
        guarded_free(b->arrays.buffers[p], b->layer.buffers[p].count * sizeof(float));
}

/* The numbers that the output is multiplied with: diff_output, in the layer's type. */
static inline void *bench_diff_output(const bench *b) {
    return bench_fill_images(&b->layer.output, b->images, 29, true);
}

static inline void bench_reset_buffers(bench *b) {
    for (size_t p = 0; p < b->layer.buffer_count; p++)
        for (size_t i = 0; i < b->layer.buffers[p].count; i++)
            b->arrays.buffers[p][i] = b->layer.buffers[p].start + 0.25f * bench_number(5, i, b->layer.buffers[p].count);
}

/* ---- results ------------------------------------------------------------------------------- */

static inline void bench_add(bench_result *result, const char *name, size_t index, dv_type type, const void *src,
                             size_t count) {
    assert_true(result->count < BENCH_MAX_ARRAYS);
    bench_array *array = &result->arrays[result->count++];
    snprintf(array->name, sizeof array->name, "%s %zu", name, index);
    array->count = count;
    array->numbers = bench_numbers_of(type, src, count);
}

static inline void bench_result_free(bench_result *result) {
    for (size_t i = 0; i < result->count; i++)
        free(result->arrays[i].numbers);
    free(result->mask);
    *result = (bench_result){0};
}

/* What to say about a case that fails. */
static inline const char *bench_text(const layer_case *of) {
    static char text[400];
    int length = snprintf(text, sizeof text, "%s", of->kind->name);
    for (size_t i = 0; i < of->input_count; i++)
        length += snprintf(text + length, sizeof text - (size_t)length, ", %s", map_text(&of->inputs[i]));
    return text;
}

/* Fails unless the arrays differ by less than `tolerance` of the expected one's norm: none by more than
 * that, and with tolerance 0 not in a bit. */
static inline void bench_compare(const layer_case *of, const char *what, const bench_result *got,
                                 const bench_result *expected, double tolerance) {
    for (size_t a = 0; a < expected->count; a++) {
        const bench_array *want = &expected->arrays[a];
        const bench_array *have = NULL;
        for (size_t i = 0; i < got->count && !have; i++)
            have = strcmp(got->arrays[i].name, want->name) == 0 ? &got->arrays[i] : NULL;
        if (!have)
            continue;
        assert_int_equal(have->count, want->count);
        if (tolerance == 0) {
            if (memcmp(have->numbers, want->numbers, want->count * sizeof(float)) != 0)
                fail_msg("%s: %s: %s differs", bench_text(of), what, want->name);
            continue;
        }
        double norm = bench_norm(want->numbers, want->count), distance = 0;
        for (size_t i = 0; i < want->count; i++)
            distance += pow((double)have->numbers[i] - (double)want->numbers[i], 2);
        if (!(sqrt(distance) <= tolerance * (norm + 1e-3)))
            fail_msg("%s: %s: %s differs by %g of a norm of %g", bench_text(of), what, want->name, sqrt(distance),
                     norm);
    }
}

/* ---- running ------------------------------------------------------------------------------- */

/* All memory of one run. */
typedef struct bench_memory {
    void *inputs[BENCH_MAX_INPUTS]; /* copies */
    void *output, *saved, *forward_workspace, *backward_workspace;
    uint8_t *mask;
    void *diff_output, *diff_inputs[BENCH_MAX_INPUTS];
    void *packed[BENCH_MAX_INPUTS];
    size_t packed_bytes[BENCH_MAX_INPUTS];
} bench_memory;

static inline size_t bench_mask_bytes(const bench *b) {
    return b->layer.output.images * dv_mask_stride(&b->layer.output);
}

static inline void bench_memory_init(const bench *b, const bench_mode *mode, bench_memory *m) {
    const dv_layer *layer = &b->layer;
    *m = (bench_memory){0};
    for (size_t i = 0; i < b->of->input_count; i++) {
        m->inputs[i] = guarded_new(dv_map_bytes(&b->maps[i]));
        memcpy(m->inputs[i], b->inputs[i], dv_map_bytes(&b->maps[i]));
        m->diff_inputs[i] = guarded_new(dv_map_bytes(&b->maps[i]));
        for (size_t j = 0; mode->accumulate && j < bench_elements(b, &b->maps[i]); j++)
            store_element(b->type, m->diff_inputs[i], j, bench_before(i, j, bench_elements(b, &b->maps[i])));
    }
    m->output = guarded_new(dv_map_bytes(&layer->output));
    m->saved = guarded_new(dv_layer_saved_bytes(layer, b->trained));
    m->forward_workspace = guarded_new(layer->forward_workspace_bytes);
    m->backward_workspace = guarded_new(layer->backward_workspace_bytes);
    m->mask = guarded_new(bench_mask_bytes(b));
    m->diff_output = bench_diff_output(b);
}

static inline void bench_memory_free(const bench *b, bench_memory *m) {
    const dv_layer *layer = &b->layer;
    for (size_t i = 0; i < b->of->input_count; i++) {
        guarded_free(m->inputs[i], dv_map_bytes(&b->maps[i]));
        guarded_free(m->diff_inputs[i], dv_map_bytes(&b->maps[i]));
        if (m->packed[i])
            guarded_free(m->packed[i], m->packed_bytes[i]);
    }
    guarded_free(m->output, dv_map_bytes(&layer->output));
    guarded_free(m->saved, dv_layer_saved_bytes(layer, b->trained));
    guarded_free(m->forward_workspace, layer->forward_workspace_bytes);
    guarded_free(m->backward_workspace, layer->backward_workspace_bytes);
    guarded_free(m->mask, bench_mask_bytes(b));
    guarded_free(m->diff_output, dv_map_bytes(&layer->output));
}

/* Runs forward; the output is where this returns. */
static inline void *bench_forward(bench *b, const bench_mode *mode, bench_memory *m) {
    const void *inputs[BENCH_MAX_INPUTS];
    for (size_t i = 0; i < b->of->input_count; i++)
        inputs[i] = m->inputs[i];
    bench_reset_buffers(b);
    bool mask = b->layer.output_need == DV_NEED_MASK && !mode->mask_from_output;
    dv_forward call = {.images = b->images,
                       .arrays = &b->arrays,
                       .inputs = inputs,
                       .output = mode->in_place ? m->inputs[0] : m->output,
                       .output_mask = mask ? m->mask : NULL,
                       .saved = mode->inference ? NULL : m->saved,
                       .workspace = m->forward_workspace,
                       .training = !mode->inference,
                       .seed = 1,
                       .step = 2,
                       .key = 3};
    assert_ok(b->of->kind->forward(&b->layer, &call, &error));
    return call.output;
}

/* How input `i` is kept: as it was given, packed, or unpacked again. */
static inline dv_kept bench_keep(bench *b, const bench_mode *mode, bench_memory *m, size_t i) {
    dv_kept kept = {.access = &dv_keep_exact.access,
                    .map = b->maps[i],
                    .noise = {.seed = 1, .step = 2, .value = 100 + i},
                    .exact = b->inputs[i]};
    if (!mode->codec)
        return kept;
    assert_ok(dv_codec_parse(mode->codec, &kept.codec, &error));
    assert_ok(dv_codec_packed_bytes(&kept.codec, &kept.map, &kept.packed_bytes, &error));
    m->packed_bytes[i] = kept.packed_bytes;
    kept.packed = m->packed[i] = guarded_new(kept.packed_bytes);
    assert_ok(dv_codec_encode_images(&kept.codec, &kept.map, &kept.noise, 0, b->images, b->inputs[i], m->packed[i],
                                     kept.packed_bytes, &error));
    kept.exact = NULL;
    kept.access = &dv_keep_packed.access;
    if (mode->decoded) {
        assert_ok(dv_codec_decode_images(&kept.codec, &kept.map, &kept.noise, 0, b->images, kept.packed,
                                         kept.packed_bytes, m->inputs[i], &error));
        kept.exact = m->inputs[i];
        kept.access = &dv_keep_exact.access;
        kept.packed = NULL;
    }
    return kept;
}

static inline void bench_backward(bench *b, const bench_mode *mode, bench_memory *m, const void *output) {
    dv_kept inputs[BENCH_MAX_INPUTS];
    const dv_kept *needed[BENCH_MAX_INPUTS] = {0};
    void *diffs[BENCH_MAX_INPUTS];
    bool accumulate[BENCH_MAX_INPUTS];
    for (size_t i = 0; i < b->of->input_count; i++) {
        inputs[i] = bench_keep(b, mode, m, i);
        if (dv_layer_input_need(&b->layer, i, b->trained) != DV_NEED_NOTHING)
            needed[i] = &inputs[i];
        diffs[i] = mode->diff_in_place == (int)i + 1 ? m->diff_output : m->diff_inputs[i];
        if (mode->unwanted >> i & 1)
            diffs[i] = NULL;
        accumulate[i] = mode->accumulate;
    }
    dv_kept kept_output = {.map = b->layer.output, .exact = mode->mask_from_output ? output : NULL};
    kept_output.mask_access = mode->mask_from_output ? &dv_keep_exact.access : &dv_keep_mask.access;
    kept_output.mask_in = &kept_output;
    if (!mode->mask_from_output)
        kept_output.mask = m->mask;
    dv_backward call = {.images = b->images,
                        .arrays = &b->arrays,
                        .diff_output = m->diff_output,
                        .diff_inputs = diffs,
                        .accumulate = accumulate,
                        .inputs = needed,
                        .output = b->layer.output_need == DV_NEED_NOTHING ? NULL : &kept_output,
                        .saved = m->saved,
                        .workspace = m->backward_workspace,
                        .seed = 1,
                        .step = 2,
                        .key = 3};
    assert_ok(b->of->kind->backward(&b->layer, &call, &error));
}

/* Has the layer recompute its output from its inputs, which are kept as they are or packed without loss, `at_once`
 * images at a time: not a bit may differ. */
static inline void bench_recompute(bench *b, bench_memory *m, const void *output, const char *codec, size_t at_once) {
    const dv_map *map = &b->layer.output;
    size_t image = dv_map_bytes(map) / map->images;
    bench_mode mode = {.codec = codec};
    dv_kept inputs[BENCH_MAX_INPUTS];
    const dv_kept *needed[BENCH_MAX_INPUTS];
    for (size_t i = 0; i < b->of->input_count; i++) {
        inputs[i] = bench_keep(b, &mode, m, i);
        needed[i] = &inputs[i];
    }
    dv_kept kept = {.access = &dv_keep_recomputed.access,
                    .map = *map,
                    .producer = &b->layer,
                    .arrays = &b->arrays,
                    .inputs = needed,
                    .saved = m->saved};
    kept.mask = b->layer.output_need == DV_NEED_MASK ? m->mask : NULL;
    kept.workspace = guarded_new(b->layer.recompute_bytes);
    for (size_t first = 0; first < b->images; first += at_once) {
        size_t count = b->images - first < at_once ? b->images - first : at_once;
        void *images = guarded_new(count * image);
        const void *found;
        assert_ok(dv_kept_images(&kept, first, count, images, &found, &error));
        if (found != images || memcmp(images, (const char *)output + first * image, count * image) != 0)
            fail_msg("%s: recomputed: image %zu or one of the next differs", bench_text(b->of), first);
        guarded_free(images, count * image);
    }
    guarded_free(kept.workspace, b->layer.recompute_bytes);
    for (size_t i = 0; i < b->of->input_count && codec; i++) {
        guarded_free(m->packed[i], m->packed_bytes[i]);
        m->packed[i] = NULL;
    }
}

/* Collects the gradients, less what was in their memory before. */
static inline void bench_collect_gradients(bench *b, const bench_mode *mode, bench_memory *m, bench_result *result) {
    for (size_t i = 0; i < b->of->input_count; i++) {
        if (mode->unwanted >> i & 1)
            continue;
        size_t count = bench_elements(b, &b->maps[i]);
        bench_add(result, "gradient of input", i, b->type,
                  mode->diff_in_place == (int)i + 1 ? m->diff_output : m->diff_inputs[i], count);
        for (size_t j = 0; mode->accumulate && j < count; j++)
            result->arrays[result->count - 1].numbers[j] -= bench_before(i, j, count);
    }
    for (size_t p = 0; p < b->layer.parameter_count; p++) {
        size_t count = b->layer.parameters[p].count;
        if (!b->arrays.gradients[p])
            continue;
        bench_add(result, "gradient of parameter", p, DV_F32, b->arrays.gradients[p], count);
        for (size_t j = 0; mode->accumulate && j < count; j++)
            result->arrays[result->count - 1].numbers[j] -= bench_number(17 + p, j, count);
    }
}

/* One forward and, unless it is inference, one backward. */
static inline bench_result bench_run(bench *b, const bench_mode *mode) {
    bench_memory m;
    bench_result result = {0};
    bench_memory_init(b, mode, &m);
    for (size_t p = 0; p < b->layer.parameter_count; p++)
        for (size_t j = 0; b->arrays.gradients[p] && j < b->layer.parameters[p].count; j++)
            b->arrays.gradients[p][j] = mode->accumulate ? bench_number(17 + p, j, b->layer.parameters[p].count) : 0;
    void *output = bench_forward(b, mode, &m);
    bench_add(&result, "output", 0, b->type, output, bench_elements(b, &b->layer.output));
    for (size_t p = 0; p < b->layer.buffer_count; p++)
        bench_add(&result, "buffer", p, DV_F32, b->arrays.buffers[p], b->layer.buffers[p].count);
    if (b->layer.output_need == DV_NEED_MASK && !mode->mask_from_output) {
        size_t stride = dv_mask_stride(&b->layer.output), bytes = (dv_map_image_elements(&b->layer.output) + 7) / 8;
        result.mask_bytes = bytes * b->images;
        result.mask = malloc(result.mask_bytes);
        assert_non_null(result.mask);
        for (size_t n = 0; n < b->images; n++)
            memcpy(result.mask + n * bytes, m.mask + n * stride, bytes);
    }
    if (b->of->kind->recompute && !mode->inference && !mode->mask_from_output) {
        bench_recompute(b, &m, output, NULL, 2);
        bench_recompute(b, &m, output, "exact", 2);
    }
    if (!mode->inference) {
        bench_backward(b, mode, &m, output);
        bench_collect_gradients(b, mode, &m, &result);
    }
    bench_memory_free(b, &m);
    return result;
}

/* ---- finite differences -------------------------------------------------------------------- */

/* Sum of the output times diff_output, in double. */
static inline double bench_functional(bench *b) {
    bench_memory m;
    bench_mode mode = {0};
    double sum = 0;
    bench_memory_init(b, &mode, &m);
    void *output = bench_forward(b, &mode, &m);
    for (size_t i = 0; i < bench_elements(b, &b->layer.output); i++)
        sum += (double)load_element(b->type, output, i) * (double)load_element(b->type, m.diff_output, i);
    bench_memory_free(b, &m);
    return sum;
}

/* The functional's slope in *x, measured with a step to each side. */
typedef struct bench_slope {
    double left, right, both;
} bench_slope;

static inline bench_slope bench_slope_at(bench *b, float *x, float step) {
    float before = *x;
    volatile float up = before + step, down = before - step;
    double here = bench_functional(b);
    *x = up;
    double above = bench_functional(b);
    *x = down;
    double below = bench_functional(b);
    *x = before;
    return (bench_slope){.left = (here - below) / ((double)before - (double)down),
                         .right = (above - here) / ((double)up - (double)before),
                         .both = (above - below) / ((double)up - (double)down)};
}

/* Compares samples of one gradient with slopes. Where a step passes a kink (left and right differ), nothing
 * can be said; but that must be rare. */
static inline void bench_check_slopes(bench *b, const char *name, float *x, const float *gradient, size_t count) {
    double tolerance = b->of->tolerance > 0 ? (double)b->of->tolerance : 2e-3;
    float step = b->of->step > 0 ? b->of->step : 0x1p-8f;
    double allowed = tolerance * (bench_norm(gradient, count) / sqrt((double)count) + 0.1);
    size_t samples = count < BENCH_SAMPLES ? count : BENCH_SAMPLES, kinks = 0;
    for (size_t s = 0; s < samples; s++) {
        size_t i = s * count / samples;
        bench_slope slope = bench_slope_at(b, &x[i], step);
        double difference = fabs(slope.both - (double)gradient[i]);
        if (difference <= allowed + tolerance * fabs(slope.both))
            continue;
        if (fabs(slope.left - slope.right) > difference)
            kinks++;
        else
            fail_msg("%s: %s, element %zu: gradient %g, finite difference %g", bench_text(b->of), name, i,
                     (double)gradient[i], slope.both);
    }
    if (kinks > 1 + samples / 5)
        fail_msg("%s: %s: %zu of %zu samples are on kinks", bench_text(b->of), name, kinks, samples);
}

static inline void check_finite_differences(const layer_case *of) {
    bench b;
    bench_mode plain = {0};
    bench_init(&b, of, DV_F32, false);
    bench_result result = bench_run(&b, &plain);
    for (size_t a = 0; a < result.count; a++) {
        bench_array *array = &result.arrays[a];
        size_t index = (size_t)(array->name[strlen(array->name) - 1] - '0');
        if (strncmp(array->name, "gradient of input", 17) == 0)
            bench_check_slopes(&b, array->name, b.inputs[index], array->numbers, array->count);
        if (strncmp(array->name, "gradient of parameter", 21) == 0)
            bench_check_slopes(&b, array->name, b.arrays.parameters[index], array->numbers, array->count);
    }
    bench_result_free(&result);
    bench_destroy(&b);
}

/* ---- other ways of doing the same ---------------------------------------------------------- */

/* Runs in `mode` and compares with `expected`. */
static inline void bench_expect(bench *b, const char *what, bench_mode mode, const bench_result *expected,
                                double tolerance) {
    bench_result got = bench_run(b, &mode);
    bench_compare(b->of, what, &got, expected, tolerance);
    if (got.mask && expected->mask && tolerance == 0 && memcmp(got.mask, expected->mask, got.mask_bytes) != 0)
        fail_msg("%s: %s: output_mask differ", bench_text(b->of), what);
    bench_result_free(&got);
}

/* Accumulating, in place, mask from the output, gradients that are not wanted. */
static inline void bench_check_modes(bench *b, const bench_result *plain) {
    const dv_layer_kind *kind = b->of->kind;
    double exact = b->of->library_order ? 1e-5 : 0, rounding = b->type == DV_F32 ? 1e-5 : 2e-2;
    bench_expect(b, "accumulated", (bench_mode){.accumulate = true}, plain, rounding);
    if (kind->in_place)
        bench_expect(b, "in place", (bench_mode){.in_place = true}, plain, 0);
    for (size_t i = 0; i < b->of->input_count; i++) {
        if (kind->diff_in_place >> i & 1)
            bench_expect(b, "gradient in place", (bench_mode){.diff_in_place = (int)i + 1}, plain, exact);
        bench_expect(b, "gradient not wanted", (bench_mode){.unwanted = 1u << i}, plain, exact);
        bench_expect(b, "one gradient wanted, accumulated", (bench_mode){.unwanted = ~(1u << i), .accumulate = true},
                     plain, rounding);
    }
    if (b->layer.output_need == DV_NEED_MASK)
        bench_expect(b, "mask from the output", (bench_mode){.mask_from_output = true}, plain, exact);
}

/* Inputs that were packed: exactly, and with loss against the same loss without packing. */
static inline void bench_check_packed(bench *b, const bench_result *plain) {
    static const char *const lossy[] = {"division", "division:bits=4,dither=subtractive"};
    if (dv_layer_input_need(&b->layer, 0, b->trained) != DV_NEED_NUMBERS)
        return;
    bench_expect(b, "packed exactly", (bench_mode){.codec = "exact"}, plain, 1e-5);
    for (size_t c = 0; c < 2; c++) {
        bench_result expected = bench_run(b, &(bench_mode){.codec = lossy[c], .decoded = true});
        double rounding = b->type == DV_F32 ? 1e-5 : 2e-2;
        bench_expect(b, lossy[c], (bench_mode){.codec = lossy[c]}, &expected, 1e-5);
        bench_expect(b, lossy[c], (bench_mode){.codec = lossy[c], .accumulate = true}, &expected, rounding);
        bench_expect(b, lossy[c], (bench_mode){.codec = lossy[c], .unwanted = ~0u}, &expected, 1e-5);
        bench_result_free(&expected);
    }
}

/* Fewer images than the layer was planned for are as good as a layer that was planned for them, whatever is behind
 * them: to the bit, but where a library adds up images or packed inputs come by other slices. */
static inline void bench_check_planned(const bench *b, const bench_result *plain) {
    const layer_case *of = b->of;
    double exact = !of->library_order && !of->planned_order ? 0 : b->type == DV_F32 ? 1e-5 : 1e-2;
    double rounding = b->type == DV_F32 ? 1e-5 : 2e-2;
    bench larger;
    bench_init_planned(&larger, of, 2 * b->images, b->type, true);
    bench_expect(&larger, "half of the images planned for", (bench_mode){0}, plain, exact);
    bench_expect(&larger, "half of the images, accumulated", (bench_mode){.accumulate = true}, plain, rounding);
    bench_expect(&larger, "half of the images, in parts", (bench_mode){.unwanted = 1, .mask_from_output = true}, plain,
                 rounding);
    if (dv_layer_input_need(&b->layer, 0, b->trained) == DV_NEED_NUMBERS)
        bench_expect(&larger, "half of the images, packed", (bench_mode){.codec = "exact"}, plain, rounding);
    bench_destroy(&larger);
}

/* Parameters that are frozen change nothing for the others and for the inputs; but for a whole layer that has running
 * statistics, which it takes then. */
static inline void bench_check_frozen(const bench *b, const bench_result *plain) {
    layer_case of = *b->of;
    unsigned all = (1u << b->layer.parameter_count) - 1;
    for (of.frozen = 1; of.frozen <= all && b->of->frozen == 0; of.frozen++) {
        bench frozen;
        if (of.frozen == all && b->layer.buffer_count > 0)
            continue;
        bench_init(&frozen, &of, b->type, true);
        double rounding = b->type == DV_F32 ? 1e-5 : 2e-2;
        bench_expect(&frozen, "frozen", (bench_mode){0}, plain, of.library_order ? 1e-5 : 0);
        bench_expect(&frozen, "frozen, accumulated", (bench_mode){.accumulate = true}, plain, rounding);
        bench_expect(&frozen, "frozen, the input's gradient not wanted", (bench_mode){.unwanted = ~0u}, plain,
                     of.library_order ? 1e-5 : 0);
        bench_destroy(&frozen);
    }
}

/* The same bits on any number of threads and with any instruction set, unless a library sees to that. */
static inline void bench_check_machines(bench *b, const bench_result *plain) {
    double tolerance = b->of->library_order ? 1e-5 : 0;
    int threads = omp_get_max_threads();
    dv_isa isa = dv_isa_current();
    static const int counts[] = {1, 2, 5};
    bench_result inference = bench_run(b, &(bench_mode){.inference = true});
    for (size_t t = 0; t < 3; t++) {
        char what[40];
        snprintf(what, sizeof what, "%d threads", counts[t]);
        omp_set_num_threads(counts[t]);
        bench_expect(b, what, (bench_mode){0}, plain, tolerance);
        bench_expect(b, what, (bench_mode){.inference = true}, &inference, tolerance);
    }
    omp_set_num_threads(threads);
    for (int i = 0; i < DV_ISA_COUNT; i++) {
        if (!dv_isa_available((dv_isa)i))
            continue;
        dv_isa_force((dv_isa)i);
        double rounding = !b->of->library_order ? 0 : b->type == DV_F32 ? 1e-5 : 1e-2;
        bench_expect(b, dv_isa_name((dv_isa)i), (bench_mode){0}, plain, rounding);
        bench_expect(b, dv_isa_name((dv_isa)i), (bench_mode){.inference = true}, &inference, rounding);
    }
    dv_isa_force(isa);
    bench_result_free(&inference);
}

/* All ways of running a case in one type against the plain one. */
static inline void check_modes(const layer_case *of, dv_type type) {
    bench b;
    bench_init(&b, of, type, true);
    bench_result plain = bench_run(&b, &(bench_mode){0});
    bench_check_modes(&b, &plain);
    bench_check_packed(&b, &plain);
    bench_check_planned(&b, &plain);
    bench_check_frozen(&b, &plain);
    bench_check_machines(&b, &plain);
    bench_result_free(&plain);
    bench_destroy(&b);
}

/* bf16 is f32 up to its rounding, from the same inputs. */
static inline void check_bf16(const layer_case *of) {
    bench full, half;
    bench_init(&full, of, DV_F32, true);
    bench_init(&half, of, DV_BF16, true);
    bench_result expected = bench_run(&full, &(bench_mode){0});
    bench_expect(&half, "bf16", (bench_mode){0}, &expected, of->bf16_tolerance > 0 ? (double)of->bf16_tolerance : 3e-2);
    bench_result_free(&expected);
    bench_destroy(&full);
    bench_destroy(&half);
}

/* Everything but the finite differences: for larger shapes. */
static inline void check_layer_modes(const layer_case *of) {
    check_modes(of, DV_F32);
    check_modes(of, DV_BF16);
    check_bf16(of);
}

static inline void check_layer(const layer_case *of) {
    check_finite_differences(of);
    check_layer_modes(of);
}

/* Fails unless infer refuses the case with `status` and words that it says. */
static inline void check_refused(const layer_case *of, dv_status status, const char *words) {
    dv_layer layer = {.kind = of->kind,
                      .name = "tested",
                      .options = of->options,
                      .input_count = of->input_count,
                      .inputs = of->inputs,
                      .input_need_mask = ~0u};
    assert_fails(of->kind->infer(&layer, &error), status, words);
    assert_fails(of->kind->infer(&layer, &error), status, "tested");
}

#endif
