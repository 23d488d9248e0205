/* Adding up over ranks: gradients bucket by bucket while backward goes on, running statistics beside them. */
#include "base/float16.h"
#include "base/status.h"
#include "graph/run.h"

#include <division/tools/scaling.h>
#include <string.h>

dv_status dv_run_join(dv_run *run, dv_world *world, dv_error *error) {
    DV_NEED(run);
    size_t planned = run->plan->options.ranks > 0 ? run->plan->options.ranks : 1;
    if (planned != dv_world_ranks(world))
        return dv_fail(error, DV_ERROR_ARGUMENT, "run: planned for %zu ranks, and there are %zu: plan for as many",
                       planned, dv_world_ranks(world));
    run->world = world;
    return DV_OK;
}

dv_status dv_run_check_joined(const dv_run *run, dv_error *error) {
    if (run->plan->options.ranks <= 1 || run->world)
        return DV_OK;
    return dv_fail(error, DV_ERROR_ARGUMENT, "run: planned for %zu ranks: call dv_run_join first",
                   run->plan->options.ranks);
}

dv_ranks_norm dv_run_norm(const dv_run *run) {
    size_t told = run->now.told.all_images, each = run->images * run->plan->options.ranks;
    if (!run->plan->options.sync_norm || !run->now.training || dv_world_alone(run->world))
        return (dv_ranks_norm){NULL, 0};
    return (dv_ranks_norm){run->world, told > 0 ? told : each};
}

/* ---- gradients ------------------------------------------------------------------------------- */

static void to_wire(const float *gradients, size_t count, uint16_t *wire) {
#pragma omp parallel for simd schedule(static)
    for (size_t i = 0; i < count; i++)
        wire[i] = dv_bf16_nearest(gradients[i]);
}

static void from_wire(const uint16_t *wire, size_t count, float *gradients) {
#pragma omp parallel for simd schedule(static)
    for (size_t i = 0; i < count; i++)
        gradients[i] = dv_bf16_to_f32(wire[i]);
}

dv_status dv_run_reduce(dv_run *run, int index, dv_error *error) {
    const dv_bucket *bucket = &run->plan->buckets[index];
    float *gradients = dv_run_piece(run, bucket->piece);
    uint16_t *wire = dv_run_piece(run, bucket->wire);
    if (wire)
        to_wire(gradients, bucket->count, wire);
    run->reduced[index] = false;
    return dv_world_start_sum(run->world, wire ? DV_SUM_BF16 : DV_SUM_F32, wire ? (void *)wire : gradients,
                              bucket->count, &run->reductions[index], error);
}

dv_status dv_run_reduce_last(dv_run *run, int last, dv_error *error) {
    DV_NEED(run);
    if (last && run->plan->options.gradients != DV_GRADIENTS_KEPT)
        return dv_fail(error, DV_ERROR_ARGUMENT,
                       "run: gradients are transient, and gone when backward has ended: keep "
                       "them");
    run->reduce_last = last != 0;
    return DV_OK;
}

dv_status dv_run_reduced(dv_run *run, int index, dv_error *error) {
    const dv_bucket *bucket = &run->plan->buckets[index];
    if (run->reduced[index])
        return DV_OK;
    const char *name = run->plan->graph->layers[bucket->last].layer.name;
    DV_TRY(dv_world_wait(run->world, &run->reductions[index], name, error));
    if (bucket->wire != DV_NO_PIECE)
        from_wire(dv_run_piece(run, bucket->wire), bucket->count, dv_run_piece(run, bucket->piece));
    run->reduced[index] = true;
    return DV_OK;
}

void dv_run_leave(dv_run *run) {
    for (size_t b = 0; run->reductions && b < run->plan->bucket_count; b++)
        dv_world_forget(run->world, &run->reductions[b]);
    dv_world_forget(run->world, &run->shared_statistics);
}

/* ---- running statistics ---------------------------------------------------------------------- */

/* All of them, one behind the other, to the copy or back from it, then divided by the number of ranks. */
static void copy_statistics(dv_run *run, bool back) {
    float *copy = dv_run_piece(run, run->plan->statistics), scale = 1 / (float)run->plan->options.ranks;
    for (size_t i = 0; i < run->plan->graph->layer_count; i++) {
        const dv_layer *layer = &run->plan->graph->layers[i].layer;
        for (size_t k = 0; k < layer->buffer_count; k++) {
            size_t count = layer->buffers[k].count;
            float *own = run->arrays[i].buffers[k];
            memcpy(back ? own : copy, back ? copy : own, count * sizeof *own);
            for (size_t j = 0; back && j < count; j++)
                own[j] *= scale;
            copy += count;
        }
    }
}

static bool shares_statistics(const dv_run *run) {
    return run->plan->statistics != DV_NO_PIECE && run->world && !run->now.told.more;
}

dv_status dv_run_share_statistics(dv_run *run, dv_error *error) {
    if (!shares_statistics(run))
        return DV_OK;
    copy_statistics(run, false);
    return dv_world_start_sum(run->world, DV_SUM_F32, dv_run_piece(run, run->plan->statistics),
                              dv_statistics_count(run->plan), &run->shared_statistics, error);
}

dv_status dv_run_end_reductions(dv_run *run, dv_error *error) {
    for (size_t b = 0; run->reduce_last && !run->now.told.more && b < run->plan->bucket_count; b++)
        DV_TRY(dv_run_reduce(run, (int)b, error));
    for (size_t b = 0; !run->now.told.more && b < run->plan->bucket_count; b++)
        DV_TRY(dv_run_reduced(run, (int)b, error));
    if (!shares_statistics(run))
        return DV_OK;
    DV_TRY(dv_world_wait(run->world, &run->shared_statistics, "running statistics", error));
    copy_statistics(run, true);
    return DV_OK;
}
