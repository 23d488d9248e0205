/* The codec interface: options from text and back, and wrong calls, none of which may write past a
 * buffer. */
#include "maps.h"

#include <division/tools/option.h>

#include <omp.h>

static const dv_map plain = {.type = DV_F32, .layout = DV_NHWC, .images = 3, .channels = 5, .rank = 2, .sides = {9, 7}};

/* ---- options ------------------------------------------------------------------------------- */

/* Formats, parses again, and compares. */
static void check_round_trip(const dv_codec *codec) {
    char text[200], again[200];
    dv_codec_format(codec, text, sizeof text);
    dv_codec parsed = codec_of(text);
    assert_ptr_equal(parsed.kind, codec->kind);
    assert_memory_equal(parsed.options, codec->options, sizeof codec->options);
    dv_codec_format(&parsed, again, sizeof again);
    assert_string_equal(text, again);
}

/* Every codec, with every value of every option. */
static void every_option_survives_the_way_to_text_and_back(void **state) {
    (void)state;
    size_t formatted = 0;
    for (size_t c = 0; dv_codec_name_at(c); c++) {
        dv_codec codec = codec_of(dv_codec_name_at(c));
        check_round_trip(&codec);
        const dv_option *option;
        for (size_t i = 0; (option = dv_codec_option_at(c, i)); i++)
            for (int32_t value = 0; value <= 100; value++) {
                dv_codec changed = codec;
                changed.options[i] = value;
                if (!dv_option_holds(option, changed.options))
                    continue;
                check_round_trip(&changed);
                formatted++;
            }
    }
    assert_int_equal(formatted, 2 * (63 + 4 + 3 + 2 + 2) + 2 + 8 + 14 + (63 + 4 + 3 + 2 + 101));
}

