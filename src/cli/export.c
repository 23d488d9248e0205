/* division export: the weights of a run for inference elsewhere: as an ONNX file, or alone as safetensors. */
#include "cli.h"
#include "options.h"
#include "train.h"

#include <division/onnx.h>
#include <division/predictor.h>

#include <stdio.h>
#include <string.h>

enum { MOST_NOTES = 16 };

typedef struct settings {
    const char *from, *to, *model;
    int classes, side, fold;
} settings;

/* What there is to export. */
typedef struct exported {
    const settings *chosen;
    dv_predictor *predictor;
    dv_note notes[MOST_NOTES];
    size_t note_count;
    const char *data; /* what it was trained with; may be NULL */
    char classes[24], side[24];
} exported;

/* ---- notes --------------------------------------------------------------------------------- */

static void add_note(exported *e, const char *name, const char *value) {
    if (value != NULL)
        e->notes[e->note_count++] = (dv_note){name, value};
}

/* What the file says of itself and of its images goes along; what the call says goes over it. */
static void fill_notes(exported *e, const dv_checkpoint *checkpoint) {
    static const char *const kept[] = {"resize", "normalise", "class_names", "epochs"};
    dv_predictor_description d = dv_predictor_describe(e->predictor);
    snprintf(e->classes, sizeof e->classes, "%zu", d.classes);
    snprintf(e->side, sizeof e->side, "%zu", d.side);
    add_note(e, "model", d.model);
    add_note(e, "classes", e->classes);
    add_note(e, "side", e->side);
    add_note(e, "precision", dv_type_name(d.precision));
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        add_note(e, kept[i], dv_checkpoint_note(checkpoint, kept[i]));
    e->data = dv_checkpoint_note(checkpoint, "data");
}

/* ---- forms --------------------------------------------------------------------------------- */

static dv_status write_onnx(exported *e, dv_error *error) {
    dv_onnx_options options = dv_onnx_options_default();
    options.fold = e->chosen->fold;
    options.name = dv_predictor_describe(e->predictor).model;
    options.notes = e->notes;
    options.note_count = e->note_count;
    return dv_onnx_write(e->chosen->to, dv_predictor_run(e->predictor), &options, error);
}

/* With the place of the data, which division eval looks for. ONNX files are for others, who need not know it. */
static dv_status write_safetensors(exported *e, dv_error *error) {
    add_note(e, "data", e->data);
    const dv_checkpoint_content content = {
        .run = dv_predictor_run(e->predictor), .notes = e->notes, .note_count = e->note_count};
    if (e->chosen->fold)
        return cli_error(error, DV_ERROR_OPTION, "--fold: weights alone have the names of their layers: export .onnx");
    return dv_checkpoint_write(e->chosen->to, &content, error);
}

static const struct {
    const char *ending;
    dv_status (*write)(exported *e, dv_error *error);
} forms[] = {{".onnx", write_onnx}, {".safetensors", write_safetensors}};

static dv_status write_form(exported *e, dv_error *error) {
    const char *ending = strrchr(e->chosen->to, '.');
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (ending != NULL && strcmp(ending, forms[i].ending) == 0)
            return forms[i].write(e, error);
    return cli_error(
        error, DV_ERROR_OPTION,
        "%.100s: its ending says nothing that can be written: give a name that ends in .onnx or .safetensors "
        "(which PyTorch reads by safetensors.torch.load_file)",
        e->chosen->to);
}

/* ---- the command --------------------------------------------------------------------------- */

/* What others have to know who use the file. */
static void tell(const exported *e) {
    dv_predictor_description d = dv_predictor_describe(e->predictor);
    char name[DV_PATH_BYTES];
    snprintf(name, sizeof name, "%s", e->chosen->to);
    printf("%s: %s, %zu classes, images of 3 x %zu x %zu%s\n", dv_printable(name), d.model, d.classes, d.side, d.side,
           e->chosen->fold ? ", batch norms folded" : "");
}

static dv_status export_from(exported *e, const dv_checkpoint *checkpoint, dv_error *error) {
    dv_predictor_options options = dv_predictor_options_default();
    int differences = 0;
    options.network_only = 1;
    options.model = e->chosen->model;
    options.classes = (size_t)e->chosen->classes;
    options.side = (size_t)e->chosen->side;
    options.difference = train_tell_difference;
    options.context = &differences;
    dv_status status = dv_predictor_new(checkpoint, &options, &e->predictor, error);
    if (status != DV_OK)
        return status;
    fill_notes(e, checkpoint);
    status = write_form(e, error);
    if (status == DV_OK)
        tell(e);
    dv_predictor_close(e->predictor);
    return status;
}

static int export_file(const settings *chosen) {
    exported e = {.chosen = chosen};
    dv_checkpoint *checkpoint;
    dv_error error;
    dv_status status = dv_checkpoint_open_weights(chosen->from, &checkpoint, &error);
    if (status != DV_OK)
        return cli_report(&error);
    status = export_from(&e, checkpoint, &error);
    dv_checkpoint_close(checkpoint);
    return status == DV_OK ? cli_finish() : cli_report(&error);
}

int cli_export(int argc, char **argv) {
    settings chosen = {.fold = 0};
    const dv_option options[] = {
        {"fold", NULL, "ONNX: make batch norms part of the convolutions before them", CLI_FLAG(&chosen.fold)},
        cli_text_option("model", "the network; if not given, what the file says", &chosen.model),
        cli_integer_option("classes", "outputs of the network; 0 for what the file or the model says", &chosen.classes),
        cli_integer_option("side", "of the images; 0 for what the file or the model says", &chosen.side),
        CLI_OPTIONS_END,
    };
    const cli_usage usage = {
        .command = "export",
        .operands = "RUN|FILE OUT",
        .summary =
            "Writes the weights of a run (its best ones) or of a file for other programs. OUT.onnx is the network with "
            "its\n"
            "weights, for batches of any size, with preparation of images and names of classes in its metadata;\n"
            "OUT.safetensors the weights alone, as torchvision's load_state_dict takes them.\n",
        .options = options,
        .minimum_operands = 2,
        .maximum_operands = 2};
    cli_operands operands;
    int code = cli_parse(&usage, argc, argv, &operands);
    if (code != CLI_CONTINUE)
        return code;
    chosen.from = operands.at[0];
    chosen.to = operands.at[1];
    return export_file(&chosen);
}
