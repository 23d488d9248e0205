/* The options of a training, in one table. The command line, recipes, config.json and callers of the library set them
 * through it. A new option is a member of dv_options and a row here. */
#include <division/options.h>

#include "base/option_text.h"
#include "base/status.h"
#include "optimizer/groups.h"
#include "train/loop.h"
#include "train/memory.h"

#include <division/folder.h>
#include <division/models.h>
#include <division/threads.h>
#include <division/tools/json.h>
#include <division/tune.h>

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* ---- the table ----------------------------------------------------------------------------- */

static const char *const reductions[] = {[DV_REDUCE_F32] = "f32", [DV_REDUCE_BF16] = "bf16", NULL};
static const char *const preferences[] = {[DV_PREFER_TIME] = "time", [DV_PREFER_NOISE] = "noise", NULL};
static const char *const precisions[] = {[DV_F32] = "f32", [DV_BF16] = "bf16", NULL};

static const char *const initialisations[] = {
    [DV_MODEL_INITIALISATION_OWN] = "model", [DV_MODEL_INITIALISATION_PYTORCH] = "pytorch", NULL};

static const char *const automatic[] = {"auto", NULL};

/* Unlike the default, a batch that was asked for is not made smaller for small data. What `auto` begins with is the
 * batch that a recipe has. */
static dv_status accept_batch(const char *text, void *values, dv_error *error) {
    dv_options *options = values;
    (void)error;
    options->batch_auto = strcmp(text, automatic[0]) == 0;
    if (options->batch_auto)
        options->batch = options->batch_said;
    else
        options->batch_given = 1, options->batch_said = options->batch;
    return DV_OK;
}

/* A rate that was asked for is not made smaller along with the default batch. */
static dv_status accept_rate(const char *text, void *values, dv_error *error) {
    (void)text;
    (void)error;
    ((dv_options *)values)->rate_given = 1;
    return DV_OK;
}

/* What an earlier schedule left of `factor` and `every` does not count; rates and warm-up are options of their own. */
static dv_status accept_schedule(const char *text, void *values, dv_error *error) {
    dv_options *options = values;
    dv_schedule made = options->schedule, fresh = dv_schedule_default();
    made.factor = fresh.factor;
    made.every = fresh.every;
    DV_TRY(dv_schedule_parse(text, &made, error));
    options->schedule = made;
    return DV_OK;
}

static dv_status accept_augmentation(const char *text, void *values, dv_error *error) {
    dv_options *options = values;
    return dv_augmentation_parse(text, &options->loading.augmentation, error);
}

static dv_status accept_normalisation(const char *text, void *values, dv_error *error) {
    dv_options *options = values;
    return dv_image_normalisation_parse(text, &options->loading.normalisation, error);
}

/* Of these the text itself is the value: only mistakes are told early. */
static dv_status accept_optimizer(const char *text, void *values, dv_error *error) {
    (void)values;
    dv_optimizer optimizer;
    return dv_optimizer_parse(text, &optimizer, error);
}

static dv_status accept_memory(const char *text, void *values, dv_error *error) {
    (void)values;
    size_t bytes;
    return dv_memory_read(text, &bytes, error);
}

static dv_status accept_tune(const char *text, void *values, dv_error *error) {
    (void)values;
    dv_tune_options tune = dv_tune_options_default();
    return dv_tune_parse(text, &tune, error);
}

static dv_status accept_groups(const char *text, void *values, dv_error *error) {
    (void)values;
    dv_groups *groups = NULL;
    dv_status status = dv_groups_new(text, &groups, error);
    dv_groups_free(groups);
    return status;
}

#define COUNT(member, low, high) DV_COUNT_AT(dv_options, member, low, high)
#define NUMBER(member, low, high) DV_NUMBER_AT(dv_options, member, low, high)
#define COPY(member) DV_COPY_AT(dv_options, member)

