/* division bench: the benchmarks, one subcommand each. */
#include "cli.h"

static const cli_command benchmarks[] = {
    {"codec", "encode and decode next to memcpy, over the maps of real networks", cli_bench_codec},
    {"memory", "what training a network takes, with each method", cli_bench_memory},
    {"throughput", "images per second of training a network, with each method", cli_bench_throughput},
    {"ranks", "what processes that train together lose to the network", cli_bench_ranks},
    {"gradient", "the noise that methods put into the gradient", cli_bench_gradient},
    {"paper", "the paper's evaluation: all that follows, and a page", cli_bench_paper},
    {"paper-memory", "ResNet-50 and WRN-50-2 with batches of 64 to 512, ResNet-164", cli_bench_paper},
    {"paper-throughput", "ResNet-50 and ResNet-18 in f32 and bf16", cli_bench_paper},
    {"paper-noise", "noise in the gradient after three epochs of CIFAR-10", cli_bench_paper},
    {"paper-accuracy", "trainings on CIFAR-10; with --full the published ones", cli_bench_paper},
    {"worker", "trains on request: what memory and throughput start", cli_bench_worker},
    {NULL, NULL, NULL},
};

int cli_bench(int argc, char **argv) {
    static const cli_group group = {"bench", "BENCHMARK", "Benchmarks", "Measures speed, memory and noise.\n",
                                    benchmarks};
    return cli_call_group(&group, argc, argv);
}
