/* A training from options to its folder: what is written, how it goes on, and what a call that can't work leaves
 * behind. */
#include "check.h"
#include "folder.h"

#include <math.h>

#include <division/checkpoint.h>
#include <division/training.h>

#include <sys/stat.h>

/* What callbacks were told. */
typedef struct told {
    int begun, steps, epochs, differences, stop_after;
    char advice[512];
    volatile sig_atomic_t stop;
} told;

static void begin(void *context, const dv_training *training) {
    told *t = context;
    t->begun++;
    assert_non_null(dv_training_run(training));
}

static void progress(void *context, const dv_train_progress *now) {
    told *t = context;
    if (!now->testing && ++t->steps == t->stop_after)
        t->stop = 1;
}

static void epoch(void *context, const dv_epoch_record *record) {
    (void)record;
    ((told *)context)->epochs++;
}

static void difference(void *context, const char *text) {
    (void)text;
    ((told *)context)->differences++;
}

static void advice(void *context, const char *text) {
    told *t = context;
    snprintf(t->advice, sizeof t->advice, "%s", text);
}

static dv_training_callbacks callbacks_to(told *t) {
    return (dv_training_callbacks){.begin = begin,
                                   .progress = progress,
                                   .epoch = epoch,
                                   .difference = difference,
                                   .advice = advice,
                                   .context = t,
                                   .stop = &t->stop};
}

static dv_options small_options(void) {
    dv_options options = dv_options_default();
    assert_ok(dv_options_set(&options, "data", "synthetic:side=8,train=24,test=8", &error));
    assert_ok(dv_options_set(&options, "batch", "8", &error));
    assert_ok(dv_options_set(&options, "epochs", "3", &error));
    return options;
}

/* Trains in `folder` from what is there, to the end or to a stop after so many steps; 0: none. */
static told train(const dv_options *options, const char *folder, int stop_after) {
    told t = {.stop_after = stop_after};
    dv_training_callbacks callbacks = callbacks_to(&t);
    dv_training *training;
    dv_train_result result;
    assert_ok(dv_training_new(options, folder, DV_FOLDER_GO_ON, &callbacks, &training, &error));
    assert_ok(dv_training_train(training, &result, &error));
    assert_int_equal(result.stopped, stop_after > 0);
    dv_training_free(training);
    return t;
}

static int exists(const char *folder, const char *name) {
    char path[2 * FOLDER_PATH_BYTES];
    struct stat status;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return stat(path, &status) == 0;
}

/* The sum over a run's first parameter is enough to tell weights apart. */
static double sum_of(const dv_run *run) {
    const dv_run_parameter *parameter = dv_run_parameter_at(run, 0);
    double sum = 0;
    for (size_t i = 0; i < parameter->count; i++)
        sum += parameter->data[i];
    return sum;
}

static void clean(const char *folder) {
    static const char *const names[] = {DV_FOLDER_CONFIG, DV_FOLDER_PASSES, DV_FOLDER_LOG,
                                        DV_FOLDER_LAST,   DV_FOLDER_BEST,   DV_FOLDER_SUMMARY};
    char path[2 * FOLDER_PATH_BYTES];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        (void)remove(path);
    }
    (void)rmdir(folder);
}

static void writes_a_folder_and_goes_on(void **state) {
    char folder[FOLDER_PATH_BYTES];
    dv_options options = small_options(), read = dv_options_default();
    folder_path(state, "run", folder);
    told first = train(&options, folder, 4);
    assert_int_equal(first.begun, 1);
    assert_int_equal(first.steps, 4);
    assert_true(exists(folder, DV_FOLDER_LAST) && exists(folder, DV_FOLDER_CONFIG) && exists(folder, DV_FOLDER_LOG));
    assert_ok(dv_options_read(&read, folder, &error));
    assert_string_equal(read.data, options.data);
    told second = train(&options, folder, 0);
    assert_int_equal(second.steps, 9 - 4);
    assert_int_equal(second.epochs, 2);
    assert_true(exists(folder, DV_FOLDER_BEST) && exists(folder, DV_FOLDER_SUMMARY));
    clean(folder);
}

