/* Choices of a whole network, each with its exact plan and what is predicted of it. The best of them for a budget is
 * the best of all that fit, so that more memory is never worse. */
#ifndef DV_BUDGET_POOL_H
#define DV_BUDGET_POOL_H

#include "budget/profile.h"

typedef struct dv_pool_choice {
    char *method; /* "mixed:" and letters; owned */
    size_t planned;
    double noise, seconds;
    bool polished;
} dv_pool_choice;

/* What a choice is measured by, the less the better, and whether it is within the limits. */
typedef struct dv_judge {
    dv_prefer prefer;
    double noise, seconds; /* the most */
} dv_judge;

static inline double dv_judge_measure(const dv_judge *judge, const dv_pool_choice *choice) {
    return judge->prefer == DV_PREFER_NOISE ? choice->noise : choice->seconds;
}

static inline bool dv_judge_allows(const dv_judge *judge, const dv_pool_choice *choice) {
    return choice->noise <= judge->noise && choice->seconds <= judge->seconds;
}

typedef struct dv_pool {
    dv_graph *graph;
    const dv_plan_options *options;
    const dv_profile *profile;
    bool spill;
    dv_sites sites;
    dv_loads *loads;    /* workspace [sites.count] */
    size_t *kept_bytes; /* [sites.count][DV_PROFILE_MOST_CANDIDATES]: what a candidate keeps of a value */
    bool *can;          /* the same: whether it can, on a way without replays */
    size_t count, capacity;
    dv_pool_choice *choices;
} dv_pool;

dv_status dv_pool_begin(dv_pool *pool, dv_error *error);
void dv_pool_end(dv_pool *pool);

/* What a step of this pool's graph takes with `none`, and with letters of a plan. */
double dv_pool_none_seconds(const dv_pool *pool);

/* Plans letters and adds them. The plan goes to *plan, which the caller frees, unless NULL. */
dv_status dv_pool_add(dv_pool *pool, const char *letters, dv_plan **plan, dv_error *error);

/* descent.c: from a choice that keeps much to one that keeps little, move by move: always those that cost least, in
 * time and `weight` of noise, for the bytes that they save where the step is most crowded. All on the way are added. */
dv_status dv_pool_descend(dv_pool *pool, const char *from, double weight, double noise_unit, dv_error *error);

/* polish.c: adds the choices next to one, where they are predicted to be better. */
dv_status dv_pool_polish(dv_pool *pool, const dv_judge *judge, const char *letters, dv_error *error);

/* bases.c: the choices of other methods: `none`, `checkpoint`, `division` and `lean` of each width. */
dv_status dv_pool_add_methods(dv_pool *pool, dv_error *error);

/* The letters of what a method does -> letters [sites.count + 1]; packed values get `packed`. */
dv_status dv_letters_of_method(const dv_pool *pool, const char *method, char packed, char *letters, dv_error *error);

#endif
