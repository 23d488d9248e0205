/* Free memory, limits of control groups, the peak of this process.
 *
 * A group's limit holds for the groups below it as well, so all from the process's own up to where the tree of groups
 * is mounted are asked. /proc/self/cgroup has the group's path and /proc/self/mountinfo where the tree, or the part of
 * it that a container sees, is mounted:
 *
 *     /proc/self/cgroup       0::/user.slice/training               4:memory:/docker/12ab/training
 *     /proc/self/mountinfo    … / /sys/fs/cgroup … - cgroup2 …      … /docker/12ab /sys/fs/cgroup/memory … - cgroup …
 * memory limits are asked of     /sys/fs/cgroup/user.slice/training    /sys/fs/cgroup/memory/training
 *                             /sys/fs/cgroup/user.slice             /sys/fs/cgroup/memory
 *                             /sys/fs/cgroup
 *
 * Without /proc, as in a bare chroot, the calls sysinfo and getrusage tell what they know. */
#include "base/system_memory.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>

enum { PATH_BYTES = 4096 };

/* The two versions of control groups. */
typedef struct group_version {
    const char *controller;  /* in /proc/self/cgroup, and among the options of the mount; "" for all of them at once */
    const char *file_system; /* as mounted */
    const char *usual;       /* where, if nothing says it */
    const char *limit, *used;
    const char *cache[2]; /* keys in memory.stat: pages of files, in use lately and not */
} group_version;

static const group_version versions[] = {
    {"", "cgroup2", "/sys/fs/cgroup", "memory.max", "memory.current", {"inactive_file ", "active_file "}},
    {"memory",
     "cgroup",
     "/sys/fs/cgroup/memory",
     "memory.limit_in_bytes",
     "memory.usage_in_bytes",
     {"total_inactive_file ", "total_active_file "}},
};

enum { VERSION_COUNT = sizeof versions / sizeof *versions };