/* In two parts, by one object or by two, or in one go: the same weights. */
static void goes_on_to_the_same_bits(void **state) {
    char folder[FOLDER_PATH_BYTES];
    dv_options options = small_options();
    told t = {.stop_after = 5};
    dv_training_callbacks callbacks = callbacks_to(&t);
    dv_training *whole, *parts, *again;
    folder_path(state, "run", folder);
    assert_ok(dv_training_new(&options, NULL, DV_FOLDER_NEW, NULL, &whole, &error));
    assert_ok(dv_training_train(whole, NULL, &error));
    assert_ok(dv_training_new(&options, folder, DV_FOLDER_NEW, &callbacks, &parts, &error));
    assert_false(exists(folder, "."));
    assert_ok(dv_training_train(parts, NULL, &error));
    assert_int_equal(dv_training_state(parts)->step, 5);
    t.stop = 0;
    assert_ok(dv_training_train(parts, NULL, &error));
    assert_true(sum_of(dv_training_run(whole)) == sum_of(dv_training_run(parts)));
    assert_false(dv_training_resumed(parts));
    dv_training_free(parts);
    assert_ok(dv_training_new(&options, folder, DV_FOLDER_GO_ON, NULL, &again, &error));
    assert_true(dv_training_resumed(again));
    assert_int_equal(dv_training_state(again)->step, 9);
    assert_true(sum_of(dv_training_run(whole)) == sum_of(dv_training_run(again)));
    dv_training_free(again);
    dv_training_free(whole);
    clean(folder);
}

static void what_cannot_work_leaves_nothing(void **state) {
    static const char *const cases[][3] = {
        {"batch", "25", "--batch: 25: the data has 24 images"},
        {"classes", "9", "--classes: 9: the data has 10"},
        {"model", "resnet21", "unknown model"},
        {"method", "divide", "unknown method"},
        {"data", "nothing", "is no data set"},
        {"init", "/no/such/file", "could not read /no/such/file"},
    };
    char folder[FOLDER_PATH_BYTES];
    folder_path(state, "run", folder);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        dv_options options = small_options();
        dv_training *training = NULL;
        assert_ok(dv_options_set(&options, cases[i][0], cases[i][1], &error));
        dv_error told_error = {.status = DV_OK};
        assert_int_not_equal(dv_training_new(&options, folder, DV_FOLDER_GO_ON, NULL, &training, &told_error), DV_OK);
        if (strstr(told_error.text, cases[i][2]) == NULL)
            fail_msg("%s: %s", cases[i][0], told_error.text);
        assert_null(training);
        assert_false(exists(folder, "."));
    }
}

/* Weights of another network are told of, with what to do. */
static void differences_are_told(void **state) {
    char folder[FOLDER_PATH_BYTES], weights[FOLDER_PATH_BYTES];
    dv_options options = small_options();
    told t = {.steps = 0};
    dv_training_callbacks callbacks = callbacks_to(&t);
    dv_training *training;
    folder_path(state, "run", folder);
    folder_path(state, "run/" DV_FOLDER_LAST, weights);
    (void)train(&options, folder, 1);
    assert_ok(dv_options_set(&options, "init", weights, &error));
    assert_ok(dv_options_set(&options, "classes", "12", &error));
    assert_fails(dv_training_new(&options, NULL, DV_FOLDER_NEW, &callbacks, &training, &error), DV_ERROR_FORMAT, "");
    assert_int_equal(t.differences, 2);
    assert_string_equal(t.advice,
                        "only the last layer is another, as for other classes: leave it out with --init-except fc");
    assert_ok(dv_options_set(&options, "init-except", "fc", &error));
    assert_ok(dv_training_new(&options, NULL, DV_FOLDER_NEW, &callbacks, &training, &error));
    dv_training_free(training);
    clean(folder);
}

