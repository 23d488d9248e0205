/* A plan: for each value and layer, which pieces of the arena it uses and when.
 *
 * A step has 2 L + 1 moments for L layers: moment i < L is the forward of layer i, moment L the loss, moment
 * 2 L - i the backward of layer i. What is permanent lives through all of them. */
#ifndef DV_GRAPH_PLAN_H
#define DV_GRAPH_PLAN_H

#include "graph/graph.h"
#include "graph/guard.h"
#include "graph/method.h"
#include "graph/place.h"

enum { DV_NO_PIECE = -1 };

/* Pieces are indices into dv_plan.pieces, or DV_NO_PIECE. */
typedef struct dv_value_plan {
    bool wants_diff; /* backward has a use for its gradient */
    dv_keeper keeper;
    const dv_codec *codec;           /* that packs it, if it is packed: one of the method's */
    bool is_source;                  /* a batch norm normalises it, whose output is recomputed instead of packed */
    int numbers_first, numbers_last; /* moments at which backward asks for its numbers; last < 0: it does not */
    int bits_last;                   /* the last at which it asks for its bits, or -1 */

    int data;          /* the value, during forward and, if kept exactly, until its last use in backward */
    int packed;        /* its packed form */
    int bits;          /* where it is positive */
    int scratch;       /* of its layer, which makes it again */
    int diff;          /* its gradient */
    size_t kept_bytes; /* alive when forward ends */
} dv_value_plan;

typedef struct dv_layer_plan {
    bool backward; /* it has one: parameters, or an input that wants a gradient */
    int saved, forward_workspace, backward_workspace;
    int data[DV_LAYER_MAX_PARAMETERS], gradient[DV_LAYER_MAX_PARAMETERS], optimizer[DV_LAYER_MAX_PARAMETERS];
    int buffers[2];
    int average[DV_LAYER_MAX_PARAMETERS], buffer_average[2];
    int diff_in_place; /* the input whose gradient takes over the memory of the output's, or -1 */
} dv_layer_plan;

struct dv_plan {
    atomic_size_t holders; /* its maker, and runs */
    dv_graph *graph;       /* held */
    dv_plan_options options;
    dv_guard_options guard;
    dv_method method;
    size_t piece_count, piece_capacity;
    dv_piece *pieces;
    dv_value_plan *values;     /* [graph->value_count] */
    dv_layer_plan *layers;     /* [graph->layer_count] */
    dv_plan_row *rows;         /* [1 + graph->layer_count]: the input, then the layers' outputs */
    int labels, second_labels; /* int32 [batch] */
    int label_weights;         /* f32 [batch] */
    size_t arena_bytes;        /* with guards */
    dv_plan_summary totals;
};

/* dv_plan_new with guards of the caller's choice. What the plan says about bytes is the same with all of them: what it
 * would be without; only the arena is larger. */
dv_status dv_plan_new_guarded(dv_graph *graph, const dv_plan_options *options, const dv_guard_options *guard,
                              dv_plan **plan, dv_error *error);

/* Finds out what backward asks for and decides how it survives: the first part of each dv_value_plan, and which layers
 * have a backward. */
void dv_plan_needs(dv_plan *plan);

/* The moment of a layer's backward. */
static inline int dv_backward_moment(const dv_graph *graph, int layer) {
    return 2 * (int)graph->layer_count - layer;
}

#endif
