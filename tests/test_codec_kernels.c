/* Every instruction set and every number of threads gives the bytes of the scalar reference. */
#include "base/cpu.h"
#include "maps.h"

static const char *const codecs[] = {
    "division",
    "division:dither=subtractive",
    "division:bits=1",
    "division:bits=4",
    "division:bits=8,dither=subtractive",
    "division:block=5,bits=2",
    "division:block=64",
    "division:dither=none",
    "division:dither=none,bits=8",
    "division:dither=none,bits=1,block=3",
    "division:lfc=off",
    "division:lfc=off,bits=4,block=2,dither=subtractive",
    "division:lfc=off,block=64,dither=none",
    "division:hfc=off",
    "division:hfc=off,block=3",
    "bits",
    "exact",
    "bf16",
    "blpa",
    "blpa:bits=8",
    "actnn",
    "actnn:bits=1",
    "actnn:bits=3",
    "actnn:bits=5",
    "actnn:bits=7",
    "actnn:bits=8",
    "acgc",
    "acgc:bits=3",
    "acgc:bits=7",
    "acgc:bits=16",
    "rectified",
    "rectified:bits=4,dither=subtractive",
    "lean",
    "lean:levels=7",
    "lean:levels=15,block=5,dither=stochastic,sample=3",
    "lean:sample=0",
    "lean:levels=255,dither=none",
    "lean:mask=off",
    "lean:mask=off,levels=7,block=2,dither=stochastic",
    "lean:mask=off,levels=255,block=64",
};

enum { CODECS = sizeof codecs / sizeof *codecs };

typedef struct packing {
    void *packed, *decoded;
} packing;

/* Packs and unpacks with one instruction set on `threads` threads. */
static packing run(dv_codec codec, const dv_map *map, const void *src, size_t bytes, dv_isa isa, int threads) {
    dv_noise noise = {.seed = 3, .step = 5, .value = 7};
    packing made = {guarded_new(bytes), guarded_new(dv_map_bytes(map))};
    memset(made.packed, 0, bytes); /* so that padding compares equal */
    dv_isa_force(isa);
    codec.threads = threads;
    assert_ok(dv_codec_encode(&codec, map, &noise, src, made.packed, bytes, &error));
    assert_ok(dv_codec_decode(&codec, map, &noise, made.packed, bytes, made.decoded, &error));
    return made;
}

static void drop(packing made, size_t bytes, const dv_map *map) {
    guarded_free(made.packed, bytes);
    guarded_free(made.decoded, dv_map_bytes(map));
}

/* Compares all instruction sets and numbers of threads on one map. */
static void compare(const char *text, const dv_map *map) {
    static const int threads[] = {1, 2, 5};
    dv_codec codec;
    size_t bytes;
    assert_ok(dv_codec_parse(text, &codec, &error));
    assert_ok(dv_codec_packed_bytes(&codec, map, &bytes, &error));
    void *src = map_values(map, 11);
    packing expected = run(codec, map, src, bytes, DV_ISA_SCALAR, 1);
    for (int isa = 0; isa < DV_ISA_COUNT; isa++)
        for (int t = isa == DV_ISA_SCALAR ? 2 : 0; t < 3 && dv_isa_available((dv_isa)isa); t++) {
            packing got = run(codec, map, src, bytes, (dv_isa)isa, threads[t]);
            if (memcmp(got.packed, expected.packed, bytes) != 0)
                fail_msg("%s, %s: packed bytes of %s on %d threads differ", text, map_text(map),
                         dv_isa_name((dv_isa)isa), threads[t]);
            if (memcmp(got.decoded, expected.decoded, dv_map_bytes(map)) != 0)
                fail_msg("%s, %s: decoded elements of %s on %d threads differ", text, map_text(map),
                         dv_isa_name((dv_isa)isa), threads[t]);
            drop(got, bytes, map);
        }
    drop(expected, bytes, map);
    free(src);
}

/* All awkward shapes, types and layouts; the codec changes from case to case, so that each shape meets
 * each codec in some type and layout. */
static void same_bits_on_awkward_shapes(void **state) {
    (void)state;
    size_t turn = 0;
    for (size_t shape = 0; shape < AWKWARD_SHAPES; shape += test_scale())
        for (int type = 0; type < DV_TYPE_COUNT; type++)
            for (int layout = 0; layout < DV_LAYOUT_COUNT; layout++, turn++) {
                dv_map map = awkward_map(shape);
                map.type = (dv_type)type;
                map.layout = (dv_layout)layout;
                /* The scalar code is slow: small maps in every type and layout, large ones in some. */
                size_t elements = dv_map_elements(&map), every = elements > 100000 ? 48 : elements > 4000 ? 6 : 1;
                if ((turn + shape) % every)
                    continue;
                compare(codecs[turn * 5 % CODECS], &map);
            }
}

