/* A plan: for each value and layer, how it is kept, which pieces of the arena it uses and when. It is made in this
 * order:
 *
 *     freeze.c      which parameters are trained
 *     needs.c       what backward reads of each value
 *     method.h      the method gives each of these values its keeper
 *     schedule.c    the operations of a step, in their order
 *     plan.c        pieces, each alive from one position in the schedule to another
 *     place.c       their offsets in the arena */
#ifndef DV_GRAPH_PLAN_H
#define DV_GRAPH_PLAN_H

#include "graph/graph.h"
#include "graph/guard.h"
#include "graph/keeper.h"
#include "graph/method.h"
#include "graph/place.h"
#include "graph/schedule.h"
#include "optimizer/groups.h"

enum { DV_NO_PIECE = -1, DV_KEEPER_TEXT_BYTES = 48 };

/* The layers whose backward reads something. Backward goes from the last layer to the first, so that `first`, the first
 * to read, has the highest index of them. Both -1: nobody does. */
typedef struct dv_readers {
    int first, last;
} dv_readers;

static inline bool dv_is_read(dv_readers readers) {
    return readers.first >= 0;
}

/* Pieces are indices into dv_plan.pieces, or DV_NO_PIECE. */
typedef struct dv_value_plan {
    bool wants_diff; /* backward has a use for its gradient */
    dv_readers numbers_read, mask_read;

    /* How it survives; the method's choice. */
    const dv_keeper *keeper;      /* of its numbers, or NULL: nobody reads them */
    const dv_keeper *behind;      /* of what is spilled: the keeper whose form the file has; else NULL */
    const dv_keeper *mask_keeper; /* of its mask, likewise: a keeper of numbers that tell it, or dv_keep_mask */
    dv_value mask_in;             /* the value whose keeper that is: this one, unless the method says otherwise */
    dv_codec codec;               /* that packs it, if it is packed */
    int stored_by; /* the layer in whose forward it is stored: its producer, unless the method says otherwise */

    int data;                /* the value, during forward and, if kept exactly, until its last use in backward */
    int again;               /* the value after a replay, or what was read back from the file */
    int packed;              /* its packed form */
    int mask;                /* its mask, as bits */
    int recompute_workspace; /* of its layer, which makes it again */
    bool one_pass;           /* ... a batch norm, by decoding what it normalises and normalising it in one pass */
    int diff;                /* its gradient */
    size_t kept_bytes;       /* alive when forward ends */

    size_t state_at; /* where in the method's state its numbers begin, if the method says so */

    int written_at, read_at; /* of what is spilled: positions at which its writing is waited for, its reading begins */
    size_t spilled_bytes;    /* in the file */
    size_t file_offset;
} dv_value_plan;

typedef struct dv_layer_plan {
    unsigned trained;                       /* bit k: its parameter k is, and has a gradient */
    bool backward;                          /* it has one: for these, or for an input that wants a gradient */
    int forward_at, replay_at, backward_at; /* positions in the schedule; -1: never */
    int update_at;                          /* likewise, where gradients are transient */
    int saved, forward_workspace, backward_workspace;
    int saved_again, replay_workspace; /* of a replay */
    int data[DV_LAYER_MAX_PARAMETERS], gradient[DV_LAYER_MAX_PARAMETERS], optimizer[DV_LAYER_MAX_PARAMETERS];
    int buffers[DV_LAYER_MAX_BUFFERS];
    int average[DV_LAYER_MAX_PARAMETERS], buffer_average[DV_LAYER_MAX_BUFFERS];
    dv_parameter_group groups[DV_LAYER_MAX_PARAMETERS]; /* of its parameters, with the optimizer's decay filled in */
    int bucket;                                         /* that its gradients are in; -1: none */
    size_t gradient_at[DV_LAYER_MAX_PARAMETERS];        /* where in it, in elements */
    int wire;                                           /* the bucket's form that travels */
    int diff_in_place; /* the input whose gradient takes over the memory of the output's, or -1 */
    int run_by;        /* the layer behind whose forward runs this one by slices, twice; or -1: it runs by itself */
    int sliced_by;     /* the layer that makes the gradient of the output by slices, while this one's backward asks for
                        * them; or -1: it is written whole */
    int diff_state;    /* a piece: what backward leaves to do so for the layer before */
} dv_layer_plan;

