/* The option parser. Every kind of option is one line of a table: how it reads a value, and how the help
 * shows what it takes. */
#include "options.h"

#include "cli.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_OPTIONS = 128, TAKES_BYTES = 160, HELP_COLUMN = 28, LONGEST_NAME = 32 };

/* ---- kinds --------------------------------------------------------------------------------- */

/* Reads a flag's value; a flag without one is set. Returns 0 if the value is none it takes. */
static int set_flag(const cli_option *option, const char *value) {
    static const char *const words[] = {"no", "yes", "false", "true", "0", "1"};
    if (value == NULL)
        value = "yes";
    for (int i = 0; i < 6; i++) {
        if (strcmp(value, words[i]) != 0)
            continue;
        *option->target.integer = i & 1;
        return 1;
    }
    return 0;
}

static int set_integer(const cli_option *option, const char *value) {
    char *end;
    errno = 0;
    long long number = strtoll(value, &end, 10);
    if (end == value || *end != '\0' || errno != 0)
        return 0;
    if ((double)number < option->minimum || (double)number > option->maximum)
        return 0;
    *option->target.integer = (int)number;
    return 1;
}

static int set_unsigned(const cli_option *option, const char *value) {
    char *end;
    int base = strncmp(value, "0x", 2) == 0 ? 16 : 10;
    errno = 0;
    unsigned long long number = strtoull(value, &end, base);
    if (value[0] < '0' || value[0] > '9' || *end != '\0' || errno != 0) /* strtoull itself takes "-1" */
        return 0;
    *option->target.whole = number;
    return 1;
}

static int set_number(const cli_option *option, const char *value) {
    char *end;
    double number = strtod(value, &end);
    if (end == value || *end != '\0' || !(number >= option->minimum && number <= option->maximum))
        return 0;
    *option->target.number = number;
    return 1;
}

static int set_word(const cli_option *option, const char *value) {
    for (int i = 0; option->words[i] != NULL; i++) {
        if (strcmp(option->words[i], value) != 0)
            continue;
        *option->target.integer = i;
        return 1;
    }
    return 0;
}

static int set_text(const cli_option *option, const char *value) {
    *option->target.text = value;
    return 1;
}

/* What an option takes, in words. */
static void flag_takes(const cli_option *option, char *text) {
    (void)option;
    snprintf(text, TAKES_BYTES, "yes, no, or no value at all");
}

static void integer_takes(const cli_option *option, char *text) {
    snprintf(text, TAKES_BYTES, "a whole number from %.0f to %.0f", option->minimum, option->maximum);
}

static void unsigned_takes(const cli_option *option, char *text) {
    (void)option;
    snprintf(text, TAKES_BYTES, "a whole number from 0 to %" PRIu64, UINT64_MAX);
}

static void number_takes(const cli_option *option, char *text) {
    snprintf(text, TAKES_BYTES, "a number from %g to %g", option->minimum, option->maximum);
}

/* Joins the words of an option. */
static void join_words(const cli_option *option, const char *between, char *text) {
    size_t used = 0;
    for (int i = 0; option->words[i] != NULL && used < TAKES_BYTES; i++)
        used += (size_t)snprintf(text + used, TAKES_BYTES - used, "%s%s", i > 0 ? between : "", option->words[i]);
}

static void word_takes(const cli_option *option, char *text) {
    join_words(option, " or ", text);
}

static void text_takes(const cli_option *option, char *text) {
    (void)option;
    snprintf(text, TAKES_BYTES, "any text");
}

/* The value an option has now, for the help; empty if there is nothing to show. */
static void show_integer(const cli_option *option, char *text) {
    snprintf(text, TAKES_BYTES, "%d", *option->target.integer);
}

static void show_unsigned(const cli_option *option, char *text) {
    snprintf(text, TAKES_BYTES, "%" PRIu64, *option->target.whole);
}

static void show_number(const cli_option *option, char *text) {
    snprintf(text, TAKES_BYTES, "%g", *option->target.number);
}

static void show_word(const cli_option *option, char *text) {
    snprintf(text, TAKES_BYTES, "%s", option->words[*option->target.integer]);
}

static void show_text(const cli_option *option, char *text) {
    snprintf(text, TAKES_BYTES, "%s", *option->target.text != NULL ? *option->target.text : "");
}

/* The value an option has now, as JSON. */
static void write_flag(const cli_option *option, dv_json *json) {
    dv_json_boolean(json, option->name, *option->target.integer);
}

