/* Reading JSON: what is there is read, and what JSON does not allow is a problem at the right place. */
#include "check.h"

#include "base/json_read.h"

static dv_json_cursor at(const char *text) {
    return dv_json_cursor_at(text, strlen(text));
}

/* Copies the text to memory that ends where it does, so that a sanitizer sees a step past it. */
static bool skips(const char *text) {
    size_t bytes = strlen(text);
    char *copy = malloc(bytes > 0 ? bytes : 1);
    assert_non_null(copy);
    memcpy(copy, text, bytes);
    dv_json_cursor json = dv_json_cursor_at(copy, bytes);
    bool good = dv_json_skip(&json) && dv_json_ended(&json);
    assert_true(good == (json.problem == NULL));
    free(copy);
    return good;
}

static void test_walks(void **state) {
    (void)state;
    dv_json_cursor json = at(" {\"a\" : [1, 22,\n333], \"b\": {}, \"c\": [], \"d\": \"x\"}\n");
    char key[8], text[8];
    uint64_t number, sum = 0;
    size_t keys = 0;
    for (dv_json_enter(&json, '{'); dv_json_next(&json, '}'); keys++) {
        assert_true(dv_json_read_key(&json, key, sizeof key));
        assert_int_equal(key[0], 'a' + (int)keys);
        if (keys == 0)
            for (dv_json_enter(&json, '['); dv_json_next(&json, ']'); sum += number)
                assert_true(dv_json_read_unsigned(&json, &number));
        else if (keys < 3)
            assert_true(dv_json_skip(&json));
        else
            assert_true(dv_json_read_text(&json, text, sizeof text));
    }
    assert_true(dv_json_ended(&json));
    assert_int_equal(keys, 4);
    assert_int_equal(sum, 356);
    assert_string_equal(text, "x");
}

static void test_strings(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"\"\"", ""},
        {"\"plain \xc3\xa9\"", "plain \xc3\xa9"},
        {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t"},
        {"\"\\u0041\\u00e9\\u20AC\\ud83d\\uDE00\"", "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
    };
    char text[64];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        dv_json_cursor json = at(cases[i][0]);
        assert_true(dv_json_read_text(&json, text, sizeof text) && dv_json_ended(&json));
        assert_string_equal(text, cases[i][1]);
    }
    dv_json_cursor json = at("\"1234567\"");
    assert_true(dv_json_read_text(&json, text, 8));
    json = at("\"12345678\"");
    assert_false(dv_json_read_text(&json, text, 8));
    assert_string_equal(json.problem, "the string is too long");
    json = at("\"a\\u0000b\"");
    assert_false(dv_json_read_text(&json, text, sizeof text));
}

static void test_numbers(void **state) {
    (void)state;
    uint64_t number;
    dv_json_cursor json = at("18446744073709551615");
    assert_true(dv_json_read_unsigned(&json, &number) && number == UINT64_MAX);
    static const char *const bad[] = {"18446744073709551616", "-1", "1.0", "1e3", "01", "", "x", "\"1\""};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        json = at(bad[i]);
        if (dv_json_read_unsigned(&json, &number))
            fail_msg("%s was read", bad[i]);
    }
}

static void test_scalars(void **state) {
    (void)state;
    static const char *const cases[][2] = {{"\"a b\"", "a b"},   {"0.10000000000000001", "0.10000000000000001"},
                                           {"-12e+3", "-12e+3"}, {"true", "true"},
                                           {"false", "false"},   {"null", "null"}};
    char text[32];
    bool is_null;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        dv_json_cursor json = at(cases[i][0]);
        assert_true(dv_json_read_scalar(&json, text, sizeof text, &is_null) && dv_json_ended(&json));
        assert_string_equal(text, cases[i][1]);
        assert_int_equal(is_null, i == 5);
    }
    dv_json_cursor json = at("{}");
    assert_false(dv_json_read_scalar(&json, text, sizeof text, &is_null));
}

static void test_what_is_json(void **state) {
    (void)state;
    static const char *const good[] = {"{}",   "[]",     "[[],{},[{}]]",        "1",    "-0",  "0.5e-7",
                                       "\"\"", " true ", "{\"a\":{\"b\":[1]}}", "null", "[1]", "{\"a\":1,\"a\":2}"};
    static const char *const bad[] = {"",
                                      " ",
                                      "{",
                                      "}",
                                      "[",
                                      "]",
                                      "[1,]",
                                      "[,1]",
                                      "{\"a\":1,}",
                                      "{,}",
                                      "{\"a\"}",
                                      "{\"a\":}",
                                      "{1:2}",
                                      "[1 2]",
                                      "{\"a\":1 \"b\":2}",
                                      "[1}",
                                      "{\"a\":1]",
                                      "\"",
                                      "\"\\\"",
                                      "\"\\x\"",
                                      "\"\\u12\"",
                                      "\"\\u12g4\"",
                                      "\"\\ud800\"",
                                      "\"\\ud800\\u0041\"",
                                      "\"\\udc00\"",
                                      "\"\n\"",
                                      "\"\\u\x10\x10\x10\x10\"",
                                      "01",
                                      "1.",
                                      ".5",
                                      "1e",
                                      "+1",
                                      "-",
                                      "tru",
                                      "nul",
                                      "truex",
                                      "nan",
                                      "'a'",
                                      "1 2",
                                      "[1]]",
                                      "{\"a\" 1}",
                                      "[\"\\"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (!skips(good[i]))
            fail_msg("refuses %s", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (skips(bad[i]))
            fail_msg("accepts %s", bad[i]);
}

static void test_depth(void **state) {
    (void)state;
    char text[256];
    for (int depth = 1; depth <= 100; depth += 9) {
        memset(text, '[', (size_t)depth);
        memset(text + depth, ']', (size_t)depth);
        text[2 * depth] = '\0';
        assert_int_equal(skips(text), depth <= 64);
    }
}

/* After the first problem nothing moves, and the problem stays. */
static void test_problems_stay(void **state) {
    (void)state;
    dv_json_cursor json = at("{\"a\": x, \"b\": 1}");
    char key[8];
    uint64_t number;
    assert_true(dv_json_enter(&json, '{') && dv_json_next(&json, '}') && dv_json_read_key(&json, key, sizeof key));
    assert_false(dv_json_read_unsigned(&json, &number));
    size_t position = dv_json_position(&json);
    assert_int_equal(position, 6);
    assert_false(dv_json_next(&json, '}') || dv_json_skip(&json) || dv_json_read_key(&json, key, sizeof key));
    assert_false(dv_json_ended(&json));
    assert_int_equal(dv_json_position(&json), position);
    assert_string_equal(json.problem, "a whole number should begin here");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_walks),         cmocka_unit_test(test_strings),      cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_scalars),       cmocka_unit_test(test_what_is_json), cmocka_unit_test(test_depth),
        cmocka_unit_test(test_problems_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
