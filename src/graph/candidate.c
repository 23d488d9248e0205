/* The table of candidates. */
#include "graph/candidate.h"

#include <limits.h>

/* A value of one pixel is small, and what linear layers read. */
static bool is_map(const dv_plan *plan, dv_value value) {
    const dv_map *map = &plan->graph->values[value].map;
    return dv_map_image_elements(map) > map->channels;
}

static bool can_recompute(const dv_plan *plan, dv_value value) {
    return is_map(plan, value) && (dv_plan_is_joined(plan, value) || dv_plan_count_sources(plan, value, INT_MAX) > 0);
}

/* What is small or read again at once stays in memory, as it does with `swap`. */
static void spill(dv_plan *plan, dv_value value) {
    if (dv_plan_can_spill(plan, value))
        dv_plan_spill(plan, value, &dv_keep_exact);
    else
        dv_plan_keep(plan, value, &dv_keep_exact);
}

/* Subtractive dither has half the variance of the published one, with the same bytes. A code's letter is that of the
 * alphabet which its bits count to; lean codes have letters of their own. */
static const dv_candidate candidates[] = {
    {DV_EXACT, 0, "exact", &dv_keep_exact, .can = NULL},
    {DV_RECOMPUTED, 0, "recomputed", &dv_keep_recomputed, .can = can_recompute},
    {'h', 8, "8 bits", &dv_keep_packed, "division:bits=8,dither=subtractive", .can = is_map},
    {'d', 4, "4 bits", &dv_keep_packed, "division:bits=4,dither=subtractive", .can = is_map},
    {'b', 2, "2 bits", &dv_keep_packed, "division:bits=2,dither=subtractive", .can = is_map},
    {'a', 1, "1 bit", &dv_keep_packed, "division:bits=1,dither=subtractive", .can = is_map},
    {'w', 8, "lean, 255 levels", &dv_keep_lean, "lean:levels=255", 255, .can = is_map, .keep = dv_plan_keep_lean},
    {'n', 4, "lean, 15 levels", &dv_keep_lean, "lean:levels=15", 15, .can = is_map, .keep = dv_plan_keep_lean},
    {'m', 3, "lean, 7 levels", &dv_keep_lean, "lean:levels=7", 7, .can = is_map, .keep = dv_plan_keep_lean},
    {'l', 2, "lean, 3 levels", &dv_keep_lean, "lean:levels=3", 3, .can = is_map, .keep = dv_plan_keep_lean},
    {DV_REPLAYED, 0, "replayed", &dv_keep_replayed, .can = dv_plan_can_replay},
    {DV_SPILLED, 0, "spilled", &dv_keep_spilled, .keep = spill},
};

enum { CANDIDATE_COUNT = sizeof candidates / sizeof *candidates };

const dv_candidate *dv_candidate_at(size_t index) {
    return index < CANDIDATE_COUNT ? &candidates[index] : NULL;
}

const dv_candidate *dv_candidate_of(char letter) {
    for (size_t i = 0; i < CANDIDATE_COUNT; i++)
        if (candidates[i].letter == letter)
            return &candidates[i];
    return NULL;
}

bool dv_candidate_can(const dv_candidate *candidate, const dv_plan *plan, dv_value value) {
    return !candidate->can || candidate->can(plan, value);
}
