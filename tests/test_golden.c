/* Packed bytes and decoded elements against those of another implementation, tests/golden/codec.py: the
 * format must not change by accident. If it is to change, change docs/codec.md and that script first, then
 *
 *     tests/golden/codec.py > tests/golden/codec.inc
 */
#include "base/cpu.h"
#include "maps.h"

typedef struct golden_case {
    const char *codec;
    dv_map map;
    uint64_t seed;
    int flat;                 /* the same element everywhere */
    size_t packed_bytes;      /* in all */
    uint64_t packed, decoded; /* checksums */
} golden_case;

static const golden_case cases[] = {
#include "golden/codec.inc"
};

/* FNV-1a, 64 bits. */
static uint64_t checksum(const void *data, size_t bytes) {
    const unsigned char *at = data;
    uint64_t value = 0xcbf29ce484222325;
    for (size_t i = 0; i < bytes; i++)
        value = (value ^ at[i]) * 0x100000001b3;
    return value;
}

static void *elements_of(const golden_case *golden) {
    void *elements = guarded_new(dv_map_bytes(&golden->map));
    dv_random key = dv_random_key(&golden->seed, 1);
    for (size_t i = 0; i < dv_map_elements(&golden->map); i++) {
        float noise = (float)(dv_random_word(key, (uint32_t)i) >> 8) * 0x1p-22f - 2.0f;
        store_element(golden->map.type, elements, i, golden->flat ? 0.1f : noise + (float)(i % 97) / 32.0f);
    }
    return elements;
}

/* Packs and unpacks a case with one instruction set; the packed bytes are the caller's. */
static void *check_case(const golden_case *golden, dv_isa isa) {
    dv_noise noise = {.seed = golden->seed, .step = 2, .value = 3};
    dv_codec codec = codec_of(golden->codec);
    size_t bytes = packed_bytes_of(&codec, &golden->map);
    assert_int_equal(bytes, golden->packed_bytes);
    void *src = elements_of(golden), *packed = guarded_new(bytes), *dst = guarded_new(dv_map_bytes(&golden->map));
    dv_isa_force(isa);
    assert_ok(dv_codec_encode(&codec, &golden->map, &noise, src, packed, bytes, &error));
    assert_ok(dv_codec_decode(&codec, &golden->map, &noise, packed, bytes, dst, &error));
    if (checksum(packed, bytes) != golden->packed)
        fail_msg("%s, %s, %s: packed bytes have changed", golden->codec, map_text(&golden->map), dv_isa_name(isa));
    if (checksum(dst, dv_map_bytes(&golden->map)) != golden->decoded)
        fail_msg("%s, %s, %s: decoded elements have changed", golden->codec, map_text(&golden->map), dv_isa_name(isa));
    guarded_free(src, dv_map_bytes(&golden->map));
    guarded_free(dst, dv_map_bytes(&golden->map));
    return packed;
}

static void every_case_has_its_checksums(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int isa = 0; isa < DV_ISA_COUNT; isa++)
            if (dv_isa_available((dv_isa)isa))
                guarded_free(check_case(&cases[i], (dv_isa)isa), cases[i].packed_bytes);
}

/* The two smallest in full, to see what differs. */
static void the_smallest_have_these_bytes(void **state) {
    (void)state;
    static const char *const bytes[] = {NHWC_BYTES, NCHW_BYTES};
    for (int i = 0; i < 2; i++) {
        void *packed = check_case(&cases[i], DV_ISA_SCALAR);
        assert_memory_equal(packed, bytes[i], cases[i].packed_bytes);
        guarded_free(packed, cases[i].packed_bytes);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_smallest_have_these_bytes),
        cmocka_unit_test(every_case_has_its_checksums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
