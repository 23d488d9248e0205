/* Guards of the arena: what finds a layer that writes outside of its pieces, reads what nobody wrote, or relies on
 * memory that others have had since. Off in an ordinary build, where they cost nothing.
 *
 *     | zone | piece ............ | padding, zone |
 *
 * With `zones` every piece has a red zone before it and one behind it, from its very last byte. They get a pattern when
 * the piece's life begins, and after every layer those of all living pieces must still have it: so that the layer and
 * the piece can be named. The piece itself is filled with NaN at that time. Under the address sanitizer, zones and
 * everything that is not alive are poisoned as well, which stops our own code at the instruction.
 *
 * With `apart` no two pieces share memory and nothing is computed in place: what a run computes must not differ.
 *
 * With `hide` an operation has nothing but the pieces that it is listed to touch (dv_plan_touched_at): all others that
 * are alive are NaN while it is done, must still be NaN afterwards, and then are what they were. What it computes must
 * not differ. Not for plans with operations that go on behind the next ones. */
#ifndef DV_GRAPH_GUARD_H
#define DV_GRAPH_GUARD_H

#include "nn/layer.h"

#include <division/graph.h>
#include <stdbool.h>
#include <stdint.h>

enum { DV_RED_ZONE_BYTES = 256 };

typedef struct dv_guard_options {
    bool zones, apart, hide;
    bool fill;       /* every piece gets `pattern` when its life begins */
    uint8_t pattern; /* 0xFF is NaN in every type */
} dv_guard_options;

/* Zones and NaN in debug builds, under sanitizers, and where the environment says DV_GUARD=1; DV_GUARD=0 turns them
 * off. */
dv_guard_options dv_guard_options_default(void);

/* Of the zone on each side of a piece. */
static inline size_t dv_guard_zone_bytes(const dv_guard_options *options) {
    return options->zones ? DV_RED_ZONE_BYTES : 0;
}

/* The guard of one arena; all functions take NULL where there is none. */
typedef struct dv_guard dv_guard;

/* `*guard` is NULL if the plan has no guards. Plan and arena must outlive it. */
dv_status dv_guard_new(const dv_plan *plan, void *arena, dv_guard **guard, dv_error *error);
void dv_guard_free(dv_guard *guard);

/* Before what happens at `moment`. Behind a rest or a pause it finds out whether the caller wrote where it should. */
dv_status dv_guard_enter(dv_guard *guard, int moment, dv_error *error);

/* After what `layer` did at that moment. */
dv_status dv_guard_leave(dv_guard *guard, const char *layer, dv_error *error);

/* Between the calls of a step: the caller has what is alive at `moment`, which has begun. */
void dv_guard_pause(dv_guard *guard, int moment);

/* During a pause that may be the end: a caller may write to a piece that is not alive, because it fills in the next
 * batch.
 */
void dv_guard_open(const dv_guard *guard, size_t piece);

/* After a step, also one that failed: the caller may fill in the next batch. */
void dv_guard_rest(dv_guard *guard);

/* Whose a piece is. */
typedef struct dv_owner {
    const char *role;      /* "gradient"; NULL: nobody's, which would be a fault of the plan */
    const dv_layer *layer; /* NULL: the images' or the labels' */
    bool given;            /* its contents come from outside of the step: images, labels, parameters and all that
                              belongs to them */
} dv_owner;

/* Sets owners [piece count of the plan]. A piece that serves several is the first one's. */
void dv_plan_owners(const dv_plan *plan, dv_owner *owners);

#endif
