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

/* How much is polished, by the number of values: all points of the curve of a small network. */
enum { POINTS = 1000, LEAST_POINTS = 8, TRIED = 20000, LEAST_TRIED = 60 };

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

static bool is_better(const dv_judge *j, const dv_pool_choice *c, const dv_pool_choice *than) {
    const dv_judge other = {.prefer = j->prefer == DV_PREFER_NOISE ? DV_PREFER_TIME : DV_PREFER_NOISE};
    double first = dv_judge_measure(j, c), second = dv_judge_measure(j, than);
    return first < second || (!(first > second) && dv_judge_measure(&other, c) < dv_judge_measure(&other, than));
}

/* Sorts the choices and lists those of the curve -> curve [pool.count], by their place; one for so many bytes. */
static size_t list_curve(dv_pool *pool, const dv_judge *j, size_t *curve) {
    size_t count = 0;
    qsort(pool->choices, pool->count, sizeof *pool->choices, by_bytes);
    for (size_t i = 0; i < pool->count; i++) {
        const dv_pool_choice *c = &pool->choices[i];
        const dv_pool_choice *last = count > 0 ? &pool->choices[curve[count - 1]] : NULL;
        if (!dv_judge_allows(j, c) || (last && !is_better(j, c, last)))
            continue;
        count -= last && last->planned == c->planned;
        curve[count++] = i;
    }
    return count;
}

static dv_status draw_curve(dv_budget *b, const dv_judge *j, dv_error *error) {
    size_t *curve = calloc(b->pool.count, sizeof *curve);
    if (curve)
        b->count = list_curve(&b->pool, j, curve);
    b->points = curve ? calloc(b->count + 1, sizeof *b->points) : NULL;
    for (size_t i = 0; b->points && i < b->count; i++) {
        const dv_pool_choice *c = &b->pool.choices[curve[i]];
        b->points[i] = (dv_budget_point){c->method, c->planned, c->noise, c->seconds};
    }
    free(curve);
    if (!b->points)
        return dv_fail(error, DV_ERROR_MEMORY, "budget: no memory");
    if (b->count == 0)
        return dv_fail(error, DV_ERROR_OPTION, "budget: no way to keep values has so little noise: allow more");
    return DV_OK;
}

/* ---- polishing --------------------------------------------------------------------------------- */

/* Polishes points of the curve that have not been, at equal distances where there are too many, up to `most` choices;
 * *found of them. */
static dv_status polish_curve(dv_budget *b, const dv_judge *j, size_t most, size_t *curve, size_t *found,
                              dv_error *error) {
    dv_pool *pool = &b->pool;
    size_t count = list_curve(pool, j, curve), stride = count / (LEAST_POINTS + POINTS / pool->sites.count) + 1;
    *found = 0;
    for (size_t i = 0; i < count && pool->count < most; i += stride) {
        if (pool->choices[curve[i]].polished)
            continue;
        pool->choices[curve[i]].polished = true;
        ++*found;
        DV_TRY(dv_pool_polish(pool, j, strchr(pool->choices[curve[i]].method, ':') + 1, error));
    }
    return DV_OK;
}

/* Until nothing is left to do, or enough has been tried. */
static dv_status polish(dv_budget *b, const dv_judge *j, dv_error *error) {
    size_t most = b->pool.count + LEAST_TRIED + TRIED / b->pool.sites.count, found = 1;
    dv_status status = DV_OK;
    while (status == DV_OK && found > 0 && b->pool.count < most) {
        size_t *curve = calloc(b->pool.count, sizeof *curve);
        status = curve ? polish_curve(b, j, most, curve, &found, error)
                       : dv_fail(error, DV_ERROR_MEMORY, "budget: no memory");
        free(curve);
    }
    return status;
}

static dv_judge judge_of(const dv_budget *b, const dv_budget_limits *limits) {
    double noise = limits->noise < 0 ? b->division.noise : limits->noise;
    bool prefers_noise = limits->prefer == DV_PREFER_NOISE;
    return (dv_judge){.prefer = limits->prefer,
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
    dv_judge j = judge_of(b, limits);
    DV_TRY(polish(b, &j, error));
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
