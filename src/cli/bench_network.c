/* What the benchmarks of whole networks take from the command line, and the plans that they make of it. */
#include "bench.h"

#include "cli.h"

#include <division/models.h>
#include <division/threads.h>
#include <division/tune.h>
#include <stdlib.h>
#include <string.h>

const char *const bench_precisions[] = {"f32", "bf16", NULL};

/* ---- lists --------------------------------------------------------------------------------- */

/* True for "bits=4" and "bits=4:...", false for "division" and "division:block=8". */
static int continues_method(const char *piece) {
    return piece[strcspn(piece, ":=")] == '=';
}

/* Copies the text, with the names of all methods for the word "all". Returns 0 where there is no room. */
static int copy_list(bench_methods *methods, const char *text) {
    size_t used = 0, room = sizeof methods->text;
    for (const char *piece = text; piece != NULL && used < room; piece = strchr(piece, ',')) {
        piece += *piece == ',';
        size_t length = strcspn(piece, ",");
        int every = length == strlen("all") && strncmp(piece, "all", length) == 0;
        if (piece != text)
            used += (size_t)snprintf(methods->text + used, room - used, ",");
        for (size_t i = 0; every && used < room && dv_method_name_at(i) != NULL; i++)
            used += (size_t)snprintf(methods->text + used, room - used, "%s%s", i > 0 ? "," : "", dv_method_name_at(i));
        if (!every && used < room)
            used += (size_t)snprintf(methods->text + used, room - used, "%.*s", (int)length, piece);
    }
    return used < room;
}

static void put_none_first(bench_methods *methods) {
    for (int i = methods->count - 1; i > 0; i--)
        if (strcmp(methods->at[i], "none") == 0) {
            memmove(methods->at + 1, methods->at, (size_t)i * sizeof *methods->at);
            methods->at[0] = "none";
            return;
        }
}

int bench_methods_read(bench_methods *methods, const char *text) {
    *methods = (bench_methods){.count = 0};
    if (!copy_list(methods, text))
        return cli_wrong_call("--methods: the list is longer than %zu characters: give fewer",
                              sizeof methods->text - 1);
    for (char *piece = methods->text, *next; piece != NULL; piece = next) {
        next = strchr(piece, ',');
        if (methods->count > 0 && continues_method(piece))
            piece[-1] = ','; /* where it was cut off */
        else if (*piece == '\0' || *piece == ',')
            return cli_wrong_call("--methods: '%s' has an empty place: give methods with commas between them", text);
        else if (methods->count == BENCH_MOST_ITEMS)
            return cli_wrong_call("--methods: '%s' are more than %d: give fewer", text, BENCH_MOST_ITEMS);
        else
            methods->at[methods->count++] = piece;
        if (next != NULL)
            *next++ = '\0';
    }
    put_none_first(methods);
    return CLI_CONTINUE;
}

int bench_batches_read(bench_batches *batches, const char *text) {
    *batches = (bench_batches){.count = 0};
    for (const char *rest = text;; rest++) {
        char *end;
        long long batch = strtoll(rest, &end, 10);
        if (end == rest || (*end != ',' && *end != '\0') || batch < 1 || batch > BENCH_MOST_BATCH)
            return cli_wrong_call("--batch: '%s' is not what it takes: give whole numbers from 1 to %d with commas "
                                  "between them",
                                  text, BENCH_MOST_BATCH);
        if (batches->count == BENCH_MOST_ITEMS)
            return cli_wrong_call("--batch: '%s' are more than %d: give fewer", text, BENCH_MOST_ITEMS);
        batches->at[batches->count++] = (int)batch;
        rest = end;
        if (*rest == '\0')
            return CLI_CONTINUE;
    }
}

int bench_methods_width(const bench_methods *methods) {
    size_t width = strlen("method");
    for (int i = 0; i < methods->count; i++)
        if (strlen(methods->at[i]) > width)
            width = strlen(methods->at[i]);
    return (int)width;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, by_value);
    return count % 2 != 0 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* ---- planning ------------------------------------------------------------------------------ */

void bench_use_threads(const bench_network *network) {
    (void)dv_set_threads(network->threads, NULL); /* its bounds are the option's */
}

dv_status bench_plan(const bench_network *network, dv_graph **graph, dv_plan **plan, dv_error *error) {
    dv_type type = network->precision != 0 ? DV_BF16 : DV_F32;
    dv_plan_options options = dv_plan_options_default();
    options.method = network->method;
    options.freeze = network->freeze;
    options.gradients = network->keep_gradients ? DV_GRADIENTS_KEPT : DV_GRADIENTS_TRANSIENT;
    dv_status status = dv_model_build(network->model, type, (size_t)network->batch, (size_t)network->classes,
                                      (size_t)network->side, graph, error);
    if (status != DV_OK)
        return status;
    dv_tune_options tune = dv_tune_options_default();
    status = dv_tune_parse(network->tune, &tune, error);
    if (status == DV_OK)
        status = dv_graph_tune(*graph, &options, &tune, NULL, error);
    if (status == DV_OK)
        status = dv_plan_new(*graph, &options, plan, error);
    if (status != DV_OK) {
        dv_graph_free(*graph);
        *graph = NULL;
    }
    return status;
}
