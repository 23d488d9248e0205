/* The options of a training: every row of the table by text, bounds, files, and what files of earlier versions mean. */
#include "check.h"
#include "folder.h"

#include <division/options.h>
#include <division/tools/option.h>

static const char *text_of(const dv_options *options, const char *name) {
    static char text[DV_PATH_BYTES];
    assert_ok(dv_options_get(options, name, text, sizeof text, &error));
    return text;
}

/* What texts were parsed into, member by member: there is padding between them. */
static void assert_same_parsed(const dv_options *a, const dv_options *b) {
    const dv_schedule *s = &a->schedule, *t = &b->schedule;
    const dv_augmentation *v = &a->loading.augmentation, *w = &b->loading.augmentation;
    assert_true(s->kind == t->kind && s->rate == t->rate && s->warmup == t->warmup && s->factor == t->factor);
    assert_true(s->every == t->every && s->per_epoch == t->per_epoch && s->minimum == t->minimum);
    assert_true(s->warmup_from == t->warmup_from && s->warmup_constant == t->warmup_constant);
    assert_memory_equal(&s->milestones, &t->milestones, sizeof s->milestones);
    assert_true(v->crop == w->crop && v->padding == w->padding && v->flip == w->flip);
    assert_true(v->least_area == w->least_area && v->most_area == w->most_area);
    assert_true(v->least_ratio == w->least_ratio && v->most_ratio == w->most_ratio);
    assert_memory_equal(&a->loading.normalisation, &b->loading.normalisation, sizeof a->loading.normalisation);
}

/* All options of both are the same, those that were parsed as well. */
static void assert_same(const dv_options *a, const dv_options *b) {
    const dv_option *row;
    for (size_t i = 0; (row = dv_options_at(i)) != NULL; i++) {
        char first[DV_PATH_BYTES];
        snprintf(first, sizeof first, "%s", text_of(a, row->name));
        if (strcmp(first, text_of(b, row->name)) != 0)
            fail_msg("%s: \"%s\" and \"%s\"", row->name, first, text_of(b, row->name));
    }
    assert_same_parsed(a, b);
}

/* ---- the table ----------------------------------------------------------------------------- */

static void every_row_is_whole(void **state) {
    (void)state;
    const dv_options options = dv_options_default();
    const dv_option *row;
    for (size_t i = 0; (row = dv_options_at(i)) != NULL; i++) {
        assert_true(strlen(row->help) > 5);
        assert_true(row->argument != NULL || row->kind == DV_OPTION_FLAG || row->kind == DV_OPTION_WORD);
        assert_true(row->offset < sizeof(dv_options));
        assert_string_equal(text_of(&options, row->name), row->preset != NULL ? row->preset : "");
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(row->name, dv_options_at(j)->name);
    }
    assert_ok(dv_options_check(&options, &error));
}

/* A text that a row takes, and is not its default. */
static const char *another_text(const dv_option *row) {
    static char text[64];
    static const char *const own[][2] = {
        {"schedule", "multistep:at=3+5,factor=0.25"},
        {"augment", "reflect:padding=2,flip=2"},
        {"normalise", "0.5+0.25+0.125/1+2+4"},
        {"groups", "vectors:decay=0"},
        {"tune", "again:prefer=speed"},
        {"memory", "600MB"},
    };
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strcmp(row->name, own[i][0]) == 0)
            return own[i][1];
    switch (row->kind) {
    case DV_OPTION_FLAG:
        return strcmp(row->preset, "yes") == 0 ? "no" : "yes";
    case DV_OPTION_WORD:
        return row->words[1];
    case DV_OPTION_COPY:
        return "adamw:beta2=0.95";
    case DV_OPTION_UNSIGNED:
        return "18446744073709551615";
    case DV_OPTION_NUMBER:
        snprintf(text, sizeof text, "%.17g", row->minimum + (row->maximum - row->minimum) / 3);
        return text;
    default:
        snprintf(text, sizeof text, "%.0f", row->maximum);
        return text;
    }
}

static dv_options all_changed(void) {
    dv_options options = dv_options_default();
    const dv_option *row;
    for (size_t i = 0; (row = dv_options_at(i)) != NULL; i++) {
        assert_ok(dv_options_set(&options, row->name, another_text(row), &error));
        assert_string_not_equal(text_of(&options, row->name), row->preset != NULL ? row->preset : "");
        assert_true(dv_option_holds(row, &options));
    }
    return options;
}

