/* What the subcommands of data share: a line that is drawn anew while something takes long. */
#ifndef DV_CLI_DATA_H
#define DV_CLI_DATA_H

#include <division/status.h>

/* A line on stdout: live on a terminal; elsewhere a line of its own every minute. */
typedef struct data_line {
    int quiet, live, drawn;
    double last; /* when it was drawn, in seconds */
} data_line;

data_line data_line_new(int quiet);

/* Whether it is time to draw it again. */
int data_line_due(data_line *line);
void data_line_draw(data_line *line, const char *format, ...) DV_PRINTF(2, 3);

/* Takes it away, before something else is printed. */
void data_line_wipe(data_line *line);

#endif
