/* What the commands share: messages, interruption, the end of output, and finding a command in a table. */
#include "cli.h"
#include "live.h"
#include "manual.h"

#include "options.h"

#include <division/tools/text.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LABEL_WIDTH = 18, MAX_COMMANDS = 32, LINE_BYTES = 8192 };

/* Messages go on where a terminal's line ends; what came from files in them may hold anything. */
static void print_message(const char *format, va_list arguments) {
    static const char front[] = "division: ";
    char text[LINE_BYTES];
    size_t used = sizeof front - 1;
    memcpy(text, front, sizeof front);
    vsnprintf(text + used, sizeof text - used, format, arguments);
    cli_flush(); /* so that the two come in order where they go to the same place */
    cli_print_folded(stderr, dv_printable(text));
}

int cli_fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    print_message(format, arguments);
    va_end(arguments);
    return CLI_FAILURE;
}

int cli_wrong_call(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    print_message(format, arguments);
    va_end(arguments);
    return CLI_WRONG_CALL;
}

int cli_report(const dv_error *error) {
    cli_fail("%s", error->text);
    return error->status == DV_ERROR_OPTION ? CLI_WRONG_CALL : CLI_FAILURE;
}

dv_status cli_error(dv_error *error, dv_status status, const char *format, ...) {
    va_list arguments;
    if (error == NULL)
        return status;
    va_start(arguments, format);
    vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    return error->status = status;
}

volatile sig_atomic_t cli_interrupted;

/* What a terminal is told when a signal came; none where messages go elsewhere. */
static const char *answer;

static void handle(int signal_number, void (*handler)(int)) {
    struct sigaction action = {.sa_handler = handler};
    sigemptyset(&action.sa_mask);
    sigaction(signal_number, &action, NULL);
}

/* Writes a text from a signal handler, where nothing but system calls may be called. */
static void write_text(const char *text) {
    size_t length = strlen(text);
    while (length > 0) {
        ssize_t written = write(STDERR_FILENO, text, length);
        if (written <= 0)
            return;
        text += written;
        length -= (size_t)written;
    }
}

/* In the place of the live line, which the next drawing brings back below. */
static void answer_at_once(void) {
    int saved = errno;
    if (answer != NULL) {
        write_text("\r\033[Kdivision: ");
        write_text(answer);
        write_text("\n");
    }
    errno = saved;
}

/* A terminal that closes says so up to twice, by its shell and by the kernel: that is no second wish to end. */
static void interrupt(int signal_number) {
    cli_interrupted = 1;
    if (signal_number == SIGHUP) {
        handle(SIGHUP, SIG_IGN);
        return;
    }
    answer_at_once();
    handle(SIGINT, SIG_DFL);
    handle(SIGTERM, SIG_DFL);
}

