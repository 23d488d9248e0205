/* Settings from text: what is read, and what is refused with which words. */
#include "check.h"

#include "base/settings.h"

typedef struct values {
    size_t side, many[4], used;
    double rate;
} values;

static dv_status parse(const char *text, values *into, dv_error *error) {
    const dv_setting table[] = {
        {"side", DV_COUNT_SETTING(&into->side, 1, 100)},
        {"rate", DV_NUMBER_SETTING(&into->rate, 0, 2)},
        {"at", DV_COUNTS_SETTING(into->many, 4, &into->used, 1, 50)},
        DV_SETTINGS_END,
    };
    return dv_settings_parse("thing", text, table, error);
}

static void test_what_is_read(void **state) {
    (void)state;
    values into = {.side = 7, .rate = 0.5};
    assert_ok(parse(NULL, &into, &error));
    assert_int_equal(into.side, 7);
    assert_ok(parse("side=100", &into, &error));
    assert_int_equal(into.side, 100);
    assert_true(into.rate == 0.5);
    assert_ok(parse("rate=1e-3,side=1,at=3+14+50", &into, &error));
    assert_true(into.rate == 1e-3);
    assert_int_equal(into.side, 1);
    assert_int_equal(into.used, 3);
    assert_int_equal(into.many[2], 50);
    assert_ok(parse("rate=.25", &into, &error));
    assert_true(into.rate == 0.25);
}

static void test_what_is_refused(void **state) {
    (void)state;
    values into = {0};
    static const char *const sides[] = {"side",     "side=",    "side=0",
                                        "side=101", "side=1.5", "side=-1",
                                        "side= 1",  "side=1x",  "side=99999999999999999999999999",
                                        "side=1e1"};
    for (size_t i = 0; i < sizeof sides / sizeof *sides; i++)
        assert_fails(parse(sides[i], &into, &error), DV_ERROR_OPTION, ": must be a whole number from 1 to 100");
    static const char *const rates[] = {"rate=nan", "rate=inf", "rate=-0.1", "rate=2.1", "rate=1,5", "rate=0x"};
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
        if (i != 4)
            assert_fails(parse(rates[i], &into, &error), DV_ERROR_OPTION, ": must be a number from 0 to 2");
    assert_fails(parse("rate=1,5", &into, &error), DV_ERROR_OPTION,
                 "thing: unknown option \"5\": there are side, rate, at");
    static const char *const lists[] = {"at=", "at=+", "at=1+", "at=+1", "at=1+2+3+4+5", "at=0", "at=51", "at=1++2"};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        assert_fails(parse(lists[i], &into, &error), DV_ERROR_OPTION, "must be up to 4 whole numbers from 1 to 50");
    assert_fails(parse("", &into, &error), DV_ERROR_OPTION, "unknown option \"\"");
    assert_fails(parse("side=1,", &into, &error), DV_ERROR_OPTION, "unknown option \"\"");
    char longest[600];
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    assert_fails(parse(longest, &into, &error), DV_ERROR_OPTION, "an option of 599 characters");
}

static void test_names(void **state) {
    (void)state;
    const char *rest = "";
    assert_true(dv_settings_name("cosine", "cosine", &rest));
    assert_null(rest);
    assert_true(dv_settings_name("step:every=3", "step", &rest));
    assert_string_equal(rest, "every=3");
    assert_false(dv_settings_name("steps", "step", &rest));
    assert_false(dv_settings_name("ste", "step", &rest));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_read),
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
