/* The codec that changes nothing. */
#include "maps.h"

static void check_round_trip(const dv_map *map, const void *src, size_t image_bytes) {
    dv_codec codec = codec_of("exact");
    size_t bytes = packed_bytes_of(&codec, map), record = (image_bytes + 63) / 64 * 64;
    assert_int_equal(bytes, map->images * record);
    char *packed = guarded_new(bytes);
    void *dst = guarded_new(dv_map_bytes(map));
    assert_ok(dv_codec_encode(&codec, map, NULL, src, packed, bytes, &error));
    assert_ok(dv_codec_decode(&codec, map, NULL, packed, bytes, dst, &error));
    assert_memory_equal(src, dst, dv_map_bytes(map));
    for (size_t n = 0; n < map->images; n++) /* records are the images, as they are */
        assert_memory_equal((const char *)src + n * image_bytes, packed + n * record, image_bytes);
    guarded_free(packed, bytes);
    guarded_free(dst, dv_map_bytes(map));
}

static void every_bit_comes_back(void **state) {
    (void)state;
    for (size_t shape = 0; shape < AWKWARD_SHAPES; shape += 7)
        for (int type = 0; type < DV_TYPE_COUNT; type++) {
            dv_map map = awkward_map(shape);
            map.type = (dv_type)type;
            void *src = map_values(&map, shape);
            check_round_trip(&map, src, dv_map_bytes(&map) / map.images);
            free(src);
        }
}

/* Every pattern of 16 bits, signalling NaNs among them, and special numbers of f32. */
static void nan_and_infinity_come_back(void **state) {
    (void)state;
    uint16_t *halves = malloc(65536 * sizeof *halves);
    assert_non_null(halves);
    for (uint32_t i = 0; i < 65536; i++)
        halves[i] = (uint16_t)i;
    dv_map map = {.type = DV_F16, .images = 2, .channels = 32768};
    check_round_trip(&map, halves, 65536);
    map.type = DV_BF16;
    check_round_trip(&map, halves, 65536);
    free(halves);
    const uint32_t bits[] = {0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001, 0xffffffff, 0x80000000, 1, 0x7f7fffff};
    dv_map wide = {.images = 1, .channels = 8};
    check_round_trip(&wide, bits, sizeof bits);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_bit_comes_back),
        cmocka_unit_test(nan_and_infinity_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