/* The checkpoints say what it takes to classify an image with them. */
static void notes_say_what_a_prediction_needs(void **state) {
    static const char *const files[] = {DV_FOLDER_LAST, DV_FOLDER_BEST};
    static const char *const notes[][2] = {{"model", "resnet20"},
                                           {"classes", "12"},
                                           {"side", "16"},
                                           {"resize", "16"},
                                           {"precision", "f32"},
                                           {"class_names",
                                            "[\"striped disc\", \"striped ring\", \"striped square\", "
                                            "\"striped triangle\", \"striped cross\", \"chequered disc\", "
                                            "\"chequered ring\", \"chequered square\", \"chequered triangle\", "
                                            "\"chequered cross\"]"}};
    char folder[FOLDER_PATH_BYTES], path[2 * FOLDER_PATH_BYTES];
    dv_options options = small_options();
    folder_path(state, "run", folder);
    assert_ok(dv_options_set(&options, "data", "synthetic:side=16,train=24,test=8", &error));
    assert_ok(dv_options_set(&options, "classes", "12", &error));
    (void)train(&options, folder, 0);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        dv_checkpoint *checkpoint;
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        assert_ok(dv_checkpoint_open(path, &checkpoint, &error));
        for (size_t k = 0; k < sizeof notes / sizeof *notes; k++)
            assert_string_equal(dv_checkpoint_note(checkpoint, notes[k][0]), notes[k][1]);
        dv_checkpoint_close(checkpoint);
    }
    clean(folder);
}

/* Rates rise by one ratio, the losses are told, and nothing is written. */
static void finds_a_rate(void **state) {
    dv_options options = small_options();
    told t = {.stop_after = 0};
    dv_training_callbacks callbacks = callbacks_to(&t);
    dv_rate_search search = {.steps = 60, .first = 1e-5, .last = 100};
    dv_rate_point points[60];
    dv_rate_found found;
    dv_training *training;
    assert_ok(dv_options_set(&options, "data", "synthetic:side=8,train=20,test=8", &error)); /* a last batch of 4 */
    assert_ok(dv_training_new(&options, NULL, DV_FOLDER_NEW, &callbacks, &training, &error));
    assert_ok(dv_training_find_rate(training, &search, points, &found, &error));
    assert_true(found.points >= 10 && found.points <= 60 && t.steps == (int)found.points && !found.stopped);
    for (size_t i = 0; i < found.points; i++) {
        assert_true(fabs(points[i].rate / (1e-5 * pow(1e7, (double)i / 59)) - 1) < 1e-9);
        assert_true(isfinite(points[i].loss) && points[i].loss > 0);
    }
    assert_true(points[0].smoothed == points[0].loss);
    assert_true(fabs(points[1].smoothed - (0.95 * points[0].loss + points[1].loss) / 1.95) < 1e-9);
    assert_true(found.suggested == found.lowest / 10 && found.lowest > 1e-5 && found.lowest < 100);
    dv_training_free(training);
    assert_int_equal(folder_count(state, 0), 0);
    t = (told){.stop_after = 5};
    assert_ok(dv_training_new(&options, NULL, DV_FOLDER_NEW, &callbacks, &training, &error));
    assert_ok(dv_training_find_rate(training, &search, points, &found, &error));
    assert_true(found.stopped && found.points == 5 && isnan(found.suggested));
    dv_training_free(training);
    /* Rates that change nothing: that batches differ is no fall. */
    search = (dv_rate_search){.steps = 60, .first = 1e-12, .last = 1e-11};
    t = (told){.stop_after = 0};
    assert_ok(dv_training_new(&options, NULL, DV_FOLDER_NEW, &callbacks, &training, &error));
    assert_ok(dv_training_find_rate(training, &search, points, &found, &error));
    assert_true(found.points == 60 && isnan(found.suggested));
    search.last = search.first;
    assert_fails(dv_training_find_rate(training, &search, points, &found, &error), DV_ERROR_OPTION, "they must rise");
    search.steps = 9;
    assert_fails(dv_training_find_rate(training, &search, points, &found, &error), DV_ERROR_OPTION, "steps: 9");
    dv_training_free(training);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(writes_a_folder_and_goes_on, folder_new, folder_free),
        cmocka_unit_test_setup_teardown(goes_on_to_the_same_bits, folder_new, folder_free),
        cmocka_unit_test_setup_teardown(what_cannot_work_leaves_nothing, folder_new, folder_free),
        cmocka_unit_test_setup_teardown(differences_are_told, folder_new, folder_free),
        cmocka_unit_test_setup_teardown(finds_a_rate, folder_new, folder_free),
        cmocka_unit_test_setup_teardown(notes_say_what_a_prediction_needs, folder_new, folder_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
