/* What the files of a probe share. */
#ifndef DV_BUDGET_PROBE_H
#define DV_BUDGET_PROBE_H

#include "budget/profile.h"
#include "graph/run.h"

/* A run that is looked on at: a sample of its gradients, and how long its operations took at least. */
typedef struct dv_probe_run {
    dv_plan *plan;
    dv_run *run;
    size_t sample_count;
    size_t *sample_at; /* [layer_count x DV_LAYER_MAX_PARAMETERS]: where the sample of a parameter begins */
    float *sample;     /* [sample_count], of the last step */
    double *seconds;   /* [operation_count] */
} dv_probe_run;

/* Plans the graph with a method, maps it and has the caller's weights set. DV_ERROR_MEMORY if it takes more than `most`
 * bytes (0: any number). */
dv_status dv_probe_begin(dv_graph *graph, const dv_plan_options *options, const char *method, const dv_probe *probe,
                         size_t most, dv_probe_run *made, dv_error *error);
void dv_probe_end(dv_probe_run *run);

/* A step on a batch with random numbers of `draw`; weights stay as they are. */
dv_status dv_probe_step(dv_probe_run *run, const dv_probe *probe, size_t batch, uint64_t draw, dv_error *error);

/* The squared distance of the last step's gradient to that of the sample `other`: the sum over all parameters, as far
 * as a sample tells. */
double dv_probe_distance(const dv_probe_run *run, const float *other);

/* Seconds of all operations of the kinds from `first` to `last`. */
double dv_probe_seconds(const dv_probe_run *run, dv_operation_kind first, dv_operation_kind last);

/* speeds.c: how long candidates' codecs take per element of a map like this one. */
dv_status dv_probe_codecs(const dv_map *like, dv_profile *profile, dv_error *error);

#endif
