/* Polishing: the choices next to one that is on the curve.
 *
 * A descent never goes back on a move. Here one value of a choice, or two at once, get another way, wherever that is
 * predicted to be better by the measure of the curve: changes that keep no more bytes first, then those that cost the
 * fewest bytes for what they gain. Each is planned and added; those that are better are on the next curve. In a network
 * of few values all such changes are tried, in a large one the most promising. */
#include "base/sizes.h"
#include "base/status.h"
#include "budget/pool.h"

#include <stdlib.h>
#include <string.h>

/* How much is tried, by the number of values: all of few, some of many. */
enum { TRIED = 2000, LEAST_TRIED = 4, PARTNERS = 1000, LEAST_PARTNERS = 12 };

typedef struct change {
    size_t index[2]; /* the same twice where one value changes */
    char letter[2];
    double gain; /* by which the measure falls */
    double more; /* bytes that are kept more */
    bool allowed;
} change;

typedef struct polishing {
    dv_pool *pool;
    const dv_judge *judge;
    char *letters;
    double before; /* the measure of `letters` */
    change *singles, *pairs;
    size_t single_count, pair_count, partners;
} polishing;

/* ---- what changes come to ---------------------------------------------------------------------- */

static double kept(const dv_pool *pool, size_t index, char letter) {
    const dv_candidate *candidate = dv_candidate_of(letter);
    return (double)pool->kept_bytes[index * DV_PROFILE_MOST_CANDIDATES + (size_t)(candidate - dv_candidate_at(0))];
}

static dv_pool_choice predict(const polishing *p) {
    const dv_pool *pool = p->pool;
    return (dv_pool_choice){
        .noise = dv_predict_noise(pool->profile, &pool->sites, p->letters),
        .seconds =
            dv_pool_none_seconds(pool) + dv_predict_more_seconds(pool->profile, &pool->sites, p->letters, pool->loads),
    };
}

/* Exchanges the letters of a change with those that are there: twice is as it was. */
static void exchange(polishing *p, change *c) {
    size_t count = c->index[0] == c->index[1] ? 1 : 2;
    for (size_t i = 0; i < count; i++) {
        char there = p->letters[c->index[i]];
        p->letters[c->index[i]] = c->letter[i];
        c->letter[i] = there;
    }
}

/* What a change gains, and whether it may be. */
static void weigh(polishing *p, change *c) {
    exchange(p, c);
    dv_pool_choice found = predict(p);
    exchange(p, c);
    c->gain = p->before - dv_judge_measure(p->judge, &found);
    c->allowed = dv_judge_allows(p->judge, &found);
}

/* ---- lists of changes -------------------------------------------------------------------------- */

/* Which of two comes first: changes that gain before others; of those, the ones that keep no more, then by the gain for
 * a byte. Of changes that lose, the ones that lose least for a byte that they give back. */
static double rank(const change *c) {
    static const double FREE = 1e30;
    if (c->gain > 0)
        return c->more > 0 ? c->gain / c->more : FREE + c->gain;
    return c->more < 0 ? -c->gain / c->more : -FREE + c->gain;
}

static int by_rank(const void *a, const void *b) {
    const change *x = a, *y = b;
    double first = rank(x), second = rank(y);
    if (first < second || first > second)
        return first > second ? -1 : 1;
    for (int i = 0; i < 2; i++)
        if (x->index[i] != y->index[i])
            return x->index[i] < y->index[i] ? -1 : 1;
    return x->letter[0] != y->letter[0] ? x->letter[0] - y->letter[0] : x->letter[1] - y->letter[1];
}

/* All changes of one value, better or not. */
static void list_singles(polishing *p) {
    const dv_pool *pool = p->pool;
    for (size_t i = 0; i < pool->sites.count; i++)
        for (size_t c = 0; pool->sites.at[i].read && dv_candidate_at(c); c++) {
            char letter = dv_candidate_at(c)->letter;
            if (letter == p->letters[i] || !pool->can[i * DV_PROFILE_MOST_CANDIDATES + c])
                continue;
            change tried = {{i, i}, {letter, letter}, .more = kept(pool, i, letter) - kept(pool, i, p->letters[i])};
            weigh(p, &tried);
            p->singles[p->single_count++] = tried;
        }
    qsort(p->singles, p->single_count, sizeof *p->singles, by_rank);
}

static void add_pair(polishing *p, const change *up, const change *down) {
    change both = {{up->index[0], down->index[0]}, {up->letter[0], down->letter[0]}, .more = up->more + down->more};
    if (up->index[0] == down->index[0])
        return;
    weigh(p, &both);
    if (both.allowed && both.gain > 0)
        p->pairs[p->pair_count++] = both;
}

/* The best changes that gain, each with the best that lose. */
static void list_pairs(polishing *p) {
    size_t gaining = 0;
    while (gaining < p->single_count && p->singles[gaining].gain > 0)
        gaining++;
    size_t ups = dv_smaller(gaining, p->partners), downs = dv_smaller(p->single_count - gaining, p->partners);
    for (size_t a = 0; a < ups; a++)
        for (size_t b = 0; b < downs; b++)
            add_pair(p, &p->singles[a], &p->singles[gaining + b]);
    qsort(p->pairs, p->pair_count, sizeof *p->pairs, by_rank);
}

/* ---- trying them ------------------------------------------------------------------------------- */

static bool is_known(const dv_pool *pool, const char *letters) {
    for (size_t i = 0; i < pool->count; i++)
        if (strcmp(strchr(pool->choices[i].method, ':') + 1, letters) == 0)
            return true;
    return false;
}

static dv_status try_change(polishing *p, change *c, size_t *tried, dv_error *error) {
    dv_status status = DV_OK;
    exchange(p, c);
    if (!is_known(p->pool, p->letters)) {
        status = dv_pool_add(p->pool, p->letters, NULL, error);
        ++*tried;
    }
    exchange(p, c);
    return status;
}

static dv_status try_all(polishing *p, change *changes, size_t count, dv_error *error) {
    size_t most = LEAST_TRIED + TRIED / p->pool->sites.count, tried = 0;
    for (size_t i = 0; i < count && tried < most; i++)
        if (changes[i].allowed && changes[i].gain > 0)
            DV_TRY(try_change(p, &changes[i], &tried, error));
    return DV_OK;
}

static dv_status polish(polishing *p, dv_error *error) {
    dv_pool_choice now = predict(p);
    p->before = dv_judge_measure(p->judge, &now);
    list_singles(p);
    list_pairs(p);
    DV_TRY(try_all(p, p->singles, p->single_count, error));
    return try_all(p, p->pairs, p->pair_count, error);
}

dv_status dv_pool_polish(dv_pool *pool, const dv_judge *judge, const char *letters, dv_error *error) {
    size_t count = pool->sites.count;
    polishing p = {.pool = pool, .judge = judge, .partners = LEAST_PARTNERS + PARTNERS / count};
    if (strchr(letters, DV_REPLAYED))
        return DV_OK; /* what a segment reads must stay exact */
    p.letters = calloc(count + 1, 1);
    p.singles = calloc(count * DV_PROFILE_MOST_CANDIDATES, sizeof *p.singles);
    p.pairs = calloc(p.partners * p.partners, sizeof *p.pairs);
    dv_status status = p.letters && p.singles && p.pairs ? DV_OK : dv_fail(error, DV_ERROR_MEMORY, "budget: no memory");
    if (status == DV_OK) {
        memcpy(p.letters, letters, count);
        status = polish(&p, error);
    }
    free(p.letters);
    free(p.singles);
    free(p.pairs);
    return status;
}
