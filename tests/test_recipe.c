/* Recipes: lines and JSON are read, and mistakes are told with file and line. */
#include "check.h"
#include "folder.h"

#include <division/recipe.h>

static dv_status parse(const char *text, dv_recipe **recipe, dv_error *error) {
    return dv_recipe_parse("some/recipe", text, strlen(text), recipe, error);
}

static void assert_line(const dv_recipe *recipe, size_t index, const char *name, const char *value, size_t line) {
    const dv_recipe_line *at = dv_recipe_at(recipe, index);
    assert_non_null(at);
    assert_string_equal(at->name, name);
    assert_string_equal(at->value, value);
    assert_int_equal(at->line, line);
}

static void test_lines(void **state) {
    (void)state;
    dv_recipe *recipe;
    assert_ok(parse("# a comment\n\n  model = resnet18_cifar\r\nlr=0.1\n\tdata =  cifar10:a = b # c  \nlast = 1",
                    &recipe, &error));
    assert_line(recipe, 0, "model", "resnet18_cifar", 3);
    assert_line(recipe, 1, "lr", "0.1", 4);
    assert_line(recipe, 2, "data", "cifar10:a = b # c", 5);
    assert_line(recipe, 3, "last", "1", 6);
    assert_null(dv_recipe_at(recipe, 4));
    dv_recipe_free(recipe);
    assert_ok(parse("", &recipe, &error));
    assert_null(dv_recipe_at(recipe, 0));
    dv_recipe_free(recipe);
    dv_recipe_free(NULL);
}

static void test_json(void **state) {
    (void)state;
    dv_recipe *recipe;
    assert_ok(parse("{\"model\": \"resnet20\", \"lr\": 0.05, \"init\": null, \"nesterov\": true}\n", &recipe, &error));
    assert_line(recipe, 0, "model", "resnet20", 0);
    assert_line(recipe, 1, "lr", "0.05", 0);
    assert_line(recipe, 2, "nesterov", "true", 0);
    assert_null(dv_recipe_at(recipe, 3));
    dv_recipe_free(recipe);
}

static void test_mistakes(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"a = 1\nmodel resnet", "some/recipe, line 2: \"model resnet\": not an option: write name = value"},
        {"= 1", "line 1: \"\": not a name"},
        {"Model = x", "line 1: \"Model\": not a name"},
        {"a b = x", "not a name"},
        {"\n\na =\n", "line 3: \"a\": its value is missing"},
        {"a = \x01", "line 1: \"a\": its value is missing or not text"},
        {"a = 1\nb = 2\na = 3", "line 3: \"a\": it is set twice"},
        {"{\"a\": 1", "some/recipe, byte 7: a comma is missing: it should be one object of options"},
        {"{\"a\": [1]}", "byte 6: a value should begin here"},
        {"{\"a\": 1, \"a\": 2}", "it is set twice"},
        {"{\"a\": 1} b = 2", "something follows the end"},
    };
    dv_recipe *recipe;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_fails(parse(cases[i][0], &recipe, &error), DV_ERROR_FORMAT, cases[i][1]);
}

static void test_limits(void **state) {
    (void)state;
    static char text[70000];
    dv_recipe *recipe;
    size_t used = 0;
    for (int i = 0; i < 257; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "n%d = 1\n", i);
    assert_fails(parse(text, &recipe, &error), DV_ERROR_FORMAT, "line 257: \"n256\": too many options");
    memset(text, 'a', 5000);
    memcpy(text, "a = ", 4);
    text[5000] = '\0';
    assert_fails(parse(text, &recipe, &error), DV_ERROR_FORMAT, "too long");
    memset(text, '#', sizeof text);
    assert_fails(dv_recipe_parse("x", text, sizeof text, &recipe, &error), DV_ERROR_FORMAT, "more than 65536 bytes");
}

static void test_files(void **state) {
    char path[FOLDER_PATH_BYTES];
    dv_recipe *recipe;
    FILE *file = fopen(folder_path(state, "recipe", path), "wb");
    assert_non_null(file);
    fputs("a = 1\n", file);
    fclose(file);
    assert_ok(dv_recipe_read(path, &recipe, &error));
    assert_line(recipe, 0, "a", "1", 1);
    dv_recipe_free(recipe);
    assert_fails(dv_recipe_read(folder_path(state, "missing", path), &recipe, &error), DV_ERROR_IO, "missing");
    assert_fails(dv_recipe_read(*state, &recipe, &error), DV_ERROR_IO, "directory");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_limits),
        cmocka_unit_test_setup_teardown(test_files, folder_new, folder_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
