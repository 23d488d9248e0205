/* Kept values: what has a mask beside its packed form comes back without noise where it is zero. */
#include "check.h"
#include "graph/keeper.h"
#include "nn/parts.h"

static float number_at(size_t i) {
    return (float)((uint32_t)i * 2654435761u >> 8) / (float)(1 << 23) - 1;
}

static void zeros_stay_zeros(void **state) {
    (void)state;
    static const dv_type types[] = {DV_F32, DV_BF16};
    for (int t = 0; t < 2; t++) {
        dv_map map = {types[t], DV_NHWC, 5, 24, 2, {9, 13}};
        size_t count = dv_map_elements(&map), image = dv_map_image_elements(&map), element = dv_type_bytes(map.type);
        char *value = calloc(count, element), *plain = calloc(count, element), *cleared = calloc(count, element);
        uint8_t *mask = calloc(map.images, dv_mask_stride(&map));
        dv_kept kept = {.access = &dv_keep_packed.access,
                        .map = map,
                        .zero_outside = true,
                        .noise = {.seed = 1, .step = 2, .value = 3}};
        size_t zeros = 0;
        assert_true(value && plain && cleared && mask);
        for (size_t i = 0; i < count; i++) {
            float number = number_at(i) > 0 ? number_at(i) : 0;
            uint32_t word;
            memcpy(&word, &number, sizeof word);
            uint16_t half = (uint16_t)(word >> 16);
            memcpy(value + i * element, types[t] == DV_F32 ? (void *)&number : (void *)&half, element);
        }
        dv_write_mask(&map, map.images, value, mask);
        assert_ok(dv_codec_parse("division", &kept.codec, &error));
        assert_ok(dv_codec_packed_bytes(&kept.codec, &map, &kept.packed_bytes, &error));
        kept.packed = kept.stored = aligned_alloc(64, (kept.packed_bytes + 63) / 64 * 64);
        assert_non_null(kept.packed);
        assert_ok(dv_kept_store(&kept, 0, map.images, value, &error));
        for (size_t first = 0; first < map.images; first += 2) { /* slices, the last one not full */
            size_t now = map.images - first < 2 ? map.images - first : 2;
            const void *found;
            kept.mask = NULL;
            assert_ok(dv_kept_images(&kept, first, now, plain + first * image * element, &found, &error));
            assert_ptr_equal(found, plain + first * image * element);
            kept.mask = mask;
            assert_ok(dv_kept_images(&kept, first, now, cleared + first * image * element, &found, &error));
        }
        for (size_t i = 0; i < count; i++) {
            static const char zero[4];
            bool is_zero = memcmp(value + i * element, zero, element) == 0;
            zeros += is_zero;
            assert_memory_equal(cleared + i * element, is_zero ? zero : plain + i * element, element);
        }
        assert_in_range(zeros, count / 3, count);
        free(kept.stored);
        free(mask);
        free(cleared);
        free(plain);
        free(value);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zeros_stay_zeros),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
