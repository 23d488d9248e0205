/* What the division codec promises: unbiased, bounded error, exact where it says so, bytes as planned. */
#include "maps.h"

#include <omp.h>

/* Packs and unpacks `src` into `dst`, both of the map's type. */
static void round_trip(const dv_codec *codec, const dv_map *map, uint64_t seed, const void *src, void *dst) {
    size_t bytes = packed_bytes_of(codec, map);
    void *packed = guarded_new(bytes);
    dv_noise noise = {.seed = seed, .step = 1, .value = 2};
    assert_ok(dv_codec_encode(codec, map, &noise, src, packed, bytes, &error));
    assert_ok(dv_codec_decode(codec, map, &noise, packed, bytes, dst, &error));
    guarded_free(packed, bytes);
}

/* ---- statistics over many seeds ------------------------------------------------------------ */

static uint64_t seeds(void) {
    return 10000 / test_scale();
}

typedef struct moments {
    double *sum, *squares; /* of the errors, per element */
} moments;

/* Errors of each element over all seeds. */
static moments measure(const char *text, const dv_map *map, const float *src) {
    dv_codec codec = codec_of(text);
    codec.threads = 1;
    size_t count = dv_map_elements(map);
    moments m = {calloc(count, sizeof(double)), calloc(count, sizeof(double))};
    float *dst = guarded_new(count * sizeof *dst);
    assert_true(m.sum && m.squares);
    for (uint64_t seed = 0; seed < seeds(); seed++) {
        round_trip(&codec, map, seed, src, dst);
        for (size_t i = 0; i < count; i++) {
            double error = (double)dst[i] - src[i];
            m.sum[i] += error;
            m.squares[i] += error * error;
        }
    }
    guarded_free(dst, count * sizeof *dst);
    return m;
}

static void drop(moments m) {
    free(m.sum);
    free(m.squares);
}

static const dv_map small_map = {.images = 2, .channels = 3, .rank = 2, .sides = {9, 11}};

/* The mean decoded value is the input, within 4 standard errors. With 594 elements, both dithers and
 * four bit widths, about one in 16000 would be outside by chance: the seeds are fixed, none is. */
static void decoding_is_unbiased(void **state) {
    (void)state;
    static const char *const texts[] = {"division", "division:dither=subtractive", "division:bits=1",
                                        "division:bits=4,dither=subtractive"};
    float *src = map_values(&small_map, 5);
    size_t count = dv_map_elements(&small_map);
    for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
        moments m = measure(texts[t], &small_map, src);
        for (size_t i = 0; i < count; i++) {
            double number = (double)seeds(), mean = m.sum[i] / number, variance = m.squares[i] / number - mean * mean;
            double tolerance = 4 * sqrt(fmax(variance, 0) / number) + 1e-6 * fabs(src[i]) + 2e-5;
            if (fabs(mean) > tolerance)
                fail_msg("%s: element %zu: mean error %g, tolerance %g", texts[t], i, mean, tolerance);
        }
        drop(m);
    }
    free(src);
}

/* The dither that is taken off again halves the variance of the error, on noise. (Where many elements
 * are alike, as behind a ReLU, it depends on where between two levels they happen to be.) */
static void subtractive_dither_halves_the_variance(void **state) {
    (void)state;
    float *src = map_values(&small_map, 5);
    dv_random key = {1, 2};
    for (uint32_t i = 0; i < dv_map_elements(&small_map); i++)
        src[i] = (float)dv_random_word(key, i) * 0x1p-32f;
    moments plain = measure("division", &small_map, src),
            better = measure("division:dither=subtractive", &small_map, src);
    double plain_sum = 0, better_sum = 0;
    for (size_t i = 0; i < dv_map_elements(&small_map); i++) {
        plain_sum += plain.squares[i];
        better_sum += better.squares[i];
    }
    print_message("variance of subtractive / stochastic: %.3f\n", better_sum / plain_sum);
    assert_true(better_sum <= 0.55 * plain_sum);
    drop(plain);
    drop(better);
    free(src);
}

/* ---- bounds -------------------------------------------------------------------------------- */