static void texts_mean_what_they_say(void **state) {
    (void)state;
    static const char *const texts[][2] = {
        {"division", "division:block=8,bits=2,dither=stochastic,lfc=on,hfc=on"},
        {"division:bits=4", "division:block=8,bits=4,dither=stochastic,lfc=on,hfc=on"},
        {"division:dither=subtractive,block=64", "division:block=64,bits=2,dither=subtractive,lfc=on,hfc=on"},
        {"division:block=2,block=3", "division:block=3,bits=2,dither=stochastic,lfc=on,hfc=on"},
        {"division:bits=008", "division:block=8,bits=8,dither=stochastic,lfc=on,hfc=on"},
        {"exact", "exact"},
        {"bits", "bits"},
        {"lean", "lean:block=8,levels=3,dither=subtractive,mask=on,sample=128"},
        {"lean:levels=255,mask=off", "lean:block=8,levels=255,dither=subtractive,mask=off,sample=128"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char text[100];
        dv_codec codec = codec_of(texts[i][0]);
        assert_int_equal(dv_codec_format(&codec, text, sizeof text), strlen(texts[i][1]));
        assert_string_equal(text, texts[i][1]);
        assert_int_equal(codec.threads, 0);
    }
}

static void wrong_texts_are_explained(void **state) {
    (void)state;
    static const char *const texts[][2] = {
        {"", "unknown codec \"\": there are division, exact, bits"},
        {"divisio", "unknown codec \"divisio\""},
        {"division2", "unknown codec \"division2\""},
        {" division", "unknown codec \" division\""},
        {"Division", "unknown codec \"Division\""},
        {":bits=2", "unknown codec \"\""},
        {"division:", "division: no option after a colon or comma"},
        {"division:,bits=2", "division: no option after a colon or comma"},
        {"division:bits=2,", "division: no option after a colon or comma"},
        {"division:bits=2,,block=8", "division: no option after a colon or comma"},
        {"division:=2", "division: no option after a colon or comma"},
        {"division:bit=2", "division: unknown option \"bit\": there are block, bits, dither, lfc, hfc"},
        {"division:bits =2", "division: unknown option \"bits \""},
        {"exact:bits=2", "exact: unknown option \"bits\": it takes none"},
        {"bits:x", "bits: unknown option \"x\": it takes none"},
        {"division:bits", "division: bits=: must be 1, 2, 4 or 8"},
        {"division:bits=", "division: bits=: must be 1, 2, 4 or 8"},
        {"division:bits=0", "division: bits=0: must be 1, 2, 4 or 8"},
        {"division:bits=3", "division: bits=3: must be 1, 2, 4 or 8"},
        {"division:bits=16", "division: bits=16: must be 1, 2, 4 or 8"},
        {"division:bits=-2", "division: bits=-2: must be"},
        {"division:bits=+2", "division: bits=+2: must be"},
        {"division:bits=2.0", "division: bits=2.0: must be"},
        {"division:bits=2 ", "division: bits=2 : must be"},
        {"division:bits=two", "division: bits=two: must be"},
        {"division:bits=2=2", "division: bits=2=2: must be"},
        {"division:block=1", "division: block=1: must be a whole number from 2 to 64"},
        {"division:block=65", "division: block=65: must be a whole number from 2 to 64"},
        {"division:block=4294967304", "division: block=4294967304: must be a whole number from 2 to 64"},
        {"division:block=999999999", "division: block=999999999: must be a whole number from 2 to 64"},
        {"division:dither=off", "division: dither=off: must be stochastic, subtractive or none"},
        {"division:dither=1", "division: dither=1: must be stochastic, subtractive or none"},
        {"division:lfc=no", "division: lfc=no: must be off or on"},
        {"division:hfc", "division: hfc=: must be off or on"},
        {"division:lfc=off,hfc=off", "division: lfc=off and hfc=off leave nothing of a map: give one of them"},
        {"rectified:hfc=off,lfc=off", "rectified: lfc=off and hfc=off leave nothing of a map: give one of them"},
        {"lean:levels=4", "lean: levels=4: must be 3, 7, 15 or 255"},
        {"lean:mask=inside", "lean: mask=inside: must be off or on"},
        {"division:dither=Stochastic", "division: dither=Stochastic: must be"},
        {"division:bits=2:block=8", "division: bits=2:block=8: must be"},
        {"division:bits=2;block=8", "division: bits=2;block=8: must be"},
        {"division:block=8888888888888888888888888888888888888888888888888888888888",
         "block=8888888888888888888888888888888888888888: must be a whole number from 2 to 64"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        dv_codec codec, before;
        memset(&codec, 0x5a, sizeof codec);
        before = codec;
        assert_fails(dv_codec_parse(texts[i][0], &codec, &error), DV_ERROR_OPTION, texts[i][1]);
        assert_memory_equal(&codec, &before, sizeof codec);
        assert_int_equal(dv_codec_parse(texts[i][0], &codec, NULL), DV_ERROR_OPTION);
    }
    dv_codec codec;
    assert_fails(dv_codec_parse(NULL, &codec, &error), DV_ERROR_ARGUMENT, "NULL");
    assert_fails(dv_codec_parse("bits", NULL, &error), DV_ERROR_ARGUMENT, "NULL");
}

static void bounds_can_be_asked_for(void **state) {
    (void)state;
    static const char *const names[] = {"division", "exact", "bits",      "bf16", "blpa",
                                        "actnn",    "acgc",  "rectified", "lean"};
    enum { NAMES = sizeof names / sizeof *names };
    static const struct {
        const char *name;
        int32_t minimum, maximum;
        const char *preset;
    } options[] = {{"block", 2, 64, "8"},
                   {"bits", 1, 8, "2"},
                   {"dither", 0, 0, "stochastic"},
                   {"lfc", 0, 0, "on"},
                   {"hfc", 0, 0, "on"}};
    for (size_t i = 0; i < NAMES; i++) {
        assert_string_equal(dv_codec_name_at(i), names[i]);
        assert_true(strlen(dv_codec_help_at(i)) > 10);
    }
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        const dv_option *option = dv_codec_option_at(0, i);
        assert_string_equal(option->name, options[i].name);
        assert_true(strlen(option->help) > 10);
        assert_true(option->minimum == options[i].minimum);
        assert_true(option->maximum == options[i].maximum);
        assert_string_equal(option->preset, options[i].preset);
    }
    assert_string_equal(dv_codec_option_at(0, 2)->words[1], "subtractive");
    assert_null(dv_codec_name_at(NAMES));
    assert_null(dv_codec_name_at(SIZE_MAX));
    assert_null(dv_codec_help_at(NAMES));
    assert_null(dv_codec_option_at(0, 5));
    assert_null(dv_codec_option_at(1, 0));
    assert_null(dv_codec_option_at(NAMES, 0));
    assert_null(dv_codec_option_at(SIZE_MAX, SIZE_MAX));
}

/* Whatever room there is: cut, terminated, and the whole length told. */
static void formatting_stays_in_its_buffer(void **state) {
    (void)state;
    dv_codec codec = codec_of("division:dither=subtractive");
    const char *whole = "division:block=8,bits=2,dither=subtractive,lfc=on,hfc=on";
    size_t length = strlen(whole);
    assert_int_equal(dv_codec_format(&codec, NULL, 0), length);
    for (size_t room = 1; room < 80; room++) {
        char *text = guarded_new(room);
        assert_int_equal(dv_codec_format(&codec, text, room), length);
        size_t kept = room - 1 < length ? room - 1 : length;
        assert_int_equal(strlen(text), kept);
        assert_memory_equal(text, whole, kept);
        guarded_free(text, room);
    }
}

static void formatting_what_is_no_codec_is_harmless(void **state) {
    (void)state;
    char text[100] = "untouched";
    int32_t other = 0;
    dv_codec codec = {0};
    assert_int_equal(dv_codec_format(NULL, text, sizeof text), 0);
    assert_string_equal(text, "");
    assert_int_equal(dv_codec_format(&codec, text, sizeof text), 0);
    codec.kind = (const struct dv_codec_kind *)(const void *)&other;
    assert_int_equal(dv_codec_format(&codec, text, sizeof text), 0);
    codec = codec_of("division");
    codec.options[2] = 99; /* a word that there is not */
    dv_codec_format(&codec, text, sizeof text);
    assert_string_equal(text, "division:block=8,bits=2,dither=99,lfc=on,hfc=on");
}

/* ---- wrong calls --------------------------------------------------------------------------- */

/* A map with buffers, to call encode and decode with one thing wrong. */
typedef struct scene {
    dv_codec codec;
    dv_map map;
    size_t bytes;
    char *src, *packed, *dst;
    size_t first, count, given; /* given: packed bytes that the call says there are */
} scene;

enum { SLACK = 64 }; /* so that buffers can be shifted */

static scene scene_new(const char *text, const dv_map *map) {
    scene s = {.codec = codec_of(text), .map = *map, .count = map->images};
    s.given = s.bytes = packed_bytes_of(&s.codec, map);
    void *values = map_values(map, 77);
    s.src = guarded_new(dv_map_bytes(map) + SLACK);
    s.dst = guarded_new(dv_map_bytes(map) + SLACK);
    s.packed = guarded_new(s.bytes + SLACK);
    memcpy(s.src, values, dv_map_bytes(map));
    free(values);
    return s;
}

/* Checks that nothing was written to the packed and decoded buffers, and frees them. */
static void scene_free_untouched(scene *s) {
    for (size_t i = 0; i < s->bytes + SLACK; i++)
        assert_int_equal((unsigned char)s->packed[i], GUARD_VALUE);
    for (size_t i = 0; i < dv_map_bytes(&plain) + SLACK; i++)
        assert_int_equal((unsigned char)s->dst[i], GUARD_VALUE);
    guarded_free(s->src, dv_map_bytes(&plain) + SLACK);
    guarded_free(s->dst, dv_map_bytes(&plain) + SLACK);
    guarded_free(s->packed, s->bytes + SLACK);
}

/* Both directions fail in the same way. */
#define assert_call_fails(s, source, pack, destination, status, words)                                                 \
    do {                                                                                                               \
        assert_fails(                                                                                                  \
            dv_codec_encode_images(&(s).codec, &(s).map, NULL, (s).first, (s).count, source, pack, (s).given, &error), \
            status, words);                                                                                            \
        assert_fails(dv_codec_decode_images(&(s).codec, &(s).map, NULL, (s).first, (s).count, pack, (s).given,         \
                                            destination, &error),                                                      \
                     status, words);                                                                                   \
    } while (0)

static const char *const texts[] = {"division", "exact", "bits", "bf16", "blpa", "actnn", "acgc", "rectified", "lean"};
enum { TEXTS = sizeof texts / sizeof *texts };

static void null_pointers_are_refused(void **state) {
    (void)state;
    for (int t = 0; t < TEXTS; t++) {
        scene s = scene_new(texts[t], &plain);
        size_t bytes = 1;
        assert_call_fails(s, NULL, s.packed, NULL, DV_ERROR_ARGUMENT, "the map's buffer is NULL");
        assert_call_fails(s, s.src, NULL, s.dst, DV_ERROR_ARGUMENT, "packed is NULL");
        assert_fails(dv_codec_encode(NULL, &plain, NULL, s.src, s.packed, s.bytes, &error), DV_ERROR_ARGUMENT,
                     "codec is NULL");
        assert_fails(dv_codec_decode(NULL, &plain, NULL, s.packed, s.bytes, s.dst, &error), DV_ERROR_ARGUMENT,
                     "codec is NULL");
        assert_fails(dv_codec_encode(&s.codec, NULL, NULL, s.src, s.packed, s.bytes, &error), DV_ERROR_ARGUMENT,
                     "map is NULL");
        assert_fails(dv_codec_decode(&s.codec, NULL, NULL, s.packed, s.bytes, s.dst, &error), DV_ERROR_ARGUMENT,
                     "map is NULL");
        assert_fails(dv_codec_packed_bytes(NULL, &plain, &bytes, &error), DV_ERROR_ARGUMENT, "codec is NULL");
        assert_fails(dv_codec_packed_bytes(&s.codec, NULL, &bytes, &error), DV_ERROR_ARGUMENT, "map is NULL");
        assert_fails(dv_codec_packed_bytes(&s.codec, &plain, NULL, &error), DV_ERROR_ARGUMENT, "bytes is NULL");
        assert_int_equal(bytes, 1);
        assert_int_equal(dv_codec_encode(&s.codec, &plain, NULL, NULL, s.packed, s.bytes, NULL), DV_ERROR_ARGUMENT);
        scene_free_untouched(&s);
    }
}

static void short_buffers_are_refused(void **state) {
    (void)state;
    for (int t = 0; t < TEXTS; t++) {
        scene s = scene_new(texts[t], &plain);
        const size_t short_ones[] = {0, 1, s.bytes / 2, s.bytes - 64, s.bytes - 1};
        for (size_t i = 0; i < 5; i++) {
            char words[80];
            s.given = short_ones[i];
            snprintf(words, sizeof words, "packed has %zu bytes: %zu are needed", s.given, s.bytes);
            assert_call_fails(s, s.src, s.packed, s.dst, DV_ERROR_BUFFER, words);
        }
        scene_free_untouched(&s);
    }
}

static void misaligned_buffers_are_refused(void **state) {
    (void)state;
    for (int t = 0; t < TEXTS; t++) {
        scene s = scene_new(texts[t], &plain);
        for (size_t shift = 1; shift < SLACK; shift++) {
            assert_call_fails(s, s.src, s.packed + shift, s.dst, DV_ERROR_BUFFER, "packed must be aligned to 64 bytes");
            if (shift % 4)
                assert_call_fails(s, s.src + shift, s.packed, s.dst + shift, DV_ERROR_BUFFER,
                                  "not aligned to its f32 elements");
        }
        s.map.type = DV_BF16;
        assert_call_fails(s, s.src + 1, s.packed, s.dst + 1, DV_ERROR_BUFFER, "not aligned to its bf16 elements");
        scene_free_untouched(&s);
    }
}

/* Elements need no more than their own alignment. */
static void elements_may_lie_anywhere(void **state) {
    (void)state;
    for (int t = 0; t < TEXTS; t++) {
        scene s = scene_new(texts[t], &plain);
        assert_ok(dv_codec_encode(&s.codec, &plain, NULL, s.src, s.packed, s.bytes, &error));
        assert_ok(dv_codec_decode(&s.codec, &plain, NULL, s.packed, s.bytes, s.dst, &error));
        char *again = guarded_new(s.bytes), *dst = guarded_new(dv_map_bytes(&plain) + SLACK);
        for (size_t shift = 4; shift < SLACK; shift += 4) {
            memmove(s.src + shift, s.src + shift - 4, dv_map_bytes(&plain));
            assert_ok(dv_codec_encode(&s.codec, &plain, NULL, s.src + shift, again, s.bytes, &error));
            assert_memory_equal(again, s.packed, s.bytes);
            assert_ok(dv_codec_decode(&s.codec, &plain, NULL, again, s.bytes, dst + shift, &error));
            assert_memory_equal(dst + shift, s.dst, dv_map_bytes(&plain));
        }
        guarded_free(again, s.bytes);
        guarded_free(dst, dv_map_bytes(&plain) + SLACK);
        guarded_free(s.src, dv_map_bytes(&plain) + SLACK);
        guarded_free(s.dst, dv_map_bytes(&plain) + SLACK);
        guarded_free(s.packed, s.bytes + SLACK);
    }
}

static void bad_ranges_are_refused(void **state) {
    (void)state;
    static const size_t ranges[][2] = {{0, 4}, {1, 3}, {3, 1}, {4, 0}, {SIZE_MAX, 2}, {1, SIZE_MAX}, {2, SIZE_MAX - 1}};
    for (int t = 0; t < TEXTS; t++) {
        scene s = scene_new(texts[t], &plain);
        for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
            s.first = ranges[i][0];
            s.count = ranges[i][1];
            assert_call_fails(s, s.src, s.packed, s.dst, DV_ERROR_ARGUMENT, "the map has 3");
        }
        s.first = 3; /* nothing at the end is nothing, but no mistake */
        s.count = 0;
        assert_ok(dv_codec_encode_images(&s.codec, &s.map, NULL, 3, 0, s.src, s.packed, s.bytes, &error));
        assert_ok(dv_codec_decode_images(&s.codec, &s.map, NULL, 3, 0, s.packed, s.bytes, s.dst, &error));
        scene_free_untouched(&s);
    }
}

