/* Probing: what keeping each value costs, from a few steps.
 *
 *     exact      with `checkpoint`, which keeps little: gradients of some batches. Their variance is the unit of noise,
 *                their seconds those of layers
 *     packed     all maps in 8 bits, or in lean codes of 255 levels, which leave little noise. Then some values have
 *                coarse codes: the gradient's distance to the exact one is their noise, and sinks.c says whose
 *
 *     state      what norms read    what they make    what is coarse in turn
 *     direct     8 bits             8 bits            all that norms make, and images
 *     through    8 bits             recomputed        groups of what norms read
 *     beside     lean               8 bits            all that norms make, and images: by bits, then by levels
 *     lean       lean               recomputed        groups of what norms read
 *     floor      8 bits, some lean  recomputed        nothing: what lean codes leave with many levels
 *
 * Coarse codes change the codecs of a run and not its plan: they have room where finer ones have. Steps of one batch
 * have the same random numbers in all states, so that what is not coarse has the same noise in all of them, and can be
 * taken off. */
#include "budget/probe.h"

#include "base/sizes.h"
#include "base/status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { USUAL_BATCHES = 12, MOST_BATCHES = 64, NOISY_BATCHES = 5, GROUPS = 8, HALVED = 5, FLOOR_GROUPS = 5, DRAWS = 2 };

static const char ALMOST_EXACT = 'h', COARSE = 'b', LEAN = 'w', COARSE_LEAN = 'l';

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
    size_t noisy_batches; /* that packed states are measured with: the first ones */
    double *base;         /* [noisy_batches][layers]: noise of a state before anything is coarse */
    double *noise;        /* workspace [layers] */
} search;

dv_status dv_profile_allocate(size_t value_count, dv_profile **profile, dv_error *error) {
    dv_profile *made = calloc(1, sizeof *made);
    if (made) {
        made->value_count = value_count;
        made->noise = calloc(value_count, sizeof *made->noise);
        for (int kind = 0; kind < DV_NOISE_KINDS; kind++)
            made->steady[kind] = 1;
        made->forward = calloc(value_count, sizeof *made->forward);
    }
    if (!made || !made->noise || !made->forward) {
        dv_profile_free(made);
        return dv_fail(error, DV_ERROR_MEMORY, "profile: no memory");
    }
    *profile = made;
    return DV_OK;
}

