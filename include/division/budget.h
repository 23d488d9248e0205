/* A memory budget: of all the ways in which the values of a network can be kept, the best that fits in so many bytes.
 *
 *     dv_profile_new(small, &options, &probe, &profile, &error);             what each way costs, by a few steps
 *     dv_budget_new(graph, &options, profile, &limits, &budget, &error);     the curve from the least memory to the
 * most const dv_budget_point *point = dv_budget_choose(budget, bytes);        the best of it that fits options.method =
 * point->method;
 *
 * Bytes are the plan's, exact as ever. Noise and time are predicted: of each value on its own, as if noise of one value
 * knew nothing of the others'. dv_training_new does all of this where its options have `memory`.
 *
 * - Threads: A profile and a budget do not change once they are made: any thread may read them. Probing uses OpenMP's
 *   threads and the callbacks' thread is the caller's.
 * - Fork: A child may use what it inherited; division/threads.h says what it may do with steps.
 * - Freeing: Who makes a profile or a budget frees it. A budget needs neither graph nor profile any more; points and
 *   their text live as long as the budget. */
#ifndef DIVISION_BUDGET_H
#define DIVISION_BUDGET_H

#include <division/export.h>
#include <division/graph.h>
#include <division/status.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- what it costs ------------------------------------------------------------------------- */

/* What a probe is done with. */
typedef struct dv_probe {
    size_t batches; /* whose exact gradients are compared, 2 to 64; 0: 12 */
    uint64_t seed;  /* of the weights */
    dv_status (*prepare)(void *context, dv_run *run, dv_error *error); /* sets other weights; NULL: none */
    dv_status (*fill)(void *context, size_t batch, dv_run *run,
                      dv_error *error); /* fills in images and targets of a batch */
    void *context;
} dv_probe;

/* What values cost, in noise and in time, when they are kept in one way or another. */
typedef struct dv_profile dv_profile;

/* Takes steps with the graph and looks at gradients and clocks. The graph may be one of fewer images than the training
 * has: time is in proportion. It is planned with `options`, but for the method; weights do not move. The plan's memory
 * is mapped meanwhile: with `most` bytes or fewer it must do, 0 for any number. */
DV_API dv_status dv_profile_new(dv_graph *graph, const dv_plan_options *options, const dv_probe *probe, size_t most,
                                dv_profile **profile, dv_error *error);

/* Looks at steps of a graph of more images, with what dv_profile_new has made: part of the noise is less in larger
 * batches, by that of the batch; without this, as if it were not. DV_ERROR_MEMORY if `most` bytes do not do; then the
 * profile is as it was. */
DV_API dv_status dv_profile_add_larger(dv_profile *profile, dv_graph *graph, const dv_plan_options *options,
                                       const dv_probe *probe, size_t most, dv_error *error);
DV_API void dv_profile_free(dv_profile *profile);

/* The profile of which nothing is known: no way of keeping values costs anything. For plans of the least memory. */
DV_API dv_status dv_profile_flat(dv_graph *graph, dv_profile **profile, dv_error *error);

/* A profile in a file, as JSON, and back for a graph of the same layers: a network is probed once and planned often, or
 * probed on the machine that it is planned for. DV_ERROR_FORMAT if it is no profile, or that of another network. */
DV_API dv_status dv_profile_write(const dv_profile *profile, const dv_graph *graph, const char *path, dv_error *error);
DV_API dv_status dv_profile_read(const dv_graph *graph, const char *path, dv_profile **profile, dv_error *error);

/* ---- the best that fits -------------------------------------------------------------------- */

/* What counts among all that fits: time with noise up to a limit, or noise with time up to 1.25 of that of `none`. */
typedef enum dv_prefer { DV_PREFER_TIME, DV_PREFER_NOISE } dv_prefer;

typedef struct dv_budget_limits {
    double noise; /* most noise: its variance by that of the batch; below 0: that of published `division` */
    dv_prefer prefer;
    int spill; /* 1: values may lie in a file */
} dv_budget_limits;

/* One way to keep all values. */
typedef struct dv_budget_point {
    const char *method; /* for dv_plan_options.method */
    size_t planned;     /* bytes of the plan */
    double noise;       /* predicted: variance of the gradient's noise by that of the batch */
    double seconds;     /* ... of a step */
} dv_budget_point;

typedef struct dv_budget dv_budget;

/* The curve of a graph whose layers are those of the profile's. Nothing is run. DV_ERROR_OPTION if nothing is within
 * the limits. */
DV_API dv_status dv_budget_new(dv_graph *graph, const dv_plan_options *options, const dv_profile *profile,
                               const dv_budget_limits *limits, dv_budget **budget, dv_error *error);
DV_API void dv_budget_free(dv_budget *budget);

/* The curve: points from the least memory to the most, each better than all before it; NULL past the last. */
DV_API const dv_budget_point *dv_budget_point_at(const dv_budget *budget, size_t index);

/* The last of them whose plan has at most so many bytes; NULL: none. */
DV_API const dv_budget_point *dv_budget_choose(const dv_budget *budget, size_t bytes);

/* What is compared with: `none`, and published `division`. Their methods are "none" and "division". */
DV_API const dv_budget_point *dv_budget_none(const dv_budget *budget);
DV_API const dv_budget_point *dv_budget_division(const dv_budget *budget);

#ifdef __cplusplus
}
#endif

#endif
