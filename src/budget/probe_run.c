/* Steps that are looked on at. Of each parameter's gradient a few thousand elements at equal distances are kept, so
 * that a probe takes little more than its plan: these differ from the whole by a few percent. */
#include "base/sizes.h"
#include "base/status.h"
#include "budget/probe.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SAMPLED = 4096 };

static size_t sampled(size_t count) {
    return dv_smaller(count, MOST_SAMPLED);
}

/* ---- looking on ------------------------------------------------------------------------------ */

static void take_sample(dv_probe_run *p, int layer) {
    const dv_layer *made = &p->plan->graph->layers[layer].layer;
    for (size_t k = 0; k < made->parameter_count; k++) {
        const float *gradient = p->run->arrays[layer].gradients[k];
        size_t count = made->parameters[k].count, kept = sampled(count);
        float *to = p->sample + p->sample_at[(size_t)layer * DV_LAYER_MAX_PARAMETERS + k];
        for (size_t i = 0; gradient && i < kept; i++)
            to[i] = gradient[i * count / kept];
    }
}

/* Gradients that are kept would add up over steps. */
static void look(void *context, dv_run *run, int at, double seconds) {
    dv_probe_run *p = context;
    const dv_operation *operation = &run->plan->operations[at];
    p->seconds[at] = seconds < p->seconds[at] ? seconds : p->seconds[at];
    if (operation->kind != DV_BACKWARD)
        return;
    take_sample(p, operation->index);
    if (run->plan->layers[operation->index].update_at < 0)
        dv_run_clear_gradients(run, operation->index);
}

/* ---- making ---------------------------------------------------------------------------------- */

static void lay_out_sample(dv_probe_run *p) {
    const dv_graph *graph = p->plan->graph;
    for (size_t i = 0; i < graph->layer_count; i++)
        for (size_t k = 0; k < graph->layers[i].layer.parameter_count; k++) {
            p->sample_at[i * DV_LAYER_MAX_PARAMETERS + k] = p->sample_count;
            p->sample_count += sampled(graph->layers[i].layer.parameters[k].count);
        }
}

static dv_status make(dv_probe_run *p, const dv_probe *probe, dv_error *error) {
    p->sample_at = calloc(p->plan->graph->layer_count * DV_LAYER_MAX_PARAMETERS + 1, sizeof *p->sample_at);
    p->seconds = calloc(p->plan->operation_count, sizeof *p->seconds);
    if (p->sample_at)
        lay_out_sample(p);
    p->sample = calloc(p->sample_count + 1, sizeof *p->sample);
    if (!p->sample_at || !p->seconds || !p->sample)
        return dv_fail(error, DV_ERROR_MEMORY, "probe: no memory");
    for (size_t i = 0; i < p->plan->operation_count; i++)
        p->seconds[i] = DBL_MAX;
    DV_TRY(dv_run_new(p->plan, probe->seed, &p->run, error));
    p->run->watch = (dv_watch){look, p};
    return probe->prepare ? probe->prepare(probe->context, p->run, error) : DV_OK;
}

dv_status dv_probe_begin(dv_graph *graph, const dv_plan_options *options, const char *method, const dv_probe *probe,
                         size_t most, dv_probe_run *made, dv_error *error) {
    dv_plan_options told = *options;
    told.method = method;
    *made = (dv_probe_run){0};
    DV_TRY(dv_plan_new(graph, &told, &made->plan, error));
    size_t planned = dv_plan_totals(made->plan).planned;
    dv_status status = DV_OK;
    if (most > 0 && planned > most)
        status = dv_fail(error, DV_ERROR_MEMORY, "probe: %.0f MB of %zu images do not fit in %.0f MB",
                         (double)planned * 1e-6, graph->batch, (double)most * 1e-6);
    if (status == DV_OK)
        status = make(made, probe, error);
    if (status != DV_OK)
        dv_probe_end(made);
    return status;
}

void dv_probe_end(dv_probe_run *run) {
    dv_run_free(run->run);
    dv_plan_free(run->plan);
    free(run->sample_at);
    free(run->sample);
    free(run->seconds);
    *run = (dv_probe_run){0};
}

/* ---- steps ----------------------------------------------------------------------------------- */

dv_status dv_probe_step(dv_probe_run *run, const dv_probe *probe, size_t batch, uint64_t draw, dv_error *error) {
    dv_step_result result;
    DV_TRY(probe->fill(probe->context, batch, run->run, error));
    return dv_run_train(run->run, &(dv_step){.batch = draw, .update = draw}, &result, error);
}

static double distance_of(const dv_probe_run *run, const float *other, size_t layer, size_t parameter) {
    size_t count = run->plan->graph->layers[layer].layer.parameters[parameter].count, kept = sampled(count);
    size_t at = run->sample_at[layer * DV_LAYER_MAX_PARAMETERS + parameter];
    double sum = 0;
    for (size_t j = at; j < at + kept; j++) {
        double distance = (double)run->sample[j] - (double)other[j];
        sum += distance * distance;
    }
    return sum * (double)count / (double)dv_larger(kept, 1);
}

void dv_probe_distances(const dv_probe_run *run, const float *other, double scale, double *sums) {
    const dv_graph *graph = run->plan->graph;
    for (size_t i = 0; i < graph->layer_count; i++)
        for (size_t k = 0; k < graph->layers[i].layer.parameter_count; k++)
            sums[i] += scale * distance_of(run, other, i, k);
}

double dv_probe_distance(const dv_probe_run *run, const float *other) {
    const dv_graph *graph = run->plan->graph;
    double sum = 0;
    for (size_t i = 0; i < graph->layer_count; i++)
        for (size_t k = 0; k < graph->layers[i].layer.parameter_count; k++)
            sum += distance_of(run, other, i, k);
    return sum;
}

dv_status dv_probe_keep(const dv_probe_run *run, float **sample, dv_error *error) {
    *sample = malloc((run->sample_count + 1) * sizeof **sample);
    if (!*sample)
        return dv_fail(error, DV_ERROR_MEMORY, "probe: no memory");
    memcpy(*sample, run->sample, run->sample_count * sizeof **sample);
    return DV_OK;
}

double dv_probe_seconds(const dv_probe_run *run, dv_operation_kind first, dv_operation_kind last) {
    double sum = 0;
    for (size_t i = 0; i < run->plan->operation_count; i++) {
        dv_operation_kind kind = run->plan->operations[i].kind;
        sum += kind >= first && kind <= last && run->seconds[i] < DBL_MAX ? run->seconds[i] : 0;
    }
    return sum;
}
