/* The program: finds the command in a table and calls it. */
#include "cli.h"
#include "live.h"
#include "manual.h"
#include "recipe.h"
#include "start.h"

#include <division/info.h>
#include <division/version.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>

static const cli_command commands[] = {
    {"train", "train a network", cli_train},
    {"eval", "test a network that was trained", cli_eval},
    {"predict", "say what is on images", cli_predict},
    {"export", "write a network for inference elsewhere", cli_export},
    {"models", "list the networks there are", cli_models},
    {"methods", "list the ways to keep values, with their options", cli_methods},
    {"plan", "say what a training will take, layer by layer", cli_plan},
    {"codec", "pack and unpack a map, and say what it costs", cli_codec},
    {"data", "fetch, convert and show data", cli_data},
    {"bench", "measure speed and memory", cli_bench},
    {"report", "make a page with pictures of runs and benchmarks", cli_report_command},
    {"info", "version, processor, libraries", cli_info},
    {NULL, NULL, NULL},
};

static int print_help(void) {
    cli_print_paragraphs(
        "Usage: division COMMAND [options]\n\n"
        "Trains convolutional networks in a fraction of the memory: keeps what the backward pass needs of each\n"
        "activation map as block averages and two bits per element.\n\n"
        "Commands:\n");
    cli_list_commands(commands);
    printf("  %-10s %s\n\n", "help", "explain a command: division help COMMAND");
    printf("Environment:\n"
           "  DV_ISA           use this instruction set, one that 'division info' lists\n"
           "  DV_TUNE          how passes of convolutions are chosen without --tune\n"
           "  OMP_NUM_THREADS  use so many threads\n"
           "  OMP_WAIT_POLICY  how threads wait: asleep after a moment, unless you say active\n");
    return cli_finish();
}

static int print_version(void) {
    printf("division %s\n", dv_version());
    return cli_finish();
}

/* True if `text` is one of the two words. */
static int is_either(const char *text, const char *one, const char *other) {
    return strcmp(text, one) == 0 || strcmp(text, other) == 0;
}

/* "division help" and "division help COMMAND [SUBCOMMAND]": calls the command with --help. "division help --man": see
 * manual.h; "--recipes": the names that completions offer. */
static int help(int argc, char **argv) {
    enum { MOST_WORDS = 4 };
    char flag[] = "--help", *call[MOST_WORDS + 1];
    if (argc < 2 || is_either(argv[1], "--help", "-h"))
        return print_help();
    if (strcmp(argv[1], "--recipes") == 0)
        return cli_recipe_names();
    if (argv[1][0] == '-')
        return cli_manual(commands, argv[1]);
    int count = 0;
    for (int i = 1; i < argc && count < MOST_WORDS - 1; i++)
        call[count++] = argv[i];
    call[count++] = flag;
    call[count] = NULL;
    return cli_dispatch(commands, "division", count, call);
}

int main(int argc, char **argv) {
    dv_isa isa;
    dv_error error;
    start_with_open_streams();
    start_with_patient_threads(argv);
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is an error of the write, reported by cli_finish */
    signal(SIGXFSZ, SIG_IGN); /* and so is a file that may not become larger */
    if (dv_isa_picked(&isa, &error) != DV_OK) {
        cli_report(&error);
        return CLI_WRONG_CALL;
    }
    if (argc < 2 || is_either(argv[1], "--help", "-h"))
        return print_help();
    if (strcmp(argv[1], "--version") == 0)
        return print_version();
    if (strcmp(argv[1], "help") == 0)
        return help(argc - 1, argv + 1);
    return cli_dispatch(commands, "division", argc - 1, argv + 1);
}
