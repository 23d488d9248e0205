/* Shapes of maps: which can exist, what they take, and their low-frequency component. */
#include "maps.h"

static const dv_map plain = {.type = DV_F32, .layout = DV_NHWC, .images = 2, .channels = 3, .rank = 2, .sides = {5, 7}};

/* ---- checks -------------------------------------------------------------------------------- */

static void maps_that_can_exist_are_taken(void **state) {
    (void)state;
    for (size_t shape = 0; shape < AWKWARD_SHAPES; shape++)
        for (int type = 0; type < DV_TYPE_COUNT; type++) {
            dv_map map = awkward_map(shape);
            map.type = (dv_type)type;
            assert_ok(dv_map_check(&map, &error));
        }
}

static void wrong_kinds_are_named(void **state) {
    (void)state;
    dv_map map = plain;
    assert_fails(dv_map_check(NULL, &error), DV_ERROR_ARGUMENT, "map is NULL");
    map.type = DV_TYPE_COUNT;
    assert_fails(dv_map_check(&map, &error), DV_ERROR_ARGUMENT, "unknown element type 3");
    map.type = (dv_type)-1;
    assert_fails(dv_map_check(&map, &error), DV_ERROR_ARGUMENT, "unknown element type -1");
    map = plain;
    map.layout = DV_LAYOUT_COUNT;
    assert_fails(dv_map_check(&map, &error), DV_ERROR_ARGUMENT, "unknown layout 2");
    map = plain;
    map.rank = 4;
    assert_fails(dv_map_check(&map, &error), DV_ERROR_UNSUPPORTED, "4 spatial dimensions: 0 to 3");
    map.rank = -1;
    assert_fails(dv_map_check(&map, &error), DV_ERROR_UNSUPPORTED, "-1 spatial dimensions");
}

static void sizes_of_zero_are_refused(void **state) {
    (void)state;
    dv_map maps[] = {plain, plain, plain, plain};
    maps[0].images = 0;
    maps[1].channels = 0;
    maps[2].sides[0] = 0;
    maps[3].sides[1] = 0;
    for (int i = 0; i < 4; i++)
        assert_fails(dv_map_check(&maps[i], &error), DV_ERROR_UNSUPPORTED, "at least 1");
    dv_map unused = plain; /* sides beyond the rank do not count */
    unused.rank = 1;
    unused.sides[1] = 0;
    assert_ok(dv_map_check(&unused, &error));
}

/* An image has at most 2^32 elements, in whatever shape they come. */
static void an_image_has_its_limit(void **state) {
    (void)state;
    const size_t limit = (size_t)1 << 32;
    const dv_map largest[] = {
        {.images = 1, .channels = limit},
        {.images = 1, .channels = 1, .rank = 1, .sides = {limit}},
        {.images = 1, .channels = 1 << 8, .rank = 3, .sides = {1 << 8, 1 << 8, 1 << 8}},
    };
    const dv_map too_large[] = {
        {.images = 1, .channels = limit + 1},
        {.images = 1, .channels = 2, .rank = 1, .sides = {limit / 2 + 1}},
        {.images = 1, .channels = 1 << 8, .rank = 3, .sides = {1 << 8, 1 << 8, (1 << 8) + 1}},
        {.images = 1, .channels = SIZE_MAX, .rank = 1, .sides = {SIZE_MAX}},
        {.images = 1, .channels = 1, .rank = 3, .sides = {SIZE_MAX, SIZE_MAX, 2}},
        {.images = 1, .channels = limit, .rank = 3, .sides = {limit, 1, 1}}, /* 2^64: no carry to hide in */
    };
    for (size_t i = 0; i < sizeof largest / sizeof *largest; i++) {
        assert_ok(dv_map_check(&largest[i], &error));
        assert_true(dv_map_image_elements(&largest[i]) == limit);
    }
    for (size_t i = 0; i < sizeof too_large / sizeof *too_large; i++)
        assert_fails(dv_map_check(&too_large[i], &error), DV_ERROR_UNSUPPORTED, "at most 2^32 elements");
}

