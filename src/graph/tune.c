/* Tuning: the makers of a graph's passes, chosen by measured times and by the plan that they lead to. */
#include <division/tune.h>

#include "base/option_text.h"
#include "base/sizes.h"
#include "base/status.h"
#include "graph/graph.h"
#include "graph/plan.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PATH_BYTES = 4096, ROUNDS = 8 };

/* ---- options -------------------------------------------------------------------------------- */

static const char *const mode_names[] = {[DV_TUNE_OFF] = "off", [DV_TUNE_CACHE] = "cache", [DV_TUNE_AGAIN] = "again"};
static const char *const preferred[] = {"memory", "speed", NULL};

static const dv_option known[] = {
    {"prefer", NULL, "what goes first", DV_WORD_AT(dv_tune_options, prefer_speed, preferred)},
};

enum { MODES = sizeof mode_names / sizeof *mode_names };

static dv_status parse(const char *text, dv_tune_options *options, dv_error *error) {
    for (int mode = 0; mode < MODES; mode++) {
        const char *rest;
        dv_tune_options made = {.mode = (dv_tune_mode)mode, .kept = options->kept};
        const dv_option_table table = {known, mode == DV_TUNE_OFF ? 0 : 1, &made};
        if (!dv_option_text_names(text, mode_names[mode], &rest))
            continue;
        DV_TRY(dv_option_text_parse(mode_names[mode], rest, &table, 1, error));
        *options = made;
        return DV_OK;
    }
    return dv_fail(error, DV_ERROR_OPTION, "unknown way to tune \"%.40s\": there are off, cache and again", text);
}

dv_status dv_tune_parse(const char *text, dv_tune_options *options, dv_error *error) {
    DV_NEED(options);
    if (text && *text)
        return parse(text, options, error);
    const char *wish = getenv("DV_TUNE");
    dv_error own;
    dv_status status = parse(wish ? wish : mode_names[DV_TUNE_CACHE], options, &own);
    return status == DV_OK ? DV_OK : dv_fail(error, status, "DV_TUNE: %s", own.text);
}

dv_tune_options dv_tune_options_default(void) {
    return (dv_tune_options){.mode = DV_TUNE_CACHE};
}

/* ---- passes --------------------------------------------------------------------------------- */

/* Makes the layers' passes by the choices of now. */
static dv_status make_passes_again(dv_graph *graph, dv_error *error) {
    for (size_t i = 0; i < graph->layer_count; i++) {
        dv_layer *layer = &graph->layers[i].layer;
        if (!layer->kind->pass)
            continue;
        layer->kind->destroy(layer);
        DV_TRY(layer->kind->prepare(layer, error));
    }
    return DV_OK;
}

/* Those of a layer, one after the other; NULL past the last. */
static dv_choice *choice_of(const dv_graph *graph, size_t layer, int index, size_t *runs) {
    const dv_layer *of = &graph->layers[layer].layer;
    const dv_pass *pass = of->kind->pass ? of->kind->pass(of, index, runs) : NULL;
    return pass ? &graph->choices.at[pass->choice] : NULL;
}

/* ---- memory --------------------------------------------------------------------------------- */

/* How a choice is gone back on: to the fastest maker with no more bytes than the expected one, and where that does not
 * do, to the expected one. A layer's passes share workspace and not packed weights, so that a maker with fewer bytes of
 * its own can be one with which the layer takes more. */
typedef enum retreat { TO_FEWER_BYTES, TO_EXPECTED } retreat;

static bool can_retreat(const dv_choice *choice, retreat how) {
    return how == TO_EXPECTED ? choice->maker != choice->expected
                              : choice->bytes[choice->maker] > choice->bytes[choice->expected];
}

static void economise(dv_choice *choice, retreat how) {
    choice->maker = how == TO_EXPECTED ? choice->expected : dv_choice_fastest(choice, choice->bytes[choice->expected]);
}

/* Bytes that are alive at a moment of which one lies above `most`; 0 if none does. */
static size_t bytes_of_high(const dv_plan *plan, int at, size_t most) {
    size_t bytes = 0;
    bool high = false;
    for (size_t i = 0; i < plan->piece_count; i++) {
        const dv_piece *piece = &plan->pieces[i];
        if (piece->first > at || at > piece->last)
            continue;
        bytes += piece->bytes;
        high = high || piece->offset + piece->bytes > most;
    }
    return high ? bytes : 0;
}

/* ... at the moments at which a pass of a layer runs, if its choice can be gone back on. */
static size_t bytes_of_pass(const dv_plan *plan, size_t layer, const dv_choice *choice, retreat how, size_t most) {
    const dv_layer_plan *at = &plan->layers[layer];
    if (!can_retreat(choice, how))
        return 0;
    if (!dv_pass_is_forward(choice->kind))
        return bytes_of_high(plan, at->backward_at, most);
    size_t first = bytes_of_high(plan, at->forward_at, most), again = bytes_of_high(plan, at->replay_at, most);
    return first > again ? first : again;
}

