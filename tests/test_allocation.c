/* Packing and unpacking allocate nothing. */
#include "allocations.h"
#include "maps.h"

#if ALLOCATIONS_ARE_COUNTED

static long allocations_of(const char *text, const dv_map *map, int threads) {
    dv_codec codec = codec_of(text);
    codec.threads = threads;
    size_t bytes = packed_bytes_of(&codec, map);
    void *src = map_values(map, 3), *packed = guarded_new(bytes), *dst = guarded_new(dv_map_bytes(map));
    long before = 0;
    for (int round = 0; round < 3; round++) {
        dv_error error;
        char again[100];
        if (round == 1)
            before = atomic_load(&allocations);
        assert_int_equal(dv_codec_parse(text, &codec, &error), DV_OK);
        dv_codec_format(&codec, again, sizeof again);
        codec.threads = threads;
        assert_int_equal(dv_codec_packed_bytes(&codec, map, &bytes, &error), DV_OK);
        assert_int_equal(dv_codec_encode(&codec, map, NULL, src, packed, bytes, &error), DV_OK);
        assert_int_equal(dv_codec_decode(&codec, map, NULL, packed, bytes, dst, &error), DV_OK);
        assert_int_equal(dv_codec_decode_images(&codec, map, NULL, 1, 1, packed, bytes, dst, &error), DV_OK);
        assert_int_equal(dv_codec_encode(&codec, map, NULL, src, packed, bytes - 1, &error), DV_ERROR_BUFFER);
    }
    long after = atomic_load(&allocations);
    guarded_free(packed, bytes);
    guarded_free(dst, dv_map_bytes(map));
    free(src);
    return after - before;
}

static void allocations_are_counted(void **state) {
    (void)state;
    long before = atomic_load(&allocations);
    void *volatile memory = malloc(10);
    free(memory);
    assert_int_equal(atomic_load(&allocations) - before, 1);
}

static void packing_allocates_nothing(void **state) {
    (void)state;
    static const char *const texts[] = {"division", "division:bits=8,dither=subtractive", "exact", "bits"};
    for (int threads = 1; threads <= 2; threads++)
        for (size_t t = 0; t < 4; t++)
            for (int kind = 0; kind < DV_TYPE_COUNT * DV_LAYOUT_COUNT; kind++) {
                dv_map map = {.images = 3, .channels = 600, .rank = 2, .sides = {17, 19}};
                map.type = (dv_type)(kind % DV_TYPE_COUNT);
                map.layout = (dv_layout)(kind / DV_TYPE_COUNT);
                long count = allocations_of(texts[t], &map, threads);
                if (count)
                    fail_msg("%s, %s, %d threads: %ld allocations", texts[t], map_text(&map), threads, count);
            }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allocations_are_counted),
        cmocka_unit_test(packing_allocates_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void) {
    print_message("skipped: a sanitizer has replaced the allocator, or this is not the GNU C library\n");
    return 0;
}

#endif
