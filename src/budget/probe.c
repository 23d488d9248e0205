/* Probing: what keeping each value costs, from a few steps.
 *
 *     exact    with `checkpoint`, which keeps little: gradients of some batches. Their variance is the unit of noise,
 *              their seconds those of layers
 *     direct   all maps in 8 bits, which is next to nothing of noise. A group of values at a time is packed with
 *              DV_PROBE_BITS: the gradient's distance to the exact one is the noise of the group
 *     through  the same, and all is recomputed that can be: noise of a batch norm's input is then one of its output too
 *
 * A group is some values that follow each other, all inputs of norms or all not, and each of them has its share. Groups
 * change the codec of a run and not its plan: codes of fewer bits have room where those of 8 have. */
#include "budget/probe.h"

#include "base/status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { USUAL_BATCHES = 12, MOST_BATCHES = 64, GROUPS = 10, DRAWS = 2 };

static const char ALMOST_EXACT = 'h';

/* All that a probe goes through. */
typedef struct search {
    dv_graph *graph;
    const dv_plan_options *options;
    const dv_probe *probe;
    size_t most, batches;
    dv_sites sites;
    dv_profile *profile;
    char *method;      /* "mixed:" and letters */
    float *references; /* [batches][sample_count] */
    size_t sample_count;
    double unit;   /* variance of a batch's gradient */
    uint64_t draw; /* the next step's */
} search;

dv_status dv_profile_allocate(size_t value_count, dv_profile **profile, dv_error *error) {
    dv_profile *made = calloc(1, sizeof *made);
    if (made) {
        made->value_count = value_count;
        made->direct = calloc(value_count, sizeof *made->direct);
        made->through = calloc(value_count, sizeof *made->through);
        made->forward = calloc(value_count, sizeof *made->forward);
    }
    if (!made || !made->direct || !made->through || !made->forward) {
        dv_profile_free(made);
        return dv_fail(error, DV_ERROR_MEMORY, "profile: no memory");
    }
    *profile = made;
    return DV_OK;
}

void dv_profile_free(dv_profile *profile) {
    if (!profile)
        return;
    free(profile->direct);
    free(profile->through);
    free(profile->forward);
    free(profile);
}

dv_status dv_profile_flat(dv_graph *graph, dv_profile **profile, dv_error *error) {
    DV_NEED(graph);
    DV_NEED(profile);
    DV_TRY(dv_profile_allocate(graph->layer_count + 1, profile, error));
    (*profile)->images = graph->batch;
    (*profile)->images_seconds = 1;
    return DV_OK;
}

/* ---- exact gradients --------------------------------------------------------------------------- */

/* The variance over batches, from all pairs of them: half of the mean squared distance. */
static dv_status take_references(search *s, dv_probe_run *run, dv_error *error) {
    s->sample_count = run->sample_count;
    s->references = calloc(s->batches * (s->sample_count + 1), sizeof *s->references);
    if (!s->references)
        return dv_fail(error, DV_ERROR_MEMORY, "probe: no memory");
    double pairs = (double)(s->batches * (s->batches - 1)) / 2;
    for (size_t b = 0; b < s->batches; b++) {
        DV_TRY(dv_probe_step(run, s->probe, b, s->draw++, error));
        for (size_t other = 0; other < b; other++)
            s->unit += dv_probe_distance(run, s->references + other * s->sample_count) / 2 / pairs;
        memcpy(s->references + b * s->sample_count, run->sample, s->sample_count * sizeof *run->sample);
    }
    return DV_OK;
}

static void take_seconds(const search *s, const dv_probe_run *run) {
    dv_profile *profile = s->profile;
    for (size_t i = 0; i < run->plan->operation_count; i++)
        if (run->plan->operations[i].kind == DV_FORWARD)
            profile->forward[run->plan->operations[i].index] = run->seconds[i];
    profile->images_seconds =
        dv_probe_seconds(run, DV_FORWARD, DV_LOSS) + dv_probe_seconds(run, DV_BACKWARD, DV_BACKWARD);
    profile->update_seconds = dv_probe_seconds(run, DV_UPDATE, DV_UPDATE);
}

static dv_status probe_exact(search *s, dv_error *error) {
    dv_probe_run run;
    DV_TRY(dv_probe_begin(s->graph, s->options, "checkpoint", s->probe, s->most, &run, error));
    dv_status status = take_references(s, &run, error);
    if (status == DV_OK)
        take_seconds(s, &run);
    dv_probe_end(&run);
    if (status == DV_OK && !(s->unit > 0 && isfinite(s->unit)))
        status = dv_fail(error, DV_ERROR_NONFINITE, "probe: the gradients of all batches are alike: give other images");
    return status;
}

