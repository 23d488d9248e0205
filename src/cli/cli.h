/* What the commands of the program share: exit codes, messages, printing.
 *
 * A command is one file with one function `int cli_NAME(int argc, char **argv)`, where argv[0] is the
 * command's own name, and one line in the table of main.c. It declares its options in a table
 * (options.h), prints its result to stdout, and returns `cli_finish()`, or what one of the functions
 * for failures below returned. Commands use the library's public headers only. */
#ifndef DV_CLI_CLI_H
#define DV_CLI_CLI_H

#include <division/status.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>

/* Exit codes of the program. */
enum { CLI_SUCCESS = 0, CLI_FAILURE = 1, CLI_WRONG_CALL = 2, CLI_INTERRUPTED = 130 };

/* Prints "division: " and the message, one line, to stderr. The message has the form "what went wrong:
 * what to do about it". cli_fail returns CLI_FAILURE, cli_wrong_call CLI_WRONG_CALL. */
int cli_fail(const char *format, ...) DV_PRINTF(1, 2);
int cli_wrong_call(const char *format, ...) DV_PRINTF(1, 2);

/* Prints what the library said. Returns CLI_WRONG_CALL if it objects to an option, else CLI_FAILURE. */
int cli_report(const dv_error *error);

/* Makes an error like the library's, in the form of a message above, unless `error` is NULL. Returns `status`. */
dv_status cli_error(dv_error *error, dv_status status, const char *format, ...) DV_PRINTF(3, 4);

/* After cli_catch_interrupts, Ctrl-C, SIGTERM and SIGHUP (the terminal is gone; not under nohup) set cli_interrupted,
 * for the command to end in good order and return CLI_INTERRUPTED; a second Ctrl-C or SIGTERM ends the program at once.
 * `text`, which must stay, is told at once on a terminal: how the command will end. */
extern volatile sig_atomic_t cli_interrupted;
void cli_catch_interrupts(const char *text);

/* Flushes stdout, and remembers for cli_finish why it could not. */
void cli_flush(void);

/* Flushes stdout and says so if what was printed could not be written (a full disk, a closed pipe).
 * Returns the exit code: CLI_SUCCESS or CLI_FAILURE. A command ends with it. */
int cli_finish(void);

/* Prints one line "label   value" of a result, the values of several lines below each other. */
void cli_line(const char *label, const char *format, ...) DV_PRINTF(2, 3);

/* A section of a command's help that lists what there is of something. Tables of them end with a NULL title. */
typedef struct cli_section {
    const char *title;
    const char *(*name_at)(size_t index); /* NULL past the last */
    const char *(*help_at)(size_t index); /* NULL: names alone */
} cli_section;

/* Writes the sections into `text`. */
void cli_describe(const cli_section *sections, char *text, size_t bytes);

/* Writes a count of bytes for people: "12 B", "3.4 MB" (powers of 1000). Returns `text`. */
enum { CLI_BYTES_TEXT = 32 };
const char *cli_bytes_text(double bytes, char text[CLI_BYTES_TEXT]);

/* What to call a class: its name, or its number where that is NULL. Returns `text`. */
enum { CLI_CLASS_TEXT = 128 };
char *cli_class_text(const char *name, size_t label, char text[CLI_CLASS_TEXT]);

/* The bytes that printf's "%-*s" is to fill so many columns with a text of. */
int cli_width(const char *text, size_t columns);

/* Writes a field of CSV, as RFC 4180 has it: in quotes where it must be. */
void cli_csv_field(FILE *stream, const char *text);

/* "  1:02:03 left", "  4:05 left", or nothing if that is not known. Returns `text`. */
enum { CLI_LEFT_TEXT = 32 };
const char *cli_left_text(double seconds, char text[CLI_LEFT_TEXT]);

/* One command, or one subcommand, of the program. Tables of them end with a NULL name. */
typedef struct cli_command {
    const char *name;
    const char *help; /* one line */
    int (*call)(int argc, char **argv);
} cli_command;

/* Calls the command of the table that argv[0] names, with its arguments. If there is none, says so with
 * the nearest name there is. `prefix` is what precedes the name in a call: "division", "division bench". */
int cli_dispatch(const cli_command *commands, const char *prefix, int argc, char **argv);

/* Prints the table's names and help lines. */
void cli_list_commands(const cli_command *commands);

/* A command that is nothing but its subcommands. */
typedef struct cli_group {
    const char *name;    /* "data" */
    const char *operand; /* what a subcommand is called, "COMMAND" */
    const char *title;   /* of their list, "Commands" */
    const char *summary; /* what they do: a sentence and \n */
    const cli_command *commands;
} cli_group;

/* Calls the subcommand, or prints the help of the group. */
int cli_call_group(const cli_group *group, int argc, char **argv);

/* The commands. */
int cli_models(int argc, char **argv);
int cli_methods(int argc, char **argv);
int cli_plan(int argc, char **argv);
int cli_train(int argc, char **argv);
int cli_eval(int argc, char **argv);
int cli_predict(int argc, char **argv);
int cli_export(int argc, char **argv);
int cli_codec(int argc, char **argv);
int cli_bench(int argc, char **argv);
int cli_data(int argc, char **argv);
int cli_report_command(int argc, char **argv);
int cli_info(int argc, char **argv);

/* The subcommands of data. */
int cli_data_fetch(int argc, char **argv);
int cli_data_lmdb(int argc, char **argv);
int cli_data_show(int argc, char **argv);
int cli_data_speed(int argc, char **argv);

/* The subcommands of bench. */
int cli_bench_codec(int argc, char **argv);
int cli_bench_gradient(int argc, char **argv);
int cli_bench_memory(int argc, char **argv);
int cli_bench_ranks(int argc, char **argv);
int cli_bench_paper(int argc, char **argv);
int cli_bench_throughput(int argc, char **argv);
int cli_bench_worker(int argc, char **argv);

#endif
