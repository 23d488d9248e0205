/* A step of several ranks, played through on paper: the operations of its plan take the time that they took one process
 * alone, and a bucket travels from its `reduce` on, behind the buckets before it.
 *
 *     rank       backward ... | backward ...  | backward ... | waits | update 0 | ...
 *     network                 [ bucket 0                             ][ bucket 1 ...
 *                             reduce 0        reduce 1
 *
 * A sum over p ranks is one of recursive halving and doubling, as MPI does it: every rank sends and receives each byte
 * twice, but for a p-th, in 2 log2 p rounds of messages. */
#include <division/tools/scaling.h>

#include "base/status.h"
#include "graph/run.h"

#include <math.h>
#include <stdlib.h>

/* Messages are moved along by a thread that looks after them now and then (parallel/world.c). */
static const double LOOK_SECONDS = 1e-4;

/* What the loss of a step, its hits and whether to stop take. */
enum { TALLY_BYTES = 40 };

dv_status dv_run_time_operations(dv_run *run, double *seconds, dv_error *error) {
    DV_NEED(run);
    run->seconds = seconds;
    return DV_OK;
}

/* ---- the network ----------------------------------------------------------------------------- */

/* Seconds of a sum over ranks. Where ranks are no power of two, those beyond it give their numbers away first, and get
 * the sum at the end. */
static double sum_seconds(const dv_link *link, size_t ranks, double bytes) {
    size_t power = 1;
    double rounds = 0, sent = 0;
    for (; 2 * power <= ranks; power *= 2)
        rounds += 2;
    if (power > 1)
        sent = 2 * bytes * (double)(power - 1) / (double)power;
    if (power < ranks) {
        rounds += 2;
        sent += 2 * bytes;
    }
    return rounds * (link->latency + LOOK_SECONDS) + sent / link->bandwidth;
}

/* ---- one rank -------------------------------------------------------------------------------- */

typedef struct timeline {
    const dv_plan *plan;
    const dv_step_times *alone;
    const dv_link *link;
    size_t ranks;
    double now;      /* of the rank, from the beginning of the step */
    double free_at;  /* when the network has done all that was begun */
    double *arrived; /* [bucket_count] when a bucket is there */
    dv_scaling found;
} timeline;

/* A transfer that begins now. Returns when it ends. */
static double begin_sum(timeline *t, double bytes) {
    double seconds = sum_seconds(t->link, t->ranks, bytes);
    t->free_at = fmax(t->now, t->free_at) + seconds;
    t->found.transfers += seconds;
    return t->free_at;
}

static void wait_until(timeline *t, double moment) {
    if (moment <= t->now)
        return;
    t->found.waiting += moment - t->now;
    t->now = moment;
}

static void compute(timeline *t, double seconds) {
    t->now += seconds;
    t->found.compute += seconds;
}

/* What the same operation took one process alone; 0 for those that it does not have. */
static double seconds_of(const dv_step_times *alone, const dv_operation *operation) {
    for (size_t p = 0; p < alone->plan->operation_count; p++) {
        const dv_operation *other = &alone->plan->operations[p];
        if (other->kind == operation->kind && other->index == operation->index)
            return alone->seconds[p];
    }
    return 0;
}

/* Bytes that a norm adds up over ranks in an operation: two sums for each channel, if it takes statistics of all. */
static double norm_bytes(const dv_plan *plan, const dv_operation *operation) {
    if (!plan->options.sync_norm || operation->kind > DV_BACKWARD || operation->kind == DV_LOSS)
        return 0;
    const dv_graph_layer *node = &plan->graph->layers[operation->index];
    if (!node->layer.kind->normalises || dv_plan_is_frozen(plan, operation->index))
        return 0;
    return 2 * sizeof(double) * (double)plan->graph->values[node->output].map.channels;
}

static double bucket_bytes(const dv_plan *plan, int bucket) {
    size_t element = plan->options.reduce == DV_REDUCE_BF16 ? sizeof(uint16_t) : sizeof(float);
    return (double)(plan->buckets[bucket].count * element);
}

static void perform(timeline *t, const dv_operation *operation, bool last_batch) {
    int bucket =
        operation->kind == DV_REDUCE || operation->kind == DV_UPDATE ? t->plan->layers[operation->index].bucket : -1;
    if (operation->kind == DV_REDUCE && last_batch)
        t->arrived[bucket] = begin_sum(t, bucket_bytes(t->plan, bucket));
    if (operation->kind == DV_UPDATE && bucket >= 0)
        wait_until(t, t->arrived[bucket]);
    compute(t, seconds_of(t->alone, operation));
    double bytes = norm_bytes(t->plan, operation);
    if (bytes > 0)
        wait_until(t, begin_sum(t, bytes));
}

static void play_batch(timeline *t, bool last) {
    for (size_t p = 0; p < t->plan->operation_count; p++) {
        perform(t, &t->plan->operations[p], last);
        if ((int)p == t->plan->loss_at && last && !t->plan->options.sync_norm)
            (void)begin_sum(t, (double)dv_statistics_count(t->plan) * sizeof(float));
    }
}

/* At the end of a step everything has arrived; then parameters are updated, unless they are, and the loss is shared. */
static void play(timeline *t) {
    for (size_t batch = 1; batch <= t->alone->batches; batch++)
        play_batch(t, batch == t->alone->batches);
    wait_until(t, t->free_at);
    compute(t, t->alone->update);
    wait_until(t, begin_sum(t, TALLY_BYTES));
}

/* ---- the prediction -------------------------------------------------------------------------- */

/* One rank sends nothing. */
static dv_scaling of_one(const dv_step_times *alone) {
    double batch = 0;
    for (size_t p = 0; p < alone->plan->operation_count; p++)
        batch += alone->seconds[p];
    double step = (double)alone->batches * batch + alone->update;
    return (dv_scaling){.compute = step, .step = step};
}

dv_status dv_scaling_predict(const dv_plan *plan, const dv_step_times *alone, const dv_link *link, size_t ranks,
                             dv_scaling *scaling, dv_error *error) {
    DV_NEED(plan);
    DV_NEED(alone);
    DV_NEED(link);
    DV_NEED(scaling);
    if (!dv_plan_has_buckets(plan) || plan->graph->layer_count != alone->plan->graph->layer_count)
        return dv_fail(error, DV_ERROR_ARGUMENT, "scaling: give a plan of the same network for several ranks");
    if (!(link->bandwidth > 0) || !(link->latency >= 0) || ranks == 0 || alone->batches == 0)
        return dv_fail(error, DV_ERROR_ARGUMENT, "scaling: bandwidth, ranks and batches must be above 0");
    *scaling = of_one(alone);
    if (ranks == 1)
        return DV_OK;
    timeline t = {.plan = plan, .alone = alone, .link = link, .ranks = ranks};
    t.arrived = calloc(plan->bucket_count + 1, sizeof *t.arrived);
    if (!t.arrived)
        return dv_fail(error, DV_ERROR_MEMORY, "scaling: no memory");
    play(&t);
    free(t.arrived);
    t.found.step = t.now;
    *scaling = t.found;
    return DV_OK;
}
