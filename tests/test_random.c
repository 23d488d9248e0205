/* The random numbers: fixed for ever, keyed by every word, uniform, and uncorrelated. All seeds are fixed,
 * so a test that passes once always does; bounds are five standard deviations. */
#include "base/random.h"

#include "check.h"

#include <math.h>

static dv_random key_of(uint64_t a, uint64_t b, uint64_t c) {
    const uint64_t words[] = {a, b, c};
    return dv_random_key(words, 3);
}

static int same_key(dv_random a, dv_random b) {
    return a.low == b.low && a.high == b.high;
}

/* Packed maps depend on these: a change here is a change of the format. `tests/golden/codec.py random`
 * prints them. */
static void the_sequence_never_changes(void **state) {
    (void)state;
    static const struct {
        uint64_t words[3];
        dv_random key;
        uint32_t sequence[4]; /* at positions 0, 1, 2 and 0xffffffff */
    } golden[] = {
        {{0x0, 0x0, 0x0}, {0x38fcbe91, 0x238275bc}, {0x3370e562, 0x49bec177, 0x2a2d55d8, 0x24473f6b}},
        {{0x1, 0x2, 0x3}, {0xc0ac7e37, 0x6ae515c1}, {0x62a45305, 0xc5b014f1, 0xdbe7c27d, 0xc6118e64}},
        {{0xffffffffffffffff, 0x0, 0x8000000000000000},
         {0x8100cc59, 0x697f5e29},
         {0x68d424cc, 0xfe93d4b1, 0x626174c8, 0x1756a26d}},
    };
    for (size_t i = 0; i < sizeof golden / sizeof *golden; i++) {
        dv_random key = dv_random_key(golden[i].words, 3);
        assert_int_equal(key.low, golden[i].key.low);
        assert_int_equal(key.high, golden[i].key.high);
        for (uint32_t at = 0; at < 4; at++)
            assert_int_equal(dv_random_word(key, at < 3 ? at : UINT32_MAX), golden[i].sequence[at]);
    }
}

/* ---- keys ---------------------------------------------------------------------------------- */

static void every_word_of_the_key_matters(void **state) {
    (void)state;
    dv_random plain = key_of(1, 2, 3);
    for (int bit = 0; bit < 64; bit++) {
        uint64_t flip = UINT64_C(1) << bit;
        assert_false(same_key(plain, key_of(1 ^ flip, 2, 3)));
        assert_false(same_key(plain, key_of(1, 2 ^ flip, 3)));
        assert_false(same_key(plain, key_of(1, 2, 3 ^ flip)));
    }
}

static void the_order_and_the_number_of_words_matter(void **state) {
    (void)state;
    const uint64_t zeros[4] = {0};
    assert_false(same_key(key_of(1, 2, 3), key_of(1, 3, 2)));
    assert_false(same_key(key_of(1, 2, 3), key_of(2, 1, 3)));
    assert_false(same_key(key_of(1, 2, 3), key_of(3, 2, 1)));
    for (size_t a = 0; a <= 4; a++)
        for (size_t b = 0; b < a; b++)
            assert_false(same_key(dv_random_key(zeros, a), dv_random_key(zeros, b)));
}

/* A flipped bit of the input flips about half of the bits of the key. */
static void keys_avalanche(void **state) {
    (void)state;
    enum { KEYS = 4000 };
    for (int bit = 0; bit < 64; bit++) {
        double flipped = 0;
        for (uint64_t i = 0; i < KEYS; i++) {
            dv_random a = key_of(7, i, 5), b = key_of(7, i ^ UINT64_C(1) << bit, 5);
            flipped += __builtin_popcount(a.low ^ b.low) + __builtin_popcount(a.high ^ b.high);
        }
        double mean = flipped / KEYS, deviation = 4 / sqrt(KEYS); /* 64 fair bits: variance 16 */
        if (fabs(mean - 32) > 5 * deviation)
            fail_msg("bit %d: %g of 64 bits flip on average", bit, mean);
    }
}

/* ---- numbers ------------------------------------------------------------------------------- */

enum { WORDS = 1 << 20 };

