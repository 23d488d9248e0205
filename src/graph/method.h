/* Methods: policies that say how each value survives from forward to backward. A new one is a file that defines a
 * dv_method_kind, and a line in the table of method.c. */
#ifndef DV_GRAPH_METHOD_H
#define DV_GRAPH_METHOD_H

#include <division/codec.h>
#include <division/graph.h>
#include <division/option.h>

enum { DV_METHOD_MAX_OPTIONS = 8 };

typedef struct dv_method {
    const struct dv_method_kind *kind;
    int32_t options[DV_METHOD_MAX_OPTIONS]; /* in the order of the kind's table */
    dv_codec codec;                         /* with its options, if the kind has one */
} dv_method;

typedef struct dv_method_kind {
    const char *name, *help;
    const char *codec;        /* the codec whose options it takes beside its own, or NULL */
    const dv_option *options; /* at most DV_METHOD_MAX_OPTIONS */
    size_t option_count;

    /* Fills in how the values survive that backward reads (graph/plan.h): keeper, codec, who stores them; and which
     * segments are replayed. */
    dv_status (*choose)(dv_plan *plan, dv_error *error);
} dv_method_kind;

/* One more method, for tests and examples; NULL: none. */
extern const dv_method_kind *dv_method_added;

/* Reads "none" or "division:block=8,bits=2,recompute=norms". */
dv_status dv_method_parse(const char *text, dv_method *method, dv_error *error);

#endif