static void every_row_can_be_set(void **state) {
    (void)state;
    dv_options options = all_changed();
    assert_int_equal(options.precision, DV_BF16);
    assert_int_equal(options.schedule.kind, DV_SCHEDULE_MULTI_STEP);
    assert_int_equal(options.schedule.milestones.at[1], 5);
    assert_int_equal(options.loading.augmentation.crop, DV_CROP_REFLECT);
    assert_true(options.loading.normalisation.mean[1] == 0.25 && options.loading.normalisation.deviation[2] == 4);
    assert_int_equal(options.loading.workers, 256);
    assert_ok(dv_options_set(&options, "nesterov", NULL, &error));
    assert_int_equal(options.nesterov, 1);
}

/* What lies outside of a row's bounds is refused, as text and as a value, and leaves everything as it was. */
static void bounds_are_kept(void **state) {
    (void)state;
    static const char *const wrong[] = {"-1", "1e30", "", " 1", "nan", "1x", "maybe"};
    dv_options options = dv_options_default(), before = options;
    const dv_option *row;
    for (size_t i = 0; (row = dv_options_at(i)) != NULL; i++) {
        char takes[DV_OPTION_TAKES_BYTES];
        dv_option_takes(row, takes);
        for (size_t w = 0; w < sizeof wrong / sizeof *wrong; w++) {
            if (row->kind == DV_OPTION_COPY && *wrong[w] != '\0' ? row->accept == NULL : row->preset == NULL)
                continue; /* any text will do, or none */
            assert_fails(dv_options_set(&options, row->name, wrong[w], &error), DV_ERROR_OPTION, row->name);
            if (row->accept == NULL)
                assert_fails(dv_options_set(&options, row->name, wrong[w], &error), DV_ERROR_OPTION, takes);
            assert_memory_equal(&options, &before, sizeof options);
        }
    }
    options.accumulate = 0;
    assert_fails(dv_options_check(&options, &error), DV_ERROR_OPTION,
                 "accumulate: 0: must be a whole number from 1 to 65536");
    options = before;
    options.schedule.rate = -1;
    assert_fails(dv_options_check(&options, &error), DV_ERROR_OPTION, "lr: -1: must be a number from 0 to 1000");
    options = before;
    options.nesterov = 1;
    options.momentum = 0;
    assert_int_equal(dv_options_check(&options, NULL), DV_ERROR_OPTION);
}

/* Given, then taken back. */
static void texts_can_be_unset(void **state) {
    (void)state;
    const dv_options before = dv_options_default();
    const dv_option *row;
    for (size_t i = 0; (row = dv_options_at(i)) != NULL; i++) {
        dv_options options = before;
        if (row->kind != DV_OPTION_COPY)
            continue;
        assert_ok(dv_options_set(&options, row->name, another_text(row), &error));
        if (!row->clears) {
            assert_fails(dv_options_set(&options, row->name, "", &error), DV_ERROR_OPTION, row->name);
            continue;
        }
        assert_ok(dv_options_set(&options, row->name, "", &error));
        assert_string_equal(text_of(&options, row->name), "");
    }
}

/* The default gives way to small data, a batch that was asked for does not, whatever it is. */
static void batches_fit_the_data(void **state) {
    (void)state;
    const dv_dataset_shape small = {.images = {[DV_TRAIN] = 36}}, large = {.images = {[DV_TRAIN] = 128}};
    dv_options options = dv_options_default();
    assert_ok(dv_options_fit_batch(&options, &large, &error));
    assert_int_equal(options.batch, 128);
    assert_ok(dv_options_fit_batch(&options, &small, &error));
    assert_int_equal(options.batch, 8);
    assert_ok(dv_options_set(&options, "batch", "128", &error));
    assert_ok(dv_options_fit_batch(&options, &large, &error));
    assert_fails(dv_options_fit_batch(&options, &small, &error), DV_ERROR_OPTION,
                 "--batch: 128: the data has 36 images: give at most as many; 8 would do");
}

