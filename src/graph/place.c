/* Lowest fit, again and again, until the arena is next to the lower bound: the most that is alive at one moment.
 *
 *     always there    first, one behind the other: with nothing between them, nothing is lost
 *     the others      one after the other, each as low as those before it let it lie. The order decides: by size and by
 *                     life, in turn. What stuck out above the bound goes to the front of its order, and all is placed
 *                     again
 *
 * The networks here come to the bound itself, or within a thousandth of it. */
#include "graph/place.h"

#include "base/sizes.h"

#include <stdint.h>
#include <stdlib.h>

/* Rounds: as many as there is work for, of a square of the pieces each. Near enough: a part of the bound. */
enum { ORDERS = 2, MOST_ROUNDS = 24, LEAST_ROUNDS = 4, WORK = 5000000, NEAR = 1024 };

typedef struct item {
    dv_piece *piece;
    size_t bytes;         /* with its zones */
    size_t at;            /* in this round, zone included */
    int promoted[ORDERS]; /* how often it has stuck out */
} item;

/* All that is placed, in memory of its own. */
typedef struct placing {
    size_t count;
    item *items;          /* those that are not always there */
    item **order[ORDERS]; /* [count] */
    item **placed;        /* [count]: by their place */
    size_t *best;         /* [count]: places of the best round */
    size_t permanent;     /* bytes of those that are always there */
    int begin, end;       /* the first moment, and the last */
} placing;

/* What a piece takes: a zone, its bytes, a zone. */
static size_t taken(const dv_piece *piece, size_t zone) {
    return zone + dv_place_aligned(piece->bytes) + zone;
}

/* ---- orders ---------------------------------------------------------------------------------- */

static int life(const item *i) {
    return i->piece->last - i->piece->first;
}

/* Larger first; among equals the longer-lived, then the earlier, so that the order is always the same. */
static int by_size(const void *a, const void *b) {
    const item *x = *(item *const *)a, *y = *(item *const *)b;
    if (x->promoted[0] != y->promoted[0])
        return x->promoted[0] < y->promoted[0] ? 1 : -1;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    if (life(x) != life(y))
        return life(x) < life(y) ? 1 : -1;
    return x < y ? -1 : x > y;
}

/* Longer-lived first; among equals the larger, then the earlier. */
static int by_life(const void *a, const void *b) {
    const item *x = *(item *const *)a, *y = *(item *const *)b;
    if (x->promoted[1] != y->promoted[1])
        return x->promoted[1] < y->promoted[1] ? 1 : -1;
    if (life(x) != life(y))
        return life(x) < life(y) ? 1 : -1;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return x < y ? -1 : x > y;
}

static int (*const orders[ORDERS])(const void *, const void *) = {by_size, by_life};

/* ---- a round --------------------------------------------------------------------------------- */

static bool live_together(const dv_piece *a, const dv_piece *b) {
    return a->first <= b->last && b->first <= a->last;
}

/* The lowest place for an item among `count` that are sorted by their places. */
static size_t lowest(const item *i, item *const *placed, size_t count) {
    size_t end = 0;
    for (size_t k = 0; k < count; k++) {
        if (!live_together(i->piece, placed[k]->piece))
            continue;
        if (placed[k]->at >= end + i->bytes)
            return end;
        end = dv_larger(end, placed[k]->at + placed[k]->bytes);
    }
    return end;
}

static void insert(item **placed, size_t count, item *i) {
    while (count > 0 && placed[count - 1]->at > i->at) {
        placed[count] = placed[count - 1];
        count--;
    }
    placed[count] = i;
}

/* Places all in one order. Returns the bytes that they take. */
static size_t place_round(const placing *p, int order) {
    size_t bytes = 0;
    qsort(p->order[order], p->count, sizeof *p->order[order], orders[order]);
    for (size_t k = 0; k < p->count; k++) {
        item *i = p->order[order][k];
        i->at = lowest(i, p->placed, k);
        insert(p->placed, k, i);
        bytes = dv_larger(bytes, i->at + i->bytes);
    }
    return bytes;
}

static void promote(const placing *p, int order, size_t bound) {
    for (size_t k = 0; k < p->count; k++)
        p->items[k].promoted[order] += p->items[k].at + p->items[k].bytes > bound;
}

