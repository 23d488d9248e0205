/* What the network between ranks can do, as sums over all of them have it. */
#include <division/tools/scaling.h>

#include "base/clock.h"
#include "base/status.h"
#include "parallel/world.h"

#include <stdlib.h>

enum { FEW = 64, MANY = 4 << 20, SUMS = 5 }; /* elements of a small and of a large sum; how often each is done */

dv_status dv_world_meet(dv_world *world, dv_error *error) {
    double nothing = 0;
    DV_NEED(world);
    return dv_world_sum(world, DV_SUM_F64, &nothing, 1, "a meeting", error);
}

/* The shortest of several: others were held up. All begin together. */
static dv_status time_sum(dv_world *world, float *data, size_t count, double *seconds, dv_error *error) {
    *seconds = 1e9;
    for (int i = 0; i < SUMS; i++) {
        DV_TRY(dv_world_meet(world, error));
        double begun = dv_now();
        DV_TRY(dv_world_sum(world, DV_SUM_F32, data, count, "a measurement", error));
        double took = dv_now() - begun;
        *seconds = took < *seconds ? took : *seconds;
    }
    return DV_OK;
}

/* What dv_scaling_predict's model makes of the two times. Ranks are taken for a power of two. */
static dv_link link_of(size_t ranks, double few, double many) {
    double rounds = 0, bytes = (double)(MANY - FEW) * sizeof(float);
    for (size_t power = 2; power <= ranks; power *= 2)
        rounds += 2;
    double sent = 2 * bytes * (double)(ranks - 1) / (double)ranks;
    return (dv_link){.bandwidth = sent / (many > few ? many - few : 1e-9), .latency = few / rounds};
}

dv_status dv_world_measure(dv_world *world, dv_link *link, dv_error *error) {
    double few, many;
    DV_NEED(world);
    DV_NEED(link);
    if (dv_world_alone(world))
        return dv_fail(error, DV_ERROR_ARGUMENT, "one rank has no network: start several");
    float *data = calloc(MANY, sizeof *data);
    if (!data)
        return dv_fail(error, DV_ERROR_MEMORY, "no memory for a measurement of the network: free some");
    dv_status status = time_sum(world, data, FEW, &few, error);
    if (status == DV_OK)
        status = time_sum(world, data, MANY, &many, error);
    free(data);
    if (status == DV_OK)
        *link = link_of(dv_world_ranks(world), few, many);
    return status;
}
