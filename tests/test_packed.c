/* Packed maps by text: what texts mean, that calls do what those of codec.h do, and what is told of wrong ones. */
#include "maps.h"

#include <division/packed.h>
#include <omp.h>

/* ---- maps from text ------------------------------------------------------------------------ */

static void every_map_survives_the_way_to_text_and_back(void **state) {
    (void)state;
    for (size_t i = 0; i < AWKWARD_SHAPES; i++) {
        dv_map map = awkward_map(i), read;
        map.type = (dv_type)(i % DV_TYPE_COUNT);
        map.layout = (dv_layout)(i % DV_LAYOUT_COUNT);
        assert_ok(dv_map_parse(map_text(&map), &read, &error));
        assert_int_equal(read.type, map.type);
        assert_int_equal(read.layout, map.layout);
        assert_int_equal(read.images, map.images);
        assert_int_equal(read.channels, map.channels);
        assert_int_equal(read.rank, map.rank);
        for (int d = 0; d < map.rank; d++)
            assert_int_equal(read.sides[d], map.sides[d]);
    }
}

static void wrong_maps_are_explained(void **state) {
    (void)state;
    static const struct {
        const char *text;
        dv_status status;
        const char *words;
    } cases[] = {
        {"", DV_ERROR_ARGUMENT, "map \"\": it is to be f32, bf16 or f16"},
        {"f32", DV_ERROR_ARGUMENT, "map \"f32\""},
        {"f64 nhwc 1x2", DV_ERROR_ARGUMENT, "map \"f64 nhwc 1x2\""},
        {"f32 chwn 1x2", DV_ERROR_ARGUMENT, "as in"},
        {"f32  nhwc 1x2", DV_ERROR_ARGUMENT, "as in"},
        {"f32 nhwc", DV_ERROR_ARGUMENT, "as in"},
        {"f32 nhwc ", DV_ERROR_ARGUMENT, "as in"},
        {"f32 nhwc 1", DV_ERROR_ARGUMENT, "as in"},
        {"f32 nhwc 1x", DV_ERROR_ARGUMENT, "as in"},
        {"f32 nhwc x1", DV_ERROR_ARGUMENT, "as in"},
        {"f32 nhwc 1xx2", DV_ERROR_ARGUMENT, "as in"},
        {"f32 nhwc 1x2 ", DV_ERROR_ARGUMENT, "as in"},
        {"f32 nhwc 1x-2", DV_ERROR_ARGUMENT, "as in"},
        {"f32 nhwc 1x2x3x4x5x6", DV_ERROR_ARGUMENT, "as in"},
        {"f32 nhwc 1x2x3x4x5x", DV_ERROR_ARGUMENT, "as in"},
        {"f32 nhwc 99999999999999999999999x2", DV_ERROR_ARGUMENT, "as in"},
        {"f32 nhwc 0x2", DV_ERROR_UNSUPPORTED, "must be at least 1"},
        {"f32 nhwc 2x2x0", DV_ERROR_UNSUPPORTED, "must be at least 1"},
        {"f32 nhwc 1x4294967297", DV_ERROR_UNSUPPORTED, "at most 2^32 elements"},
        {"f32 nhwc 18446744073709551615x4294967296", DV_ERROR_UNSUPPORTED, "do not fit in memory"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        dv_map map;
        size_t bytes = 1;
        assert_fails(dv_map_parse(cases[i].text, &map, &error), cases[i].status, cases[i].words);
        assert_fails(dv_packed_bytes("exact", cases[i].text, &bytes, error.text), cases[i].status, cases[i].words);
        assert_int_equal(dv_packed_bytes("exact", cases[i].text, &bytes, NULL), cases[i].status);
        assert_int_equal(bytes, 1);
    }
}

/* ---- calls --------------------------------------------------------------------------------- */

static const char *const codecs[] = {"division", "division:bits=8,dither=subtractive", "rectified:block=4", "exact",
                                     "bits"};

/* The bytes and the elements of codec.h's calls. */
static void check_call(const char *text, const dv_map *map) {
    dv_codec codec = codec_of(text);
    dv_noise noise = {.seed = 1, .step = 2, .value = 3};
    size_t bytes = packed_bytes_of(&codec, map), told, elements = dv_map_bytes(map);
    void *src = map_values(map, 5), *packed[2], *dst[2];
    assert_ok(dv_packed_bytes(text, map_text(map), &told, error.text));
    assert_int_equal(told, bytes);
    for (int i = 0; i < 2; i++) {
        packed[i] = guarded_new(bytes);
        dst[i] = guarded_new(elements);
    }
    assert_ok(dv_codec_encode(&codec, map, &noise, src, packed[0], bytes, &error));
    assert_ok(dv_codec_decode(&codec, map, &noise, packed[0], bytes, dst[0], &error));
    assert_ok(dv_packed_encode(text, map_text(map), 1, 2, 3, src, packed[1], bytes, error.text));
    assert_ok(dv_packed_decode(text, map_text(map), 1, 2, 3, packed[1], bytes, dst[1], error.text));
    assert_memory_equal(packed[0], packed[1], bytes);
    assert_memory_equal(dst[0], dst[1], elements);
    for (int i = 0; i < 2; i++) {
        guarded_free(packed[i], bytes);
        guarded_free(dst[i], elements);
    }
    free(src);
}

static void calls_by_text_are_those_by_structs(void **state) {
    (void)state;
    for (size_t i = 0; i < AWKWARD_SHAPES; i += 11 * test_scale())
        for (size_t c = 0; c < sizeof codecs / sizeof *codecs; c++) {
            dv_map map = awkward_map(i);
            map.type = (dv_type)((i + c) % DV_TYPE_COUNT);
            map.layout = (dv_layout)(i / 3 % DV_LAYOUT_COUNT);
            check_call(codecs[c], &map);
        }
}

static void wrong_calls_are_explained(void **state) {
    (void)state;
    static const char map[] = "f32 nchw 1x2x4x4";
    static _Alignas(DV_PACKED_ALIGNMENT) char packed[4096];
    float numbers[32] = {0};
    size_t bytes;
    assert_fails(dv_packed_bytes("divisio", map, &bytes, error.text), DV_ERROR_OPTION, "unknown codec \"divisio\"");
    assert_fails(dv_packed_bytes("division:bits=3", map, &bytes, error.text), DV_ERROR_OPTION, "must be 1, 2, 4 or 8");
    assert_ok(dv_packed_bytes("division", map, &bytes, error.text));
    assert_fails(dv_packed_encode("division", map, 0, 0, 0, numbers, packed, bytes - 1, error.text), DV_ERROR_BUFFER,
                 "are needed");
    assert_fails(dv_packed_decode("division", map, 0, 0, 0, packed + 4, bytes, numbers, error.text), DV_ERROR_BUFFER,
                 "aligned");
    assert_fails(dv_packed_apply_mask("division", map, packed, bytes, numbers, numbers, error.text),
                 DV_ERROR_UNSUPPORTED, "division holds no mask: \"rectified\" and \"bits\" do");
    assert_fails(dv_packed_apply_mask("bits", map, packed, 1, numbers, numbers, error.text), DV_ERROR_BUFFER,
                 "are needed");
}

/* What is not finite is told, in every type, so that a caller keeps such a map exactly. */
static void what_is_not_finite_is_told(void **state) {
    (void)state;
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 3 * DV_TYPE_COUNT; i++) {
        dv_map map = {.type = (dv_type)(i / 3), .layout = DV_NHWC, .images = 3, .channels = 5, .rank = 1, .sides = {9}};
        size_t bytes;
        assert_ok(dv_packed_bytes("rectified", map_text(&map), &bytes, error.text));
        void *src = map_values(&map, 1), *packed = guarded_new(bytes);
        store_element(map.type, src, 2 * 45 + 4 * 5 + 3, bad[i % 3]);
        assert_fails(dv_packed_encode("rectified", map_text(&map), 1, 2, 3, src, packed, bytes, error.text),
                     DV_ERROR_NONFINITE, "in image 2, channel 3");
        guarded_free(packed, bytes);
        free(src);
    }
}

