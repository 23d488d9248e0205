/* Files: replaced as a whole or not at all, and read as they are. */
#include "base/file.h"
#include "check.h"
#include "folder.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

static void expect_contents(const char *path, const char *wanted) {
    void *data;
    size_t bytes;
    dv_error error;
    if (dv_file_read(path, 1 << 20, &data, &bytes, &error) != DV_OK)
        fail_msg("%s", error.text);
    assert_int_equal(bytes, strlen(wanted));
    assert_string_equal(data, wanted);
    free(data);
}

static void put(const char *path, const char *text) {
    dv_error error;
    if (dv_file_replace(path, text, strlen(text), &error) != DV_OK)
        fail_msg("%s", error.text);
}

static void test_replace_and_read(void **state) {
    char path[FOLDER_PATH_BYTES];
    folder_path(state, "file", path);
    put(path, "old");
    expect_contents(path, "old");
    put(path, "something longer than before");
    expect_contents(path, "something longer than before");
    put(path, "");
    expect_contents(path, "");
    assert_int_equal(folder_count(state, 0), 1);
}

static void test_abandon_keeps_the_old(void **state) {
    char path[FOLDER_PATH_BYTES];
    dv_file file;
    folder_path(state, "file", path);
    put(path, "old");
    assert_int_equal(dv_file_begin(&file, path, NULL), DV_OK);
    fputs("new", file.stream);
    expect_contents(path, "old");
    dv_file_abandon(&file);
    expect_contents(path, "old");
    assert_int_equal(folder_count(state, 0), 1);
}

static void test_two_writers(void **state) {
    char path[FOLDER_PATH_BYTES];
    dv_file one, other;
    folder_path(state, "file", path);
    assert_int_equal(dv_file_begin(&one, path, NULL), DV_OK);
    assert_int_equal(dv_file_begin(&other, path, NULL), DV_OK);
    fputs("one", one.stream);
    fputs("other", other.stream);
    assert_int_equal(dv_file_commit(&one, NULL), DV_OK);
    expect_contents(path, "one");
    assert_int_equal(dv_file_commit(&other, NULL), DV_OK);
    expect_contents(path, "other");
    assert_int_equal(folder_count(state, 0), 1);
}

/* A write that fails half way, as on a full disk: made to fail by a limit on the size of files. */
static void test_failed_write_keeps_the_old(void **state) {
    static char large[1 << 16];
    char path[FOLDER_PATH_BYTES];
    struct rlimit before, limit;
    dv_error error = {DV_OK, ""};
    folder_path(state, "file", path);
    put(path, "old");
    getrlimit(RLIMIT_FSIZE, &before);
    limit = (struct rlimit){.rlim_cur = 4096, .rlim_max = before.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
    dv_status status = dv_file_replace(path, large, sizeof large, &error);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_int_equal(status, DV_ERROR_IO);
    assert_non_null(strstr(error.text, "file"));
    assert_non_null(strstr(error.text, strerror(EFBIG)));
    expect_contents(path, "old");
    assert_int_equal(folder_count(state, 0), 1);
}

static void test_permissions_and_links_stay(void **state) {
    char path[FOLDER_PATH_BYTES], link[FOLDER_PATH_BYTES];
    struct stat status;
    folder_path(state, "file", path);
    folder_path(state, "link", link);
    put(path, "old");
    assert_int_equal(chmod(path, 0640), 0);
    assert_int_equal(symlink("file", link), 0);
    put(link, "new");
    expect_contents(path, "new");
    assert_int_equal(lstat(link, &status), 0);
    assert_true(S_ISLNK(status.st_mode));
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0640);
}

static void test_devices_are_written_directly(void **state) {
    (void)state;
    struct stat status;
    dv_error error = {DV_OK, ""};
    assert_int_equal(dv_file_replace("/dev/null", "text", 4, &error), DV_OK);
    assert_int_equal(stat("/dev/null", &status), 0);
    assert_true(S_ISCHR(status.st_mode));
    assert_int_equal(dv_file_replace("/dev/full", "text", 4, &error), DV_ERROR_IO);
    assert_non_null(strstr(error.text, strerror(ENOSPC)));
}

