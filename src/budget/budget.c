/* The curve of a network: from the least memory to the most, the best choice for each. */
#include "budget/pool.h"

#include "base/status.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

/* How much noise counts beside time in a descent: each finds other choices. */
static const double weights[] = {0.003, 0.03, 0.1, 0.3, 1, 3, 30};

/* Published `division` rounds at random: twice the variance of subtractive dither. */
static const double PUBLISHED = 2;

/* With `prefer noise`, time may be so many times that of `none`. */
static const double MOST_TIME = 1.25;

struct dv_budget {
    dv_pool pool;
    dv_budget_point none, division;
    size_t count;
    dv_budget_point *points; /* the curve */
};

/* ---- all choices ------------------------------------------------------------------------------- */

static void reference_points(dv_budget *b) {
    const dv_pool_choice *none = &b->pool.choices[0], *division = &b->pool.choices[3]; /* dv_pool_add_methods */
    b->none = (dv_budget_point){"none", none->planned, none->noise, none->seconds};
    b->division = (dv_budget_point){"division", division->planned, PUBLISHED * division->noise, division->seconds};
}

/* `none`, but for concatenations, of which the parts are kept. */
static void write_start(const dv_pool *pool, char *letters) {
    const char *none = strchr(pool->choices[0].method, ':') + 1;
    memcpy(letters, none, pool->sites.count);
    for (size_t i = 0; i < pool->sites.count; i++)
        if (pool->sites.at[i].read && pool->sites.at[i].join)
            letters[i] = DV_RECOMPUTED;
}

static dv_status descend_all(dv_budget *b, dv_error *error) {
    char *letters = calloc(b->pool.sites.count + 1, 1);
    dv_status status = letters ? DV_OK : dv_fail(error, DV_ERROR_MEMORY, "budget: no memory");
    if (letters)
        write_start(&b->pool, letters);
    double unit = b->division.noise > 0 ? b->division.noise : 1;
    for (size_t i = 0; status == DV_OK && i < sizeof weights / sizeof *weights; i++)
        status = dv_pool_descend(&b->pool, letters, weights[i], unit, error);
    free(letters);
    return status;
}

/* ---- the curve --------------------------------------------------------------------------------- */

static int by_bytes(const void *a, const void *b) {
    const dv_pool_choice *first = a, *second = b;
    if (first->planned != second->planned)
        return first->planned < second->planned ? -1 : 1;
    return (first->seconds > second->seconds) - (first->seconds < second->seconds);
}

/* What a choice is measured by, and whether it is within the limits. */
typedef struct judge {
    dv_prefer prefer;
    double noise, seconds; /* the most */
} judge;

static bool is_allowed(const judge *j, const dv_pool_choice *c) {
    return c->noise <= j->noise && c->seconds <= j->seconds;
}

static bool is_better(const judge *j, const dv_pool_choice *c, const dv_budget_point *than) {
    double first = j->prefer == DV_PREFER_NOISE ? c->noise : c->seconds;
    double other = j->prefer == DV_PREFER_NOISE ? than->noise : than->seconds;
    double first_next = j->prefer == DV_PREFER_NOISE ? c->seconds : c->noise;
    double other_next = j->prefer == DV_PREFER_NOISE ? than->seconds : than->noise;
    return first < other || (!(first > other) && first_next < other_next);
}

static dv_status draw_curve(dv_budget *b, const judge *j, dv_error *error) {
    dv_pool *pool = &b->pool;
    qsort(pool->choices, pool->count, sizeof *pool->choices, by_bytes);
    b->points = calloc(pool->count, sizeof *b->points);
    if (!b->points)
        return dv_fail(error, DV_ERROR_MEMORY, "budget: no memory");
    for (size_t i = 0; i < pool->count; i++) {
        const dv_pool_choice *c = &pool->choices[i];
        if (is_allowed(j, c) && (b->count == 0 || is_better(j, c, &b->points[b->count - 1])))
            b->points[b->count++] = (dv_budget_point){c->method, c->planned, c->noise, c->seconds};
    }
    if (b->count == 0)
        return dv_fail(error, DV_ERROR_OPTION, "budget: no way to keep values has so little noise: allow more");
    return DV_OK;
}

static judge judge_of(const dv_budget *b, const dv_budget_limits *limits) {
    double noise = limits->noise < 0 ? b->division.noise : limits->noise;
    bool prefers_noise = limits->prefer == DV_PREFER_NOISE;
    return (judge){.prefer = limits->prefer,
                   .noise = prefers_noise && limits->noise < 0 ? DBL_MAX : noise,
                   .seconds = prefers_noise ? MOST_TIME * b->none.seconds : DBL_MAX};
}

static dv_status make(dv_budget *b, const dv_budget_limits *limits, dv_error *error) {
    DV_TRY(dv_pool_begin(&b->pool, error));
    if (b->pool.sites.count != b->pool.profile->value_count)
        return dv_fail(error, DV_ERROR_ARGUMENT, "budget: the profile is of another network, with %zu values, not %zu",
                       b->pool.profile->value_count, b->pool.sites.count);
    DV_TRY(dv_pool_add_methods(&b->pool, error));
    reference_points(b);
    DV_TRY(descend_all(b, error));
    judge j = judge_of(b, limits);
    return draw_curve(b, &j, error);
}

/* ---- what callers have ------------------------------------------------------------------------- */

dv_status dv_budget_new(dv_graph *graph, const dv_plan_options *options, const dv_profile *profile,
                        const dv_budget_limits *limits, dv_budget **budget, dv_error *error) {
    DV_NEED(graph);
    DV_NEED(options);
    DV_NEED(profile);
    DV_NEED(limits);
    DV_NEED(budget);
    dv_budget *made = calloc(1, sizeof *made);
    if (!made)
        return dv_fail(error, DV_ERROR_MEMORY, "budget: no memory");
    made->pool = (dv_pool){.graph = graph, .options = options, .profile = profile, .spill = limits->spill != 0};
    dv_status status = make(made, limits, error);
    if (status == DV_OK)
        *budget = made;
    else
        dv_budget_free(made);
    return status;
}

void dv_budget_free(dv_budget *budget) {
    if (!budget)
        return;
    dv_pool_end(&budget->pool);
    free(budget->points);
    free(budget);
}

const dv_budget_point *dv_budget_point_at(const dv_budget *budget, size_t index) {
    return budget && index < budget->count ? &budget->points[index] : NULL;
}

const dv_budget_point *dv_budget_choose(const dv_budget *budget, size_t bytes) {
    const dv_budget_point *best = NULL;
    for (size_t i = 0; budget && i < budget->count && budget->points[i].planned <= bytes; i++)
        best = &budget->points[i];
    return best;
}

const dv_budget_point *dv_budget_none(const dv_budget *budget) {
    return budget ? &budget->none : NULL;
}

const dv_budget_point *dv_budget_division(const dv_budget *budget) {
    return budget ? &budget->division : NULL;
}
