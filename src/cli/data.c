/* division data: preparing and looking at data, one subcommand each. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

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
