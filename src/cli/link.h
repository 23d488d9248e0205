/* Networks on the command line: "10Gb/s", "50us". */
#ifndef DV_CLI_LINK_H
#define DV_CLI_LINK_H

#include <division/tools/scaling.h>

/* Reads both. Returns CLI_CONTINUE, or an exit code after a message. */
int cli_link_read(const char *bandwidth, const char *latency, dv_link *link);

/* "1.2 ms". Returns `text`. */
enum { CLI_SECONDS_TEXT = 32 };
const char *cli_seconds_text(double seconds, char text[CLI_SECONDS_TEXT]);

#endif
