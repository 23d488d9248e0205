/* What the method `actnn` and the keeper `groups` both know: the part of the method's state that is a value's. */
#ifndef DV_GRAPH_KEEP_GROUPS_H
#define DV_GRAPH_KEEP_GROUPS_H

#include "graph/plan.h"

/* f32 numbers of a value, from dv_value_plan.state_at on. */
enum {
    DV_GROUPS_BITS,     /* that its images may have together; 0: not said yet, the method's for each */
    DV_GROUPS_IMAGES,   /* of the last step */
    DV_GROUPS_GRADIENT, /* how noise in it weighs, by the gradients of the layers that read it; 0: not known */
    DV_GROUPS_EACH,     /* from here on the bits of each image, then the sum of its squared ranges */
};

static inline size_t dv_groups_state_count(const dv_plan *plan) {
    return DV_GROUPS_EACH + 2 * plan->graph->batch;
}

/* Read by a convolution or a linear layer, whose gradient its noise is in. Others are read by norms alone. */
bool dv_groups_weighs(const dv_plan *plan, dv_value value);

#endif
