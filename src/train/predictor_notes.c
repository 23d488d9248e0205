/* What a network is and what images it takes: by the options of the caller, and else by the notes of the checkpoint. */
#include "train/predictor.h"

#include "base/file.h"
#include "base/option.h"
#include "base/status.h"
#include "data/normalisation.h"
#include "train/class_names.h"

#include <division/models.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BATCH = 1 << 20, MOST_CLASSES = 1 << 20, MOST_SIDE = 1024, MOST_RESIZE = 2048, MOST_NAMES = 1 << 26 };
enum { MISSING_BYTES = 128 };

/* ---- texts and numbers --------------------------------------------------------------------- */

/* A whole number of a note; 0 without one. */
static dv_status read_number(const dv_checkpoint *checkpoint, const char *name, size_t most, size_t *number,
                             dv_error *error) {
    const char *note = dv_checkpoint_note(checkpoint, name);
    char *end = NULL;
    *number = 0;
    if (note == NULL)
        return DV_OK;
    *number = strtoull(note, &end, 10);
    if (note[0] >= '0' && note[0] <= '9' && *end == '\0' && *number <= most)
        return DV_OK;
    return dv_fail(error, DV_ERROR_FORMAT, "%s: its note %s is \"%.30s\", and no whole number up to %zu: give --%s",
                   dv_file_shown(dv_checkpoint_path(checkpoint)), name, note, most, name);
}

/* The option's number, or else the note's. */
static dv_status choose_number(const dv_checkpoint *checkpoint, const char *name, size_t option, size_t most,
                               size_t *number, dv_error *error) {
    if (option == 0)
        return read_number(checkpoint, name, most, number, error);
    *number = option;
    return dv_check_count(name, option, 1, most, error);
}

static dv_status choose_precision(dv_predictor *p, const dv_checkpoint *checkpoint, const char *option,
                                  dv_error *error) {
    const char *note = dv_checkpoint_note(checkpoint, "precision"), *text = option != NULL ? option : note;
    p->precision = text != NULL && strcmp(text, "bf16") == 0 ? DV_BF16 : DV_F32;
    if (option == NULL || strcmp(option, dv_type_name(p->precision)) == 0)
        return DV_OK;
    return dv_fail(error, DV_ERROR_OPTION, "precision: \"%.20s\": must be f32 or bf16", option);
}

static dv_status choose_model(dv_predictor *p, const dv_checkpoint *checkpoint, const char *option, dv_error *error) {
    const char *note = dv_checkpoint_note(checkpoint, "model"), *text = option != NULL ? option : note;
    if (text != NULL && snprintf(p->model, sizeof p->model, "%s", text) >= (int)sizeof p->model)
        return dv_fail(error, DV_ERROR_OPTION, "unknown model '%.60s...': 'division models' lists what there is", text);
    return DV_OK;
}

/* For another side than the file's, things are to be shown as large as they were. */
static dv_status choose_resize(dv_predictor *p, const dv_checkpoint *checkpoint, const dv_predictor_options *options,
                               dv_error *error) {
    size_t trained;
    DV_TRY(choose_number(checkpoint, "resize", options->resize, MOST_RESIZE, &p->resize, error));
    DV_TRY(read_number(checkpoint, "side", MOST_SIDE, &trained, error));
    if (options->resize == 0 && options->side > 0 && trained > 0)
        p->resize = p->resize * options->side / trained;
    if (options->resize > 0)
        return dv_check_count("resize", p->resize, p->side > 0 ? p->side : 1, MOST_RESIZE, error);
    p->resize = p->resize > 0 && p->resize < p->side ? p->side : p->resize;
    return DV_OK;
}

static dv_status choose_normalisation(dv_predictor *p, const dv_checkpoint *checkpoint, const char *option,
                                      dv_error *error) {
    const char *note = dv_checkpoint_note(checkpoint, DV_NOTE_NORMALISE);
    if (option != NULL)
        return dv_image_normalisation_parse(option, &p->normalisation, error);
    if (note == NULL || dv_image_normalisation_parse(note, &p->normalisation, NULL) == DV_OK)
        return DV_OK;
    return dv_fail(error, DV_ERROR_FORMAT,
                   "%s: its note " DV_NOTE_NORMALISE " is \"%.60s\", which is no normalisation: give --normalise",
                   dv_file_shown(dv_checkpoint_path(checkpoint)), note);
}

/* ---- what is missing ----------------------------------------------------------------------- */