/* Layers first .. last, of which those whose outputs are kept by `replayed` run again before the backward of `last`. */
typedef struct dv_segment {
    int first, last;
} dv_segment;

/* Gradients of several layers that lie behind each other, and are added up over all ranks together. */
typedef struct dv_bucket {
    int first, last; /* layers, in the order of backward; those between are in it too, if they are trained */
    size_t count;    /* elements, with the gaps between arrays */
    int piece, wire; /* the gradients, and what travels if that is something else */
    int reduce_at;
} dv_bucket;

/* An operation as the plan tells it, and the first of its pieces in dv_plan.touched. */
typedef struct dv_told_operation {
    dv_plan_operation operation;
    size_t first;
} dv_told_operation;

struct dv_plan {
    atomic_size_t holders; /* its maker, and runs */
    dv_graph *graph;       /* held; it does not change */
    dv_plan_options options;
    dv_guard_options guard;
    dv_method method;
    dv_optimizer optimizer; /* kind NULL: none */
    size_t segment_count;
    dv_segment *segments; /* [at most graph->layer_count], in order, that do not overlap */
    size_t operation_count;
    dv_operation *operations;
    int loss_at;          /* its position */
    size_t file_bytes;    /* of what is spilled; 0: there is no file */
    char *freeze;         /* the option's text, "" without */
    char *spill_folder;   /* where the file is */
    bool spill_in_memory; /* also if that is itself memory */
    int spill_memory;     /* for transfers */
    size_t piece_count, piece_capacity;
    dv_piece *pieces;
    dv_value_plan *values;                      /* [graph->value_count] */
    dv_layer_plan *layers;                      /* [graph->layer_count] */
    dv_plan_row *rows;                          /* [1 + graph->layer_count]: the input, then the layers' outputs */
    char (*keeper_texts)[DV_KEEPER_TEXT_BYTES]; /* the rows' words */
    dv_told_operation *told;                    /* [operation_count] */
    size_t touched_count, touched_capacity;
    dv_plan_touched *touched; /* of all operations, one behind the other */
    int pool;                 /* a piece that packed forms share whose bytes change from step to step */
    size_t state_count;       /* of the method's state, f32 */
    int state;                /* its piece */
    size_t bucket_count;
    dv_bucket *buckets; /* [at most graph->layer_count], in the order of backward; NULL: alone */
    int statistics;     /* a copy of all running statistics, while they are added up */
    int targets;        /* of the loss, [batch][target_bytes]: labels, mostly */
    int second_labels;  /* int32 [batch], for a loss that mixes labels */
    int label_weights;  /* f32 [batch], likewise */
    int loss_workspace;
    size_t arena_bytes; /* with guards */
    dv_plan_summary totals;
};

/* dv_plan_new with guards of the caller's choice. What the plan says about bytes is the same with all of them: what it
 * would be without; only the arena is larger. */
dv_status dv_plan_new_guarded(dv_graph *graph, const dv_plan_options *options, const dv_guard_options *guard,
                              dv_plan **plan, dv_error *error);

/* ---- freeze.c -------------------------------------------------------------------------------- */

/* Marks the parameters that are trained: in training all that options.freeze does not name. */
dv_status dv_plan_freeze(dv_plan *plan, dv_error *error);

/* Layer `i` has parameters, and none of them is trained. */
static inline bool dv_plan_is_frozen(const dv_plan *plan, int i) {
    return plan->graph->layers[i].layer.parameter_count > 0 && plan->layers[i].trained == 0;
}

/* What the backward of layer `i` needs of its input `k`, and what its forward saves for it. */
static inline dv_need dv_plan_input_need(const dv_plan *plan, int i, size_t k) {
    return dv_layer_input_need(&plan->graph->layers[i].layer, k, plan->layers[i].trained);
}

static inline size_t dv_plan_saved_bytes(const dv_plan *plan, int i) {
    return dv_layer_saved_bytes(&plan->graph->layers[i].layer, plan->layers[i].trained);
}

/* ---- needs.c --------------------------------------------------------------------------------- */

/* Finds out which layers have a backward and what it reads, and lets the method choose. */
dv_status dv_plan_needs(dv_plan *plan, dv_error *error);

/* Whether the backward of a layer itself reads the numbers of a value. */
bool dv_plan_reads(const dv_plan *plan, int layer, dv_value value);

