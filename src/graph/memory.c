/* Mapping the arena, and what the system says about memory. */
#include "graph/memory.h"

#include "base/status.h"

#include <division/graph.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* The number after `key` in a file of "key: number unit" lines, or SIZE_MAX. */
static size_t number_in(const char *path, const char *key) {
    char line[256];
    size_t found = SIZE_MAX, length = strlen(key);
    FILE *file = fopen(path, "r");
    while (file && found == SIZE_MAX && fgets(line, sizeof line, file)) {
        char *end = line;
        unsigned long long number = strncmp(line, key, length) == 0 ? strtoull(line + length, &end, 10) : 0;
        found = end != line && end != line + length ? (size_t)number : SIZE_MAX; /* "max" is no number */
    }
    if (file)
        fclose(file);
    return found;
}

/* What the control group of this process leaves, or SIZE_MAX where there is no limit. */
static size_t group_available(void) {
    size_t limit = number_in("/sys/fs/cgroup/memory.max", ""), used = number_in("/sys/fs/cgroup/memory.current", "");
    if (limit == SIZE_MAX || used == SIZE_MAX)
        return SIZE_MAX;
    return limit > used ? limit - used : 0;
}

size_t dv_memory_available(void) {
    size_t kilobytes = number_in("/proc/meminfo", "MemAvailable:"), group = group_available();
    size_t bytes = kilobytes == SIZE_MAX ? SIZE_MAX : kilobytes * 1024;
    return group < bytes ? group : bytes;
}

size_t dv_memory_peak(void) {
    size_t kilobytes = number_in("/proc/self/status", "VmHWM:");
    return kilobytes == SIZE_MAX ? 0 : kilobytes * 1024;
}

dv_status dv_arena_map(size_t bytes, void **arena, dv_error *error) {
    size_t available = dv_memory_available();
    if (bytes > available)
        return dv_fail(error, DV_ERROR_MEMORY,
                       "the plan takes %.2f GB and %.2f GB are free: use a smaller batch or a method that keeps less",
                       (double)bytes * 1e-9, (double)available * 1e-9);
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return dv_fail(error, DV_ERROR_MEMORY, "cannot map %.2f GB: %s: use a smaller batch", (double)bytes * 1e-9,
                       strerror(errno));
    (void)madvise(memory, bytes, MADV_HUGEPAGE);
    memset(memory, 0, bytes); /* every page is there before the first step */
    *arena = memory;
    return DV_OK;
}

void dv_arena_unmap(void *arena, size_t bytes) {
    if (arena)
        munmap(arena, bytes);
}