static void wrong_maps_are_refused(void **state) {
    (void)state;
    for (int t = 0; t < TEXTS; t++) {
        scene s = scene_new(texts[t], &plain);
        s.map.rank = 4;
        assert_call_fails(s, s.src, s.packed, s.dst, DV_ERROR_UNSUPPORTED, "4 spatial dimensions");
        s.map = plain;
        s.map.sides[1] = 0;
        assert_call_fails(s, s.src, s.packed, s.dst, DV_ERROR_UNSUPPORTED, "at least 1");
        s.map = plain;
        s.map.type = (dv_type)9;
        assert_call_fails(s, s.src, s.packed, s.dst, DV_ERROR_ARGUMENT, "unknown element type 9");
        scene_free_untouched(&s);
    }
    /* The map is small enough, but its padded records are not. */
    dv_codec bits = codec_of("bits");
    dv_map many = {.images = SIZE_MAX / 16, .channels = 1};
    size_t bytes;
    assert_fails(dv_codec_packed_bytes(&bits, &many, &bytes, &error), DV_ERROR_UNSUPPORTED, "do not fit in memory");
}

static void codecs_changed_by_hand_are_refused(void **state) {
    (void)state;
    static const struct {
        int option;
        int32_t value;
        const char *words;
    } changes[] = {{0, 0, "block=0"},  {0, 65, "block=65"}, {0, -8, "block=-8"}, {1, 0, "bits=0"},    {1, 3, "bits=3"},
                   {1, 16, "bits=16"}, {1, -2, "bits=-2"},  {2, 3, "dither=3"},  {2, -1, "dither=-1"}};
    scene s = scene_new("division", &plain);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        s.codec = codec_of("division");
        s.codec.options[changes[i].option] = changes[i].value;
        assert_call_fails(s, s.src, s.packed, s.dst, DV_ERROR_OPTION, changes[i].words);
    }
    static const int threads[] = {-1, INT32_MIN, DV_MAX_THREADS + 1, INT32_MAX};
    for (size_t i = 0; i < 4; i++) {
        s.codec = codec_of("division");
        s.codec.threads = threads[i];
        assert_call_fails(s, s.src, s.packed, s.dst, DV_ERROR_OPTION, "must be 0 to 1024");
    }
    memset(&s.codec, 0, sizeof s.codec);
    assert_call_fails(s, s.src, s.packed, s.dst, DV_ERROR_ARGUMENT, "not made by dv_codec_parse");
    memset(&s.codec, 0x5a, sizeof s.codec);
    assert_call_fails(s, s.src, s.packed, s.dst, DV_ERROR_ARGUMENT, "not made by dv_codec_parse");
    scene_free_untouched(&s);
}

