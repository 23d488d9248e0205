/* bf16 and f16 against an oracle in double precision: every half, and the f32 numbers around each. */
#include "base/float16.h"

#include "check.h"

#include <math.h>

/* A format: bits of precision (with the hidden one), exponent of the smallest normal number, and the first
 * power of two that is too large. */
typedef struct format {
    const char *name;
    int precision, smallest, overflow;
    float (*to_f32)(uint16_t half);
} format;

static const format bf16 = {"bf16", 8, -126, 128, dv_bf16_to_f32};
static const format f16 = {"f16", 11, -14, 16, dv_f16_to_f32};

/* `value` rounded by `rounding` to a multiple of the last place that it has in the format: in double every
 * step of this is exact. */
static double oracle(const format *to, double value, double (*rounding)(double)) {
    int exponent;
    frexp(value, &exponent); /* value = m 2^exponent, 1/2 <= m < 1 */
    if (exponent - 1 < to->smallest)
        exponent = to->smallest + 1;
    double place = ldexp(1, exponent - to->precision), rounded = rounding(value / place) * place;
    return fabs(rounded) < ldexp(1, to->overflow) ? rounded : copysign(INFINITY, rounded);
}

/* What the bits of a half mean, by the definition of the format. */
static double meaning(const format *of, uint16_t half) {
    int fraction_bits = of->precision - 1, fraction = half & ((1 << fraction_bits) - 1);
    int exponent = (half & 0x7fff) >> fraction_bits, special = (1 << (15 - fraction_bits)) - 1;
    double magnitude = exponent == 0
                           ? ldexp(fraction, of->smallest - fraction_bits)
                           : ldexp((1 << fraction_bits) + fraction, of->smallest - 1 + exponent - fraction_bits);
    if (exponent == special)
        magnitude = fraction ? NAN : INFINITY;
    return half & 0x8000 ? -magnitude : magnitude;
}

static void expect(const format *to, const char *what, float value, uint16_t got, double expected) {
    double number = meaning(to, got);
    if (number != expected || signbit(number) != signbit(expected))
        fail_msg("%s %s of %a (%08x): %04x = %a, expected %a", to->name, what, (double)value, dv_float_bits(value), got,
                 number, expected);
}

/* Nearest in both formats and, for bf16, down and up. */
static void check_number(float value) {
    expect(&bf16, "nearest", value, dv_bf16_nearest(value), oracle(&bf16, value, nearbyint));
    expect(&bf16, "nearest number", value, dv_bf16_nearest_number(value), oracle(&bf16, value, nearbyint));
    expect(&bf16, "down", value, dv_bf16_down(value), oracle(&bf16, value, floor));
    expect(&bf16, "up", value, dv_bf16_up(value), oracle(&bf16, value, ceil));
    expect(&f16, "nearest", value, dv_f16_nearest(value), oracle(&f16, value, nearbyint));
}

/* ---- from halves --------------------------------------------------------------------------- */

static void every_half_means_what_the_format_says(void **state) {
    (void)state;
    const format *formats[] = {&bf16, &f16};
    for (int i = 0; i < 2; i++)
        for (uint32_t half = 0; half < 65536; half++) {
            double expected = meaning(formats[i], (uint16_t)half), got = formats[i]->to_f32((uint16_t)half);
            int same = isnan(expected) ? isnan(got) : got == expected;
            if (!same || signbit(got) != signbit(expected))
                fail_msg("%s %04x: %a, expected %a", formats[i]->name, half, got, expected);
        }
}

static void every_half_survives_the_way_there_and_back(void **state) {
    (void)state;
    for (uint32_t half = 0; half < 65536; half++) {
        float wide = dv_bf16_to_f32((uint16_t)half), narrow = dv_f16_to_f32((uint16_t)half);
        if (isnan(wide)) {
            assert_true(isnan(dv_bf16_to_f32(dv_bf16_nearest(wide))));
        } else {
            assert_int_equal(dv_bf16_nearest(wide), half);
            assert_int_equal(dv_bf16_nearest_number(wide), half);
            assert_int_equal(dv_bf16_down(wide), half);
            assert_int_equal(dv_bf16_up(wide), half);
        }
        if (isnan(narrow))
            assert_true(isnan(dv_f16_to_f32(dv_f16_nearest(narrow))));
        else
            assert_int_equal(dv_f16_nearest(narrow), half);
    }
}

/* ---- from f32 ------------------------------------------------------------------------------ */

