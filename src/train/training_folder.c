/* What a training writes into its folder: options, checkpoints, the last figures. */
#include "train/training.h"

#include "base/status.h"
#include "train/class_names.h"

#include <division/checkpoint.h>
#include <division/info.h>
#include <division/tools/json.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUMMARY_BYTES = 8192, NUMBER_BYTES = 24, MOST_NOTES = 12 };

static dv_status write_passes(const dv_training *t, dv_error *error) {
    char path[DV_PATH_BYTES + sizeof DV_FOLDER_PASSES];
    snprintf(path, sizeof path, "%s/%s", t->path, DV_FOLDER_PASSES);
    return dv_graph_write_passes(t->graph, path, error);
}

dv_status dv_training_write_config(dv_training *t, dv_error *error) {
    char text[DV_OPTIONS_JSON_BYTES];
    if (t->folder == NULL)
        return DV_OK;
    DV_TRY(dv_options_json(&t->options, text, error));
    t->configured = true;
    DV_TRY(dv_folder_write(t->folder, DV_FOLDER_CONFIG, text, error));
    return t->tuned.passes > 0 ? write_passes(t, error) : DV_OK;
}

/* A number for a note. */
static const char *text_of(size_t number, char text[NUMBER_BYTES]) {
    snprintf(text, NUMBER_BYTES, "%zu", number);
    return text;
}

dv_status dv_training_normalisation(const dv_training *t, char text[DV_NORMALISATION_BYTES], dv_error *error) {
    dv_loader_options loading = dv_options_loader(&t->options, t->data);
    dv_image_normalisation normalisation = dv_loader_normalisation(t->data, &loading);
    return dv_image_normalisation_format(&normalisation, text, error);
}

/* Notes say what the checkpoint is of, so that it can be tested, and can classify images, without being told. */
static dv_status save(dv_training *t, const char *name, const dv_train_state *state, const char *class_names,
                      dv_error *error) {
    const dv_options *options = &t->options;
    dv_loader_options loading = dv_options_loader(options, t->data);
    char numbers[5][NUMBER_BYTES], share[NUMBER_BYTES], normalisation[DV_NORMALISATION_BYTES];
    DV_TRY(dv_training_normalisation(t, normalisation, error));
    snprintf(share, sizeof share, "%.17g", options->split.hold_out);
    const dv_note notes[MOST_NOTES] = {
        {"model", options->model},
        {"classes", text_of(options->classes > 0 ? options->classes : t->shape.classes, numbers[0])},
        {"side", text_of(loading.side, numbers[1])},
        {"resize", text_of(dv_loader_resize(t->data, &loading), numbers[2])},
        {DV_NOTE_NORMALISE, normalisation},
        {"precision", dv_type_name((dv_type)options->precision)},
        {"method", options->method},
        {"data", options->data},
        {"hold-out", share},
        {"hold-out-seed", text_of((size_t)options->split.seed, numbers[4])},
        {"epochs", text_of((size_t)dv_train_state_epochs(&t->state), numbers[3])},
        {DV_NOTE_CLASS_NAMES, class_names},
    };
    dv_checkpoint_content content = {.run = t->run,
                                     .state = state,
                                     .averages = state == NULL,
                                     .notes = notes,
                                     .note_count = class_names != NULL ? MOST_NOTES : MOST_NOTES - 1};
    return dv_folder_save(t->folder, name, &content, error);
}

dv_status dv_training_save(dv_training *t, const char *name, const dv_train_state *state, dv_error *error) {
    char *class_names;
    if (t->folder == NULL)
        return DV_OK;
    dv_status status = dv_class_names_text(t->data, &class_names, error);
    if (status == DV_OK)
        status = save(t, name, state, class_names, error);
    free(class_names);
    return status;
}

static void describe(const dv_training *t, dv_json *json) {
    const dv_epoch_record *last = &t->result.last;
    const dv_train_state *state = &t->state;
    dv_plan_summary plan = dv_plan_totals(t->plan);
    dv_json_text(json, "model", t->options.model);
    dv_json_text(json, "data", t->options.data);
    dv_json_text(json, "method", t->options.method);
    dv_json_text(json, "precision", dv_type_name((dv_type)t->options.precision));
    dv_json_unsigned(json, "batch", t->options.batch);
    dv_json_unsigned(json, "epochs", last->epoch);
    dv_json_unsigned(json, "steps", last->steps);
    dv_json_boolean(json, "stopped", t->result.stopped);
    dv_json_number(json, "train_loss", last->train_loss);
    dv_json_number(json, "test_loss", last->test_loss);
    dv_json_number(json, "test_top1", last->test_top1);
    dv_json_number(json, "best_top1", state->best_top1);
    dv_json_number(json, "images_per_second",
                   (double)(state->all_images + state->images) / (state->training_seconds + state->seconds));
    dv_json_number(json, "seconds", state->all_seconds + state->seconds);
    dv_json_unsigned(json, "activation_bytes", plan.activations);
    dv_json_unsigned(json, "loader_bytes", t->loading_bytes);
    dv_json_unsigned(json, "planned_bytes", plan.planned + t->loading_bytes);
    dv_json_unsigned(json, "program_bytes", t->program_bytes);
    dv_json_unsigned(json, "code_bytes", dv_training_code_bytes(t));
    dv_json_unsigned(json, "peak_bytes", dv_memory_peak());
}

dv_status dv_training_write_summary(dv_training *t, dv_error *error) {
    char text[SUMMARY_BYTES];
    dv_json json;
    if (t->folder == NULL || t->result.last.epoch == 0) /* nothing was left to do: what is there stays */
        return DV_OK;
    dv_json_to_buffer(&json, text, sizeof text - 1);
    dv_json_object(&json, NULL);
    describe(t, &json);
    dv_json_end(&json);
    DV_TRY(dv_json_finish(&json, error));
    strcat(text, "\n");
    return dv_folder_write(t->folder, DV_FOLDER_SUMMARY, text, error);
}
