/* LEAN: of a batch norm, the ReLU behind it and the layers that read its output, one code is kept: that of the norm's
 * input, in which the mask is one state (codec `lean`). The outputs of norms, with what is added to them, are
 * recomputed from it.
 *
 *     a value that                                             is kept
 *     one norm with a ReLU reads, and nobody else              by its code, with the mask of the norm's output inside
 *     a norm without a ReLU reads, or several norms do, or     by its code without a mask; a mask that is needed lies
 *     a norm and another layer                                 beside it, as bits
 *     a norm has made                                          not at all, if it follows from at most `chain` values
 *     joins others                                             not at all
 *     is the network's input                                   in 8 bits
 *     has one pixel                                            exactly
 *     is anything else                                         by its code, its own mask inside if a ReLU made it */
#include "base/status.h"
#include "codec/lean.h"
#include "graph/plan.h"

enum { CHAIN, JOINED }; /* options */

static const dv_option options[] = {
    [CHAIN] = {"chain", "N", "most values that one is recomputed from: time and noise grow with them",
               DV_INTEGER_IN(CHAIN, 1, 64), .preset = "8"},
    [JOINED] = {"joined", NULL, "levels of values that are joined: many norms read them",
                DV_WORD_IN(JOINED, dv_lean_level_words), .preset = "15"},
};

static bool is_flat(const dv_plan *plan, dv_value value) {
    const dv_map *map = &plan->graph->values[value].map;
    return dv_map_image_elements(map) == map->channels;
}

static bool is_part_of_joined(const dv_plan *plan, dv_value value) {
    const dv_graph_value *v = &plan->graph->values[value];
    for (int i = v->producer + 1; i <= v->last_user; i++)
        if (plan->graph->layers[i].layer.kind->joins && dv_times_taken(&plan->graph->layers[i], value) > 0)
            return true;
    return false;
}

/* More levels for what noise spreads from. */
static void choose_levels(dv_plan *plan, dv_value value) {
    int32_t *levels = &plan->values[value].codec.options[DV_LEAN_LEVELS];
    if (value == plan->graph->input)
        *levels = DV_LEAN_255;
    else if (is_part_of_joined(plan, value) && *levels < plan->method.options[JOINED])
        *levels = plan->method.options[JOINED];
}

static void keep_coded(dv_plan *plan, dv_value value) {
    if (!dv_lean_has_mask(&plan->method.codec) || dv_plan_gate(plan, value) < 0)
        choose_levels(plan, value);
    dv_plan_keep_lean(plan, value);
}

static void keep(dv_plan *plan, dv_value value) {
    if (is_flat(plan, value))
        dv_plan_keep(plan, value, &dv_keep_exact);
    else if (dv_plan_is_joined(plan, value) || dv_plan_count_sources(plan, value, plan->method.options[CHAIN]) > 0)
        dv_plan_keep(plan, value, &dv_keep_recomputed);
    else
        keep_coded(plan, value);
}

static dv_status choose(dv_plan *plan, dv_error *error) {
    (void)error;
    for (size_t v = 0; v < plan->graph->value_count; v++)
        plan->values[v].codec = plan->method.codec;
    dv_plan_choose(plan, keep);
    return DV_OK;
}

const dv_method_kind dv_method_lean = {
    .name = "lean",
    .help = "one code for a batch norm's input and the mask behind it, all else recomputed; options: block, levels, "
            "dither, mask, sample, chain, joined",
    .codec = "lean",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .choose = choose,
};
