/* The file that values are spilled to: nameless, reserved, not in the page cache; and what it says when it can't be. */
#define _GNU_SOURCE
#include "base/spill_file.h"
#include "check.h"
#include "disk.h"
#include "folder.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>

enum { BUFFER = 4 * DV_SPILL_BLOCK };

static _Alignas(DV_SPILL_BLOCK) char zeros[BUFFER];

static bool is_of_type(const char *folder, long type) {
    struct statfs system;
    return statfs(folder, &system) == 0 && system.f_type == type;
}

static bool in_memory(const char *folder) {
    return is_of_type(folder, TMPFS_MAGIC);
}

/* Opens a file wherever tests put theirs, which may be in memory. */
static dv_status open_in(const char *folder, size_t bytes, disk *on, bool page_cache, dv_spill_file *file,
                         dv_error *error) {
    dv_spill_disk calls = disk_calls(on);
    dv_spill_file_options options = {.in_memory = true, .page_cache = page_cache, .disk = &calls};
    return dv_spill_file_open(file, folder, bytes, &options, zeros, sizeof zeros, error);
}

/* Writes blocks of different bytes over the whole file, and reads them back. */
static void check_contents(const dv_spill_file *file) {
    char *memory = aligned_alloc(DV_SPILL_BLOCK, BUFFER);
    assert_non_null(memory);
    for (size_t offset = 0; offset < file->bytes; offset += DV_SPILL_BLOCK) {
        memset(memory, (int)(offset / DV_SPILL_BLOCK % 251 + 1), DV_SPILL_BLOCK);
        assert_ok(dv_spill_file_write(file, offset, memory, DV_SPILL_BLOCK, &error));
    }
    for (size_t offset = 0; offset < file->bytes; offset += BUFFER) {
        size_t bytes = file->bytes - offset < BUFFER ? file->bytes - offset : BUFFER;
        memset(memory, 0, BUFFER);
        assert_ok(dv_spill_file_read(file, offset, memory, bytes, &error));
        for (size_t i = 0; i < bytes; i++)
            assert_int_equal((unsigned char)memory[i], (offset + i) / DV_SPILL_BLOCK % 251 + 1);
    }
    free(memory);
}