static void mistakes_are_explained(void **state) {
    (void)state;
    static const char *const cases[][3] = {
        {"learning", "1", "learning: no such option: see --help"},
        {"epoch", "1", "epoch: no such option: did you mean epochs?"},
        {"momentun", "1", "did you mean momentum?"},
        {"lr", "fast", "lr: 'fast' is not what it takes: give a number from 0 to 1000"},
        {"lr", NULL, "lr: its value is missing: give a number from 0 to 1000"},
        {"precision", "f16", "precision: 'f16' is not what it takes: give f32 or bf16"},
        {"schedule", "sine", "schedule: \"sine\" is none: there are constant, cosine, linear, step"},
        {"schedule", "step:every=0", "schedule: step: every=0: must be a whole number from 1 to 100000"},
        {"augment", "cutout", "augment: augmentation: \"cutout\" is none"},
        {"normalise", "128+128+128/50+50+50", "normalise: normalisation: mean: \"128\": must be a number from 0 to 1"},
    };
    dv_options options = dv_options_default(), before = options;
    char small[4];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_fails(dv_options_set(&options, cases[i][0], cases[i][1], &error), DV_ERROR_OPTION, cases[i][2]);
        assert_memory_equal(&options, &before, sizeof options);
    }
    assert_fails(dv_options_get(&options, "models", small, sizeof small, &error), DV_ERROR_OPTION, "mean model?");
    assert_fails(dv_options_get(&options, "model", small, sizeof small, &error), DV_ERROR_BUFFER, "has 8 characters");
}

/* Of an earlier schedule nothing is left but what options of their own say. */
static void schedules_do_not_mix(void **state) {
    (void)state;
    dv_options options = dv_options_default();
    assert_ok(dv_options_set(&options, "schedule", "step:every=3,factor=0.5", &error));
    assert_ok(dv_options_set(&options, "lr", "0.3", &error));
    assert_ok(dv_options_set(&options, "schedule", "multistep:at=2", &error));
    assert_true(options.schedule.factor == 0.1 && options.schedule.rate == 0.3);
}

/* ---- files --------------------------------------------------------------------------------- */

