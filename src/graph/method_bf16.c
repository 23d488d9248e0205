/* Every value in f32 is kept as bf16, in half of its bytes: what mixed precision keeps, with all else in f32. Values
 * that are bf16 already stay as they are. The mask of a value is read out of what is kept. */
#include "base/status.h"
#include "graph/plan.h"

static void keep(dv_plan *plan, dv_value value) {
    bool wide = plan->graph->values[value].map.type == DV_F32;
    plan->values[value].codec = plan->method.codec;
    dv_plan_keep(plan, value, wide ? &dv_keep_packed : &dv_keep_exact);
}

static dv_status choose(dv_plan *plan, dv_error *error) {
    (void)error;
    dv_plan_choose(plan, keep);
    return DV_OK;
}

const dv_method_kind dv_method_bf16 = {
    .name = "bf16",
    .help = "keeps every value as bf16",
    .codec = "bf16",
    .choose = choose,
};