static void write_integer(const cli_option *option, dv_json *json) {
    dv_json_integer(json, option->name, *option->target.integer);
}

static void write_unsigned(const cli_option *option, dv_json *json) {
    dv_json_unsigned(json, option->name, *option->target.whole);
}

static void write_number(const cli_option *option, dv_json *json) {
    dv_json_number(json, option->name, *option->target.number);
}

static void write_word(const cli_option *option, dv_json *json) {
    dv_json_text(json, option->name, option->words[*option->target.integer]);
}

static void write_text(const cli_option *option, dv_json *json) {
    dv_json_text(json, option->name, *option->target.text);
}

static const struct {
    int (*set)(const cli_option *option, const char *value);
    void (*takes)(const cli_option *option, char *text);
    void (*show)(const cli_option *option, char *text); /* NULL if there is no default worth showing */
    void (*write)(const cli_option *option, dv_json *json);
} kinds[CLI_KIND_COUNT] = {
    [CLI_KIND_FLAG] = {set_flag, flag_takes, NULL, write_flag},
    [CLI_KIND_INTEGER] = {set_integer, integer_takes, show_integer, write_integer},
    [CLI_KIND_UNSIGNED] = {set_unsigned, unsigned_takes, show_unsigned, write_unsigned},
    [CLI_KIND_NUMBER] = {set_number, number_takes, show_number, write_number},
    [CLI_KIND_WORD] = {set_word, word_takes, show_word, write_word},
    [CLI_KIND_TEXT] = {set_text, text_takes, show_text, write_text},
};

/* ---- nearest names ------------------------------------------------------------------------- */

static size_t least(size_t a, size_t b, size_t c) {
    size_t lower = a < b ? a : b;
    return lower < c ? lower : c;
}

/* Letters to insert, drop or exchange to make one name of the other (Levenshtein), one row at a time. */
static size_t name_distance(const char *from, const char *to) {
    size_t row[LONGEST_NAME + 1], length = strlen(to);
    if (length > LONGEST_NAME)
        return SIZE_MAX;
    for (size_t j = 0; j <= length; j++)
        row[j] = j;
    for (size_t i = 1; from[i - 1] != '\0'; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= length; j++) {
            size_t above = row[j];
            row[j] = least(above + 1, row[j - 1] + 1, diagonal + (from[i - 1] != to[j - 1]));
            diagonal = above;
        }
    }
    return row[length];
}

const char *cli_nearest(const char *name, const char *const *names, size_t count) {
    const char *nearest = NULL;
    size_t best = strlen(name) / 3 + 2; /* about one letter in three may be wrong */
    for (size_t i = 0; i < count; i++) {
        size_t distance = name_distance(name, names[i]);
        if (distance >= best || distance >= strlen(names[i]))
            continue;
        best = distance;
        nearest = names[i];
    }
    return nearest;
}

/* ---- setting ------------------------------------------------------------------------------- */

static dv_status fail_unknown(const cli_option *options, const char *name, dv_error *error) {
    const char *names[MAX_OPTIONS];
    size_t count = 0;
    for (; count < MAX_OPTIONS && options[count].name != NULL; count++)
        names[count] = options[count].name;
    const char *nearest = cli_nearest(name, names, count);
    if (nearest != NULL)
        return cli_error(error, DV_ERROR_OPTION, "%s: no such option: did you mean %s?", name, nearest);
    return cli_error(error, DV_ERROR_OPTION, "%s: no such option: see --help for those there are", name);
}

static const cli_option *find_option(const cli_option *options, const char *name, size_t length) {
    for (; options->name != NULL; options++)
        if (strlen(options->name) == length && memcmp(options->name, name, length) == 0)
            return options;
    return NULL;
}

static dv_status set_option(const cli_option *option, const char *value, dv_error *error) {
    char takes[TAKES_BYTES] = "";
    int missing = value == NULL && option->kind != CLI_KIND_FLAG;
    if (!missing && kinds[option->kind].set(option, value))
        return DV_OK;
    kinds[option->kind].takes(option, takes);
    if (missing)
        return cli_error(error, DV_ERROR_OPTION, "%s: its value is missing: give %s", option->name, takes);
    return cli_error(error, DV_ERROR_OPTION, "%s: '%.60s' is not what it takes: give %s", option->name, value, takes);
}