static void write_file(const char *name, const char *text) {
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void json_is_read_again(void **state) {
    char text[DV_OPTIONS_JSON_BYTES], path[FOLDER_PATH_BYTES];
    dv_options options = all_changed(), read = dv_options_default();
    folder_path(state, "config.json", path);
    assert_ok(dv_options_json(&options, text, &error));
    write_file(path, text);
    assert_ok(dv_options_read(&read, path, &error));
    memset(options.spill, 0, sizeof options.spill); /* of one call alone */
    memset(options.profile, 0, sizeof options.profile);
    assert_same(&options, &read);
    read = dv_options_default();
    assert_ok(dv_options_read(&read, *state, &error)); /* the folder, as if it were a run's */
    assert_same(&options, &read);
}

static dv_status apply(dv_options *options, const char *text, dv_error *error) {
    dv_recipe *recipe = NULL;
    dv_status status = dv_recipe_parse("a recipe", text, strlen(text), &recipe, error);
    if (status == DV_OK)
        status = dv_options_apply(options, recipe, "a recipe", error);
    dv_recipe_free(recipe);
    return status;
}

static void recipes_are_read(void **state) {
    (void)state;
    dv_options options = dv_options_default();
    assert_ok(apply(&options, "# of a network\nlr = 5e-2\n\nepochs = 3\n", &error));
    assert_true(options.schedule.rate == 0.05 && options.epochs == 3 && !options.drop_last);
    assert_ok(apply(&options, "{\"epochs\": 4}", &error)); /* a run's, from before there was drop-last */
    assert_true(options.epochs == 4 && options.drop_last);
    assert_ok(apply(&options, "{\"epochs\": 5, \"drop-last\": false, \"init\": null}", &error));
    assert_true(options.epochs == 5 && !options.drop_last && options.init[0] == '\0');
    assert_fails(apply(&options, "\nlr = fast\n", &error), DV_ERROR_OPTION, "a recipe, line 2: lr: 'fast' is not");
    assert_fails(apply(&options, "epocs = 1\n", &error), DV_ERROR_OPTION,
                 "line 1: epocs: no such option: did you mean");
    assert_fails(apply(&options, "spill = /tmp\n", &error), DV_ERROR_OPTION, "spill: belongs on the command line");
    assert_fails(apply(&options, "{\"lr\": -1}", &error), DV_ERROR_OPTION, "a recipe: lr: '-1' is not what it takes");
    assert_fails(dv_options_read(&options, "no/such/file", &error), DV_ERROR_IO, "could not read no/such/file");
}

/* A value as JSON and as text. */
static const char *as_text(const char *json) {
    return strcmp(json, "true") == 0 ? "yes" : strcmp(json, "false") == 0 ? "no" : json;
}

/* The file means what its golden neighbour says of it, option by option; what came later is as it is unless given. */
static void check_meaning(const char *path, const char *golden) {
    dv_options options = dv_options_default();
    dv_recipe *expected;
    const dv_option *row;
    assert_ok(dv_options_read(&options, path, &error));
    assert_ok(dv_recipe_read(golden, &expected, &error));
    for (size_t i = 0; (row = dv_options_at(i)) != NULL; i++) {
        const char *value = row->preset != NULL ? row->preset : "";
        const dv_recipe_line *line;
        for (size_t l = 0; (line = dv_recipe_at(expected, l)) != NULL; l++)
            if (strcmp(line->name, row->name) == 0)
                value = as_text(line->value);
        if (strcmp(text_of(&options, row->name), value) != 0)
            fail_msg("%s: %s is \"%s\", expected \"%s\"", path, row->name, text_of(&options, row->name), value);
    }
    dv_recipe_free(expected);
}

/* Recipes and a config.json of earlier versions; the golden values were put together without this code. */
static void earlier_files_mean_what_they_meant(void **state) {
    (void)state;
    const char *source = getenv("DV_SOURCE_DIR");
    char folder[DV_PATH_BYTES], path[DV_PATH_BYTES + 256], golden[DV_PATH_BYTES + 256];
    size_t count = 0;
    if (source == NULL)
        leave_out("earlier files: DV_SOURCE_DIR does not say where they are");
    snprintf(folder, sizeof folder, "%s/tests/fixtures/recipes", source);
    DIR *list = opendir(folder);
    assert_non_null(list);
    for (struct dirent *entry; (entry = readdir(list)) != NULL;) {
        char *dot = strstr(entry->d_name, ".json");
        if (dot == NULL)
            continue;
        snprintf(golden, sizeof golden, "%s/%s", folder, entry->d_name);
        *dot = '\0';
        int run = strncmp(entry->d_name, "run-", 4) == 0;
        snprintf(path, sizeof path, run ? "%.*s/tests/fixtures/%s" : "%.*s/tests/fixtures/recipes/%s",
                 DV_PATH_BYTES - 1, source, entry->d_name);
        check_meaning(path, golden);
        count++;
    }
    closedir(list);
    assert_int_equal(count, 9);
}

/* ---- plans --------------------------------------------------------------------------------- */

static void plans_are_those_of_the_options(void **state) {
    (void)state;
    const dv_dataset_shape shape = {.images = {32, 8}, .classes = 12, .side = 16};
    dv_options options = dv_options_default();
    dv_graph *graph = NULL;
    dv_plan *plan = NULL;
    options.batch = 4;
    assert_ok(dv_options_plan(&options, &shape, &graph, &plan, &error));
    assert_int_equal(dv_plan_row_at(plan, 0)->output.images, 4);
    assert_int_equal(dv_plan_row_at(plan, 0)->output.sides[0], 16);
    size_t planned = dv_plan_totals(plan).planned;
    dv_plan_free(plan);
    dv_graph_free(graph);
    options.average = 0.9;
    options.side = 32;
    assert_ok(dv_options_plan(&options, NULL, &graph, &plan, &error));
    assert_int_equal(dv_plan_row_at(plan, 0)->output.sides[0], 32);
    assert_true(dv_plan_totals(plan).planned > planned);
    dv_plan_free(plan);
    dv_graph_free(graph);
    graph = NULL;
    assert_ok(dv_options_set(&options, "method", "divide", &error));
    assert_fails(dv_options_plan(&options, &shape, &graph, &plan, &error), DV_ERROR_OPTION, "unknown method");
    assert_null(graph);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_whole),
        cmocka_unit_test(every_row_can_be_set),
        cmocka_unit_test(texts_can_be_unset),
        cmocka_unit_test(batches_fit_the_data),
        cmocka_unit_test(bounds_are_kept),
        cmocka_unit_test(mistakes_are_explained),
        cmocka_unit_test(schedules_do_not_mix),
        cmocka_unit_test_setup_teardown(json_is_read_again, folder_new, folder_free),
        cmocka_unit_test(recipes_are_read),
        cmocka_unit_test(earlier_files_mean_what_they_meant),
        cmocka_unit_test(plans_are_those_of_the_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
