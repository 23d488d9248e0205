/* division eval: tests the weights of a run, or of any file with such weights, and prints accuracy and loss. */
#include "cli.h"
#include "options.h"
#include "train.h"

#include <division/checkpoint.h>
#include <division/models.h>
#include <division/threads.h>
#include <division/tools/json.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CLASSES = 1 << 20, MOST_SIDE = 1024, MOST_RESIZE = 2048 };

static const char *const precisions[] = {"auto", "f32", "bf16", NULL};
static const char *const splits[] = {"test", "train", NULL};

typedef struct eval_settings {
    const char *path, *model, *data, *normalise;
    int precision, split, batch, classes, side, resize, workers, threads, json;
} eval_settings;

/* Everything that a test holds. */
typedef struct evaluation {
    const eval_settings *settings;
    char path[TRAIN_PATH_BYTES]; /* of the checkpoint */
    dv_checkpoint *checkpoint;
    const char *model, *data; /* as given, or as the checkpoint says */
    struct {
        size_t classes, side, resize;
    } trained; /* as the checkpoint says; 0: it does not */
    dv_image_normalisation normalisation;
    dv_dataset *dataset;
    dv_graph *graph;
    dv_plan *plan;
    dv_run *run;
    dv_test_result result;
} evaluation;

/* Of a run the best weights; the last ones if there are no best. */
static void find_checkpoint(evaluation *e) {
    const char *path = e->settings->path;
    snprintf(e->path, sizeof e->path, train_is_folder(path) ? "%s/" DV_FOLDER_BEST : "%s", path);
    if (train_is_folder(path) && !train_is_file(e->path))
        snprintf(e->path, sizeof e->path, "%s/" DV_FOLDER_LAST, path);
}

static dv_status open_checkpoint(evaluation *e, dv_error *error) {
    const eval_settings *s = e->settings;
    find_checkpoint(e);
    dv_status status = dv_checkpoint_open(e->path, &e->checkpoint, error);
    if (status != DV_OK)
        return status;
    e->model = s->model != NULL ? s->model : dv_checkpoint_note(e->checkpoint, "model");
    e->data = s->data != NULL ? s->data : dv_checkpoint_note(e->checkpoint, "data");
    if (e->model == NULL)
        return cli_error(error, DV_ERROR_OPTION,
                         "--model: the file does not say which network it is of: give its name");
    if (e->data == NULL)
        return cli_error(error, DV_ERROR_OPTION,
                         "--data: the file does not say what it was trained with: give the data");
    return DV_OK;
}

static dv_type type_of(const evaluation *e) {
    const char *note = dv_checkpoint_note(e->checkpoint, "precision");
    int as_trained = note != NULL && strcmp(note, "bf16") == 0;
    return e->settings->precision == 2 || (e->settings->precision == 0 && as_trained) ? DV_BF16 : DV_F32;
}

/* Reads a note that is a whole number. Without one, or where an option is given instead, it is 0. */
static dv_status read_number(const evaluation *e, const char *name, int option, size_t most, size_t *number,
                             dv_error *error) {
    const char *note = option == 0 ? dv_checkpoint_note(e->checkpoint, name) : NULL;
    char *end = NULL;
    if (note == NULL)
        return DV_OK;
    *number = strtoull(note, &end, 10);
    if (note[0] >= '0' && note[0] <= '9' && *end == '\0' && *number <= most)
        return DV_OK;
    return cli_error(error, DV_ERROR_FORMAT,
                     "%.100s: its note %s is \"%.30s\", and no whole number up to %zu: give --%s", e->path, name, note,
                     most, name);
}

static dv_status read_numbers(evaluation *e, dv_error *error) {
    const eval_settings *s = e->settings;
    dv_status status = read_number(e, "classes", s->classes, MOST_CLASSES, &e->trained.classes, error);
    if (status == DV_OK)
        status = read_number(e, "side", 0, MOST_SIDE, &e->trained.side, error);
    return status == DV_OK ? read_number(e, "resize", s->resize, MOST_RESIZE, &e->trained.resize, error) : status;
}

/* As the call says, else the file; else it stays the data's own. */
static dv_status read_normalisation(evaluation *e, dv_error *error) {
    const char *given = e->settings->normalise, *note = dv_checkpoint_note(e->checkpoint, DV_NOTE_NORMALISE);
    if (given != NULL)
        return dv_image_normalisation_parse(given, &e->normalisation, error);
    if (note == NULL || dv_image_normalisation_parse(note, &e->normalisation, NULL) == DV_OK)
        return DV_OK;
    return cli_error(error, DV_ERROR_FORMAT,
                     "%.100s: its note " DV_NOTE_NORMALISE " is \"%.60s\", which is no normalisation: give --normalise",
                     e->path, note);
}

/* Of what the option, the file and the data say, the first that says anything. */
static size_t first_of(int option, size_t trained, size_t data) {
    if (option > 0)
        return (size_t)option;
    return trained > 0 ? trained : data;
}

/* As the run's own tests had it; for another side, in proportion. 0: the usual. */
static size_t resize_of(const evaluation *e) {
    const eval_settings *s = e->settings;
    if (s->resize > 0 || s->side == 0 || e->trained.side == 0)
        return first_of(s->resize, e->trained.resize, 0);
    return e->trained.resize * (size_t)s->side / e->trained.side;
}

