/* The JSON writer: what it writes can be read back, whatever it is given. */
#include "base/random.h"
#include "check.h"

#include <division/tools/json.h>
#include <locale.h>
#include <math.h>

enum { TEXT_BYTES = 512 };

/* Finishes a text in a buffer and compares it. */
static void expect(dv_json *json, const char *buffer, const char *wanted) {
    dv_error error = {DV_OK, ""};
    if (dv_json_finish(json, &error) != DV_OK)
        fail_msg("finish: %s", error.text);
    assert_string_equal(buffer, wanted);
}

static void test_nesting(void **state) {
    (void)state;
    char buffer[TEXT_BYTES];
    dv_json json;
    dv_json_to_buffer(&json, buffer, sizeof buffer);
    dv_json_object(&json, NULL);
    dv_json_array(&json, "empty");
    dv_json_end(&json);
    dv_json_array(&json, "list");
    dv_json_integer(&json, NULL, INT64_MIN);
    dv_json_unsigned(&json, NULL, UINT64_MAX);
    dv_json_object(&json, NULL);
    dv_json_end(&json);
    dv_json_end(&json);
    dv_json_boolean(&json, "yes", 1);
    dv_json_boolean(&json, "no", 0);
    dv_json_null(&json, "nothing");
    dv_json_text(&json, "text", NULL);
    dv_json_end(&json);
    expect(&json, buffer,
           "{\"empty\": [], \"list\": [-9223372036854775808, 18446744073709551615, {}], \"yes\": true, \"no\": false, "
           "\"nothing\": null, \"text\": null}");
}

static void test_text_is_escaped(void **state) {
    (void)state;
    static const struct {
        const char *text, *wanted;
    } cases[] = {
        {"", "\"\""},
        {"\"\\/\b\f\n\r\t", "\"\\\"\\\\/\\b\\f\\n\\r\\t\""},
        {"\x01\x1f\x7f", "\"\\u0001\\u001f\\u007f\""},
        {"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x99\x82", "\"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x99\x82\""},
        {"\xff", "\"\\ufffd\""},                                  /* never a first byte */
        {"\xc3", "\"\\ufffd\""},                                  /* cut */
        {"\xc0\xaf", "\"\\ufffd\\ufffd\""},                       /* overlong */
        {"\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\""},            /* a surrogate */
        {"\xf4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\""}, /* above U+10FFFF */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char buffer[TEXT_BYTES];
        dv_json json;
        dv_json_to_buffer(&json, buffer, sizeof buffer);
        dv_json_text(&json, NULL, cases[i].text);
        expect(&json, buffer, cases[i].wanted);
    }
}

/* The text of one number. */
static void write_number(double number, char buffer[TEXT_BYTES]) {
    dv_json json;
    dv_json_to_buffer(&json, buffer, TEXT_BYTES);
    dv_json_number(&json, NULL, number);
    assert_int_equal(dv_json_finish(&json, NULL), DV_OK);
}

static void test_numbers_read_the_same(void **state) {
    (void)state;
    char buffer[TEXT_BYTES];
    for (uint64_t i = 0; i < 20000; i++) {
        uint64_t bits = dv_random_mix(i);
        double number, again;
        memcpy(&number, &bits, sizeof number);
        if (!isfinite(number))
            continue;
        write_number(number, buffer);
        again = strtod(buffer, NULL);
        assert_memory_equal(&number, &again, sizeof number);
    }
}

static void test_special_numbers(void **state) {
    (void)state;
    static const struct {
        double number;
        const char *wanted;
    } cases[] = {
        {0.0, "0"},    {-0.0, "-0"},       {0.1, "0.1"},       {1e300, "1e+300"}, {5e-324, "4.94065645841247e-324"},
        {NAN, "null"}, {INFINITY, "null"}, {-INFINITY, "null"}};
    char buffer[TEXT_BYTES];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_number(cases[i].number, buffer);
        assert_string_equal(buffer, cases[i].wanted);
    }
}

/* In any locale; the test can only tell where one with a comma is installed. */
static void test_decimal_point(void **state) {
    (void)state;
    char buffer[TEXT_BYTES];
    if (setlocale(LC_NUMERIC, "de_DE.UTF-8") == NULL)
        leave_out("the decimal comma: there is no locale de_DE.UTF-8");
    write_number(-1.5e-9, buffer);
    setlocale(LC_NUMERIC, "C");
    assert_string_equal(buffer, "-1.5e-09");
}

