/* Going down: from a choice that keeps much to one that keeps little.
 *
 * A move gives one value another way. What it costs is predicted seconds and noise; what it gains are bytes where the
 * step is most crowded, at the operations that have almost as many alive as the most crowded one: a value that is gone
 * by then gains next to nothing. The cheapest moves are made a few at a time, and the exact plan tells where it is
 * crowded next. */
#include "budget/pool.h"

#include "base/status.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 50, PARTS = 24 };

static const double CROWDED = 0.97;   /* of the most crowded operation */
static const double ELSEWHERE = 0.02; /* what a byte counts that is alive at none of them */

typedef struct move {
    size_t index;
    char letter;
    double price; /* cost by gain */
} move;

typedef struct descent {
    dv_pool *pool;
    double weight, noise_unit;
    char *letters, *tried;
    dv_loads *loads; /* [sites.count], with `letters` */
    double now;      /* what `letters` cost */
    move *moves;     /* [sites.count]: the best of each value */
    size_t move_count;
    bool *crowded; /* [operations], of the last plan */
    size_t crowded_count;
} descent;

/* ---- where it is crowded ----------------------------------------------------------------------- */

static void find_crowded(descent *d, const dv_plan *plan) {
    size_t most = 0;
    for (size_t i = 0; i < plan->operation_count; i++)
        most = plan->told[i].operation.alive_bytes > most ? plan->told[i].operation.alive_bytes : most;
    d->crowded_count = 0;
    for (size_t i = 0; i < plan->operation_count; i++) {
        d->crowded[i] = (double)plan->told[i].operation.alive_bytes >= CROWDED * (double)most;
        d->crowded_count += d->crowded[i];
    }
}

/* The part of the crowded operations at which a value is there. */
static double presence(const descent *d, const dv_plan *plan, size_t index) {
    const dv_value_plan *v = &plan->values[dv_value_of_letter(plan->graph, index)];
    int held = v->keeper == &dv_keep_packed || v->keeper == &dv_keep_lean ? v->packed : v->data;
    size_t there = 0;
    if (held == DV_NO_PIECE)
        return 0;
    for (int i = plan->pieces[held].first; i <= plan->pieces[held].last; i++)
        there += d->crowded[i];
    return (double)there / (double)d->crowded_count;
}

/* ---- moves ------------------------------------------------------------------------------------- */

static double cost(const descent *d, double seconds, double noise) {
    return seconds / dv_pool_none_seconds(d->pool) + d->weight * noise / d->noise_unit;
}

static double cost_of(const descent *d, const char *letters, dv_loads *loads) {
    const dv_pool *pool = d->pool;
    return cost(d, dv_predict_more_seconds(pool->profile, &pool->sites, letters, loads),
                dv_predict_noise(pool->profile, &pool->sites, letters));
}

/* What another letter of a value costs more; it is in `tried`. If nothing becomes or was recomputed by it, no other
 * value costs more or less. */
static double more_cost(const descent *d, size_t index) {
    const dv_pool *pool = d->pool;
    char before = d->letters[index], after = d->tried[index];
    int i = (int)index;
    dv_loads loads = d->loads[index];
    if (before == DV_RECOMPUTED || after == DV_RECOMPUTED)
        return cost_of(d, d->tried, pool->loads) - d->now;
    return cost(d,
                dv_predict_value_seconds(pool->profile, &pool->sites, i, after, loads) -
                    dv_predict_value_seconds(pool->profile, &pool->sites, i, before, loads),
                dv_predict_value_noise(pool->profile, &pool->sites, d->tried, i) -
                    dv_predict_value_noise(pool->profile, &pool->sites, d->letters, i));
}

static size_t kept(const dv_pool *pool, size_t index, char letter) {
    const dv_candidate *candidate = dv_candidate_of(letter);
    return pool->kept_bytes[index * DV_PROFILE_MOST_CANDIDATES + (size_t)(candidate - dv_candidate_at(0))];
}

/* The best move of one value, if it has one. */
static void find_move(descent *d, const dv_plan *plan, size_t index) {
    const dv_pool *pool = d->pool;
    char letter = d->letters[index];
    double weight = ELSEWHERE + presence(d, plan, index);
    move best = {index, letter, DBL_MAX};
    for (size_t c = 0; dv_candidate_at(c); c++) {
        const dv_candidate *candidate = dv_candidate_at(c);
        size_t before = kept(pool, index, letter), after = kept(pool, index, candidate->letter);
        if (after >= before || !pool->can[index * DV_PROFILE_MOST_CANDIDATES + c])
            continue;
        d->tried[index] = candidate->letter;
        double price = more_cost(d, index) / (weight * (double)(before - after));
        best = price < best.price ? (move){index, candidate->letter, price} : best;
    }
    d->tried[index] = letter;
    if (best.letter != letter)
        d->moves[d->move_count++] = best;
}

static int by_price(const void *a, const void *b) {
    const move *first = a, *second = b;
    return (first->price > second->price) - (first->price < second->price);
}

/* Makes the best moves; false if there is none. */
static bool go_on(descent *d, const dv_plan *plan) {
    size_t parts = d->pool->sites.count / PARTS + 1;
    d->now = cost_of(d, d->letters, d->loads);
    find_crowded(d, plan);
    memcpy(d->tried, d->letters, d->pool->sites.count + 1);
    d->move_count = 0;
    for (size_t i = 0; i < d->pool->sites.count; i++)
        if (d->pool->sites.at[i].read && d->letters[i] != DV_REPLAYED)
            find_move(d, plan, i);
    qsort(d->moves, d->move_count, sizeof *d->moves, by_price);
    for (size_t i = 0; i < d->move_count && i < parts; i++)
        d->letters[d->moves[i].index] = d->moves[i].letter;
    return d->move_count > 0;
}

static dv_status descend(descent *d, dv_error *error) {
    bool more = true;
    for (int round = 0; round < ROUNDS && more; round++) {
        dv_plan *plan;
        DV_TRY(dv_pool_add(d->pool, d->letters, &plan, error));
        more = go_on(d, plan);
        dv_plan_free(plan);
    }
    return DV_OK;
}

dv_status dv_pool_descend(dv_pool *pool, const char *from, double weight, double noise_unit, dv_error *error) {
    size_t count = pool->sites.count, operations = 5 * count + 3 * pool->graph->value_count + 1;
    descent d = {.pool = pool, .weight = weight, .noise_unit = noise_unit};
    d.letters = calloc(count + 1, 1);
    d.tried = calloc(count + 1, 1);
    d.moves = calloc(count, sizeof *d.moves);
    d.loads = calloc(count, sizeof *d.loads);
    d.crowded = calloc(operations, sizeof *d.crowded);
    dv_status status = d.letters && d.tried && d.moves && d.loads && d.crowded
                           ? DV_OK
                           : dv_fail(error, DV_ERROR_MEMORY, "budget: no memory");
    if (status == DV_OK) {
        memcpy(d.letters, from, count);
        status = descend(&d, error);
    }
    free(d.letters);
    free(d.tried);
    free(d.moves);
    free(d.loads);
    free(d.crowded);
    return status;
}
