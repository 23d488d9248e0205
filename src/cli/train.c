/* division train: trains a network, says how it goes, and leaves a folder with what came of it. */
#include "train.h"

#include "cli.h"
#include "options.h"

#include <division/json.h>
#include <division/models.h>

#include <omp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { CONFIG_BYTES = 4096, CLI_INTERRUPTED = 130 };

static const char *const precisions[] = {"f32", "bf16", NULL};

/* Everything that one training holds. */
typedef struct session {
    const train_settings *settings;
    const cli_option *table;
    dv_dataset *data;
    dv_dataset_shape shape;
    dv_graph *graph;
    dv_plan *plan;
    dv_run *run;
    dv_folder *folder; /* NULL: nothing is written */
    train_screen screen;
    dv_train_result result;
    double seconds, speed; /* sums over epochs */
    size_t epochs;
} session;

/* ---- interruption -------------------------------------------------------------------------- */

static volatile sig_atomic_t interrupted;

static void interrupt(int signal_number) {
    (void)signal_number;
    interrupted = 1;
}

/* The first signal ends training after the step; a second one, of the same kind, ends the program at once. */
static void catch_signals(void) {
    struct sigaction action = {.sa_handler = interrupt, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* ---- preparing ----------------------------------------------------------------------------- */

static dv_status fail(dv_error *error, dv_status status, const char *format, ...) DV_PRINTF(3, 4);

static dv_status fail(dv_error *error, dv_status status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    return error->status = status;
}

static dv_status open_data(session *s, dv_error *error) {
    dv_status status = dv_dataset_open(s->settings->data, &s->data, error);
    if (status != DV_OK)
        return status;
    s->shape = dv_dataset_describe(s->data);
    size_t batch = (size_t)s->settings->batch, classes = (size_t)s->settings->classes;
    if (classes > 0 && classes < s->shape.classes)
        return fail(error, DV_ERROR_OPTION, "--classes: %zu: the data has %zu: give as many or more", classes,
                    s->shape.classes);
    if (batch > s->shape.images[DV_TRAIN])
        return fail(error, DV_ERROR_OPTION, "--batch: %zu: the data has %zu images: use a smaller batch or more data",
                    batch, s->shape.images[DV_TRAIN]);
    return DV_OK;
}

static dv_status write_config(session *s, dv_error *error) {
    char text[CONFIG_BYTES];
    dv_json json;
    dv_json_to_buffer(&json, text, sizeof text - 1);
    dv_json_object(&json, NULL);
    cli_options_json(s->table, &json);
    dv_json_end(&json);
    dv_status status = dv_json_finish(&json, error);
    if (status != DV_OK)
        return status;
    strcat(text, "\n");
    return dv_folder_write(s->folder, "config.json", text, error);
}

/* The folder comes last: a call that can't work leaves nothing behind. */
static dv_status prepare(session *s, dv_error *error) {
    const train_settings *chosen = s->settings;
    dv_status status = dv_train_check(&chosen->options, error);
    if (status == DV_OK)
        status = open_data(s, error);
    if (status == DV_OK)
        status = train_make_plan(chosen, &s->shape, chosen->method, (size_t)chosen->batch, &s->graph, &s->plan, error);
    if (status == DV_OK)
        status = dv_run_new(s->plan, chosen->options.seed, &s->run, error);
    if (status == DV_OK && chosen->out != NULL)
        status = dv_folder_open(chosen->out, chosen->replace, &s->folder, error);
    if (status == DV_OK && s->folder != NULL)
        status = write_config(s, error);
    return status;
}

static void release(session *s) {
    dv_folder_close(s->folder);
    dv_run_free(s->run);
    dv_plan_free(s->plan);
    dv_graph_free(s->graph);
    dv_dataset_close(s->data);
}

/* ---- training ------------------------------------------------------------------------------ */

static void show_step(void *context, const dv_train_progress *progress) {
    session *s = context;
    train_screen_step(&s->screen, progress);
}

static dv_status show_epoch(void *context, const dv_epoch_record *record, dv_error *error) {
    session *s = context;
    train_screen_epoch(&s->screen, record, s->settings->options.epochs);
    s->seconds += record->seconds;
    s->speed += record->images_per_second;
    s->epochs++;
    return s->folder != NULL ? dv_folder_log(s->folder, record, error) : DV_OK;
}

static void describe_run(const session *s, dv_json *json) {
    const dv_epoch_record *last = &s->result.last;
    dv_plan_summary plan = dv_plan_totals(s->plan);
    dv_json_text(json, "model", s->settings->model);
    dv_json_text(json, "data", s->settings->data);
    dv_json_text(json, "method", s->settings->method);
    dv_json_text(json, "precision", precisions[s->settings->precision]);
    dv_json_integer(json, "batch", s->settings->batch);
    dv_json_unsigned(json, "epochs", last->epoch);
    dv_json_unsigned(json, "steps", last->steps);
    dv_json_boolean(json, "stopped", s->result.stopped);
    dv_json_number(json, "train_loss", last->train_loss);
    dv_json_number(json, "test_loss", last->test_loss);
    dv_json_number(json, "test_top1", last->test_top1);
    dv_json_number(json, "best_top1", s->result.best_top1);
    dv_json_number(json, "images_per_second", s->speed / (double)s->epochs);
    dv_json_number(json, "seconds", s->seconds);
    dv_json_unsigned(json, "activation_bytes", plan.activations);
    dv_json_unsigned(json, "planned_bytes", plan.planned);
    dv_json_unsigned(json, "peak_bytes", dv_memory_peak());
}

static dv_status write_summary(session *s, dv_error *error) {
    char text[CONFIG_BYTES];
    dv_json json;
    if (s->folder == NULL)
        return DV_OK;
    dv_json_to_buffer(&json, text, sizeof text - 1);
    dv_json_object(&json, NULL);
    describe_run(s, &json);
    dv_json_end(&json);
    dv_status status = dv_json_finish(&json, error);
    if (status != DV_OK)
        return status;
    strcat(text, "\n");
    return dv_folder_write(s->folder, "summary.json", text, error);
}

static dv_status train(session *s, dv_error *error) {
    dv_plan_summary plan = dv_plan_totals(s->plan);
    dv_train_calls calls = {show_step, show_epoch, s, &interrupted};
    train_screen_plan(&s->screen, &plan);
    dv_status status = dv_train(s->run, s->plan, s->data, &s->settings->options, &calls, &s->result, error);
    if (status == DV_OK)
        status = write_summary(s, error);
    if (status == DV_OK)
        train_screen_end(&s->screen, &plan, &s->result);
    train_screen_wipe(&s->screen);
    return status;
}

/* ---- the command --------------------------------------------------------------------------- */

static int finish(const session *s) {
    int code = cli_finish();
    if (code != CLI_SUCCESS || !s->result.stopped)
        return code;
    cli_fail("interrupted after step %llu: the log is complete up to there", (unsigned long long)s->result.last.steps);
    return CLI_INTERRUPTED;
}

static int run(const train_settings *chosen, const cli_option *table) {
    session s = {.settings = chosen, .table = table, .screen = train_screen_new(chosen)};
    dv_error error;
    if (chosen->threads > 0)
        omp_set_num_threads(chosen->threads);
    catch_signals();
    dv_status status = prepare(&s, &error);
    int planned = s.plan != NULL;
    if (status == DV_OK)
        status = train(&s, &error);
    int code = status == DV_OK ? finish(&s) : cli_report(&error);
    if (status == DV_ERROR_MEMORY && planned)
        train_explain_memory(chosen, &s.shape);
    release(&s);
    return code;
}

/* Appends what there is of methods, data sets and schedules to the help. */
static void describe_choices(char *text, size_t bytes) {
    size_t used = (size_t)snprintf(text, bytes, "Methods:\n");
    for (size_t i = 0; dv_method_name_at(i) != NULL && used < bytes; i++)
        used += (size_t)snprintf(text + used, bytes - used, "  %-12s %s\n", dv_method_name_at(i), dv_method_help_at(i));
    if (used < bytes)
        used += (size_t)snprintf(text + used, bytes - used, "Data sets:\n");
    for (size_t i = 0; dv_dataset_usage_at(i) != NULL && used < bytes; i++)
        used += (size_t)snprintf(text + used, bytes - used, "  %s\n               %s\n", dv_dataset_usage_at(i),
                                 dv_dataset_help_at(i));
    if (used < bytes)
        used += (size_t)snprintf(text + used, bytes - used, "Schedules:\n");
    for (size_t i = 0; dv_schedule_name_at(i) != NULL && used < bytes; i++)
        used += (size_t)snprintf(text + used, bytes - used, "  %s\n", dv_schedule_name_at(i));
}

int cli_train(int argc, char **argv) {
    train_settings chosen = {.model = "resnet20",
                             .data = "synthetic",
                             .method = "division",
                             .schedule = "cosine",
                             .batch = 128,
                             .epochs = 10,
                             .accumulate = 1,
                             .options = dv_train_options_default()};
    dv_train_options *o = &chosen.options;
    char details[2048];
    const cli_option options[] = {
        {"model", "MODEL", "the network: see 'division models'", CLI_TEXT(&chosen.model)},
        {"data", "DATA", "what to learn from", CLI_TEXT(&chosen.data)},
        {"method", "METHOD", "how activations are kept: none, division[:block=8,bits=2,...]", CLI_TEXT(&chosen.method)},
        {"precision", NULL, "of activations", CLI_WORD(&chosen.precision, precisions)},
        {"batch", "N", "images per batch", CLI_INTEGER(&chosen.batch, 1, 1 << 20)},
        {"accumulate", "N", "batches per step", CLI_INTEGER(&chosen.accumulate, 1, 65536)},
        {"epochs", "N", "passes over the data", CLI_INTEGER(&chosen.epochs, 1, 100000)},
        {"steps", "N", "stop after so many steps; 0 for never", CLI_UNSIGNED(&chosen.steps)},
        {"lr", "RATE", "learning rate", CLI_NUMBER(&o->schedule.rate, 0, 1000)},
        {"schedule", "SCHEDULE", "how the rate goes down", CLI_TEXT(&chosen.schedule)},
        {"warmup", "EPOCHS", "over which the rate goes up first", CLI_NUMBER(&o->schedule.warmup, 0, 10000)},
        {"momentum", "M", "of the optimizer", CLI_NUMBER(&o->sgd.momentum, 0, 0.999999)},
        {"nesterov", NULL, "Nesterov's momentum", CLI_FLAG(&o->sgd.nesterov)},
        {"weight-decay", "D", "of the optimizer", CLI_NUMBER(&o->sgd.weight_decay, 0, 1)},
        {"label-smoothing", "S", "of the loss", CLI_NUMBER(&o->label_smoothing, 0, 0.999999)},
        {"classes", "N", "outputs of the network; 0 for the data's", CLI_INTEGER(&chosen.classes, 0, 1 << 20)},
        {"seed", "N", "of weights, order and rounding", CLI_UNSIGNED(&o->seed)},
        {"threads", "N", "threads to use; 0 for as many as OpenMP uses", CLI_INTEGER(&chosen.threads, 0, 1024)},
        {"out", "RUN", "folder for config.json, log.jsonl and summary.json", CLI_TEXT(&chosen.out)},
        {"replace", NULL, "replace the run that is in the folder", CLI_FLAG(&chosen.replace)},
        {"quiet", NULL, "print nothing but errors", CLI_FLAG(&chosen.quiet)},
        {"json", NULL, "print a JSON object per epoch", CLI_FLAG(&chosen.json)},
        CLI_OPTIONS_END,
    };
    const cli_usage usage = {
        .command = "train",
        .summary = "Trains a network, tests it after each epoch, and prints what it takes. The memory that is planned\n"
                   "before the first step is the memory it will take. Ctrl-C ends it after the step.\n",
        .details = details,
        .options = options};
    dv_error error;
    describe_choices(details, sizeof details);
    int code = cli_parse(&usage, argc, argv, NULL);
    if (code != CLI_CONTINUE)
        return code;
    if (dv_schedule_parse(chosen.schedule, &o->schedule, &error) != DV_OK)
        return cli_report(&error);
    o->epochs = (size_t)chosen.epochs;
    o->accumulate = (size_t)chosen.accumulate;
    o->steps = chosen.steps;
    return run(&chosen, options);
}
