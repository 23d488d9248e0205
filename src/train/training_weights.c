/* The weights that a training begins with: those of its folder's last checkpoint, those of a file, or none yet. */
#include "train/training.h"

#include "base/status.h"

#include <division/checkpoint.h>
#include <division/models.h>

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { NAME_BYTES = 256, ADVICE_BYTES = 512 };

/* ---- weights of a file ---------------------------------------------------------------------- */

/* The name of the last layer that has parameters: that of its last one, up to the dot. */
static const char *last_layer(const dv_run *run, char name[NAME_BYTES]) {
    const dv_run_parameter *parameter;
    for (size_t i = 0; (parameter = dv_run_parameter_at(run, i)) != NULL; i++)
        snprintf(name, NAME_BYTES, "%s", parameter->name);
    char *dot = strrchr(name, '.');
    if (dot != NULL)
        *dot = '\0';
    return name;
}

/* After weights that do not fit: what to do. That they would without the last layer is tried, not guessed; the run,
 * which may have them then, is of no use any more. */
static void advise(const dv_training *t, const dv_checkpoint *checkpoint, dv_checkpoint_choice choice) {
    char layer[NAME_BYTES] = "", text[ADVICE_BYTES];
    const char *noted = dv_checkpoint_note(checkpoint, "model"), *model = t->options.model;
    const dv_model *found;
    if (t->callbacks.advice == NULL)
        return;
    choice.except = last_layer(t->run, layer);
    if (dv_checkpoint_load(checkpoint, &choice, t->run, NULL, NULL, NULL) == DV_OK)
        snprintf(text, sizeof text,
                 "only the last layer is another, as for other classes: leave it out with --init-except %s", layer);
    else if (noted != NULL && dv_model_find(noted, &found, NULL) == DV_OK && strcmp(noted, model) != 0)
        snprintf(text, sizeof text,
                 "these are weights of another network: the file says --model %s, and the call --model %s", noted,
                 model);
    else
        snprintf(text, sizeof text, "these are not weights of --model %s: 'division models' lists what there is",
                 model);
    t->callbacks.advice(t->callbacks.context, text);
}

/* Passes a difference on, and remembers that there was one. */
typedef struct listener {
    const dv_training_callbacks *callbacks;
    bool heard;
} listener;

static void hear(void *context, const char *text) {
    listener *l = context;
    l->heard = true;
    if (l->callbacks->difference != NULL)
        l->callbacks->difference(l->callbacks->context, text);
}

static dv_status load(dv_training *t, dv_error *error) {
    const char *except = t->options.init_except;
    listener heard = {&t->callbacks, false};
    dv_checkpoint *checkpoint;
    DV_TRY(dv_checkpoint_open(t->options.init, &checkpoint, error));
    dv_checkpoint_choice choice = {.averages = dv_checkpoint_has_averages(checkpoint),
                                   .except = except[0] != '\0' ? except : NULL};
    dv_status status = dv_checkpoint_load(checkpoint, &choice, t->run, hear, &heard, error);
    if (heard.heard)
        advise(t, checkpoint, choice);
    dv_checkpoint_close(checkpoint);
    return status;
}

/* ---- going on ------------------------------------------------------------------------------- */

/* Weights that learnt from images normalised in one way make little of others. Checkpoints of earlier versions have no
 * note: they had the data's own. */
static dv_status check_normalisation(const dv_training *t, const dv_checkpoint *checkpoint, dv_error *error) {
    const char *noted = dv_checkpoint_note(checkpoint, DV_NOTE_NORMALISE);
    char text[DV_NORMALISATION_BYTES];
    DV_TRY(dv_training_normalisation(t, text, error));
    if (noted == NULL || strcmp(noted, text) == 0)
        return DV_OK;
    return dv_fail(error, DV_ERROR_OPTION,
                   "normalise: %s: what was trained so far had %.100s: go on with that, or begin a new training", text,
                   noted);
}

/* Goes on from the folder's checkpoint, if there is one. */
static dv_status resume(dv_training *t, dv_error *error) {
    char path[DV_PATH_BYTES];
    struct stat status;
    listener heard = {&t->callbacks, false};
    dv_checkpoint *checkpoint;
    if (snprintf(path, sizeof path, "%s/%s", t->path, DV_FOLDER_LAST) >= (int)sizeof path)
        return dv_fail(error, DV_ERROR_OPTION, "--out: a path of %zu characters: use a shorter one", strlen(t->path));
    if (stat(path, &status) != 0 || S_ISDIR(status.st_mode))
        return DV_OK;
    DV_TRY(dv_checkpoint_open(path, &checkpoint, error));
    dv_status resumed = check_normalisation(t, checkpoint, error);
    if (resumed == DV_OK)
        resumed = dv_checkpoint_resume(checkpoint, t->run, &t->state, hear, &heard, error);
    dv_checkpoint_close(checkpoint);
    t->resumed = resumed == DV_OK;
    return resumed;
}

static bool is_folder(const char *path) {
    struct stat status;
    return path != NULL && stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

dv_status dv_training_read_weights(dv_training *t, dv_error *error) {
    if (t->mode == DV_FOLDER_GO_ON && is_folder(t->path)) {
        DV_TRY(dv_folder_open(t->path, DV_FOLDER_GO_ON, &t->folder, error));
        DV_TRY(resume(t, error));
    }
    return t->options.init[0] != '\0' && !t->resumed ? load(t, error) : DV_OK;
}
