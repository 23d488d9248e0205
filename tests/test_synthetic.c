/* Synthetic maps: the same everywhere, of every shape, and with the statistics they are made for. */
#include "check.h"

#include <division/synthetic.h>
#include <math.h>

/* Makes a map; the caller's to free(). */
static float *make(const dv_map *map, uint64_t seed) {
    dv_error error;
    float *values = malloc(dv_map_elements(map) * sizeof *values);
    assert_non_null(values);
    if (dv_synthetic_map(map, seed, values, &error) != DV_OK)
        fail_msg("%s", error.text);
    return values;
}

static const dv_map usual = {.images = 2, .channels = 32, .rank = 2, .sides = {56, 56}};

static double energy(const float *values, size_t count) {
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (double)values[i] * (double)values[i];
    return sum;
}

static void test_most_energy_is_low(void **state) {
    (void)state;
    static const dv_map maps[] = {{.images = 1, .channels = 64, .rank = 2, .sides = {112, 112}},
                                  {.images = 2, .channels = 64, .rank = 2, .sides = {56, 56}},
                                  {.images = 2, .channels = 64, .rank = 2, .sides = {28, 28}},
                                  {.images = 4, .channels = 64, .rank = 2, .sides = {7, 7}},
                                  {.images = 2, .channels = 64, .rank = 1, .sides = {200}},
                                  {.images = 1, .channels = 16, .rank = 3, .sides = {16, 24, 24}}};
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) {
        size_t count = dv_map_elements(&maps[i]);
        float *values = make(&maps[i], 3), *low = malloc(count * sizeof *low);
        assert_non_null(low);
        assert_int_equal(dv_map_low_frequency(&maps[i], 8, values, low, NULL), DV_OK);
        double share = energy(low, count) / energy(values, count);
        if (share < 0.8 || share > 0.995)
            fail_msg("map %zu: the LFC has %.3f of the energy", i, share);
        free(values);
        free(low);
    }
}

/* Bounds, and zeros: in a good part of the channels about half, in few of them nearly everything. */
static void test_values(void **state) {
    (void)state;
    size_t area = 56 * 56, planes = usual.images * usual.channels, half = 0, full = 0;
    float *values = make(&usual, 1);
    for (size_t plane = 0; plane < planes; plane++) {
        size_t zeros = 0;
        for (size_t i = 0; i < area; i++) {
            float value = values[plane * area + i];
            assert_true(value >= 0 && value < 16);
            zeros += value == 0;
        }
        half += zeros > area * 3 / 10 && zeros < area * 7 / 10;
        full += zeros > area * 95 / 100;
    }
    assert_in_range(half, planes / 5, planes);
    assert_in_range(full, 0, planes / 5);
    free(values);
}

static uint64_t checksum(const float *values, size_t count) {
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        sum = (sum ^ bits) * 0x100000001b3;
    }
    return sum;
}

/* The sums were made by this test; they hold the maps of all compilers and processors to the same bits. */
static void test_same_bits_everywhere(void **state) {
    (void)state;
    static const struct {
        dv_map map;
        uint64_t sum;
    } cases[] = {{{.images = 2, .channels = 3, .rank = 2, .sides = {31, 17}}, 0xdd488191abb76000},
                 {{.images = 1, .channels = 2, .rank = 3, .sides = {5, 9, 7}}, 0x664acfe9507a57c0},
                 {{.images = 1, .channels = 2, .rank = 1, .sides = {100}}, 0x6cbf245bd0485800},
                 {{.images = 3, .channels = 5}, 0x6a44ed8a30f1ac80}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        float *values = make(&cases[i].map, 42);
        uint64_t sum = checksum(values, dv_map_elements(&cases[i].map));
        free(values);
        if (sum != cases[i].sum)
            fail_msg("case %zu: the sum is 0x%016llx", i, (unsigned long long)sum);
    }
}

static void test_layouts_have_the_same_elements(void **state) {
    (void)state;
    dv_map first = {.images = 2, .channels = 5, .rank = 2, .sides = {9, 7}}, last = first;
    size_t area = 9 * 7;
    last.layout = DV_NHWC;
    float *a = make(&first, 9), *b = make(&last, 9);
    for (size_t n = 0; n < 2; n++)
        for (size_t c = 0; c < 5; c++)
            for (size_t i = 0; i < area; i++)
                assert_true(a[(n * 5 + c) * area + i] == b[(n * area + i) * 5 + c]);
    free(a);
    free(b);
}

/* Seeds, images and channels each give another map; the type gives none. */
static void test_what_matters(void **state) {
    (void)state;
    dv_map map = {.images = 2, .channels = 2, .rank = 2, .sides = {16, 16}}, half = map;
    size_t area = 256, bytes = area * sizeof(float);
    half.type = DV_F16;
    float *a = make(&map, 1), *b = make(&map, 2), *c = make(&half, 1);
    assert_memory_equal(a, c, 4 * bytes);
    assert_memory_not_equal(a, b, 4 * bytes);
    assert_memory_not_equal(a, a + area, bytes);
    assert_memory_not_equal(a, a + 2 * area, bytes);
    free(a);
    free(b);
    free(c);
}

static void test_wrong_calls(void **state) {
    (void)state;
    dv_map empty = usual;
    float value;
    empty.channels = 0;
    assert_int_not_equal(dv_synthetic_map(&empty, 1, &value, NULL), DV_OK);
    assert_int_equal(dv_synthetic_map(&usual, 1, NULL, NULL), DV_ERROR_ARGUMENT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_most_energy_is_low),   cmocka_unit_test(test_values),
        cmocka_unit_test(test_same_bits_everywhere), cmocka_unit_test(test_layouts_have_the_same_elements),
        cmocka_unit_test(test_what_matters),         cmocka_unit_test(test_wrong_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
