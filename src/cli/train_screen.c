/* What `division train` shows: on a terminal one line that is drawn anew while it runs and a line per epoch that
 * stays; elsewhere lines alone, so that a log of them can be read. */
#include "train.h"

#include "cli.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { LINE_BYTES = 1024 };

train_screen train_screen_new(const train_settings *settings) {
    return (train_screen){.quiet = settings->quiet,
                          .json = settings->json,
                          .line = cli_live_new(stdout, settings->quiet || settings->json)};
}

void train_screen_wipe(train_screen *screen) {
    cli_live_wipe(&screen->line);
}

/* Adds to a text; what does not fit is left out. */
static void DV_PRINTF(3, 4) add(char *text, size_t bytes, const char *format, ...) {
    size_t used = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, bytes - used, format, arguments);
    va_end(arguments);
}

/* The plan is not all that a process takes: the rest stands beside it, so that the sum can be compared with the peak.
 */
static void print_program(train_screen *screen, size_t planned, size_t program) {
    char own[CLI_BYTES_TEXT], sum[CLI_BYTES_TEXT];
    cli_live_print(&screen->line, "with program and libraries, which take %s already: %s",
                   cli_bytes_text((double)program, own), cli_bytes_text((double)(planned + program), sum));
}

void train_screen_plan(train_screen *screen, const dv_training *training) {
    dv_plan_summary totals = dv_plan_totals(dv_training_plan(training)), *plan = &totals;
    size_t loading = dv_training_loading_bytes(training);
    static const char *const names[] = {"parameters",  "gradients", "optimizer", "running statistics",
                                        "activations", "workspace", "loader"};
    const size_t bytes[] = {plan->parameters,  plan->gradients, plan->optimizer, plan->buffers,
                            plan->activations, plan->workspace, loading};
    char line[LINE_BYTES] = "", text[CLI_BYTES_TEXT];
    add(line, sizeof line, "planned %s:", cli_bytes_text((double)(plan->planned + loading), text));
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++)
        add(line, sizeof line, "%s %s %s", i > 0 ? "," : "", names[i], cli_bytes_text((double)bytes[i], text));
    if (plan->spilled > 0)
        add(line, sizeof line, "; in a file %s", cli_bytes_text((double)plan->spilled, text));
    cli_live_print(&screen->line, "%s", line);
    print_program(screen, plan->planned + loading, dv_training_program_bytes(training));
}

void train_screen_chosen(train_screen *screen, const dv_training *training) {
    const dv_chosen *c = dv_training_chosen(training);
    char memory[CLI_BYTES_TEXT], all[CLI_BYTES_TEXT];
    if (c != NULL)
        cli_live_print(&screen->line,
                       "chosen for %s: at most %s in all; noise %.3g of the batch's (published division %.3g), time "
                       "%.2f of that of none, as predicted",
                       cli_bytes_text((double)c->memory, memory), cli_bytes_text((double)(c->planned + c->beside), all),
                       c->noise, c->division_noise, c->seconds / c->none_seconds);
}

void train_screen_folder(train_screen *screen, const train_settings *settings) {
    if (settings->claimed[0] != '\0')
        cli_live_print(&screen->line, "writes to %s (--out chooses another folder, --out nowhere none)",
                       settings->claimed);
}

void train_screen_batch(train_screen *screen, const train_settings *settings, const dv_training *training) {
    const dv_options *made = dv_training_options(training), *asked = &settings->options;
    if (asked->batch_auto && dv_training_chosen(training) != NULL)
        cli_live_print(&screen->line,
                       "batches are of %zu images, and a step of %zu: %zu images, as before (--batch auto)",
                       made->batch, made->accumulate, made->batch * made->accumulate);
    else if (made->batch != asked->batch)
        cli_live_print(&screen->line, "batches are of %zu images and not of %zu: the data has %zu (--batch)",
                       made->batch, asked->batch, dv_dataset_describe(dv_training_data(training)).images[DV_TRAIN]);
    if (made->schedule.rate != asked->schedule.rate)
        cli_live_print(&screen->line, "the rate is %.3g and not %.3g, for batches that are smaller (--lr)",
                       made->schedule.rate, asked->schedule.rate);
}

