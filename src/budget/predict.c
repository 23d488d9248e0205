/* Noise and time of a choice, value by value.
 *
 *     noise   of a packed value: what the probe found, by its bits; between `direct` and `through`, by the part of the
 *             values made of it that are recomputed
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

/* The index of what a norm makes the value of, or -1. */
static int normalised_by(const dv_plan *plan, dv_value value) {
    int producer = plan->graph->values[value].producer;
    if (producer == DV_INPUT || !plan->graph->layers[producer].layer.kind->normalises)
        return -1;
    return index_of(plan->graph, plan->graph->layers[producer].inputs[0]);
}

static dv_site site_of(const dv_plan *plan, size_t index) {
    dv_value value = dv_value_of_letter(plan->graph, index);
    const dv_map *map = &plan->graph->values[value].map;
    return (dv_site){.read = dv_is_read(plan->values[value].numbers_read),
                     .recomputable = dv_candidate_can(dv_candidate_of(DV_RECOMPUTED), plan, value),
                     .map = dv_map_image_elements(map) > map->channels,
                     .join = dv_plan_is_joined(plan, value),
                     .readers = count_readers(plan, value),
                     .normalises = normalised_by(plan, value),
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

dv_status dv_sites_make(const dv_plan *none, dv_sites *sites, dv_error *error) {
    size_t inputs = 0;
    for (size_t i = 0; i < none->graph->layer_count; i++)
        inputs += none->graph->layers[i].layer.input_count;
    *sites = (dv_sites){.count = none->graph->layer_count + 1};
    sites->at = calloc(sites->count, sizeof *sites->at);
    sites->takers = calloc(inputs + 1, sizeof *sites->takers);
    if (!sites->at || !sites->takers) {
        dv_sites_free(sites);
        return dv_fail(error, DV_ERROR_MEMORY, "budget: no memory");
    }
    for (size_t i = 0; i < sites->count; i++)
        sites->at[i] = site_of(none, i);
    list_takers(none, sites);
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

static double noise_of(const dv_candidate *candidate) {
    return candidate->noise > 0 ? candidate->noise : dv_bits_noise(candidate->bits);
}

/* Of the values made of this one, how many there are and how many of them are recomputed; concatenations count as what
 * is made of them. */
static void count_through(const dv_sites *sites, const char *letters, int index, int *all, int *recomputed) {
    const dv_site *site = &sites->at[index];
    for (int k = 0; k < site->taker_count; k++) {
        int taker = site->takers[k];
        if (sites->at[taker].join) {
            count_through(sites, letters, taker, all, recomputed);
            continue;
        }
        ++*all;
        *recomputed += letters[taker] == DV_RECOMPUTED;
    }
}

double dv_predict_value_noise(const dv_profile *profile, const dv_sites *sites, const char *letters, int index) {
    const dv_candidate *candidate = dv_candidate_of(letters[index]);
    int all = 0, recomputed = 0;
    if (!candidate || candidate->bits == 0)
        return 0;
    count_through(sites, letters, index, &all, &recomputed);
    double part = all > 0 ? (double)recomputed / all : 0;
    return noise_of(candidate) * ((1 - part) * profile->direct[index] + part * profile->through[index]);
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