/* Without a name, and with all blocks there. */
static void check_file(const dv_spill_file *file, size_t bytes) {
    struct stat status;
    assert_int_equal(fstat(file->descriptor, &status), 0);
    assert_int_equal(status.st_nlink, 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    assert_int_equal(file->bytes, dv_spill_room(bytes));
    assert_true((size_t)status.st_blocks * 512 >= bytes);
}

static void check_disk(void **state, disk *on, bool page_cache) {
    const size_t bytes = 37 * DV_SPILL_BLOCK - 5;
    dv_spill_file file;
    assert_ok(open_in(*state, bytes, on, page_cache, &file, &error));
    check_file(&file, bytes);
    assert_int_equal(folder_count(state, 0), 0);
    check_contents(&file);
    if (page_cache || on->refuses_direct)
        assert_false(file.direct);
    dv_spill_file_close(&file);
    assert_int_equal(folder_count(state, 0), 0);
}

/* ---- what file systems can and can't ------------------------------------------------------- */

static void test_contents(void **state) {
    check_disk(state, &(disk){0}, false);
    check_disk(state, &(disk){0}, true);
}

static void test_without_nameless_files(void **state) {
    check_disk(state, &(disk){.no_unnamed = true}, false);
}

static void test_without_reserving(void **state) {
    check_disk(state, &(disk){.no_reserve = true}, false);
    check_disk(state, &(disk){.no_reserve = true}, true);
}

static void test_direct_accepted_and_refused(void **state) {
    check_disk(state, &(disk){.refuses_direct = true}, false);
}

static void test_short_counts_and_interruptions(void **state) {
    check_disk(state, &(disk){.short_counts = true}, false);
    check_disk(state, &(disk){.short_counts = true, .no_reserve = true}, true);
}

static void test_empty(void **state) {
    dv_spill_file file;
    assert_ok(open_in(*state, 0, &(disk){0}, false, &file, &error));
    assert_int_equal(file.bytes, 0);
    dv_spill_file_close(&file);
}

/* ---- failures ------------------------------------------------------------------------------ */

static void expect_no_file(void **state, const char *folder, size_t bytes, disk *on, const char *words) {
    dv_spill_file file;
    int before = folder_count(state, 0);
    assert_fails(open_in(folder, bytes, on, false, &file, &error), DV_ERROR_IO, words);
    assert_int_equal(folder_count(state, 0), before);
}

static void test_folders_that_are_none(void **state) {
    char path[FOLDER_PATH_BYTES];
    expect_no_file(state, folder_path(state, "nowhere", path), 1, &(disk){0}, "nowhere: No such file or directory");
    FILE *stream = fopen(folder_path(state, "file", path), "w");
    assert_non_null(stream);
    fclose(stream);
    expect_no_file(state, path, 1, &(disk){0}, "file is no folder: give one");
    if (is_of_type("/proc", PROC_SUPER_MAGIC)) /* where no file can be made */
        expect_no_file(state, "/proc", 1, &(disk){0}, "/proc");
    dv_spill_file file;
    assert_fails(open_in("", 1, &(disk){0}, false, &file, &error), DV_ERROR_ARGUMENT, "no folder");
    assert_fails(open_in(NULL, 1, &(disk){0}, false, &file, &error), DV_ERROR_ARGUMENT, "no folder");
    assert_fails(open_in(*state, SIZE_MAX, &(disk){0}, false, &file, &error), DV_ERROR_ARGUMENT, "so large");
}

/* Permissions do not stop the superuser, who becomes nobody for a moment. */
static void test_folder_without_permission(void **state) {
    bool superuser = geteuid() == 0;
    assert_int_equal(chmod(*state, 0555), 0);
    if (superuser)
        assert_int_equal(seteuid(65534), 0);
    dv_spill_file file;
    dv_error error = {0};
    dv_status status = open_in(*state, 1, &(disk){0}, false, &file, &error);
    if (superuser)
        assert_int_equal(seteuid(0), 0);
    assert_int_equal(chmod(*state, 0700), 0);
    assert_int_equal(status, DV_ERROR_IO);
    assert_non_null(strstr(error.text, "Permission denied: check the permissions"));
}

static void test_memory_refused(void **state) {
    (void)state;
    if (!in_memory("/dev/shm"))
        leave_out("a folder in memory: /dev/shm is none here");
    dv_spill_file file;
    dv_spill_file_options options = {0};
    assert_fails(dv_spill_file_open(&file, "/dev/shm", 1, &options, zeros, sizeof zeros, &error), DV_ERROR_OPTION,
                 "/dev/shm is in memory (tmpfs), where spilling saves none: give one that is on a disk");
    options.in_memory = true;
    assert_ok(dv_spill_file_open(&file, "/dev/shm", BUFFER, &options, zeros, sizeof zeros, &error));
    check_contents(&file);
    dv_spill_file_close(&file);
}

/* More than there is: said before anything is reserved. */
static void test_more_than_the_disk_has(void **state) {
    expect_no_file(state, *state, (size_t)1 << 60, &(disk){0}, " MB are missing: make room, or choose another folder");
}

static void test_refused_reservation(void **state) {
    expect_no_file(state, *state, 1, &(disk){.reserve_code = ENOSPC}, "could not reserve 0.0 MB to spill to in ");
    expect_no_file(state, *state, 1, &(disk){.reserve_code = EDQUOT}, strerror(EDQUOT));
    expect_no_file(state, *state, 5 * BUFFER, &(disk){.no_reserve = true, .fail_at = 3, .code = ENOSPC},
                   strerror(ENOSPC));
    expect_no_file(state, *state, BUFFER, &(disk){.no_reserve = true, .fail_at = 1, .code = EIO}, strerror(EIO));
}

/* Opens files in a file system of 1 MB, in a process of its own that alone sees it. Its exit code: 0 if all was as it
 * should be, 77 where it may not mount, else the number of what was wrong. */
static int fill_small_disk(const char *folder) {
    dv_spill_file file;
    dv_error error = {0};
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("tmpfs", folder, "tmpfs", 0, "size=1m") != 0)
        return 77;
    if (open_in(folder, 3 << 19, &(disk){0}, true, &file, &error) != DV_ERROR_IO)
        return 1;
    if (strstr(error.text, "could not reserve 1.6 MB") == NULL ||
        strstr(error.text, "1.0 MB are free, 0.5 MB are missing") == NULL)
        return 2;
    return open_in(folder, 1 << 20, &(disk){0}, true, &file, &error) == DV_OK ? 0 : 3;
}

