/* The option parser of the program: tables of options, values and their bounds, operands. */
#include "cli/options.h"

#include "cli/cli.h"

#include "check.h"

/* One option of each kind, with what they hold before. */
typedef struct values {
    int flag, integer, word;
    uint64_t whole;
    double number;
    const char *text;
} values;

static const char *const colours[] = {"red", "green", "blue", NULL};

enum { TABLE = 7 };

static void make_table(values *v, dv_option table[TABLE]) {
    *v = (values){.flag = 0, .integer = 5, .word = 1, .whole = 6, .number = 0.5, .text = "before"};
    const dv_option options[TABLE] = {
        {"flag", NULL, "a flag", CLI_FLAG(&v->flag)},
        {"integer", "N", "an integer", CLI_INTEGER(&v->integer, -3, 100)},
        {"whole", "N", "a whole number", CLI_UNSIGNED(&v->whole)},
        {"number", "X", "a number", CLI_NUMBER(&v->number, -1, 1)},
        {"word", NULL, "a word", CLI_WORD(&v->word, colours)},
        {"text", "T", "a text", CLI_TEXT(&v->text)},
        CLI_OPTIONS_END,
    };
    memcpy(table, options, sizeof options);
}

/* Sets one option by name. */
static dv_status set(const dv_option *table, const char *name, const char *value, dv_error *error) {
    const dv_option *option = dv_option_find(table, TABLE - 1, name, strlen(name));
    return option != NULL ? dv_option_set(option, NULL, value, error)
                          : dv_option_unknown(table, TABLE - 1, name, error);
}

/* ---- single settings ----------------------------------------------------------------------- */

static void values_are_set(void **state) {
    (void)state;
    values v;
    dv_option table[TABLE];
    make_table(&v, table);
    assert_ok(set(table, "flag", NULL, &error));
    assert_int_equal(v.flag, 1);
    assert_ok(set(table, "flag", "no", &error));
    assert_int_equal(v.flag, 0);
    assert_ok(set(table, "flag", "true", &error));
    assert_int_equal(v.flag, 1);
    assert_ok(set(table, "integer", "-3", &error));
    assert_int_equal(v.integer, -3);
    assert_ok(set(table, "integer", "100", &error));
    assert_int_equal(v.integer, 100);
    assert_ok(set(table, "whole", "18446744073709551615", &error));
    assert_true(v.whole == UINT64_MAX);
    assert_ok(set(table, "whole", "0xff", &error));
    assert_true(v.whole == 255);
    assert_ok(set(table, "number", "-1", &error));
    assert_true(v.number == -1);
    assert_ok(set(table, "number", "2.5e-1", &error));
    assert_true(v.number == 0.25);
    assert_ok(set(table, "word", "blue", &error));
    assert_int_equal(v.word, 2);
    assert_ok(set(table, "text", "", &error));
    assert_string_equal(v.text, "");
}

static void wrong_values_are_explained_and_change_nothing(void **state) {
    (void)state;
    static const char *const cases[][3] = {
        {"flag", "maybe", "flag: 'maybe' is not what it takes: give yes, no, or no value at all"},
        {"integer", "-4", "integer: '-4' is not what it takes: give a whole number from -3 to 100"},
        {"integer", "101", "from -3 to 100"},
        {"integer", "99999999999999999999", "from -3 to 100"},
        {"integer", "4294967301", "from -3 to 100"},
        {"integer", "7x", "from -3 to 100"},
        {"integer", "1.5", "from -3 to 100"},
        {"integer", "", "integer: '' is not what it takes"},
        {"integer", NULL, "integer: its value is missing: give a whole number from -3 to 100"},
        {"whole", "-1", "give a whole number from 0 to 18446744073709551615"},
        {"whole", "18446744073709551616", "from 0 to"},
        {"whole", " 1", "from 0 to"},
        {"whole", "0x", "from 0 to"},
        {"whole", "", "from 0 to"},
        {"whole", "12z", "from 0 to"},
        {"number", "1.0001", "number: '1.0001' is not what it takes: give a number from -1 to 1"},
        {"number", "nan", "a number from -1 to 1"},
        {"number", "-inf", "a number from -1 to 1"},
        {"number", "", "a number from -1 to 1"},
        {"number", "0.5 ", "a number from -1 to 1"},
        {"word", "yellow", "word: 'yellow' is not what it takes: give red, green or blue"},
        {"word", "", "red, green or blue"},
        {"text", NULL, "text: its value is missing: give any text"},
        {"intege", "1", "intege: no such option: did you mean integer?"},
        {"integers", "1", "did you mean integer?"},
        {"something", "1", "something: no such option: see --help"},
        {"", "1", "no such option"},
    };
    values v, before;
    dv_option table[TABLE];
    make_table(&v, table);
    before = v;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_fails(set(table, cases[i][0], cases[i][1], &error), DV_ERROR_OPTION, cases[i][2]);
        assert_memory_equal(&v, &before, sizeof v);
        assert_int_equal(set(table, cases[i][0], cases[i][1], NULL), DV_ERROR_OPTION);
    }
}