static void all_bytes_fit_in_memory(void **state) {
    (void)state;
    dv_map map = {.images = SIZE_MAX / 16 / 1000, .channels = 1000};
    assert_ok(dv_map_check(&map, &error));
    assert_true(dv_map_bytes(&map) / 4 / 1000 == map.images);
    map.images++;
    assert_fails(dv_map_check(&map, &error), DV_ERROR_UNSUPPORTED, "do not fit in memory");
    map.images = SIZE_MAX;
    assert_fails(dv_map_check(&map, &error), DV_ERROR_UNSUPPORTED, "do not fit in memory");
}

/* ---- sizes and names ----------------------------------------------------------------------- */

static void sizes_are_products(void **state) {
    (void)state;
    dv_map map = plain;
    assert_int_equal(dv_map_image_elements(&map), 3 * 5 * 7);
    assert_int_equal(dv_map_elements(&map), 2 * 3 * 5 * 7);
    assert_int_equal(dv_map_bytes(&map), 4 * 2 * 3 * 5 * 7);
    map.type = DV_F16;
    assert_int_equal(dv_map_bytes(&map), 2 * 2 * 3 * 5 * 7);
    map.rank = 0;
    assert_int_equal(dv_map_elements(&map), 2 * 3);
}

static void types_and_layouts_have_names(void **state) {
    (void)state;
    assert_string_equal(dv_type_name(DV_F32), "f32");
    assert_string_equal(dv_type_name(DV_BF16), "bf16");
    assert_string_equal(dv_type_name(DV_F16), "f16");
    assert_string_equal(dv_type_name(DV_TYPE_COUNT), "unknown");
    assert_string_equal(dv_layout_name(DV_NCHW), "nchw");
    assert_string_equal(dv_layout_name(DV_NHWC), "nhwc");
    assert_string_equal(dv_layout_name((dv_layout)-1), "unknown");
    assert_int_equal(dv_type_bytes(DV_F32), 4);
    assert_int_equal(dv_type_bytes(DV_BF16), 2);
    assert_int_equal(dv_type_bytes(DV_F16), 2);
    assert_int_equal(dv_type_bytes(DV_TYPE_COUNT), 0);
}

static void elements_convert_to_f32(void **state) {
    (void)state;
    for (int type = 0; type < DV_TYPE_COUNT; type++) {
        dv_map map = plain;
        map.type = (dv_type)type;
        void *src = map_values(&map, 4);
        float *dst = guarded_new(dv_map_elements(&map) * sizeof *dst);
        dv_convert_to_f32(map.type, src, dv_map_elements(&map), dst);
        for (size_t i = 0; i < dv_map_elements(&map); i++)
            assert_true(dst[i] == load_element(map.type, src, i));
        guarded_free(dst, dv_map_elements(&map) * sizeof *dst);
        free(src);
    }
}

/* ---- the low-frequency component ----------------------------------------------------------- */

/* Sides as three, with leading ones. */
static void three_sides(const dv_map *map, size_t sides[3]) {
    for (int d = 0; d < 3; d++)
        sides[d] = d < 3 - map->rank ? 1 : map->sides[d - (3 - map->rank)];
}

static size_t index_of(const dv_map *map, const size_t sides[3], size_t n, size_t c, const size_t at[3]) {
    size_t pixel = (at[0] * sides[1] + at[1]) * sides[2] + at[2], pixels = sides[0] * sides[1] * sides[2];
    size_t within = map->layout == DV_NHWC ? pixel * map->channels + c : c * pixels + pixel;
    return n * map->channels * pixels + within;
}

/* The average of the block that pixel `at` is in, straight from its definition. */
static double block_average(const dv_map *map, const void *src, size_t block, size_t n, size_t c, const size_t at[3]) {
    size_t sides[3], from[3], to[3], i[3], count = 0;
    double sum = 0;
    three_sides(map, sides);
    for (int d = 0; d < 3; d++) {
        from[d] = at[d] / block * block;
        to[d] = from[d] + block < sides[d] ? from[d] + block : sides[d];
    }
    for (i[0] = from[0]; i[0] < to[0]; i[0]++)
        for (i[1] = from[1]; i[1] < to[1]; i[1]++)
            for (i[2] = from[2]; i[2] < to[2]; i[2]++, count++)
                sum += load_element(map->type, src, index_of(map, sides, n, c, i));
    return sum / (double)count;
}