static dv_status make_run(evaluation *e, dv_error *error) {
    dv_plan_options options = dv_plan_options_default();
    dv_dataset_shape shape = dv_dataset_describe(e->dataset);
    options.method = "none";
    options.inference = 1;
    dv_status status = dv_model_build(e->model, type_of(e), (size_t)e->settings->batch,
                                      first_of(e->settings->classes, e->trained.classes, shape.classes),
                                      first_of(e->settings->side, e->trained.side, shape.side), &e->graph, error);
    if (status == DV_OK)
        status = dv_plan_new(e->graph, &options, &e->plan, error);
    if (status == DV_OK)
        status = dv_run_new(e->plan, 0, &e->run, error);
    return status;
}

static dv_status load(evaluation *e, dv_error *error) {
    dv_checkpoint_choice choice = {.averages = dv_checkpoint_has_averages(e->checkpoint)};
    int differences = 0;
    return dv_checkpoint_load(e->checkpoint, &choice, e->run, train_tell_difference, &differences, error);
}

static void tell_corrupt(void *context, const char *text) {
    (void)context;
    cli_fail("corrupt, and another image in its place: %s", text);
}

static dv_status test(evaluation *e, dv_error *error) {
    dv_loading loading = {.resize = resize_of(e),
                          .normalisation = e->normalisation,
                          .workers = (size_t)e->settings->workers,
                          .corrupt = tell_corrupt};
    dv_split split = e->settings->split == 0 ? DV_TEST : DV_TRAIN;
    return dv_test(e->run, e->dataset, split, &loading, NULL, &e->result, error);
}

static dv_status evaluate(evaluation *e, dv_error *error) {
    dv_status status = open_checkpoint(e, error);
    if (status == DV_OK)
        status = read_numbers(e, error);
    if (status == DV_OK)
        status = read_normalisation(e, error);
    if (status == DV_OK)
        status = dv_dataset_open(e->data, &e->dataset, error);
    if (status == DV_OK)
        status = make_run(e, error);
    if (status == DV_OK)
        status = load(e, error);
    if (status == DV_OK)
        status = test(e, error);
    return status;
}

static void release(evaluation *e) {
    dv_run_free(e->run);
    dv_plan_free(e->plan);
    dv_graph_free(e->graph);
    dv_dataset_close(e->dataset);
    dv_checkpoint_close(e->checkpoint);
}

/* ---- the result ---------------------------------------------------------------------------- */

static void print_json(const evaluation *e) {
    dv_json json;
    dv_json_to_file(&json, stdout);
    dv_json_object(&json, NULL);
    dv_json_text(&json, "file", e->path);
    dv_json_text(&json, "model", e->model);
    dv_json_text(&json, "data", e->data);
    dv_json_text(&json, "split", splits[e->settings->split]);
    dv_json_unsigned(&json, "images", e->result.images);
    dv_json_number(&json, "top1", e->result.top1);
    dv_json_number(&json, "top5", e->result.top5);
    dv_json_number(&json, "loss", e->result.loss);
    dv_json_end(&json);
    dv_json_finish(&json, NULL); /* cli_finish says what could not be written */
}

static void print_text(const evaluation *e) {
    cli_line("weights", "%s", e->path);
    cli_line("model", "%s", e->model);
    cli_line("data", "%s, %zu images to %s", e->data, e->result.images, splits[e->settings->split]);
    cli_line("top-1", "%.2f %%", e->result.top1);
    cli_line("top-5", "%.2f %%", e->result.top5);
    cli_line("loss", "%.4f", e->result.loss);
}

int cli_eval(int argc, char **argv) {
    eval_settings chosen = {.batch = 128};
    const dv_option options[] = {
        cli_text_option("data", "what to test with; if not given, what it was trained with", &chosen.data),
        cli_text_option("model", "the network; if not given, what the file says", &chosen.model),
        {"split", NULL, "which images", CLI_WORD(&chosen.split, splits)},
        {"precision", NULL, "of activations; auto: as trained", CLI_WORD(&chosen.precision, precisions)},
        cli_integer_option("batch", "images at once", &chosen.batch),
        cli_integer_option("classes", "outputs of the network; 0 for what the file or the data says", &chosen.classes),
        cli_integer_option("side", "of the images; 0 for what the file or the data says", &chosen.side),
        cli_integer_option("resize", "shorter side before the middle is taken; 0 for what the run had", &chosen.resize),
        cli_text_option("normalise", "means and deviations of the images; if not given, what the run had",
                        &chosen.normalise),
        cli_integer_option("workers", NULL, &chosen.workers),
        cli_integer_option("threads", NULL, &chosen.threads),
        {"json", NULL, "print JSON", CLI_FLAG(&chosen.json)},
        CLI_OPTIONS_END,
    };
    const cli_usage usage = {
        .command = "eval",
        .operands = "RUN|FILE",
        .summary =
            "Tests a network with the weights of a run (its best ones), or of a safetensors or PyTorch file with\n"
            "torchvision's names. Where a file has averages of the weights, as the last.safetensors of a run may, it "
            "tests those.\n",
        .options = options,
        .minimum_operands = 1,
        .maximum_operands = 1};
    cli_operands operands;
    int code = cli_parse(&usage, argc, argv, &operands);
    if (code != CLI_CONTINUE)
        return code;
    chosen.path = operands.at[0];
    evaluation e = {.settings = &chosen};
    dv_error error;
    (void)dv_set_threads(chosen.threads, NULL); /* its bounds are the option's */
    dv_status status = evaluate(&e, &error);
    if (status == DV_OK)
        (chosen.json ? print_json : print_text)(&e);
    code = status == DV_OK ? cli_finish() : cli_report(&error);
    release(&e);
    return code;
}
