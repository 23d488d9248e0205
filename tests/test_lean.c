/* The codec `lean`: what is inside of the mask comes back within half a step, what is outside as its mean or, with
 * samples, right on average as all the rest, and the mask to the bit. */
#include "base/cpu.h"
#include "codec/lean.h"
#include "maps.h"

#include <math.h>
#include <stdbool.h>

static const dv_map map = {
    .type = DV_F32, .layout = DV_NHWC, .images = 2, .channels = 19, .rank = 2, .sides = {17, 12}};

/* A gate that is open for about half of the elements, whatever they are. */
static float *gate_of(size_t count) {
    float *gate = malloc(count * sizeof *gate);
    assert_non_null(gate);
    for (size_t i = 0; i < count; i++)
        gate[i] = (i * 2654435761u >> 16) % 2 ? 0.5f : -1.0f;
    return gate;
}

typedef struct trial {
    dv_codec codec;
    size_t count, bytes;
    float *src, *gate, *decoded;
    void *packed;
} trial;

static trial trial_new(const char *text) {
    trial t = {.codec = codec_of(text), .count = dv_map_elements(&map)};
    t.bytes = packed_bytes_of(&t.codec, &map);
    t.src = map_values(&map, 3);
    t.gate = gate_of(t.count);
    t.decoded = malloc(t.count * sizeof *t.decoded);
    t.packed = guarded_new(t.bytes);
    return t;
}

static void trial_free(trial *t) {
    guarded_free(t->packed, t->bytes);
    free(t->src);
    free(t->gate);
    free(t->decoded);
}

static void pack(trial *t, uint64_t step) {
    dv_noise noise = {.seed = 1, .step = step};
    assert_ok(dv_lean_encode(&t->codec, &map, &noise, 0, map.images, t->src, t->gate, t->packed, t->bytes, &error));
    assert_ok(dv_codec_decode(&t->codec, &map, &noise, t->packed, t->bytes, t->decoded, &error));
}

/* Of a channel of an image: the range inside; the mean outside, and how far what is outside is from it at most. */
typedef struct channel {
    float range;
    double mean, farthest;
} channel;

/* The one that element `i` is in. */
static channel channel_of(const trial *t, size_t i) {
    size_t image = t->count / map.images, first = i / image * image + i % map.channels;
    float low = INFINITY, high = -INFINITY;
    double sum = 0, outside = 0;
    for (size_t j = first; j < first + image - i % map.channels; j += map.channels) {
        bool open = t->gate[j] > 0;
        low = open ? fminf(low, t->src[j]) : low;
        high = open ? fmaxf(high, t->src[j]) : high;
        sum += open ? 0 : (double)t->src[j];
        outside += open ? 0 : 1;
    }
    channel c = {.range = high - low, .mean = outside > 0 ? sum / outside : 0};
    for (size_t j = first; j < first + image - i % map.channels; j += map.channels)
        if (t->gate[j] <= 0)
            c.farthest = fmax(c.farthest, fabs((double)t->src[j] - c.mean));
    return c;
}

static void the_error_is_within_half_a_step(void **state) {
    (void)state;
    static const struct {
        const char *text;
        float steps;
    } cases[] = {{"lean:sample=0", 2},
                 {"lean:levels=7,sample=0", 6},
                 {"lean:levels=15,sample=0", 14},
                 {"lean:levels=255,sample=0", 254}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        trial t = trial_new(cases[k].text);
        pack(&t, 0);
        for (size_t i = 0; i < t.count; i++) {
            channel c = channel_of(&t, i);
            float bound = c.range * 1.02f / cases[k].steps / 2; /* two units of 255 and two roundings to bf16 more */
            if (t.gate[i] > 0 && !(fabsf(t.decoded[i] - t.src[i]) <= bound + fabsf(t.src[i]) * 0x1p-6f))
                fail_msg("%s: element %zu: %g became %g", cases[k].text, i, (double)t.src[i], (double)t.decoded[i]);
            if (t.gate[i] <= 0 && fabs((double)t.decoded[i] - c.mean) > fabs(c.mean) * 0x1p-8 + 1e-6)
                fail_msg("%s: element %zu, outside: %g instead of %g", cases[k].text, i, (double)t.decoded[i], c.mean);
        }
        trial_free(&t);
    }
}

