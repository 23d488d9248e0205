/* A training from its options: preparing it, and training with a folder that is written on the way. */
#include "train/training.h"

#include "base/sizes.h"
#include "base/status.h"
#include "base/system_memory.h"
#include "train/ranks.h"

#include <division/threads.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PASSES_PATH_BYTES = DV_PATH_BYTES + sizeof DV_FOLDER_PASSES };

/* ---- preparing ----------------------------------------------------------------------------- */

static dv_status open_data(dv_training *t, dv_error *error) {
    DV_TRY(dv_dataset_open_with(t->options.data, &t->options.split, &t->data, error));
    t->shape = dv_dataset_describe(t->data);
    if (t->options.classes > 0 && t->options.classes < t->shape.classes)
        return dv_fail(error, DV_ERROR_OPTION, "--classes: %zu: the data has %zu: give as many or more",
                       t->options.classes, t->shape.classes);
    return dv_options_fit_batch(&t->options, &t->shape, error);
}

/* Where the passes that a training had are, or NULL without a folder. */
static const char *passes_path(const dv_training *t, char path[PASSES_PATH_BYTES]) {
    snprintf(path, PASSES_PATH_BYTES, "%s/%s", t->path != NULL ? t->path : "", DV_FOLDER_PASSES);
    return t->path != NULL ? path : NULL;
}

/* What the plan may come to within the memory that is allowed, whose reserve has a hundredth of it; 0: nothing was
 * said. */
static size_t room_of(const dv_chosen *chosen) {
    size_t spare = chosen->memory > 0 ? chosen->memory - chosen->planned - chosen->beside : 0;
    return chosen->memory > 0 ? chosen->planned + spare / 101 * 100 : 0;
}

/* Chooses the passes of the graph and plans again. A training that goes on has the passes that it had. */
static dv_status tune(dv_training *t, dv_error *error) {
    dv_tune_options tune = dv_tune_options_default();
    char optimizer[DV_OPTIMIZER_TEXT_BYTES], own[PASSES_PATH_BYTES];
    dv_plan_options told;
    DV_TRY(dv_tune_parse(t->options.tune, &tune, error));
    if (tune.mode == DV_TUNE_OFF)
        return DV_OK;
    if (t->mode == DV_FOLDER_GO_ON)
        tune.kept = t->passes[0] != '\0' ? t->passes : passes_path(t, own);
    tune.room = room_of(&t->chosen);
    dv_plan_free(t->plan);
    t->plan = NULL;
    DV_TRY(dv_options_for_plan(&t->options, optimizer, &told, error));
    DV_TRY(dv_graph_tune(t->graph, &told, &tune, &t->tuned, error));
    return dv_plan_new(t->graph, &told, &t->plan, error);
}

/* Chooses the method by the memory that there may be. A training that goes on keeps what it was chosen. */
static dv_status choose_method(dv_training *t, dv_error *error) {
    static const char chosen[] = "mixed:";
    bool goes_on = t->mode == DV_FOLDER_GO_ON && strncmp(t->options.method, chosen, strlen(chosen)) == 0;
    size_t memory;
    if (t->options.memory[0] == '\0' || goes_on)
        return DV_OK;
    DV_TRY(dv_options_memory(&t->options, &memory, error));
    return dv_options_choose(&t->options, t->data, &t->chosen, error);
}

/* What is resident before the plan's memory is mapped. Where a probe has been, the peak is the probe's. */
static size_t program_bytes(const dv_training *t) {
    return t->chosen.memory > 0 ? dv_system_memory_resident("") : dv_memory_peak();
}

static dv_status make_run(dv_training *t, dv_error *error) {
    dv_loading *loading = &t->options.loading;
    DV_TRY(choose_method(t, error));
    DV_TRY(dv_options_plan(&t->options, &t->shape, &t->graph, &t->plan, error));
    t->program_bytes = program_bytes(t);
    t->file_bytes = dv_system_memory_of_files("");
    DV_TRY(tune(t, error));
    DV_TRY(dv_run_new(t->plan, t->options.seed, &t->run, error));
    if (t->callbacks.corrupt != NULL) {
        loading->corrupt = t->callbacks.corrupt;
        loading->context = t->callbacks.context;
    }
    t->loading_bytes = dv_loading_bytes(loading, dv_run_input_map(t->run), t->data);
    return dv_world_rank(t->options.world) == 0 ? dv_training_read_weights(t, error) : DV_OK;
}

static dv_status make_data(dv_training *t, dv_error *error) {
    DV_TRY(dv_options_check(&t->options, error));
    DV_TRY(dv_set_threads((int)t->options.threads, error));
    DV_TRY(dv_share_batches(&t->options, error));
    return open_data(t, error);
}

static void forget_passes(dv_training *t) {
    if (t->passes[0] != '\0')
        (void)unlink(t->passes);
    t->passes[0] = '\0';
}

/* What fails on one rank fails on all. Rank 0 alone has a folder: what it reads there is for all. */
static dv_status prepare(dv_training *t, dv_error *error) {
    dv_world *world = t->options.world;
    char passes[PASSES_PATH_BYTES];
    if (t->mode == DV_FOLDER_GO_ON) {
        DV_TRY(dv_ranks_take_options(&t->options, error));
        DV_TRY(dv_ranks_copy_file(world, passes_path(t, passes), t->passes, error));
    }
    DV_TRY(dv_world_agree(world, make_data(t, error), error));
    DV_TRY(dv_ranks_compare(&t->options, &t->shape, error));
    dv_status status = make_run(t, error);
    forget_passes(t);
    DV_TRY(dv_world_agree(world, status, error));
    return dv_ranks_begin_alike(t->run, world, &t->state, error);
}

