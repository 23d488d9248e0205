/* division train: trains a network, says how it goes, and leaves a folder with what came of it. What to do is read in
 * train_options.c; here it is done. */
#include "train.h"

#include "cli.h"

#include <division/models.h>
#include <division/threads.h>
#include <division/tools/json.h>

#include <stdio.h>
#include <string.h>

enum { CONFIG_BYTES = 8192, NUMBER_BYTES = 24, NAME_BYTES = 256, NOTE_COUNT = 8 };

/* Everything that one training holds. */
typedef struct session {
    const train_settings *settings;
    dv_dataset *data;
    dv_dataset_shape shape;
    dv_graph *graph;
    dv_plan *plan;
    dv_run *run;
    dv_folder *folder; /* NULL: nothing is written */
    train_screen screen;
    dv_train_state state;
    dv_train_result result;
    size_t loading; /* bytes of the loaders */
    int begun;      /* nothing was wrong with the call */
    int resumed;    /* from a checkpoint */
    int configured; /* config.json is written */
} session;

/* ---- preparing ----------------------------------------------------------------------------- */

static dv_status open_data(session *s, dv_error *error) {
    dv_status status = dv_dataset_open(s->settings->options.data, &s->data, error);
    if (status != DV_OK)
        return status;
    s->shape = dv_dataset_describe(s->data);
    size_t batch = s->settings->options.batch, classes = s->settings->options.classes;
    if (classes > 0 && classes < s->shape.classes)
        return cli_error(error, DV_ERROR_OPTION, "--classes: %zu: the data has %zu: give as many or more", classes,
                         s->shape.classes);
    if (batch > s->shape.images[DV_TRAIN])
        return cli_error(error, DV_ERROR_OPTION,
                         "--batch: %zu: the data has %zu images: use a smaller batch or more data", batch,
                         s->shape.images[DV_TRAIN]);
    return DV_OK;
}

static dv_status write_config(session *s, dv_error *error) {
    char text[DV_OPTIONS_JSON_BYTES];
    dv_status status = dv_options_json(&s->settings->options, text, error);
    if (status != DV_OK)
        return status;
    s->configured = 1;
    return dv_folder_write(s->folder, DV_FOLDER_CONFIG, text, error);
}

/* ---- checkpoints --------------------------------------------------------------------------- */

/* What a checkpoint says of itself, so that it can be tested without being told what it is. */
static dv_status save(session *s, const char *name, const dv_train_state *state, dv_error *error) {
    const train_settings *chosen = s->settings;
    char classes[NUMBER_BYTES], side[NUMBER_BYTES], resize[NUMBER_BYTES], epochs[NUMBER_BYTES];
    snprintf(classes, sizeof classes, "%zu", chosen->options.classes > 0 ? chosen->options.classes : s->shape.classes);
    snprintf(side, sizeof side, "%zu", train_side(chosen, &s->shape));
    dv_loader_options loading = train_loader_options(chosen, s->data);
    snprintf(resize, sizeof resize, "%zu", dv_loader_resize(s->data, &loading));
    snprintf(epochs, sizeof epochs, "%llu", (unsigned long long)dv_train_state_epochs(&s->state));
    const dv_note notes[NOTE_COUNT] = {
        {"model", chosen->options.model},
        {"classes", classes},
        {"side", side},
        {"resize", resize},
        {"precision", dv_type_name((dv_type)chosen->options.precision)},
        {"method", chosen->options.method},
        {"data", chosen->options.data},
        {"epochs", epochs},
    };
    dv_checkpoint_content content = {
        .run = s->run, .state = state, .averages = state == NULL, .notes = notes, .note_count = NOTE_COUNT};
    return dv_folder_save(s->folder, name, &content, error);
}

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
static void advise(const session *s, const dv_checkpoint *checkpoint, dv_checkpoint_choice choice) {
    char layer[NAME_BYTES] = "";
    const char *noted = dv_checkpoint_note(checkpoint, "model");
    const dv_model *model;
    choice.except = last_layer(s->run, layer);
    if (dv_checkpoint_load(checkpoint, &choice, s->run, NULL, NULL, NULL) == DV_OK)
        cli_fail("only the last layer is another, as for other classes: leave it out with --init-except %s", layer);
    else if (noted != NULL && dv_model_find(noted, &model, NULL) == DV_OK &&
             strcmp(noted, s->settings->options.model) != 0)
        cli_fail("these are weights of another network: the file says --model %s, and the call --model %s", noted,
                 s->settings->options.model);
    else
        cli_fail("these are not weights of --model %s: 'division models' lists what there is",
                 s->settings->options.model);
}

