/* Keepers: the ways in which a value survives from forward to backward. One file and one entry here each; a method
 * (graph/method.h) gives every value that backward reads its keeper, the plan books what the keeper says, and layers
 * meet its `access` alone.
 *
 *     exact        the value stays where forward left it
 *     packed       a codec's form of it, stored slice by slice by the layer that makes it
 *     mask         one bit per element: where it is positive. Beside the keeper of the numbers, or alone
 *     recomputed   nothing: its layer makes slices of it again, from what is kept of its inputs
 *     replayed     nothing: a segment of layers runs forward again before the segment's backward
 *     spilled      a file has it in the meantime: of another keeper, exact or packed
 *     unit         one code for what a batch norm normalises, the mask of its output, and the output
 *     lean         one code for what a batch norm normalises and the mask of its output, which is recomputed from it
 *     groups       groups of elements in a few bits, each image of the value with its own number of bits
 *     channels     codes whose width differs by channel, and from step to step */
#ifndef DV_GRAPH_KEEPER_H
#define DV_GRAPH_KEEPER_H

#include "nn/kept.h"

#include <division/graph.h>

struct dv_run;
struct dv_value_plan;

typedef struct dv_keeper {
    const char *name; /* as plans are printed */
    dv_keeper_access access;
    bool recomputes, replays, spills; /* what brings the value back: its layer, its segment, a file */

    /* Asks for what it takes to have the value again, when all who read the value have asked for it. NULL: nothing. */
    void (*ask)(dv_plan *plan, dv_value value);

    /* Books what is alive between forward and backward beside the value itself, which is made at position `made` of the
     * schedule. NULL: nothing. */
    dv_status (*book)(dv_plan *plan, dv_value value, int made, dv_error *error);

    /* The last position at which the memory that forward left the value in must still hold it. NULL: forward's own uses
     * alone count. */
    int (*holds_until)(const dv_plan *plan, dv_value value);

    /* The piece that holds what forward leaves of the value, for a file to take. NULL: there is none. */
    int (*form)(const struct dv_value_plan *v);

    /* Whether `access.load_mask` tells the mask of this value. NULL: it does, if it is there. */
    bool (*tells_mask)(const struct dv_value_plan *v);

    /* Fills in what `access` uses. */
    void (*fill)(const struct dv_run *run, dv_value value, dv_kept *kept);
} dv_keeper;

extern const dv_keeper dv_keep_exact, dv_keep_packed, dv_keep_mask, dv_keep_recomputed, dv_keep_replayed,
    dv_keep_spilled, dv_keep_unit, dv_keep_lean, dv_keep_groups, dv_keep_channels;

/* What keepers of codes have in common: a piece of the packed bytes, which a file may take and bring back. */
dv_status dv_packed_book(dv_plan *plan, dv_value value, int made, dv_error *error);
int dv_packed_form(const struct dv_value_plan *v);
void dv_packed_fill(const struct dv_run *run, dv_value value, dv_kept *kept);

/* ... and of a code that is `lean`, what a norm makes of it. */
dv_status dv_packed_load_normalized(const dv_kept *kept, size_t first, size_t count, const struct dv_lean_norm *norm,
                                    void *images, dv_error *error);

/* How a value is found that is in memory as it was, for keepers that bring it there. */
void dv_exact_fill(const struct dv_run *run, dv_value value, dv_kept *kept);
dv_status dv_exact_load(const dv_kept *kept, size_t first, size_t count, void *buffer, const void **images,
                        dv_error *error);
dv_status dv_exact_load_mask(const dv_kept *kept, size_t first, size_t count, uint8_t *buffer, const uint8_t **mask,
                             dv_error *error);

#endif