/* Names all options that would say what nobody does. */
static dv_status check_missing(const dv_predictor *p, const dv_checkpoint *checkpoint, bool network_only,
                               dv_error *error) {
    const struct {
        const char *option;
        bool is_missing;
    } rows[] = {
        {"--model", p->model[0] == '\0'},
        {"--classes", p->classes == 0 && !network_only},
        {"--side", p->side == 0 && !network_only},
        {"--resize", p->resize == 0 && !network_only},
        {"--normalise", dv_normalisation_is_usual(&p->normalisation) && !network_only},
    };
    char missing[MISSING_BYTES] = "";
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!rows[i].is_missing)
            continue;
        strcat(missing, missing[0] != '\0' ? ", " : "");
        strcat(missing, rows[i].option);
    }
    if (missing[0] == '\0')
        return DV_OK;
    return dv_fail(error, DV_ERROR_OPTION, "%s does not say what network it is of and what images that takes: give %s",
                   dv_file_shown(dv_checkpoint_path(checkpoint)), missing);
}

/* ---- names of classes ---------------------------------------------------------------------- */

static size_t count_lines(const char *text, size_t bytes) {
    size_t lines = bytes > 0 && text[bytes - 1] != '\n';
    for (size_t i = 0; i < bytes; i++)
        lines += text[i] == '\n';
    return lines;
}

/* Cuts a text into its lines. `names` [classes] and a copy of the text are one block. */
static char **cut_lines(const char *text, size_t bytes, size_t classes) {
    char **names = calloc(1, classes * sizeof *names + bytes + 1);
    if (names == NULL)
        return NULL;
    char *line = (char *)(names + classes), *end = line + bytes;
    memcpy(line, text, bytes);
    for (size_t i = 0; i < classes && line < end; i++) {
        char *next = memchr(line, '\n', (size_t)(end - line));
        next = next != NULL ? next : end;
        names[i] = line;
        *next = '\0';
        line[strcspn(line, "\r")] = '\0';
        line = next + 1;
    }
    return names;
}

static dv_status read_lines(dv_predictor *p, const char *path, dv_error *error) {
    void *text;
    size_t bytes;
    DV_TRY(dv_file_read(path, MOST_NAMES, &text, &bytes, error));
    size_t lines = count_lines(text, bytes);
    dv_status status = DV_OK;
    if (lines != p->classes)
        status =
            dv_fail(error, DV_ERROR_FORMAT, "%s has %zu lines, and the network %zu classes: give a name in each line",
                    dv_file_shown(path), lines, p->classes);
    else if ((p->class_names = cut_lines(text, bytes, p->classes)) == NULL)
        status = dv_fail(error, DV_ERROR_MEMORY, "no memory for names of classes: free some");
    free(text);
    return status;
}

static dv_status choose_names(dv_predictor *p, const dv_checkpoint *checkpoint, const char *option, dv_error *error) {
    const char *note = dv_checkpoint_note(checkpoint, DV_NOTE_CLASS_NAMES);
    dv_error inner = {.status = DV_OK};
    if (option != NULL)
        return read_lines(p, option, error);
    if (note == NULL || p->classes == 0)
        return DV_OK;
    dv_status status = dv_class_names_read(note, p->classes, &p->class_names, &inner);
    return status == DV_OK ? DV_OK
                           : dv_fail(error, status, "%s: %.160s: give --names",
                                     dv_file_shown(dv_checkpoint_path(checkpoint)), inner.text);
}

/* ---- all of it ----------------------------------------------------------------------------- */

/* Classes and side of a network alone may be the model's own. */
static dv_status choose_own(dv_predictor *p, dv_error *error) {
    const dv_model *model;
    DV_TRY(dv_model_find(p->model, &model, error));
    p->classes = p->classes > 0 ? p->classes : model->classes;
    p->side = p->side > 0 ? p->side : model->side;
    return DV_OK;
}

dv_status dv_predictor_resolve(dv_predictor *p, const dv_checkpoint *checkpoint, const dv_predictor_options *options,
                               dv_error *error) {
    snprintf(p->path, sizeof p->path, "%s", dv_checkpoint_path(checkpoint));
    p->batch = options->batch;
    DV_TRY(dv_check_count("batch", options->batch, 1, MOST_BATCH, error));
    DV_TRY(choose_model(p, checkpoint, options->model, error));
    DV_TRY(choose_precision(p, checkpoint, options->precision, error));
    DV_TRY(choose_number(checkpoint, "classes", options->classes, MOST_CLASSES, &p->classes, error));
    DV_TRY(choose_number(checkpoint, "side", options->side, MOST_SIDE, &p->side, error));
    DV_TRY(choose_resize(p, checkpoint, options, error));
    DV_TRY(choose_normalisation(p, checkpoint, options->normalise, error));
    DV_TRY(check_missing(p, checkpoint, options->network_only, error));
    DV_TRY(choose_own(p, error));
    return choose_names(p, checkpoint, options->names, error);
}
