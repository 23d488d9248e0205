/* What the system says about memory, read from folders that stand for /proc and /sys. */
#define _GNU_SOURCE /* nftw */
#include "base/system_memory.h"
#include "check.h"
#include "folder.h"

#include <errno.h>
#include <ftw.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum { MOST_FILES = 24 };

typedef struct imitated_file {
    const char *path, *text;
} imitated_file;

/* A system, and what it leaves. */
typedef struct imitated_system {
    const char *name;
    imitated_file files[MOST_FILES];
    size_t available;
} imitated_system;

#define MACHINE "/proc/meminfo", "MemTotal:  9000 kB\nMemAvailable:    8000 kB\n"
#define MOUNTED(version, seen, point, options)                                \
    "24 21 0:5 / /proc rw - proc proc rw\n"                                   \
    "33 24 0:28 " seen " " point " rw shared:9 - " version " cgroup " options \
    "\n35 24 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
#define SECOND "/sys/fs/cgroup"
#define FIRST "/sys/fs/cgroup/memory"
#define NO_LIMIT "9223372036854771712\n"

static const imitated_system systems[] = {
    {"no groups", {{MACHINE}}, 8000 * 1024},
    {"the second version, at its root, /proc not telling of groups",
     {{MACHINE}, {SECOND "/memory.max", "3000000\n"}, {SECOND "/memory.current", "1000000\n"}},
     2000000},
    {"the second version, a group below the root",
     {{MACHINE},
      {"/proc/self/cgroup", "0::/outer/inner\n"},
      {"/proc/self/mountinfo", MOUNTED("cgroup2", "/", SECOND, "rw")},
      {SECOND "/outer/memory.max", "max\n"},
      {SECOND "/outer/memory.current", "1000000\n"},
      {SECOND "/outer/inner/memory.max", "4000000\n"},
      {SECOND "/outer/inner/memory.current", "1000000\n"}},
     3000000},
    {"the second version, the group above leaves less",
     {{MACHINE},
      {"/proc/self/cgroup", "0::/outer/inner\n"},
      {"/proc/self/mountinfo", MOUNTED("cgroup2", "/", SECOND, "rw")},
      {SECOND "/outer/memory.max", "5000000\n"},
      {SECOND "/outer/memory.current", "4500000\n"},
      {SECOND "/outer/inner/memory.max", "4000000\n"},
      {SECOND "/outer/inner/memory.current", "1000000\n"}},
     500000},
    {"the second version, pages of files can be given up",
     {{MACHINE},
      {"/proc/self/cgroup", "0::/a\n"},
      {"/proc/self/mountinfo", MOUNTED("cgroup2", "/", SECOND, "rw")},
      {SECOND "/a/memory.max", "5000000\n"},
      {SECOND "/a/memory.current", "4500000\n"},
      {SECOND "/a/memory.stat", "anon 1000000\nfile 3500000\ninactive_file 3000000\nactive_file 500000\n"}},
     4000000},
    {"the second version, mounted elsewhere beside the first",
     {{MACHINE},
      {"/proc/self/cgroup", "2:cpu:/\n0::/a\n"},
      {"/proc/self/mountinfo", MOUNTED("cgroup2", "/", "/sys/fs/cgroup/unified", "rw")},
      {"/sys/fs/cgroup/unified/a/memory.max", "2000000\n"},
      {"/sys/fs/cgroup/unified/a/memory.current", "500000\n"}},
     1500000},
    {"the second version, a group that is not to be seen from here",
     {{MACHINE},
      {"/proc/self/cgroup", "0::/../outside\n"},
      {"/proc/self/mountinfo", MOUNTED("cgroup2", "/", SECOND, "rw")},
      {SECOND "/memory.max", "2000000\n"},
      {SECOND "/memory.current", "500000\n"}},
     1500000},
    {"the first version",
     {{MACHINE},
      {"/proc/self/cgroup", "5:cpu,cpuacct:/cpu\n4:hugetlb,memory:/outer/inner\n1:name=systemd:/x\n0::/x\n"},
      {"/proc/self/mountinfo", MOUNTED("cgroup", "/", FIRST, "rw,hugetlb,memory")},
      {FIRST "/memory.limit_in_bytes", NO_LIMIT},
      {FIRST "/memory.usage_in_bytes", "7000000\n"},
      {FIRST "/outer/memory.limit_in_bytes", "4000000\n"},
      {FIRST "/outer/memory.usage_in_bytes", "2500000\n"},
      {FIRST "/outer/memory.stat", "inactive_file 1\ntotal_inactive_file 1000000\ntotal_active_file 0\n"},
      {FIRST "/outer/inner/memory.limit_in_bytes", "3000000\n"},
      {FIRST "/outer/inner/memory.usage_in_bytes", "200000\n"}},
     2500000},
    {"the first version, a container that sees its own part of the tree",
     {{MACHINE},
      {"/proc/self/cgroup", "4:memory:/docker/12ab/training\n"},
      {"/proc/self/mountinfo", MOUNTED("cgroup", "/docker/12ab", FIRST, "rw,memory")},
      {FIRST "/memory.limit_in_bytes", "3000000\n"},
      {FIRST "/memory.usage_in_bytes", "1000000\n"},
      {FIRST "/training/memory.limit_in_bytes", "1800000\n"},
      {FIRST "/training/memory.usage_in_bytes", "1000000\n"}},
     800000},
    {"a group that has used up its limit",
     {{MACHINE},
      {"/proc/self/cgroup", "4:memory:/a\n"},
      {"/proc/self/mountinfo", MOUNTED("cgroup", "/", FIRST, "rw,memory")},
      {FIRST "/a/memory.limit_in_bytes", "1000000\n"},
      {FIRST "/a/memory.usage_in_bytes", "1000001\n"}},
     0},
    {"groups with more room than the machine",
     {{MACHINE},
      {"/proc/self/cgroup", "0::/a\n"},
      {"/proc/self/mountinfo", MOUNTED("cgroup2", "/", SECOND, "rw")},
      {SECOND "/a/memory.max", "90000000\n"},
      {SECOND "/a/memory.current", "500000\n"}},
     8000 * 1024},
    {"files that make no sense",
     {{MACHINE},
      {"/proc/self/cgroup", "0\n::\n0::\n\n4:memory\n"},
      {"/proc/self/mountinfo", "- cgroup2\n - cgroup2 x y\n1 2 3 / /sys/fs/cgroup - cgroup2\n"},
      {SECOND "/memory.max", "\n"},
      {SECOND "/memory.current", "-\n"}},
     8000 * 1024},
};