dv_status cli_option_set(const cli_option *options, const char *name, const char *value, dv_error *error) {
    const cli_option *option = find_option(options, name, strlen(name));
    if (option == NULL)
        return fail_unknown(options, name, error);
    if (option->this_call)
        return cli_error(error, DV_ERROR_OPTION, "%s: belongs on the command line", name);
    return set_option(option, value, error);
}

void cli_options_json(const cli_option *options, dv_json *json) {
    for (; options->name != NULL; options++)
        if (!options->this_call)
            kinds[options->kind].write(options, json);
}

/* ---- help ---------------------------------------------------------------------------------- */

static void print_option(const char *name, const char *argument, const char *help, const char *preset) {
    int used = printf("  %s%s%s%s", name[1] != '\0' ? "--" : "-", name, argument[0] != '\0' ? " " : "", argument);
    printf("%*s%s", used < HELP_COLUMN ? HELP_COLUMN - used : 1, "", help);
    printf(preset[0] != '\0' ? " (default %s)\n" : "\n", preset);
}

/* Prints one line on an option; its target still holds the default. */
static void describe_option(const cli_option *option) {
    char argument[TAKES_BYTES] = "", preset[TAKES_BYTES] = "";
    if (option->argument != NULL)
        snprintf(argument, sizeof argument, "%s", option->argument);
    else if (option->kind == CLI_KIND_WORD)
        join_words(option, "|", argument);
    if (kinds[option->kind].show != NULL)
        kinds[option->kind].show(option, preset);
    print_option(option->name, argument, option->help, preset);
}

static int print_help(const cli_usage *usage) {
    printf("Usage: division %s%s%s [options]\n\n%s\nOptions:\n", usage->command, usage->operands != NULL ? " " : "",
           usage->operands != NULL ? usage->operands : "", usage->summary);
    for (const cli_option *option = usage->options; option->name != NULL; option++)
        describe_option(option);
    print_option("help", "", "print this", "");
    if (usage->details != NULL)
        printf("\n%s", usage->details);
    return cli_finish();
}

/* ---- parsing ------------------------------------------------------------------------------- */

/* True if help is asked for, before the "--" that ends options. */
static int wants_help(int argc, char **argv) {
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return 1;
    return 0;
}

/* Reads the option at argv[*index], and its value if that is the next argument; leaves the index at the last
 * one read. */
static dv_status parse_option(const cli_usage *usage, int argc, char **argv, int *index, dv_error *error) {
    const char *argument = argv[*index];
    const char *name = argument + (argument[1] == '-' ? 2 : 1);
    const char *equals = strchr(name, '=');
    size_t length = equals != NULL ? (size_t)(equals - name) : strlen(name);
    const cli_option *option = argument[1] == '-' || length == 1 ? find_option(usage->options, name, length) : NULL;
    if (option == NULL) {
        char shown[LONGEST_NAME + 1];
        snprintf(shown, sizeof shown, "%.*s", length < LONGEST_NAME ? (int)length : LONGEST_NAME, name);
        return fail_unknown(usage->options, shown, error);
    }
    const char *value = equals != NULL ? equals + 1 : NULL;
    if (value == NULL && option->kind != CLI_KIND_FLAG && *index + 1 < argc)
        value = argv[++*index];
    return set_option(option, value, error);
}

static int check_operands(const cli_usage *usage, const cli_operands *operands) {
    if (operands->count < usage->minimum_operands)
        return cli_wrong_call("%s: missing %s: see 'division %s --help'", usage->command, usage->operands,
                              usage->command);
    if (operands->count > usage->maximum_operands)
        return cli_wrong_call("%s: '%s' is one argument too many: see 'division %s --help'", usage->command,
                              operands->at[usage->maximum_operands], usage->command);
    return CLI_CONTINUE;
}

int cli_parse(const cli_usage *usage, int argc, char **argv, cli_operands *operands) {
    cli_operands found = {0};
    int options_ended = 0;
    dv_error error;
    if (wants_help(argc, argv))
        return print_help(usage);
    for (int i = 1; i < argc; i++) {
        if (!options_ended && strcmp(argv[i], "--") == 0) {
            options_ended = 1;
        } else if (!options_ended && argv[i][0] == '-' && argv[i][1] != '\0') {
            if (parse_option(usage, argc, argv, &i, &error) != DV_OK)
                return cli_wrong_call("--%s", error.text);
        } else if (found.count <= CLI_MAX_OPERANDS) { /* one too many, for check_operands to name */
            found.at[found.count++] = argv[i];
        }
    }
    if (operands != NULL)
        *operands = found;
    return check_operands(usage, &found);
}
