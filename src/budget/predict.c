/* Noise and time of a choice, value by value.
 *
 *     noise   of a packed value: what the probe found, by its bits or levels; of what goes through values that are
 *             recomputed from it, the part that their readers have of it, as far as they are recomputed; of what
 *             goes back from norms, what is left of it in a batch of so many images
 *     time    of a packed value: to encode it once and to decode it as often as it is loaded. A load of a recomputed
 *             value is one of all that it is recomputed from; what a norm normalises for it costs a pass more, but not
 *             if a lean code is decoded and normalised at once */
#include "base/status.h"
#include "budget/profile.h"

#include <stdlib.h>

/* ---- sites ----------------------------------------------------------------------------------- */

static int index_of(const dv_graph *graph, dv_value value) {
    return graph->values[value].producer + 1;
}

static int count_readers(const dv_plan *plan, dv_value value) {
    int readers = 0;
    for (int i = 0; i < (int)plan->graph->layer_count; i++)
        readers += dv_plan_reads(plan, i, value);
    return readers;
}

static bool is_normed(const dv_plan *plan, dv_value value) {
    for (int i = 0; i < (int)plan->graph->layer_count; i++)
        if (plan->graph->layers[i].layer.kind->normalises && dv_plan_reads(plan, i, value))
            return true;
    return false;
}

/* The index of what a norm makes the value of, or -1. */
static int normalised_by(const dv_plan *plan, dv_value value) {
    int producer = plan->graph->values[value].producer;
    if (producer == DV_INPUT || !plan->graph->layers[producer].layer.kind->normalises)
        return -1;
    return index_of(plan->graph, plan->graph->layers[producer].inputs[0]);
}

/* The index of the value whose mask would lie in a lean code of this one, or -1. */
static int gated_by(const dv_plan *plan, dv_value value) {
    int norm = dv_plan_gate(plan, value);
    return norm < 0 ? -1 : index_of(plan->graph, plan->graph->layers[norm].output);
}

static bool is_cut_off(const dv_plan *plan, dv_value value) {
    int producer = plan->graph->values[value].producer;
    return producer != DV_INPUT && plan->graph->layers[producer].layer.zero_outside_mask;
}

static dv_site site_of(const dv_plan *plan, size_t index) {
    dv_value value = dv_value_of_letter(plan->graph, index);
    const dv_map *map = &plan->graph->values[value].map;
    return (dv_site){.read = dv_is_read(plan->values[value].numbers_read),
                     .normed = is_normed(plan, value),
                     .recomputable = dv_candidate_can(dv_candidate_of(DV_RECOMPUTED), plan, value),
                     .map = dv_map_image_elements(map) > map->channels,
                     .join = dv_plan_is_joined(plan, value),
                     .readers = count_readers(plan, value),
                     .normalises = normalised_by(plan, value),
                     .gates = gated_by(plan, value),
                     .cut_off = is_cut_off(plan, value),
                     .elements = dv_map_elements(map),
                     .bytes = dv_map_bytes(map)};
}

/* Lists the values that are made of each; layer by layer, so that those of one value are together in `takers`. */
static void list_takers(const dv_plan *plan, dv_sites *sites) {
    const dv_graph *graph = plan->graph;
    int *next = sites->takers;
    for (size_t v = 0; v < sites->count; v++) {
        sites->at[v].takers = next;
        for (size_t i = 0; i < graph->layer_count; i++)
            if (sites->at[i + 1].recomputable && dv_times_taken(&graph->layers[i], dv_value_of_letter(graph, v)) > 0) {
                *next++ = index_of(graph, graph->layers[i].output);
                sites->at[v].taker_count++;
            }
    }
}

/* A norm that reads a concatenation reads its parts, which come before it. */
static void mark_normed_parts(dv_sites *sites) {
    for (size_t i = sites->count; i-- > 0;)
        for (int k = 0; k < sites->at[i].taker_count; k++) {
            const dv_site *taker = &sites->at[sites->at[i].takers[k]];
            sites->at[i].normed = sites->at[i].normed || (taker->join && taker->normed);
        }
}

dv_status dv_sites_make(const dv_plan *none, dv_sites *sites, dv_error *error) {
    size_t inputs = 0;
    for (size_t i = 0; i < none->graph->layer_count; i++)
        inputs += none->graph->layers[i].layer.input_count;
    *sites = (dv_sites){.count = none->graph->layer_count + 1, .images = none->graph->batch};
    sites->at = calloc(sites->count, sizeof *sites->at);
    sites->takers = calloc(inputs + 1, sizeof *sites->takers);
    if (!sites->at || !sites->takers) {
        dv_sites_free(sites);
        return dv_fail(error, DV_ERROR_MEMORY, "budget: no memory");
    }
    for (size_t i = 0; i < sites->count; i++)
        sites->at[i] = site_of(none, i);
    list_takers(none, sites);
    mark_normed_parts(sites);
    return DV_OK;
}

void dv_sites_free(dv_sites *sites) {
    free(sites->at);
    free(sites->takers);
    *sites = (dv_sites){0};
}

/* ---- noise ----------------------------------------------------------------------------------- */

double dv_bits_noise(int bits) {
    double steps = (double)((1 << bits) - 1), probed = (double)((1 << DV_PROBE_BITS) - 1);
    return bits == 0 ? 0 : probed * probed / (steps * steps);
}

double dv_levels_noise(int levels, bool masked) {
    double more = masked ? -1 : 0, steps = (double)levels + more, probed = (double)DV_PROBE_LEVELS + more;
    return probed * probed / (steps * steps);
}

