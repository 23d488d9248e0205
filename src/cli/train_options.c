/* The options of `division train`: their table, and where they come from. A recipe is read over the defaults, the
 * options of a run that goes on over the recipe, the command line over all. */
#include "train.h"

#include "cli.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { DETAILS_BYTES = 4096, DIFFERENCES_SHOWN = 20 };

#define DROP_LAST "drop-last"

const char *const train_precisions[] = {"f32", "bf16", NULL};

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

/* ---- the table ----------------------------------------------------------------------------- */

static train_settings defaults(void) {
    return (train_settings){.model = "resnet20",
                            .data = "synthetic",
                            .method = "division",
                            .schedule = "cosine",
                            .augment = "usual",
                            .batch = 128,
                            .epochs = 10,
                            .test_every = 1,
                            .accumulate = 1,
                            .save_minutes = 10,
                            .options = dv_train_options_default()};
}

static void fill_table(train_choice *choice) {
    train_settings *c = &choice->settings;
    dv_train_options *o = &c->options;
    const dv_option table[] = {
        {"model", "MODEL", "the network: see 'division models'", CLI_TEXT(&c->model)},
        {"data", "DATA", "what to learn from", CLI_TEXT(&c->data)},
        {"method", "METHOD", "how activations are kept: see below", CLI_TEXT(&c->method)},
        {"spill", "DIR", "folder of the file of methods that use one (swap); /var/tmp unless given",
         CLI_TEXT(&c->spill), .this_call = 1},
        {"precision", NULL, "of activations", CLI_WORD(&c->precision, train_precisions)},
        {"batch", "N", "images per batch", CLI_INTEGER(&c->batch, 1, 1 << 20)},
        {"accumulate", "N", "batches per step", CLI_INTEGER(&c->accumulate, 1, 65536)},
        {DROP_LAST, NULL, "leave out images at the end of an epoch that do not make a whole step",
         CLI_FLAG(&o->drop_last)},
        {"epochs", "N", "passes over the data", CLI_INTEGER(&c->epochs, 1, 100000)},
        {"test-every", "N", "test after every N epochs, and after the last", CLI_INTEGER(&c->test_every, 1, 100000)},
        {"steps", "N", "stop after so many steps; 0 for never", CLI_UNSIGNED(&c->steps)},
        {"lr", "RATE", "learning rate", CLI_NUMBER(&o->schedule.rate, 0, 1000)},
        {"schedule", "SCHEDULE", "how the rate goes down", CLI_TEXT(&c->schedule)},
        {"warmup", "EPOCHS", "over which the rate goes up first", CLI_NUMBER(&o->schedule.warmup, 0, 10000)},
        {"momentum", "M", "of the optimizer", CLI_NUMBER(&o->sgd.momentum, 0, 0.999999)},
        {"nesterov", NULL, "Nesterov's momentum", CLI_FLAG(&o->sgd.nesterov)},
        {"weight-decay", "D", "of the optimizer", CLI_NUMBER(&o->sgd.weight_decay, 0, 1)},
        {"label-smoothing", "S", "of the loss", CLI_NUMBER(&o->label_smoothing, 0, 0.999999)},
        {"mixup", "ALPHA", "mix pairs of images; 0 for no", CLI_NUMBER(&o->mix.mixup, 0, 100)},
        {"cutmix", "ALPHA", "exchange rectangles of images; 0 for no", CLI_NUMBER(&o->mix.cutmix, 0, 100)},
        {"average", "DECAY", "of a moving average of the weights, which is tested; 0 for none",
         CLI_NUMBER(&o->average, 0, 0.9999999)},
        {"augment", "HOW", "how images are varied", CLI_TEXT(&c->augment)},
        {"side", "N", "of the images made; 0 for the data's", CLI_INTEGER(&c->side, 0, 1024)},
        {"resize", "N", "shorter side before the middle is tested with; 0 for what is usual",
         CLI_INTEGER(&c->resize, 0, 2048)},
        {"workers", "N", "threads that make batches ahead; 0: batches are made between steps",
         CLI_INTEGER(&c->workers, 0, 256)},
        {"classes", "N", "outputs of the network; 0 for the data's", CLI_INTEGER(&c->classes, 0, 1 << 20)},
        {"seed", "N", "of weights, order and rounding", CLI_UNSIGNED(&o->seed)},
        {"init", "FILE", "weights to begin with (safetensors)", CLI_TEXT(&c->init)},
        {"init-except", "PREFIX", "but not those whose names begin like this", CLI_TEXT(&c->init_except)},
        {"threads", "N", "threads to use; 0 for as many as OpenMP uses", CLI_INTEGER(&c->threads, 0, 1024)},
        {"save-minutes", "M", "save at least so often; 0 for after epochs alone",
         CLI_NUMBER(&c->save_minutes, 0, 10000)},
        {"out", "RUN", "folder for log, checkpoints and the rest", CLI_TEXT(&c->out), .this_call = 1},
        {"resume", NULL, "go on with the run that is in the folder", CLI_FLAG(&c->resume), .this_call = 1},
        {"replace", NULL, "replace the run that is in the folder", CLI_FLAG(&c->replace), .this_call = 1},
        {"quiet", NULL, "print nothing but errors", CLI_FLAG(&c->quiet), .this_call = 1},
        {"json", NULL, "print a JSON object per epoch", CLI_FLAG(&c->json), .this_call = 1},
        CLI_OPTIONS_END,
    };
    _Static_assert(sizeof table <= sizeof choice->table, "the table has grown");
    memcpy(choice->table, table, sizeof table);
}

