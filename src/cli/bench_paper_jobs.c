/* The jobs of the evaluation that are calls of other commands: trainings into folders of runs, which go on where they
 * stopped, and the noise of gradients at the weights that one of them left. */
#include "bench_paper.h"

#include "cli.h"

#include <division/folder.h>
#include <division/options.h>
#include <stdarg.h>
#include <string.h>

enum { MOST_ARGUMENTS = 32, ARGUMENT_BYTES = PAPER_PATH_BYTES + BENCH_METHODS_BYTES };

/* The data sets of the recipes: how many images an epoch has. */
static const struct {
    const char *kind;
    double images;
} datasets[] = {{"cifar10", 50000}, {"cifar100", 50000}, {"folder", 1281167}, {"synthetic", 64}};

/* ---- arguments of a call ------------------------------------------------------------------- */

typedef struct call {
    char text[MOST_ARGUMENTS][ARGUMENT_BYTES];
    char *at[MOST_ARGUMENTS + 1];
    int count;
} call;

static void add(call *c, const char *format, ...) DV_PRINTF(2, 3);
static void add(call *c, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(c->text[c->count], ARGUMENT_BYTES, format, arguments);
    va_end(arguments);
    c->at[c->count] = c->text[c->count];
    c->at[++c->count] = NULL;
}

/* "--name=text", unless the text is NULL. */
static void add_option(call *c, const char *name, const char *text) {
    if (text != NULL)
        add(c, "--%s=%s", name, text);
}

static void add_number(call *c, const char *name, int number) {
    if (number > 0)
        add(c, "--%s=%d", name, number);
}

/* ---- trainings ----------------------------------------------------------------------------- */

void paper_run_path(const paper_row *row, int seed, char path[PAPER_PATH_BYTES]) {
    snprintf(path, PAPER_PATH_BYTES, "%.400s/%s/%s-%d", paper.out, row->folder, row->run, seed);
}

static dv_status read_options(const paper_row *row, dv_options *options, dv_error *error) {
    char path[PAPER_PATH_BYTES];
    snprintf(path, sizeof path, "%.400s/%s", paper.recipes, row->name);
    *options = dv_options_default();
    dv_status status = dv_options_read(options, path, error);
    if (status == DV_OK && paper.precision != NULL)
        status = dv_options_set(options, "precision", paper.precision, error);
    return status;
}

/* The data of a recipe, "cifar10:data/cifar10", in the folder that the call says. */
static void data_of(const dv_options *options, char text[PAPER_PATH_BYTES]) {
    const char *path = strchr(options->data, ':');
    const char *name = path != NULL && strchr(path, '/') != NULL ? strrchr(path, '/') + 1 : "";
    if (paper.scale->data != NULL)
        snprintf(text, PAPER_PATH_BYTES, "%s", paper.scale->data);
    else
        snprintf(text, PAPER_PATH_BYTES, "%.*s:%.400s/%.100s", (int)strcspn(options->data, ":"), options->data,
                 paper.data, name);
}

int paper_read_recipe(const paper_row *row, bench_job *job) {
    static char models[BENCH_MOST_JOBS][DV_NAME_BYTES]; /* they outlive the options */
    static int count;
    dv_options options;
    dv_error error;
    if (read_options(row, &options, &error) != DV_OK) {
        cli_report(&error);
        return cli_fail("recipes are looked for in %s: give their folder with --recipes", paper.recipes);
    }
    snprintf(models[count % BENCH_MOST_JOBS], DV_NAME_BYTES, "%s", options.model);
    job->network.model = models[count++ % BENCH_MOST_JOBS];
    job->network.batch = (int)options.batch;
    job->network.precision = options.precision == DV_BF16;
    job->steps = paper.scale->epochs > 0 ? paper.scale->epochs : row->epochs > 0 ? row->epochs : (int)options.epochs;
    return CLI_SUCCESS;
}

/* Lines of the log: epochs that are complete. */
static int epochs_done(const char *run) {
    char path[PAPER_PATH_BYTES + 16];
    int lines = 0, character;
    snprintf(path, sizeof path, "%s/%s", run, DV_FOLDER_LOG);
    FILE *file = fopen(path, "r");
    while (file != NULL && (character = getc(file)) != EOF)
        lines += character == '\n';
    if (file != NULL)
        fclose(file);
    return lines;
}

static int training_known(const bench_session *session, const bench_job *job) {
    (void)session;
    char path[PAPER_PATH_BYTES], name[PAPER_PATH_BYTES + 16], line[BENCH_LINE_BYTES] = "";
    paper_run_path(job->what, job->number, path);
    snprintf(name, sizeof name, "%s/%s", path, DV_FOLDER_SUMMARY);
    FILE *file = fopen(name, "r");
    size_t got = file != NULL ? fread(line, 1, sizeof line - 1, file) : 0;
    if (file != NULL)
        fclose(file);
    return got > 0 && strstr(line, "\"stopped\": false") != NULL && epochs_done(path) >= job->steps;
}

static double images_of(const char *data) {
    for (size_t i = 0; i < sizeof datasets / sizeof *datasets; i++)
        if (strncmp(data, datasets[i].kind, strlen(datasets[i].kind)) == 0 && data[strlen(datasets[i].kind)] == ':')
            return datasets[i].images;
    return 0;
}

