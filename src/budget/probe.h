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

/* The squared distance of the last step's gradient to that of the sample `other`, times `scale`, as far as a sample
 * tells: added to `sums` [layer_count], by the layer whose parameters they are. */
void dv_probe_distances(const dv_probe_run *run, const float *other, double scale, double *sums);
double dv_probe_distance(const dv_probe_run *run, const float *other); /* of all layers */

/* A copy of the sample, which the caller frees. */
dv_status dv_probe_keep(const dv_probe_run *run, float **sample, dv_error *error);

/* Seconds of all operations of the kinds from `first` to `last`. */
double dv_probe_seconds(const dv_probe_run *run, dv_operation_kind first, dv_operation_kind last);

/* sinks.c: whose noise it is that gradients have -> each of `members` its part. Values are recomputed as `letters` say.
 * `noise` [layer_count] is that of all of them together. */
typedef struct dv_probe_members {
    size_t count;
    size_t *at; /* [count] indices of values */
} dv_probe_members;

void dv_probe_share(const dv_plan *plan, const dv_sites *sites, const char *letters, const dv_probe_members *members,
                    const double *noise, dv_noise_kind kind, dv_value_noise *found);

/* The floor of lean codes: whether a value has one, and its part of what members have together. What lies outside of a
 * mask is zero in what is recomputed, and so is its gradient: it goes back alone, by way of the means that other noise
 * of the value goes back by. */
bool dv_probe_has_floor(const dv_site *site);
void dv_probe_share_floor(const dv_probe_members *members, double noise, dv_value_noise *found);

/* probe.c: whether noise of a value stays with the layers that read it, as that of what norms make does; and a method
 * whose letters are `stay` for the maps of which that is so, `others` for the others. With DV_RECOMPUTED for `stay`,
 * what cannot be recomputed has 8 bits. */
bool dv_probe_stays(const dv_site *site);
void dv_probe_letters(const dv_sites *sites, char others, char stay, char *method);

/* Of a graph with these options. */
dv_status dv_probe_sites(dv_graph *graph, const dv_plan_options *options, dv_sites *sites, dv_error *error);

/* speeds.c: how long candidates' codecs take per element of a map like this one. */
dv_status dv_probe_codecs(const dv_map *like, dv_profile *profile, dv_error *error);

#endif
