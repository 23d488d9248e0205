/* What `division train` shows: on a terminal one line that is drawn anew while it runs and a line per epoch that
 * stays; elsewhere lines alone, so that a log of them can be read. */
#include "train.h"

#include "cli.h"

#include <math.h>
#include <stdio.h>

train_screen train_screen_new(const train_settings *settings) {
    return (train_screen){
        .quiet = settings->quiet, .json = settings->json, .line = cli_live_new(settings->quiet || settings->json)};
}

void train_screen_wipe(train_screen *screen) {
    cli_live_wipe(&screen->line);
}

static int silent(const train_screen *screen) {
    return screen->quiet || screen->json;
}

void train_screen_plan(train_screen *screen, const dv_training *training) {
    dv_plan_summary totals = dv_plan_totals(dv_training_plan(training)), *plan = &totals;
    size_t loading = dv_training_loading_bytes(training);
    static const char *const names[] = {"parameters",  "gradients", "optimizer", "running statistics",
                                        "activations", "workspace", "loader"};
    const size_t bytes[] = {plan->parameters,  plan->gradients, plan->optimizer, plan->buffers,
                            plan->activations, plan->workspace, loading};
    char text[CLI_BYTES_TEXT];
    if (silent(screen))
        return;
    printf("planned %s:", cli_bytes_text((double)(plan->planned + loading), text));
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++)
        printf("%s %s %s", i > 0 ? "," : "", names[i], cli_bytes_text((double)bytes[i], text));
    if (plan->spilled > 0)
        printf("; in a file %s", cli_bytes_text((double)plan->spilled, text));
    printf("\n");
    fflush(stdout);
}

void train_screen_scales(train_screen *screen, const dv_training *training) {
    const dv_dataset *data = dv_training_data(training);
    dv_loader_options options = dv_options_loader(dv_training_options(training), data);
    if (silent(screen) || !dv_loader_scales_differ(data, &options))
        return;
    printf("tests show images at another scale than training, resized to %zu for a side of %zu: leave out --resize for "
           "the same\n",
           options.resize, options.side);
    fflush(stdout);
}

void train_screen_left_out(train_screen *screen, const dv_training *training) {
    const dv_options *options = dv_training_options(training);
    const dv_run *run = dv_training_run(training);
    size_t images = dv_train_left_out(run, dv_training_data(training), options);
    if (silent(screen) || options->drop_last || images == 0)
        return;
    printf("the last batch of an epoch, of %zu image%s, is left out: batch norms of one value per image need %zu\n",
           images, images == 1 ? "" : "s", dv_run_fewest_images(run));
    fflush(stdout);
}

void train_screen_resume(train_screen *screen, const dv_training *training) {
    const dv_train_state *state = dv_training_state(training);
    if (silent(screen))
        return;
    if (dv_training_resumed(training))
        printf("goes on after step %llu; epochs complete: %llu\n", (unsigned long long)state->step,
               (unsigned long long)dv_train_state_epochs(state));
    else
        printf("no checkpoint yet: begins at the start\n");
    fflush(stdout);
}

void train_screen_step(train_screen *screen, const dv_train_progress *progress) {
    char left[CLI_LEFT_TEXT], peak[CLI_BYTES_TEXT];
    if (!cli_live_due(&screen->line))
        return;
    cli_live_draw(&screen->line, "epoch %zu/%zu  %s %zu/%zu  loss %.4f  top-1 %.2f %%  %.0f images/s%s  peak %s",
                  progress->epoch, progress->epochs, progress->testing ? "test" : "step", progress->step,
                  progress->steps, progress->loss, progress->top1, progress->images_per_second,
                  cli_left_text(progress->seconds_left, left), cli_bytes_text((double)progress->peak_bytes, peak));
}

static void print_epoch(const dv_epoch_record *record, size_t epochs) {
    char peak[CLI_BYTES_TEXT];
    printf("epoch %zu/%zu  loss %.4f  top-1 %.2f %%", record->epoch, epochs, record->train_loss, record->train_top1);
    if (record->tested)
        printf("  test loss %.4f  test top-1 %.2f %%", record->test_loss, record->test_top1);
    printf("  %.0f images/s  peak %s  %.1f s", record->images_per_second,
           cli_bytes_text((double)record->peak_bytes, peak), record->seconds);
    if (record->spilled_bytes > 0)
        printf(", %.1f of them waiting for the file", record->waited_seconds);
    printf("\n");
}

void train_screen_epoch(train_screen *screen, const dv_epoch_record *record, size_t epochs) {
    char text[DV_EPOCH_JSON_BYTES];
    if (screen->quiet)
        return;
    train_screen_wipe(screen);
    if (!screen->json)
        print_epoch(record, epochs);
    else if (dv_epoch_json(record, text, NULL) == DV_OK)
        printf("%s\n", text);
    fflush(stdout);
}

void train_screen_end(train_screen *screen, const dv_training *training) {
    dv_plan_summary plan = dv_plan_totals(dv_training_plan(training));
    double best = dv_training_state(training)->best_top1;
    size_t bytes = plan.planned + dv_training_loading_bytes(training);
    char planned[CLI_BYTES_TEXT], activations[CLI_BYTES_TEXT], peak[CLI_BYTES_TEXT];
    train_screen_wipe(screen);
    if (silent(screen))
        return;
    if (!isnan(best))
        printf("best test top-1 %.2f %%\n", best);
    printf("planned %s, activations %s, peak %s resident\n", cli_bytes_text((double)bytes, planned),
           cli_bytes_text((double)plan.activations, activations), cli_bytes_text((double)dv_memory_peak(), peak));
}
