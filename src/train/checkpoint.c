/* Reading checkpoints: first everything is compared, then everything is read. */
#include "train/checkpoint.h"

#include "base/file.h"
#include "base/status.h"
#include "train/array_file.h"

#include <division/folder.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME_BYTES = 256, TEXT_BYTES = 640, SHAPE_BYTES = 128 };

struct dv_checkpoint {
    char *path;
    dv_array_file *file;
};

dv_status dv_checkpoint_open(const char *path, dv_checkpoint **checkpoint, dv_error *error) {
    if (path == NULL || checkpoint == NULL)
        return dv_fail(error, DV_ERROR_ARGUMENT, "checkpoint: path or checkpoint is NULL");
    dv_checkpoint *made = calloc(1, sizeof *made);
    char *copy = strdup(path);
    if (made == NULL || copy == NULL) {
        free(made);
        free(copy);
        return dv_fail(error, DV_ERROR_MEMORY, "no memory to read %s: free some", dv_file_shown(path));
    }
    made->path = copy;
    dv_status status = dv_array_file_open(path, &made->file, error);
    if (status == DV_OK)
        *checkpoint = made;
    else
        dv_checkpoint_close(made);
    return status;
}

static bool is_folder(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

dv_status dv_checkpoint_open_weights(const char *path, dv_checkpoint **checkpoint, dv_error *error) {
    char found[DV_PATH_BYTES];
    DV_NEED(path);
    if (!is_folder(path))
        return dv_checkpoint_open(path, checkpoint, error);
    if (snprintf(found, sizeof found, "%s/" DV_FOLDER_BEST, path) >= (int)sizeof found)
        return dv_fail(error, DV_ERROR_ARGUMENT, "a path of %zu characters: use a shorter one", strlen(path));
    if (access(found, F_OK) != 0)
        snprintf(found, sizeof found, "%s/" DV_FOLDER_LAST, path);
    return dv_checkpoint_open(found, checkpoint, error);
}

const char *dv_checkpoint_path(const dv_checkpoint *checkpoint) {
    return checkpoint->path;
}

void dv_checkpoint_close(dv_checkpoint *checkpoint) {
    if (checkpoint == NULL)
        return;
    dv_array_file_close(checkpoint->file);
    free(checkpoint->path);
    free(checkpoint);
}

const char *dv_checkpoint_note(const dv_checkpoint *checkpoint, const char *name) {
    return dv_array_file_note(checkpoint->file, name);
}

static bool begins_with(const char *text, const char *prefix) {
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), least = strlen(end);
    return length >= least && strcmp(text + length - least, end) == 0;
}

static int has_arrays(const dv_checkpoint *checkpoint, const char *prefix) {
    const dv_array *tensor;
    for (size_t i = 0; (tensor = dv_array_file_at(checkpoint->file, i)) != NULL; i++)
        if (begins_with(tensor->name, prefix))
            return 1;
    return 0;
}

int dv_checkpoint_has_averages(const dv_checkpoint *checkpoint) {
    return has_arrays(checkpoint, DV_PREFIX_AVERAGE);
}

/* ---- comparing ----------------------------------------------------------------------------- */

/* A comparison under way. */
typedef struct comparison {
    const dv_checkpoint *checkpoint;
    const dv_run *run;
    const char *except;
    bool averages; /* of all arrays, or the arrays themselves where they were frozen and have none */
    dv_difference_callback tell;
    void *context;
    size_t missing, unexpected, different;
    char first[NAME_BYTES]; /* for the message */
} comparison;

/* "[64, 3, 7, 7]" */
static const char *shape_text(int rank, const size_t *shape, char text[SHAPE_BYTES]) {
    size_t used = (size_t)snprintf(text, SHAPE_BYTES, "[");
    for (int d = 0; d < rank && used < SHAPE_BYTES; d++)
        used += (size_t)snprintf(text + used, SHAPE_BYTES - used, "%s%zu", d > 0 ? ", " : "", shape[d]);
    if (used < SHAPE_BYTES)
        snprintf(text + used, SHAPE_BYTES - used, "]");
    return text;
}

/* Counts a difference and tells of it. */
static void count(comparison *c, size_t *kind, char *text) {
    dv_printable(text);
    if (c->missing + c->unexpected + c->different == 0)
        snprintf(c->first, NAME_BYTES, "%.100s", text);
    ++*kind;
    if (c->tell != NULL)
        c->tell(c->context, text);
}

static bool left_out(const comparison *c, const char *name) {
    return c->except != NULL && c->except[0] != '\0' && begins_with(name, c->except);
}

static bool same_shape(const dv_array *tensor, const dv_run_parameter *parameter) {
    if (tensor->rank != parameter->rank)
        return false;
    for (int d = 0; d < tensor->rank; d++)
        if (tensor->shape[d] != parameter->shape[d])
            return false;
    return true;
}

/* The file's array of this name, which is left in `name` with its prefix. */
static const dv_array *find_array(const comparison *c, const char *prefix, const dv_run_parameter *parameter,
                                  char name[NAME_BYTES]) {
    snprintf(name, NAME_BYTES, "%s%s", prefix, parameter->name);
    const dv_array *tensor = dv_array_file_find(c->checkpoint->file, name);
    return tensor == NULL && c->averages ? dv_array_file_find(c->checkpoint->file, parameter->name) : tensor;
}

