/* Writing checkpoints: lists what there is, for the writer of safetensors. */
#include "train/checkpoint.h"

#include "base/status.h"
#include "train/safetensors.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_BYTES = 40, NAME_BYTES = 256 };

#define FIELD(member, number) \
    { "training." #member, offsetof(dv_train_state, member), number, 0 }
#define NEW_FIELD(member, number) \
    { "training." #member, offsetof(dv_train_state, member), number, 1 }

const dv_state_field dv_state_fields[DV_STATE_FIELDS] = {
    FIELD(step, 0),
    FIELD(steps_per_epoch, 0),
    FIELD(seed, 0),
    FIELD(loss, 1),
    FIELD(correct, 0),
    FIELD(images, 0),
    FIELD(seconds, 1),
    FIELD(all_images, 0),
    FIELD(all_seconds, 1),
    FIELD(training_seconds, 1),
    FIELD(best_top1, 1),
    NEW_FIELD(step_images, 0),
    NEW_FIELD(data_images, 0),
    NEW_FIELD(best_epoch, 0),
};

/* ---- parts --------------------------------------------------------------------------------- */

static float *data_of(const dv_run_parameter *parameter, size_t slot) {
    (void)slot;
    return parameter->data;
}

static float *slot_of(const dv_run_parameter *parameter, size_t slot) {
    return parameter->optimizer != NULL ? parameter->optimizer + slot * parameter->count : NULL;
}

static float *average_of(const dv_run_parameter *parameter, size_t slot) {
    (void)slot;
    return parameter->average;
}

size_t dv_checkpoint_parts(const dv_run *run, dv_checkpoint_part parts[DV_CHECKPOINT_MAX_PARTS]) {
    size_t count = 0;
    const char *name;
    parts[count++] = (dv_checkpoint_part){.prefix = "", .array = data_of};
    for (size_t slot = 0; (name = dv_optimizer_slot_at(dv_run_optimizer(run), slot)) != NULL; slot++) {
        dv_checkpoint_part *part = &parts[count++];
        *part = (dv_checkpoint_part){.array = slot_of, .slot = slot};
        snprintf(part->prefix, sizeof part->prefix, DV_PREFIX_OPTIMIZER "%s.", name);
    }
    parts[count++] = (dv_checkpoint_part){.prefix = DV_PREFIX_AVERAGE, .array = average_of};
    return count;
}

/* ---- writing ------------------------------------------------------------------------------- */

/* Everything that is listed. */
typedef struct listing {
    dv_safetensors_source *sources;
    size_t source_count;
    char (*names)[NAME_BYTES]; /* of sources with a prefix */
    dv_note *notes;
    size_t note_count;
    char numbers[DV_STATE_FIELDS][NUMBER_BYTES];
} listing;

static dv_status add(listing *list, const char *prefix, const dv_run_parameter *parameter, const float *data,
                     dv_error *error) {
    dv_safetensors_source *source = &list->sources[list->source_count];
    char *name = list->names[list->source_count];
    if (snprintf(name, NAME_BYTES, "%s%s", prefix, parameter->name) >= NAME_BYTES)
        return dv_fail(error, DV_ERROR_UNSUPPORTED, "%.80s...: a name of %zu characters: use a shorter one",
                       parameter->name, strlen(parameter->name));
    *source = (dv_safetensors_source){.name = name, .rank = parameter->rank, .shape = parameter->shape, .data = data};
    list->source_count++;
    return DV_OK;
}

/* The weights first, so that what other programs look for comes first. */
static dv_status list_arrays(listing *list, const dv_checkpoint_content *content, dv_error *error) {
    const dv_run_parameter *p;
    dv_checkpoint_part parts[DV_CHECKPOINT_MAX_PARTS];
    size_t count = dv_checkpoint_parts(content->run, parts);
    for (size_t i = 0; (p = dv_run_parameter_at(content->run, i)) != NULL; i++) {
        bool averaged = content->state == NULL && content->averages && p->average != NULL;
        DV_TRY(add(list, "", p, averaged ? p->average : p->data, error));
    }
    for (size_t i = 0; content->state != NULL && (p = dv_run_parameter_at(content->run, i)) != NULL; i++)
        for (size_t k = 1; k < count; k++)
            if (dv_checkpoint_array(&parts[k], p) != NULL)
                DV_TRY(add(list, parts[k].prefix, p, dv_checkpoint_array(&parts[k], p), error));
    p = dv_run_method_state(content->run);
    return p != NULL && content->state != NULL ? add(list, DV_PREFIX_METHOD, p, p->data, error) : DV_OK;
}

/* A number is written so that the same double is read again. */
static void list_state(listing *list, const dv_train_state *state) {
    for (size_t i = 0; i < DV_STATE_FIELDS; i++) {
        const void *member = (const char *)state + dv_state_fields[i].offset;
        if (dv_state_fields[i].is_number)
            snprintf(list->numbers[i], NUMBER_BYTES, "%.17g", *(const double *)member);
        else
            snprintf(list->numbers[i], NUMBER_BYTES, "%" PRIu64, *(const uint64_t *)member);
        list->notes[list->note_count++] = (dv_note){dv_state_fields[i].name, list->numbers[i]};
    }
}

static dv_status list_all(listing *list, const dv_checkpoint_content *content, dv_error *error) {
    size_t most = 1;
    while (dv_run_parameter_at(content->run, most - 1) != NULL)
        most++;
    list->sources = calloc(DV_CHECKPOINT_MAX_PARTS * most, sizeof *list->sources);
    list->names = calloc(DV_CHECKPOINT_MAX_PARTS * most, sizeof *list->names);
    list->notes = calloc(content->note_count + DV_STATE_FIELDS + 3, sizeof *list->notes);
    if (list->sources == NULL || list->names == NULL || list->notes == NULL)
        return dv_fail(error, DV_ERROR_MEMORY, "no memory to write a checkpoint: free some");
    list->notes[list->note_count++] = (dv_note){"format", "pt"}; /* the order of elements; some programs ask for it */
    for (size_t i = 0; i < content->note_count; i++)
        list->notes[list->note_count++] = content->notes[i];
    if (content->state != NULL)
        list_state(list, content->state);
    if (content->state != NULL && *dv_run_freeze(content->run) != '\0')
        list->notes[list->note_count++] = (dv_note){DV_NOTE_FREEZE, dv_run_freeze(content->run)};
    const char *optimizer = dv_optimizer_name(dv_run_optimizer(content->run));
    if (content->state != NULL && optimizer != NULL)
        list->notes[list->note_count++] = (dv_note){DV_NOTE_OPTIMIZER, optimizer};
    return list_arrays(list, content, error);
}

dv_status dv_checkpoint_write(const char *path, const dv_checkpoint_content *content, dv_error *error) {
    listing list = {0};
    if (path == NULL || content == NULL || content->run == NULL)
        return dv_fail(error, DV_ERROR_ARGUMENT, "checkpoint: path, content or run is NULL");
    if (content->notes == NULL && content->note_count > 0)
        return dv_fail(error, DV_ERROR_ARGUMENT, "checkpoint: %zu notes, and their pointer is NULL",
                       content->note_count);
    if (dv_run_failed(content->run))
        return dv_fail(error, DV_ERROR_ARGUMENT, "%s: not written: a step of this run failed half-way", path);
    dv_status status = list_all(&list, content, error);
    if (status == DV_OK)
        status = dv_safetensors_write(path, list.sources, list.source_count, list.notes, list.note_count, error);
    free(list.sources);
    free(list.names);
    free(list.notes);
    return status;
}