static void check_low_frequency(const dv_map *map, size_t block) {
    size_t sides[3], at[3], bytes = dv_map_elements(map) * sizeof(float);
    void *src = map_values(map, 21);
    float *dst = guarded_new(bytes);
    three_sides(map, sides);
    assert_ok(dv_map_low_frequency(map, block, src, dst, &error));
    for (size_t n = 0; n < map->images; n++)
        for (size_t c = 0; c < map->channels; c++)
            for (at[0] = 0; at[0] < sides[0]; at[0]++)
                for (at[1] = 0; at[1] < sides[1]; at[1]++)
                    for (at[2] = 0; at[2] < sides[2]; at[2]++) {
                        double expected = block_average(map, src, block, n, c, at);
                        float got = dst[index_of(map, sides, n, c, at)];
                        if (fabs(got - expected) > 1e-6 * (1 + fabs(expected)))
                            fail_msg("%s, block %zu: image %zu, channel %zu, (%zu, %zu, %zu): %g, expected %g",
                                     map_text(map), block, n, c, at[0], at[1], at[2], (double)got, expected);
                    }
    guarded_free(dst, bytes);
    free(src);
}

static void low_frequency_is_the_average_of_blocks(void **state) {
    (void)state;
    static const size_t sides[][4] = {{0}, {1, 19}, {2, 9, 10}, {2, 1, 5}, {2, 16, 7}, {3, 3, 5, 9}, {3, 9, 2, 4}};
    static const size_t blocks[] = {1, 2, 3, 8, 64};
    for (size_t i = 0; i < sizeof sides / sizeof *sides; i++)
        for (size_t b = 0; b < sizeof blocks / sizeof *blocks; b++)
            for (int kind = 0; kind < DV_TYPE_COUNT * DV_LAYOUT_COUNT; kind++) {
                dv_map map = {.images = 2, .channels = 3, .rank = (int)sides[i][0]};
                memcpy(map.sides, sides[i] + 1, sizeof map.sides);
                map.type = (dv_type)(kind % DV_TYPE_COUNT);
                map.layout = (dv_layout)(kind / DV_TYPE_COUNT);
                check_low_frequency(&map, blocks[b]);
            }
}

static void low_frequency_checks_its_arguments(void **state) {
    (void)state;
    float src[2 * 3 * 5 * 7] = {0}, dst[2 * 3 * 5 * 7];
    dv_map wrong = plain;
    wrong.rank = 7;
    assert_fails(dv_map_low_frequency(NULL, 8, src, dst, &error), DV_ERROR_ARGUMENT, "map is NULL");
    assert_fails(dv_map_low_frequency(&wrong, 8, src, dst, &error), DV_ERROR_UNSUPPORTED, "dimensions");
    assert_fails(dv_map_low_frequency(&plain, 0, src, dst, &error), DV_ERROR_ARGUMENT, "block edge is 0");
    assert_fails(dv_map_low_frequency(&plain, 8, NULL, dst, &error), DV_ERROR_ARGUMENT, "NULL");
    assert_fails(dv_map_low_frequency(&plain, 8, src, NULL, &error), DV_ERROR_ARGUMENT, "NULL");
    assert_ok(dv_map_low_frequency(&plain, SIZE_MAX, src, dst, &error));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(maps_that_can_exist_are_taken),
        cmocka_unit_test(wrong_kinds_are_named),
        cmocka_unit_test(sizes_of_zero_are_refused),
        cmocka_unit_test(an_image_has_its_limit),
        cmocka_unit_test(all_bytes_fit_in_memory),
        cmocka_unit_test(sizes_are_products),
        cmocka_unit_test(types_and_layouts_have_names),
        cmocka_unit_test(elements_convert_to_f32),
        cmocka_unit_test(low_frequency_is_the_average_of_blocks),
        cmocka_unit_test(low_frequency_checks_its_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