/* The widest step that a map may have: the range of any channel, doubled for what rounding to bf16 adds
 * (range of the HFC <= 2 x range of the map), over the number of levels. */
static double widest_step(const dv_map *map, const void *src, int bits) {
    double low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < dv_map_elements(map); i++) {
        low = fmin(low, load_element(map->type, src, i));
        high = fmax(high, load_element(map->type, src, i));
    }
    return 2 * (high - low) * 1.02 / ((1 << bits) - 1);
}

/* The step of each channel, read from the record as docs/codec.md lays it out: one tile, f32, NHWC. */
static void error_is_at_most_one_step(void **state) {
    (void)state;
    static const struct {
        const char *text;
        double steps;
    } cases[] = {{"division", 1.0},
                 {"division:dither=subtractive", 0.5},
                 {"division:bits=8", 1.0},
                 {"division:dither=none", 0.5},
                 {"division:bits=8,dither=none", 0.51}}; /* with 8 bits half a unit of the fixed point is as much */
    dv_map map = {.layout = DV_NHWC, .images = 1, .channels = 40, .rank = 2, .sides = {19, 23}};
    size_t count = dv_map_elements(&map), blocks = 3 * 3;
    float *src = map_values(&map, 17), *dst = guarded_new(count * sizeof *dst);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        dv_codec codec = codec_of(cases[c].text);
        size_t bytes = packed_bytes_of(&codec, &map);
        uint16_t *packed = guarded_new(bytes);
        assert_ok(dv_codec_encode(&codec, &map, NULL, src, packed, bytes, &error));
        assert_ok(dv_codec_decode(&codec, &map, NULL, packed, bytes, dst, &error));
        for (size_t i = 0; i < count; i++) {
            float step = dv_bf16_to_f32(packed[(blocks + 1) * map.channels + i % map.channels]);
            assert_true(step > 0);
            double bound = cases[c].steps * step * (1 + 1e-4) + 1e-5;
            if (fabs((double)dst[i] - src[i]) > bound)
                fail_msg("%s: element %zu: error %g, bound %g", cases[c].text, i, fabs((double)dst[i] - src[i]), bound);
        }
        guarded_free(packed, bytes);
    }
    guarded_free(dst, count * sizeof *dst);
    free(src);
}

/* Every awkward shape, type and layout comes back within a step. */
static void awkward_shapes_come_back(void **state) {
    (void)state;
    dv_codec codec = codec_of("division");
    for (size_t shape = 0; shape < AWKWARD_SHAPES; shape += test_scale())
        for (int kind = 0; kind < DV_TYPE_COUNT * DV_LAYOUT_COUNT; kind++) {
            dv_map map = awkward_map(shape);
            map.type = (dv_type)(kind % DV_TYPE_COUNT);
            map.layout = (dv_layout)(kind / DV_TYPE_COUNT);
            void *src = map_values(&map, shape), *dst = guarded_new(dv_map_bytes(&map));
            round_trip(&codec, &map, shape, src, dst);
            double bound = widest_step(&map, src, 2) + 0.02;
            for (size_t i = 0; i < dv_map_elements(&map); i++)
                if (fabs((double)load_element(map.type, dst, i) - load_element(map.type, src, i)) > bound)
                    fail_msg("%s: element %zu: %g became %g", map_text(&map), i, load_element(map.type, src, i),
                             load_element(map.type, dst, i));
            guarded_free(dst, dv_map_bytes(&map));
            free(src);
        }
}

/* ---- exactness ----------------------------------------------------------------------------- */