static void long_values_are_cut_in_messages(void **state) {
    (void)state;
    values v;
    dv_option table[TABLE];
    char text[1000];
    make_table(&v, table);
    memset(text, 'y', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_fails(set(table, "word", text, &error), DV_ERROR_OPTION, "give red, green or blue");
    assert_fails(set(table, text, "1", &error), DV_ERROR_OPTION, "yyy");
}

/* ---- whole command lines ------------------------------------------------------------------- */

enum { MOST = 80 };

/* Parses the words of `line` with a table of its own. Messages go nowhere. */
static int parse(const char *line, values *v, cli_operands *operands) {
    static char copy[2000];
    static dv_option table[TABLE];
    char *argv[MOST];
    int argc = 0;
    make_table(v, table);
    snprintf(copy, sizeof copy, "command %s", line);
    for (char *word = strtok(copy, " "); word && argc < MOST; word = strtok(NULL, " "))
        argv[argc++] = word;
    const cli_usage usage = {.command = "command",
                             .operands = "FILE...",
                             .summary = "Tests.\n",
                             .options = table,
                             .minimum_operands = 1,
                             .maximum_operands = 2};
    return cli_parse(&usage, argc, argv, operands);
}

static void command_lines_are_read(void **state) {
    (void)state;
    values v;
    cli_operands operands;
    assert_int_equal(parse("a --flag --integer 7 --whole=8 --text=x=y b --word red", &v, &operands), CLI_CONTINUE);
    assert_int_equal(operands.count, 2);
    assert_string_equal(operands.at[0], "a");
    assert_string_equal(operands.at[1], "b");
    assert_int_equal(v.flag, 1);
    assert_int_equal(v.integer, 7);
    assert_true(v.whole == 8);
    assert_string_equal(v.text, "x=y");
    assert_int_equal(v.word, 0);
    assert_true(v.number == 0.5);
    assert_int_equal(parse("--integer -3 --flag=no - -- --flag", &v, &operands), CLI_CONTINUE);
    assert_int_equal(v.integer, -3);
    assert_int_equal(v.flag, 0);
    assert_int_equal(operands.count, 2);
    assert_string_equal(operands.at[0], "-");
    assert_string_equal(operands.at[1], "--flag");
}

static void wrong_command_lines_end_the_program(void **state) {
    (void)state;
    static const char *const lines[] = {
        "",          "--flag",           "a b c",  "a --integer",    "a --integer=", "a --nope", "a -f", "a --Flag",
        "a ---flag", "a --integer 1000", "a --=5", "a --flag=maybe", "a --word x"};
    values v;
    cli_operands operands;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (parse(lines[i], &v, &operands) != CLI_WRONG_CALL)
            fail_msg("'%s' was taken", lines[i]);
}

/* More operands than there is room for are counted as too many, and not stored. */
static void many_operands_are_too_many(void **state) {
    (void)state;
    char line[400] = "";
    values v;
    cli_operands operands;
    for (int i = 0; i < 78; i++)
        snprintf(line + strlen(line), sizeof line - strlen(line), "a%d ", i % 10);
    assert_int_equal(parse(line, &v, &operands), CLI_WRONG_CALL);
}

static void help_is_help(void **state) {
    (void)state;
    values v;
    cli_operands operands;
    assert_int_equal(parse("--help", &v, &operands), CLI_SUCCESS);
    assert_int_equal(parse("a b c -h --nope", &v, &operands), CLI_SUCCESS);
    assert_int_equal(parse("-- --help", &v, &operands), CLI_CONTINUE);
}

/* ---- what is beside ------------------------------------------------------------------------ */

static void the_nearest_name_is_found(void **state) {
    (void)state;
    static const char *const names[] = {"codec", "bench", "info"};
    assert_string_equal(dv_nearest("codex", names, 3), "codec");
    assert_string_equal(dv_nearest("benhc", names, 3), "bench");
    assert_string_equal(dv_nearest("inf", names, 3), "info");
    assert_string_equal(dv_nearest("bench", names, 3), "bench");
    assert_null(dv_nearest("train", names, 3));
    assert_null(dv_nearest("", names, 3));
    assert_null(dv_nearest("x", names, 0));
}

static void bytes_are_told_for_people(void **state) {
    (void)state;
    static const struct {
        double bytes;
        const char *text;
    } cases[] = {{0, "0 B"},         {999, "999 B"},    {1000, "1.0 kB"},   {3400000, "3.4 MB"},
                 {99949, "99.9 kB"}, {99960, "100 kB"}, {999499, "999 kB"}, {999600, "1.0 MB"},
                 {5e9, "5.0 GB"},    {1e12, "1.0 TB"},  {1e16, "10000 TB"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[CLI_BYTES_TEXT];
        assert_string_equal(cli_bytes_text(cases[i].bytes, text), cases[i].text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_set),
        cmocka_unit_test(wrong_values_are_explained_and_change_nothing),
        cmocka_unit_test(long_values_are_cut_in_messages),
        cmocka_unit_test(command_lines_are_read),
        cmocka_unit_test(wrong_command_lines_end_the_program),
        cmocka_unit_test(many_operands_are_too_many),
        cmocka_unit_test(help_is_help),
        cmocka_unit_test(the_nearest_name_is_found),
        cmocka_unit_test(bytes_are_told_for_people),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