/* ---- what calls promise -------------------------------------------------------------------- */

/* Packed bytes come from the input and the noise alone: what was in the buffer before does not show, not
 * even in the padding. */
static void all_packed_bytes_are_written(void **state) {
    (void)state;
    static const dv_map maps[] = {
        {.layout = DV_NHWC, .images = 3, .channels = 5, .rank = 2, .sides = {9, 7}},
        {.layout = DV_NCHW, .images = 2, .channels = 600, .rank = 1, .sides = {3}},
        {.layout = DV_NHWC, .images = 2, .channels = 600, .rank = 1, .sides = {3}},
        {.layout = DV_NCHW, .images = 5, .channels = 3},
    };
    static const char *const all[] = {"division",
                                      "division:bits=1",
                                      "division:bits=8",
                                      "exact",
                                      "bits",
                                      "bf16",
                                      "blpa",
                                      "actnn",
                                      "actnn:bits=7",
                                      "acgc",
                                      "acgc:bits=13",
                                      "rectified",
                                      "rectified:bits=1",
                                      "lean",
                                      "lean:levels=7,mask=off"};
    enum { ALL = sizeof all / sizeof *all };
    for (size_t m = 0; m < 4; m++)
        for (size_t t = 0; t < ALL; t++) {
            dv_codec codec = codec_of(all[t]);
            size_t bytes = packed_bytes_of(&codec, &maps[m]);
            void *src = map_values(&maps[m], 1);
            char *one = guarded_new(bytes), *other = guarded_new(bytes);
            memset(one, 0, bytes);
            memset(other, 0xff, bytes);
            assert_ok(dv_codec_encode(&codec, &maps[m], NULL, src, one, bytes, &error));
            assert_ok(dv_codec_encode(&codec, &maps[m], NULL, src, other, bytes, &error));
            if (memcmp(one, other, bytes) != 0)
                fail_msg("%s, %s: some bytes are not written", all[t], map_text(&maps[m]));
            guarded_free(one, bytes);
            guarded_free(other, bytes);
            free(src);
        }
}