/* ... and is not a norm: noise in the value is then noise in the gradient of a weight. The first to do so in backward.
 */
bool dv_plan_weighs(const dv_plan *plan, int layer, dv_value value);
bool dv_plan_first_to_weigh(const dv_plan *plan, int layer, dv_value value);

/* Adds readers of a value's numbers, or of its mask: for methods and keepers. */
void dv_plan_ask(dv_plan *plan, dv_value value, dv_readers readers);
void dv_plan_ask_mask(dv_plan *plan, dv_value value, dv_readers readers);

/* Gives a value its keeper, which asks for what it takes. */
void dv_plan_keep(dv_plan *plan, dv_value value, const dv_keeper *keeper);

/* The mask of a value is to be read out of what is kept of another one, whose numbers are positive where this one's
 * are. Where that one's keeper cannot tell it, it is kept as bits as ever. */
void dv_plan_mask_in(dv_plan *plan, dv_value value, dv_value in);

/* Whether what is kept of the value's numbers tells its mask; who reads what is kept of them, for the numbers or, then,
 * for the mask. */
bool dv_tells_mask(const dv_value_plan *v);
dv_readers dv_readers_of(const dv_value_plan *v);

/* Calls `choose` for every value whose numbers backward reads, from the last layer's output to the first's and then the
 * images: all who ask for a value have asked when its turn comes. */
void dv_plan_choose(dv_plan *plan, void (*choose)(dv_plan *plan, dv_value value));

/* keep_lean.c: the norm with a ReLU that alone reads the value, and takes it once, or -1; and the value kept by its
 * codec, which is `lean`: with the mask of that norm's output inside, or by itself. All who come behind have their
 * keepers. */
int dv_plan_gate(const dv_plan *plan, dv_value value);
void dv_plan_keep_lean(dv_plan *plan, dv_value value);

/* recomputable.c: a concatenation of values that are not concatenations themselves. */
bool dv_plan_is_joined(const dv_plan *plan, dv_value value);

/* The values that this one would be recomputed from: what its batch norm normalises (a concatenation counts as one),
 * and those of what it adds. 0 if it must be kept: no batch norm made it, or one behind another; it takes more than
 * `most`, or one that nobody else needs. */
int dv_plan_count_sources(const dv_plan *plan, dv_value value, int most);

/* Layers first .. last become a segment, whose values can be replayed. To be called for segments in their order, before
 * values get their keepers (keep_replayed.c). */
void dv_plan_replay(dv_plan *plan, int first, int last);

/* A segment makes the value, and does not end with it. */
bool dv_plan_can_replay(const dv_plan *plan, dv_value value);

/* For tests: whether layers are run by slices, and gradients made by them, where that is possible. Plans that are made
 * keep what they have decided. */
typedef enum dv_slicing {
    DV_SLICING_AS_EVER,
    DV_SLICING_NEVER,
    DV_SLICING_ALWAYS,
} dv_slicing;

void dv_slicing_force(dv_slicing wish);
dv_slicing dv_slicing_forced(void);

/* sliced.c: finds the layers whose output's gradient is made by slices, and asks for what that takes. */
void dv_plan_slice_diffs(dv_plan *plan);

/* The gradient of the first input of layer `i` is. */
static inline bool dv_plan_slices(const dv_plan *plan, int i) {
    return i > 0 && plan->layers[i - 1].sliced_by == i;
}

/* twice.c: of a plan whose pieces are booked, marks the layers that are to be run twice (run_by); whether there are
 * any. */
dv_status dv_plan_run_twice(dv_plan *plan, bool *any, dv_error *error);

/* The forward of layer `i` runs the layer before it. */
static inline bool dv_plan_runs_before(const dv_plan *plan, int i) {
    return i > 0 && plan->layers[i - 1].run_by == i;
}

/* separate.c: the first layer that has a backward, the number of layers if none has. What is frozen before it is not
 * run again. */
int dv_plan_first_backward(const dv_plan *plan);

/* separates [graph->layer_count]: whether the output of a layer is all that later layers take of it and of those before
 * it. Segments end there. */
void dv_plan_separators(const dv_plan *plan, bool *separates);

/* keep_spilled.c: whether a value is worth a file; gives it the keeper `spilled`, of the form of another. */
bool dv_plan_can_spill(const dv_plan *plan, dv_value value);