/* ---- noise of groups --------------------------------------------------------------------------- */

static bool is_packable(const dv_site *site) {
    return site->read && site->map && !site->join;
}

/* Letters of a probe: all maps almost exact, and recomputed what can be, or only what nobody would pack. */
static void write_letters(search *s, bool recompute) {
    char *to = s->method + sprintf(s->method, "mixed:");
    for (size_t i = 0; i < s->sites.count; i++) {
        const dv_site *site = &s->sites.at[i];
        bool again = site->join || (recompute && site->recomputable);
        to[i] = !site->read ? DV_UNREAD : again ? DV_RECOMPUTED : site->map ? ALMOST_EXACT : DV_EXACT;
    }
    to[s->sites.count] = '\0';
}

static void set_codec(dv_run *run, size_t index, const dv_codec *codec) {
    run->kept[dv_value_of_letter(run->plan->graph, index)].codec = *codec;
}

/* Noise of a few draws in the state that the run is in. */
static dv_status measure(search *s, dv_probe_run *run, double *noise, dv_error *error) {
    *noise = 0;
    for (size_t i = 0; i < DRAWS; i++) {
        size_t batch = (size_t)(s->draw % s->batches);
        DV_TRY(dv_probe_step(run, s->probe, batch, s->draw++, error));
        *noise += dv_probe_distance(run, s->references + batch * s->sample_count) / DRAWS / s->unit;
    }
    return DV_OK;
}

/* Values of one class, in their order. */
typedef struct members {
    size_t count;
    size_t *at;
} members;

/* Values `first` to `last` - 1 of a class as a group: each gets its share of the noise beyond `least`. */
static dv_status measure_group(search *s, dv_probe_run *run, const members *of, size_t first, size_t last, double least,
                               double *noise, dv_error *error) {
    dv_codec probed, almost;
    double found;
    (void)dv_codec_parse("division:bits=2,dither=subtractive", &probed, NULL);
    (void)dv_codec_parse(dv_candidate_of(ALMOST_EXACT)->codec, &almost, NULL);
    for (size_t i = first; i < last; i++)
        set_codec(run->run, of->at[i], &probed);
    DV_TRY(measure(s, run, &found, error));
    for (size_t i = first; i < last; i++) {
        set_codec(run->run, of->at[i], &almost);
        noise[of->at[i]] = fmax(found - least, 0) / (double)(last - first);
    }
    return DV_OK;
}

static dv_status measure_class(search *s, dv_probe_run *run, const members *of, double least, double *noise,
                               dv_error *error) {
    size_t groups = of->count < GROUPS ? of->count : GROUPS;
    for (size_t g = 0; g < groups; g++)
        DV_TRY(measure_group(s, run, of, g * of->count / groups, (g + 1) * of->count / groups, least, noise, error));
    return DV_OK;
}

/* Values that are packed in the state that letters say, those that could be recomputed or the others. */
static dv_status list_members(const search *s, bool recomputable, members *of, dv_error *error) {
    of->count = 0;
    of->at = calloc(s->sites.count, sizeof *of->at);
    if (!of->at)
        return dv_fail(error, DV_ERROR_MEMORY, "probe: no memory");
    for (size_t i = 0; i < s->sites.count; i++)
        if (is_packable(&s->sites.at[i]) && s->sites.at[i].recomputable == recomputable)
            of->at[of->count++] = i;
    return DV_OK;
}

static dv_status measure_classes(search *s, dv_probe_run *run, bool recompute, double *noise, dv_error *error) {
    double least;
    DV_TRY(measure(s, run, &least, error));
    for (int recomputable = 0; recomputable < (recompute ? 1 : 2); recomputable++) {
        members of;
        DV_TRY(list_members(s, recomputable, &of, error));
        dv_status status = measure_class(s, run, &of, least, noise, error);
        free(of.at);
        DV_TRY(status);
    }
    return DV_OK;
}

/* Noise of each value with the letters of a state, and the seconds that layers take with them. */
static dv_status probe_packed(search *s, bool recompute, double *noise, double *seconds, dv_error *error) {
    dv_probe_run run;
    write_letters(s, recompute);
    DV_TRY(dv_probe_begin(s->graph, s->options, s->method, s->probe, s->most, &run, error));
    dv_status status = measure_classes(s, &run, recompute, noise, error);
    *seconds = dv_probe_seconds(&run, DV_FORWARD, DV_LOSS) + dv_probe_seconds(&run, DV_BACKWARD, DV_BACKWARD);
    dv_probe_end(&run);
    return status;
}