static void compare_one(comparison *c, const char *prefix, const dv_run_parameter *parameter) {
    char name[NAME_BYTES], text[TEXT_BYTES], is[SHAPE_BYTES], wanted[SHAPE_BYTES];
    const dv_array *tensor = find_array(c, prefix, parameter, name);
    shape_text(parameter->rank, parameter->shape, wanted);
    if (tensor == NULL) {
        snprintf(text, sizeof text, "missing: %s %s", name, wanted);
        count(c, &c->missing, text);
    } else if (!same_shape(tensor, parameter)) {
        snprintf(text, sizeof text, "other shape: %s is %s, should be %s", name,
                 shape_text(tensor->rank, tensor->shape, is), wanted);
        count(c, &c->different, text);
    }
}

static void compare_arrays(comparison *c, const dv_checkpoint_part *part) {
    const dv_run_parameter *parameter;
    for (size_t i = 0; (parameter = dv_run_parameter_at(c->run, i)) != NULL; i++)
        if (dv_checkpoint_array(part, parameter) != NULL && !left_out(c, parameter->name))
            compare_one(c, part->prefix, parameter);
}

static bool is_in_run(const comparison *c, const char *name) {
    const dv_run_parameter *parameter;
    for (size_t i = 0; (parameter = dv_run_parameter_at(c->run, i)) != NULL; i++)
        if (strcmp(parameter->name, name) == 0)
            return true;
    return false;
}

/* What a checkpoint may have besides the weights. */
static bool is_of_training(const char *name) {
    return begins_with(name, DV_PREFIX_OPTIMIZER) || begins_with(name, DV_PREFIX_AVERAGE) ||
           begins_with(name, DV_PREFIX_METHOD) || ends_with(name, ".num_batches_tracked");
}

static void find_unexpected(comparison *c) {
    const dv_array *tensor;
    char text[TEXT_BYTES], is[SHAPE_BYTES];
    for (size_t i = 0; (tensor = dv_array_file_at(c->checkpoint->file, i)) != NULL; i++) {
        if (is_of_training(tensor->name) || left_out(c, tensor->name) || is_in_run(c, tensor->name))
            continue;
        snprintf(text, sizeof text, "unexpected: %.200s %s", tensor->name, shape_text(tensor->rank, tensor->shape, is));
        count(c, &c->unexpected, text);
    }
}

/* Fails if there were differences, with how many and the first of them. */
static dv_status conclude(const comparison *c, dv_error *error) {
    size_t all = c->missing + c->unexpected + c->different;
    if (all == 0)
        return DV_OK;
    return dv_fail(error, DV_ERROR_FORMAT,
                   "%.60s is not of this network: %zu missing, %zu unexpected, %zu of other shape (%.80s%s): give the "
                   "right model and classes",
                   dv_file_shown(c->checkpoint->path), c->missing, c->unexpected, c->different, c->first,
                   all > 1 ? "; ..." : "");
}

/* ---- reading ------------------------------------------------------------------------------- */

static dv_status read_one(const comparison *c, const char *prefix, const dv_run_parameter *parameter, float *array,
                          dv_error *error) {
    char name[NAME_BYTES];
    return dv_array_file_read(c->checkpoint->file, find_array(c, prefix, parameter, name), array, error);
}

static dv_status read_arrays(const comparison *c, const dv_checkpoint_part *part, dv_error *error) {
    const dv_run_parameter *parameter;
    for (size_t i = 0; (parameter = dv_run_parameter_at(c->run, i)) != NULL; i++) {
        float *array = dv_checkpoint_array(part, parameter);
        if (array != NULL && !left_out(c, parameter->name))
            DV_TRY(read_one(c, part->prefix, parameter, array, error));
    }
    return DV_OK;
}

dv_status dv_checkpoint_load(const dv_checkpoint *checkpoint, const dv_checkpoint_choice *choice, dv_run *run,
                             dv_difference_callback tell, void *context, dv_error *error) {
    DV_NEED(checkpoint);
    DV_NEED(choice);
    DV_NEED(run);
    comparison c = {.checkpoint = checkpoint,
                    .run = run,
                    .except = choice->except,
                    .averages = choice->averages,
                    .tell = tell,
                    .context = context};
    dv_checkpoint_part parts[DV_CHECKPOINT_MAX_PARTS], *weights = &parts[0];
    (void)dv_checkpoint_parts(run, parts);
    if (choice->averages)
        strcpy(weights->prefix, DV_PREFIX_AVERAGE);
    compare_arrays(&c, weights);
    find_unexpected(&c);
    DV_TRY(conclude(&c, error));
    return read_arrays(&c, weights, error);
}