static int parse(train_choice *choice, int argc, char **argv, cli_operands *operands) {
    static const cli_section sections[] = {{"Methods", dv_method_name_at, dv_method_help_at},
                                           {"Data sets", dv_dataset_usage_at, dv_dataset_help_at},
                                           {"Augmentations", dv_augmentation_usage_at, dv_augmentation_help_at},
                                           {"Schedules", dv_schedule_name_at, NULL},
                                           {0}};
    char details[DETAILS_BYTES];
    const cli_usage usage = {
        .command = "train",
        .operands = "[RECIPE]",
        .summary =
            "Trains a network, tests it after each epoch, and prints what it takes. The memory that is planned\n"
            "before the first step is the memory it will take. Ctrl-C ends it after the step, and --resume goes\n"
            "on from there to the same bits. RECIPE is a file of options, as in recipes/, or a run, whose\n"
            "options are taken; options of the command line go over it.\n",
        .details = details,
        .options = choice->table,
        .maximum_operands = 1};
    cli_describe(sections, details, sizeof details);
    return cli_parse(&usage, argc, argv, operands);
}

/* ---- recipes ------------------------------------------------------------------------------- */

static int apply(train_choice *choice, const char *path, const dv_recipe *recipe) {
    const dv_recipe_line *line;
    dv_error error;
    for (size_t i = 0; (line = dv_recipe_at(recipe, i)) != NULL; i++) {
        if (cli_option_set(choice->table, line->name, line->value, &error) == DV_OK)
            continue;
        return line->line > 0 ? cli_wrong_call("%s, line %zu: %s", path, line->line, error.text)
                              : cli_wrong_call("%s: %s", path, error.text);
    }
    return CLI_CONTINUE;
}

/* A run's own options, which are JSON, have every option there was: those of runs from before there was --drop-last
 * left these images out. */
static void apply_what_was_usual(train_choice *choice, const dv_recipe *recipe) {
    const dv_recipe_line *line = dv_recipe_at(recipe, 0);
    int is_run = line != NULL && line->line == 0, told = 0;
    for (size_t i = 0; (line = dv_recipe_at(recipe, i)) != NULL; i++)
        told = told || strcmp(line->name, DROP_LAST) == 0;
    if (is_run && !told)
        choice->settings.options.drop_last = 1;
}

/* Reads a recipe, or the options of the run in a folder. */
static int read_recipe(train_choice *choice, const char *path, dv_recipe **recipe) {
    char config[TRAIN_PATH_BYTES];
    dv_error error;
    snprintf(config, sizeof config, train_is_folder(path) ? "%s/" DV_FOLDER_CONFIG : "%s", path);
    if (dv_recipe_read(config, recipe, &error) != DV_OK)
        return cli_report(&error);
    apply_what_was_usual(choice, *recipe);
    return apply(choice, config, *recipe);
}

/* Reads the options of the run that is to go on, if there is one. */
static int read_run(train_choice *choice, const char *out) {
    char config[TRAIN_PATH_BYTES];
    snprintf(config, sizeof config, "%s/" DV_FOLDER_CONFIG, out);
    return train_is_file(config) ? read_recipe(choice, config, &choice->config) : CLI_CONTINUE;
}

/* ---- all of it ----------------------------------------------------------------------------- */

/* What the table can't say for itself. */
static int finish(train_settings *chosen) {
    dv_train_options *options = &chosen->options;
    dv_error error;
    if (chosen->resume && chosen->out == NULL)
        return cli_wrong_call("--resume: which run? Give its folder, --out RUN");
    if (chosen->resume && chosen->replace)
        return cli_wrong_call("--resume and --replace contradict each other: give one of them");
    if (dv_schedule_parse(chosen->schedule, &options->schedule, &error) != DV_OK)
        return cli_report(&error);
    if (dv_augmentation_parse(chosen->augment, &options->loading.augmentation, &error) != DV_OK)
        return cli_report(&error);
    options->loading.resize = (size_t)chosen->resize;
    options->loading.workers = (size_t)chosen->workers;
    options->epochs = (size_t)chosen->epochs;
    options->test_every = (size_t)chosen->test_every;
    options->accumulate = (size_t)chosen->accumulate;
    options->steps = chosen->steps;
    options->save_seconds = chosen->save_minutes * 60;
    return CLI_CONTINUE;
}

int train_choose(int argc, char **argv, train_choice *choice) {
    cli_operands operands;
    *choice = (train_choice){.settings = defaults()};
    fill_table(choice);
    int code = parse(choice, argc, argv, &operands); /* once to see which files there are, once more over them */
    if (code != CLI_CONTINUE)
        return code;
    const char *recipe = operands.count > 0 ? operands.at[0] : NULL, *out = choice->settings.out;
    int resume = choice->settings.resume;
    if (resume && out == NULL && recipe != NULL && train_is_folder(recipe)) {
        out = recipe;
        recipe = NULL;
    }
    choice->settings = defaults();
    if (recipe != NULL)
        code = read_recipe(choice, recipe, &choice->recipe);
    if (code == CLI_CONTINUE && resume && out != NULL)
        code = read_run(choice, out);
    if (code == CLI_CONTINUE)
        code = parse(choice, argc, argv, NULL);
    choice->settings.out = out;
    return code == CLI_CONTINUE ? finish(&choice->settings) : code;
}

void train_forget(train_choice *choice) {
    dv_recipe_free(choice->recipe);
    dv_recipe_free(choice->config);
}