void dv_profile_free(dv_profile *profile) {
    if (!profile)
        return;
    free(profile->noise);
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

/* The random numbers of a batch's steps. */
static uint64_t draw_of(size_t batch) {
    return batch;
}

static float *reference_of(const search *s, size_t batch) {
    return s->references + batch * s->sample_count;
}

/* The variance over batches, from all pairs of them: half of the mean squared distance. */
static dv_status take_references(search *s, dv_probe_run *run, dv_error *error) {
    s->sample_count = run->sample_count;
    s->references = calloc(s->batches * (s->sample_count + 1), sizeof *s->references);
    if (!s->references)
        return dv_fail(error, DV_ERROR_MEMORY, "probe: no memory");
    double pairs = (double)(s->batches * (s->batches - 1)) / 2;
    for (size_t b = 0; b < s->batches; b++) {
        DV_TRY(dv_probe_step(run, s->probe, b, draw_of(b), error));
        for (size_t other = 0; other < b; other++)
            s->profile->unit += dv_probe_distance(run, reference_of(s, other)) / 2 / pairs;
        memcpy(reference_of(s, b), run->sample, s->sample_count * sizeof *run->sample);
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
    if (status == DV_OK && !(s->profile->unit > 0 && isfinite(s->profile->unit)))
        status = dv_fail(error, DV_ERROR_NONFINITE, "probe: the gradients of all batches are alike: give other images");
    return status;
}

/* ---- states ------------------------------------------------------------------------------------ */

static bool is_packable(const dv_site *site) {
    return site->read && site->map && !site->join;
}

dv_status dv_probe_sites(dv_graph *graph, const dv_plan_options *options, dv_sites *sites, dv_error *error) {
    dv_plan_options told = *options;
    dv_plan *none;
    told.method = "none";
    DV_TRY(dv_plan_new(graph, &told, &none, error));
    dv_status status = dv_sites_make(none, sites, error);
    dv_plan_free(none);
    return status;
}

/* What norms make, where it can be recomputed; and what nothing but convolutions reads. */
bool dv_probe_stays(const dv_site *site) {
    return site->recomputable || (!site->normed && site->taker_count == 0);
}

static char letter_of(const dv_site *site, char others, char stay) {
    if (!site->read)
        return DV_UNREAD;
    if (site->join)
        return DV_RECOMPUTED;
    if (!site->map)
        return DV_EXACT;
    if (!dv_probe_stays(site))
        return others;
    return stay == DV_RECOMPUTED && !site->recomputable ? ALMOST_EXACT : stay;
}

void dv_probe_letters(const dv_sites *sites, char others, char stay, char *text) {
    text += sprintf(text, "mixed:");
    for (size_t i = 0; i < sites->count; i++)
        *text++ = letter_of(&sites->at[i], others, stay);
    *text = '\0';
}

static void write_letters(search *s, char others, char stay) {
    dv_probe_letters(&s->sites, others, stay, s->method);
}

/* A state that is measured: its run, and the plan whose codecs coarse values have. */
typedef struct state {
    dv_probe_run run;
    dv_plan *coarse;
    char *letters; /* [values]: of the run */
} state;

static void end_state(state *at) {
    dv_probe_end(&at->run);
    dv_plan_free(at->coarse);
    free(at->letters);
    *at = (state){0};
}

/* The codecs that values have when they are coarse. */
static dv_status choose_coarse(search *s, state *at, char others, char stay, dv_error *error) {
    dv_plan_options told = *s->options;
    write_letters(s, others, stay);
    told.method = s->method;
    dv_plan_free(at->coarse);
    at->coarse = NULL;
    return dv_plan_new(s->graph, &told, &at->coarse, error);
}

/* Begins with the letters that are written. */
static dv_status begin_written(search *s, state *made, dv_error *error) {
    *made = (state){0};
    made->letters = strdup(strchr(s->method, ':') + 1);
    if (!made->letters)
        return dv_fail(error, DV_ERROR_MEMORY, "probe: no memory");
    dv_status status = dv_probe_begin(s->graph, s->options, s->method, s->probe, s->most, &made->run, error);
    if (status != DV_OK)
        end_state(made);
    return status;
}

static dv_status begin_state(search *s, char others, char stay, state *made, dv_error *error) {
    write_letters(s, others, stay);
    return begin_written(s, made, error);
}

static void set_codec(const search *s, state *at, size_t index, const dv_plan *like) {
    dv_value value = dv_value_of_letter(s->graph, index);
    at->run.run->kept[value].codec = like->values[value].codec;
}

/* ---- noise of a state -------------------------------------------------------------------------- */

static double *base_of(const search *s, size_t batch) {
    return s->base + batch * s->graph->layer_count;
}

/* Adds `part` of a batch's noise, by layers -> noise [layers]. */
static dv_status add_batch(const search *s, state *at, size_t batch, double part, double *noise, dv_error *error) {
    DV_TRY(dv_probe_step(&at->run, s->probe, batch, draw_of(batch), error));
    dv_probe_distances(&at->run, reference_of(s, batch), part / s->profile->unit, noise);
    return DV_OK;
}

static dv_status measure_base(search *s, state *at, dv_error *error) {
    memset(s->base, 0, s->noisy_batches * s->graph->layer_count * sizeof *s->base);
    for (size_t b = 0; b < s->noisy_batches; b++)
        DV_TRY(add_batch(s, at, b, 1, base_of(s, b), error));
    return DV_OK;
}

/* The mean over so many batches from `first` on, less the base -> s->noise. */
static dv_status measure_more(search *s, state *at, size_t first, size_t draws, dv_error *error) {
    memset(s->noise, 0, s->graph->layer_count * sizeof *s->noise);
    for (size_t i = 0; i < draws; i++) {
        size_t batch = (first + i) % s->noisy_batches;
        DV_TRY(add_batch(s, at, batch, 1 / (double)draws, s->noise, error));
        for (size_t l = 0; l < s->graph->layer_count; l++)
            s->noise[l] -= base_of(s, batch)[l] / (double)draws;
    }
    return DV_OK;
}

/* Noise of a group that is coarse, from `draws` batches from `first` on. */
static dv_status measure_group(search *s, state *at, const dv_probe_members *group, size_t first, size_t draws,
                               dv_noise_kind kind, dv_error *error) {
    for (size_t i = 0; i < group->count; i++)
        set_codec(s, at, group->at[i], at->coarse);
    DV_TRY(measure_more(s, at, first, draws, error));
    for (size_t i = 0; i < group->count; i++)
        set_codec(s, at, group->at[i], at->run.plan);
    dv_probe_share(at->run.plan, &s->sites, at->letters, group, s->noise, kind, s->profile->noise);
    return DV_OK;
}

/* Members `first` to `last` - 1, and how much of their noise goes back: nothing says whose that is. */
typedef struct group {
    size_t first, last;
    double back;
} group;

static dv_status measure_range(search *s, state *at, const dv_probe_members *of, size_t draws, dv_noise_kind kind,
                               group *g, dv_error *error) {
    const dv_probe_members members = {g->last - g->first, of->at + g->first};
    DV_TRY(measure_group(s, at, &members, g->first, draws, kind, error));
    g->back = 0;
    for (size_t i = 0; i < members.count; i++)
        g->back += s->profile->noise[members.at[i]].back[kind];
    return DV_OK;
}

/* The group of several members of which most goes back, or NULL. */
static group *find_worst(group *groups, size_t count) {
    group *worst = NULL;
    for (size_t i = 0; i < count; i++)
        if (groups[i].last - groups[i].first > 1 && (!worst || groups[i].back > worst->back))
            worst = &groups[i];
    return worst;
}

/* Groups of about as many members, then halves of the worst. Of a few groups there are more draws. */
static dv_status measure_groups(search *s, state *at, const dv_probe_members *of, dv_noise_kind kind, dv_error *error) {
    group groups[GROUPS + HALVED], *worst;
    size_t count = dv_smaller(of->count, GROUPS);
    size_t draws = dv_larger(DRAWS, dv_smaller(s->noisy_batches, DRAWS * GROUPS / dv_larger(count, 1)));
    for (size_t g = 0; g < count; g++) {
        groups[g] = (group){g * of->count / count, (g + 1) * of->count / count, 0};
        DV_TRY(measure_range(s, at, of, draws, kind, &groups[g], error));
    }
    for (int i = 0; i < HALVED && (worst = find_worst(groups, count)) != NULL; i++) {
        size_t middle = (worst->first + worst->last) / 2;
        groups[count] = (group){middle, worst->last, 0};
        worst->last = middle;
        DV_TRY(measure_range(s, at, of, draws, kind, worst, error));
        DV_TRY(measure_range(s, at, of, draws, kind, &groups[count++], error));
    }
    return DV_OK;
}

/* ---- floors ------------------------------------------------------------------------------------ */

static double sum_noise(const search *s) {
    double sum = 0;
    for (size_t l = 0; l < s->graph->layer_count; l++)
        sum += s->noise[l];
    return sum;
}

/* Of a group that alone has lean codes, of many levels. The mask that lies in them is no matter of the codec alone, so
 * each group has a plan. */
static dv_status measure_floor(search *s, const dv_probe_members *members, dv_error *error) {
    state at;
    write_letters(s, ALMOST_EXACT, DV_RECOMPUTED);
    for (size_t i = 0; i < members->count; i++)
        strchr(s->method, ':')[1 + members->at[i]] = LEAN;
    DV_TRY(begin_written(s, &at, error));
    dv_status status = DV_OK;
    memset(s->noise, 0, s->graph->layer_count * sizeof *s->noise);
    for (size_t b = 0; status == DV_OK && b < s->noisy_batches; b++)
        status = add_batch(s, &at, b, 1 / (double)s->noisy_batches, s->noise, error);
    end_state(&at);
    if (status == DV_OK)
        dv_probe_share_floor(members, sum_noise(s), s->profile->noise);
    return status;
}

/* Where a group ends: behind the first value, then each time twice as far. What is before all layers matters most. */
static size_t end_of_floor_group(size_t count, int g) {
    return g == 0 ? dv_smaller(1, count) : count >> (FLOOR_GROUPS - 1 - g);
}

static dv_status measure_floors(search *s, const dv_probe_members *of, dv_error *error) {
    size_t first = 0;
    for (int g = 0; g < FLOOR_GROUPS; g++) {
        size_t last = end_of_floor_group(of->count, g);
        if (last <= first)
            continue;
        DV_TRY(measure_floor(s, &(dv_probe_members){last - first, of->at + first}, error));
        first = last;
    }
    return DV_OK;
}

static dv_status probe_floors(search *s, dv_error *error) {
    dv_probe_members of = {0, calloc(s->sites.count, sizeof *of.at)};
    if (!of.at)
        return dv_fail(error, DV_ERROR_MEMORY, "probe: no memory");
    for (size_t i = 0; i < s->sites.count; i++)
        if (is_packable(&s->sites.at[i]) && dv_probe_has_floor(&s->sites.at[i]))
            of.at[of.count++] = i;
    dv_status status = measure_floors(s, &of, error);
    free(of.at);
    return status;
}

/* ---- all states -------------------------------------------------------------------------------- */

/* All values that are packed, those whose noise stays or the others. */
static dv_status list_members(const search *s, bool staying, dv_probe_members *of, dv_error *error) {
    of->count = 0;
    of->at = calloc(s->sites.count, sizeof *of->at);
    if (!of->at)
        return dv_fail(error, DV_ERROR_MEMORY, "probe: no memory");
    for (size_t i = 0; i < s->sites.count; i++)
        if (is_packable(&s->sites.at[i]) && dv_probe_stays(&s->sites.at[i]) == staying)
            of->at[of->count++] = i;
    return DV_OK;
}

static double step_seconds(const state *at) {
    return dv_probe_seconds(&at->run, DV_FORWARD, DV_LOSS) + dv_probe_seconds(&at->run, DV_BACKWARD, DV_BACKWARD);
}

static dv_status probe_direct(search *s, state *at, const dv_probe_members *made, dv_error *error) {
    DV_TRY(choose_coarse(s, at, ALMOST_EXACT, COARSE, error));
    return measure_group(s, at, made, 0, s->noisy_batches, DV_NOISE_CODE, error);
}

static dv_status probe_through(search *s, state *at, const dv_probe_members *others, dv_error *error) {
    DV_TRY(choose_coarse(s, at, COARSE, DV_RECOMPUTED, error));
    return measure_groups(s, at, others, DV_NOISE_CODE, error);
}

static dv_status probe_beside(search *s, state *at, const dv_probe_members *made, dv_error *error) {
    DV_TRY(choose_coarse(s, at, LEAN, COARSE, error));
    DV_TRY(measure_group(s, at, made, 0, s->noisy_batches, DV_NOISE_OUTSIDE, error));
    DV_TRY(choose_coarse(s, at, LEAN, COARSE_LEAN, error));
    return measure_group(s, at, made, 0, s->noisy_batches, DV_NOISE_LEAN, error);
}

static dv_status probe_lean(search *s, state *at, const dv_probe_members *others, dv_error *error) {
    DV_TRY(choose_coarse(s, at, COARSE_LEAN, DV_RECOMPUTED, error));
    return measure_groups(s, at, others, DV_NOISE_LEAN, error);
}

typedef dv_status (*measuring)(search *s, state *at, const dv_probe_members *of, dv_error *error);

/* The seconds that steps take are those before anything is coarse. */
static dv_status measure_state(search *s, state *at, const dv_probe_members *of, measuring measure, double *seconds,
                               dv_error *error) {
    DV_TRY(measure_base(s, at, error));
    *seconds = step_seconds(at);
    return measure(s, at, of, error);
}

static dv_status probe_state(search *s, char others, char stay, bool staying, measuring measure, double *seconds,
                             dv_error *error) {
    dv_probe_members members;
    state at;
    DV_TRY(list_members(s, staying, &members, error));
    dv_status status = begin_state(s, others, stay, &at, error);
    if (status == DV_OK) {
        status = measure_state(s, &at, &members, measure, seconds, error);
        end_state(&at);
    }
    free(members.at);
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
    write_letters(s, ALMOST_EXACT, ALMOST_EXACT);
    const char *letters = strchr(s->method, ':') + 1;
    double alone = dv_predict_more_seconds(profile, &s->sites, letters, loads);
    double factor = alone > 0 ? clamp((direct - profile->images_seconds) / alone, 0.5, 4) : 1;
    for (size_t i = 0; i < DV_PROFILE_MOST_CANDIDATES; i++) {
        profile->encode[i] *= factor;
        profile->decode[i] *= factor;
    }
    write_letters(s, ALMOST_EXACT, DV_RECOMPUTED);
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
 * behind it. Their readers make of its noise about what they make of the sums' own. */
static void fill_through(search *s) {
    for (size_t i = 0; i < s->sites.count; i++) {
        dv_value_noise *noise = &s->profile->noise[i];
        double own = noise->direct[DV_NOISE_CODE], reach = dv_predict_reach(s->profile, &s->sites, NULL, (int)i);
        for (int kind = 0; dv_probe_stays(&s->sites.at[i]) && own > 0 && kind < DV_NOISE_KINDS; kind++)
            noise->through[kind] = noise->direct[kind] / own * reach;
    }
}

static dv_status probe_all(search *s, dv_error *error) {
    double direct, through, lean;
    const dv_graph *graph = s->graph;
    s->profile->images = graph->batch;
    DV_TRY(probe_exact(s, error));
    DV_TRY(probe_state(s, ALMOST_EXACT, ALMOST_EXACT, true, probe_direct, &direct, error));
    DV_TRY(probe_state(s, ALMOST_EXACT, DV_RECOMPUTED, false, probe_through, &through, error));
    DV_TRY(probe_state(s, LEAN, ALMOST_EXACT, true, probe_beside, &lean, error));
    DV_TRY(probe_state(s, LEAN, DV_RECOMPUTED, false, probe_lean, &lean, error));
    DV_TRY(probe_floors(s, error));
    fill_through(s);
    dv_value largest = dv_value_of_letter(graph, largest_map(&s->sites));
    DV_TRY(dv_probe_codecs(&graph->values[largest].map, s->profile, error));
    return find_speeds(s, direct, through, error);
}

static dv_status search_all(search *s, dv_error *error) {
    DV_TRY(dv_probe_sites(s->graph, s->options, &s->sites, error));
    size_t layers = s->graph->layer_count;
    s->noisy_batches = dv_smaller(s->batches, NOISY_BATCHES);
    s->method = calloc(s->sites.count + 16, 1);
    s->noise = calloc(layers + 1, sizeof *s->noise);
    s->base = calloc(s->noisy_batches * layers + 1, sizeof *s->base);
    if (!s->method || !s->noise || !s->base)
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
    free(s.noise);
    free(s.base);
    return status;
}