static void constant_maps_are_exact(void **state) {
    (void)state;
    static const float values[] = {0, 1, -1, 0.1f, -3.14159274f, 1e-20f, 123456.789f, -7.7e30f, 16777215.0f, 65504.0f};
    static const char *const texts[] = {"division", "division:dither=subtractive", "division:bits=8",
                                        "division:bits=1"};
    for (int kind = 0; kind < DV_TYPE_COUNT * DV_LAYOUT_COUNT; kind++)
        for (size_t v = 0; v < sizeof values / sizeof *values; v++)
            for (size_t t = 0; t < 4; t++) {
                dv_map map = {.images = 2, .channels = 5, .rank = 2, .sides = {13, 21}};
                map.type = (dv_type)(kind % DV_TYPE_COUNT);
                map.layout = (dv_layout)(kind / DV_TYPE_COUNT);
                if (map.type == DV_F16 && fabsf(values[v]) > 65504)
                    continue;
                void *src = map_values(&map, 0), *dst = guarded_new(dv_map_bytes(&map));
                for (size_t i = 0; i < dv_map_elements(&map); i++)
                    store_element(map.type, src, i, values[v]);
                dv_codec codec = codec_of(texts[t]);
                round_trip(&codec, &map, 1, src, dst);
                for (size_t i = 0; i < dv_map_elements(&map); i++)
                    if (load_element(map.type, src, i) != load_element(map.type, dst, i))
                        fail_msg("%s %s: %.9g became %.9g", texts[t], map_text(&map), load_element(map.type, src, i),
                                 load_element(map.type, dst, i));
                guarded_free(dst, dv_map_bytes(&map));
                free(src);
            }
}

static void one_element_per_channel_is_exact(void **state) {
    (void)state;
    dv_codec codec = codec_of("division");
    dv_map flat = {.images = 5, .channels = 17}, pixel = {.images = 5, .channels = 17, .rank = 2, .sides = {1, 1}};
    const dv_map *maps[] = {&flat, &pixel};
    for (size_t i = 0; i < 2; i++) {
        float *src = map_values(maps[i], 3), dst[5 * 17];
        round_trip(&codec, maps[i], 1, src, dst);
        assert_memory_equal(src, dst, sizeof dst);
        free(src);
    }
}

/* ---- one part alone ------------------------------------------------------------------------ */

/* The mean of the block that an element of an f32 NHWC map of rank 2 is in. */
static double block_mean(const dv_map *map, const float *src, size_t element, size_t edge) {
    size_t channels = map->channels, height = map->sides[0], width = map->sides[1];
    size_t image = element / (height * width * channels), pixel = element / channels % (height * width);
    size_t top = pixel / width / edge * edge, left = pixel % width / edge * edge, count = 0;
    double sum = 0;
    for (size_t y = top; y < top + edge && y < height; y++)
        for (size_t x = left; x < left + edge && x < width; x++, count++)
            sum += (double)src[((image * height + y) * width + x) * channels + element % channels];
    return sum / (double)count;
}

/* Averages alone are the means of blocks, to bf16. Both parts, each decoded alone, add up to the map with both. */
static void parts_add_up(void **state) {
    (void)state;
    const dv_map map = {.layout = DV_NHWC, .images = 2, .channels = 13, .rank = 2, .sides = {19, 23}};
    static const char *const dithers[] = {"stochastic", "subtractive", "none"};
    size_t count = dv_map_elements(&map);
    float *src = map_values(&map, 17), *made[3];
    for (int i = 0; i < 3; i++)
        made[i] = guarded_new(count * sizeof(float));
    for (size_t d = 0; d < sizeof dithers / sizeof *dithers; d++) {
        for (int part = 0; part < 3; part++) {
            static const char *const parts[] = {"", ",hfc=off", ",lfc=off"};
            char text[100];
            snprintf(text, sizeof text, "division:dither=%s%s", dithers[d], parts[part]);
            dv_codec codec = codec_of(text);
            round_trip(&codec, &map, 4, src, made[part]);
        }
        for (size_t i = 0; i < count; i++) {
            double mean = block_mean(&map, src, i, 8);
            assert_true(fabs((double)made[1][i] - mean) <= fabs(mean) / 256 + 1e-6);
            double sum = (double)made[1][i] + (double)made[2][i];
            assert_true(fabs((double)made[0][i] - sum) <= 1e-5 * (1 + fabs((double)made[0][i])));
        }
    }
    for (int i = 0; i < 3; i++)
        guarded_free(made[i], count * sizeof(float));
    free(src);
}

