/* division bench memory: what training takes with each method: planned, and resident at the peak of a process that
 * does nothing else.
 *
 * A configuration that does not fit in memory is not run; what stands for it is its plan. Papers count in GiB:
 * activations are in both units where a figure was published. */
#include "bench_session.h"

#include "cli.h"

#include <division/tools/report.h>
#include <math.h>

enum { STEPS = 3, CELL_BYTES = 32 };

static const double GIBIBYTE = 1073741824;

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
static int fits(const bench_session *session, size_t planned) {
    double takes = 1.05 * (double)planned + 1e8;
    return takes <= (double)dv_memory_available() && (session->most <= 0 || takes <= session->most * 1e9);
}

static int measure_peak(const bench_network *network, int steps, footprint *f) {
    bench_worker worker;
    bench_answer answer;
    int code = bench_worker_start(&worker, network);
    if (code == CLI_SUCCESS)
        code = bench_worker_train(&worker, steps, &answer);
    if (code == CLI_SUCCESS)
        code = bench_worker_end(&worker);
    if (code == CLI_SUCCESS)
        f->peak_bytes = answer.peak_bytes;
    return code;
}

/* ---- lines --------------------------------------------------------------------------------- */

/* Against none: what was measured of both, or else what was planned for both. */
static double total_ratio(const footprint *none, const footprint *f) {
    if (none->peak_bytes > 0 && f->peak_bytes > 0)
        return (double)none->peak_bytes / (double)f->peak_bytes;
    return (double)none->plan.planned / (double)f->plan.planned;
}

static double activation_ratio(const footprint *none, const footprint *f) {
    return (double)none->plan.activations / (double)f->plan.activations;
}

/* Of images as large as published ones; NaN where there is no such figure. */
static double published_gibibytes(const bench_network *network) {
    return network->side > 0 ? NAN : dv_published_bytes(network->model, network->batch, network->method) / GIBIBYTE;
}

static void write_line(const bench_network *network, const footprint *none, const footprint *f, char *line) {
    dv_json json;
    dv_json_to_buffer(&json, line, BENCH_LINE_BYTES);
    bench_line_begin(&json, network);
    dv_json_unsigned(&json, "activation_bytes", f->plan.activations);
    dv_json_unsigned(&json, "planned_bytes", f->plan.planned);
    if (f->peak_bytes > 0)
        dv_json_unsigned(&json, "peak_bytes", f->peak_bytes);
    else
        dv_json_null(&json, "peak_bytes");
    dv_json_number(&json, "activation_ratio", activation_ratio(none, f));
    dv_json_number(&json, "total_ratio", total_ratio(none, f));
    dv_json_boolean(&json, "measured", f->peak_bytes > 0);
    dv_json_number(&json, "activation_gib", (double)f->plan.activations / GIBIBYTE);
    dv_json_number(&json, "published_gib", published_gibibytes(network));
    dv_json_end(&json);
    (void)dv_json_finish(&json, NULL); /* a line has room for the longest names */
}

static void print_heading(int width) {
    printf("%-19s %6s  %-*s %-4s %12s %9s %9s %7s %10s %10s %7s\n", "model", "batch", width, "method", "",
           "activations", "GiB", "published", "ratio", "planned", "peak", "ratio");
}

static const char *bytes_cell(const char *line, const char *key, const char *otherwise, char text[CLI_BYTES_TEXT]) {
    double bytes = bench_line_number(line, key);
    return isnan(bytes) ? otherwise : cli_bytes_text(bytes, text);
}

static void print_row(const char *line, int width) {
    char model[BENCH_METHODS_BYTES], method[BENCH_METHODS_BYTES], precision[CELL_BYTES], published[CELL_BYTES] = "";
    char activations[CLI_BYTES_TEXT], planned[CLI_BYTES_TEXT], peak[CLI_BYTES_TEXT];
    double told = bench_line_number(line, "published_gib");
    bench_line_text(line, "model", model, sizeof model);
    bench_line_text(line, "method", method, sizeof method);
    bench_line_text(line, "precision", precision, sizeof precision);
    if (!isnan(told))
        snprintf(published, sizeof published, "%.2f", told);
    printf("%-19s %6.0f  %-*s %-4s %12s %9.3f %9s %7.2f %10s %10s %7.2f\n", model, bench_line_number(line, "batch"),
           width, method, precision, bytes_cell(line, "activation_bytes", "", activations),
           bench_line_number(line, "activation_gib"), published, bench_line_number(line, "activation_ratio"),
           bytes_cell(line, "planned_bytes", "", planned), bytes_cell(line, "peak_bytes", "not run", peak),
           bench_line_number(line, "total_ratio"));
}

/* ---- measuring ----------------------------------------------------------------------------- */

/* What none takes at the same batch: planned, and measured if it was. */
static int footprint_of_none(const bench_job *job, footprint *none) {
    bench_network network = job->network;
    network.method = "none";
    int code = plan_footprint(&network, none);
    const char *line = bench_find_line_of(job, &network);
    double peak = line != NULL ? bench_line_number(line, "peak_bytes") : NAN;
    none->peak_bytes = isnan(peak) ? 0 : (size_t)peak;
    return code;
}

static int measure(bench_session *session, const bench_job *job, char line[BENCH_LINE_BYTES]) {
    footprint own, none;
    int code = plan_footprint(&job->network, &own);
    if (code == CLI_SUCCESS && fits(session, own.plan.planned))
        code = measure_peak(&job->network, job->steps, &own);
    if (code == CLI_SUCCESS)
        code = footprint_of_none(job, &none);
    if (code == CLI_SUCCESS)
        write_line(&job->network, &none, &own, line);
    return code;
}

static double seconds(const bench_session *session, const bench_job *job, double per_image) {
    return fits(session, job->planned) ? per_image * job->network.batch * job->steps : 0;
}

/* A line from a plan alone is measured after all where memory has come to allow it. */
static int known(const bench_session *session, const bench_job *job) {
    const char *line = bench_find_line(job);
    return line != NULL && (!isnan(bench_line_number(line, "peak_bytes")) || !fits(session, job->planned));
}

const bench_kind bench_memory_kind = {.known = known,
                                      .find = bench_find_line,
                                      .seconds = seconds,
                                      .measure = measure,
                                      .heading = print_heading,
                                      .row = print_row,
                                      .figure = "activation_bytes"};

/* ---- the command --------------------------------------------------------------------------- */

int cli_bench_memory(int argc, char **argv) {
    static bench_session session;
    bench_output output;
    bench_job job = {.kind = &bench_memory_kind, .output = &output, .network = {.model = "resnet50"}, .steps = STEPS};
    bench_lists lists = {.batches = "32", .methods = "none,division"};
    bench_session_begin(&session);
    const dv_option options[] = {
        BENCH_NETWORK_OPTIONS(&job.network),
        BENCH_SESSION_OPTIONS(&session, &lists),
        BENCH_LIMIT_OPTION(&session),
        CLI_OPTIONS_END,
    };
    const cli_usage usage = {
        .command = "bench memory",
        .summary = "Trains a network for a few steps with each method, each in a process of its own, and prints the\n"
                   "activation bytes, the bytes planned, the most memory that was resident, and how many times less\n"
                   "that is than with method none. What does not fit in memory is not run: its plan stands for it.\n"
                   "Progress goes to stderr.\n",
        .options = options};
    int code = cli_parse(&usage, argc, argv, NULL);
    return code == CLI_CONTINUE ? bench_lists_run(&lists, &session, &job) : code;
}