/* Names that can be neither read nor written, and what the message must say. */
static void test_errors_name_file_and_reason(void **state) {
    char missing[FOLDER_PATH_BYTES], folder[FOLDER_PATH_BYTES];
    dv_error error = {DV_OK, ""};
    void *data;
    size_t bytes;
    folder_path(state, "no such folder/file", missing);
    folder_path(state, ".", folder);
    assert_int_equal(dv_file_read(missing, 100, &data, &bytes, &error), DV_ERROR_IO);
    assert_non_null(strstr(error.text, "no such folder/file"));
    assert_non_null(strstr(error.text, strerror(ENOENT)));
    assert_int_equal(dv_file_replace(missing, "", 0, &error), DV_ERROR_IO);
    assert_non_null(strstr(error.text, strerror(ENOENT)));
    assert_int_equal(dv_file_read(folder, 100, &data, &bytes, &error), DV_ERROR_IO);
    assert_non_null(strstr(error.text, strerror(EISDIR)));
    assert_int_equal(dv_file_replace(folder, "", 0, &error), DV_ERROR_IO);
    assert_int_equal(dv_file_replace("", "", 0, &error), DV_ERROR_ARGUMENT);
    assert_int_equal(folder_count(state, 0), 0);
}

/* A message has room for the reason, however long the path. */
static void test_long_paths(void **state) {
    (void)state;
    char path[3000];
    dv_error error;
    memset(path, 'x', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    assert_int_equal(dv_file_replace(path, "", 0, &error), DV_ERROR_IO);
    assert_non_null(strstr(error.text, strerror(ENAMETOOLONG)));
}

static void test_limit(void **state) {
    char path[FOLDER_PATH_BYTES];
    void *data;
    size_t bytes;
    dv_error error;
    folder_path(state, "file", path);
    put(path, "12345");
    assert_int_equal(dv_file_read(path, 5, &data, &bytes, &error), DV_OK);
    free(data);
    assert_int_equal(dv_file_read(path, 4, &data, &bytes, &error), DV_ERROR_FORMAT);
    assert_non_null(strstr(error.text, "4 bytes"));
}

/* What may never end, or never begin, is refused at once. */
static void test_no_regular_file(void **state) {
    char path[FOLDER_PATH_BYTES];
    void *data;
    size_t bytes;
    dv_error error;
    assert_int_equal(mkfifo(folder_path(state, "pipe", path), 0666), 0);
    assert_int_equal(dv_file_read(path, 5, &data, &bytes, &error), DV_ERROR_IO);
    assert_non_null(strstr(error.text, "pipe: it is no regular file: give the name of one"));
    assert_int_equal(dv_file_read("/dev/zero", 1 << 20, &data, &bytes, &error), DV_ERROR_IO);
    assert_non_null(strstr(error.text, "/dev/zero: it is no regular file"));
    assert_int_equal(dv_file_read(*state, 5, &data, &bytes, &error), DV_ERROR_IO);
    assert_non_null(strstr(error.text, strerror(EISDIR)));
}

/* Sizes around those at which the buffer grows. */
static void test_sizes(void **state) {
    static const size_t sizes[] = {1, 65534, 65535, 65536, 65537, 131071, 131072, 300000};
    char path[FOLDER_PATH_BYTES], *text = malloc(300001);
    assert_non_null(text);
    folder_path(state, "file", path);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        memset(text, 'a' + (int)i, sizes[i]);
        text[sizes[i]] = '\0';
        put(path, text);
        expect_contents(path, text);
    }
    free(text);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, folder_new, folder_free)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_replace_and_read),
        IN_FOLDER(test_abandon_keeps_the_old),
        IN_FOLDER(test_two_writers),
        IN_FOLDER(test_failed_write_keeps_the_old),
        IN_FOLDER(test_permissions_and_links_stay),
        cmocka_unit_test(test_devices_are_written_directly),
        IN_FOLDER(test_errors_name_file_and_reason),
        cmocka_unit_test(test_long_paths),
        IN_FOLDER(test_limit),
        IN_FOLDER(test_no_regular_file),
        IN_FOLDER(test_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