/* Gives a pass of a layer a choice of its own, and economises there: other layers of the same shape, which work while
 * there is room, stay as fast as they are. */
static dv_status economise_here(dv_graph *graph, size_t layer, dv_choice *choice, retreat how, dv_error *error) {
    dv_choices *choices = &graph->choices;
    int own = (int)(choice - choices->at);
    if (!choice->layer) {
        dv_status status = dv_choices_part(choices, own, graph->layers[layer].layer.name, &own, error);
        if (status != DV_OK && status != DV_ERROR_UNSUPPORTED) /* a name that no file holds: all layers economise */
            return status;
    }
    economise(&choices->at[own], how);
    return DV_OK;
}

static size_t most_crowded(const dv_graph *graph, const dv_plan *plan, retreat how, size_t most) {
    size_t largest = 0, runs;
    for (size_t i = 0; i < graph->layer_count; i++) {
        const dv_choice *choice;
        for (int p = 0; (choice = choice_of(graph, i, p, &runs)); p++) {
            size_t bytes = bytes_of_pass(plan, i, choice, how, most);
            largest = bytes > largest ? bytes : largest;
        }
    }
    return largest;
}

/* Economises in the passes that run while more than `most` bytes are alive; or, where the gaps between pieces are what
 * is too much, while nearly as many are as ever: fewer with each round, so that a deep network is not planned for every
 * layer. `changed` becomes true if there are any. */
static dv_status economise_where_crowded(dv_graph *graph, const dv_plan *plan, retreat how, size_t most, int round,
                                         bool *changed, dv_error *error) {
    size_t largest = most_crowded(graph, plan, how, most), runs;
    size_t least = largest > most ? most + 1 : largest - (round < ROUNDS ? largest >> (ROUNDS - round) : largest - 1);
    for (size_t i = 0; largest && i < graph->layer_count; i++) {
        dv_choice *choice;
        for (int p = 0; (choice = choice_of(graph, i, p, &runs)); p++)
            if (bytes_of_pass(plan, i, choice, how, most) >= least) {
                DV_TRY(economise_here(graph, i, choice, how, error));
                *changed = true;
            }
    }
    return DV_OK;
}

/* ... or else in the pass that has taken the most more. */
static bool economise_most(dv_choices *choices) {
    dv_choice *worst = NULL;
    size_t most = 0;
    for (size_t i = 0; i < choices->count; i++) {
        dv_choice *choice = &choices->at[i];
        bool more = can_retreat(choice, TO_FEWER_BYTES);
        size_t bytes = more ? choice->bytes[choice->maker] - choice->bytes[choice->expected] : 0;
        if (bytes > most) {
            most = bytes;
            worst = choice;
        }
    }
    if (worst)
        economise(worst, TO_FEWER_BYTES);
    return worst != NULL;
}

/* Goes back on choices in one way until the plan takes no more than `most` bytes, which `within` tells, or nothing is
 * left to go back on. */
static dv_status retreat_within(dv_graph *graph, const dv_plan_options *options, retreat how, size_t most, bool *within,
                                dv_error *error) {
    bool changed = true;
    for (int round = 0; changed; round++) {
        dv_plan *plan;
        DV_TRY(make_passes_again(graph, error));
        DV_TRY(dv_plan_new(graph, options, &plan, error));
        dv_status status = DV_OK;
        *within = dv_plan_totals(plan).planned <= most;
        changed = false;
        if (!*within)
            status = economise_where_crowded(graph, plan, how, most, round, &changed, error);
        dv_plan_free(plan);
        DV_TRY(status);
        changed = changed || (!*within && how == TO_FEWER_BYTES && economise_most(&graph->choices));
    }
    return DV_OK;
}

static dv_status stay_within(dv_graph *graph, const dv_plan_options *options, size_t most, dv_error *error) {
    bool within;
    DV_TRY(retreat_within(graph, options, TO_FEWER_BYTES, most, &within, error));
    return within ? DV_OK : retreat_within(graph, options, TO_EXPECTED, most, &within, error);
}

static dv_status planned_bytes(dv_graph *graph, const dv_plan_options *options, size_t *bytes, dv_error *error) {
    dv_plan *plan;
    DV_TRY(dv_plan_new(graph, options, &plan, error));
    *bytes = dv_plan_totals(plan).planned;
    dv_plan_free(plan);
    return DV_OK;
}

/* ---- choosing ------------------------------------------------------------------------------- */