/* Concatenations count as what is made of them. A value of which no noise is known counts a little. */
double dv_predict_reach(const dv_profile *profile, const dv_sites *sites, const char *letters, int index) {
    static const double LITTLE = 1e-30;
    const dv_site *site = &sites->at[index];
    double sum = 0;
    for (int k = 0; k < site->taker_count; k++) {
        int taker = site->takers[k];
        bool join = sites->at[taker].join;
        if (!join && letters && letters[taker] != DV_RECOMPUTED)
            continue;
        sum += join ? 0 : profile->noise[taker].direct[DV_NOISE_CODE] + LITTLE;
        sum += dv_predict_reach(profile, sites, letters, taker);
    }
    return sum;
}

/* The part of what can go through values recomputed from this one that does. */
static double part_through(const dv_profile *profile, const dv_sites *sites, const char *letters, int index) {
    double most = dv_predict_reach(profile, sites, NULL, index);
    return most > 0 ? dv_predict_reach(profile, sites, letters, index) / most : 0;
}

static bool is_lean(char letter) {
    const dv_candidate *candidate = dv_candidate_of(letter);
    return candidate && candidate->levels > 0;
}

/* Of a value that is packed by bits: whether its mask lies in the code of what was normalised. */
static bool has_noise_outside(const dv_sites *sites, const char *letters, int index) {
    int of = sites->at[index].normalises;
    return of >= 0 && sites->at[of].gates == index && is_lean(letters[of]);
}

static double noise_of_bits(const dv_candidate *candidate, const dv_sites *sites, const char *letters, int index,
                            const double *noise) {
    return dv_bits_noise(candidate->bits) *
           noise[has_noise_outside(sites, letters, index) ? DV_NOISE_OUTSIDE : DV_NOISE_CODE];
}

static double noise_of_levels(const dv_candidate *candidate, const dv_sites *sites, int index, const double *noise) {
    const dv_site *site = &sites->at[index];
    bool masked = site->gates >= 0 || site->cut_off;
    return dv_levels_noise(candidate->levels, masked) * noise[DV_NOISE_LEAN] + noise[DV_NOISE_FLOOR];
}

static double noise_of(const dv_candidate *candidate, const dv_sites *sites, const char *letters, int index,
                       const double *noise) {
    return candidate->levels > 0 ? noise_of_levels(candidate, sites, index, noise)
                                 : noise_of_bits(candidate, sites, letters, index, noise);
}

/* What goes back from norms, in a batch of so many images -> back [DV_NOISE_KINDS]. */
static void scale_back(const dv_profile *profile, const dv_sites *sites, int index, double *back) {
    double images = (double)profile->images / (double)sites->images;
    for (int kind = 0; kind < DV_NOISE_KINDS; kind++) {
        double steady = profile->steady[kind];
        back[kind] = (steady + (1 - steady) * images) * profile->noise[index].back[kind];
    }
}

double dv_predict_value_noise(const dv_profile *profile, const dv_sites *sites, const char *letters, int index) {
    const dv_candidate *candidate = dv_candidate_of(letters[index]);
    const dv_value_noise *noise = &profile->noise[index];
    double back[DV_NOISE_KINDS];
    if (!candidate || candidate->bits == 0)
        return 0;
    scale_back(profile, sites, index, back);
    return noise_of(candidate, sites, letters, index, noise->direct) +
           noise_of(candidate, sites, letters, index, back) +
           part_through(profile, sites, letters, index) * noise_of(candidate, sites, letters, index, noise->through);
}

double dv_predict_noise(const dv_profile *profile, const dv_sites *sites, const char *letters) {
    double noise = 0;
    for (size_t i = 0; i < sites->count; i++)
        noise += dv_predict_value_noise(profile, sites, letters, (int)i);
    return noise;
}

/* ---- time ------------------------------------------------------------------------------------ */

static size_t row_of(const dv_candidate *candidate) {
    return (size_t)(candidate - dv_candidate_at(0));
}

/* How often each value is loaded: by layers, and for recomputed values that are. Those come later in the order. */
static void count_loads(const dv_sites *sites, const char *letters, dv_loads *loads) {
    for (size_t i = sites->count; i-- > 0;) {
        const dv_site *site = &sites->at[i];
        loads[i] = (dv_loads){.all = site->readers};
        for (int k = 0; k < site->taker_count; k++) {
            int taker = site->takers[k];
            if (letters[taker] != DV_RECOMPUTED)
                continue;
            loads[i].all += loads[taker].all;
            loads[i].for_norm += sites->at[taker].normalises == (int)i ? loads[taker].all : 0;
        }
    }
}

double dv_predict_value_seconds(const dv_profile *profile, const dv_sites *sites, int index, char letter,
                                dv_loads loads) {
    const dv_candidate *candidate = dv_candidate_of(letter);
    double elements = (double)sites->at[index].elements;
    if (!candidate)
        return 0;
    size_t row = row_of(candidate);
    double normalised = candidate->keeper == &dv_keep_lean ? 0 : profile->recompute;
    return elements * (profile->encode[row] + loads.all * profile->decode[row] + loads.for_norm * normalised);
}

double dv_predict_more_seconds(const dv_profile *profile, const dv_sites *sites, const char *letters, dv_loads *loads) {
    double seconds = 0;
    count_loads(sites, letters, loads);
    for (size_t i = 0; i < sites->count; i++)
        seconds += dv_predict_value_seconds(profile, sites, (int)i, letters[i], loads[i]);
    return seconds;
}
