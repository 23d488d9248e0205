/* Options of commands, from a table: one line per option with its name, its argument, its help, its
 * bounds and where the value goes. The same table reads the command line, prints the help, and checks
 * single settings that come from elsewhere (a recipe).
 *
 *     int threads = 0, json = 0;
 *     const char *method = "division";
 *     const cli_option options[] = {
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

#include <division/status.h>
#include <division/tools/json.h>
#include <stddef.h>
#include <stdint.h>

typedef enum cli_option_kind {
    CLI_KIND_FLAG,     /* takes no value; sets an int to 1 */
    CLI_KIND_INTEGER,  /* an int within bounds */
    CLI_KIND_UNSIGNED, /* a uint64_t, decimal or 0x hexadecimal */
    CLI_KIND_NUMBER,   /* a double within bounds */
    CLI_KIND_WORD,     /* one of several words; sets an int to the word's index */
    CLI_KIND_TEXT,     /* any text; a pointer into the arguments, valid as long as they are */
    CLI_KIND_COUNT
} cli_option_kind;

typedef struct cli_option {
    const char *name;     /* without the dashes */
    const char *argument; /* what the help calls the value; NULL for a flag */
    const char *help;     /* one line */
    cli_option_kind kind;
    int this_call; /* says how this one call behaves: not for files of options, neither read nor written */
    union {
        int *integer; /* also flags and words */
        uint64_t *whole;
        double *number;
        const char **text;
    } target;
    double minimum, maximum;  /* of integers and numbers */
    const char *const *words; /* of a word, NULL after the last */
} cli_option;

/* The part of an option's line that says its kind, target and bounds. */
#define CLI_FLAG(pointer) .kind = CLI_KIND_FLAG, .target.integer = (pointer)
#define CLI_INTEGER(pointer, low, high) \
    .kind = CLI_KIND_INTEGER, .target.integer = (pointer), .minimum = (low), .maximum = (high)
#define CLI_UNSIGNED(pointer) .kind = CLI_KIND_UNSIGNED, .target.whole = (pointer)
#define CLI_NUMBER(pointer, low, high) \
    .kind = CLI_KIND_NUMBER, .target.number = (pointer), .minimum = (low), .maximum = (high)
#define CLI_WORD(pointer, list) .kind = CLI_KIND_WORD, .target.integer = (pointer), .words = (list)
#define CLI_TEXT(pointer) .kind = CLI_KIND_TEXT, .target.text = (pointer)

/* Ends a table. */
#define CLI_OPTIONS_END \
    { .name = NULL }

/* How a command is called. */
typedef struct cli_usage {
    const char *command;                    /* "codec", "bench codec" */
    const char *operands;                   /* what the help calls those that are no options, or NULL */
    const char *summary;                    /* what the command does: full sentences, lines that end with \n */
    const char *details;                    /* printed below the options, or NULL */
    const cli_option *options;              /* the table */
    int minimum_operands, maximum_operands; /* at most CLI_MAX_OPERANDS */
} cli_usage;

/* The arguments that are no options, in their order. */
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

/* Sets one option by name, without dashes, as a recipe does; not those of this call alone. `value` must outlive the
 * target of a text. An error names the option, its value and its bounds. */
dv_status cli_option_set(const cli_option *options, const char *name, const char *value, dv_error *error);

/* Writes what all options, but those of this call alone, are now into the object that is open, as a file of settings
 * that can be read again. */
void cli_options_json(const cli_option *options, dv_json *json);

/* Of the `count` names, the one that differs from `name` by the fewest letters, or NULL if none is near. */
const char *cli_nearest(const char *name, const char *const *names, size_t count);

#endif
