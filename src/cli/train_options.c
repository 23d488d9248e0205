/* The options of `division train`: those of the library's table and a few of its own, and where they come from. A
 * recipe is read over the defaults, the options of a run that goes on over the recipe, the command line over all. */
#include "train.h"

#include "cli.h"
#include "recipe.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { DETAILS_BYTES = 4096, DIFFERENCES_SHOWN = 20 };

#define NOWHERE "nowhere"
#define WHICH_RUN "--resume: which run? Give its folder, --out RUN"

int train_is_file(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && !S_ISDIR(status.st_mode);
}

int train_is_folder(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

void train_tell_difference(void *context, const char *text) {
    int *count = context;
    ++*count;
    if (*count <= DIFFERENCES_SHOWN)
        cli_fail("  %s", text);
    else if (*count == DIFFERENCES_SHOWN + 1)
        cli_fail("  ... and more");
}

/* ---- the command line ----------------------------------------------------------------------- */

static int parse(train_settings *chosen, int argc, char **argv, cli_operands *operands) {
    static const cli_section sections[] = {{"Methods", dv_method_name_at, dv_method_help_at},
                                           {"Data sets", dv_dataset_usage_at, dv_dataset_help_at},
                                           {"Augmentations", dv_augmentation_usage_at, dv_augmentation_help_at},
                                           {"Optimizers", dv_optimizer_name_at, dv_optimizer_help_at},
                                           {"Schedules", dv_schedule_name_at, NULL},
                                           {0}};
    const dv_option own[] = {
        {CLI_OUT, "RUN", "folder for log, checkpoints and the rest; unless given one under runs/; nowhere for nothing",
         CLI_TEXT(&chosen->out)},
        {CLI_RESUME, NULL, "go on with the run that is in the folder", CLI_FLAG(&chosen->resume)},
        {CLI_REPLACE, NULL, "replace the run that is in the folder", CLI_FLAG(&chosen->replace)},
        {CLI_QUIET, NULL, "print nothing but errors", CLI_FLAG(&chosen->quiet)},
        {CLI_JSON, NULL, "print a JSON object per epoch", CLI_FLAG(&chosen->json)},
        {CLI_FIND_RATE, NULL, "train nothing: try rising rates, suggest one, and write find-lr.svg and find-lr.json",
         CLI_FLAG(&chosen->find_rate)},
        CLI_OPTIONS_END,
    };
    dv_option table[CLI_MOST_TRAINING_OPTIONS + sizeof own / sizeof *own];
    char details[DETAILS_BYTES];
    const cli_usage usage = {
        .command = "train",
        .operands = "[RECIPE]",
        .summary =
            "Trains a network, tests it after each epoch, and prints what it takes. The memory that is planned\n"
            "before the first step is the memory it will take. Ctrl-C ends it after the step, and --resume goes\n"
            "on from there to the same bits. RECIPE is the name of one that came with the program (as\n"
            "resnet18_cifar10), a file of options, or a run, whose options are taken; options of the command\n"
            "line go over it.\n",
        .details = details,
        .options = table,
        .maximum_operands = 1};
    memcpy(table + cli_training_options(&chosen->options, NULL, table), own, sizeof own);
    cli_describe(sections, details, sizeof details);
    return cli_parse(&usage, argc, argv, operands);
}

/* ---- recipes ------------------------------------------------------------------------------- */

/* Reads the options of the run that is to go on, if there is one. */
static int read_folder(train_settings *chosen, const char *out) {
    char config[TRAIN_PATH_BYTES];
    snprintf(config, sizeof config, "%s/" DV_FOLDER_CONFIG, out);
    return train_is_file(config) ? cli_read_recipe(config, &chosen->options) : CLI_CONTINUE;
}

/* ---- all of it ----------------------------------------------------------------------------- */

/* What the table can't say for itself. */
static int check(const train_settings *chosen) {
    if (chosen->find_rate && (chosen->out != NULL || chosen->resume || chosen->replace))
        return cli_wrong_call("--find-lr: trains nothing that could be kept: leave out --out, --resume and --replace");
    if (chosen->resume && chosen->out == NULL)
        return cli_wrong_call(WHICH_RUN);
    if (chosen->replace && chosen->out == NULL)
        return cli_wrong_call("--replace: which run? Give its folder, --out RUN");
    if (chosen->resume && chosen->replace)
        return cli_wrong_call("--resume and --replace contradict each other: give one of them");
    return CLI_CONTINUE;
}

/* Where to write: where the call says, nowhere if it says so, else in a new folder. */
static int choose_folder(train_settings *chosen) {
    int nowhere = chosen->find_rate || (chosen->out != NULL && strcmp(chosen->out, NOWHERE) == 0);
    if (nowhere && !chosen->find_rate)
        chosen->out = NULL;
    int code = check(chosen);
    int writes = dv_world_rank(chosen->options.world) == 0;
    return code == CLI_CONTINUE && writes && chosen->out == NULL && !nowhere ? train_claim_folder(chosen) : code;
}

int train_choose(int argc, char **argv, train_settings *chosen) {
    cli_operands operands;
    *chosen = (train_settings){.options = dv_options_default()};
    int code = parse(chosen, argc, argv, &operands); /* once to see which files there are, once more over them */
    if (code != CLI_CONTINUE)
        return code;
    const char *recipe = operands.count > 0 ? operands.at[0] : NULL, *out = chosen->out;
    int resume = chosen->resume;
    if (resume && out == NULL && recipe != NULL && train_is_folder(recipe)) {
        out = recipe;
        recipe = NULL;
    }
    if (resume && out == NULL)
        return cli_wrong_call(WHICH_RUN);
    *chosen = (train_settings){.options = dv_options_default()};
    if (recipe != NULL)
        code = cli_read_recipe(recipe, &chosen->options);
    if (code == CLI_CONTINUE && resume && out != NULL)
        code = read_folder(chosen, out);
    if (code == CLI_CONTINUE)
        code = parse(chosen, argc, argv, NULL);
    chosen->out = out;
    chosen->recipe = recipe;
    if (code == CLI_CONTINUE)
        code = train_open_world(chosen);
    return code == CLI_CONTINUE ? choose_folder(chosen) : code;
}
