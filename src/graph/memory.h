/* The arena: one mapping for everything a run touches. */
#ifndef DV_GRAPH_MEMORY_H
#define DV_GRAPH_MEMORY_H

#include <division/status.h>
#include <stddef.h>

/* Maps `bytes` of zeroed memory, all pages present, in large pages where the system has them. */
dv_status dv_arena_map(size_t bytes, void **arena, dv_error *error);
void dv_arena_unmap(void *arena, size_t bytes);

#endif
