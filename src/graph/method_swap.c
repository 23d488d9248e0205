/* Swapping: what backward reads lies in a file in the meantime, as it is. Gradients are those of `none` to the bit.
 * What is small, or read again at once, stays in memory. */
#include "base/status.h"
#include "graph/plan.h"

enum { TMPFS }; /* options */
enum { REFUSED, ALLOWED };

static const char *const tmpfs_words[] = {"refused", "allowed", NULL};

static const dv_option options[] = {
    [TMPFS] = {"tmpfs", NULL, "a folder that is itself memory: refused or allowed", DV_WORD_IN(TMPFS, tmpfs_words),
               .preset = "refused"},
};

static void keep(dv_plan *plan, dv_value value) {
    if (dv_plan_can_spill(plan, value))
        dv_plan_spill(plan, value, &dv_keep_exact);
    else
        dv_plan_keep(plan, value, &dv_keep_exact);
}

static dv_status choose(dv_plan *plan, dv_error *error) {
    (void)error;
    plan->spill_in_memory = plan->method.options[TMPFS] == ALLOWED;
    dv_plan_choose(plan, keep);
    return DV_OK;
}

const dv_method_kind dv_method_swap = {
    .name = "swap",
    .help = "keeps values in a file, written behind forward and read ahead of backward; option: tmpfs",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .choose = choose,
};
