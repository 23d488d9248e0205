/* division eval: tests the weights of a run, or of any file with such weights, and prints accuracy and loss, class by
 * class where it is asked to. */
#include "eval.h"

#include "cli.h"
#include "options.h"
#include "train.h"

#include <division/threads.h>
#include <division/tools/json.h>

#include <stdio.h>
#include <stdlib.h>

enum { FEW_CLASSES = 20, TOP5_CLASSES = 5, MOST_WORST = 400 };

static const char *const precisions[] = {"auto", "f32", "bf16", NULL};
static const char *const splits[] = {"test", "train", NULL};

typedef struct eval_settings {
    const char *path, *model, *data, *normalise;
    const char *mistakes, *worst, *confusion_png;
    int precision, split, batch, classes, side, resize, workers, threads, json, per_class, confusion, worst_images;
} eval_settings;

/* Everything that a test holds. */
typedef struct evaluation {
    const eval_settings *settings;
    dv_checkpoint *checkpoint;
    dv_dataset *dataset;
    dv_predictor *predictor;
    eval_findings found;
} evaluation;

static dv_status open_checkpoint(evaluation *e, dv_error *error) {
    const eval_settings *s = e->settings;
    dv_status status = dv_checkpoint_open_weights(s->path, &e->checkpoint, error);
    if (status != DV_OK)
        return status;
    e->found.model = s->model != NULL ? s->model : dv_checkpoint_note(e->checkpoint, "model");
    e->found.data = s->data != NULL ? s->data : dv_checkpoint_note(e->checkpoint, "data");
    if (e->found.model == NULL)
        return cli_error(error, DV_ERROR_OPTION,
                         "--model: the file does not say which network it is of: give its name");
    if (e->found.data == NULL)
        return cli_error(error, DV_ERROR_OPTION,
                         "--data: the file does not say what it was trained with: give the data");
    return DV_OK;
}

/* Of what the option, the file and the data say, the first that says anything; 0 is for the file. */
static size_t first_of(const evaluation *e, int option, const char *note, size_t data) {
    if (option > 0)
        return (size_t)option;
    return dv_checkpoint_note(e->checkpoint, note) != NULL ? 0 : data;
}

static dv_status make_network(evaluation *e, dv_error *error) {
    const eval_settings *s = e->settings;
    dv_dataset_shape shape = dv_dataset_describe(e->dataset);
    dv_predictor_options options = dv_predictor_options_default();
    int differences = 0;
    options.network_only = 1;
    options.model = e->found.model;
    options.precision = s->precision > 0 ? precisions[s->precision] : NULL;
    options.batch = (size_t)s->batch;
    options.classes = first_of(e, s->classes, "classes", shape.classes);
    options.side = first_of(e, s->side, "side", shape.side);
    options.resize = (size_t)s->resize;
    options.normalise = s->normalise;
    options.difference = train_tell_difference;
    options.context = &differences;
    return dv_predictor_new(e->checkpoint, &options, &e->predictor, error);
}

static void tell_corrupt(void *context, const char *text) {
    (void)context;
    cli_fail("corrupt, and another image in its place: %s", text);
}

static dv_status test(evaluation *e, dv_error *error) {
    eval_findings *found = &e->found;
    dv_predictor_description d = dv_predictor_describe(e->predictor);
    dv_loading loading = {.resize = d.resize,
                          .normalisation = d.normalisation,
                          .workers = (size_t)e->settings->workers,
                          .corrupt = tell_corrupt};
    found->dataset = e->dataset;
    found->predictor = e->predictor;
    found->split = e->settings->split == 0 ? DV_TEST : DV_TRAIN;
    dv_status status = eval_tally_new(d.classes, &found->tally, error);
    if (status == DV_OK)
        status = dv_test_each(dv_predictor_run(e->predictor), e->dataset, found->split, &loading, eval_tally_add,
                              &found->tally, &found->result, error);
    return status == DV_OK ? eval_tally_end(&found->tally, error) : status;
}

static dv_status write_files(const evaluation *e, dv_error *error) {
    const eval_settings *s = e->settings;
    dv_status status = DV_OK;
    if (s->mistakes != NULL)
        status = eval_write_mistakes(&e->found, s->mistakes, error);
    if (status == DV_OK && s->confusion_png != NULL)
        status = eval_draw_matrix(&e->found, s->confusion_png, error);
    if (status == DV_OK && s->worst != NULL)
        status = eval_draw_worst(&e->found, (size_t)s->worst_images, s->worst, error);
    return status;
}