/* What is not kept takes no bytes: 64 blocks of 16 bits, or the rest. */
static void parts_take_their_bytes_alone(void **state) {
    (void)state;
    const dv_map map = {.images = 1, .channels = 64, .rank = 2, .sides = {64, 64}};
    static const struct {
        const char *text;
        size_t bytes;
    } cases[] = {{"division", 64 * (2 * 64 + 4 + 1024)},       {"division:lfc=off", 64 * (4 + 1024)},
                 {"division:lfc=off,bits=4", 64 * (4 + 2048)}, {"division:hfc=off", 64 * 2 * 64},
                 {"division:hfc=off,bits=8", 64 * 2 * 64},     {"division:hfc=off,block=16", 64 * 2 * 16}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        dv_codec codec = codec_of(cases[i].text);
        assert_int_equal(packed_bytes_of(&codec, &map), cases[i].bytes);
    }
}

/* Without dither nothing is drawn: codes do not depend on the noise, and the nearest one is taken. */
static void without_dither_nothing_is_random(void **state) {
    (void)state;
    const dv_map map = {.images = 1, .channels = 3, .rank = 2, .sides = {9, 11}};
    dv_codec codec = codec_of("division:dither=none");
    float *src = map_values(&map, 5), *dst = guarded_new(dv_map_bytes(&map)), *again = guarded_new(dv_map_bytes(&map));
    round_trip(&codec, &map, 1, src, dst);
    round_trip(&codec, &map, 2, src, again);
    assert_memory_equal(dst, again, dv_map_bytes(&map));
    guarded_free(dst, dv_map_bytes(&map));
    guarded_free(again, dv_map_bytes(&map));
    free(src);
}

/* A map with a number that cannot be packed is refused whichever part is kept. */
static void parts_refuse_what_is_not_finite(void **state) {
    (void)state;
    static const char *const texts[] = {"division:lfc=off", "division:hfc=off", "division:dither=none"};
    for (size_t t = 0; t < sizeof texts / sizeof *texts; t++)
        for (int layout = 0; layout < DV_LAYOUT_COUNT; layout++) {
            dv_map map = {.layout = (dv_layout)layout, .images = 1, .channels = 600, .rank = 2, .sides = {9, 7}};
            dv_codec codec = codec_of(texts[t]);
            size_t bytes = packed_bytes_of(&codec, &map);
            float *src = map_values(&map, 5);
            void *packed = guarded_new(bytes);
            src[dv_map_elements(&map) - 1] = NAN;
            assert_fails(dv_codec_encode(&codec, &map, NULL, src, packed, bytes, &error), DV_ERROR_NONFINITE,
                         "channel 599");
            guarded_free(packed, bytes);
            free(src);
        }
}

/* ---- sizes, ranges, keys ------------------------------------------------------------------- */

/* Bits per element at block 8, bits 2, as DESIGN and README say: about 2.3 for 56 x 56, 3 for 7 x 7. */
static void packed_sizes_are_as_told(void **state) {
    (void)state;
    static const struct {
        size_t side;
        double bits;
    } cases[] = {{112, 2.25}, {56, 2.26}, {28, 2.37}, {14, 2.49}, {7, 2.98}};
    dv_codec codec = codec_of("division");
    for (size_t i = 0; i < 5; i++) {
        dv_map map = {
            .layout = DV_NHWC, .images = 4, .channels = 512, .rank = 2, .sides = {cases[i].side, cases[i].side}};
        double bits = 8.0 * (double)packed_bytes_of(&codec, &map) / (double)dv_map_elements(&map);
        if (fabs(bits - cases[i].bits) > 0.02)
            fail_msg("side %zu: %.3f bits per element, expected %.2f", cases[i].side, bits, cases[i].bits);
    }
}

