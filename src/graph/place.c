/* Best fit, largest first: simple, and within a few percent of the lower bound (the most crowded moment) on
 * the networks here. */
#include "graph/place.h"

#include <stdint.h>
#include <stdlib.h>

/* Larger first; among equals the longer-lived, then the earlier, so that the order is always the same. */
static int by_size(const void *a, const void *b) {
    const dv_piece *x = *(dv_piece *const *)a, *y = *(dv_piece *const *)b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    int x_life = x->last - x->first, y_life = y->last - y->first;
    if (x_life != y_life)
        return x_life < y_life ? 1 : -1;
    return x < y ? -1 : x > y;
}

static int by_offset(const void *a, const void *b) {
    const dv_piece *x = *(dv_piece *const *)a, *y = *(dv_piece *const *)b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

/* What a piece takes: a zone, its bytes, a zone. */
static size_t taken(const dv_piece *piece, size_t zone) {
    return zone + dv_place_aligned(piece->bytes) + zone;
}

/* The offset for `piece` among `count` neighbours that live at the same time, sorted by offset. */
static size_t tightest_gap(const dv_piece *piece, size_t zone, dv_piece *const *neighbours, size_t count) {
    size_t best = SIZE_MAX, best_gap = SIZE_MAX, end = 0;
    for (size_t i = 0; i < count; i++) {
        size_t start = neighbours[i]->offset - zone;
        if (start > end && start - end >= taken(piece, zone) && start - end < best_gap) {
            best = end;
            best_gap = start - end;
        }
        size_t after = start + taken(neighbours[i], zone);
        end = after > end ? after : end;
    }
    return zone + (best == SIZE_MAX ? end : best);
}

bool dv_place(dv_piece *pieces, size_t count, size_t zone, size_t *arena_bytes) {
    dv_piece **order = malloc((count + 1) * sizeof *order), **neighbours = malloc((count + 1) * sizeof *neighbours);
    *arena_bytes = 0;
    for (size_t i = 0; order && i < count; i++)
        order[i] = &pieces[i];
    if (order)
        qsort(order, count, sizeof *order, by_size);
    for (size_t i = 0; order && neighbours && i < count; i++) {
        size_t found = 0;
        for (size_t j = 0; j < i; j++)
            if (order[j]->first <= order[i]->last && order[i]->first <= order[j]->last)
                neighbours[found++] = order[j];
        qsort(neighbours, found, sizeof *neighbours, by_offset);
        order[i]->offset = tightest_gap(order[i], zone, neighbours, found);
        size_t end = order[i]->offset - zone + taken(order[i], zone);
        *arena_bytes = end > *arena_bytes ? end : *arena_bytes;
    }
    bool placed = order && neighbours;
    free(order);
    free(neighbours);
    return placed;
}

void dv_place_apart(dv_piece *pieces, size_t count, size_t zone, size_t *arena_bytes) {
    *arena_bytes = 0;
    for (size_t i = 0; i < count; i++) {
        pieces[i].offset = *arena_bytes + zone;
        *arena_bytes += taken(&pieces[i], zone);
    }
}