/* Threads that pack and unpack at once do not meet. */
/* Whatever lies in a packed map, decoding stays in its buffers: where a map says itself how it is to be read, that is
 * checked. */
static void damaged_maps_are_told(void **state) {
    (void)state;
    static const char map[] = "f32 nhwc 2x3x5x7";
    size_t bytes;
    assert_ok(dv_packed_bytes("acgc", map, &bytes, error.text));
    uint8_t *packed = guarded_new(bytes);
    float elements[2 * 3 * 5 * 7];
    memset(packed, 0xa5, bytes);
    assert_fails(dv_packed_decode("acgc", map, 1, 2, 3, packed, bytes, elements, error.text), DV_ERROR_FORMAT,
                 "image 0, channel 0 says codes of");
    guarded_free(packed, bytes);
}

static void threads_do_not_meet(void **state) {
    (void)state;
    static const char map[] = "f32 nhwc 4x16x14x14";
    int wrong = 0;
#pragma omp parallel for num_threads(4) reduction(+ : wrong)
    for (int i = 0; i < 40; i++) {
        dv_map read;
        size_t bytes = 0;
        (void)dv_map_parse(map, &read, NULL);
        (void)dv_packed_bytes("exact", map, &bytes, NULL);
        void *src = map_values(&read, (uint64_t)i), *packed = aligned_alloc(DV_PACKED_ALIGNMENT, bytes);
        void *dst = malloc(dv_map_bytes(&read));
        wrong += dv_packed_encode("exact", map, 1, 2, 3, src, packed, bytes, NULL) != DV_OK;
        wrong += dv_packed_decode("exact", map, 1, 2, 3, packed, bytes, dst, NULL) != DV_OK;
        wrong += memcmp(src, dst, dv_map_bytes(&read)) != 0;
        free(dst);
        free(packed);
        free(src);
    }
    assert_int_equal(wrong, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_map_survives_the_way_to_text_and_back),
        cmocka_unit_test(wrong_maps_are_explained),
        cmocka_unit_test(calls_by_text_are_those_by_structs),
        cmocka_unit_test(wrong_calls_are_explained),
        cmocka_unit_test(what_is_not_finite_is_told),
        cmocka_unit_test(damaged_maps_are_told),
        cmocka_unit_test(threads_do_not_meet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
