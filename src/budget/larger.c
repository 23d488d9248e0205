/* Noise in larger batches. Noise of a value that a convolution reads is of each image, as the gradient's own is, and
 * both fall alike with the number of images. A norm multiplies noise of what it normalises by a mean over the batch,
 * which is itself the smaller the more images it is of: what goes back from it falls faster, as far as that mean is
 * chance. How far, a few steps of more images tell, with all coarse that norms read. */
#include "budget/probe.h"

#include "base/sizes.h"
#include "base/status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BATCHES = 4 };

static const char RECOMPUTED = DV_RECOMPUTED, COARSE = 'b', LEAN = 'w', COARSE_LEAN = 'l';

typedef struct look {
    dv_graph *graph;
    const dv_plan_options *options;
    const dv_probe *probe;
    size_t most;
    dv_sites sites;
    dv_profile *profile;
    char *method;
    size_t batches;
    float *references[MOST_BATCHES];
} look;

/* Steps with a method: gradients that are kept as references, or their mean squared distance to these -> *distance. */
static dv_status take_steps(look *l, const char *method, double *distance, dv_error *error) {
    dv_probe_run run;
    dv_status status = dv_probe_begin(l->graph, l->options, method, l->probe, l->most, &run, error);
    for (size_t b = 0; status == DV_OK && b < l->batches; b++) {
        status = dv_probe_step(&run, l->probe, b, b, error);
        if (status == DV_OK && distance)
            *distance += dv_probe_distance(&run, l->references[b]) / (double)l->batches;
        else if (status == DV_OK)
            status = dv_probe_keep(&run, &l->references[b], error);
    }
    dv_probe_end(&run);
    return status;
}

/* The part of what goes back that is as it was, from the noise of a kind in this batch. */
static double steady_part(const look *l, dv_noise_kind kind, double noise) {
    double images = (double)l->profile->images / (double)l->graph->batch, back = 0, rest = 0;
    for (size_t i = 0; i < l->sites.count; i++) {
        const dv_value_noise *found = &l->profile->noise[i];
        bool coarse = !dv_probe_stays(&l->sites.at[i]);
        back += coarse ? found->back[kind] : 0;
        rest += coarse ? found->direct[kind] + found->through[kind] : 0;
    }
    double left = back > 0 ? (noise - rest) / back : 1;
    return fmin(fmax((left - images) / (1 - images), 0), 1);
}

/* Noise with letters for all that norms read, by the variance of such batches. */
static dv_status find_noise(look *l, char others, double *noise, dv_error *error) {
    double distance = 0, unit = l->profile->unit * (double)l->profile->images / (double)l->graph->batch;
    dv_probe_letters(&l->sites, others, RECOMPUTED, l->method);
    DV_TRY(take_steps(l, l->method, &distance, error));
    *noise = distance / unit;
    return DV_OK;
}

static dv_status look_at(look *l, dv_error *error) {
    double code, lean, floor;
    DV_TRY(dv_probe_sites(l->graph, l->options, &l->sites, error));
    l->method = calloc(l->sites.count + 16, 1);
    if (!l->method)
        return dv_fail(error, DV_ERROR_MEMORY, "probe: no memory");
    DV_TRY(take_steps(l, "checkpoint", NULL, error));
    DV_TRY(find_noise(l, COARSE, &code, error));
    DV_TRY(find_noise(l, COARSE_LEAN, &lean, error));
    DV_TRY(find_noise(l, LEAN, &floor, error));
    l->profile->steady[DV_NOISE_CODE] = steady_part(l, DV_NOISE_CODE, code);
    l->profile->steady[DV_NOISE_LEAN] = steady_part(l, DV_NOISE_LEAN, lean - floor);
    l->profile->steady[DV_NOISE_FLOOR] = steady_part(l, DV_NOISE_FLOOR, floor);
    return DV_OK;
}

dv_status dv_profile_add_larger(dv_profile *profile, dv_graph *graph, const dv_plan_options *options,
                                const dv_probe *probe, size_t most, dv_error *error) {
    DV_NEED(profile);
    DV_NEED(graph);
    DV_NEED(options);
    DV_NEED(probe);
    if (graph->layer_count + 1 != profile->value_count || !(profile->unit > 0) || graph->batch <= profile->images)
        return dv_fail(error, DV_ERROR_ARGUMENT,
                       "probe: a profile that was just made is needed, of fewer than %zu images of this network",
                       graph->batch);
    look l = {.graph = graph, .options = options, .probe = probe, .most = most, .profile = profile};
    l.batches = probe->batches > 0 ? dv_smaller(probe->batches, MOST_BATCHES) : MOST_BATCHES;
    dv_status status = look_at(&l, error);
    for (size_t b = 0; b < MOST_BATCHES; b++)
        free(l.references[b]);
    dv_sites_free(&l.sites);
    free(l.method);
    return status;
}