static void test_full_disk(void **state) {
    int status;
    pid_t child = fork();
    if (child == 0)
        _exit(fill_small_disk(*state));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        leave_out("a full disk: no file system can be mounted here");
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* The signal that goes with the limit would end the test. */
static void test_limit_of_the_process(void **state) {
    struct rlimit before, limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = (struct rlimit){.rlim_cur = 1000000, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    dv_spill_file file;
    dv_error error = {0};
    dv_status status = open_in(*state, 2000000, &(disk){0}, false, &file, &error);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_int_equal(status, DV_ERROR_IO);
    assert_non_null(strstr(error.text, "could not reserve 2.0 MB"));
    assert_non_null(strstr(error.text, "not write files of more than 1.0 MB: raise its limit (ulimit -f)"));
}

static void test_failures_say_where(void **state) {
    dv_spill_file file;
    disk broken = {0};
    assert_ok(open_in(*state, BUFFER, &broken, false, &file, &error));
    broken.fail_at = broken.transfers + 1;
    broken.code = EIO;
    assert_fails(dv_spill_file_write(&file, 8192, zeros, 4096, &error), DV_ERROR_IO,
                 "could not write 4096 bytes at offset 8192 of the spill file in ");
    broken.fail_at = broken.transfers + 1;
    assert_fails(dv_spill_file_write(&file, 8192, zeros, 4096, &error), DV_ERROR_IO, strerror(EIO));
    broken.fail_at = broken.transfers + 1;
    char *memory = aligned_alloc(DV_SPILL_BLOCK, 2 * DV_SPILL_BLOCK);
    assert_non_null(memory);
    assert_fails(dv_spill_file_read(&file, 4096, memory, 8192, &error), DV_ERROR_IO,
                 "could not read 8192 bytes at offset 4096 of the spill file in ");
    assert_fails(dv_spill_file_read(&file, BUFFER, memory, 4096, &error), DV_ERROR_IO, strerror(EIO)); /* behind it */
    free(memory);
    dv_spill_file_close(&file);
}

/* ---- the page cache ------------------------------------------------------------------------ */

/* Pages of the file that are in memory. */
static size_t resident_pages(const dv_spill_file *file) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = (file->bytes + page - 1) / page, count = 0;
    unsigned char *resident = calloc(pages, 1);
    void *mapped = mmap(NULL, file->bytes, PROT_READ, MAP_SHARED, file->descriptor, 0);
    assert_non_null(resident);
    assert_ptr_not_equal(mapped, MAP_FAILED);
    assert_int_equal(mincore(mapped, file->bytes, resident), 0);
    for (size_t i = 0; i < pages; i++)
        count += resident[i] & 1;
    munmap(mapped, file->bytes);
    free(resident);
    return count;
}

/* Whether 16 MB, written and read, are out of memory again. */
static void check_cache(void **state, disk on, bool page_cache) {
    dv_spill_file file;
    assert_ok(open_in(*state, 16 << 20, &on, page_cache, &file, &error));
    assert_in_range(resident_pages(&file), 0, 16);
    check_contents(&file);
    assert_in_range(resident_pages(&file), 0, 16);
    dv_spill_file_close(&file);
}

static void test_page_cache(void **state) {
    if (in_memory(*state))
        leave_out("pages of files: the folder of tests is in memory: set TMPDIR to one that is on a disk");
    check_cache(state, (disk){0}, false);
    check_cache(state, (disk){0}, true);
    check_cache(state, (disk){.no_reserve = true}, true);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, folder_new, folder_free)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_contents),
        IN_FOLDER(test_without_nameless_files),
        IN_FOLDER(test_without_reserving),
        IN_FOLDER(test_direct_accepted_and_refused),
        IN_FOLDER(test_short_counts_and_interruptions),
        IN_FOLDER(test_empty),
        IN_FOLDER(test_folders_that_are_none),
        IN_FOLDER(test_folder_without_permission),
        cmocka_unit_test(test_memory_refused),
        IN_FOLDER(test_more_than_the_disk_has),
        IN_FOLDER(test_refused_reservation),
        IN_FOLDER(test_full_disk),
        IN_FOLDER(test_limit_of_the_process),
        IN_FOLDER(test_failures_say_where),
        IN_FOLDER(test_page_cache),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
