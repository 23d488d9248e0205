/* division bench: the benchmarks, one subcommand each. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

static const cli_command benchmarks[] = {
    {"codec", "encode and decode next to memcpy, over the maps of real networks", cli_bench_codec},
    {"memory", "what training a network takes, with each method", cli_bench_memory},
    {"throughput", "images per second of training a network, with each method", cli_bench_throughput},
    {"gradient", "the noise that methods put into the gradient", cli_bench_gradient},
    {"worker", "trains on request: what memory and throughput start", cli_bench_worker},
    {NULL, NULL, NULL},
};

static int print_help(void) {
    printf("Usage: division bench BENCHMARK [options]\n\nMeasures speed, memory and noise.\n\nBenchmarks:\n");
    cli_list_commands(benchmarks);
    return cli_finish();
}

int cli_bench(int argc, char **argv) {
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
        return print_help();
    if (argc < 2)
        return cli_wrong_call("bench: which one is missing: see 'division bench --help'");
    return cli_dispatch(benchmarks, "division bench", argc - 1, argv + 1);
}