/* Whether something outside, of a pixel's channels, has come back as something else than its mean. */
static bool is_sampled(const trial *t, size_t pixel) {
    for (size_t i = pixel * map.channels; i < (pixel + 1) * map.channels; i++)
        if (t->gate[i] <= 0) {
            double mean = channel_of(t, i).mean;
            if (fabs((double)t->decoded[i] - mean) > fabs(mean) * 0x1p-7 + 1e-5)
                return true;
        }
    return false;
}

/* One pixel of each stretch, and always another. */
static void samples_are_one_of_a_stretch(void **state) {
    (void)state;
    enum { DRAWS = 12, STRETCH = 8 };
    trial t = trial_new("lean:sample=8");
    size_t pixels = map.sides[0] * map.sides[1], stretches = (pixels + STRETCH - 1) / STRETCH, firsts = 0;
    for (int draw = 0; draw < DRAWS; draw++) {
        pack(&t, (uint64_t)draw);
        for (size_t s = 0; s < map.images * stretches; s++) {
            size_t image = s / stretches * pixels, sampled = 0;
            size_t first = pixels * (s % stretches) / stretches, end = pixels * (s % stretches + 1) / stretches;
            for (size_t p = first; p < end; p++) {
                bool seen = is_sampled(&t, image + p);
                sampled += seen;
                firsts += seen && p == first;
            }
            assert_int_equal(sampled, 1);
        }
    }
    size_t all = DRAWS * map.images * stretches; /* an eighth of them, but for chance */
    assert_true(firsts > all / 12 && firsts < all / 5);
    trial_free(&t);
}

/* By how much the mean of many draws of an element may be off by chance: by what they showed, or if an element outside
 * is so near to its mean that its samples are something else only now and then, by what its levels are apart. */
static double chance(const trial *t, size_t i, double squares, int draws) {
    channel c = channel_of(t, i);
    double shown = sqrt(squares) / draws, away = fabs((double)t->src[i] - c.mean) + fabs(c.mean) * 0x1p-9;
    double sample = dv_lean_has_mask(&t->codec) ? (double)t->codec.options[DV_LEAN_SAMPLE] : 0;
    return t->gate[i] > 0 ? shown : fmax(shown, sqrt(sample * 2 * c.farthest * away / draws));
}

/* The mean over many draws is the element, within five deviations. */
static void check_mean(const char *text) {
    enum { DRAWS = 2000 };
    trial t = trial_new(text);
    double *sum = calloc(t.count, sizeof *sum), *squares = calloc(t.count, sizeof *squares);
    assert_true(sum && squares);
    for (int draw = 0; draw < DRAWS; draw++) {
        pack(&t, (uint64_t)draw);
        for (size_t i = 0; i < t.count; i++) {
            double distance = (double)t.decoded[i] - (double)t.src[i];
            sum[i] += distance;
            squares[i] += distance * distance;
        }
    }
    bool all = !dv_lean_has_mask(&t.codec) || t.codec.options[DV_LEAN_SAMPLE] > 0;
    for (size_t i = 0; i < t.count; i++) {
        double mean = sum[i] / DRAWS, deviation = chance(&t, i, squares[i], DRAWS);
        if ((all || t.gate[i] > 0) && fabs(mean) > 5 * deviation + 1e-3) /* half a unit of the fixed point */
            fail_msg("%s: element %zu of %g is off by %g on average, by chance %g", text, i, (double)t.src[i], mean,
                     deviation);
    }
    free(sum);
    free(squares);
    trial_free(&t);
}

static void it_is_right_on_average(void **state) {
    (void)state;
    check_mean("lean:sample=0");
    check_mean("lean:sample=8");
    check_mean("lean:levels=7,dither=stochastic,sample=5");
    check_mean("lean:mask=off");
}

