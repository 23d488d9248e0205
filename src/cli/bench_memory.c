/* division bench memory: what training takes with each method: planned, and resident at the peak of a process that
 * does nothing else.
 *
 * A configuration that does not fit in memory is not run; what stands for it is its plan. */
#include "bench.h"

#include "cli.h"

#include <division/tools/json.h>

enum { STEPS = 3 };

/* What one configuration takes. */
typedef struct footprint {
    dv_plan_summary plan;
    size_t peak_bytes; /* 0: not measured */
} footprint;

static int plan_footprint(const bench_network *network, footprint *out) {
    dv_graph *graph;
    dv_plan *plan;
    dv_error error;
    *out = (footprint){.peak_bytes = 0};
    if (bench_plan(network, &graph, &plan, &error) != DV_OK)
        return cli_report(&error);
    out->plan = dv_plan_totals(plan);
    dv_plan_free(plan);
    dv_graph_free(graph);
    return CLI_SUCCESS;
}

/* Whether a process that trains will fit: its plan, and what the libraries may take beside it. */
static int fits(const footprint *f) {
    return 1.05 * (double)f->plan.planned + 1e8 <= (double)dv_memory_available();
}

static int measure_peak(const bench_network *network, footprint *f) {
    bench_worker worker;
    bench_answer answer;
    int code = bench_worker_start(&worker, network);
    if (code == CLI_SUCCESS)
        code = bench_worker_train(&worker, STEPS, &answer);
    if (code == CLI_SUCCESS)
        code = bench_worker_end(&worker);
    if (code == CLI_SUCCESS)
        f->peak_bytes = answer.peak_bytes;
    return code;
}

/* ---- printing ------------------------------------------------------------------------------ */

/* Against none: what was measured of both, or else what was planned for both. */
static double total_ratio(const footprint *none, const footprint *f) {
    if (none->peak_bytes > 0 && f->peak_bytes > 0)
        return (double)none->peak_bytes / (double)f->peak_bytes;
    return (double)none->plan.planned / (double)f->plan.planned;
}

static double activation_ratio(const footprint *none, const footprint *f) {
    return (double)none->plan.activations / (double)f->plan.activations;
}

static void print_json(const bench_network *network, const footprint *none, const footprint *f) {
    dv_json json;
    dv_json_to_file(&json, stdout);
    dv_json_object(&json, NULL);
    dv_json_text(&json, "model", network->model);
    dv_json_integer(&json, "batch", network->batch);
    dv_json_text(&json, "method", network->method);
    dv_json_text(&json, "precision", bench_precisions[network->precision]);
    dv_json_unsigned(&json, "activation_bytes", f->plan.activations);
    dv_json_unsigned(&json, "planned_bytes", f->plan.planned);
    if (f->peak_bytes > 0)
        dv_json_unsigned(&json, "peak_bytes", f->peak_bytes);
    else
        dv_json_null(&json, "peak_bytes");
    dv_json_number(&json, "activation_ratio", activation_ratio(none, f));
    dv_json_number(&json, "total_ratio", total_ratio(none, f));
    dv_json_boolean(&json, "measured", f->peak_bytes > 0);
    dv_json_end(&json);
    (void)dv_json_finish(&json, NULL); /* cli_finish tells */
}

static void print_heading(int width) {
    printf("%-16s %6s  %-*s %-4s %12s %7s %10s %10s %7s\n", "model", "batch", width, "method", "", "activations",
           "ratio", "planned", "peak", "ratio");
}

static void print_row(const bench_network *network, int width, const footprint *none, const footprint *f) {
    char activations[CLI_BYTES_TEXT], planned[CLI_BYTES_TEXT], peak[CLI_BYTES_TEXT];
    printf("%-16s %6d  %-*s %-4s %12s %7.2f %10s %10s %7.2f\n", network->model, network->batch, width, network->method,
           bench_precisions[network->precision], cli_bytes_text((double)f->plan.activations, activations),
           activation_ratio(none, f), cli_bytes_text((double)f->plan.planned, planned),
           f->peak_bytes > 0 ? cli_bytes_text((double)f->peak_bytes, peak) : "not run", total_ratio(none, f));
}

/* ---- the command --------------------------------------------------------------------------- */

/* All methods at one batch. All are planned first, so that a wrong one is told before any is run. */
static int measure_all(bench_network network, const bench_methods *methods, footprint *all) {
    int code = CLI_SUCCESS;
    for (int i = 0; i < methods->count && code == CLI_SUCCESS; i++) {
        network.method = methods->at[i];
        code = plan_footprint(&network, &all[i]);
    }
    for (int i = 0; i < methods->count && code == CLI_SUCCESS; i++) {
        network.method = methods->at[i];
        if (fits(&all[i]))
            code = measure_peak(&network, &all[i]);
    }
    return code;
}

static int measure_batch(bench_network network, const bench_methods *methods, int heading, int json) {
    footprint all[BENCH_MOST_ITEMS] = {0}, none = {0};
    int place = bench_methods_none(methods), width = bench_methods_width(methods);
    int code = measure_all(network, methods, all);
    network.method = "none";
    if (code == CLI_SUCCESS && place < 0)
        code = plan_footprint(&network, &none);
    else if (code == CLI_SUCCESS)
        none = all[place];
    if (code == CLI_SUCCESS && heading)
        print_heading(width);
    for (int i = 0; i < methods->count && code == CLI_SUCCESS; i++) {
        network.method = methods->at[i];
        if (json)
            print_json(&network, &none, &all[i]);
        else
            print_row(&network, width, &none, &all[i]);
    }
    fflush(stdout);
    return code;
}

int cli_bench_memory(int argc, char **argv) {
    bench_network network = {.model = "resnet50"};
    const char *batch_text = "32", *method_text = "none,division";
    int json = 0;
    const dv_option options[] = {
        BENCH_NETWORK_OPTIONS(&network),
        {"batch", "N[,N...]", "images per step", CLI_TEXT(&batch_text)},
        {"methods", "LIST", "how values are kept: methods, with commas between them", CLI_TEXT(&method_text)},
        {"json", NULL, "print one JSON object per configuration", CLI_FLAG(&json)},
        CLI_OPTIONS_END,
    };
    const cli_usage usage = {
        .command = "bench memory",
        .summary = "Trains a network for a few steps with each method, each in a process of its own, and prints the\n"
                   "activation bytes, the bytes planned, the most memory that was resident, and how many times less\n"
                   "that is than with method none. What does not fit in memory is not run: its plan stands for it.\n",
        .options = options};
    bench_methods methods;
    bench_batches batches;
    int code = cli_parse(&usage, argc, argv, NULL);
    if (code == CLI_CONTINUE)
        code = bench_batches_read(&batches, batch_text);
    if (code == CLI_CONTINUE)
        code = bench_methods_read(&methods, method_text);
    if (code != CLI_CONTINUE)
        return code;
    bench_use_threads(&network);
    code = CLI_SUCCESS;
    for (int i = 0; i < batches.count && code == CLI_SUCCESS; i++) {
        network.batch = batches.at[i];
        code = measure_batch(network, &methods, i == 0 && !json, json);
    }
    return code == CLI_SUCCESS ? cli_finish() : code;
}
