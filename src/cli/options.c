/* The command line against a table of options, and the help that the same table makes. */
#include "options.h"

#include "cli.h"
#include "live.h"
#include "manual.h"

#include <stdio.h>
#include <string.h>

enum { HELP_COLUMN = 28, LONGEST_NAME = 32, MOST_OPTIONS = 128, OPTION_BYTES = 4096 };

static size_t count_options(const dv_option *options) {
    size_t count = 0;
    while (options[count].name != NULL)
        count++;
    return count;
}

/* A row with another kind of target and, unless it is NULL, another help. */
static dv_option row_for(const char *name, const char *help, dv_option_kind kind, void *target) {
    dv_option row = {.name = NULL};
    const dv_option *found;
    for (size_t i = 0; (found = dv_options_at(i)) != NULL; i++)
        if (strcmp(found->name, name) == 0)
            row = *found;
    row.help = help != NULL ? help : row.help;
    row.kind = kind;
    row.target = target;
    row.accept = NULL;
    return row;
}

dv_option cli_text_option(const char *name, const char *help, const char **target) {
    return row_for(name, help, DV_OPTION_TEXT, target);
}

dv_option cli_integer_option(const char *name, const char *help, int *target) {
    return row_for(name, help, DV_OPTION_INTEGER, target);
}

dv_option cli_word_option(const char *name, const char *help, int *target) {
    return row_for(name, help, DV_OPTION_WORD, target);
}

size_t cli_training_options(dv_options *options, const char *const *names, dv_option *table) {
    const dv_option *row;
    size_t count = 0;
    for (size_t i = 0; (row = dv_options_at(i)) != NULL; i++) {
        int wanted = names == NULL;
        for (size_t n = 0; !wanted && names[n] != NULL; n++)
            wanted = strcmp(names[n], row->name) == 0;
        if (!wanted)
            continue;
        table[count] = *row;
        table[count++].target = (char *)options + row->offset;
    }
    return count;
}

/* ---- help ---------------------------------------------------------------------------------- */

static void print_option(const char *name, const char *argument, const char *help, const char *preset) {
    char text[OPTION_BYTES], first[OPTION_BYTES / 2];
    snprintf(first, sizeof first, "  %s%s%s%s", name[1] != '\0' ? "--" : "-", name, argument[0] != '\0' ? " " : "",
             argument);
    snprintf(text, sizeof text, "%-*s%s%s%s%s%s", HELP_COLUMN - 1, first, " ", help,
             preset[0] != '\0' ? " (default " : "", preset, preset[0] != '\0' ? ")" : "");
    cli_print_hanging(stdout, text, HELP_COLUMN);
}

/* "f32|bf16". */
static void list_words(const dv_option *option, char text[CLI_OPTION_TEXT]) {
    size_t used = 0;
    for (size_t i = 0; option->words[i] != NULL && used < CLI_OPTION_TEXT; i++)
        used += (size_t)snprintf(text + used, CLI_OPTION_TEXT - used, "%s%s", i > 0 ? "|" : "", option->words[i]);
}

const char *cli_option_argument(const dv_option *option, char text[CLI_OPTION_TEXT]) {
    text[0] = '\0';
    if (option->argument != NULL)
        snprintf(text, CLI_OPTION_TEXT, "%s", option->argument);
    else if (option->kind == DV_OPTION_WORD)
        list_words(option, text);
    return text;
}

const char *cli_option_preset(const dv_option *option, char text[CLI_OPTION_TEXT]) {
    text[0] = '\0';
    if (option->kind != DV_OPTION_FLAG)
        dv_option_get(option, NULL, text, CLI_OPTION_TEXT);
    return text;
}

static void describe_option(const dv_option *option) {
    char argument[CLI_OPTION_TEXT], preset[CLI_OPTION_TEXT];
    print_option(option->name, cli_option_argument(option, argument), option->help, cli_option_preset(option, preset));
}

static int print_help(const cli_usage *usage) {
    if (cli_manual_command(usage))
        return CLI_SUCCESS;
    printf("Usage: division %s%s%s [options]\n\n", usage->command, usage->operands != NULL ? " " : "",
           usage->operands != NULL ? usage->operands : "");
    cli_print_paragraphs(usage->summary);
    printf("\nOptions:\n");
    for (const dv_option *option = usage->options; option->name != NULL; option++)
        describe_option(option);
    print_option("help", "", "print this", "");
    if (usage->details != NULL) {
        printf("\n");
        cli_print_paragraphs(usage->details);
    }
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

/* Names the nearest option as it is written on a command line. */
static dv_status unknown_option(const cli_usage *usage, size_t count, const char *name, dv_error *error) {
    const char *names[MOST_OPTIONS];
    count = count < MOST_OPTIONS ? count : MOST_OPTIONS;
    for (size_t i = 0; i < count; i++)
        names[i] = usage->options[i].name;
    const char *nearest = dv_nearest(name, names, count);
    if (nearest == NULL)
        return dv_option_unknown(usage->options, count, name, error);
    return cli_error(error, DV_ERROR_OPTION, "%s: no such option: did you mean --%s?", name, nearest);
}

/* Reads the option at argv[*index], and its value if that is the next argument; leaves the index at the last
 * one read. */
static dv_status parse_option(const cli_usage *usage, int argc, char **argv, int *index, dv_error *error) {
    const char *argument = argv[*index];
    const char *name = argument + (argument[1] == '-' ? 2 : 1);
    const char *equals = strchr(name, '=');
    size_t length = equals != NULL ? (size_t)(equals - name) : strlen(name);
    size_t count = count_options(usage->options);
    const dv_option *option =
        argument[1] == '-' || length == 1 ? dv_option_find(usage->options, count, name, length) : NULL;
    if (option == NULL) {
        char shown[LONGEST_NAME + 1];
        snprintf(shown, sizeof shown, "%.*s", length < LONGEST_NAME ? (int)length : LONGEST_NAME, name);
        return unknown_option(usage, count, shown, error);
    }
    const char *value = equals != NULL ? equals + 1 : NULL;
    if (value == NULL && option->kind != DV_OPTION_FLAG && *index + 1 < argc)
        value = argv[++*index];
    return dv_option_set(option, NULL, value, error);
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

/* Without room for all there may be one too many, for check_operands to name. */
static void add_operand(const cli_usage *usage, const char *argument, cli_operands *found) {
    if (usage->all_operands != NULL)
        usage->all_operands[found->count] = argument;
    else if (found->count > CLI_MAX_OPERANDS)
        return;
    if (found->count <= CLI_MAX_OPERANDS)
        found->at[found->count] = argument;
    found->count++;
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
        } else {
            add_operand(usage, argv[i], &found);
        }
    }
    if (operands != NULL)
        *operands = found;
    return check_operands(usage, &found);
}