/* ---- seconds ----------------------------------------------------------------------------------- */

static double clamp(double x, double low, double high) {
    return fmin(fmax(x, low), high);
}

static size_t largest_map(const dv_sites *sites) {
    size_t best = 0;
    for (size_t i = 0; i < sites->count; i++)
        if (is_packable(&sites->at[i]) && sites->at[i].elements > sites->at[best].elements)
            best = i;
    return best;
}

/* What the codecs take in a step is what they took in it, rather than on their own: some norms load a value twice, and
 * slices are in cache. */
static dv_status find_speeds(search *s, double direct, double through, dv_error *error) {
    dv_profile *profile = s->profile;
    dv_loads *loads = calloc(s->sites.count, sizeof *loads);
    if (!loads)
        return dv_fail(error, DV_ERROR_MEMORY, "probe: no memory");
    write_letters(s, false);
    const char *letters = strchr(s->method, ':') + 1;
    double alone = dv_predict_more_seconds(profile, &s->sites, letters, loads);
    double factor = alone > 0 ? clamp((direct - profile->images_seconds) / alone, 0.5, 4) : 1;
    for (size_t i = 0; i < DV_PROFILE_MOST_CANDIDATES; i++) {
        profile->encode[i] *= factor;
        profile->decode[i] *= factor;
    }
    write_letters(s, true);
    double least = profile->decode[dv_candidate_of(ALMOST_EXACT) - dv_candidate_at(0)]; /* a pass over the map, too */
    double codecs = dv_predict_more_seconds(profile, &s->sites, letters, loads), elements = 0;
    for (size_t i = 0; i < s->sites.count; i++)
        elements += (double)s->sites.at[i].elements * loads[i].for_norm;
    if (elements > 0)
        profile->recompute = fmax((through - profile->images_seconds - codecs) / elements, least);
    free(loads);
    return DV_OK;
}

/* ---- all of it --------------------------------------------------------------------------------- */

/* A value that is itself recomputable, and packed, goes on into what is recomputed from it: into the sums of the blocks
 * behind it. That is about as much noise again. */
static void fill_through(search *s) {
    for (size_t i = 0; i < s->sites.count; i++)
        if (s->sites.at[i].recomputable)
            s->profile->through[i] = 2 * s->profile->direct[i];
}

static dv_status probe_all(search *s, dv_error *error) {
    double direct, through;
    const dv_graph *graph = s->graph;
    s->profile->images = graph->batch;
    DV_TRY(probe_exact(s, error));
    DV_TRY(probe_packed(s, false, s->profile->direct, &direct, error));
    DV_TRY(probe_packed(s, true, s->profile->through, &through, error));
    fill_through(s);
    dv_value largest = dv_value_of_letter(graph, largest_map(&s->sites));
    DV_TRY(dv_probe_codecs(&graph->values[largest].map, s->profile, error));
    return find_speeds(s, direct, through, error);
}

static dv_status make_sites(search *s, dv_error *error) {
    dv_plan_options told = *s->options;
    dv_plan *none;
    told.method = "none";
    DV_TRY(dv_plan_new(s->graph, &told, &none, error));
    dv_status status = dv_sites_make(none, &s->sites, error);
    dv_plan_free(none);
    return status;
}

static dv_status search_all(search *s, dv_error *error) {
    DV_TRY(make_sites(s, error));
    s->method = calloc(s->sites.count + 16, 1);
    if (!s->method)
        return dv_fail(error, DV_ERROR_MEMORY, "probe: no memory");
    DV_TRY(dv_profile_allocate(s->sites.count, &s->profile, error));
    return probe_all(s, error);
}

dv_status dv_profile_new(dv_graph *graph, const dv_plan_options *options, const dv_probe *probe, size_t most,
                         dv_profile **profile, dv_error *error) {
    DV_NEED(graph);
    DV_NEED(options);
    DV_NEED(probe);
    DV_NEED(profile);
    if (!probe->fill)
        return dv_fail(error, DV_ERROR_ARGUMENT, "probe: no function that fills in images: give one");
    size_t batches = probe->batches ? probe->batches : USUAL_BATCHES;
    DV_TRY(dv_check_count("batches of a probe", batches, 2, MOST_BATCHES, error));
    search s = {.graph = graph, .options = options, .probe = probe, .most = most, .batches = batches};
    dv_status status = search_all(&s, error);
    if (status == DV_OK)
        *profile = s.profile;
    else
        dv_profile_free(s.profile);
    dv_sites_free(&s.sites);
    free(s.method);
    free(s.references);
    return status;
}
