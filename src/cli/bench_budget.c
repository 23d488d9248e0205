/* --memory of the benchmarks: beside the methods that are named, what would be chosen for so many bytes is measured. */
#include "bench.h"

#include "cli.h"
#include "live.h"

#include <division/options.h>
#include <string.h>

enum { NUMBER_BYTES = 32 };

/* The options of a training of the network. */
static dv_status options_of(const bench_network *network, const bench_images *images, dv_options *options,
                            dv_error *error) {
    char numbers[4][NUMBER_BYTES];
    const int values[4] = {network->batch, network->classes, network->side, network->threads};
    for (int i = 0; i < 4; i++)
        snprintf(numbers[i], NUMBER_BYTES, "%d", values[i]);
    const char *const wanted[][2] = {{"model", network->model},
                                     {"precision", bench_precisions[network->precision]},
                                     {"batch", numbers[0]},
                                     {"classes", numbers[1]},
                                     {"side", numbers[2]},
                                     {"threads", numbers[3]},
                                     {"freeze", network->freeze},
                                     {"tune", network->tune},
                                     {"data", images->data},
                                     {"init", images->init},
                                     {"normalise", images->normalise}};
    dv_status status = DV_OK;
    *options = dv_options_default();
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted && status == DV_OK; i++)
        if (wanted[i][1] != NULL)
            status = dv_options_set(options, wanted[i][0], wanted[i][1], error);
    return status;
}

static dv_status choose(dv_options *options, dv_dataset *data, dv_error *error) {
    dv_chosen chosen;
    size_t bytes;
    dv_status status = dv_options_memory(options, &bytes, error);
    return status == DV_OK ? dv_options_choose(options, data, &chosen, error) : status;
}

/* What is chosen for each of the budgets in methods->at, from the `first` on, in their place. */
static dv_status choose_all(const bench_network *network, const bench_images *images, bench_methods *methods, int first,
                            dv_dataset *data, dv_error *error) {
    dv_status status = DV_OK;
    for (int i = first; i < methods->count && status == DV_OK; i++) {
        dv_options options;
        char *method = methods->chosen[i - first];
        status = options_of(network, images, &options, error);
        if (status == DV_OK)
            status = dv_options_set(&options, "memory", methods->at[i], error);
        if (status == DV_OK)
            status = choose(&options, data, error);
        if (status == DV_OK && (size_t)snprintf(method, BENCH_CHOSEN_BYTES, "%s", options.method) >= BENCH_CHOSEN_BYTES)
            status = cli_error(error, DV_ERROR_OPTION,
                               "--memory: %s: what is chosen has more than %d characters: leave it out", methods->at[i],
                               BENCH_CHOSEN_BYTES - 1);
        methods->at[i] = method;
    }
    return status;
}

/* Cuts the list into budgets -> methods->at, behind the methods. */
static int read_budgets(bench_methods *methods, const char *text) {
    size_t length = strlen(text), used = 0;
    if (length >= sizeof methods->budgets)
        return cli_wrong_call("--memory: the list is longer than %zu characters: give fewer budgets",
                              sizeof methods->budgets - 1);
    memcpy(methods->budgets, text, length + 1);
    for (char *piece = methods->budgets; used <= length; piece = methods->budgets + used) {
        size_t piece_length = strcspn(piece, ",");
        piece[piece_length] = '\0';
        used += piece_length + 1;
        if (methods->count == BENCH_MOST_ITEMS)
            return cli_wrong_call("--memory: '%s' and the methods are more than %d: give fewer", text,
                                  BENCH_MOST_ITEMS);
        methods->at[methods->count++] = piece;
    }
    return CLI_CONTINUE;
}

int bench_methods_within(bench_methods *methods, const char *memory, const bench_network *network,
                         const bench_images *images) {
    int first = methods->count, code = memory != NULL ? read_budgets(methods, memory) : CLI_CONTINUE;
    dv_dataset *data = NULL;
    dv_error error;
    if (code != CLI_CONTINUE || memory == NULL)
        return code;
    dv_status status = images->data != NULL ? dv_dataset_open(images->data, &data, &error) : DV_OK;
    cli_live line = cli_live_choosing(0);
    if (status == DV_OK)
        status = choose_all(network, images, methods, first, data, &error);
    cli_live_wipe(&line);
    dv_dataset_close(data);
    return status == DV_OK ? CLI_CONTINUE : cli_report(&error);
}