/* Under nohup, the end of the terminal is to be ignored. */
static int hangups_ignored(void) {
    struct sigaction action;
    return sigaction(SIGHUP, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

void cli_catch_interrupts(const char *text) {
    answer = isatty(STDERR_FILENO) ? text : NULL;
    handle(SIGINT, interrupt);
    handle(SIGTERM, interrupt);
    if (!hangups_ignored())
        handle(SIGHUP, interrupt);
}

/* Why stdout could not be written, the first time; 0: it could. */
static int output_errno;

void cli_flush(void) {
    errno = 0;
    if (fflush(stdout) != 0 && output_errno == 0)
        output_errno = errno;
}

int cli_finish(void) {
    cli_flush();
    if (!ferror(stdout) && output_errno == 0)
        return CLI_SUCCESS;
    const char *reason = output_errno != 0 ? strerror(output_errno) : "some of it was lost";
    return cli_fail("could not write to standard output: %s: check where the output goes", reason);
}

void cli_line(const char *label, const char *format, ...) {
    char text[LINE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    printf("%-*s%s\n", LABEL_WIDTH, label, dv_printable(text));
}

void cli_describe(const cli_section *sections, char *text, size_t bytes) {
    size_t used = 0;
    text[0] = '\0';
    for (const cli_section *at = sections; at->title != NULL && used < bytes; at++) {
        used += (size_t)snprintf(text + used, bytes - used, "%s:\n", at->title);
        for (size_t i = 0; at->name_at(i) != NULL && used < bytes; i++)
            used += (size_t)snprintf(text + used, bytes - used, at->help_at != NULL ? "  %s\n      %s\n" : "  %s\n",
                                     at->name_at(i), at->help_at != NULL ? at->help_at(i) : "");
    }
}

const char *cli_bytes_text(double bytes, char text[CLI_BYTES_TEXT]) {
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    size_t unit = 0;
    for (; bytes >= 999.5 && unit + 1 < sizeof units / sizeof *units; unit++)
        bytes /= 1000;
    snprintf(text, CLI_BYTES_TEXT, "%.*f %s", unit > 0 && bytes < 99.95 ? 1 : 0, bytes, units[unit]);
    return text;
}

char *cli_class_text(const char *name, size_t label, char text[CLI_CLASS_TEXT]) {
    if (name != NULL)
        snprintf(text, CLI_CLASS_TEXT, "%s", name);
    else
        snprintf(text, CLI_CLASS_TEXT, "%zu", label);
    return dv_printable(text);
}

int cli_width(const char *text, size_t columns) {
    return (int)(columns + strlen(text) - dv_text_characters(text));
}

void cli_csv_field(FILE *stream, const char *text) {
    if (strpbrk(text, ",\"\r\n") == NULL) {
        fputs(text, stream);
        return;
    }
    fputc('"', stream);
    for (; *text != '\0'; text++) {
        if (*text == '"')
            fputc('"', stream);
        fputc(*text, stream);
    }
    fputc('"', stream);
}

const char *cli_left_text(double seconds, char text[CLI_LEFT_TEXT]) {
    text[0] = '\0';
    if (!(seconds >= 0 && seconds < 1e8))
        return text;
    unsigned whole = (unsigned)(seconds + 0.5);
    if (whole >= 3600)
        snprintf(text, CLI_LEFT_TEXT, "  %u:%02u:%02u left", whole / 3600, whole / 60 % 60, whole % 60);
    else
        snprintf(text, CLI_LEFT_TEXT, "  %u:%02u left", whole / 60, whole % 60);
    return text;
}

static int unknown_command(const cli_command *commands, const char *prefix, const char *name) {
    const char *names[MAX_COMMANDS];
    size_t count = 0;
    for (; count < MAX_COMMANDS && commands[count].name != NULL; count++)
        names[count] = commands[count].name;
    const char *nearest = dv_nearest(name, names, count);
    if (nearest != NULL)
        return cli_wrong_call("there is no command '%s %s': did you mean '%s %s'?", prefix, name, prefix, nearest);
    return cli_wrong_call("there is no command '%s %s': see '%s --help'", prefix, name, prefix);
}

int cli_dispatch(const cli_command *commands, const char *prefix, int argc, char **argv) {
    for (const cli_command *command = commands; command->name != NULL; command++)
        if (strcmp(command->name, argv[0]) == 0)
            return command->call(argc, argv);
    return unknown_command(commands, prefix, argv[0]);
}

void cli_list_commands(const cli_command *commands) {
    for (; commands->name != NULL; commands++)
        printf("  %-10s %s\n", commands->name, commands->help);
}

static int print_group(const cli_group *group) {
    if (cli_manual_group(group))
        return CLI_SUCCESS;
    printf("Usage: division %s %s [options]\n\n", group->name, group->operand);
    cli_print_paragraphs(group->summary);
    printf("\n%s:\n", group->title);
    cli_list_commands(group->commands);
    return cli_finish();
}

int cli_call_group(const cli_group *group, int argc, char **argv) {
    char prefix[64];
    snprintf(prefix, sizeof prefix, "division %s", group->name);
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
        return print_group(group);
    if (argc < 2)
        return cli_wrong_call("%s: %s is missing: see 'division %s --help'", group->name, group->operand, group->name);
    return cli_dispatch(group->commands, prefix, argc - 1, argv + 1);
}