dv_status dv_training_new(const dv_options *options, const char *folder, dv_folder_mode mode,
                          const dv_training_callbacks *callbacks, dv_training **training, dv_error *error) {
    DV_NEED(options);
    DV_NEED(training);
    dv_training *made = calloc(1, sizeof *made);
    bool writes = folder != NULL && dv_world_rank(options->world) == 0;
    char *path = writes ? strdup(folder) : NULL;
    if (made == NULL || (writes && path == NULL)) {
        free(made);
        free(path);
        return dv_fail(error, DV_ERROR_MEMORY, "no memory for a training: free some");
    }
    made->options = *options;
    made->path = path;
    made->mode = mode;
    made->state = dv_train_state_default();
    if (callbacks != NULL)
        made->callbacks = *callbacks;
    dv_status status = prepare(made, error);
    if (status == DV_OK)
        *training = made;
    else
        dv_training_free(made);
    return status;
}

void dv_training_free(dv_training *training) {
    if (training == NULL)
        return;
    forget_passes(training);
    dv_folder_close(training->folder);
    dv_run_free(training->run);
    dv_plan_free(training->plan);
    dv_graph_free(training->graph);
    dv_dataset_close(training->data);
    free(training->path);
    free(training);
}

/* ---- training ------------------------------------------------------------------------------ */

/* The folder comes when nothing is left that could be wrong with the call: one that can't work leaves nothing behind.
 * What it is to replace stays until there is something in its place. */
static dv_status begin(void *context, dv_error *error) {
    dv_training *t = context;
    dv_folder_mode mode = t->mode == DV_FOLDER_GO_ON ? DV_FOLDER_NEW : t->mode;
    if (t->path != NULL && t->folder == NULL)
        DV_TRY(dv_folder_open(t->path, mode, &t->folder, error));
    if (!t->resumed && !t->configured)
        DV_TRY(dv_training_write_config(t, error));
    if (t->callbacks.begin != NULL)
        t->callbacks.begin(t->callbacks.context, t);
    return DV_OK;
}

static void progress(void *context, const dv_train_progress *progress) {
    const dv_training *t = context;
    if (t->callbacks.progress != NULL)
        t->callbacks.progress(t->callbacks.context, progress);
}

static void tell_workers(void *context, size_t workers) {
    const dv_training *t = context;
    if (t->callbacks.workers != NULL)
        t->callbacks.workers(t->callbacks.context, workers);
}

/* The best weights, the line of the log, the summary, then (in keep_state) the checkpoint to go on from: whoever is
 * killed in between does this epoch again and writes the same. */
static dv_status keep_epoch(void *context, const dv_epoch_record *record, dv_error *error) {
    dv_training *t = context;
    if (t->callbacks.epoch != NULL)
        t->callbacks.epoch(t->callbacks.context, record);
    if (record->improved)
        DV_TRY(dv_training_save(t, DV_FOLDER_BEST, NULL, error));
    if (t->folder != NULL)
        DV_TRY(dv_folder_log(t->folder, record, error));
    return dv_training_write_summary(t, error);
}

/* Weights that it began with are nothing to keep. Options that go on are written with the first checkpoint: those that
 * do not fit never get here. */
static dv_status keep_state(void *context, const dv_train_state *state, dv_error *error) {
    dv_training *t = context;
    if (state->step == 0)
        return DV_OK;
    if (!t->configured)
        DV_TRY(dv_training_write_config(t, error));
    return dv_training_save(t, DV_FOLDER_LAST, state, error);
}

dv_status dv_training_train(dv_training *training, dv_train_result *result, dv_error *error) {
    DV_NEED(training);
    dv_training *t = training;
    const dv_train_callbacks callbacks = {.begin = begin,
                                          .progress = progress,
                                          .epoch = keep_epoch,
                                          .save = keep_state,
                                          .workers = tell_workers,
                                          .context = t,
                                          .stop = t->callbacks.stop};
    dv_status status = dv_train(t->run, t->plan, t->data, &t->options, &callbacks, &t->state, &t->result, error);
    if (status == DV_OK)
        status = dv_training_write_summary(t, error);
    if (result != NULL)
        *result = t->result;
    return status;
}

/* ---- what it is made of -------------------------------------------------------------------- */

const dv_options *dv_training_options(const dv_training *training) {
    return &training->options;
}

const dv_dataset *dv_training_data(const dv_training *training) {
    return training->data;
}

const dv_plan *dv_training_plan(const dv_training *training) {
    return training->plan;
}

const dv_chosen *dv_training_chosen(const dv_training *training) {
    return training->chosen.memory > 0 ? &training->chosen : NULL;
}

const dv_tune_result *dv_training_tuned(const dv_training *training) {
    return &training->tuned;
}

dv_run *dv_training_run(const dv_training *training) {
    return training->run;
}

const dv_train_state *dv_training_state(const dv_training *training) {
    return &training->state;
}

int dv_training_resumed(const dv_training *training) {
    return training->resumed;
}

size_t dv_training_loading_bytes(const dv_training *training) {
    return training->loading_bytes;
}

size_t dv_training_program_bytes(const dv_training *training) {
    return training->program_bytes;
}

size_t dv_training_code_bytes(const dv_training *training) {
    size_t now = dv_system_memory_of_files("");
    return now > training->file_bytes ? now - training->file_bytes : 0;
}