static void ranges_decode_and_encode_like_the_whole(void **state) {
    (void)state;
    for (int layout = 0; layout < DV_LAYOUT_COUNT; layout++) {
        dv_map map = {.layout = (dv_layout)layout, .images = 5, .channels = 600, .rank = 2, .sides = {9, 7}};
        dv_codec codec = codec_of("division:dither=subtractive");
        dv_noise noise = {.seed = 9};
        size_t bytes = packed_bytes_of(&codec, &map), image = dv_map_image_elements(&map);
        float *src = map_values(&map, 3), *whole = guarded_new(dv_map_bytes(&map)), *part = guarded_new(2 * image * 4);
        char *packed = guarded_new(bytes), *again = guarded_new(bytes);
        memset(packed, 0, bytes);
        memset(again, 0, bytes);
        assert_ok(dv_codec_encode(&codec, &map, &noise, src, packed, bytes, &error));
        assert_ok(dv_codec_decode(&codec, &map, &noise, packed, bytes, whole, &error));
        for (size_t first = 0; first < 5; first++) {
            size_t count = first < 4 ? 2 : 1;
            assert_ok(dv_codec_decode_images(&codec, &map, &noise, first, count, packed, bytes, part, &error));
            assert_memory_equal(part, whole + first * image, count * image * sizeof(float));
            assert_ok(
                dv_codec_encode_images(&codec, &map, &noise, first, 1, src + first * image, again, bytes, &error));
        }
        assert_memory_equal(packed, again, bytes);
        guarded_free(packed, bytes);
        guarded_free(again, bytes);
        guarded_free(part, 2 * image * 4);
        guarded_free(whole, dv_map_bytes(&map));
        free(src);
    }
}

/* Seed, step, value and image each change the random numbers; nothing else does. */
static void noise_is_keyed(void **state) {
    (void)state;
    dv_map map = {.layout = DV_NHWC, .images = 2, .channels = 64, .rank = 2, .sides = {8, 8}};
    dv_codec codec = codec_of("division");
    size_t bytes = packed_bytes_of(&codec, &map), image = dv_map_image_elements(&map);
    float *src = map_values(&map, 3);
    memcpy(src + image, src, image * sizeof *src);
    const dv_noise noises[] = {{.seed = 0}, {.seed = 1}, {.step = 1}, {.value = 1}, {.seed = 0}};
    char *packed[5];
    for (size_t i = 0; i < 5; i++) {
        packed[i] = guarded_new(bytes);
        memset(packed[i], 0, bytes);
        assert_ok(dv_codec_encode(&codec, &map, &noises[i], src, packed[i], bytes, &error));
    }
    assert_memory_not_equal(packed[0], packed[0] + bytes / 2, bytes / 2);
    for (size_t i = 1; i < 4; i++)
        assert_memory_not_equal(packed[0], packed[i], bytes);
    assert_memory_equal(packed[0], packed[4], bytes);
    for (size_t i = 0; i < 5; i++)
        guarded_free(packed[i], bytes);
    free(src);
}

/* ---- bad input ----------------------------------------------------------------------------- */

static void nonfinite_input_is_named(void **state) {
    (void)state;
    static const float bad[] = {NAN, INFINITY, -INFINITY, 3e38f};
    static const char *const words[] = {"NaN in image 1, channel 4", "infinity in image 1, channel 4",
                                        "infinity in image 1, channel 4", "overflows"};
    for (int layout = 0; layout < DV_LAYOUT_COUNT; layout++)
        for (size_t b = 0; b < 4; b++)
            for (size_t side = 1; side <= 9; side += 4) {
                dv_map map = {
                    .layout = (dv_layout)layout, .images = 3, .channels = 6, .rank = 2, .sides = {side, side}};
                if (side == 1 && b == 3)
                    continue; /* kept exact: nothing overflows */
                dv_codec codec = codec_of("division");
                size_t bytes = packed_bytes_of(&codec, &map), pixels = side * side, pixel = pixels / 2;
                float *src = map_values(&map, 1);
                void *packed = guarded_new(bytes);
                size_t image = 6 * pixels, within = layout == DV_NHWC ? pixel * 6 + 4 : 4 * pixels + pixel;
                src[image + within] = bad[b];
                if (b == 3) /* a block of them */
                    for (size_t i = image; i < 2 * image; i++)
                        src[i] = bad[b];
                assert_fails(dv_codec_encode(&codec, &map, NULL, src, packed, bytes, &error), DV_ERROR_NONFINITE,
                             words[b]);
                guarded_free(packed, bytes);
                free(src);
            }
}

