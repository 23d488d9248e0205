/* A line that is drawn anew while something takes long, and lines that stay. */
#ifndef DV_CLI_LIVE_H
#define DV_CLI_LIVE_H

#include <division/status.h>
#include <stddef.h>
#include <stdio.h>

/* A line on stdout or stderr: live on a terminal; elsewhere a line of its own every minute. */
typedef struct cli_live {
    FILE *stream;
    int quiet, live, drawn;
    double last; /* when it was drawn, in seconds */
} cli_live;

cli_live cli_live_new(FILE *stream, int quiet);

/* Whether it is time to draw it again. */
int cli_live_due(const cli_live *line);

/* Draws it. Its fields stand two spaces apart, the most important first: on a terminal those that do not fit into its
 * width are left out. */
void cli_live_draw(cli_live *line, const char *format, ...) DV_PRINTF(2, 3);

/* Takes it away, before something else is printed. */
void cli_live_wipe(cli_live *line);

/* A live line on stderr that says what a choice by --memory is about, and how long it takes; elsewhere nothing. For
 * cli_live_wipe when it is made. */
cli_live cli_live_choosing(int quiet);

/* Prints a line that stays, in the place of the live one; nothing if that is quiet. On a terminal it is folded to the
 * width: between fields if it has some, else behind a comma, else between words. */
void cli_live_print(cli_live *line, const char *format, ...) DV_PRINTF(2, 3);

/* Prints a text and the end of its line; on a terminal it is folded between words, and not in a quoted command if it
 * can be helped: what is quoted may be copied. */
void cli_print_folded(FILE *stream, const char *text);

/* The same with another indentation of what is folded, which a line is not folded in front of. */
void cli_print_hanging(FILE *stream, const char *text, size_t indentation);

/* Prints lines of help to stdout: on a terminal, sentences that go on in the next line are joined, and every line is
 * folded below its own indentation. */
void cli_print_paragraphs(const char *text);

/* Columns of the terminal that stdout is, or stderr: what the terminal says now, or less where COLUMNS says less; 80
 * where neither says anything. */
size_t cli_live_columns(void);

#endif