/* More channels than a tile has, and a remainder; rows longer than a run. */
static void same_bits_across_tiles(void **state) {
    (void)state;
    static const dv_map maps[] = {
        {.images = 2, .channels = 1037, .rank = 2, .sides = {5, 9}},
        {.images = 1, .channels = 513, .rank = 2, .sides = {7, 7}},
        {.images = 1, .channels = 2, .rank = 2, .sides = {17, 1200}},
        {.images = 1, .channels = 3, .rank = 1, .sides = {5000}},
        {.images = 2, .channels = 100, .rank = 2, .sides = {9, 17}},
    };
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++)
        for (size_t codec = 0; codec < CODECS; codec++)
            for (int layout = 0; layout < DV_LAYOUT_COUNT; layout++) {
                dv_map map = maps[i];
                map.layout = (dv_layout)layout;
                map.type = (dv_type)(codec % DV_TYPE_COUNT);
                compare(codecs[codec], &map);
            }
}

/* More blocks than `lean` has room for: it reads them twice. */
static void same_bits_with_many_blocks(void **state) {
    (void)state;
    static const char *const texts[] = {"lean:block=2", "lean:mask=off,levels=15,block=2"};
    dv_map map = {.images = 1, .channels = 70, .rank = 2, .sides = {27, 53}, .layout = DV_NHWC};
    for (size_t codec = 0; codec < 2; codec++)
        for (int type = 0; type < DV_TYPE_COUNT; type++) {
            map.type = (dv_type)type;
            compare(texts[codec], &map);
        }
}

/* Values that arithmetic treats specially: all equal, subnormal, signed zeros, huge and tiny. */
static void same_bits_on_special_values(void **state) {
    (void)state;
    static const float specials[] = {0.0f, -0.0f, 1e-45f, -1e-40f, 3e33f, -3e33f, 1.0f, 1.0f, 0x1p-126f, 7.0f};
    dv_map map = {.images = 2, .channels = 20, .rank = 2, .sides = {11, 13}};
    size_t bytes, count = dv_map_elements(&map);
    float *src = malloc(count * sizeof *src);
    assert_non_null(src);
    for (size_t codec_index = 0; codec_index < CODECS; codec_index++)
        for (size_t kinds = 1; kinds <= 10; kinds++)
            for (int layout = 0; layout < DV_LAYOUT_COUNT; layout++) {
                dv_codec codec;
                map.layout = (dv_layout)layout;
                for (size_t i = 0; i < count; i++)
                    src[i] = specials[(i * 7 + i / 11) % kinds];
                assert_ok(dv_codec_parse(codecs[codec_index], &codec, &error));
                assert_ok(dv_codec_packed_bytes(&codec, &map, &bytes, &error));
                packing expected = run(codec, &map, src, bytes, DV_ISA_SCALAR, 1);
                for (int isa = 1; isa < DV_ISA_COUNT; isa++) {
                    if (!dv_isa_available((dv_isa)isa))
                        continue;
                    packing got = run(codec, &map, src, bytes, (dv_isa)isa, 2);
                    assert_memory_equal(got.packed, expected.packed, bytes);
                    assert_memory_equal(got.decoded, expected.decoded, dv_map_bytes(&map));
                    drop(got, bytes, &map);
                }
                drop(expected, bytes, &map);
            }
    free(src);
}

/* All 65536 values of both 16-bit types, and their neighbourhoods on the way back. */
static void same_conversions(void **state) {
    (void)state;
    enum { ALL = 65536 };
    uint16_t *halves = malloc(ALL * sizeof *halves);
    float *expected = malloc(ALL * sizeof *expected), *got = malloc(ALL * sizeof *got);
    assert_true(halves && expected && got);
    for (uint32_t i = 0; i < ALL; i++)
        halves[i] = (uint16_t)i;
    for (int isa = 0; isa < DV_ISA_COUNT; isa++)
        for (int type = DV_BF16; dv_isa_available((dv_isa)isa) && type <= DV_F16; type++) {
            dv_isa_force((dv_isa)isa);
            dv_convert_to_f32((dv_type)type, halves, ALL, got);
            for (uint32_t i = 0; i < ALL; i++)
                expected[i] = load_element((dv_type)type, halves, i);
            assert_memory_equal(got, expected, ALL * sizeof *got);
        }
    free(halves);
    free(expected);
    free(got);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits_on_awkward_shapes),
        cmocka_unit_test(same_bits_across_tiles),
        cmocka_unit_test(same_bits_with_many_blocks),
        cmocka_unit_test(same_bits_on_special_values),
        cmocka_unit_test(same_conversions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