/* A buffer of every size up to the one that fits: nothing past it is touched, and what is there is the start. */
static void test_short_buffers(void **state) {
    (void)state;
    static const char wanted[] = "{\"key\": \"text\"}";
    for (size_t bytes = 0; bytes <= sizeof wanted; bytes++) {
        char buffer[TEXT_BYTES];
        memset(buffer, '#', sizeof buffer);
        dv_json json;
        dv_json_to_buffer(&json, buffer, bytes);
        dv_json_object(&json, NULL);
        dv_json_text(&json, "key", "text");
        dv_json_end(&json);
        assert_int_equal(dv_json_finish(&json, NULL), bytes < sizeof wanted ? DV_ERROR_BUFFER : DV_OK);
        assert_int_equal(buffer[bytes], '#');
        if (bytes > 0) {
            assert_memory_equal(buffer, wanted, bytes < sizeof wanted ? bytes - 1 : sizeof wanted);
            assert_int_equal(buffer[bytes < sizeof wanted ? bytes - 1 : sizeof wanted - 1], '\0');
        }
    }
}

static void open_without_end(dv_json *json) {
    dv_json_object(json, NULL);
}

static void end_without_open(dv_json *json) {
    dv_json_object(json, NULL);
    dv_json_end(json);
    dv_json_end(json);
}

static void no_key_in_object(dv_json *json) {
    dv_json_object(json, NULL);
    dv_json_number(json, NULL, 1);
    dv_json_end(json);
}

static void key_in_array(dv_json *json) {
    dv_json_array(json, NULL);
    dv_json_number(json, "key", 1);
    dv_json_end(json);
}

static void two_values(dv_json *json) {
    dv_json_number(json, NULL, 1);
    dv_json_number(json, NULL, 1);
}

static void nothing(dv_json *json) {
    (void)json;
}

static void too_deep(dv_json *json) {
    for (int i = 0; i <= DV_JSON_MAX_DEPTH; i++)
        dv_json_array(json, NULL);
    for (int i = 0; i <= DV_JSON_MAX_DEPTH; i++)
        dv_json_end(json);
}

static void test_misuse(void **state) {
    (void)state;
    static void (*const cases[])(dv_json *) = {open_without_end, end_without_open, no_key_in_object, key_in_array,
                                               two_values,       nothing,          too_deep};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char buffer[TEXT_BYTES];
        dv_json json;
        dv_json_to_buffer(&json, buffer, sizeof buffer);
        cases[i](&json);
        assert_int_equal(dv_json_finish(&json, NULL), DV_ERROR_ARGUMENT);
    }
}

static void test_deepest(void **state) {
    (void)state;
    char buffer[TEXT_BYTES];
    dv_json json;
    dv_json_to_buffer(&json, buffer, sizeof buffer);
    for (int i = 0; i < DV_JSON_MAX_DEPTH; i++)
        dv_json_array(&json, NULL);
    for (int i = 0; i < DV_JSON_MAX_DEPTH; i++)
        dv_json_end(&json);
    assert_int_equal(dv_json_finish(&json, NULL), DV_OK);
    assert_int_equal(strlen(buffer), 2 * DV_JSON_MAX_DEPTH);
}

static void test_lines_in_a_file(void **state) {
    (void)state;
    char text[TEXT_BYTES] = "";
    FILE *file = tmpfile();
    assert_non_null(file);
    dv_json json;
    dv_json_to_file(&json, file);
    for (int i = 0; i < 2; i++) {
        dv_json_object(&json, NULL);
        dv_json_integer(&json, "line", i);
        dv_json_end(&json);
        assert_int_equal(dv_json_finish(&json, NULL), DV_OK);
    }
    rewind(file);
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    assert_int_equal(length, strlen(text));
    assert_string_equal(text, "{\"line\": 0}\n{\"line\": 1}\n");
}

static void test_file_that_can_not_be_written(void **state) {
    (void)state;
    FILE *file = fopen("/dev/full", "w");
    if (file == NULL)
        leave_out("a file that cannot be written: there is no /dev/full");
    setvbuf(file, NULL, _IONBF, 0);
    dv_json json;
    dv_json_to_file(&json, file);
    dv_json_number(&json, NULL, 1);
    assert_int_equal(dv_json_finish(&json, NULL), DV_ERROR_IO);
    fclose(file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nesting),
        cmocka_unit_test(test_text_is_escaped),
        cmocka_unit_test(test_numbers_read_the_same),
        cmocka_unit_test(test_special_numbers),
        cmocka_unit_test(test_decimal_point),
        cmocka_unit_test(test_short_buffers),
        cmocka_unit_test(test_misuse),
        cmocka_unit_test(test_deepest),
        cmocka_unit_test(test_lines_in_a_file),
        cmocka_unit_test(test_file_that_can_not_be_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
