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
 * alphabet which its bits count to; lean codes have letters of their own,
 * and noise as measured on ResNet-20: ranges are those of blocks, not of channels. */
static const dv_candidate candidates[] = {
    {DV_EXACT, "exact", &dv_keep_exact, .bits = 0},
    {DV_RECOMPUTED, "recomputed", &dv_keep_recomputed, .can = can_recompute},
    {'h', "8 bits", &dv_keep_packed, "division:bits=8,dither=subtractive", 8, .can = is_map},
    {'d', "4 bits", &dv_keep_packed, "division:bits=4,dither=subtractive", 4, .can = is_map},
    {'b', "2 bits", &dv_keep_packed, "division:bits=2,dither=subtractive", 2, .can = is_map},
    {'a', "1 bit", &dv_keep_packed, "division:bits=1,dither=subtractive", 1, .can = is_map},
    {'w', "lean, 255 levels", &dv_keep_lean, "lean:levels=255", 8, 0.0002, .can = is_map, .keep = dv_plan_keep_lean},
    {'n', "lean, 15 levels", &dv_keep_lean, "lean:levels=15", 4, 0.046, .can = is_map, .keep = dv_plan_keep_lean},
    {'m', "lean, 7 levels", &dv_keep_lean, "lean:levels=7", 3, 0.092, .can = is_map, .keep = dv_plan_keep_lean},
    {'l', "lean, 3 levels", &dv_keep_lean, "lean:levels=3", 2, 0.55, .can = is_map, .keep = dv_plan_keep_lean},
    {DV_REPLAYED, "replayed", &dv_keep_replayed, .can = dv_plan_can_replay},
    {DV_SPILLED, "spilled", &dv_keep_spilled, .keep = spill},
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
