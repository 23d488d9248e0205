/* division train: trains a network, says how it goes, and leaves a folder with what came of it. What to do is read in
 * train_options.c; the library does it (division/training.h), and here it is told. */
#include "train.h"

#include "cli.h"

/* What is shown of one training. */
typedef struct session {
    const train_settings *settings;
    train_screen screen;
    int differences; /* told so far */
    int begun;       /* nothing was wrong with the call */
} session;

/* ---- what is told while it goes on ---------------------------------------------------------- */

static void tell_workers(void *context, size_t workers) {
    train_screen_workers(&((session *)context)->screen, workers);
}

static void tell_corrupt(void *context, const char *text) {
    session *s = context;
    train_screen_wipe(&s->screen);
    cli_fail("corrupt, and another image in its place: %s", text);
}

static void tell_difference(void *context, const char *text) {
    session *s = context;
    train_tell_difference(&s->differences, text);
}

static void advise(void *context, const char *text) {
    (void)context;
    cli_fail("%s", text);
}

static void begin(void *context, const dv_training *training) {
    session *s = context;
    s->begun = 1;
    train_screen_plan(&s->screen, training);
    train_screen_chosen(&s->screen, training);
    train_screen_folder(&s->screen, s->settings);
    train_screen_data(&s->screen, training);
    train_screen_batch(&s->screen, s->settings, training);
    train_screen_scales(&s->screen, training);
    train_screen_left_out(&s->screen, training);
    train_screen_tuned(&s->screen, training);
    if (s->settings->resume)
        train_screen_resume(&s->screen, training);
    train_screen_first_step(&s->screen, training);
}

static void show_step(void *context, const dv_train_progress *progress) {
    session *s = context;
    (s->settings->find_rate ? train_screen_rate : train_screen_step)(&s->screen, progress);
}

static void show_epoch(void *context, const dv_epoch_record *record) {
    session *s = context;
    train_screen_epoch(&s->screen, record, s->settings->options.epochs);
}

/* ---- the command --------------------------------------------------------------------------- */

/* After an interruption: how far it came. */
static int explain_interruption(const session *s, const dv_training *training) {
    unsigned long long step = dv_training_state(training)->step;
    if (!s->begun)
        cli_fail("interrupted before the first step: nothing was changed");
    else if (step == 0)
        cli_fail("interrupted during the first step: nothing was kept");
    else if (s->settings->out != NULL)
        cli_fail("interrupted after step %llu: 'division train --resume %s' goes on from there", step,
                 s->settings->out);
    else
        cli_fail("interrupted after step %llu: nothing was kept, for want of --out", step);
    return CLI_INTERRUPTED;
}

static int train(session *s, dv_training *training, dv_error *error) {
    dv_train_result result;
    dv_status status = dv_training_train(training, &result, error);
    if (status == DV_OK && s->begun)
        train_screen_end(&s->screen, training);
    train_screen_wipe(&s->screen);
    if (status != DV_OK)
        return train_report(s->settings, error);
    int code = cli_finish();
    if (code != CLI_SUCCESS || !result.stopped)
        return code;
    return dv_world_rank(s->settings->options.world) == 0 ? explain_interruption(s, training) : CLI_INTERRUPTED;
}

static int find_rate(session *s, dv_training *training, dv_error *error) {
    return train_find_rate(&s->screen, training, error);
}

static dv_folder_mode mode_of(const train_settings *chosen) {
    if (chosen->resume)
        return DV_FOLDER_GO_ON;
    return chosen->replace ? DV_FOLDER_REPLACE : DV_FOLDER_NEW;
}

static int prepare_and_train(const train_settings *chosen) {
    session s = {.settings = chosen, .screen = train_screen_new(chosen)};
    const dv_training_callbacks callbacks = {.begin = begin,
                                             .progress = show_step,
                                             .epoch = show_epoch,
                                             .workers = tell_workers,
                                             .corrupt = tell_corrupt,
                                             .difference = tell_difference,
                                             .advice = advise,
                                             .context = &s,
                                             .stop = &cli_interrupted};
    dv_training *training = NULL;
    dv_error error = {.status = DV_OK};
    cli_catch_interrupts("stopping after this step; a second Ctrl-C ends at once");
    cli_live choosing = cli_live_choosing(chosen->options.memory[0] == '\0' || chosen->resume || chosen->quiet);
    dv_status status = dv_training_new(&chosen->options, chosen->out, mode_of(chosen), &callbacks, &training, &error);
    cli_live_wipe(&choosing);
    int code =
        status == DV_OK ? (chosen->find_rate ? find_rate : train)(&s, training, &error) : train_report(chosen, &error);
    dv_training_free(training);
    train_leave_folder(chosen);
    if (error.status == DV_ERROR_MEMORY)
        train_explain_memory(&chosen->options);
    train_leave_world(chosen, error.status == DV_OK ? CLI_SUCCESS : code);
    return code;
}

int cli_train(int argc, char **argv) {
    static train_settings chosen;
    int code = train_choose(argc, argv, &chosen);
    return code == CLI_CONTINUE ? prepare_and_train(&chosen) : code;
}
