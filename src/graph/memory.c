/* Mapping the arena, and what the system says about memory. */
#include "graph/memory.h"

#include "base/status.h"
#include "base/system_memory.h"

#include <division/graph.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

size_t dv_memory_available(void) {
    return dv_system_memory_available("");
}

size_t dv_memory_peak(void) {
    return dv_system_memory_peak("");
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
