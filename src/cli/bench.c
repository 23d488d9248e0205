/* division bench: the benchmarks, one subcommand each. */
#include "cli.h"

static const cli_command benchmarks[] = {
    {"codec", "encode and decode next to memcpy, over the maps of real networks", cli_bench_codec},
    {"memory", "what training a network takes, with each method", cli_bench_memory},
    {"throughput", "images per second of training a network, with each method", cli_bench_throughput},
    {"gradient", "the noise that methods put into the gradient", cli_bench_gradient},
    {"worker", "trains on request: what memory and throughput start", cli_bench_worker},
    {NULL, NULL, NULL},
};

int cli_bench(int argc, char **argv) {
    static const cli_group group = {"bench", "BENCHMARK", "Benchmarks", "Measures speed, memory and noise.\n",
                                    benchmarks};
    return cli_call_group(&group, argc, argv);
}
