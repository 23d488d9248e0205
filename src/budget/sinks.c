/* Which gradients have the noise of which value. Noise in a value that a convolution reads is in the gradient of that
 * convolution's weights and nowhere else; noise in what a norm normalises is in that of the norm's parameters and, a
 * little, in what goes back from it to all layers before. Recomputed values hand it on to their own readers.
 *
 * So a layer's noise is that of the members of a group which it reads, itself (direct) or by way of recomputed values
 * (through); several share it by their elements. What a layer has that reads none of them has come back from the norms
 * behind it. */
#include "budget/probe.h"

typedef enum way { NONE, DIRECT, THROUGH } way;

typedef struct sharing {
    const dv_plan *plan;
    const dv_sites *sites;
    const char *letters;
    const dv_probe_members *members;
    dv_noise_kind kind;
    dv_value_noise *found;
} sharing;

/* How a layer comes to read a value, or one that is made of it: concatenations count as their parts. */
static way way_of(const sharing *s, size_t index, int layer, way so_far) {
    const dv_site *site = &s->sites->at[index];
    if (dv_plan_reads(s->plan, layer, dv_value_of_letter(s->plan->graph, index)))
        return so_far;
    for (int k = 0; k < site->taker_count; k++) {
        int taker = site->takers[k];
        bool join = s->sites->at[taker].join;
        way found = NONE;
        if (join || s->letters[taker] == DV_RECOMPUTED)
            found = way_of(s, (size_t)taker, layer, join ? so_far : THROUGH);
        if (found != NONE)
            return found;
    }
    return NONE;
}

static void add(const sharing *s, size_t index, way how, double noise) {
    dv_value_noise *to = &s->found[index];
    if (how == DIRECT)
        to->direct[s->kind] += noise;
    else
        to->through[s->kind] += noise;
}

/* The elements of all members that a layer reads. */
static double count_read(const sharing *s, int layer) {
    double elements = 0;
    for (size_t m = 0; m < s->members->count; m++)
        if (way_of(s, s->members->at[m], layer, DIRECT) != NONE)
            elements += (double)s->sites->at[s->members->at[m]].elements;
    return elements;
}

/* The noise of one layer that reads members. */
static void share_layer(const sharing *s, int layer, double elements, double noise) {
    for (size_t m = 0; m < s->members->count; m++) {
        size_t index = s->members->at[m];
        way how = way_of(s, index, layer, DIRECT);
        if (how != NONE)
            add(s, index, how, noise * (double)s->sites->at[index].elements / elements);
    }
}

/* Of what has come back from norms, all members that one reads have a part. */
static void share_rest(const sharing *s, double noise) {
    size_t count = 0;
    for (size_t m = 0; m < s->members->count; m++)
        count += s->sites->at[s->members->at[m]].normed;
    for (size_t m = 0; m < s->members->count; m++)
        if (s->sites->at[s->members->at[m]].normed)
            s->found[s->members->at[m]].back[s->kind] += noise / (double)count;
}

static void keep_positive(double *noise) {
    *noise = *noise > 0 ? *noise : 0;
}

void dv_probe_share(const dv_plan *plan, const dv_sites *sites, const char *letters, const dv_probe_members *members,
                    const double *noise, dv_noise_kind kind, dv_value_noise *found) {
    const sharing s = {plan, sites, letters, members, kind, found};
    double rest = 0;
    for (size_t m = 0; m < members->count; m++)
        found[members->at[m]].direct[kind] = found[members->at[m]].through[kind] = found[members->at[m]].back[kind] = 0;
    for (size_t i = 0; i < plan->graph->layer_count; i++) {
        double elements = count_read(&s, (int)i);
        if (elements > 0)
            share_layer(&s, (int)i, elements, noise[i]);
        else
            rest += noise[i];
    }
    share_rest(&s, rest);
    for (size_t m = 0; m < members->count; m++) {
        keep_positive(&found[members->at[m]].direct[kind]);
        keep_positive(&found[members->at[m]].through[kind]);
        keep_positive(&found[members->at[m]].back[kind]);
    }
}

bool dv_probe_has_floor(const dv_site *site) {
    return site->read && !dv_probe_stays(site) && site->gates >= 0;
}

void dv_probe_share_floor(const dv_probe_members *members, double noise, dv_value_noise *found) {
    static const double LITTLE = 1e-30; /* so that all have a part where nothing goes back */
    double sum = 0;
    for (size_t m = 0; m < members->count; m++)
        sum += found[members->at[m]].back[DV_NOISE_LEAN] + LITTLE;
    for (size_t m = 0; m < members->count; m++) {
        dv_value_noise *to = &found[members->at[m]];
        to->back[DV_NOISE_FLOOR] = noise * (to->back[DV_NOISE_LEAN] + LITTLE) / sum;
    }
}
