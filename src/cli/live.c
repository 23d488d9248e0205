/* The live line. */
#include "live.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static const double LIVE_SECONDS = 0.1, PLAIN_SECONDS = 60;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

cli_live cli_live_new(int quiet) {
    return (cli_live){.quiet = quiet, .live = isatty(STDOUT_FILENO), .last = now()};
}

int cli_live_due(const cli_live *line) {
    return !line->quiet && now() - line->last >= (line->live ? LIVE_SECONDS : PLAIN_SECONDS);
}

void cli_live_draw(cli_live *line, const char *format, ...) {
    va_list arguments;
    cli_live_wipe(line);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    if (!line->live)
        printf("\n");
    fflush(stdout);
    line->drawn = line->live;
    line->last = now();
}

void cli_live_wipe(cli_live *line) {
    if (!line->drawn)
        return;
    fputs("\r\033[K", stdout);
    fflush(stdout);
    line->drawn = 0;
}