/* Whatever finite numbers are packed, finite numbers come out; those too large for that are refused. */
static void nothing_finite_becomes_infinite(void **state) {
    (void)state;
    static const char *const texts[] = {"division", "division:dither=subtractive", "division:bits=1,dither=subtractive",
                                        "division:bits=8"};
    static const float large[] = {0x1.fffffep124f, -0x1.fffffep124f, 0x1p125f, -0x1p125f, 3.3e38f, -3.3e38f};
    float src[2 * 64] = {0}, dst[2 * 64];
    for (int kind = 0; kind < 4 * 6 * DV_LAYOUT_COUNT; kind++) {
        dv_codec codec = codec_of(texts[kind % 4]);
        size_t l = (size_t)kind / 4 % 6;
        dv_map map = {.layout = (dv_layout)(kind / 24), .images = 1, .channels = 2, .rank = 2, .sides = {8, 8}};
        src[0] = large[l]; /* both in channel 0 of either layout */
        src[62] = -large[l] / 2;
        char packed[512] __attribute__((aligned(64)));
        for (uint64_t seed = 0; seed < 20; seed++) {
            dv_noise noise = {.seed = seed};
            if (l >= 2) {
                assert_fails(dv_codec_encode(&codec, &map, &noise, src, packed, sizeof packed, &error),
                             DV_ERROR_NONFINITE, "2^125 or more");
                continue;
            }
            assert_ok(dv_codec_encode(&codec, &map, &noise, src, packed, sizeof packed, &error));
            assert_ok(dv_codec_decode(&codec, &map, &noise, packed, sizeof packed, dst, &error));
            for (int i = 0; i < 2 * 64; i++)
                if (!isfinite(dst[i]))
                    fail_msg("%s, %s: %g became %g", texts[kind % 4], map_text(&map), (double)src[i], (double)dst[i]);
        }
    }
}

/* Decoding garbage must stay within its buffers and finish; what comes out does not matter. */
static void garbage_decodes_to_something(void **state) {
    (void)state;
    for (int kind = 0; kind < DV_TYPE_COUNT * DV_LAYOUT_COUNT; kind++) {
        dv_map map = {.images = 2, .channels = 19, .rank = 3, .sides = {3, 10, 11}};
        map.type = (dv_type)(kind % DV_TYPE_COUNT);
        map.layout = (dv_layout)(kind / DV_TYPE_COUNT);
        dv_codec codec = codec_of("division:bits=4");
        size_t bytes = packed_bytes_of(&codec, &map);
        unsigned char *packed = guarded_new(bytes);
        void *dst = guarded_new(dv_map_bytes(&map));
        for (size_t i = 0; i < bytes; i++)
            packed[i] = (unsigned char)(i * 2654435761u >> 13);
        assert_ok(dv_codec_decode(&codec, &map, NULL, packed, bytes, dst, &error));
        guarded_free(packed, bytes);
        guarded_free(dst, dv_map_bytes(&map));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decoding_is_unbiased),
        cmocka_unit_test(subtractive_dither_halves_the_variance),
        cmocka_unit_test(error_is_at_most_one_step),
        cmocka_unit_test(awkward_shapes_come_back),
        cmocka_unit_test(parts_add_up),
        cmocka_unit_test(parts_take_their_bytes_alone),
        cmocka_unit_test(without_dither_nothing_is_random),
        cmocka_unit_test(parts_refuse_what_is_not_finite),
        cmocka_unit_test(constant_maps_are_exact),
        cmocka_unit_test(one_element_per_channel_is_exact),
        cmocka_unit_test(packed_sizes_are_as_told),
        cmocka_unit_test(ranges_decode_and_encode_like_the_whole),
        cmocka_unit_test(noise_is_keyed),
        cmocka_unit_test(nonfinite_input_is_named),
        cmocka_unit_test(nothing_finite_becomes_infinite),
        cmocka_unit_test(garbage_decodes_to_something),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
