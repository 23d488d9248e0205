/* What is known of a network's values: what keeping them costs. Found by probe.c, used by predict.c. */
#ifndef DV_BUDGET_PROFILE_H
#define DV_BUDGET_PROFILE_H

#include "graph/candidate.h"

#include <division/budget.h>

/* Noise is told for codes of so many bits, or lean ones of so many levels; that of others follows: a step of the code
 * is the range by the number of steps, and noise its square. */
enum { DV_PROBE_BITS = 2, DV_PROBE_LEVELS = 3, DV_PROFILE_MOST_CANDIDATES = 16 };

/* What is told of each value apart, because values differ in how one kind compares with another. */
typedef enum dv_noise_kind {
    DV_NOISE_CODE,    /* codes of DV_PROBE_BITS; what a ReLU has cut off is zero, by a mask beside */
    DV_NOISE_OUTSIDE, /* the same, but the mask lies in another value's code: there is noise outside of it, too */
    DV_NOISE_LEAN,    /* lean codes of DV_PROBE_LEVELS, beyond the floor */
    DV_NOISE_FLOOR,   /* what is left of lean codes, however many levels they have: what lies outside of their mask */
    DV_NOISE_KINDS
} dv_noise_kind;

/* Variance of the gradient's noise by that of the batch, if one value alone is packed: what its readers make of it;
 * what the readers of values make of it besides, if all that can be is recomputed from it; and what goes back from a
 * norm that reads it, into the gradients of all layers before. The last is less in larger batches. */
typedef struct dv_value_noise {
    double direct[DV_NOISE_KINDS], through[DV_NOISE_KINDS], back[DV_NOISE_KINDS];
} dv_value_noise;

struct dv_profile {
    size_t value_count; /* 1 + layers: in the order of letters (graph/candidate.h) */
    size_t images;      /* of the steps that were timed */

    dv_value_noise *noise;         /* [value_count] */
    double unit;                   /* variance of the gradient over batches; 0 if it is not known any more */
    double steady[DV_NOISE_KINDS]; /* the part of `back` that does not become less; the rest is in proportion to
                                    * `images` by those of a batch */

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

/* The same of lean codes, by that of DV_PROBE_LEVELS. Without a mask they have a level more. */
double dv_levels_noise(int levels, bool masked);

/* ---- predict.c ------------------------------------------------------------------------------- */

/* What predictions want to know of a graph: made once from the plan that keeps all exactly. */
typedef struct dv_site {
    bool read;   /* backward reads its numbers */
    bool normed; /* a norm does, or reads a concatenation of which it is a part */
    bool recomputable, map, join;
    int readers;    /* layers whose backward reads it */
    int normalises; /* the value that a norm makes it of, or -1 */
    int gates;      /* the value that a norm makes of it, if the mask of that lies in its lean code, or -1 */
    bool cut_off;   /* by a ReLU: lean codes have its own mask inside */
    size_t elements, bytes;
    int taker_count;
    const int *takers; /* indices of values that are made of it by layers that can recompute them */
} dv_site;

typedef struct dv_sites {
    size_t count;  /* in the order of letters */
    size_t images; /* of the batch */
    dv_site *at;
    int *takers; /* all of them */
} dv_sites;

dv_status dv_sites_make(const dv_plan *none, dv_sites *sites, dv_error *error);
void dv_sites_free(dv_sites *sites);

/* The noise of `index`, if it is of the first kind, that goes through values which are recomputed from it: a sum over
 * the readers of these of what their own noise with DV_NOISE_CODE would be. With letters, of those that are recomputed;
 * without (NULL), of all that can be. */
double dv_predict_reach(const dv_profile *profile, const dv_sites *sites, const char *letters, int index);

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
