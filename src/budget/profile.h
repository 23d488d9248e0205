/* What is known of a network's values: what keeping them costs. Found by probe.c, used by predict.c. */
#ifndef DV_BUDGET_PROFILE_H
#define DV_BUDGET_PROFILE_H

#include "graph/candidate.h"

#include <division/budget.h>

/* Noise is told for codes of so many bits; that of others follows: a step of the code is the range by 2^bits - 1, and
 * noise its square. */
enum { DV_PROBE_BITS = 2, DV_PROFILE_MOST_CANDIDATES = 16 };

struct dv_profile {
    size_t value_count; /* 1 + layers: in the order of letters (graph/candidate.h) */
    size_t images;      /* of the steps that were timed */

    /* Per value: variance of the gradient's noise by that of the batch, if it alone is packed with DV_PROBE_BITS; and
     * if besides all is recomputed from it that can be. */
    double *direct, *through;

    /* Seconds of a step of `images`. */
    double *forward;                       /* [value_count - 1]: of each layer */
    double images_seconds, update_seconds; /* of all that `none` does: what grows with images, and what does not */
    double encode[DV_PROFILE_MOST_CANDIDATES], decode[DV_PROFILE_MOST_CANDIDATES]; /* by candidate, per element */
    double recompute; /* per element of what a norm normalises, if its output is recomputed from it and it does not come
                       * normalised */
};

dv_status dv_profile_allocate(size_t value_count, dv_profile **profile, dv_error *error);

/* What dv_profile_read reads from a file, of a text; `name` is for messages. */
dv_status dv_profile_parse(const char *name, const char *text, size_t bytes, const dv_graph *graph,
                           dv_profile **profile, dv_error *error);

/* The noise of codes of so many bits by that of DV_PROBE_BITS, subtractive dither. 0 bits: nothing is lost. */
double dv_bits_noise(int bits);

/* ---- predict.c ------------------------------------------------------------------------------- */

/* What predictions want to know of a graph: made once from the plan that keeps all exactly. */
typedef struct dv_site {
    bool read; /* backward reads its numbers */
    bool recomputable, map, join;
    int readers;    /* layers whose backward reads it */
    int normalises; /* the value that a norm makes it of, or -1 */
    size_t elements, bytes;
    int taker_count;
    const int *takers; /* indices of values that are made of it by layers that can recompute them */
} dv_site;

typedef struct dv_sites {
    size_t count; /* in the order of letters */
    dv_site *at;
    int *takers; /* all of them */
} dv_sites;

dv_status dv_sites_make(const dv_plan *none, dv_sites *sites, dv_error *error);
void dv_sites_free(dv_sites *sites);

/* The noise that letters come to. */
double dv_predict_noise(const dv_profile *profile, const dv_sites *sites, const char *letters);

/* How often a value is loaded in a step, and how often of these for the output of a norm that is recomputed from it. */
typedef struct dv_loads {
    int all, for_norm;
} dv_loads;

/* What one value has of it: that of a value changes with its letter, and with which values are recomputed. */
double dv_predict_value_noise(const dv_profile *profile, const dv_sites *sites, const char *letters, int index);
double dv_predict_value_seconds(const dv_profile *profile, const dv_sites *sites, int index, char letter,
                                dv_loads loads);

/* The seconds that letters come to beside those of `none`, without replays; sets `loads` [count]. */
double dv_predict_more_seconds(const dv_profile *profile, const dv_sites *sites, const char *letters, dv_loads *loads);

#endif
