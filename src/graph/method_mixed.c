/* Every value in the way that a text says, letter by letter (graph/candidate.h): what a memory budget comes to. The
 * letters stand for the images and then for the outputs of layers, in their order; '-' for a value that backward does
 * not read.
 *
 *     mixed:h-rdrdr...
 *
 * Replayed values need segments, which follow from the letters: one ends with each separating value that is kept
 * itself, and runs again if it has a replayed value. What its layers take from elsewhere is exact, because
 * forward reads whole maps. */
#include "base/status.h"
#include "graph/candidate.h"

#include <stdlib.h>
#include <string.h>

static const char *name_of(const dv_graph *graph, dv_value value) {
    int producer = graph->values[value].producer;
    return producer == DV_INPUT ? "the images" : graph->layers[producer].layer.name;
}

static char letter_of(const dv_plan *plan, dv_value value) {
    return plan->method.text[plan->graph->values[value].producer + 1];
}

/* ---- segments -------------------------------------------------------------------------------- */

/* Between forward and backward, in whatever way. */
static bool is_kept(char letter) {
    return letter != DV_REPLAYED && letter != DV_UNREAD;
}

static bool has_replayed(const dv_plan *plan, int first, int last) {
    for (int i = first; i < last; i++)
        if (letter_of(plan, plan->graph->layers[i].output) == DV_REPLAYED)
            return true;
    return false;
}

/* What layers that run again take: values that run again too, or are there as they were. */
static dv_status check_segment(const dv_plan *plan, int first, int last, dv_error *error) {
    for (int i = first; i < last; i++) {
        const dv_graph_layer *node = &plan->graph->layers[i];
        for (size_t k = 0; k < node->layer.input_count; k++) {
            dv_value input = node->inputs[k];
            bool inside = plan->graph->values[input].producer >= first;
            char letter = letter_of(plan, input);
            bool there = letter == DV_EXACT || (inside && !is_kept(letter));
            if (!there)
                return dv_fail(error, DV_ERROR_OPTION, "mixed: %s must be exact ('x') when %s runs again, not '%c'",
                               name_of(plan->graph, input), node->layer.name, letter);
        }
    }
    return DV_OK;
}

static dv_status replay_segments(dv_plan *plan, const bool *separates, dv_error *error) {
    int first = dv_plan_first_backward(plan);
    for (int i = first; i < (int)plan->graph->layer_count; i++) {
        if (!separates[i] || !is_kept(letter_of(plan, plan->graph->layers[i].output)))
            continue;
        if (has_replayed(plan, first, i)) {
            DV_TRY(check_segment(plan, first, i, error));
            dv_plan_replay(plan, first, i);
        }
        first = i + 1;
    }
    return DV_OK;
}

static dv_status make_segments(dv_plan *plan, dv_error *error) {
    bool *separates = calloc(plan->graph->layer_count + 1, sizeof *separates);
    if (!separates)
        return dv_fail(error, DV_ERROR_MEMORY, "plan: no memory");
    dv_plan_separators(plan, separates);
    dv_status status = replay_segments(plan, separates, error);
    free(separates);
    return status;
}

/* ---- values ---------------------------------------------------------------------------------- */

static dv_status check_letter(const dv_plan *plan, dv_value value, dv_error *error) {
    char letter = letter_of(plan, value);
    const dv_candidate *candidate = dv_candidate_of(letter);
    if (letter == DV_UNREAD)
        return DV_OK;
    if (!candidate)
        return dv_fail(error, DV_ERROR_OPTION, "mixed: '%c' stands for no way to keep %s",
                       letter >= ' ' && letter <= '~' ? letter : '?', name_of(plan->graph, value));
    if (!dv_candidate_can(candidate, plan, value))
        return dv_fail(error, DV_ERROR_OPTION, "mixed: %s cannot be %s ('%c')", name_of(plan->graph, value),
                       candidate->name, letter);
    return DV_OK;
}

/* Values that nobody was thought to read are exact. */
static void keep(dv_plan *plan, dv_value value) {
    const dv_candidate *candidate = dv_candidate_of(letter_of(plan, value));
    candidate = candidate ? candidate : dv_candidate_of(DV_EXACT);
    if (candidate->codec)
        (void)dv_codec_parse(candidate->codec, &plan->values[value].codec, NULL); /* texts of the table are right */
    if (candidate->keep)
        candidate->keep(plan, value);
    else
        dv_plan_keep(plan, value, candidate->keeper);
}

static dv_status choose(dv_plan *plan, dv_error *error) {
    size_t values = plan->graph->layer_count + 1, letters = strlen(plan->method.text);
    if (letters != values)
        return dv_fail(error, DV_ERROR_OPTION,
                       "mixed: %zu letters for the %zu values of this network: the choice is of another one", letters,
                       values);
    DV_TRY(make_segments(plan, error));
    for (size_t i = 0; i < values; i++)
        DV_TRY(check_letter(plan, dv_value_of_letter(plan->graph, i), error));
    dv_plan_choose(plan, keep);
    return DV_OK;
}

const dv_method_kind dv_method_mixed = {
    .name = "mixed",
    .help = "each value in a way of its own: what --memory has chosen",
    .takes_text = true,
    .choose = choose,
};