/* Rounds until they are next to the bound. Returns the bytes of the best. */
static size_t place_rounds(const placing *p, size_t bound) {
    size_t work = p->count * p->count + 1, rounds = dv_smaller(dv_larger(WORK / work, LEAST_ROUNDS), MOST_ROUNDS);
    size_t least = SIZE_MAX;
    for (size_t r = 0; r < rounds && (r == 0 || least > bound + bound / NEAR); r++) {
        int order = (int)(r % ORDERS);
        size_t bytes = place_round(p, order);
        for (size_t k = 0; bytes < least && k < p->count; k++)
            p->best[k] = p->items[k].at;
        least = dv_smaller(least, bytes);
        promote(p, order, bound);
    }
    return least;
}

/* ---- all ------------------------------------------------------------------------------------- */

/* The most bytes that are alive at one moment, without what always is: no arena can be smaller. SIZE_MAX if there is no
 * memory for it. */
static size_t find_bound(const placing *p) {
    size_t moments = (size_t)(p->end - p->begin) + 1, alive = 0, most = 0;
    size_t(*changes)[2] = calloc(moments + 1, sizeof *changes); /* what comes at a moment, and what has gone by then */
    if (!changes)
        return SIZE_MAX;
    for (size_t k = 0; k < p->count; k++) {
        changes[p->items[k].piece->first - p->begin][0] += p->items[k].bytes;
        changes[p->items[k].piece->last - p->begin + 1][1] += p->items[k].bytes;
    }
    for (size_t m = 0; m < moments; m++) {
        alive = alive + changes[m][0] - changes[m][1];
        most = dv_larger(most, alive);
    }
    free(changes);
    return most;
}

static void find_moments(placing *p, const dv_piece *pieces, size_t count) {
    for (size_t i = 0; i < count; i++) {
        p->begin = i == 0 || pieces[i].first < p->begin ? pieces[i].first : p->begin;
        p->end = i == 0 || pieces[i].last > p->end ? pieces[i].last : p->end;
    }
}

/* Places what is always there, and lists the others. */
static void begin(placing *p, dv_piece *pieces, size_t count, size_t zone) {
    find_moments(p, pieces, count);
    for (size_t i = 0; i < count; i++)
        if (pieces[i].first == p->begin && pieces[i].last == p->end) {
            pieces[i].offset = p->permanent + zone;
            p->permanent += taken(&pieces[i], zone);
        } else {
            p->items[p->count] = (item){.piece = &pieces[i], .bytes = taken(&pieces[i], zone)};
            for (int o = 0; o < ORDERS; o++)
                p->order[o][p->count] = &p->items[p->count];
            p->count++;
        }
}

static bool allocate(placing *p, size_t count) {
    bool made = true;
    p->items = calloc(count + 1, sizeof *p->items);
    p->placed = calloc(count + 1, sizeof(item *));
    p->best = calloc(count + 1, sizeof *p->best);
    for (int o = 0; o < ORDERS; o++) {
        p->order[o] = calloc(count + 1, sizeof(item *));
        made = made && p->order[o];
    }
    return made && p->items && p->placed && p->best;
}

static void end(placing *p) {
    free(p->items);
    free((void *)p->placed);
    free(p->best);
    for (int o = 0; o < ORDERS; o++)
        free((void *)p->order[o]);
}

bool dv_place(dv_piece *pieces, size_t count, size_t zone, size_t *arena_bytes) {
    placing p = {0};
    bool placed = allocate(&p, count);
    *arena_bytes = 0;
    if (placed) {
        begin(&p, pieces, count, zone);
        size_t bound = find_bound(&p);
        placed = bound != SIZE_MAX;
        *arena_bytes = p.permanent + (placed ? place_rounds(&p, bound) : 0);
        for (size_t k = 0; k < p.count; k++)
            p.items[k].piece->offset = p.permanent + p.best[k] + zone;
    }
    end(&p);
    return placed;
}

void dv_place_apart(dv_piece *pieces, size_t count, size_t zone, size_t *arena_bytes) {
    *arena_bytes = 0;
    for (size_t i = 0; i < count; i++) {
        pieces[i].offset = *arena_bytes + zone;
        *arena_bytes += taken(&pieces[i], zone);
    }
}
