/* Everything that backward reads is kept as it is, as frameworks do. */
#include "base/status.h"
#include "graph/plan.h"

static void keep(dv_plan *plan, dv_value value) {
    dv_plan_keep(plan, value, &dv_keep_exact);
}

static dv_status choose(dv_plan *plan, dv_error *error) {
    (void)error;
    dv_plan_choose(plan, keep);
    return DV_OK;
}

const dv_method_kind dv_method_none = {
    .name = "none",
    .help = "keeps everything exactly, as frameworks do",
    .choose = choose,
};
