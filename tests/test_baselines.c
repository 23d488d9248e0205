/* Codes of the published baselines, against a reading of their definitions with PyTorch (golden/baselines.py). */
#include "codec/acgc.h"
#include "codec/blpa.h"
#include "maps.h"

#include "golden/baselines.inc"

enum { PIXELS = 40, CHANNELS = 5, COUNT = PIXELS * CHANNELS };

static const dv_map map = {.layout = DV_NHWC, .images = 1, .channels = CHANNELS, .rank = 1, .sides = {PIXELS}};

static void make_elements(float *to) {
    for (uint64_t i = 0; i < COUNT; i++)
        to[i] = (float)((i * 2654435761u >> 8) % 65536) / 65536 * 8 - 4;
}

/* ---- BLPA ------------------------------------------------------------------------------------ */

static const float mean[] = {0.25f, -0.5f, 0.0f, 1.0f, 0.125f}, istd[] = {0.5f, 0.75f, 1.0f, 0.375f, 2.0f};
static const float weight[] = {1.0f, 0.5f, 0.25f, 2.0f, 0.125f}, bias[] = {0.0f, 0.25f, -1.0f, 0.5f, 0.75f};
static const dv_normalisation norm = {mean, istd, weight, bias};

/* The code of element i of a stream of 256 elements or fewer: chunks are filled up. */
static int code_of(const uint8_t *packed, int bits, size_t i) {
    size_t bytes = 256 * (size_t)bits / 8;
    return packed[i % bytes] >> (int)(i / bytes) * bits & ((1 << bits) - 1);
}

/* x as a' and the norm's parameters tell it. */
static double restored(int code, int bits, size_t channel) {
    double ratio = (double)bias[channel] / (double)weight[channel], bins = 1 << bits;
    double shift = fmax(1, bins / 2 - floor(ratio * bins / 6)), a = (code - shift + 0.5) * 6 / bins;
    return (a - ratio) / (double)istd[channel] + (double)mean[channel];
}

static void check_blpa(const char *text, int bits, const int *codes, const int *positive) {
    dv_codec codec = codec_of(text), signs = codec_of("bits");
    size_t bytes = packed_bytes_of(&codec, &map);
    float src[COUNT], dst[COUNT], ones[COUNT];
    uint8_t *packed = guarded_new(bytes), mask[64];
    make_elements(src);
    assert_ok(dv_blpa_encode(&codec, &map, &norm, 0, 1, src, packed, bytes, &error));
    assert_ok(dv_blpa_decode(&codec, &map, &norm, 0, 1, packed, bytes, dst, &error));
    uint8_t *aligned = guarded_new(64);
    assert_ok(dv_blpa_mask(&codec, &map, &norm, 0, 1, packed, bytes, mask, sizeof mask, &error));
    memcpy(aligned, mask, 64);
    assert_ok(dv_codec_decode(&signs, &map, NULL, aligned, 64, ones, &error));
    for (size_t i = 0; i < COUNT; i++) {
        if (code_of(packed, bits, i) != codes[i])
            fail_msg("%s: code %d of element %zu: PyTorch has %d", text, code_of(packed, bits, i), i, codes[i]);
        assert_true(fabs((double)dst[i] - restored(codes[i], bits, i % CHANNELS)) < 2e-5);
        assert_int_equal((int)ones[i], positive[i]);
    }
    guarded_free(packed, bytes);
    guarded_free(aligned, 64);
}

static void codes_of_blpa(void **state) {
    (void)state;
    check_blpa("blpa:bits=4", 4, blpa4_codes, blpa4_mask);
    check_blpa("blpa:bits=8", 8, blpa8_codes, blpa8_mask);
}

/* The sign of a weight is taken apart: z and x̂ are then those of the same norm with both turned round. */
static void weights_below_zero(void **state) {
    (void)state;
    dv_codec codec = codec_of("blpa:bits=8");
    size_t bytes = packed_bytes_of(&codec, &map);
    float src[COUNT], turned[COUNT], dst[COUNT], turned_dst[COUNT], below[CHANNELS], turned_mean[CHANNELS];
    uint8_t *packed = guarded_new(bytes), *other = guarded_new(bytes);
    make_elements(src);
    for (size_t i = 0; i < COUNT; i++)
        turned[i] = -src[i];
    for (size_t c = 0; c < CHANNELS; c++) {
        below[c] = -weight[c];
        turned_mean[c] = -mean[c];
    }
    const dv_normalisation negative = {turned_mean, istd, below, bias};
    assert_ok(dv_blpa_encode(&codec, &map, &norm, 0, 1, src, packed, bytes, &error));
    assert_ok(dv_blpa_encode(&codec, &map, &negative, 0, 1, turned, other, bytes, &error));
    assert_memory_equal(packed, other, bytes);
    assert_ok(dv_blpa_decode(&codec, &map, &norm, 0, 1, packed, bytes, dst, &error));
    assert_ok(dv_blpa_decode(&codec, &map, &negative, 0, 1, other, bytes, turned_dst, &error));
    for (size_t i = 0; i < COUNT; i++)
        assert_true(turned_dst[i] == -dst[i]);
    guarded_free(packed, bytes);
    guarded_free(other, bytes);
}

/* ---- AC-GC ------------------------------------------------------------------------------------ */

static const double errors[] = {1e-2, 1e-4, 3e-6, 0.5, 1e-9}; /* allowed, by channel */

static void check_acgc(bool is_signed, const int *widths, const int *codes) {
    float src[COUNT], dst[COUNT], most[CHANNELS];
    dv_channel_code by[CHANNELS];
    uint8_t packed[4 * COUNT];
    make_elements(src);
    for (size_t i = 0; !is_signed && i < COUNT; i++)
        src[i] = fabsf(src[i]);
    assert_true(dv_acgc_measure(&map, 1, src, most));
    for (size_t c = 0; c < CHANNELS; c++) {
        by[c] = dv_acgc_choose(most[c], errors[c], is_signed, 0);
        assert_int_equal(by[c].width, widths[c]);
    }
    dv_acgc_encode(&map, by, is_signed, src, packed);
    dv_acgc_decode(&map, by, is_signed, packed, dst);
    for (size_t i = 0; i < COUNT; i++) {
        double code = (double)dst[i] / (double)by[i % CHANNELS].step;
        if (fabs(code - codes[i]) > 0.01 + 1e-6 * fabs(code))
            fail_msg("code %g of element %zu: PyTorch has %d", code, i, codes[i]);
    }
}

static void codes_of_acgc(void **state) {
    (void)state;
    check_acgc(true, acgc_signed_widths, acgc_signed_codes);
    check_acgc(false, acgc_unsigned_widths, acgc_unsigned_codes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_of_blpa),
        cmocka_unit_test(weights_below_zero),
        cmocka_unit_test(codes_of_acgc),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