/* Packing some images leaves the records of the others alone. */
static void ranges_touch_their_records_only(void **state) {
    (void)state;
    for (int t = 0; t < TEXTS; t++) {
        scene s = scene_new(texts[t], &plain);
        size_t record = s.bytes / 3;
        assert_ok(dv_codec_encode_images(&s.codec, &plain, NULL, 1, 1, s.src, s.packed, s.bytes, &error));
        for (size_t i = 0; i < record; i++) {
            assert_int_equal((unsigned char)s.packed[i], GUARD_VALUE);
            assert_int_equal((unsigned char)s.packed[2 * record + i], GUARD_VALUE);
        }
        assert_ok(dv_codec_decode_images(&s.codec, &plain, NULL, 1, 1, s.packed, s.bytes, s.dst, &error));
        for (size_t i = dv_map_bytes(&plain) / 3; i < dv_map_bytes(&plain); i++)
            assert_int_equal((unsigned char)s.dst[i], GUARD_VALUE);
        memset(s.packed, GUARD_VALUE, s.bytes);
        memset(s.dst, GUARD_VALUE, dv_map_bytes(&plain));
        scene_free_untouched(&s);
    }
}

/* No noise is the noise of zeros. */
static void noise_may_be_left_out(void **state) {
    (void)state;
    scene s = scene_new("division", &plain);
    dv_noise zeros = {0};
    char *again = guarded_new(s.bytes);
    assert_ok(dv_codec_encode(&s.codec, &plain, NULL, s.src, s.packed, s.bytes, &error));
    assert_ok(dv_codec_encode(&s.codec, &plain, &zeros, s.src, again, s.bytes, &error));
    assert_memory_equal(again, s.packed, s.bytes);
    guarded_free(again, s.bytes);
    memset(s.packed, GUARD_VALUE, s.bytes);
    scene_free_untouched(&s);
}

