/* The codec of a ReLU's output: zeros are zeros again, the rest is division's, and the mask can be had without it. */
#include "base/cpu.h"
#include "maps.h"

#include <division/packed.h>

/* "f32 nhwc 5x3x28x31" of a map, by index of a type and a layout. */
static dv_map map_of(int kind, size_t images, size_t channels, size_t height, size_t width) {
    return (dv_map){
        (dv_type)(kind % DV_TYPE_COUNT), (dv_layout)(kind / DV_TYPE_COUNT), images, channels, 2, {height, width}};
}

enum { KINDS = DV_TYPE_COUNT * DV_LAYOUT_COUNT };

static void *decoded_by(const char *text, const dv_map *map, const void *src) {
    dv_codec codec = codec_of(text);
    dv_noise noise = {.seed = 1, .step = 2, .value = 3};
    size_t bytes = packed_bytes_of(&codec, map);
    void *packed = guarded_new(bytes), *dst = guarded_new(dv_map_bytes(map));
    assert_ok(dv_codec_encode(&codec, map, &noise, src, packed, bytes, &error));
    assert_ok(dv_codec_decode(&codec, map, &noise, packed, bytes, dst, &error));
    guarded_free(packed, bytes);
    return dst;
}

/* What was positive comes back as `division` has it, to the bit, the rest as zero. */
static void check_map(const dv_map *map) {
    void *src = map_values(map, 7);
    void *plain = decoded_by("division:bits=4", map, src), *masked = decoded_by("rectified:bits=4", map, src);
    for (size_t i = 0; i < dv_map_elements(map); i++) {
        float expected = load_element(map->type, src, i) > 0 ? load_element(map->type, plain, i) : 0;
        if (load_element(map->type, masked, i) != expected)
            fail_msg("%s: element %zu: %g became %g, expected %g", map_text(map), i, load_element(map->type, src, i),
                     load_element(map->type, masked, i), expected);
    }
    guarded_free(plain, dv_map_bytes(map));
    guarded_free(masked, dv_map_bytes(map));
    free(src);
}

static void zeros_come_back_and_the_rest_is_divisions(void **state) {
    (void)state;
    static const size_t sizes[][4] = {{1, 1, 1, 1}, {3, 5, 9, 7}, {2, 600, 3, 3}, {70, 3, 28, 31}, {2, 64, 112, 112}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int kind = 0; kind < KINDS; kind++) {
            dv_map map = map_of(kind, sizes[i][0], sizes[i][1], sizes[i][2], sizes[i][3]);
            check_map(&map);
        }
}

static void a_bit_more_is_what_it_takes(void **state) {
    (void)state;
    dv_codec plain = codec_of("division"), codec = codec_of("rectified");
    dv_map map = map_of(0, 4, 64, 56, 56);
    assert_int_equal(packed_bytes_of(&codec, &map), packed_bytes_of(&plain, &map) + dv_map_elements(&map) / 8);
}

/* Any image decodes without the others. */
static void images_decode_alone(void **state) {
    (void)state;
    dv_map map = map_of(3, 5, 17, 9, 9);
    dv_codec codec = codec_of("rectified");
    size_t bytes = packed_bytes_of(&codec, &map), image = dv_map_bytes(&map) / 5;
    void *src = map_values(&map, 5), *packed = guarded_new(bytes), *part = guarded_new(2 * image);
    char *all = guarded_new(5 * image);
    assert_ok(dv_codec_encode(&codec, &map, NULL, src, packed, bytes, &error));
    assert_ok(dv_codec_decode(&codec, &map, NULL, packed, bytes, all, &error));
    assert_ok(dv_codec_decode_images(&codec, &map, NULL, 2, 2, packed, bytes, part, &error));
    assert_memory_equal(part, all + 2 * image, 2 * image);
    guarded_free(all, 5 * image);
    guarded_free(part, 2 * image);
    guarded_free(packed, bytes);
    free(src);
}

/* ---- the mask alone ------------------------------------------------------------------------ */

/* A gradient with what arithmetic would stumble over: NaN and infinities. */
static void *gradient_of(const dv_map *map) {
    void *gradient = map_values(map, 23);
    for (size_t i = 0; i < dv_map_elements(map); i++)
        if (i % 5 == 0)
            store_element(map->type, gradient, i, i % 3 ? NAN : -INFINITY);
    return gradient;
}

static void check_mask(const char *text, const dv_map *map, dv_isa isa) {
    size_t bytes, element = dv_type_bytes(map->type);
    const char *map_name = map_text(map);
    dv_isa_force(isa);
    assert_ok(dv_packed_bytes(text, map_name, &bytes, error.text));
    char *src = map_values(map, 3), *gradient = gradient_of(map), *dst = guarded_new(dv_map_bytes(map));
    void *packed = guarded_new(bytes);
    assert_ok(dv_packed_encode(text, map_name, 1, 2, 3, src, packed, bytes, error.text));
    assert_ok(dv_packed_apply_mask(text, map_name, packed, bytes, gradient, dst, error.text));
    for (size_t i = 0; i < dv_map_elements(map); i++) {
        static const char zero[4];
        const char *expected = load_element(map->type, src, i) > 0 ? gradient + i * element : zero;
        if (memcmp(dst + i * element, expected, element) != 0)
            fail_msg("%s, %s, %s: element %zu of the gradient", text, map_name, dv_isa_name(isa), i);
    }
    assert_ok(dv_packed_apply_mask(text, map_name, packed, bytes, gradient, gradient, error.text));
    assert_memory_equal(gradient, dst, dv_map_bytes(map));
    guarded_free(packed, bytes);
    guarded_free(dst, dv_map_bytes(map));
    free(gradient);
    free(src);
}

/* With every instruction set, of lengths around those of bytes, vectors, chunks and pieces. */
static void gradients_pass_where_the_map_was_positive(void **state) {
    (void)state;
    static const size_t lengths[] = {1, 7, 9, 31, 255, 256, 257, 1023, 16384, 16385, 40001};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (int kind = 0; kind < KINDS; kind++)
            for (int isa = 0; isa < DV_ISA_COUNT; isa++) {
                dv_map map = map_of(kind, 2, 1, 1, lengths[i]);
                if (!dv_isa_available((dv_isa)isa))
                    continue;
                check_mask("bits", &map, (dv_isa)isa);
                check_mask("rectified", &map, (dv_isa)isa);
            }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zeros_come_back_and_the_rest_is_divisions),
        cmocka_unit_test(a_bit_more_is_what_it_takes),
        cmocka_unit_test(images_decode_alone),
        cmocka_unit_test(gradients_pass_where_the_map_was_positive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
