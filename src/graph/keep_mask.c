/* One bit per element: where the value is positive. Layers write it while they make the value. */
#include "base/status.h"
#include "graph/plan.h"
#include "graph/run.h"

static dv_status load_mask(const dv_kept *kept, size_t first, size_t count, uint8_t *buffer, const uint8_t **mask,
                           dv_error *error) {
    (void)count;
    (void)buffer;
    (void)error;
    *mask = kept->mask + first * dv_mask_stride(&kept->map);
    return DV_OK;
}

static dv_status book(dv_plan *plan, dv_value value, int made, dv_error *error) {
    (void)error;
    const dv_map *map = &plan->graph->values[value].map;
    dv_value_plan *v = &plan->values[value];
    size_t bytes = map->images * dv_mask_stride(map);
    v->mask = dv_plan_book(plan, bytes, made, dv_last_read(plan, v->mask_read));
    if (made < plan->loss_at)
        v->kept_bytes += bytes;
    return DV_OK;
}

static void fill(const dv_run *run, dv_value value, dv_kept *kept) {
    kept->mask = dv_run_piece(run, run->plan->values[value].mask);
}

const dv_keeper dv_keep_mask = {
    .name = "mask",
    .access = {.load_mask = load_mask},
    .book = book,
    .fill = fill,
};