/* Chi-square of the 16-bit halves, as dither uses them: 65535 degrees of freedom, so the mean is 65535
 * and the standard deviation the root of twice that. */
static void halves_are_uniform(void **state) {
    (void)state;
    uint32_t *count = malloc(65536 * sizeof *count);
    assert_non_null(count);
    for (uint64_t seed = 0; seed < 4; seed++)
        for (int shift = 0; shift <= 16; shift += 16) {
            dv_random key = key_of(seed, 0, 0);
            double expected = WORDS / 65536.0, chi = 0;
            memset(count, 0, 65536 * sizeof *count);
            for (uint32_t i = 0; i < WORDS; i++)
                count[dv_random_word(key, i) >> shift & 0xffff]++;
            for (int i = 0; i < 65536; i++)
                chi += (count[i] - expected) * (count[i] - expected) / expected;
            if (fabs(chi - 65535) > 5 * sqrt(2 * 65535.0))
                fail_msg("seed %d, bits from %d on: chi-square %g, expected 65535", (int)seed, shift, chi);
        }
    free(count);
}

/* Each bit is set half of the time. */
static void bits_are_fair(void **state) {
    (void)state;
    dv_random key = key_of(3, 1, 4);
    for (int bit = 0; bit < 32; bit++) {
        double ones = 0;
        for (uint32_t i = 0; i < WORDS / 4; i++)
            ones += dv_random_word(key, i) >> bit & 1;
        if (fabs(ones - WORDS / 8.0) > 5 * sqrt(WORDS / 16.0))
            fail_msg("bit %d is set %g times of %d", bit, ones, WORDS / 4);
    }
}

/* The 16-bit half at `index` of a sequence, as a number around 0 of variance 1. */
static double half_at(dv_random key, uint32_t index) {
    uint32_t word = dv_random_word(key, index / 2), half = index % 2 ? word >> 16 : word & 0xffff;
    return ((half + 0.5) / 65536 - 0.5) * sqrt(12);
}

/* The correlation of one sequence with another that starts `lag` later. */
static double correlation(dv_random a, dv_random b, uint32_t lag, uint32_t count) {
    double sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += half_at(a, i) * half_at(b, i + lag);
    return sum / count;
}

static void neighbours_are_uncorrelated(void **state) {
    (void)state;
    static const uint32_t lags[] = {1, 2, 3, 4, 7, 8, 16, 28, 56, 64, 112, 256, 512};
    enum { COUNT = 1 << 18 };
    for (uint64_t seed = 0; seed < 3; seed++)
        for (size_t i = 0; i < sizeof lags / sizeof *lags; i++) {
            dv_random key = key_of(seed, 1, 2);
            double r = correlation(key, key, lags[i], COUNT);
            if (fabs(r) > 5 / sqrt(COUNT))
                fail_msg("seed %d: correlation %g at a distance of %u", (int)seed, r, lags[i]);
        }
}

/* Steps, values and images are counted up: their sequences must have nothing in common. */
static void neighbouring_keys_are_uncorrelated(void **state) {
    (void)state;
    enum { COUNT = 1 << 16 };
    for (uint64_t i = 0; i < 60; i++) {
        dv_random a = key_of(i, 5, 9),
                  others[] = {key_of(i + 1, 5, 9), key_of(i, 6, 9), key_of(i, 5, 10), key_of(5, i, 9)};
        for (int j = 0; j < 4; j++) {
            double r = correlation(a, others[j], 0, COUNT);
            if (!same_key(a, others[j]) && fabs(r) > 5 / sqrt(COUNT))
                fail_msg("key %d and neighbour %d: correlation %g", (int)i, j, r);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_sequence_never_changes),
        cmocka_unit_test(every_word_of_the_key_matters),
        cmocka_unit_test(the_order_and_the_number_of_words_matter),
        cmocka_unit_test(keys_avalanche),
        cmocka_unit_test(halves_are_uniform),
        cmocka_unit_test(bits_are_fair),
        cmocka_unit_test(neighbours_are_uncorrelated),
        cmocka_unit_test(neighbouring_keys_are_uncorrelated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
