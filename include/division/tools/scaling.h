/* How long a step of several ranks takes: predicted from the times of one rank's operations and from the network.
 *
 *     dv_run_time_operations(run, seconds, &error);      one rank trains a few steps, which fill seconds
 *     dv_scaling_predict(plan, &times, &link, 64, &scaling, &error);
 *
 * docs/machines.md has the model. */
#ifndef DIVISION_TOOLS_SCALING_H
#define DIVISION_TOOLS_SCALING_H

#include <division/graph.h>
#include <division/tools/tool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* From now on adds the seconds that each operation takes to seconds [operations of the plan], the caller's; NULL: no
 * longer. */
DV_TOOL dv_status dv_run_time_operations(dv_run *run, double *seconds, dv_error *error);

/* A network: every machine sends so much to one other, and receives as much from another, all at the same time. */
typedef struct dv_link {
    double bandwidth; /* bytes a second, above 0 */
    double latency;   /* seconds until the first byte of a message is there */
} dv_link;

/* What the network between the ranks of a world can do, as sums over all of them have it; two ranks at least. All ranks
 * call it together, as they call dv_world_meet: who is there waits for the others. */
DV_TOOL dv_status dv_world_measure(dv_world *world, dv_link *link, dv_error *error);
DV_TOOL dv_status dv_world_meet(dv_world *world, dv_error *error);

/* 1: gradients are added up over ranks when backward has ended, and not while it goes on, to see what the latter saves.
 * For runs whose gradients are kept. */
DV_TOOL dv_status dv_run_reduce_last(dv_run *run, int last, dv_error *error);

/* What one process was measured to take that trains alone. */
typedef struct dv_step_times {
    const dv_plan *plan;   /* what it did: of the same graph as the plan for several ranks, with the same options */
    const double *seconds; /* [operations of that plan] for one batch */
    double update;         /* of dv_run_update, where gradients are kept; else 0 */
    size_t batches;        /* of a step, at least 1: gradients are reduced with the last */
} dv_step_times;

/* A step of one rank among several. */
typedef struct dv_scaling {
    double compute;   /* seconds that its operations take */
    double transfers; /* ... that its transfers take, one after the other */
    double waiting;   /* ... that it waits for transfers; the rest of them is hidden behind operations */
    double step;      /* compute + waiting */
} dv_scaling;

/* Predicts a step of `ranks` ranks, 1 or more, with a plan that was made for several; how many does not matter. */
DV_TOOL dv_status dv_scaling_predict(const dv_plan *plan, const dv_step_times *alone, const dv_link *link, size_t ranks,
                                     dv_scaling *scaling, dv_error *error);

#ifdef __cplusplus
}
#endif

#endif