/* In every type and layout, and where an image has more channels than a tile. */
static void the_mask_comes_back(void **state) {
    (void)state;
    static const size_t channels[] = {5, 64, 600, 1024};
    static const char *const texts[] = {"lean", "lean:levels=7", "lean:levels=15", "lean:levels=255,dither=none"};
    for (int kind = 0; kind < DV_ISA_COUNT * DV_LAYOUT_COUNT * 4 * 4; kind++) {
        dv_isa isa = (dv_isa)(kind / DV_LAYOUT_COUNT / 16);
        dv_map shape = {.layout = (dv_layout)(kind / 16 % DV_LAYOUT_COUNT), .images = 2, .rank = 2, .sides = {5, 9}};
        shape.channels = channels[kind % 4];
        if (!dv_isa_available(isa))
            continue;
        dv_isa_force(isa);
        dv_codec codec = codec_of(texts[kind / 4 % 4]), bits = codec_of("bits");
        size_t bytes = packed_bytes_of(&codec, &shape), stride = packed_bytes_of(&bits, &shape) / 2;
        float *src = map_values(&shape, 9), *gate = gate_of(dv_map_elements(&shape));
        void *packed = guarded_new(bytes), *mask = guarded_new(2 * stride), *expected = guarded_new(2 * stride);
        assert_ok(dv_lean_encode(&codec, &shape, NULL, 0, 2, src, gate, packed, bytes, &error));
        assert_ok(dv_codec_decode_mask(&codec, &shape, 0, 2, packed, bytes, mask, stride, &error));
        assert_ok(dv_codec_encode(&bits, &shape, NULL, gate, expected, 2 * stride, &error));
        assert_memory_equal(mask, expected, 2 * stride);
        guarded_free(packed, bytes);
        guarded_free(mask, 2 * stride);
        guarded_free(expected, 2 * stride);
        free(src);
        free(gate);
    }
}

/* All inside, all outside, all the same. And outside so far apart that a multiple of it would not be finite. */
static void extremes_come_back(void **state) {
    (void)state;
    trial t = trial_new("lean");
    for (int open = 0; open < 2; open++) {
        for (size_t i = 0; i < t.count; i++) {
            t.gate[i] = (float)open;
            t.src[i] = 3.5f;
        }
        pack(&t, 0);
        for (size_t i = 0; i < t.count; i++)
            assert_true(t.decoded[i] == 3.5f);
    }
    for (size_t i = 0; i < t.count; i++) {
        t.gate[i] = -1;
        t.src[i] = i % 2 ? -0x1p124f : 0x1p124f;
    }
    for (uint64_t draw = 0; draw < 20; draw++) {
        pack(&t, draw);
        for (size_t i = 0; i < t.count; i++)
            assert_true(fabsf(t.decoded[i]) <= 0x1p125f);
    }
    t.src[17] = NAN;
    assert_fails(dv_lean_encode(&t.codec, &map, NULL, 0, 2, t.src, t.gate, t.packed, t.bytes, &error),
                 DV_ERROR_NONFINITE, "lean: NaN in image 0, channel 17");
    dv_map flat = {.images = 2, .channels = 8};
    assert_fails(dv_lean_encode(&t.codec, &flat, NULL, 0, 2, t.src, t.gate, t.packed, t.bytes, &error),
                 DV_ERROR_UNSUPPORTED, "one pixel");
    trial_free(&t);
}

/* ---- normalised as they are decoded ------------------------------------------------------------ */

/* Coefficients of a norm, by channel, and something that it adds. */
typedef struct norm_trial {
    dv_map map;
    dv_codec codec;
    size_t count, bytes, width;
    float *coefficients;
    void *src, *packed, *x, *expected, *got; /* what is added is what was packed */
} norm_trial;

