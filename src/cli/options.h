/* Options of commands, from a table: one line per option with its name, its argument, its help, its
 * bounds and where the value goes. The same table reads the command line, prints the help, and checks
 * single settings that come from elsewhere (a recipe).
 *
 *     int threads = 0, json = 0;
 *     const char *method = "division";
 *     const dv_option options[] = {
 *         {"method", "CODEC", "how to pack", CLI_TEXT(&method)},
 *         {"threads", "N", "threads to use, 0 for all", CLI_INTEGER(&threads, 0, 1024)},
 *         {"json", NULL, "print JSON", CLI_FLAG(&json)},
 *         CLI_OPTIONS_END,
 *     };
 *     const cli_usage usage = {.command = "codec", .summary = "Packs and unpacks a map.", .options = options,
 *                              .operands = "FILE", .minimum_operands = 1, .maximum_operands = 1};
 *     cli_operands operands;
 *     int code = cli_parse(&usage, argc, argv, &operands);
 *     if (code != CLI_CONTINUE) return code;
 *
 * What a target holds before parsing is its default, and the help says so. */
#ifndef DV_CLI_OPTIONS_H
#define DV_CLI_OPTIONS_H

#include <division/options.h>
#include <division/status.h>
#include <division/tools/option.h>
#include <stddef.h>
#include <stdint.h>

/* The part of an option's line that says its kind, target and bounds. A target of another type than the kind's is a
 * warning of the compiler. */
#define CLI_TARGET(type, pointer) .target = (1 ? (pointer) : (type *)0)
#define CLI_FLAG(pointer) .kind = DV_OPTION_FLAG, CLI_TARGET(int, pointer)
#define CLI_INTEGER(pointer, low, high) \
    .kind = DV_OPTION_INTEGER, .minimum = (low), .maximum = (high), CLI_TARGET(int, pointer)
#define CLI_COUNT(pointer, low, high) \
    .kind = DV_OPTION_COUNT, .minimum = (low), .maximum = (high), CLI_TARGET(size_t, pointer)
#define CLI_UNSIGNED(pointer) .kind = DV_OPTION_UNSIGNED, CLI_TARGET(uint64_t, pointer)
#define CLI_NUMBER(pointer, low, high) \
    .kind = DV_OPTION_NUMBER, .minimum = (low), .maximum = (high), CLI_TARGET(double, pointer)
#define CLI_WORD(pointer, list) .kind = DV_OPTION_WORD, .words = (list), CLI_TARGET(int, pointer)
#define CLI_TEXT(pointer) .kind = DV_OPTION_TEXT, CLI_TARGET(const char *, pointer) /* into the arguments */

/* Ends a table. */
#define CLI_OPTIONS_END \
    { .name = NULL }

/* The row of a training option for a variable of a command: its name, argument and bounds, with a help of the command's
 * own, or NULL for the training's. The option must be one. */
dv_option cli_text_option(const char *name, const char *help, const char **target);
dv_option cli_integer_option(const char *name, const char *help, int *target);
dv_option cli_word_option(const char *name, const char *help, int *target);

/* What the help says of an option: what it takes, "N" or "f32|bf16", empty for a flag; and, while its target still
 * holds it, its default. Both return `text`. */
enum { CLI_OPTION_TEXT = 160 };
const char *cli_option_argument(const dv_option *option, char text[CLI_OPTION_TEXT]);
const char *cli_option_preset(const dv_option *option, char text[CLI_OPTION_TEXT]);

/* How a command is called. */
typedef struct cli_usage {
    const char *command;                    /* "codec", "bench codec" */
    const char *operands;                   /* what the help calls those that are no options, or NULL */
    const char *summary;                    /* what the command does: full sentences, lines that end with \n */
    const char *details;                    /* printed below the options, or NULL */
    const dv_option *options;               /* the table */
    int minimum_operands, maximum_operands; /* at most CLI_MAX_OPERANDS, unless there is room for all */
    const char **all_operands;              /* [argc], the caller's, for commands that take any number; or NULL */
} cli_usage;

/* The arguments that are no options, in their order: the first of them, and all in the room of the usage. */
enum { CLI_MAX_OPERANDS = 64 };
typedef struct cli_operands {
    int count;
    const char *at[CLI_MAX_OPERANDS + 1]; /* into argv */
} cli_operands;

enum { CLI_CONTINUE = -1 };

/* Reads argv[1..]: "--name value", "--name=value", "--" before operands that start with a dash, and
 * "--help". Returns CLI_CONTINUE if the command should go on, and otherwise the exit code: the help was
 * asked for and printed, or a message was. `operands` may be NULL if the command takes none. */
int cli_parse(const cli_usage *usage, int argc, char **argv, cli_operands *operands);

/* Rows of the library's table of training options, those in `names` (NULL after the last) or all, for a table of the
 * program: their values go into `options`. Returns how many. */
enum { CLI_MOST_TRAINING_OPTIONS = 64 };
size_t cli_training_options(dv_options *options, const char *const *names, dv_option *table);

#endif