/* The field `threads` changes nothing but the time; more threads than images or cores are no mistake. */
static void threads_change_nothing(void **state) {
    (void)state;
    static const int threads[] = {0, 1, 2, 3, 7, 40};
    for (int t = 0; t < TEXTS; t++) {
        scene s = scene_new(texts[t], &plain);
        char *again = guarded_new(s.bytes), *dst = guarded_new(dv_map_bytes(&plain));
        for (int i = 0; i < 6; i++) {
            char *packed = i ? again : s.packed, *decoded = i ? dst : s.dst;
            s.codec.threads = threads[i];
            assert_ok(dv_codec_encode(&s.codec, &plain, NULL, s.src, packed, s.bytes, &error));
            assert_ok(dv_codec_decode(&s.codec, &plain, NULL, packed, s.bytes, decoded, &error));
            assert_memory_equal(packed, s.packed, s.bytes);
            assert_memory_equal(decoded, s.dst, dv_map_bytes(&plain));
        }
        guarded_free(again, s.bytes);
        guarded_free(dst, dv_map_bytes(&plain));
        memset(s.packed, GUARD_VALUE, s.bytes);
        memset(s.dst, GUARD_VALUE, dv_map_bytes(&plain));
        scene_free_untouched(&s);
    }
}

/* A large map that is decoded as a whole goes past the caches; its slices do not. */
static void whole_maps_decode_as_slices_do(void **state) {
    (void)state;
    static const size_t channels[] = {64, 48, 20, 7}; /* of whole lines, and of none */
    for (int type = 0; type < DV_TYPE_COUNT; type++)
        for (int c = 0; c < 4; c++) {
            dv_map map = {.type = (dv_type)type, .layout = DV_NHWC, .images = 2, .channels = channels[c], .rank = 2};
            map.sides[0] = map.sides[1] = (c + 1) * 56;
            scene s = scene_new("division", &map);
            char *slices = guarded_new(dv_map_bytes(&map));
            s.codec.threads = 1;
            assert_ok(dv_codec_encode(&s.codec, &map, NULL, s.src, s.packed, s.bytes, &error));
            assert_ok(dv_codec_decode(&s.codec, &map, NULL, s.packed, s.bytes, s.dst, &error));
            for (size_t i = 0; i < map.images; i++)
                assert_ok(dv_codec_decode_images(&s.codec, &map, NULL, i, 1, s.packed, s.bytes,
                                                 slices + i * (dv_map_bytes(&map) / 2), &error));
            assert_memory_equal(slices, s.dst, dv_map_bytes(&map));
            guarded_free(slices, dv_map_bytes(&map));
            guarded_free(s.src, dv_map_bytes(&map) + SLACK);
            guarded_free(s.dst, dv_map_bytes(&map) + SLACK);
            guarded_free(s.packed, s.bytes + SLACK);
        }
}