/* Reads a file of weights into the run. */
static dv_status load_weights(session *s, const char *path, dv_error *error) {
    dv_checkpoint *checkpoint;
    int differences = 0;
    dv_status status = dv_checkpoint_open(path, &checkpoint, error);
    if (status != DV_OK)
        return status;
    dv_checkpoint_choice choice = {
        .averages = dv_checkpoint_has_averages(checkpoint),
        .except = s->settings->options.init_except[0] != '\0' ? s->settings->options.init_except : NULL};
    status = dv_checkpoint_load(checkpoint, &choice, s->run, train_tell_difference, &differences, error);
    if (differences > 0)
        advise(s, checkpoint, choice);
    dv_checkpoint_close(checkpoint);
    return status;
}

/* Goes on from the folder's checkpoint, if there is one. */
static dv_status resume(session *s, dv_error *error) {
    char path[TRAIN_PATH_BYTES];
    dv_checkpoint *checkpoint;
    int differences = 0;
    if (snprintf(path, sizeof path, "%s/%s", s->settings->out, DV_FOLDER_LAST) >= (int)sizeof path)
        return cli_error(error, DV_ERROR_OPTION, "--out: a path of %zu characters: use a shorter one",
                         strlen(s->settings->out));
    if (!train_is_file(path))
        return DV_OK;
    dv_status status = dv_checkpoint_open(path, &checkpoint, error);
    if (status != DV_OK)
        return status;
    status = dv_checkpoint_resume(checkpoint, s->run, &s->state, train_tell_difference, &differences, error);
    dv_checkpoint_close(checkpoint);
    s->resumed = status == DV_OK;
    return status;
}

/* ---- preparing, continued ------------------------------------------------------------------- */

/* Reads the checkpoint to go on from, or the weights to begin with. A folder that is there is locked first, so that
 * what is read is the last word. */
static dv_status read_weights(session *s, dv_error *error) {
    const train_settings *chosen = s->settings;
    dv_status status = DV_OK;
    if (chosen->resume && train_is_folder(chosen->out)) {
        status = dv_folder_open(chosen->out, DV_FOLDER_GO_ON, &s->folder, error);
        if (status == DV_OK)
            status = resume(s, error);
    }
    if (status == DV_OK && chosen->options.init[0] != '\0' && !s->resumed)
        status = load_weights(s, chosen->options.init, error);
    return status;
}

static dv_status prepare(session *s, dv_error *error) {
    const train_settings *chosen = s->settings;
    dv_status status = dv_options_check(&chosen->options, error);
    if (status == DV_OK)
        status = open_data(s, error);
    if (status == DV_OK)
        status = dv_options_plan(&chosen->options, &s->shape, &s->graph, &s->plan, error);
    if (status == DV_OK)
        status = dv_run_new(s->plan, chosen->options.seed, &s->run, error);
    return status == DV_OK ? read_weights(s, error) : status;
}

static void release(session *s) {
    dv_folder_close(s->folder);
    dv_run_free(s->run);
    dv_plan_free(s->plan);
    dv_graph_free(s->graph);
    dv_dataset_close(s->data);
}

/* ---- training ------------------------------------------------------------------------------ */

static void tell_corrupt(void *context, const char *text) {
    session *s = context;
    train_screen_wipe(&s->screen);
    cli_fail("corrupt, and another image in its place: %s", text);
}

/* The folder comes when nothing is left that could be wrong with the call: one that can't work leaves nothing behind.
 * What it is to replace stays until there is something in its place. */
static dv_status begin(void *context, dv_error *error) {
    session *s = context;
    const train_settings *chosen = s->settings;
    dv_plan_summary plan = dv_plan_totals(s->plan);
    dv_status status = DV_OK;
    if (chosen->out != NULL && s->folder == NULL)
        status = dv_folder_open(chosen->out, chosen->replace ? DV_FOLDER_REPLACE : DV_FOLDER_NEW, &s->folder, error);
    if (status == DV_OK && s->folder != NULL && !s->resumed)
        status = write_config(s, error);
    if (status != DV_OK)
        return status;
    s->begun = 1;
    train_screen_plan(&s->screen, &plan, s->loading);
    train_screen_scales(&s->screen, chosen, s->data);
    train_screen_left_out(&s->screen, chosen, s->run, s->data);
    if (chosen->resume)
        train_screen_resume(&s->screen, &s->state, s->resumed);
    return DV_OK;
}

static void show_step(void *context, const dv_train_progress *progress) {
    session *s = context;
    train_screen_step(&s->screen, progress);
}