static const dv_option rows[] = {
    {"model", "MODEL", "the network: see 'division models'", COPY(model), .preset = "resnet20"},
    {"data", "DATA", "what to learn from", COPY(data), .preset = "synthetic"},
    {"hold-out", "SHARE", "of each class, to test with, where a folder has no val/", NUMBER(split.hold_out, 0, 0.9),
     .preset = "0.1"},
    {"hold-out-seed", "N", "which images those are", DV_UNSIGNED_AT(dv_options, split.seed), .preset = "1"},
    {"method", "METHOD", "how activations are kept: see below", COPY(method), .preset = "division"},
    {"memory", "BYTES", "all that the process may take, 600MB, 50% or auto: chooses the method", COPY(memory),
     .accept = accept_memory},
    {"noise", "RATIO", "with --memory: most noise, by that of the batch; 0 for that of published division",
     NUMBER(noise, 0, 1e6), .preset = "0"},
    {"prefer", NULL, "with --memory: the fastest, or the one with the least noise in 1.25 of the time of none",
     DV_WORD_AT(dv_options, prefer, preferences), .preset = "time"},
    {"profile", "FILE", "with --memory: noise and speeds as measured, read if it is there, else written", COPY(profile),
     .this_call = 1},
    {"spill", "DIR", "folder of the file of methods that use one (swap); /var/tmp unless given", COPY(spill),
     .this_call = 1},
    {"freeze", "GLOBS", "layers or parameters that are not trained: conv1,bn1,'layer[12]'", COPY(freeze), .clears = 1},
    {"precision", NULL, "of activations", DV_WORD_AT(dv_options, precision, precisions), .preset = "f32"},
    {"batch", "N", "images per batch; auto: with --memory, as many of them as fit, and more --accumulate",
     COUNT(batch, 1, 1 << 20), .words = automatic, .preset = "128", .accept = accept_batch},
    {"accumulate", "N", "batches per step, of all ranks; 1: one of each", COUNT(accumulate, 1, 65536), .preset = "1"},
    {"drop-last", NULL, "leave out images at the end of an epoch that do not make a whole step",
     DV_FLAG_AT(dv_options, drop_last), .preset = "no"},
    {"epochs", "N", "passes over the data", COUNT(epochs, 1, 100000), .preset = "10"},
    {"test-every", "N", "test after every N epochs, and after the last", COUNT(test_every, 1, 100000), .preset = "1"},
    {"patience", "N", "stop after so many epochs without a better test; 0 for never", COUNT(patience, 0, 100000),
     .preset = "0"},
    {"steps", "N", "stop after so many steps; 0 for never", DV_UNSIGNED_AT(dv_options, steps), .preset = "0"},
    {"lr", "RATE", "learning rate", NUMBER(schedule.rate, 0, 1000), .preset = "0.1", .accept = accept_rate},
    {"schedule", "SCHEDULE", "how the rate goes down", COPY(schedule_text), .preset = "cosine",
     .accept = accept_schedule},
    {"lr-min", "RATE", "which cosine, linear and exponential schedules end with", NUMBER(schedule.minimum, 0, 1000),
     .preset = "0"},
    {"warmup", "EPOCHS", "over which the rate goes up first", NUMBER(schedule.warmup, 0, 10000), .preset = "0"},
    {"warmup-from", "SHARE", "of the rate, which the warm-up begins at", NUMBER(schedule.warmup_from, 0, 1),
     .preset = "0"},
    {"warmup-constant", NULL, "the warm-up stays at that share", DV_FLAG_AT(dv_options, schedule.warmup_constant),
     .preset = "no"},
    {"optimizer", "OPTIMIZER", "how weights follow their gradients: see below", COPY(optimizer), .preset = "sgd",
     .accept = accept_optimizer},
    {"momentum", "M", "of sgd", NUMBER(momentum, 0, 0.999999), .preset = DV_DEFAULT_MOMENTUM},
    {"nesterov", NULL, "Nesterov's momentum, of sgd", DV_FLAG_AT(dv_options, nesterov), .preset = "no"},
    {"weight-decay", "D", "of the optimizer", NUMBER(weight_decay, 0, 1), .preset = "0.0005"},
    {"groups", "GROUPS", "of weights with another decay or rate: 'vectors:decay=0;fc:rate=10'", COPY(groups),
     .clears = 1, .accept = accept_groups},
    {"clip", "NORM", "scale gradients down to this norm, if theirs is larger; 0 for never", NUMBER(clip, 0, 1e9),
     .preset = "0"},
    {"label-smoothing", "S", "of the loss", NUMBER(label_smoothing, 0, 0.999999), .preset = "0"},
    {"mixup", "ALPHA", "mix pairs of images; 0 for no", NUMBER(mix.mixup, 0, 100), .preset = "0"},
    {"cutmix", "ALPHA", "exchange rectangles of images; 0 for no", NUMBER(mix.cutmix, 0, 100), .preset = "0"},
    {"average", "DECAY", "of a moving average of the weights, which is tested; 0 for none",
     NUMBER(average, 0, 0.9999999), .preset = "0"},
    {"augment", "HOW", "how images are varied", COPY(augment_text), .preset = "usual", .accept = accept_augmentation},
    {"normalise", "HOW", "means and deviations of the images, M+M+M/D+D+D, or usual: the data's", COPY(normalise_text),
     .preset = "usual", .accept = accept_normalisation},
    {"side", "N", "of the images made; 0 for the data's", COUNT(side, 0, 1024), .preset = "0"},
    {"resize", "N", "shorter side before the middle is tested with; 0 for what is usual",
     COUNT(loading.resize, 0, 2048), .preset = "0"},
    {"workers", "N", "threads that make batches ahead; 0: they are made between steps; auto: whichever is faster",
     COUNT(loading.workers, 0, 256), .words = automatic, .preset = "auto"},
    {"classes", "N", "outputs of the network; 0 for the data's", COUNT(classes, 0, 1 << 20), .preset = "0"},
    {"seed", "N", "of weights, order and rounding", DV_UNSIGNED_AT(dv_options, seed), .preset = "1"},
    {"init-weights", NULL, "how weights begin: as is usual for the model, or as PyTorch's layers do",
     DV_WORD_AT(dv_options, init_weights, initialisations), .preset = "model"},
    {"init", "FILE", "weights to begin with: safetensors, or PyTorch's .pth", COPY(init), .clears = 1},
    {"init-except", "PREFIX", "but not those whose names begin like this", COPY(init_except), .clears = 1},
    {"threads", "N", "threads to use; 0 for as many as OpenMP uses", COUNT(threads, 0, DV_MAX_THREADS), .preset = "0"},
    {"tune", "HOW", "choose the fastest passes of convolutions: off, cache, again, ...:prefer=speed (default cache)",
     COPY(tune), .accept = accept_tune},
    {"reduce", NULL, "what gradients are on their way between machines", DV_WORD_AT(dv_options, reduce, reductions),
     .preset = "f32"},
    {"sync-norm", NULL, "batch norms take their statistics over the images of all ranks",
     DV_FLAG_AT(dv_options, sync_norm), .preset = "no"},
    {"timeout", "SECONDS", "that a rank waits for others", NUMBER(timeout, 1, 86400), .preset = "60"},
    {"save-minutes", "M", "save at least so often; 0 for after epochs alone", NUMBER(save_minutes, 0, 10000),
     .preset = "10"},
};