/* Reads one note of the state. */
static dv_status read_field(const dv_checkpoint *checkpoint, const dv_state_field *field, dv_train_state *state,
                            dv_error *error) {
    const char *text = dv_checkpoint_note(checkpoint, field->name);
    void *member = (char *)state + field->offset;
    char *end = NULL;
    if (text == NULL && field->is_new)
        return DV_OK;
    errno = 0;
    if (text != NULL && field->is_number)
        *(double *)member = strtod(text, &end);
    else if (text != NULL && text[0] >= '0' && text[0] <= '9')
        *(uint64_t *)member = strtoull(text, &end, 10);
    if (end != NULL && end != text && *end == '\0' && (field->is_number || errno != ERANGE))
        return DV_OK;
    return dv_fail(error, DV_ERROR_FORMAT,
                   "%.100s can't be gone on from: its note %s is %.20s: start from its weights alone (--init)",
                   dv_file_shown(checkpoint->path), field->name, text != NULL ? text : "missing");
}

/* A state that no training leaves would make the loop count wrongly. */
static bool is_possible(const dv_train_state *state) {
    return state->steps_per_epoch > 0 && state->correct <= state->images && (state->images == 0 || state->step > 0) &&
           state->seconds >= 0 && state->all_seconds >= 0 && state->training_seconds >= 0;
}

static dv_status read_state(const dv_checkpoint *checkpoint, dv_train_state *state, dv_error *error) {
    dv_train_state read = dv_train_state_default();
    for (size_t i = 0; i < DV_STATE_FIELDS; i++)
        DV_TRY(read_field(checkpoint, &dv_state_fields[i], &read, error));
    if (!is_possible(&read))
        return dv_fail(error, DV_ERROR_FORMAT, "%.100s can't be gone on from: its notes contradict each other",
                       dv_file_shown(checkpoint->path));
    *state = read;
    return DV_OK;
}

/* What is frozen has neither optimizer's arrays nor averages: a training goes on with the same frozen. */
static dv_status check_freeze(const dv_checkpoint *checkpoint, const dv_run *run, dv_error *error) {
    const char *was = dv_checkpoint_note(checkpoint, DV_NOTE_FREEZE), *now = dv_run_freeze(run);
    was = was != NULL ? was : "";
    if (strcmp(was, now) == 0)
        return DV_OK;
    return dv_fail(error, DV_ERROR_OPTION,
                   "freeze: '%.30s': %.60s was trained with '%.30s': go on with that (--freeze), or begin a training "
                   "from its weights alone (--init)",
                   now, dv_file_shown(checkpoint->path), was);
}

/* The optimizer must be the one that left the checkpoint, and find its arrays there. Before there were others, it was
 * sgd, and there was no note. */
static dv_status check_optimizer(const dv_checkpoint *checkpoint, const dv_run *run, dv_error *error) {
    const dv_optimizer *optimizer = dv_run_optimizer(run);
    const char *was = dv_checkpoint_note(checkpoint, DV_NOTE_OPTIMIZER), *slot;
    was = was != NULL ? was : "sgd";
    if (optimizer != NULL && strcmp(was, dv_optimizer_name(optimizer)) != 0)
        return dv_fail(
            error, DV_ERROR_OPTION,
            "optimizer: %s: %.100s was trained with %.20s: go on with that (--optimizer), or begin a training "
            "from its weights alone (--init)",
            dv_optimizer_name(optimizer), dv_file_shown(checkpoint->path), was);
    for (size_t i = 0; (slot = dv_optimizer_slot_at(optimizer, i)) != NULL; i++) {
        char prefix[NAME_BYTES];
        snprintf(prefix, sizeof prefix, DV_PREFIX_OPTIMIZER "%s.", slot);
        if (!has_arrays(checkpoint, prefix))
            return dv_fail(error, DV_ERROR_OPTION,
                           "optimizer: %.100s has no %s: give %s the options that it was trained with, or begin a "
                           "training from its weights alone (--init)",
                           dv_file_shown(checkpoint->path), slot, was);
    }
    return DV_OK;
}

dv_status dv_checkpoint_resume(const dv_checkpoint *checkpoint, dv_run *run, dv_train_state *state,
                               dv_difference_callback tell, void *context, dv_error *error) {
    DV_NEED(checkpoint);
    DV_NEED(run);
    DV_NEED(state);
    comparison c = {.checkpoint = checkpoint, .run = run, .tell = tell, .context = context};
    dv_checkpoint_part parts[DV_CHECKPOINT_MAX_PARTS];
    size_t count = dv_checkpoint_parts(run, parts);
    dv_train_state read;
    DV_TRY(read_state(checkpoint, &read, error));
    DV_TRY(check_freeze(checkpoint, run, error));
    DV_TRY(check_optimizer(checkpoint, run, error));
    for (size_t i = 0; i < count; i++)
        compare_arrays(&c, &parts[i]);
    const dv_run_parameter *method = dv_run_method_state(run);
    if (method != NULL)
        compare_one(&c, DV_PREFIX_METHOD, method);
    find_unexpected(&c);
    DV_TRY(conclude(&c, error));
    for (size_t i = 0; i < count; i++)
        DV_TRY(read_arrays(&c, &parts[i], error));
    if (method != NULL)
        DV_TRY(read_one(&c, DV_PREFIX_METHOD, method, method->data, error));
    *state = read;
    return DV_OK;
}
