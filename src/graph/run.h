/* A run, as the folder's files see it: the arena, and the calls of all layers with their pointers filled in once. */
#ifndef DV_GRAPH_RUN_H
#define DV_GRAPH_RUN_H

#include "base/spill.h"
#include "graph/plan.h"

/* The calls of one layer, and the arrays that they point to. */
typedef struct dv_layer_calls {
    dv_forward forward, replay;
    dv_backward backward;
    dv_sliced_input made;                /* its first input, if that is made by slices */
    dv_sliced_diff sliced;               /* the gradient of its output, if that is made by slices */
    const void **inputs, **inputs_again; /* of a replay */
    void **diff_inputs;
    bool *accumulate;
    const dv_kept **kept;
} dv_layer_calls;

/* The last transfer of a value between memory and the file. */
typedef struct dv_transfer {
    const dv_run *run;
    dv_spill_ticket ticket;
} dv_transfer;

/* What the caller has had done, and so what it may have done next (calls.c). */
typedef enum dv_phase {
    DV_AT_REST,    /* the next batch is to be filled in */
    DV_PREDICTED,  /* there are logits */
    DV_FORWARDED,  /* ... and a step of training waits for their gradient */
    DV_LOSS_TAKEN, /* ... which is there */
    DV_PHASE_COUNT,
} dv_phase;

/* The step or prediction under way. */
typedef struct dv_under_way {
    dv_step told;
    bool training;
    bool given; /* the caller may have written the gradient of the logits */
} dv_under_way;

/* Somebody who looks on: told behind every operation, with the seconds that it took. Gradients of a layer's parameters
 * are complete behind its backward, and its own until the next operation. */
typedef struct dv_watch {
    void (*done)(void *context, dv_run *run, int at, double seconds); /* NULL: nobody */
    void *context;
} dv_watch;

struct dv_run {
    dv_plan *plan; /* held; it does not change */
    uint64_t seed;
    bool failed; /* a step of training did, somewhere on its way */
    dv_phase phase;
    dv_under_way now;
    dv_step_result result; /* of the last loss */
    size_t images;         /* of the steps to come: 1 to the batch */
    char *arena;
    dv_guard *guard;         /* or NULL */
    dv_layer_arrays *arrays; /* [layer_count] */
    dv_layer_calls *calls;   /* [layer_count] */
    dv_kept *kept;           /* [value_count] */
    dv_spill *spill;         /* the file, or NULL */
    dv_transfer *transfers;  /* [value_count] */
    dv_world *world;         /* or NULL: alone */
    dv_pending *reductions;  /* [bucket_count] under way */
    bool *reduced;           /* [bucket_count]: waited for */
    dv_pending shared_statistics;
    bool reduce_last; /* gradients travel when backward has ended: for measurements */
    double *seconds;  /* [operation_count]: what each took is added there; the caller's, or NULL */
    dv_watch watch;
    dv_run_parameter state; /* the method's; data is NULL without */
    size_t parameter_count;
    dv_run_parameter *parameters;
};

/* Where a piece is, or NULL for DV_NO_PIECE. */
static inline void *dv_run_piece(const dv_run *run, int piece) {
    return piece == DV_NO_PIECE ? NULL : run->arena + run->plan->pieces[piece].offset;
}

/* step.c: does the operations first .. last - 1 of the plan's schedule, as `now` says. */
dv_status dv_run_operations(dv_run *run, int first, int last, dv_error *error);

/* keep_spilled.c: opens the file, if the plan has one; then what the operations do. */
dv_status dv_spilled_open(dv_run *run, dv_error *error);
dv_status dv_spilled_write(dv_run *run, dv_value value, dv_error *error);
dv_status dv_spilled_wait(dv_run *run, dv_value value, dv_error *error);
dv_status dv_spilled_read(dv_run *run, dv_value value, dv_error *error);

/* reduce.c: fails if the plan has ranks that the run knows nothing of; whose statistics norms take. Begins to add up a
 * bucket over all ranks, and waits for it; the same of running statistics. All that was begun in a step has ended with
 * dv_run_end_reductions. */
dv_status dv_run_check_joined(const dv_run *run, dv_error *error);
dv_ranks_norm dv_run_norm(const dv_run *run);
dv_status dv_run_reduce(dv_run *run, int bucket, dv_error *error);
dv_status dv_run_reduced(dv_run *run, int bucket, dv_error *error);
dv_status dv_run_share_statistics(dv_run *run, dv_error *error);
dv_status dv_run_end_reductions(dv_run *run, dv_error *error);
void dv_run_leave(dv_run *run);

/* update.c: makes the gradients of a layer's parameters zero; updates the parameters by them, times `scale`. */
void dv_run_clear_gradients(dv_run *run, int layer);
void dv_run_update_layer(dv_run *run, int layer, double rate, uint64_t number, float scale);

/* run_parameters.c: gives all parameters and running statistics their memory and initialises them. */
dv_status dv_run_fill_arrays(dv_run *run, dv_error *error);

#endif
