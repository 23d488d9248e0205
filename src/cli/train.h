/* What the files of `division train` share: the options, and what is printed while it runs. */
#ifndef DV_CLI_TRAIN_H
#define DV_CLI_TRAIN_H

#include "live.h"
#include "options.h"

#include <division/checkpoint.h>
#include <division/folder.h>
#include <division/graph.h>
#include <division/recipe.h>
#include <division/train.h>
#include <division/training.h>

enum { TRAIN_PATH_BYTES = 4096 };

/* What the command line and the recipe say. */
typedef struct train_settings {
    dv_options options;
    const char *recipe;             /* file or folder of options, as it was given; NULL: none */
    const char *out;                /* folder that the training writes; NULL: none */
    char claimed[TRAIN_PATH_BYTES]; /* that folder, if it was chosen here; empty: it was not */
    int replace, resume, quiet, json, find_rate;
} train_settings;

/* Reads the recipe, the options of the run that is to go on, and the command line, each over what came before.
 * Returns CLI_CONTINUE or an exit code. */
int train_choose(int argc, char **argv, train_settings *settings);

/* Chooses a folder under runs/ and makes it, for a training that was not told where to write. Returns CLI_CONTINUE or
 * an exit code. */
int train_claim_folder(train_settings *settings);

/* Takes the folder away again that was made so, if nothing is in it. */
void train_leave_folder(const train_settings *settings);

/* Joins the other ranks, where a launcher has started this process; all but rank 0 are quiet then. */
int train_open_world(train_settings *settings);

/* Leaves them: in good order if all is well or all know what is not, else ends them too, with an exit code. */
void train_leave_world(const train_settings *settings, int code);

/* Prints what the library said. What all ranks say is printed by rank 0 alone, the rest with the rank. */
int train_report(const train_settings *settings, const dv_error *error);

/* True if there is such a file, or folder. */
int train_is_file(const char *path);
int train_is_folder(const char *path);

/* Prints a difference between a checkpoint and a network, the first few of them. `context` is an int that counts. */
void train_tell_difference(void *context, const char *text);

/* The screen: where the live line stands, and what it may show. */
typedef struct train_screen {
    int quiet, json; /* nothing; JSON lines instead of text */
    cli_live line;
    size_t peak; /* the largest that was shown */
} train_screen;

train_screen train_screen_new(const train_settings *settings);

/* The plan, before the first step: one line with bytes by purpose, and what the loaders take; one with the program. */
void train_screen_plan(train_screen *screen, const dv_training *training);

/* What was chosen for the memory that there may be, where --memory says it. */
void train_screen_chosen(train_screen *screen, const dv_training *training);

/* Where it writes, if nobody said it. */
void train_screen_folder(train_screen *screen, const train_settings *settings);

/* What is held out of the data, and what was not read of it, where there is any. */
void train_screen_data(train_screen *screen, const dv_training *training);

/* That the data is too small for the default batch, where it is. */
void train_screen_batch(train_screen *screen, const train_settings *settings, const dv_training *training);

/* That options make the test show images at another scale than training, where they do. */
void train_screen_scales(train_screen *screen, const dv_training *training);

/* That a last batch is too small to be trained on, where it is. */
void train_screen_left_out(train_screen *screen, const dv_training *training);

/* What was measured before the training, if anything was. */
void train_screen_tuned(train_screen *screen, const dv_training *training);
void train_screen_workers(train_screen *screen, size_t workers);

/* Where a training that was to go on begins. */
void train_screen_resume(train_screen *screen, const dv_training *training);

/* Before the first step, which may take long: draws the live line, where there is a terminal. */
void train_screen_first_step(train_screen *screen, const dv_training *training);

/* After a step: redraws the live line ten times a second, or prints a line a minute where there is no terminal. */
void train_screen_step(train_screen *screen, const dv_train_progress *progress);

/* After an epoch: a line that stays. */
void train_screen_epoch(train_screen *screen, const dv_epoch_record *record, size_t epochs);

/* At the end: what was planned and what it took. */
void train_screen_end(train_screen *screen, const dv_training *training);

/* Wipes the live line, so that a message can be printed. */
void train_screen_wipe(train_screen *screen);

/* After a step of a search for the rate. */
void train_screen_rate(train_screen *screen, const dv_train_progress *progress);

/* --find-lr: tries rates with a training that is prepared, says which one to use and writes what it saw. Returns an
 * exit code. */
int train_find_rate(train_screen *screen, dv_training *training, dv_error *error);

/* After a plan that did not fit: prints to stderr what would, if anything does. Nothing is said where there is no plan.
 */
void train_explain_memory(const dv_options *options);

#endif
