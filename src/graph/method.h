/* Methods: policies that say how each needed value survives from forward to backward. */
#ifndef DV_GRAPH_METHOD_H
#define DV_GRAPH_METHOD_H

#include "graph/graph.h"

/* How the numbers of a value are kept. Bits are not a choice: they are read off an exact value, and stored
 * where the value is not kept exactly. */
typedef enum dv_keeper {
    DV_KEEP_NOTHING,    /* nobody needs them */
    DV_KEEP_EXACT,      /* the value stays where it is */
    DV_KEEP_PACKED,     /* packed by one of the method's codecs */
    DV_KEEP_RECOMPUTED, /* not at all: its layer makes it again, slice by slice, from what is kept of its inputs */
} dv_keeper;

typedef struct dv_method {
    const struct dv_method_kind *kind;
    dv_codec codec;  /* of what is packed */
    dv_codec input;  /* of the network's input, if that is packed */
    dv_codec source; /* of what a batch norm normalises whose output is recomputed: it has the bits of both */
    bool recompute_norms;
} dv_method;

typedef struct dv_method_kind {
    const char *name, *help;
    bool packs; /* takes the options of the codec of the same name, and `recompute` */

    /* How to keep a value whose numbers backward needs. */
    dv_keeper (*keeper)(const dv_method *method, const dv_graph *graph, dv_value value);
} dv_method_kind;

/* Reads "none" or "division:block=8,bits=2,recompute=norms". */
dv_status dv_method_parse(const char *text, dv_method *method, dv_error *error);

#endif
