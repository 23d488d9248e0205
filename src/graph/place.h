/* Placing pieces of memory that live for a while in one arena. */
#ifndef DV_GRAPH_PLACE_H
#define DV_GRAPH_PLACE_H

#include <stdbool.h>
#include <stddef.h>

enum { DV_PLACE_ALIGNMENT = 64 };

/* A piece of memory that is in use from moment `first` to moment `last`, both included. */
typedef struct dv_piece {
    size_t bytes;
    int first, last;
    size_t offset; /* where it was placed */
} dv_piece;

/* The next multiple of the alignment. */
static inline size_t dv_place_aligned(size_t bytes) {
    return (bytes + DV_PLACE_ALIGNMENT - 1) / DV_PLACE_ALIGNMENT * DV_PLACE_ALIGNMENT;
}

/* Gives each piece an offset such that no two that live at one moment overlap, and sets the arena's size.
 * Orders are tried until the arena is next to the most that is alive at one moment, or for a while; always the same
 * ones, so that a plan is always the same. `zone` bytes, a multiple of the alignment, stay
 * free on each side of a piece as long as it lives. False if memory ran out. */
bool dv_place(dv_piece *pieces, size_t count, size_t zone, size_t *arena_bytes);

/* The same, but one behind the other, whenever they live. */
void dv_place_apart(dv_piece *pieces, size_t count, size_t zone, size_t *arena_bytes);

#endif
