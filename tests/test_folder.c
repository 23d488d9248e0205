/* The folder of a run: made with those above it, its log one line per epoch, its files replaced whole. */
#include "folder.h"

#include "check.h"

#include <division/folder.h>
#include <math.h>

/* All of a file; the caller's to free(). */
static char *read_all(const char *path) {
    char *text = calloc(1, 8192);
    FILE *file = fopen(path, "r");
    assert_non_null(text);
    if (file == NULL)
        fail_msg("there is no %s", path);
    assert_true(fread(text, 1, 8191, file) > 0);
    fclose(file);
    return text;
}

static void test_log(void **state) {
    char path[FOLDER_PATH_BYTES];
    dv_folder *folder = NULL;
    dv_epoch_record record = {.epoch = 1, .train_loss = 0.5, .test_loss = NAN, .test_top1 = NAN, .steps = 3};
    assert_ok(dv_folder_open(*state, 0, &folder, &error));
    assert_ok(dv_folder_log(folder, &record, &error));
    record.epoch = 2;
    record.complete = 1;
    record.spilled_bytes = 1; /* a file that nothing waited for */
    assert_ok(dv_folder_log(folder, &record, &error));
    char *text = read_all(folder_path(state, "log.jsonl", path)); /* before it is closed */
    assert_string_equal(
        text, "{\"epoch\": 1, \"train_loss\": 0.5, \"train_top1\": 0, \"test_loss\": null, \"test_top1\": null, "
              "\"images_per_second\": 0, \"peak_bytes\": 0, \"activation_bytes\": 0, \"seconds\": 0, "
              "\"workers\": 0, \"learning_rate\": 0, \"steps\": 3, \"complete\": false}\n"
              "{\"epoch\": 2, \"train_loss\": 0.5, \"train_top1\": 0, \"test_loss\": null, \"test_top1\": null, "
              "\"images_per_second\": 0, \"peak_bytes\": 0, \"activation_bytes\": 0, \"seconds\": 0, "
              "\"waited_seconds\": 0, \"workers\": 0, \"learning_rate\": 0, \"steps\": 3, \"complete\": true}\n");
    free(text);
    dv_folder_close(folder);
}

static void test_a_run_is_not_overwritten(void **state) {
    dv_folder *folder = NULL, *again = NULL;
    assert_ok(dv_folder_open(*state, 0, &folder, &error));
    assert_ok(dv_folder_write(folder, "config.json", "{}\n", &error));
    assert_ok(dv_folder_write(folder, "last.safetensors", "old", &error));
    dv_folder_close(folder);
    assert_fails(dv_folder_open(*state, 0, &again, &error), DV_ERROR_IO, "holds a run already");
    assert_null(again);
}

/* What is in a file of the folder is this. */
static void expect_in(void **state, const char *name, const char *wanted) {
    char path[FOLDER_PATH_BYTES];
    char *text = read_all(folder_path(state, name, path));
    assert_string_equal(text, wanted);
    free(text);
}

/* A new run that has options and nothing else leaves the one before as it was; the first thing that it has to show
 * removes that. */
static void test_replaced_when_there_is_something(void **state) {
    enum { OPTIONS_ALONE, A_LINE, A_FILE, WAYS };
    static const char old[] = "{\"epoch\": 9}\n";
    dv_folder *folder = NULL;
    for (int way = OPTIONS_ALONE; way < WAYS; way++) {
        folder_count(state, 1);
        assert_ok(dv_folder_open(*state, DV_FOLDER_NEW, &folder, &error));
        assert_ok(dv_folder_write(folder, "config.json", "old", &error));
        assert_ok(dv_folder_write(folder, "last.safetensors", "old", &error));
        assert_ok(dv_folder_write(folder, "best.safetensors", "old", &error));
        assert_ok(dv_folder_write(folder, "log.jsonl", old, &error));
        dv_folder_close(folder);
        assert_ok(dv_folder_open(*state, DV_FOLDER_REPLACE, &folder, &error));
        assert_ok(dv_folder_write(folder, "config.json", "new", &error));
        expect_in(state, "config.json", "old");
        if (way == A_LINE)
            assert_ok(dv_folder_log(folder, &(dv_epoch_record){.epoch = 1}, &error));
        if (way == A_FILE)
            assert_ok(dv_folder_write(folder, "last.safetensors", "new", &error));
        dv_folder_close(folder);
        expect_in(state, "config.json", way == OPTIONS_ALONE ? "old" : "new");
        if (way == OPTIONS_ALONE)
            expect_in(state, "log.jsonl", old);
        if (way == A_FILE)
            expect_in(state, "last.safetensors", "new");
        assert_int_equal(folder_count(state, 0), way == OPTIONS_ALONE ? 4 : way == A_LINE ? 2 : 3);
    }
}

/* Where there is no run to replace, nothing waits. */
static void test_nothing_to_replace(void **state) {
    dv_folder *folder = NULL;
    assert_ok(dv_folder_open(*state, DV_FOLDER_REPLACE, &folder, &error));
    assert_ok(dv_folder_write(folder, "config.json", "new", &error));
    expect_in(state, "config.json", "new");
    dv_folder_close(folder);
}

