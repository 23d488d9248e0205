/* Messages: what a failing call leaves in the caller's error. */
#include "base/status.h"

#include "check.h"

static void every_status_has_words(void **state) {
    (void)state;
    for (int a = DV_OK; a <= DV_ERROR_MEMORY; a++) {
        assert_true(strlen(dv_strerror((dv_status)a)) > 3);
        assert_string_not_equal(dv_strerror((dv_status)a), "unknown status");
        for (int b = DV_OK; b < a; b++)
            assert_string_not_equal(dv_strerror((dv_status)a), dv_strerror((dv_status)b));
    }
    assert_string_equal(dv_strerror((dv_status)(DV_ERROR_MEMORY + 1)), "unknown status");
    assert_string_equal(dv_strerror((dv_status)-1), "unknown status");
}

static void failing_fills_the_error_and_is_the_status(void **state) {
    (void)state;
    dv_error error = {0};
    assert_int_equal(dv_fail(&error, DV_ERROR_IO, "%s: %d", "file", 7), DV_ERROR_IO);
    assert_int_equal(error.status, DV_ERROR_IO);
    assert_string_equal(error.text, "file: 7");
    assert_int_equal(dv_fail(NULL, DV_ERROR_IO, "nobody reads this"), DV_ERROR_IO);
}

/* A message of up to 255 characters fits; a longer one ends with dots. */
static void long_messages_are_cut_visibly(void **state) {
    (void)state;
    char letters[400];
    for (int length = DV_ERROR_TEXT_BYTES - 3; length < DV_ERROR_TEXT_BYTES + 100; length++) {
        dv_error error;
        memset(&error, 'z', sizeof error);
        memset(letters, 'a', sizeof letters);
        letters[length] = '\0';
        dv_set_error(&error, DV_ERROR_OPTION, "%s", letters);
        size_t got = strlen(error.text);
        if (length < DV_ERROR_TEXT_BYTES) {
            assert_string_equal(error.text, letters);
        } else {
            assert_int_equal(got, DV_ERROR_TEXT_BYTES - 1);
            assert_string_equal(error.text + got - 4, "a...");
        }
    }
}

/* Callers put more in front of what a deeper call said. */
static void old_text_may_be_an_argument(void **state) {
    (void)state;
    dv_error error;
    dv_set_error(&error, DV_ERROR_FORMAT, "inner");
    dv_set_error(&error, DV_ERROR_IO, "outer: %s", error.text);
    assert_string_equal(error.text, "outer: inner");
    assert_int_equal(error.status, DV_ERROR_IO);
}

/* Names of files and options may hold anything; a message is one line all the same. */
static void messages_are_one_line(void **state) {
    (void)state;
    dv_error error;
    dv_set_error(&error, DV_ERROR_OPTION, "a\nb\r\tc\033[31md\x7f, \xc3\xa4");
    assert_string_equal(error.text, "a?b??c?[31md?, \xc3\xa4");
    dv_set_error(&error, DV_ERROR_OPTION,
                 "\xe9t\xe9 \xc2\x9b \xc2\xa0 \xe2\x82\xac \xe2\x82 \xed\xa0\x80 \xf0\x9f\x98\x80 \xff");
    assert_string_equal(error.text, "?t? ?? \xc2\xa0 \xe2\x82\xac ?? ??? \xf0\x9f\x98\x80 ?");
}

static dv_status tried(dv_status inner, int *after) {
    DV_TRY(inner);
    *after = 1;
    return DV_OK;
}

static void trying_passes_failures_on(void **state) {
    (void)state;
    int after = 0;
    assert_int_equal(tried(DV_ERROR_BUFFER, &after), DV_ERROR_BUFFER);
    assert_int_equal(after, 0);
    assert_int_equal(tried(DV_OK, &after), DV_OK);
    assert_int_equal(after, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_words),        cmocka_unit_test(failing_fills_the_error_and_is_the_status),
        cmocka_unit_test(long_messages_are_cut_visibly), cmocka_unit_test(old_text_may_be_an_argument),
        cmocka_unit_test(messages_are_one_line),         cmocka_unit_test(trying_passes_failures_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
