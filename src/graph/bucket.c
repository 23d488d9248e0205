/* Buckets: gradients of several ranks, in the order in which backward completes them.
 *
 *     backward    fc | layer4.1.conv2 | layer4.1.conv1 | layer4.0.conv2 ...
 *     buckets     [ 0          ] reduce [ 1          ] reduce [ 2 ...
 *     updates                                                       0           1 ...      some buckets behind
 *
 * A bucket is one piece of memory, of a few megabytes: large enough for a network to be used well, small enough that
 * the first begins to travel soon. */
#include "base/status.h"
#include "graph/plan.h"

#include <stdlib.h>

static size_t least_bytes = (size_t)4 << 20;

void dv_bucket_bytes_force(size_t bytes) {
    least_bytes = bytes > 0 ? bytes : (size_t)4 << 20;
}

bool dv_plan_has_buckets(const dv_plan *plan) {
    return plan->options.ranks > 1 && !plan->options.inference;
}

dv_status dv_buckets_begin(dv_plan *plan, dv_error *error) {
    plan->statistics = DV_NO_PIECE;
    for (size_t i = 0; i < plan->graph->layer_count; i++) {
        plan->layers[i].bucket = -1;
        plan->layers[i].wire = DV_NO_PIECE;
    }
    if (!dv_plan_has_buckets(plan))
        return DV_OK;
    plan->buckets = calloc(plan->graph->layer_count + 1, sizeof *plan->buckets);
    return plan->buckets ? DV_OK : dv_fail(error, DV_ERROR_MEMORY, "plan: no memory");
}

/* ---- filling --------------------------------------------------------------------------------- */

/* No layer before it is trained. */
static bool is_last(const dv_plan *plan, int layer) {
    for (int i = 0; i < layer; i++)
        if (plan->layers[i].trained != 0)
            return false;
    return true;
}

static bool is_full(const dv_bucket *bucket) {
    return bucket->count * sizeof(float) >= least_bytes;
}

/* The bucket that gradients are added to now: the last, unless it is full. */
static dv_bucket *open_bucket(dv_plan *plan, int layer) {
    if (plan->bucket_count == 0 || is_full(&plan->buckets[plan->bucket_count - 1]))
        plan->buckets[plan->bucket_count++] =
            (dv_bucket){.first = layer, .piece = DV_NO_PIECE, .wire = DV_NO_PIECE, .reduce_at = -1};
    return &plan->buckets[plan->bucket_count - 1];
}

bool dv_bucket_add(dv_plan *plan, int layer) {
    const dv_layer *of = &plan->graph->layers[layer].layer;
    dv_layer_plan *where = &plan->layers[layer];
    dv_bucket *bucket = open_bucket(plan, layer);
    where->bucket = (int)plan->bucket_count - 1;
    bucket->last = layer;
    for (size_t k = 0; k < of->parameter_count; k++)
        if (where->trained >> k & 1) {
            where->gradient_at[k] = bucket->count;
            bucket->count += dv_bucket_elements(of->parameters[k].count);
        }
    return is_full(bucket) || is_last(plan, layer);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Transient gradients live from the first backward to the last update of the bucket, kept ones for ever. */
static void book(dv_plan *plan, dv_bucket *bucket) {
    size_t bytes = bucket->count * sizeof(float);
    bool transient = plan->options.gradients == DV_GRADIENTS_TRANSIENT;
    int first = plan->layers[bucket->first].backward_at, last = plan->layers[bucket->last].update_at;
    int end = (int)plan->operation_count - 1;
    bucket->piece = dv_plan_book(plan, bytes, transient ? first : 0, transient ? last : end);
    plan->totals.gradients += transient ? 0 : bytes;
    if (plan->options.reduce == DV_REDUCE_BF16)
        bucket->wire = dv_plan_book(plan, bytes / 2, bucket->reduce_at, transient ? last : end);
    for (int i = bucket->first; i >= bucket->last; i--)
        plan->layers[i].wire = bucket->wire;
}

size_t dv_statistics_count(const dv_plan *plan) {
    size_t count = 0;
    for (size_t i = 0; i < plan->graph->layer_count; i++)
        for (size_t k = 0; k < plan->graph->layers[i].layer.buffer_count; k++)
            count += plan->graph->layers[i].layer.buffers[k].count;
    return count;
}

void dv_buckets_book(dv_plan *plan) {
    for (size_t b = 0; b < plan->bucket_count; b++)
        book(plan, &plan->buckets[b]);
    if (dv_plan_has_buckets(plan) && !plan->options.sync_norm)
        plan->statistics = dv_plan_book(plan, dv_statistics_count(plan) * sizeof(float), plan->loss_at,
                                        (int)plan->operation_count - 1);
}
