/* Methods: policies that say how each value survives from forward to backward. A new one is a file that defines a
 * dv_method_kind, and a line in the table of method.c. */
#ifndef DV_GRAPH_METHOD_H
#define DV_GRAPH_METHOD_H

#include <division/codec.h>
#include <division/graph.h>
#include <division/tools/option.h>
#include <stdbool.h>

enum { DV_METHOD_MAX_OPTIONS = 8 };

typedef struct dv_method {
    const struct dv_method_kind *kind;
    int32_t options[DV_METHOD_MAX_OPTIONS]; /* in the order of the kind's table */
    dv_codec codec;                         /* with its options, if the kind has one */
    const char *text;                       /* what stands behind the colon, if the kind takes a text; not owned, and
                                               there as long as the plan is made */
} dv_method;

/* The backward of a layer, as an observer sees it: once before, when the gradient of the output is complete, and once
 * after, when those of the parameters are and that of the output may have been overwritten. */
typedef struct dv_observation {
    const dv_plan *plan;
    int layer;
    const struct dv_backward *call;
    bool done;
} dv_observation;

typedef struct dv_method_kind {
    const char *name, *help;
    const char *codec;        /* the codec whose options it takes beside its own, or NULL */
    const dv_option *options; /* at most DV_METHOD_MAX_OPTIONS */
    size_t option_count;
    bool takes_text; /* in place of options */

    /* Fills in how the values survive that backward reads (graph/plan.h): keeper, codec, who stores them; and which
     * segments are replayed. */
    dv_status (*choose)(dv_plan *plan, dv_error *error);

    /* What follows is for methods that learn how to keep values while the network learns. Their state is f32
     * [state_count], zero at first, permanent, and part of a checkpoint; keepers find it in dv_kept.state. Bytes that
     * are planned stay as they are: only what is done with them may depend on it. NULL: no state. */
    size_t (*state_count)(const dv_plan *plan);

    /* Leaves in the state what it wants to know of a layer's backward, before any parameter is updated. NULL: nothing.
     */
    void (*observe)(const dv_observation *seen, float *state);

    /* Behind a step of training, the one of batch `batch`. NULL: nothing to do. */
    void (*adapt)(const dv_plan *plan, uint64_t batch, float *state);
} dv_method_kind;

/* One more method, for tests and examples; NULL: none. */
extern const dv_method_kind *dv_method_added;

/* Reads "none" or "division:block=8,bits=2,recompute=norms". */
dv_status dv_method_parse(const char *text, dv_method *method, dv_error *error);

#endif
