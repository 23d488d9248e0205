/* The codec of masks: one bit an element, set where it is positive. */
#include "base/cpu.h"
#include "maps.h"

/* Packs and unpacks with every instruction set; each element must become 1 where it was positive, else 0. */
static void check_signs(const dv_map *map, const void *src) {
    dv_codec codec = codec_of("bits");
    size_t bytes = packed_bytes_of(&codec, map);
    for (int isa = 0; isa < DV_ISA_COUNT; isa++) {
        if (!dv_isa_available((dv_isa)isa))
            continue;
        void *packed = guarded_new(bytes), *dst = guarded_new(dv_map_bytes(map));
        dv_isa_force((dv_isa)isa);
        assert_ok(dv_codec_encode(&codec, map, NULL, src, packed, bytes, &error));
        assert_ok(dv_codec_decode(&codec, map, NULL, packed, bytes, dst, &error));
        for (size_t i = 0; i < dv_map_elements(map); i++)
            if (load_element(map->type, dst, i) != (load_element(map->type, src, i) > 0 ? 1.0f : 0.0f))
                fail_msg("%s, %s: element %zu: %g became %g", map_text(map), dv_isa_name((dv_isa)isa), i,
                         load_element(map->type, src, i), load_element(map->type, dst, i));
        guarded_free(packed, bytes);
        guarded_free(dst, dv_map_bytes(map));
    }
}

/* Lengths around those of bytes, vectors and chunks. */
static void signs_come_back(void **state) {
    (void)state;
    static const size_t lengths[] = {1, 2, 7, 8, 9, 31, 32, 33, 255, 256, 257, 511, 1023, 2049};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (int kind = 0; kind < DV_TYPE_COUNT * DV_LAYOUT_COUNT; kind++) {
            dv_map map = {.images = 3, .channels = 1, .rank = 1, .sides = {lengths[i]}};
            map.type = (dv_type)(kind % DV_TYPE_COUNT);
            map.layout = (dv_layout)(kind / DV_TYPE_COUNT);
            void *src = map_values(&map, 31);
            for (size_t j = 0; j < dv_map_elements(&map); j += 3)
                store_element(map.type, src, j, -load_element(map.type, src, j));
            check_signs(&map, src);
            free(src);
        }
}

static void zeros_are_not_positive_and_subnormals_are(void **state) {
    (void)state;
    static const float values[] = {0.0f, -0.0f, 1e-45f, -1e-45f, 3e38f, -3e38f, 1.0f, -1.0f};
    dv_map map = {.images = 1, .channels = 8};
    check_signs(&map, values);
    static const uint16_t halves[] = {0x0000, 0x8000, 0x0001, 0x8001, 0x7bff, 0xfbff, 0x3c00, 0xbc00};
    map.type = DV_F16;
    check_signs(&map, halves);
    map.type = DV_BF16;
    check_signs(&map, halves);
}

static void a_bit_is_all_it_takes(void **state) {
    (void)state;
    dv_codec codec = codec_of("bits");
    dv_map map = {.images = 3, .channels = 64, .rank = 2, .sides = {8, 8}};
    assert_int_equal(packed_bytes_of(&codec, &map), 3 * 64 * 64 / 8);
    map = (dv_map){.images = 3, .channels = 1};
    assert_int_equal(packed_bytes_of(&codec, &map), 3 * 64);
}

/* The first, a middle and the last element, of every type, in every place that kernels treat apart. */
static void nonfinite_input_is_an_error(void **state) {
    (void)state;
    dv_codec codec = codec_of("bits");
    for (int type = 0; type < DV_TYPE_COUNT; type++)
        for (int isa = 0; isa < DV_ISA_COUNT; isa++)
            for (size_t at = 0; at < 2 * 300 && dv_isa_available((dv_isa)isa); at += 23) {
                dv_map map = {
                    .type = (dv_type)type, .layout = DV_NHWC, .images = 2, .channels = 3, .rank = 1, .sides = {100}};
                void *src = map_values(&map, 1), *packed = guarded_new(packed_bytes_of(&codec, &map));
                char words[80];
                snprintf(words, sizeof words, "bits: %s in image %zu, channel %zu", at % 2 ? "NaN" : "infinity",
                         at / 300, at % 3);
                store_element(map.type, src, at, at % 2 ? NAN : -INFINITY);
                dv_isa_force((dv_isa)isa);
                assert_fails(dv_codec_encode(&codec, &map, NULL, src, packed, packed_bytes_of(&codec, &map), &error),
                             DV_ERROR_NONFINITE, words);
                guarded_free(packed, packed_bytes_of(&codec, &map));
                free(src);
            }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signs_come_back),
        cmocka_unit_test(zeros_are_not_positive_and_subnormals_are),
        cmocka_unit_test(a_bit_is_all_it_takes),
        cmocka_unit_test(nonfinite_input_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
