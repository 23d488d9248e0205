/* A run, as the folder's files see it: the arena, and the calls of all layers with their pointers filled in once. */
#ifndef DV_GRAPH_RUN_H
#define DV_GRAPH_RUN_H

#include "graph/plan.h"

/* The calls of one layer, and the arrays that they point to. */
typedef struct dv_layer_calls {
    dv_forward forward, replay;
    dv_backward backward;
    const void **inputs, **inputs_again; /* of a replay */
    void **diff_inputs;
    bool *accumulate;
    const dv_kept **kept;
} dv_layer_calls;

struct dv_run {
    dv_plan *plan; /* held; it does not change */
    uint64_t seed;
    char *arena;
    dv_guard *guard;         /* or NULL */
    dv_layer_arrays *arrays; /* [layer_count] */
    dv_layer_calls *calls;   /* [layer_count] */
    dv_kept *kept;           /* [value_count] */
    size_t parameter_count;
    dv_run_parameter *parameters;
};

/* Where a piece is, or NULL for DV_NO_PIECE. */
static inline void *dv_run_piece(const dv_run *run, int piece) {
    return piece == DV_NO_PIECE ? NULL : run->arena + run->plan->pieces[piece].offset;
}

/* run_parameters.c: gives all parameters and running statistics their memory and their first values. */
dv_status dv_run_fill_arrays(dv_run *run, dv_error *error);

#endif