/* Writes a file of the imitated system, with the folders above it. */
static void put(const char *root, const char *path, const char *text) {
    char whole[FOLDER_PATH_BYTES];
    snprintf(whole, sizeof whole, "%s%s", root, path);
    for (char *at = strchr(whole + strlen(root) + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
        *at = '\0';
        assert_true(mkdir(whole, 0700) == 0 || errno == EEXIST);
        *at = '/';
    }
    FILE *file = fopen(whole, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0 && fclose(file) == 0);
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *at) {
    (void)status;
    (void)type;
    return at->level > 0 ? remove(path) : 0;
}

static void test_available(void **state) {
    for (size_t i = 0; i < sizeof systems / sizeof *systems; i++) {
        for (const imitated_file *file = systems[i].files; file->path != NULL; file++)
            put(*state, file->path, file->text);
        size_t found = dv_system_memory_available(*state);
        if (found != systems[i].available)
            fail_msg("%s: %zu bytes, not %zu", systems[i].name, found, systems[i].available);
        assert_int_equal(nftw(*state, remove_entry, 8, FTW_DEPTH | FTW_PHYS), 0);
    }
}

static void test_peak(void **state) {
    put(*state, "/proc/self/status", "Name:\tdivision\nVmPeak:\t 999 kB\nVmHWM:\t    321 kB\nRssFile:\t    21 kB\n");
    assert_int_equal(dv_system_memory_peak(*state), 321 * 1024);
    assert_int_equal(dv_system_memory_of_files(*state), 21 * 1024);
    assert_int_equal(nftw(*state, remove_entry, 8, FTW_DEPTH | FTW_PHYS), 0);
}

/* The folder is empty: the figures are those of calls, and near the true ones. */
static void test_without_files(void **state) {
    enum { BYTES = 64 << 20 };
    size_t before = dv_system_memory_peak(*state), available = dv_system_memory_available(*state);
    assert_in_range(available, 1, (size_t)1 << 48);
    assert_in_range(before, 1 << 16, available + ((size_t)1 << 36));
    void *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    assert_true(memory != MAP_FAILED);
    assert_in_range(dv_system_memory_peak(*state), (size_t)BYTES, (size_t)1 << 40);
    munmap(memory, BYTES);
    assert_int_equal(dv_system_memory_of_files(*state), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_available, folder_new, folder_free),
        cmocka_unit_test_setup_teardown(test_peak, folder_new, folder_free),
        cmocka_unit_test_setup_teardown(test_without_files, folder_new, folder_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