static dv_status measure(dv_choices *choices, int fewest, size_t *measured, dv_error *error) {
    *measured = 0;
    for (size_t i = 0; i < choices->count; i++) {
        dv_choice *choice = &choices->at[i];
        if (dv_choice_candidates(choice) < fewest || dv_choice_is_measured(choice))
            continue;
        DV_TRY(dv_choice_measure(choice, error));
        ++*measured;
    }
    return DV_OK;
}

/* By times from the user's file, and where they are missing from measuring, which go into the file. */
static dv_status choose_fastest(dv_choices *choices, const dv_tune_options *tune, size_t *measured, dv_error *error) {
    char path[PATH_BYTES];
    size_t found;
    bool cached = dv_choices_cache_path(path, sizeof path);
    if (cached && tune->mode == DV_TUNE_CACHE)
        DV_TRY(dv_choices_read(choices, path, false, &found, error));
    DV_TRY(measure(choices, tune->everything ? 1 : 2, measured, error));
    for (size_t i = 0; i < choices->count; i++)
        choices->at[i].maker = dv_choice_fastest(&choices->at[i], SIZE_MAX);
    if (cached && *measured > 0)
        (void)dv_choices_write(choices, path, NULL); /* it is there to save time: training goes on without */
    return DV_OK;
}

static dv_status choose(dv_graph *graph, const dv_plan_options *options, const dv_tune_options *tune, size_t *measured,
                        dv_error *error) {
    dv_choices *choices = &graph->choices;
    size_t most = SIZE_MAX, kept = 0;
    dv_choices_unite(choices);
    if (tune->kept)
        DV_TRY(dv_choices_read(choices, tune->kept, true, &kept, error));
    if (kept > 0) /* a training goes on with what it had, and nothing else */
        return make_passes_again(graph, error);
    if (options && (!tune->prefer_speed || tune->room > 0)) {
        DV_TRY(planned_bytes(graph, options, &most, error));
        most = dv_larger(most, tune->room);
    }
    DV_TRY(choose_fastest(choices, tune, measured, error));
    return options ? stay_within(graph, options, most, error) : make_passes_again(graph, error);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void count(const dv_choices *choices, dv_tune_result *result) {
    for (size_t i = 0; i < choices->count; i++) {
        result->passes += dv_choice_candidates(&choices->at[i]) > 1;
        result->changed += choices->at[i].maker != choices->at[i].expected;
    }
}

dv_status dv_graph_tune(dv_graph *graph, const dv_plan_options *options, const dv_tune_options *tune,
                        dv_tune_result *result, dv_error *error) {
    DV_NEED(graph);
    DV_NEED(tune);
    dv_tune_result made = {0};
    double begin = now();
    if (!graph->finished || atomic_load(&graph->holders) > 1)
        return dv_fail(error, DV_ERROR_ARGUMENT, "dv_graph_tune: the graph is not finished, or has plans already");
    if (tune->mode != DV_TUNE_OFF) {
        DV_TRY(choose(graph, options, tune, &made.measured, error));
        count(&graph->choices, &made);
    }
    made.seconds = now() - begin;
    if (result)
        *result = made;
    return DV_OK;
}

/* ---- telling -------------------------------------------------------------------------------- */

static void tell_uses(const dv_graph *graph, size_t index, dv_pass_row *row) {
    for (size_t i = 0; i < graph->layer_count; i++) {
        const dv_choice *used;
        size_t runs;
        for (int p = 0; (used = choice_of(graph, i, p, &runs)); p++)
            if (used == &graph->choices.at[index]) {
                row->first_layer = row->first_layer ? row->first_layer : graph->layers[i].layer.name;
                row->uses++;
                row->runs += runs;
            }
    }
}

int dv_graph_pass_at(const dv_graph *graph, size_t index, dv_pass_row *row) {
    if (!graph || !row || index >= graph->choices.count)
        return 0;
    const dv_choice choice = graph->choices.at[index];
    *row = (dv_pass_row){.operations = dv_choice_operations(&choice)};
    dv_choice_text(&choice, row->text);
    tell_uses(graph, index, row);
    for (int m = 0; m < DV_PASS_MAKERS; m++) {
        if (!dv_pass_makers[m]->suits(choice.kind, &choice.shape))
            continue;
        if (m == choice.maker)
            row->chosen = row->candidate_count;
        row->candidates[row->candidate_count++] =
            (dv_pass_candidate){dv_pass_makers[m]->name, choice.seconds[m], choice.bytes[m]};
    }
    return 1;
}

dv_status dv_graph_write_passes(const dv_graph *graph, const char *path, dv_error *error) {
    DV_NEED(graph);
    DV_NEED(path);
    return dv_choices_write(&graph->choices, path, error);
}
