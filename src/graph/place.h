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

/* Gives each piece an offset such that no two that live at one moment overlap, and sets the arena's size.
 * The largest go first, each into the tightest gap that it fits in. False if memory ran out. */
bool dv_place(dv_piece *pieces, size_t count, size_t *arena_bytes);

#endif