static void norm_trial_free(norm_trial *t) {
    void *const all[] = {t->src, t->coefficients, t->packed, t->x, t->expected, t->got};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

static norm_trial norm_trial_new(const char *text, const dv_map *shape) {
    norm_trial t = {.map = *shape, .codec = codec_of(text), .count = dv_map_elements(shape)};
    t.width = t.count * dv_type_bytes(t.map.type);
    t.bytes = packed_bytes_of(&t.codec, &t.map);
    t.src = map_values(&t.map, 7);
    t.packed = aligned_alloc(DV_PACKED_ALIGNMENT, t.bytes);
    t.coefficients = malloc(3 * t.map.channels * sizeof *t.coefficients);
    for (size_t i = 0; i < 3 * t.map.channels; i++)
        t.coefficients[i] = (float)(i % 7) * 0.25f - 0.5f;
    t.x = malloc(t.width);
    t.expected = malloc(t.width);
    t.got = malloc(t.width);
    dv_isa_force(DV_ISA_SCALAR);
    assert_ok(dv_codec_encode(&t.codec, &t.map, NULL, t.src, t.packed, t.bytes, &error));
    assert_ok(dv_codec_decode(&t.codec, &t.map, NULL, t.packed, t.bytes, t.x, &error));
    return t;
}

/* Into `out`, where what is added is before. */
static void normalize(norm_trial *t, dv_isa isa, bool add, void *out) {
    dv_lean_norm norm = {t->coefficients, t->coefficients + t->map.channels, t->coefficients + 2 * t->map.channels,
                         add ? out : NULL};
    memcpy(out, t->src, t->width);
    dv_isa_force(isa);
    assert_ok(
        dv_lean_decode_normalized(&t->codec, &t->map, NULL, 0, t->map.images, t->packed, t->bytes, &norm, out, &error));
}

/* What decoding and then normalising gives, but for rounding; what the codec's own mask cuts off is 0. */
static void check_normalized(const norm_trial *t, bool add) {
    for (size_t i = 0; i < t->count; i++) {
        size_t c = i % t->map.channels;
        const float *by = t->coefficients + c;
        float y = (load_element(t->map.type, t->x, i) - by[0]) * by[t->map.channels] + by[2 * t->map.channels];
        y += add ? load_element(t->map.type, t->src, i) : 0;
        bool cut_off = dv_lean_has_mask(&t->codec) && !(load_element(t->map.type, t->src, i) > 0);
        float bound = (t->map.type == DV_F32 ? 1e-5f : 0.02f) * (4 + fabsf(y));
        assert_true(fabsf(load_element(t->map.type, t->expected, i) - (cut_off ? 0 : y)) <= bound);
    }
}

static void a_norm_in_the_same_pass(void **state) {
    (void)state;
    static const char *const codecs[] = {"lean", "lean:levels=7,dither=stochastic", "lean:levels=15", "lean:mask=off"};
    static const dv_map shapes[] = {
        {.layout = DV_NHWC, .images = 2, .channels = 19, .rank = 2, .sides = {17, 12}},
        {.layout = DV_NHWC, .images = 1, .channels = 600, .rank = 2, .sides = {9, 10}},
    };
    for (size_t k = 0; k < 16; k++) {
        dv_map shape = shapes[k % 2];
        shape.type = k / 2 % 2 ? DV_BF16 : DV_F32;
        norm_trial t = norm_trial_new(codecs[k / 4], &shape);
        for (int add = 0; add < 2; add++) {
            normalize(&t, DV_ISA_SCALAR, add, t.expected);
            check_normalized(&t, add);
            for (int isa = 0; isa < DV_ISA_COUNT; isa++)
                if (dv_isa_available((dv_isa)isa)) {
                    normalize(&t, (dv_isa)isa, add, t.got);
                    assert_memory_equal(t.got, t.expected, t.width);
                }
        }
        norm_trial_free(&t);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_error_is_within_half_a_step),
        cmocka_unit_test(samples_are_one_of_a_stretch),
        cmocka_unit_test(it_is_right_on_average),
        cmocka_unit_test(the_mask_comes_back),
        cmocka_unit_test(extremes_come_back),
        cmocka_unit_test(a_norm_in_the_same_pass),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
