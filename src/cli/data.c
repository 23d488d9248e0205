/* division data: preparing and looking at data, one subcommand each. */
#include "cli.h"

static const cli_command commands[] = {
    {"fetch", "download CIFAR-10 or CIFAR-100", cli_data_fetch},
    {"lmdb", "make LMDB files of an image folder", cli_data_lmdb},
    {"show", "count classes, draw a sheet of varied images", cli_data_show},
    {"speed", "measure how fast batches can be made", cli_data_speed},
    {NULL, NULL, NULL},
};

int cli_data(int argc, char **argv) {
    static const cli_group group = {"data", "COMMAND", "Commands", "Prepares and shows data.\n", commands};
    return cli_call_group(&group, argc, argv);
}
