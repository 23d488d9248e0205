/* Fuzzes the codecs: options from text, descriptions of maps, packing of any elements and unpacking of any
 * bytes. Whatever is accepted must stay in its buffers, and come out of the fast kernels as it comes out of
 * the scalar ones, to the last byte.
 *
 * An input is a line of text for dv_codec_parse, then a `shape`, then bytes that are repeated to fill a
 * map; fuzz/codec.dict has the words of the text. */
#include "base/cpu.h"
#include "codec/lean.h"
#include "require.h"

#include <division/codec.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_ELEMENTS = 1 << 11, TEXT_BYTES = 100 };

/* What is left of the input. */
typedef struct input {
    const uint8_t *at;
    size_t left;
} input;

/* The next bytes of the input; zeros where it has ended. */
static void take(input *in, void *bytes, size_t count) {
    size_t now = count < in->left ? count : in->left;
    memset(bytes, 0, count);
    memcpy(bytes, in->at, now);
    in->at += now;
    in->left -= now;
}

/* The next bytes again and again, from the start of the rest; zeros if there is none. */
static void fill(const input *in, uint8_t *bytes, size_t count) {
    for (size_t i = 0; i < count; i++)
        bytes[i] = in->left ? in->at[i % in->left] : 0;
}

/* ---- text ---------------------------------------------------------------------------------- */

static void require_one_line(const dv_error *error, dv_status status) {
    REQUIRE(error->status == status);
    REQUIRE(error->text[0] && memchr(error->text, 0, sizeof error->text) && !strchr(error->text, '\n'));
}

/* Parses the input's first line. What is accepted must survive formatting. False if it is not. */
static int parse_line(input *in, dv_codec *codec) {
    char line[TEXT_BYTES + 1] = "", text[TEXT_BYTES], again[TEXT_BYTES];
    const uint8_t *end = in->left ? memchr(in->at, '\n', in->left) : NULL;
    size_t length = end ? (size_t)(end - in->at) : in->left;
    dv_error error = {0};
    memcpy(line, in->at, length < TEXT_BYTES ? length : TEXT_BYTES);
    length += end ? 1 : 0;
    in->at += length;
    in->left -= length;
    dv_status status = dv_codec_parse(line, codec, &error);
    if (status != DV_OK) {
        require_one_line(&error, status);
        return 0;
    }
    dv_codec back;
    REQUIRE(dv_codec_format(codec, text, sizeof text) < sizeof text);
    REQUIRE(dv_codec_parse(text, &back, NULL) == DV_OK);
    REQUIRE(back.kind == codec->kind && memcmp(back.options, codec->options, sizeof back.options) == 0);
    dv_codec_format(&back, again, sizeof again);
    REQUIRE(strcmp(text, again) == 0);
    return 1;
}

/* ---- shapes -------------------------------------------------------------------------------- */

typedef struct shape {
    uint8_t type, layout, rank, images, sides[3], threads, first, count, codec, wild;
    uint16_t channels;
    uint64_t seed, large;
} shape;

/* A map that is small enough to be packed in no time. */
static dv_map small_map(const shape *s) {
    dv_map map = {.type = (dv_type)(s->type % DV_TYPE_COUNT), .layout = (dv_layout)(s->layout % DV_LAYOUT_COUNT)};
    size_t room = MAX_ELEMENTS;
    map.rank = s->rank % (DV_MAX_RANK + 1);
    map.images = 1 + s->images % 3;
    room /= map.images;
    map.channels = 1 + s->channels % (s->codec & 64 ? 1100 : 40);
    room = map.channels < room ? room / map.channels : 1;
    for (int d = 0; d < map.rank; d++) {
        map.sides[d] = 1 + s->sides[d] * (s->codec & 128 ? 5 : 1) % room;
        room /= map.sides[d];
    }
    return map;
}