/* Each upper half of an f32 with lower halves around zero, around the middle (a tie in bf16) and at the
 * end, and with the ties of f16. */
static void numbers_round_like_the_oracle(void **state) {
    (void)state;
    static const uint32_t lower[] = {0,      1,      0xfff,  0x1000, 0x1001, 0x3000,
                                     0x7fff, 0x8000, 0x8001, 0xf000, 0xffff, 0x5a5a};
    for (uint32_t upper = 0; upper < 65536; upper++)
        for (size_t i = 0; i < sizeof lower / sizeof *lower; i++) {
            float value = dv_bits_float(upper << 16 | lower[i]);
            if (isfinite(value))
                check_number(value);
        }
}

/* The middle between each two neighbours of f16, and the f32 numbers on both sides of it. */
static void ties_of_f16_go_to_even(void **state) {
    (void)state;
    for (uint32_t half = 0; half < 0x7c00; half++) {
        double next = half == 0x7bff ? 65536 : meaning(&f16, (uint16_t)(half + 1));
        float middle = (float)((meaning(&f16, (uint16_t)half) + next) / 2);
        uint32_t even = half % 2 ? half + 1 : half;
        for (uint32_t sign = 0; sign < 2; sign++) {
            float value = sign ? -middle : middle;
            assert_int_equal(dv_f16_nearest(value), sign << 15 | even);
            assert_int_equal(dv_f16_nearest(nextafterf(value, 0)), sign << 15 | half);
            assert_int_equal(dv_f16_nearest(nextafterf(value, sign ? -INFINITY : INFINITY)), sign << 15 | (half + 1));
        }
    }
}

static void subnormals_and_zeros_keep_their_sign(void **state) {
    (void)state;
    check_number(0.0f);
    check_number(-0.0f);
    assert_int_equal(dv_bf16_down(-0.0f), 0x8000);
    assert_int_equal(dv_bf16_up(-0.0f), 0x8000);
    for (uint32_t bits = 1; bits < 0x00800000; bits += 127) {
        check_number(dv_bits_float(bits));
        check_number(dv_bits_float(bits | 0x80000000));
    }
}

static void infinities_stay_and_large_numbers_become_them(void **state) {
    (void)state;
    assert_int_equal(dv_bf16_nearest(INFINITY), 0x7f80);
    assert_int_equal(dv_bf16_nearest(-INFINITY), 0xff80);
    assert_int_equal(dv_bf16_down(INFINITY), 0x7f80);
    assert_int_equal(dv_bf16_up(-INFINITY), 0xff80);
    assert_int_equal(dv_f16_nearest(INFINITY), 0x7c00);
    assert_int_equal(dv_f16_nearest(-INFINITY), 0xfc00);
    assert_int_equal(dv_bf16_nearest(3.4028235e38f), 0x7f80);
    assert_int_equal(dv_bf16_down(3.4028235e38f), 0x7f7f);
    assert_int_equal(dv_bf16_up(-3.4028235e38f), 0xff7f);
    assert_int_equal(dv_f16_nearest(65519.996f), 0x7bff);
    assert_int_equal(dv_f16_nearest(65520.0f), 0x7c00);
    assert_int_equal(dv_f16_nearest(1e30f), 0x7c00);
}

/* Whatever bits make the NaN: none may carry over into infinity or a number. */
static void nan_stays_nan(void **state) {
    (void)state;
    for (uint32_t bits = 0x7f800001; bits < 0x7fffffff; bits += 4093)
        for (uint32_t sign = 0; sign < 2; sign++) {
            float value = dv_bits_float(bits | sign << 31);
            uint16_t wide = dv_bf16_nearest(value), narrow = dv_f16_nearest(value);
            assert_true(isnan(meaning(&bf16, wide)) && wide >> 15 == sign);
            assert_true(isnan(meaning(&f16, narrow)) && narrow >> 15 == sign);
        }
    assert_true(isnan(meaning(&bf16, dv_bf16_nearest(dv_bits_float(0x7fffffff)))));
    assert_true(isnan(meaning(&f16, dv_f16_nearest(dv_bits_float(0x7fffffff)))));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_half_means_what_the_format_says),
        cmocka_unit_test(every_half_survives_the_way_there_and_back),
        cmocka_unit_test(numbers_round_like_the_oracle),
        cmocka_unit_test(ties_of_f16_go_to_even),
        cmocka_unit_test(subnormals_and_zeros_keep_their_sign),
        cmocka_unit_test(infinities_stay_and_large_numbers_become_them),
        cmocka_unit_test(nan_stays_nan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