/* With the images held out that were held out of training. */
static dv_status open_data(evaluation *e, dv_error *error) {
    const char *share = dv_checkpoint_note(e->checkpoint, "hold-out");
    const char *seed = dv_checkpoint_note(e->checkpoint, "hold-out-seed");
    dv_dataset_options options = dv_dataset_options_default();
    if (share != NULL)
        options.hold_out = strtod(share, NULL);
    if (seed != NULL)
        options.seed = strtoull(seed, NULL, 10);
    return dv_dataset_open_with(e->found.data, &options, &e->dataset, error);
}

static dv_status evaluate(evaluation *e, dv_error *error) {
    dv_status status = open_checkpoint(e, error);
    if (status == DV_OK)
        status = open_data(e, error);
    if (status == DV_OK)
        status = make_network(e, error);
    return status == DV_OK ? test(e, error) : status;
}

static void release(evaluation *e) {
    eval_tally_free(&e->found.tally);
    dv_predictor_close(e->predictor);
    dv_dataset_close(e->dataset);
    dv_checkpoint_close(e->checkpoint);
}

/* ---- the result ---------------------------------------------------------------------------- */

/* Any label is among the first five of five. */
static int has_top5(const evaluation *e) {
    return e->found.tally.classes > TOP5_CLASSES;
}

static void print_json(const evaluation *e) {
    const eval_findings *found = &e->found;
    dv_json json;
    dv_json_to_file(&json, stdout);
    dv_json_object(&json, NULL);
    dv_json_text(&json, "file", dv_checkpoint_path(e->checkpoint));
    dv_json_text(&json, "model", found->model);
    dv_json_text(&json, "data", found->data);
    dv_json_text(&json, "split", splits[e->settings->split]);
    dv_json_unsigned(&json, "images", found->result.images);
    dv_json_number(&json, "top1", found->result.top1);
    if (has_top5(e))
        dv_json_number(&json, "top5", found->result.top5);
    dv_json_number(&json, "loss", found->result.loss);
    eval_json_classes(found, &json);
    if (e->settings->confusion)
        eval_json_matrix(found, &json);
    dv_json_end(&json);
    dv_json_finish(&json, NULL); /* cli_finish says what could not be written */
}

static void print_text(const evaluation *e) {
    const eval_findings *found = &e->found;
    cli_line("weights", "%s", dv_checkpoint_path(e->checkpoint));
    cli_line("model", "%s", found->model);
    cli_line("data", "%s, %zu images to %s", found->data, found->result.images, splits[e->settings->split]);
    cli_line("top-1", "%.2f %%", found->result.top1);
    if (has_top5(e))
        cli_line("top-5", "%.2f %%", found->result.top5);
    cli_line("loss", "%.4f", found->result.loss);
    if (e->settings->per_class || found->tally.classes <= FEW_CLASSES)
        eval_print_classes(found);
    if (e->settings->confusion)
        eval_print_matrix(found);
}

int cli_eval(int argc, char **argv) {
    eval_settings chosen = {.batch = 128, .worst_images = 24};
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
        {"workers", "N", "threads that make batches ahead; 0: they are made between steps",
         CLI_INTEGER(&chosen.workers, 0, 256)},
        cli_integer_option("threads", NULL, &chosen.threads),
        {"per-class", NULL, "print the accuracy of each class, also of more than 20", CLI_FLAG(&chosen.per_class)},
        {"confusion", NULL, "print how many images of each class were taken for which", CLI_FLAG(&chosen.confusion)},
        {"confusion-png", "FILE", "draw that matrix there", CLI_TEXT(&chosen.confusion_png)},
        {"mistakes", "FILE", "list images that were taken for another class there, as CSV, the worst first",
         CLI_TEXT(&chosen.mistakes)},
        {"worst", "FILE", "draw a sheet of the worst mistakes there", CLI_TEXT(&chosen.worst)},
        {"worst-images", "N", "on that sheet", CLI_INTEGER(&chosen.worst_images, 1, MOST_WORST)},
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
    if (status == DV_OK)
        status = write_files(&e, &error);
    code = status == DV_OK ? cli_finish() : cli_report(&error);
    release(&e);
    return code;
}
