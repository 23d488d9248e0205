/* Options behind a name: what is read, and what is refused with which words. */
#include "check.h"

#include "base/option_text.h"

#include <locale.h>
#include <math.h>

typedef struct values {
    size_t side;
    dv_counts many;
    double rate;
    int word, flag;
    char copy[8];
} values;

static const char *const words[] = {"red", "green", "blue", NULL};

static const dv_option rows[] = {
    {"side", "N", "a count", DV_COUNT_AT(values, side, 1, 100), .preset = "7"},
    {"rate", "R", "a number", DV_NUMBER_AT(values, rate, -1, 2), .preset = "0.5"},
    {"at", "N", "counts", DV_COUNTS_AT(values, many, 1, 50)},
    {"word", NULL, "a word", DV_WORD_AT(values, word, words), .preset = "green"},
    {"flag", NULL, "a flag", DV_FLAG_AT(values, flag), .preset = "no"},
    {"copy", "TEXT", "a copy", DV_COPY_AT(values, copy)},
};

enum { ROWS = sizeof rows / sizeof *rows };

static dv_option_table table_of(values *into) {
    return (dv_option_table){rows, ROWS, into};
}

static dv_status parse(const char *text, values *into, dv_error *error) {
    dv_option_table table = table_of(into);
    return dv_option_text_parse("thing", text, &table, 1, error);
}

static values presets(void) {
    values made = {0};
    dv_option_table table = table_of(&made);
    dv_option_text_preset(&table);
    return made;
}

static void test_what_is_read(void **state) {
    (void)state;
    values into = presets();
    assert_ok(parse(NULL, &into, &error));
    assert_int_equal(into.side, 7);
    assert_int_equal(into.word, 1);
    assert_int_equal(into.many.count, 0);
    assert_ok(parse("side=100", &into, &error));
    assert_int_equal(into.side, 100);
    assert_true(into.rate == 0.5);
    assert_ok(parse("rate=1e-3,side=1,at=3+14+50,word=blue,flag=yes,copy=1234567", &into, &error));
    assert_true(into.rate == 1e-3);
    assert_int_equal(into.side, 1);
    assert_int_equal(into.many.count, 3);
    assert_int_equal(into.many.at[2], 50);
    assert_int_equal(into.word, 2);
    assert_int_equal(into.flag, 1);
    assert_string_equal(into.copy, "1234567");
    assert_ok(parse("rate=.25", &into, &error));
    assert_true(into.rate == 0.25);
    assert_ok(parse("rate=-1", &into, &error));
    assert_true(into.rate == -1);
}

/* Each text with what is said of it. */
static void test_what_is_refused(void **state) {
    (void)state;
    static const char *const whole = ": must be a whole number from 1 to 100", *const number = "a number from -1 to 2",
                             *const counts = "must be up to 16 whole numbers from 1 to 50 with '+' between them",
                             *const mark = "thing: no option after a colon or comma: name one or drop the mark";
    const char *const cases[][2] = {
        {"side", whole},
        {"side=", whole},
        {"side=0", whole},
        {"side=101", whole},
        {"side=1.5", whole},
        {"side=-1", whole},
        {"side= 1", whole},
        {"side=1x", whole},
        {"side=1e1", whole},
        {"side=+1", whole},
        {"side=0x1", whole},
        {"rate=nan", number},
        {"rate=inf", number},
        {"rate=-1.1", number},
        {"rate=2.1", number},
        {"rate=0x", number},
        {"rate= 1", number},
        {"rate=", number},
        {"rate=-", number},
        {"at=", counts},
        {"at=+", counts},
        {"at=1+", counts},
        {"at=+1", counts},
        {"at=0", counts},
        {"at=51", counts},
        {"at=1++2", counts},
        {"at=1+2+3+4+5+6+7+8+9+10+11+12+13+14+15+16+17", counts},
        {"", mark},
        {"side=1,", mark},
        {",side=1", mark},
        {"=1", mark},
        {"side=99999999999999999999999999", "thing: side=99999999999999999999999999: must be a whole number"},
        {"rate=1,5", "thing: unknown option \"5\": there are side, rate, at, word, flag, copy"},
        {"word=re", "thing: word=re: must be red, green or blue"},
        {"flag=maybe", "thing: flag=maybe: must be yes, no"},
        {"copy=", "thing: copy=: must be a text of up to 7 characters"},
        {"copy=12345678", "must be a text of up to 7 characters"},
    };
    values into = presets(), before = into;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_fails(parse(cases[i][0], &into, &error), DV_ERROR_OPTION, cases[i][1]);
        into.side = before.side; /* of a part that was read before the mistake */
        into.rate = before.rate;
        assert_memory_equal(&into, &before, sizeof into);
    }
    char longest[600];
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    assert_fails(parse(longest, &into, &error), DV_ERROR_OPTION, "unknown option \"xxxxxxxxxx");
}