enum { ROWS = sizeof rows / sizeof *rows };

const dv_option *dv_options_at(size_t index) {
    return index < ROWS ? &rows[index] : NULL;
}

/* ---- values -------------------------------------------------------------------------------- */

dv_options dv_options_default(void) {
    dv_options options = {.schedule = dv_schedule_default()};
    for (size_t i = 0; i < ROWS; i++)
        if (rows[i].preset != NULL)
            (void)dv_option_set(&rows[i], &options, rows[i].preset, NULL);
    options.batch_given = options.rate_given = 0;
    return options;
}

dv_status dv_options_check(const dv_options *options, dv_error *error) {
    DV_NEED(options);
    for (size_t i = 0; i < ROWS; i++) {
        char value[DV_TEXT_BYTES], takes[DV_OPTION_TAKES_BYTES];
        if (dv_option_holds(&rows[i], options))
            continue;
        dv_option_get(&rows[i], options, value, sizeof value);
        return dv_fail(error, DV_ERROR_OPTION, "%s: %s: must be %s", rows[i].name, value,
                       dv_option_takes(&rows[i], takes));
    }
    DV_TRY(dv_check_optimizer(options, error));
    return dv_schedule_check(&options->schedule, error);
}

/* The row of that name, or an error with the nearest there is. */
static dv_status find(const char *name, const dv_option **row, dv_error *error) {
    DV_NEED(name);
    *row = dv_option_find(rows, ROWS, name, strlen(name));
    return *row != NULL ? DV_OK : dv_option_unknown(rows, ROWS, name, error);
}