/* A run that goes on: lines of epochs that are done again, half lines and foreign ones go; the others stay. */
static void test_goes_on(void **state) {
    char path[FOLDER_PATH_BYTES];
    dv_folder *folder = NULL;
    FILE *file = fopen(folder_path(state, "log.jsonl", path), "w");
    assert_non_null(file);
    fputs("{\"epoch\": 1, \"a\": [1]}\nnonsense\n{\"epoch\": 2, \"a\": 1}\n{\"epoch\": 3}\n{\"epoch\": 1, \"tra", file);
    fclose(file);
    assert_ok(dv_folder_open(*state, DV_FOLDER_GO_ON, &folder, &error));
    char *text = read_all(path);
    assert_non_null(strstr(text, "{\"epoch\": 3}")); /* nothing is lost before there is something new */
    free(text);
    assert_ok(dv_folder_log(folder, &(dv_epoch_record){.epoch = 3}, &error));
    assert_ok(dv_folder_log(folder, &(dv_epoch_record){.epoch = 4}, &error));
    text = read_all(path);
    static const char kept[] =
        "{\"epoch\": 1, \"a\": [1]}\n{\"epoch\": 2, \"a\": 1}\n{\"epoch\": 3, \"train_loss\": 0,";
    assert_memory_equal(text, kept, strlen(kept));
    const char *last = strstr(text, "\n{\"epoch\": 4,");
    assert_non_null(last);
    assert_ptr_equal(strchr(last + 1, '\n'), text + strlen(text) - 1);
    free(text);
    dv_folder_close(folder);
}

/* What a killed training left half-written is removed; what is not ours stays. */
static void test_left_overs(void **state) {
    static const char *const names[] = {"last.safetensors.123-0.tmp", "log.jsonl.7-99.tmp", "notes.tmp", "last.tmp",
                                        "last.safetensors"};
    char path[FOLDER_PATH_BYTES];
    dv_folder *folder = NULL;
    for (size_t i = 0; i < 5; i++) {
        FILE *file = fopen(folder_path(state, names[i], path), "w");
        assert_non_null(file);
        fclose(file);
    }
    assert_ok(dv_folder_open(*state, DV_FOLDER_GO_ON, &folder, &error));
    dv_folder_close(folder);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(access(folder_path(state, names[i], path), F_OK) == 0, i >= 2);
}

static void test_one_at_a_time(void **state) {
    dv_folder *folder = NULL, *other = NULL;
    assert_ok(dv_folder_open(*state, DV_FOLDER_NEW, &folder, &error));
    for (int mode = DV_FOLDER_NEW; mode <= DV_FOLDER_GO_ON; mode++)
        assert_fails(dv_folder_open(*state, (dv_folder_mode)mode, &other, &error), DV_ERROR_IO,
                     "another training is writing to");
    dv_folder_close(folder);
    assert_ok(dv_folder_open(*state, DV_FOLDER_GO_ON, &folder, &error));
    dv_folder_close(folder);
}

static void test_folders_above(void **state) {
    char path[FOLDER_PATH_BYTES];
    dv_folder *folder = NULL;
    assert_ok(dv_folder_open(folder_path(state, "a/b/c/", path), 0, &folder, &error));
    dv_folder_close(folder);
    static const char *const made[] = {"a/b/c/log.jsonl", "a/b/c", "a/b", "a"};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        assert_int_equal(remove(folder_path(state, made[i], path)), 0);
}

static void test_failures(void **state) {
    char path[FOLDER_PATH_BYTES];
    dv_folder *folder = NULL;
    assert_fails(dv_folder_open("", 0, &folder, &error), DV_ERROR_ARGUMENT, "no folder");
    assert_fails(dv_folder_open("/dev/null/x", 0, &folder, &error), DV_ERROR_IO, "Not a directory");
    assert_int_equal(symlink("/dev/full", folder_path(state, "log.jsonl", path)), 0);
    assert_ok(dv_folder_open(*state, 1, &folder, &error));
    assert_fails(dv_folder_log(folder, &(dv_epoch_record){.epoch = 7}, &error), DV_ERROR_IO,
                 "after epoch 7: No space left on device");
    dv_folder_close(folder);
    dv_folder_close(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_log, folder_new, folder_free),
        cmocka_unit_test_setup_teardown(test_a_run_is_not_overwritten, folder_new, folder_free),
        cmocka_unit_test_setup_teardown(test_replaced_when_there_is_something, folder_new, folder_free),
        cmocka_unit_test_setup_teardown(test_nothing_to_replace, folder_new, folder_free),
        cmocka_unit_test_setup_teardown(test_folders_above, folder_new, folder_free),
        cmocka_unit_test_setup_teardown(test_goes_on, folder_new, folder_free),
        cmocka_unit_test_setup_teardown(test_left_overs, folder_new, folder_free),
        cmocka_unit_test_setup_teardown(test_one_at_a_time, folder_new, folder_free),
        cmocka_unit_test_setup_teardown(test_failures, folder_new, folder_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