/* Any map at all: only checked and measured, never packed. */
static void measure_wild_map(const dv_codec *codec, const shape *s) {
    const size_t sizes[] = {s->large, s->large >> 32, s->seed, s->seed >> 32};
    dv_map map = {.type = (dv_type)s->type, .layout = (dv_layout)s->layout, .rank = (int8_t)s->rank};
    map.images = sizes[s->images % 4];
    map.channels = s->wild & 1 ? s->channels : sizes[s->channels % 4];
    for (int d = 0; d < DV_MAX_RANK; d++)
        map.sides[d] = s->wild & 2 ? s->sides[d] : sizes[s->sides[d] % 4];
    dv_error error = {0};
    size_t bytes = 0;
    dv_status status = dv_codec_packed_bytes(codec, &map, &bytes, &error);
    if (status != DV_OK)
        require_one_line(&error, status);
    else
        REQUIRE(bytes >= map.images * DV_PACKED_ALIGNMENT && bytes / map.images % DV_PACKED_ALIGNMENT == 0);
}

/* ---- packing ------------------------------------------------------------------------------- */

/* One map with a codec, and all buffers at their exact size, so that the sanitizer guards their ends. */
typedef struct trial {
    dv_codec codec;
    dv_map map;
    dv_noise noise;
    dv_isa fast;
    size_t bytes, packed_bytes;
    uint8_t *src, *packed[2], *dst[2]; /* by the scalar and by the fast kernels */
} trial;

static uint8_t *allocate(size_t bytes, size_t alignment) {
    void *memory = NULL;
    REQUIRE(posix_memalign(&memory, alignment, bytes) == 0);
    return memory;
}

static trial trial_new(const dv_codec *codec, const shape *s) {
    trial t = {.codec = *codec, .map = small_map(s), .noise = {s->seed, s->wild, s->first}};
    t.codec.threads = s->threads % 16 ? 1 : 3;
    t.fast = DV_ISA_SCALAR;
    for (int isa = 0; isa < DV_ISA_COUNT; isa++)
        if (dv_isa_available((dv_isa)isa) && (t.fast == DV_ISA_SCALAR || !(s->threads >> 4 & 1)))
            t.fast = (dv_isa)isa;
    REQUIRE(dv_codec_packed_bytes(&t.codec, &t.map, &t.packed_bytes, NULL) == DV_OK);
    t.bytes = dv_map_bytes(&t.map);
    t.src = allocate(t.bytes, 16);
    for (int i = 0; i < 2; i++) {
        t.packed[i] = allocate(t.packed_bytes, DV_PACKED_ALIGNMENT);
        t.dst[i] = allocate(t.bytes, 16);
        memset(t.packed[i], i ? 0xff : 0, t.packed_bytes);
    }
    return t;
}

static void trial_free(trial *t) {
    for (int i = 0; i < 2; i++) {
        free(t->packed[i]);
        free(t->dst[i]);
    }
    free(t->src);
}

static float element(const trial *t, const uint8_t *elements, size_t index) {
    float value;
    dv_convert_to_f32(t->map.type, elements + index * dv_type_bytes(t->map.type), 1, &value);
    return value;
}

static int all_finite(const trial *t, const uint8_t *elements) {
    for (size_t i = 0; i < dv_map_elements(&t->map); i++)
        if (!isfinite(element(t, elements, i)))
            return 0;
    return 1;
}

/* What each codec promises of its elements. */
static void require_promises(const trial *t) {
    char name[TEXT_BYTES];
    dv_codec_format(&t->codec, name, sizeof name);
    if (strcmp(name, "exact") == 0)
        REQUIRE(memcmp(t->src, t->dst[0], t->bytes) == 0);
    else
        REQUIRE(all_finite(t, t->src) && all_finite(t, t->dst[0]));
    for (size_t i = 0; strcmp(name, "bits") == 0 && i < dv_map_elements(&t->map); i++)
        REQUIRE(element(t, t->dst[0], i) == (float)(element(t, t->src, i) > 0));
}

/* Both fail, or neither does. */
static dv_status decode_both(trial *t) {
    dv_status status[2];
    for (int i = 0; i < 2; i++) {
        dv_isa_force(i ? t->fast : DV_ISA_SCALAR);
        status[i] = dv_codec_decode(&t->codec, &t->map, &t->noise, t->packed[i], t->packed_bytes, t->dst[i], NULL);
    }
    REQUIRE(status[0] == status[1]);
    return status[0];
}