dv_status dv_options_set(dv_options *options, const char *name, const char *text, dv_error *error) {
    const dv_option *row;
    DV_NEED(options);
    DV_TRY(find(name, &row, error));
    return dv_option_set(row, options, text, error);
}

dv_status dv_options_get(const dv_options *options, const char *name, char *text, size_t bytes, dv_error *error) {
    const dv_option *row;
    DV_NEED(options);
    DV_NEED(text);
    DV_TRY(find(name, &row, error));
    size_t length = dv_option_get(row, options, text, bytes);
    if (length < bytes)
        return DV_OK;
    return dv_fail(error, DV_ERROR_BUFFER, "%s: its value has %zu characters: give room for as many and one", name,
                   length);
}

/* ---- files --------------------------------------------------------------------------------- */

/* The config.json of a run folder has every option that there was. Where it lacks one that came later, the training
 * was as this says. */
static const struct { const char *name, *text; } earlier[] = {{"drop-last", "yes"}};

static int has_line(const dv_recipe *recipe, const char *name) {
    const dv_recipe_line *line;
    for (size_t i = 0; (line = dv_recipe_at(recipe, i)) != NULL; i++)
        if (strcmp(line->name, name) == 0)
            return 1;
    return 0;
}

static dv_status apply_what_was_usual(dv_options *options, const dv_recipe *recipe, dv_error *error) {
    const dv_recipe_line *first = dv_recipe_at(recipe, 0);
    int is_json = first != NULL && first->line == 0;
    for (size_t i = 0; is_json && i < sizeof earlier / sizeof *earlier; i++)
        if (!has_line(recipe, earlier[i].name))
            DV_TRY(dv_options_set(options, earlier[i].name, earlier[i].text, error));
    return DV_OK;
}

static dv_status apply_line(dv_options *options, const dv_recipe_line *line, dv_error *error) {
    const dv_option *row;
    DV_TRY(find(line->name, &row, error));
    if (row->this_call)
        return dv_fail(error, DV_ERROR_OPTION, "%s: belongs on the command line", line->name);
    return dv_option_set(row, options, line->value, error);
}

dv_status dv_options_apply(dv_options *options, const dv_recipe *recipe, const char *name, dv_error *error) {
    const dv_recipe_line *line;
    dv_error wrong;
    DV_NEED(options);
    DV_NEED(recipe);
    DV_NEED(name);
    DV_TRY(apply_what_was_usual(options, recipe, error));
    for (size_t i = 0; (line = dv_recipe_at(recipe, i)) != NULL; i++) {
        dv_status status = apply_line(options, line, &wrong);
        if (status != DV_OK && line->line > 0)
            return dv_fail(error, status, "%s, line %zu: %s", name, line->line, wrong.text);
        if (status != DV_OK)
            return dv_fail(error, status, "%s: %s", name, wrong.text);
    }
    return DV_OK;
}

dv_status dv_options_read(dv_options *options, const char *path, dv_error *error) {
    char config[DV_PATH_BYTES];
    struct stat status;
    dv_recipe *recipe;
    DV_NEED(options);
    DV_NEED(path);
    int is_folder = stat(path, &status) == 0 && S_ISDIR(status.st_mode);
    snprintf(config, sizeof config, is_folder ? "%s/" DV_FOLDER_CONFIG : "%s", path);
    DV_TRY(dv_recipe_read(config, &recipe, error));
    dv_status applied = dv_options_apply(options, recipe, config, error);
    dv_recipe_free(recipe);
    return applied;
}

dv_status dv_options_json(const dv_options *options, char text[DV_OPTIONS_JSON_BYTES], dv_error *error) {
    dv_json json;
    DV_NEED(options);
    DV_NEED(text);
    dv_json_to_buffer(&json, text, DV_OPTIONS_JSON_BYTES - 1);
    dv_json_object(&json, NULL);
    for (size_t i = 0; i < ROWS; i++)
        if (!rows[i].this_call)
            dv_option_write(&rows[i], options, &json);
    dv_json_end(&json);
    DV_TRY(dv_json_finish(&json, error));
    strcat(text, "\n");
    return DV_OK;
}