void train_screen_data(train_screen *screen, const dv_training *training) {
    const dv_dataset *data = dv_training_data(training);
    dv_dataset_shape shape = dv_dataset_describe(data);
    if (shape.held_out > 0)
        cli_live_print(&screen->line, "held out to test with: %zu of %zu images (--hold-out)", shape.held_out,
                       shape.held_out + shape.images[DV_TRAIN]);
    if (dv_dataset_unread(data) != NULL)
        cli_live_print(&screen->line, "files that are no images to this program were left out: %s",
                       dv_dataset_unread(data));
}

void train_screen_scales(train_screen *screen, const dv_training *training) {
    const dv_dataset *data = dv_training_data(training);
    dv_loader_options options = dv_options_loader(dv_training_options(training), data);
    if (dv_loader_scales_differ(data, &options))
        cli_live_print(&screen->line,
                       "tests show images at another scale than training, resized to %zu for a side of %zu: leave out "
                       "--resize for the same",
                       options.resize, options.side);
}

void train_screen_left_out(train_screen *screen, const dv_training *training) {
    const dv_options *options = dv_training_options(training);
    const dv_run *run = dv_training_run(training);
    size_t images = dv_train_left_out(run, dv_training_data(training), options);
    if (options->drop_last || images == 0)
        return;
    cli_live_print(
        &screen->line,
        "the last batch of an epoch, of %zu image%s, is left out: batch norms of one value per image need %zu", images,
        images == 1 ? "" : "s", dv_run_fewest_images(run));
}

void train_screen_tuned(train_screen *screen, const dv_training *training) {
    const dv_tune_result *tuned = dv_training_tuned(training);
    if (tuned->measured > 0)
        cli_live_print(&screen->line,
                       "measured %zu passes of convolutions in %.1f s: %zu are faster than expected ones",
                       tuned->measured, tuned->seconds, tuned->changed);
}

void train_screen_workers(train_screen *screen, size_t workers) {
    if (workers > 0)
        cli_live_print(&screen->line, "workers: %zu; steps are faster with batches made ahead (--workers)", workers);
    else
        cli_live_print(&screen->line, "workers: 0; steps are no faster with batches made ahead (--workers)");
}

void train_screen_resume(train_screen *screen, const dv_training *training) {
    const dv_train_state *state = dv_training_state(training);
    if (dv_train_lost_patience(state, dv_training_options(training)))
        cli_live_print(&screen->line,
                       "nothing is left to do: the last %llu epochs were not better; more --patience goes on",
                       (unsigned long long)(dv_train_state_epochs(state) - state->best_epoch));
    else if (dv_train_is_finished(state, dv_training_options(training)))
        cli_live_print(&screen->line,
                       "nothing is left to do: steps done: %llu; epochs complete: %llu; more --epochs or --steps go on",
                       (unsigned long long)state->step, (unsigned long long)dv_train_state_epochs(state));
    else if (dv_training_resumed(training))
        cli_live_print(&screen->line, "goes on after step %llu; epochs complete: %llu", (unsigned long long)state->step,
                       (unsigned long long)dv_train_state_epochs(state));
    else
        cli_live_print(&screen->line, "no checkpoint yet: begins at the start");
}

void train_screen_first_step(train_screen *screen, const dv_training *training) {
    const dv_train_state *state = dv_training_state(training);
    unsigned long long epoch = dv_train_state_epochs(state), done = state->step - epoch * state->steps_per_epoch;
    if (!screen->line.live || screen->line.quiet || done == state->steps_per_epoch ||
        dv_train_is_finished(state, dv_training_options(training)))
        return;
    cli_live_draw(&screen->line, "epoch %llu/%zu  step %llu/%llu  under way", epoch + 1,
                  dv_training_options(training)->epochs, done + 1, (unsigned long long)state->steps_per_epoch);
}

/* The largest peak so far: the system counts roughly, and may tell less than it told before. */
static size_t note_peak(train_screen *screen, size_t peak) {
    if (peak > screen->peak)
        screen->peak = peak;
    return screen->peak;
}