static size_t lesser(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Opens the file `name` of the folder `root` `folder`, or returns NULL. */
static FILE *open_in(const char *root, const char *folder, const char *name) {
    char path[PATH_BYTES];
    int length = snprintf(path, sizeof path, "%s%s/%s", root, folder, name);
    return length < (int)sizeof path ? fopen(path, "re") : NULL;
}

/* The number after `key` in a file of "key number unit" lines, or SIZE_MAX. */
static size_t number_in(const char *root, const char *folder, const char *name, const char *key) {
    char line[256];
    size_t found = SIZE_MAX, length = strlen(key);
    FILE *file = open_in(root, folder, name);
    while (file && found == SIZE_MAX && fgets(line, sizeof line, file)) {
        char *end = line;
        unsigned long long number = strncmp(line, key, length) == 0 ? strtoull(line + length, &end, 10) : 0;
        found = end != line && end != line + length ? (size_t)number : SIZE_MAX; /* "max" is no number */
    }
    if (file)
        fclose(file);
    return found;
}

/* ---- control groups ------------------------------------------------------------------------ */

/* What the group in `folder` leaves, or SIZE_MAX where it has no limit. */
static size_t left_by_group(const group_version *version, const char *root, const char *folder) {
    size_t limit = number_in(root, folder, version->limit, ""), used = number_in(root, folder, version->used, "");
    if (limit == SIZE_MAX || used == SIZE_MAX)
        return SIZE_MAX;
    for (int i = 0; i < 2; i++) {
        size_t cached = number_in(root, folder, "memory.stat", version->cache[i]);
        used -= cached == SIZE_MAX ? 0 : lesser(cached, used);
    }
    return limit > used ? limit - used : 0;
}

/* The least that a group and those above it leave, up to the one that is mounted at `point`. `group` is the path from
 * there, "" or "/a/b", which is lost. */
static size_t left_by_groups(const group_version *version, const char *root, const char *point, char *group) {
    char folder[PATH_BYTES];
    size_t least = SIZE_MAX;
    for (char *end = group + strlen(group); end != NULL; end = strrchr(group, '/')) {
        *end = '\0';
        if (snprintf(folder, sizeof folder, "%s%s", point, group) < (int)sizeof folder)
            least = lesser(least, left_by_group(version, root, folder));
    }
    return least;
}

/* True if `word` is one of those in `list`, which has commas between them. */
static bool is_listed(const char *word, const char *list) {
    size_t length = strlen(word);
    for (const char *at = list; at != NULL; at = strchr(at, ','), at = at ? at + 1 : NULL)
        if (strncmp(at, word, length) == 0 && (at[length] == ',' || at[length] == '\0'))
            return true;
    return false;
}

/* The path of this process's group, as /proc/self/cgroup has it: lines "number:controllers:path". */
static bool find_group(const group_version *version, const char *root, char path[PATH_BYTES]) {
    char line[PATH_BYTES + 256];
    bool found = false;
    FILE *file = open_in(root, "/proc/self", "cgroup");
    while (file && !found && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (group == NULL)
            continue;
        *group = '\0';
        found =
            is_listed(version->controller, controllers + 1) && snprintf(path, PATH_BYTES, "%s", group + 1) < PATH_BYTES;
    }
    if (file)
        fclose(file);
    return found;
}

/* Reads a line of mountinfo: "36 35 98:0 ROOT POINT options … - TYPE source OPTIONS". True if it is a tree of groups of
 * this version; then `mounted` is what of the tree is seen, and `point` where. */
static bool read_mount(const group_version *version, const char *line, char mounted[PATH_BYTES],
                       char point[PATH_BYTES]) {
    char type[32], options[1024];
    const char *rest = strstr(line, " - ");
    return rest != NULL && sscanf(rest, " - %31s %*s %1023s", type, options) == 2 &&
           strcmp(type, version->file_system) == 0 &&
           (version->controller[0] == '\0' || is_listed(version->controller, options)) &&
           sscanf(line, "%*s %*s %*s %4095s %4095s", mounted, point) == 2;
}

/* The path of group `path` from the one that is mounted: "/docker/12ab/training" in "/docker/12ab" is "/training". A
 * group that is not to be seen from there, as in another name space, is "", the mounted one itself. */
static void path_from(const char *mounted, const char *path, char group[PATH_BYTES]) {
    size_t length = strcmp(mounted, "/") == 0 ? 0 : strlen(mounted);
    bool below = strncmp(path, mounted, length) == 0 && path[length] == '/' && path[length + 1] != '\0' &&
                 strstr(path, "/..") == NULL;
    snprintf(group, PATH_BYTES, "%s", below ? path + length : "");
}

static size_t left_by_version(const group_version *version, const char *root) {
    char path[PATH_BYTES] = "", mounted[PATH_BYTES], point[PATH_BYTES], group[PATH_BYTES] = "", *line = NULL;
    size_t least = SIZE_MAX, bytes = 0;
    bool seen = false;
    FILE *file = find_group(version, root, path) ? open_in(root, "/proc/self", "mountinfo") : NULL;
    while (file && getline(&line, &bytes, file) > 0) {
        if (!read_mount(version, line, mounted, point))
            continue;
        seen = true;
        path_from(mounted, path, group);
        least = lesser(least, left_by_groups(version, root, point, group));
    }
    free(line);
    if (file)
        fclose(file);
    return seen ? least : left_by_group(version, root, version->usual);
}

/* ---- machine and process ------------------------------------------------------------------- */

/* What is free on the machine. Without /proc/meminfo, pages of files are not counted as free: sysinfo does not know
 * them. */
static size_t left_by_machine(const char *root) {
    struct sysinfo info;
    size_t kilobytes = number_in(root, "/proc", "meminfo", "MemAvailable:");
    if (kilobytes != SIZE_MAX)
        return kilobytes * 1024;
    return sysinfo(&info) == 0 ? (size_t)(info.freeram + info.bufferram) * info.mem_unit : SIZE_MAX;
}

size_t dv_system_memory_available(const char *root) {
    size_t least = left_by_machine(root);
    for (size_t i = 0; i < VERSION_COUNT; i++)
        least = lesser(least, left_by_version(&versions[i], root));
    return least;
}

size_t dv_system_memory_peak(const char *root) {
    struct rusage usage;
    size_t kilobytes = number_in(root, "/proc/self", "status", "VmHWM:");
    if (kilobytes != SIZE_MAX)
        return kilobytes * 1024;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (size_t)usage.ru_maxrss * 1024 : 0;
}

size_t dv_system_memory_resident(const char *root) {
    size_t kilobytes = number_in(root, "/proc/self", "status", "VmRSS:");
    return kilobytes != SIZE_MAX ? kilobytes * 1024 : dv_system_memory_peak(root);
}

size_t dv_system_memory_of_files(const char *root) {
    size_t kilobytes = number_in(root, "/proc/self", "status", "RssFile:");
    return kilobytes != SIZE_MAX ? kilobytes * 1024 : 0;
}
