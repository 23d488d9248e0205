/* The schedule of a step: operations in the order in which they are done. Everything that lives for a while in the
 * arena lives from one position in it to another.
 *
 *     forward L    layer L makes its output; values that are stored by it are stored while it does
 *     loss         of the logits, with their gradient
 *     replay L     layer L makes its output again, for the backward of its segment
 *     backward L   the gradients of the layer's parameters and inputs
 *     update L     the layer's parameters follow their gradients, if these are transient
 *     reduce L     the gradients of the bucket that layer L completes begin to be added up over all ranks
 *     write V      begins to write what forward left of a value to the file
 *     written V    waits until that is done: its memory is free for others
 *     read V       begins to read it back */
#ifndef DV_GRAPH_SCHEDULE_H
#define DV_GRAPH_SCHEDULE_H

#include <division/graph.h>
#include <stdbool.h>

typedef enum dv_operation_kind {
    DV_FORWARD,
    DV_LOSS,
    DV_REPLAY,
    DV_BACKWARD,
    DV_UPDATE,
    DV_REDUCE,
    DV_WRITE, /* from here on of a value */
    DV_WRITTEN,
    DV_READ,
    DV_OPERATION_KINDS,
} dv_operation_kind;

typedef struct dv_operation {
    dv_operation_kind kind;
    int index; /* of a layer or value, as the kind has it; -1: none */
} dv_operation;

/* Writes the plan's operations, and the layers' and values' positions among them. The method has chosen. */
dv_status dv_schedule_make(dv_plan *plan, dv_error *error);

#endif