/* Some of the images decode to what they are among the others. */
static void decode_range(trial *t, const shape *s) {
    size_t first = s->first % (t->map.images + 1), count = s->count % (t->map.images - first + 1);
    size_t image = t->bytes / t->map.images;
    uint8_t *part = allocate(count * image, 16);
    REQUIRE(dv_codec_decode_images(&t->codec, &t->map, &t->noise, first, count, t->packed[0], t->packed_bytes, part,
                                   NULL) == DV_OK);
    REQUIRE(memcmp(part, t->dst[0] + first * image, count * image) == 0);
    free(part);
}

/* Equal, or both NaN, which has many forms. */
static void require_alike(const trial *t) {
    for (size_t i = 0; i < dv_map_elements(&t->map); i++) {
        float slow = element(t, t->dst[0], i), fast = element(t, t->dst[1], i);
        REQUIRE(slow == fast || (isnan(slow) && isnan(fast)));
    }
}

/* What a norm makes of it, in place of what it adds. */
static void normalize_both(trial *t, const shape *s) {
    if (!dv_lean_can_normalize(&t->codec, &t->map))
        return;
    float *by = malloc(3 * t->map.channels * sizeof *by);
    for (size_t i = 0; by && i < 3 * t->map.channels; i++)
        by[i] = (float)(int)((s->seed >> i % 57 & 127) - 64) / 16;
    for (int i = 0; by && i < 2; i++) {
        const dv_lean_norm norm = {by, by + t->map.channels, by + 2 * t->map.channels, s->wild & 1 ? t->dst[i] : NULL};
        memcpy(t->dst[i], t->src, t->bytes);
        dv_isa_force(i ? t->fast : DV_ISA_SCALAR);
        REQUIRE(dv_lean_decode_normalized(&t->codec, &t->map, &t->noise, 0, t->map.images, t->packed[i],
                                          t->packed_bytes, &norm, t->dst[i], NULL) == DV_OK);
    }
    if (by)
        require_alike(t);
    free(by);
}

static void pack_and_unpack(trial *t, const input *in, const shape *s) {
    dv_status status[2];
    dv_error error[2] = {{0}};
    fill(in, t->src, t->bytes);
    for (int i = 0; i < 2; i++) {
        dv_isa_force(i ? t->fast : DV_ISA_SCALAR);
        status[i] = dv_codec_encode(&t->codec, &t->map, &t->noise, t->src, t->packed[i], t->packed_bytes, &error[i]);
    }
    REQUIRE(status[0] == status[1] && strcmp(error[0].text, error[1].text) == 0);
    REQUIRE(status[0] == DV_OK || status[0] == DV_ERROR_NONFINITE);
    if (status[0] != DV_OK)
        return;
    REQUIRE(memcmp(t->packed[0], t->packed[1], t->packed_bytes) == 0);
    REQUIRE(decode_both(t) == DV_OK);
    REQUIRE(memcmp(t->dst[0], t->dst[1], t->bytes) == 0);
    require_promises(t);
    decode_range(t, s);
    normalize_both(t, s);
}

/* Any bytes unpack to something, or are refused as damaged. Kernels agree on it but for NaN. */
static void unpack_anything(trial *t, const input *in) {
    for (int i = 0; i < 2; i++)
        fill(in, t->packed[i], t->packed_bytes);
    dv_status status = decode_both(t);
    REQUIRE(status == DV_OK || status == DV_ERROR_FORMAT);
    if (status == DV_OK && t->map.type != DV_BF16)
        require_alike(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const codecs[] = {"division:bits=1",
                                         "division",
                                         "division:dither=subtractive",
                                         "division:bits=4,block=3",
                                         "division:bits=8,block=64",
                                         "division:lfc=off,block=3",
                                         "division:hfc=off",
                                         "division:dither=none",
                                         "lean",
                                         "lean:levels=7,block=3,mask=off",
                                         "exact",
                                         "bits"};
    input in = {data, size};
    shape s;
    dv_codec codec;
    int parsed = parse_line(&in, &codec);
    take(&in, &s, sizeof s);
    if (!parsed)
        REQUIRE(dv_codec_parse(codecs[s.codec % (sizeof codecs / sizeof *codecs)], &codec, NULL) == DV_OK);
    measure_wild_map(&codec, &s);
    trial t = trial_new(&codec, &s);
    pack_and_unpack(&t, &in, &s);
    unpack_anything(&t, &in);
    trial_free(&t);
    return 0;
}
