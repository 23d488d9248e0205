/* division data: preparing and looking at data, one subcommand each. */
#include "data.h"

#include "cli.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const cli_command commands[] = {
    {"fetch", "download CIFAR-10 or CIFAR-100", cli_data_fetch},
    {"lmdb", "make LMDB files of an image folder", cli_data_lmdb},
    {"show", "count classes, draw a sheet of varied images", cli_data_show},
    {"speed", "measure how fast batches can be made", cli_data_speed},
    {NULL, NULL, NULL},
};

static int print_help(void) {
    printf("Usage: division data COMMAND [options]\n\nPrepares and shows data.\n\nCommands:\n");
    cli_list_commands(commands);
    return cli_finish();
}

int cli_data(int argc, char **argv) {
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
        return print_help();
    if (argc < 2)
        return cli_wrong_call("data: the command is missing: see 'division data --help'");
    return cli_dispatch(commands, "division data", argc - 1, argv + 1);
}

/* ---- the line ------------------------------------------------------------------------------ */

static const double LIVE_SECONDS = 0.1, PLAIN_SECONDS = 60;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

data_line data_line_new(int quiet) {
    return (data_line){.quiet = quiet, .live = isatty(STDOUT_FILENO), .last = now()};
}

int data_line_due(data_line *line) {
    return !line->quiet && now() - line->last >= (line->live ? LIVE_SECONDS : PLAIN_SECONDS);
}

void data_line_draw(data_line *line, const char *format, ...) {
    va_list arguments;
    data_line_wipe(line);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    if (!line->live)
        printf("\n");
    fflush(stdout);
    line->drawn = line->live;
    line->last = now();
}

void data_line_wipe(data_line *line) {
    if (line->drawn)
        fputs("\r\033[K", stdout);
    line->drawn = 0;
}