/* What is written can be read again, whatever the room. */
static void test_formatting(void **state) {
    (void)state;
    values into = presets(), again = {0};
    char text[200], cut[20];
    assert_ok(parse("rate=0.1,at=1+50", &into, &error));
    dv_option_table table = table_of(&into);
    size_t length = dv_option_text_format(&table, ':', text, 0, sizeof text);
    assert_string_equal(text, ":side=7,rate=0.1,at=1+50,word=green,flag=no,copy=");
    assert_int_equal(length, strlen(text));
    memset(cut, 1, sizeof cut);
    assert_int_equal(dv_option_text_format(&table, ':', cut, 0, sizeof cut), length);
    assert_memory_equal(cut, text, sizeof cut - 1);
    assert_int_equal(cut[sizeof cut - 1], 0);
    *strstr(text, ",copy=") = '\0';
    assert_ok(parse(text + 1, &again, &error));
    assert_memory_equal(&again, &into, sizeof into);
}

static void test_bounds(void **state) {
    (void)state;
    values into = presets();
    for (size_t i = 0; i < ROWS; i++)
        assert_true(dv_option_holds(&rows[i], &into));
    into = (values){.side = 101, .rate = NAN, .many = {.at = {51}, .count = 1}, .word = 3};
    for (size_t i = 0; i < 4; i++)
        assert_false(dv_option_holds(&rows[i], &into));
    into.many.count = DV_MOST_COUNTS + 1;
    assert_false(dv_option_holds(&rows[2], &into));
}

static void test_names(void **state) {
    (void)state;
    const char *rest = "";
    assert_true(dv_option_text_names("cosine", "cosine", &rest));
    assert_null(rest);
    assert_true(dv_option_text_names("step:every=3", "step", &rest));
    assert_string_equal(rest, "every=3");
    assert_false(dv_option_text_names("steps", "step", &rest));
    assert_false(dv_option_text_names("ste", "step", &rest));
}

/* A program that uses the library may have chosen a locale with another decimal point. */
static void test_locale(void **state) {
    (void)state;
    static const char *const locales[] = {"de_DE.UTF-8", "de_DE", "fr_FR.UTF-8", "nl_NL.UTF-8"};
    values into = presets();
    char text[32];
    for (size_t i = 0; i < sizeof locales / sizeof *locales && setlocale(LC_NUMERIC, locales[i]) == NULL; i++)
        ;
    assert_ok(parse("rate=0.25", &into, &error));
    assert_true(into.rate == 0.25);
    dv_option_get(&rows[1], &into, text, sizeof text);
    assert_string_equal(text, "0.25");
    setlocale(LC_NUMERIC, "C");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_read), cmocka_unit_test(test_what_is_refused), cmocka_unit_test(test_formatting),
        cmocka_unit_test(test_bounds),       cmocka_unit_test(test_names),           cmocka_unit_test(test_locale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
