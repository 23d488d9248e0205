/* Names of classes in a note: written and read again, and what is no list of names refused. */
#include "check.h"

#include "train/class_names.h"

static void test_there_and_back(void **state) {
    (void)state;
    dv_dataset *data;
    char *text, **names;
    assert_ok(dv_dataset_open("synthetic:train=1,test=1", &data, &error));
    assert_ok(dv_class_names_text(data, &text, &error));
    assert_ok(dv_class_names_read(text, 12, &names, &error));
    for (size_t i = 0; i < 10; i++)
        assert_string_equal(names[i], dv_dataset_class_name(data, i));
    assert_null(names[10]);
    assert_null(names[11]);
    free(names);
    free(text);
    dv_dataset_close(data);
}

static void test_escapes(void **state) {
    (void)state;
    char **names;
    assert_ok(dv_class_names_read("[\"a\\\"b\", \"\\u00e9t\\u00e9\", \"\"]", 3, &names, &error));
    assert_string_equal(names[0], "a\"b");
    assert_string_equal(names[1], "\xc3\xa9t\xc3\xa9");
    assert_string_equal(names[2], "");
    free(names);
}

static void test_refused(void **state) {
    static const char *const texts[] = {
        "", "cat", "[\"cat\"", "[\"cat\", 1]", "{\"cat\": 1}", "[\"a\", \"b\", \"c\"]", "[\"a\"] b"};
    char **names;
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_fails(dv_class_names_read(texts[i], 2, &names, &error), DV_ERROR_FORMAT, "no list of up to 2 names");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_there_and_back), cmocka_unit_test(test_escapes),
                                       cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
