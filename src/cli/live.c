/* The live line. A terminal that became narrower than a line that is drawn has broken it into two by itself, and the
 * first of them stays: the next one fits again, because the width is asked for at each drawing. */
#include "live.h"

#include "cli.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { USUAL_COLUMNS = 80, FEWEST_COLUMNS = 8, MOST_COLUMNS = 4096, LINE_BYTES = 4096 };

static const double LIVE_SECONDS = 0.1, PLAIN_SECONDS = 60;

enum {
    INDENTATION = 2,    /* of what was folded */
    LEAST_TEXT = 20,    /* columns behind a larger one */
    FULL_LINE = 60,     /* of a text in lines: a shorter one ends its paragraph */
    LONGEST_LINE = 256, /* of such a text */
};

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

cli_live cli_live_new(FILE *stream, int quiet) {
    return (cli_live){.stream = stream, .quiet = quiet, .live = isatty(fileno(stream)), .last = now()};
}

int cli_live_due(const cli_live *line) {
    return !line->quiet && now() - line->last >= (line->live ? LIVE_SECONDS : PLAIN_SECONDS);
}

/* ---- width --------------------------------------------------------------------------------- */

/* Of stdout, or of stderr where that alone is a terminal. */
static size_t columns_of_terminal(void) {
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 || ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0)
        return size.ws_col;
    return 0;
}

static size_t columns_of_environment(void) {
    const char *text = getenv("COLUMNS");
    long columns = text != NULL ? strtol(text, NULL, 10) : 0;
    return columns > 0 && columns <= MOST_COLUMNS ? (size_t)columns : 0;
}

size_t cli_live_columns(void) {
    size_t terminal = columns_of_terminal(), environment = columns_of_environment();
    size_t columns = environment == 0 || (terminal > 0 && terminal < environment) ? terminal : environment;
    if (columns == 0)
        return USUAL_COLUMNS;
    return columns > FEWEST_COLUMNS ? columns : FEWEST_COLUMNS;
}

/* The cursor behind a line that is as wide as the terminal is in the next one, on some of them. */
static size_t room(void) {
    return cli_live_columns() - 1;
}

/* Where to cut a text that is longer than `most`: not inside a character of several bytes. */
static size_t whole_characters(const char *text, size_t most) {
    while (most > 1 && ((unsigned char)text[most] & 0xC0) == 0x80)
        most--;
    return most;
}

/* Cuts off fields from the right until the text fits; what is left of the first one, if not even that does. */
static void leave_out_fields(char *text, size_t most) {
    size_t length = strlen(text);
    while (length > most) {
        while (length > 0 && !(text[length] == ' ' && text[length - 1] == ' '))
            length--;
        if (length == 0)
            length = whole_characters(text, most) + 1;
        text[--length] = '\0';
    }
}

/* ---- drawing ------------------------------------------------------------------------------- */

void cli_live_draw(cli_live *line, const char *format, ...) {
    char text[LINE_BYTES];
    va_list arguments;
    cli_live_wipe(line);
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (line->live)
        leave_out_fields(text, room());
    fprintf(line->stream, line->live ? "%s" : "%s\n", text);
    cli_flush();
    line->drawn = line->live;
    line->last = now();
}

cli_live cli_live_choosing(int quiet) {
    cli_live line = cli_live_new(stderr, quiet);
    if (line.live)
        cli_live_draw(&line, "measuring what each way to keep values costs  a minute or two for a large network");
    return line;
}

void cli_live_wipe(cli_live *line) {
    if (!line->drawn)
        return;
    fputs("\r\033[K", line->stream);
    cli_flush();
    line->drawn = 0;
}

/* ---- lines that stay ----------------------------------------------------------------------- */

/* Whether the place is inside of 'quoted words', as commands are; not behind the apostrophe of a genitive. */
static bool is_quoted(const char *text, size_t at) {
    bool quoted = false;
    for (size_t i = 0; i < at; i++)
        if (text[i] == '\'')
            quoted = quoted ? isalnum((unsigned char)text[i + 1]) : i == 0 || text[i - 1] == ' ';
    return quoted;
}

/* What a line consists of: fields and lists, best folded between them, or sentences. */
typedef enum { FIELDS, SENTENCES } content;

/* Whether the space at `at` is between a number and its unit: "66.2 MB". */
static bool is_before_unit(const char *text, size_t at) {
    return isdigit((unsigned char)text[at - 1]) && (isalpha((unsigned char)text[at + 1]) || text[at + 1] == '%');
}

/* How good a place the space at `at` is to fold a line; 0: it is none. */
static int quality_of_fold(content of, const char *text, size_t at) {
    if (at == 0 || text[at] != ' ')
        return 0;
    if (of == FIELDS && text[at - 1] == ' ')
        return 4;
    if (is_quoted(text, at) || is_before_unit(text, at))
        return 1;
    return of == FIELDS && strchr(",;:", text[at - 1]) != NULL ? 3 : 2;
}

/* The last place among the best ones that leave at most so many bytes in front of them, and not too few. */
static size_t find_fold(content of, const char *text, size_t least, size_t most) {
    size_t place = whole_characters(text, most);
    int best = 0;
    for (size_t i = most; i > least; i--)
        if (quality_of_fold(of, text, i) > best) {
            best = quality_of_fold(of, text, i);
            place = i;
        }
    return place;
}

/* What is folded begins below column `indentation`, and in front of it a line is not folded. */
static void print_folded(FILE *stream, content of, const char *text, size_t indentation, size_t columns) {
    size_t most = columns, least = indentation > columns / 3 ? indentation : columns / 3;
    while (strlen(text) > most) {
        size_t length = find_fold(of, text, least, most), shown = length;
        while (shown > 1 && text[shown - 1] == ' ')
            shown--;
        fprintf(stream, "%.*s\n%*s", (int)shown, text, (int)indentation, "");
        text += length + strspn(text + length, " ");
        most = columns - indentation;
        least = most / 3;
    }
    fprintf(stream, "%s\n", text);
}

void cli_print_hanging(FILE *stream, const char *text, size_t indentation) {
    size_t columns = isatty(fileno(stream)) ? room() : strlen(text);
    print_folded(stream, SENTENCES, text, indentation + LEAST_TEXT <= columns ? indentation : INDENTATION, columns);
}

void cli_print_folded(FILE *stream, const char *text) {
    cli_print_hanging(stream, text, INDENTATION);
}

/* Whether the next line goes on with a sentence of this one, which ends at `end`. */
static bool goes_on(const char *line, const char *end) {
    return end - line > FULL_LINE && *line != ' ' && end[1] != ' ' && end[1] != '\n' && end[1] != '\0';
}

void cli_print_paragraphs(const char *text) {
    char paragraph[LINE_BYTES];
    bool terminal = isatty(STDOUT_FILENO);
    size_t used = 0;
    for (const char *end; (end = strchr(text, '\n')) != NULL; text = end + 1) {
        used += (size_t)snprintf(paragraph + used, sizeof paragraph - used, "%.*s", (int)(end - text), text);
        if (terminal && goes_on(text, end) && used + 1 < sizeof paragraph - LONGEST_LINE) {
            paragraph[used++] = ' ';
            continue;
        }
        cli_print_hanging(stdout, paragraph, strspn(paragraph, " "));
        used = 0;
    }
    fputs(text, stdout);
}

void cli_live_print(cli_live *line, const char *format, ...) {
    char text[LINE_BYTES];
    va_list arguments;
    if (line->quiet)
        return;
    cli_live_wipe(line);
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    print_folded(stdout, FIELDS, text, INDENTATION, line->live ? room() : sizeof text);
    cli_flush();
}
