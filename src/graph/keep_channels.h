/* What the method `acgc` and the keeper `channels` both know: the part of the method's state that is a value's. */
#ifndef DV_GRAPH_KEEP_CHANNELS_H
#define DV_GRAPH_KEEP_CHANNELS_H

#include "graph/plan.h"

/* f32 numbers of a value, from dv_value_plan.state_at on. */
enum {
    DV_CHANNELS_ROOM,     /* in the pool, in DV_CHANNELS_UNIT bytes; 0: not said yet, what the plan gave it */
    DV_CHANNELS_WANTED,   /* of the last step, likewise: what it would have taken */
    DV_CHANNELS_FEWER,    /* bits that each channel lost in the last step, for want of room */
    DV_CHANNELS_SAMPLES,  /* so many times gradients have been measured, 10 at most */
    DV_CHANNELS_GRADIENT, /* of weights, of the layers that read it: the squared norm */
    DV_CHANNELS_OUTPUT,   /* of their outputs, likewise, by window and stride; 0: it has no such readers */
    DV_CHANNELS_EACH, /* from here on the allowed squared error of each channel, by the norm that reads it; 0: none */
};

enum { DV_CHANNELS_UNIT = 64 };

static inline size_t dv_channels_state_count(const dv_plan *plan, dv_value value) {
    return DV_CHANNELS_EACH + plan->graph->values[value].map.channels;
}

/* Bytes that a value has in the pool if every code has the same width: what the plan gives it. */
size_t dv_channels_bytes(const dv_plan *plan, dv_value value, unsigned width);

/* The largest number of channels that a value has: the end of the state has three times as many numbers to work in. */
size_t dv_channels_most(const dv_plan *plan);

/* The largest magnitude in channel `c` of a value that is kept, as its codes have it. */
double dv_channels_reach(const dv_kept *kept, size_t c);

/* The narrowest codes of a value. */
unsigned dv_channels_least_width(const dv_plan *plan, dv_value value);

#endif