/* For tests: values of so many bytes are worth a transfer, 0: as ever. Plans that are made keep what they have decided.
 */
void dv_spill_least_force(size_t bytes);
void dv_plan_spill(dv_plan *plan, dv_value value, const dv_keeper *behind);

/* The layer behind whose forward a write is waited for, and the one before whose backward a read begins: so many layers
 * compute while the disk works. */
enum { DV_WRITE_BEHIND = 2, DV_READ_AHEAD = 2 };
int dv_spill_written_behind(const dv_plan *plan, dv_value value);
int dv_spill_read_before(const dv_plan *plan, dv_value value);

/* Memory that transfers take, of a plan whose values are booked. */
size_t dv_spill_plan_bytes(const dv_plan *plan);

/* The keeper that has the value in memory: its own, or the one behind the file. */
static inline const dv_keeper *dv_keeper_in_memory(const dv_value_plan *v) {
    return v->behind ? v->behind : v->keeper;
}

/* ---- plan_optimizer.c ------------------------------------------------------------------------ */

/* Reads the optimizer and the groups of parameters, and gives each parameter its group. */
dv_status dv_plan_read_optimizer(dv_plan *plan, dv_error *error);

/* Whether the layer's parameters are updated behind its backward. */
bool dv_plan_updates(const dv_plan *plan, int layer);

/* Fails if an operation touches parameters that were updated before it: all that reads them must come first. The
 * schedule is told. */
dv_status dv_plan_check_updates(const dv_plan *plan, dv_error *error);

/* ---- bucket.c -------------------------------------------------------------------------------- */

/* So many buckets later a bucket is waited for and used: meanwhile it travels. */
enum { DV_REDUCE_BEHIND = 2 };

/* Whether there are other ranks to add up gradients with. */
bool dv_plan_has_buckets(const dv_plan *plan);
dv_status dv_buckets_begin(dv_plan *plan, dv_error *error);

/* Adds the gradients of a layer, whose backward comes next, to the last bucket; true if it is full with them. */
bool dv_bucket_add(dv_plan *plan, int layer);

/* Books the memory of all buckets, and of the statistics. */
void dv_buckets_book(dv_plan *plan);

/* Of all layers' running statistics, elements. */
size_t dv_statistics_count(const dv_plan *plan);

/* For tests: so many bytes fill a bucket, 0: as ever. */
void dv_bucket_bytes_force(size_t bytes);

/* Elements of an array in a bucket, with the gap behind it. */
static inline size_t dv_bucket_elements(size_t count) {
    return (count + 15) / 16 * 16;
}

/* ---- plan.c ---------------------------------------------------------------------------------- */

/* Books `bytes` from position `first` to position `last`. DV_NO_PIECE for no bytes; what fails is found when the
 * pieces are placed. */
int dv_plan_book(dv_plan *plan, size_t bytes, int first, int last);

/* Books `bytes` more in the pool, which is there from the first of such positions to the last. Who has which of them is
 * for a keeper to say, step by step. */
int dv_plan_book_pool(dv_plan *plan, size_t bytes, int first, int last);

/* The positions at which readers read: the first and the last. The layer that ends a segment reads when its replay
 * begins. */
int dv_first_read(const dv_plan *plan, dv_readers readers);
int dv_last_read(const dv_plan *plan, dv_readers readers);

/* How many times a layer takes the value. */
int dv_times_taken(const dv_graph_layer *node, dv_value value);

/* ---- plan_rows.c ----------------------------------------------------------------------------- */

/* The rows and totals of a plan whose pieces are placed. */
void dv_plan_fill_rows(dv_plan *plan);

/* ---- plan_schedule.c ------------------------------------------------------------------------- */

/* Fills in what the plan tells of its operations. */
dv_status dv_plan_tell_schedule(dv_plan *plan, dv_error *error);

/* Whether the operation at a position is listed to touch the piece. */
bool dv_plan_touches(const dv_plan *plan, int at, size_t piece);

/* ---- owner.c --------------------------------------------------------------------------------- */

/* What a piece is to a value, a layer or the whole plan that has it among its pieces: "output's gradient". NULL: it has
 * not. */
const char *dv_value_role(const dv_value_plan *value, int piece);
const char *dv_layer_role(const dv_layer_plan *layer, int piece);
const char *dv_plan_role(const dv_plan *plan, int piece);

#endif