/* Calls from several threads at once, each with its own buffers. cmocka's checks belong to the main thread,
 * so the others only count what differs. */
static void calls_from_many_threads_agree(void **state) {
    (void)state;
    for (int t = 0; t < TEXTS; t++) {
        scene s = scene_new(texts[t], &plain);
        assert_ok(dv_codec_encode(&s.codec, &plain, NULL, s.src, s.packed, s.bytes, &error));
        assert_ok(dv_codec_decode(&s.codec, &plain, NULL, s.packed, s.bytes, s.dst, &error));
        int different = 0, failed = 0;
#pragma omp parallel for num_threads(4) reduction(+ : different, failed)
        for (int i = 0; i < 64; i++) {
            void *packed = aligned_alloc(64, s.bytes), *dst = malloc(dv_map_bytes(&plain));
            dv_codec mine;
            dv_error error;
            failed += dv_codec_parse(texts[t], &mine, &error) != DV_OK;
            mine.threads = i % 3;
            failed += dv_codec_encode(&mine, &plain, NULL, s.src, packed, s.bytes, &error) != DV_OK;
            failed += dv_codec_decode(&mine, &plain, NULL, packed, s.bytes, dst, &error) != DV_OK;
            different += memcmp(packed, s.packed, s.bytes) != 0 || memcmp(dst, s.dst, dv_map_bytes(&plain)) != 0;
            free(packed);
            free(dst);
        }
        assert_int_equal(failed, 0);
        assert_int_equal(different, 0);
        memset(s.packed, GUARD_VALUE, s.bytes);
        memset(s.dst, GUARD_VALUE, dv_map_bytes(&plain));
        scene_free_untouched(&s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_option_survives_the_way_to_text_and_back),
        cmocka_unit_test(texts_mean_what_they_say),
        cmocka_unit_test(wrong_texts_are_explained),
        cmocka_unit_test(bounds_can_be_asked_for),
        cmocka_unit_test(formatting_stays_in_its_buffer),
        cmocka_unit_test(formatting_what_is_no_codec_is_harmless),
        cmocka_unit_test(null_pointers_are_refused),
        cmocka_unit_test(short_buffers_are_refused),
        cmocka_unit_test(misaligned_buffers_are_refused),
        cmocka_unit_test(elements_may_lie_anywhere),
        cmocka_unit_test(bad_ranges_are_refused),
        cmocka_unit_test(wrong_maps_are_refused),
        cmocka_unit_test(codecs_changed_by_hand_are_refused),
        cmocka_unit_test(all_packed_bytes_are_written),
        cmocka_unit_test(ranges_touch_their_records_only),
        cmocka_unit_test(noise_may_be_left_out),
        cmocka_unit_test(threads_change_nothing),
        cmocka_unit_test(whole_maps_decode_as_slices_do),
        cmocka_unit_test(calls_from_many_threads_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
