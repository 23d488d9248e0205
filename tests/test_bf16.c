/* The codec `bf16`: the nearest bf16 of every element, and a mask that can be read out of it. */
#include "base/cpu.h"
#include "base/float16.h"
#include "codec/kind.h"
#include "maps.h"

static void elements_are_rounded_to_the_nearest(void **state) {
    (void)state;
    dv_codec codec = codec_of("bf16");
    dv_map map = {.images = 2, .channels = 5, .rank = 2, .sides = {9, 7}};
    size_t bytes = packed_bytes_of(&codec, &map), count = dv_map_elements(&map);
    assert_int_equal(bytes, 2 * 640); /* 315 elements of two bytes, rounded up to 64 */
    float *src = map_values(&map, 3), *dst = malloc(count * sizeof *dst);
    void *packed = guarded_new(bytes);
    assert_ok(dv_codec_encode(&codec, &map, NULL, src, packed, bytes, &error));
    assert_ok(dv_codec_decode(&codec, &map, NULL, packed, bytes, dst, &error));
    for (size_t i = 0; i < count; i++)
        assert_true(dst[i] == dv_bf16_to_f32(dv_bf16_nearest(src[i])));
    guarded_free(packed, bytes);
    free(src);
    free(dst);
}

/* Of every instruction set, with numbers that bf16 is too coarse for. */
static void a_mask_is_told_exactly(void **state) {
    (void)state;
    static const float values[] = {0.0f, -0.0f, 1e-45f, -1e-45f, 0x1p-134f, 0x1.8p-134f, 3e38f, -3e38f, 1.0f, -1e-30f};
    dv_codec codec = codec_of("bf16"), bits = codec_of("bits");
    dv_map map = {.images = 3, .channels = 301};
    size_t bytes = packed_bytes_of(&codec, &map), mask_bytes = packed_bytes_of(&bits, &map);
    float *src = malloc(dv_map_bytes(&map));
    assert_non_null(src);
    for (size_t i = 0; i < dv_map_elements(&map); i++)
        src[i] = values[i * 7 % 10];
    for (int isa = 0; isa < DV_ISA_COUNT; isa++) {
        if (!dv_isa_available((dv_isa)isa))
            continue;
        void *packed = guarded_new(bytes);
        uint8_t *expected = guarded_new(mask_bytes), *found = guarded_new(mask_bytes);
        dv_isa_force((dv_isa)isa);
        assert_ok(dv_codec_encode(&bits, &map, NULL, src, expected, mask_bytes, &error));
        assert_ok(dv_codec_encode(&codec, &map, NULL, src, packed, bytes, &error));
        memset(found, 0, mask_bytes);
        assert_ok(dv_codec_decode_mask(&codec, &map, 1, 2, packed, bytes, found, mask_bytes / 3, &error));
        assert_memory_equal(found, expected + mask_bytes / 3, mask_bytes / 3 * 2);
        guarded_free(packed, bytes);
        guarded_free(expected, mask_bytes);
        guarded_free(found, mask_bytes);
    }
    free(src);
}

/* Beyond the largest bf16 as well. */
static void nonfinite_input_is_an_error(void **state) {
    (void)state;
    static const float bad[] = {NAN, -NAN, INFINITY, -INFINITY, 3.4e38f};
    static const char *const words[] = {"NaN in image 1, channel 2", "NaN", "infinity", "infinity", "2^125 or more"};
    dv_codec codec = codec_of("bf16");
    dv_map map = {.images = 2, .channels = 3, .rank = 1, .sides = {100}, .layout = DV_NHWC};
    for (int isa = 0; isa < DV_ISA_COUNT; isa++)
        for (size_t k = 0; k < 5 && dv_isa_available((dv_isa)isa); k++) {
            float *src = map_values(&map, 1);
            void *packed = guarded_new(packed_bytes_of(&codec, &map));
            src[300 + 3 * 17 + 2] = bad[k];
            dv_isa_force((dv_isa)isa);
            assert_fails(dv_codec_encode(&codec, &map, NULL, src, packed, packed_bytes_of(&codec, &map), &error),
                         DV_ERROR_NONFINITE, words[k]);
            guarded_free(packed, packed_bytes_of(&codec, &map));
            free(src);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_are_rounded_to_the_nearest),
        cmocka_unit_test(a_mask_is_told_exactly),
        cmocka_unit_test(nonfinite_input_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