void train_screen_step(train_screen *screen, const dv_train_progress *progress) {
    char left[CLI_LEFT_TEXT], peak[CLI_BYTES_TEXT];
    if (!cli_live_due(&screen->line))
        return;
    cli_live_draw(&screen->line, "epoch %zu/%zu  %s %zu/%zu  loss %.4f  top-1 %.2f %%  %.0f images/s%s  peak %s",
                  progress->epoch, progress->epochs, progress->testing ? "test" : "step", progress->step,
                  progress->steps, progress->loss, progress->top1, progress->images_per_second,
                  cli_left_text(progress->seconds_left, left),
                  cli_bytes_text((double)note_peak(screen, progress->peak_bytes), peak));
}

static void print_epoch(train_screen *screen, const dv_epoch_record *record, size_t epochs) {
    char line[LINE_BYTES] = "", peak[CLI_BYTES_TEXT];
    add(line, sizeof line, "epoch %zu/%zu  loss %.4f  top-1 %.2f %%", record->epoch, epochs, record->train_loss,
        record->train_top1);
    if (record->tested)
        add(line, sizeof line, "  test loss %.4f  test top-1 %.2f %%", record->test_loss, record->test_top1);
    add(line, sizeof line, "  %.0f images/s  peak %s  %.1f s", record->images_per_second,
        cli_bytes_text((double)note_peak(screen, record->peak_bytes), peak), record->seconds);
    if (record->spilled_bytes > 0)
        add(line, sizeof line, ", %.1f of them waiting for the file", record->waited_seconds);
    cli_live_print(&screen->line, "%s", line);
}

void train_screen_epoch(train_screen *screen, const dv_epoch_record *record, size_t epochs) {
    char text[DV_EPOCH_JSON_BYTES];
    if (!screen->json)
        print_epoch(screen, record, epochs);
    else if (!screen->quiet && dv_epoch_json(record, text, NULL) == DV_OK) {
        printf("%s\n", text);
        cli_flush();
    }
}

/* What the process took beyond the sum: the system reads code when it runs first, and libraries allocate. */
static void print_beyond(train_screen *screen, size_t peak, size_t sum, size_t code) {
    char more[CLI_BYTES_TEXT], first[CLI_BYTES_TEXT], rest[CLI_BYTES_TEXT];
    if (peak <= sum)
        return;
    size_t beyond = peak - sum;
    cli_bytes_text((double)beyond, more);
    if (code == 0)
        cli_live_print(&screen->line, "%s more than the sum: what program and libraries took after that", more);
    else if (code >= beyond)
        cli_live_print(&screen->line, "%s more than the sum: code that ran first in the steps", more);
    else
        cli_live_print(&screen->line,
                       "%s more than the sum: %s of code that ran first in the steps, %s that libraries took", more,
                       cli_bytes_text((double)code, first), cli_bytes_text((double)(beyond - code), rest));
}

void train_screen_end(train_screen *screen, const dv_training *training) {
    dv_plan_summary plan = dv_plan_totals(dv_training_plan(training));
    double best = dv_training_state(training)->best_top1;
    size_t most = note_peak(screen, dv_memory_peak());
    size_t bytes = plan.planned + dv_training_loading_bytes(training), program = dv_training_program_bytes(training);
    char planned[CLI_BYTES_TEXT], activations[CLI_BYTES_TEXT], own[CLI_BYTES_TEXT], sum[CLI_BYTES_TEXT],
        peak[CLI_BYTES_TEXT];
    if (dv_train_lost_patience(dv_training_state(training), dv_training_options(training)))
        cli_live_print(&screen->line, "stopped early: no better test in %zu epochs (--patience)",
                       dv_training_options(training)->patience);
    if (!isnan(best))
        cli_live_print(&screen->line, "best test top-1 %.2f %%", best);
    cli_live_print(&screen->line, "planned %s (activations %s) + program and libraries %s = %s; peak %s resident",
                   cli_bytes_text((double)bytes, planned), cli_bytes_text((double)plan.activations, activations),
                   cli_bytes_text((double)program, own), cli_bytes_text((double)(bytes + program), sum),
                   cli_bytes_text((double)most, peak));
    print_beyond(screen, most, bytes + program, dv_training_code_bytes(training));
}