/* An epoch, with its test, which takes about an eighth of the time. */
static double training_seconds(const bench_session *session, const bench_job *job, double per_image) {
    (void)session;
    char path[PAPER_PATH_BYTES], data[PAPER_PATH_BYTES];
    dv_options options;
    paper_run_path(job->what, job->number, path);
    if (read_options(job->what, &options, NULL) != DV_OK)
        return 0;
    data_of(&options, data);
    int left = job->steps - epochs_done(path);
    return left > 0 ? 1.125 * left * images_of(data) * per_image : 0;
}

static int train(bench_session *session, const bench_job *job, char line[BENCH_LINE_BYTES]) {
    static call c;
    const paper_row *row = job->what;
    char path[PAPER_PATH_BYTES], log[PAPER_PATH_BYTES + 16], data[PAPER_PATH_BYTES];
    dv_options options;
    dv_error error;
    (void)session;
    (void)line;
    if (read_options(row, &options, &error) != DV_OK)
        return cli_report(&error);
    paper_run_path(row, job->number, path);
    snprintf(log, sizeof log, "%s.txt", path);
    data_of(&options, data);
    c.count = 0;
    add(&c, "division");
    add(&c, "train");
    add(&c, "%.400s/%s", paper.recipes, row->name);
    add(&c, "--resume");
    add(&c, "--out=%s", path);
    add(&c, "--data=%s", data);
    add(&c, "--method=%s", job->network.method);
    add(&c, "--seed=%d", job->number);
    add_number(&c, "epochs", job->steps);
    add_number(&c, "threads", paper.threads);
    add_option(&c, "precision", paper.precision);
    add_option(&c, "batch", paper.scale->draws);
    add_option(&c, "accumulate", paper.scale->draws != NULL ? "1" : NULL);
    return bench_call(c.at, log, NULL);
}

const bench_kind paper_training_kind = {.known = training_known, .seconds = training_seconds, .measure = train};

/* ---- noise --------------------------------------------------------------------------------- */

static const char *const gradient_data = "cifar10";
enum { GRADIENT_BATCHES = 24, GRADIENT_DRAWS = 24 };

static void gradient_data_text(char text[PAPER_PATH_BYTES]) {
    if (paper.scale->data != NULL)
        snprintf(text, PAPER_PATH_BYTES, "%s", paper.scale->data);
    else
        snprintf(text, PAPER_PATH_BYTES, "%s:%.400s/%s", gradient_data, paper.data, gradient_data);
}

static const char *find_gradient(const bench_job *job) {
    char head[BENCH_LINE_BYTES], data[PAPER_PATH_BYTES];
    dv_json json;
    gradient_data_text(data);
    dv_json_to_buffer(&json, head, sizeof head);
    dv_json_object(&json, NULL);
    dv_json_text(&json, "model", job->network.model);
    dv_json_text(&json, "data", data);
    dv_json_integer(&json, "batch", job->network.batch);
    dv_json_text(&json, "method", job->network.method);
    (void)dv_json_finish(&json, NULL); /* a beginning alone */
    strncat(head, ", ", sizeof head - strlen(head) - 1);
    return bench_output_find(job->output, head);
}

/* Exact gradients of all batches; for each draw one more, and the method's. */
static double gradient_seconds(const bench_session *session, const bench_job *job, double per_image) {
    (void)session;
    return (GRADIENT_BATCHES + 2 * GRADIENT_DRAWS) * job->network.batch * per_image;
}

static int measure_gradient(bench_session *session, const bench_job *job, char line[BENCH_LINE_BYTES]) {
    static call c;
    char run[PAPER_PATH_BYTES], data[PAPER_PATH_BYTES];
    (void)session;
    paper_run_path(job->what, 1, run);
    gradient_data_text(data);
    c.count = 0;
    add(&c, "division");
    add(&c, "bench");
    add(&c, "gradient");
    add(&c, "--json");
    add(&c, "--model=%s", job->network.model);
    add(&c, "--batch=%d", job->network.batch);
    add(&c, "--methods=%s", job->network.method);
    add(&c, "--data=%s", data);
    add(&c, "--init=%s/%s", run, DV_FOLDER_LAST);
    add_number(&c, "threads", paper.threads);
    add_option(&c, "batches", paper.scale->draws);
    add_option(&c, "draws", paper.scale->draws);
    return bench_call(c.at, NULL, line);
}

static void gradient_heading(int width) {
    printf("%-19s %6s  %-*s %12s %10s %7s\n", "model", "batch", width, "method", "activations", "variance", "mean");
}

static void gradient_row(const char *line, int width) {
    char model[BENCH_METHODS_BYTES], method[BENCH_METHODS_BYTES], bytes[CLI_BYTES_TEXT];
    bench_line_text(line, "model", model, sizeof model);
    bench_line_text(line, "method", method, sizeof method);
    printf("%-19s %6.0f  %-*s %12s %10.4f %7.2f\n", model, bench_line_number(line, "batch"), width, method,
           cli_bytes_text(bench_line_number(line, "activation_bytes"), bytes),
           bench_line_number(line, "variance_ratio"), bench_line_number(line, "mean_ratio"));
}

const bench_kind paper_gradient_kind = {.known = bench_known_line,
                                        .find = find_gradient,
                                        .seconds = gradient_seconds,
                                        .measure = measure_gradient,
                                        .heading = gradient_heading,
                                        .row = gradient_row,
                                        .figure = "parameter"};
