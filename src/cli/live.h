/* A line that is drawn anew while something takes long. */
#ifndef DV_CLI_LIVE_H
#define DV_CLI_LIVE_H

#include <division/status.h>

/* A line on stdout: live on a terminal; elsewhere a line of its own every minute. */
typedef struct cli_live {
    int quiet, live, drawn;
    double last; /* when it was drawn, in seconds */
} cli_live;

cli_live cli_live_new(int quiet);

/* Whether it is time to draw it again. */
int cli_live_due(const cli_live *line);
void cli_live_draw(cli_live *line, const char *format, ...) DV_PRINTF(2, 3);

/* Takes it away, before something else is printed. */
void cli_live_wipe(cli_live *line);

#endif