static void describe_run(const session *s, dv_json *json) {
    const dv_epoch_record *last = &s->result.last;
    dv_plan_summary plan = dv_plan_totals(s->plan);
    dv_json_text(json, "model", s->settings->options.model);
    dv_json_text(json, "data", s->settings->options.data);
    dv_json_text(json, "method", s->settings->options.method);
    dv_json_text(json, "precision", dv_type_name((dv_type)s->settings->options.precision));
    dv_json_unsigned(json, "batch", s->settings->options.batch);
    dv_json_unsigned(json, "epochs", last->epoch);
    dv_json_unsigned(json, "steps", last->steps);
    dv_json_boolean(json, "stopped", s->result.stopped);
    dv_json_number(json, "train_loss", last->train_loss);
    dv_json_number(json, "test_loss", last->test_loss);
    dv_json_number(json, "test_top1", last->test_top1);
    dv_json_number(json, "best_top1", s->state.best_top1);
    dv_json_number(json, "images_per_second",
                   (double)(s->state.all_images + s->state.images) / (s->state.training_seconds + s->state.seconds));
    dv_json_number(json, "seconds", s->state.all_seconds + s->state.seconds);
    dv_json_unsigned(json, "activation_bytes", plan.activations);
    dv_json_unsigned(json, "loader_bytes", s->loading);
    dv_json_unsigned(json, "planned_bytes", plan.planned + s->loading);
    dv_json_unsigned(json, "peak_bytes", dv_memory_peak());
}

static dv_status write_summary(session *s, dv_error *error) {
    char text[CONFIG_BYTES];
    dv_json json;
    if (s->folder == NULL || s->result.last.epoch == 0) /* nothing was left to do: what is there stays */
        return DV_OK;
    dv_json_to_buffer(&json, text, sizeof text - 1);
    dv_json_object(&json, NULL);
    describe_run(s, &json);
    dv_json_end(&json);
    dv_status status = dv_json_finish(&json, error);
    if (status != DV_OK)
        return status;
    strcat(text, "\n");
    return dv_folder_write(s->folder, DV_FOLDER_SUMMARY, text, error);
}

/* The best weights, the line of the log, the summary, then (in keep_state) the checkpoint to go on from: whoever is
 * killed in between does this epoch again and writes the same. */
static dv_status keep_epoch(void *context, const dv_epoch_record *record, dv_error *error) {
    session *s = context;
    dv_status status = DV_OK;
    train_screen_epoch(&s->screen, record, s->settings->options.epochs);
    if (s->folder != NULL && record->improved)
        status = save(s, DV_FOLDER_BEST, NULL, error);
    if (s->folder != NULL && status == DV_OK)
        status = dv_folder_log(s->folder, record, error);
    return status == DV_OK ? write_summary(s, error) : status;
}

static dv_status keep_state(void *context, const dv_train_state *state, dv_error *error) {
    session *s = context;
    dv_status status = DV_OK;
    if (s->folder == NULL || state->step == 0) /* the weights that it began with are nothing to keep */
        return DV_OK;
    if (!s->configured) /* options that go on; those that do not fit never get here */
        status = write_config(s, error);
    return status == DV_OK ? save(s, DV_FOLDER_LAST, state, error) : status;
}

static dv_status train(session *s, dv_error *error) {
    dv_plan_summary plan = dv_plan_totals(s->plan);
    dv_train_callbacks callbacks = {begin, show_step, keep_epoch, keep_state, s, &cli_interrupted};
    dv_options options = s->settings->options;
    options.loading.corrupt = tell_corrupt;
    options.loading.context = s;
    s->loading = dv_loading_bytes(&options.loading, dv_run_input_map(s->run), s->data);
    dv_status status = dv_train(s->run, s->plan, s->data, &options, &callbacks, &s->state, &s->result, error);
    if (status == DV_OK)
        status = write_summary(s, error);
    if (status == DV_OK && s->begun)
        train_screen_end(&s->screen, &plan, s->loading, &s->state);
    train_screen_wipe(&s->screen);
    return status;
}

/* ---- the command --------------------------------------------------------------------------- */

static int finish(const session *s) {
    int code = cli_finish();
    if (code != CLI_SUCCESS || !s->result.stopped)
        return code;
    if (!s->begun)
        cli_fail("interrupted before the first step: nothing was changed");
    else if (s->state.step == 0)
        cli_fail("interrupted during the first step: nothing was kept");
    else if (s->folder != NULL)
        cli_fail("interrupted after step %llu: --resume goes on from there", (unsigned long long)s->state.step);
    else
        cli_fail("interrupted after step %llu: nothing was kept, for want of --out", (unsigned long long)s->state.step);
    return CLI_INTERRUPTED;
}

static int run(const train_settings *chosen) {
    session s = {.settings = chosen, .screen = train_screen_new(chosen), .state = dv_train_state_default()};
    dv_error error;
    (void)dv_set_threads((int)chosen->options.threads, NULL); /* its bounds are the option's */
    cli_catch_interrupts();
    dv_status status = prepare(&s, &error);
    int planned = s.plan != NULL;
    if (status == DV_OK)
        status = train(&s, &error);
    int code = status == DV_OK ? finish(&s) : cli_report(&error);
    if (status == DV_ERROR_MEMORY && planned)
        train_explain_memory(&chosen->options, s.data);
    release(&s);
    return code;
}

int cli_train(int argc, char **argv) {
    static train_settings chosen;
    int code = train_choose(argc, argv, &chosen);
    return code == CLI_CONTINUE ? run(&chosen) : code;
}
