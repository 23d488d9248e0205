/* Checkpointing: the values between segments are kept, and a segment runs forward again before its backward. Gradients
 * are those of `none` to the bit.
 *
 * A segment ends where one value separates all that comes before from all that comes after: in a ResNet behind every
 * block, in a DenseNet behind every dense block and transition. The last segment is not replayed, because its backward
 * follows its forward at once.
 *
 *     layers     | segment 0      | segment 1      | segment 2 (the last)
 *     forward    ----------------S0---------------S1-------------------> loss
 *     backward                    <- replay 0,     <- replay 1,          <- backward 2
 *                                    backward 0       backward 1 */
#include "base/status.h"
#include "graph/plan.h"

#include <stdlib.h>

enum { SEGMENTS }; /* options */

static const dv_option options[] = {
    [SEGMENTS] = {"segments", "N", "how many, about; 0: those that take the least memory",
                  DV_INTEGER_IN(SEGMENTS, 0, 1000000), .preset = "0"},
};

/* A layer, as something between which a network can be cut. */
typedef struct place {
    bool separates; /* its output is all that later layers take of it and of those before */
    size_t kept;    /* bytes that `none` keeps of its output, and what it saves */
    size_t output;  /* bytes of its output */
    bool cut;       /* a segment ends with it */
    size_t between; /* cut_within's */
    int before;
} place;

static void find_places(const dv_plan *plan, const bool *separates, place *places) {
    const dv_graph *graph = plan->graph;
    for (int i = 0; i < (int)graph->layer_count; i++) {
        dv_value output = graph->layers[i].output;
        const dv_value_plan *v = &plan->values[output];
        bool read = dv_is_read(v->numbers_read) || dv_is_read(v->mask_read);
        size_t bytes = dv_map_bytes(&graph->values[output].map);
        places[i] = (place){.separates = separates[i],
                            .kept = (read ? bytes : 0) + (plan->layers[i].backward ? dv_plan_saved_bytes(plan, i) : 0),
                            .output = bytes};
    }
}

/* ---- where to cut ---------------------------------------------------------------------------- */

/* Cuts where a number of segments is asked for: behind separating layers, each as soon as its segment has its share of
 * the bytes. Sets `cut` of the layers that end a segment. */
static void cut_evenly(place *places, int count, size_t segments) {
    size_t all = 0, inside = 0;
    for (int i = 0; i < count; i++)
        all += places[i].kept;
    for (int i = 0; i + 1 < count; i++) {
        inside += places[i].kept;
        places[i].cut = places[i].separates && inside >= all / segments;
        inside = places[i].cut ? 0 : inside;
    }
}

/* Of the ways to cut that never keep more than `most` bytes at once, the one that keeps the least between segments;
 * false if there is none. When a segment is replayed, the values between those before it are there, and its own.
 * places[i]: `between` is the least that is kept between the segments up to a cut behind layer i, `before` the cut
 * before that. */
static bool cut_within(place *places, int count, size_t most) {
    for (int i = 0; i < count; i++) {
        size_t inside = 0;
        places[i].between = SIZE_MAX;
        if (!places[i].separates && i < count - 1)
            continue;
        for (int j = i - 1; j >= -1; j--) {
            size_t before = j < 0 ? 0 : places[j].between;
            bool possible = (j < 0 || places[j].separates) && before < SIZE_MAX && before + inside <= most;
            if (possible && before + places[i].output < places[i].between) {
                places[i].between = before + places[i].output;
                places[i].before = j;
            }
            inside += j >= 0 ? places[j].kept : 0;
        }
    }
    return places[count - 1].between < SIZE_MAX;
}

/* Cuts such that the most that is kept at once is as little as can be. */
static void cut_best(place *places, int count) {
    size_t low = 0, high = 0;
    for (int i = 0; i < count; i++)
        high += places[i].kept + places[i].output;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (cut_within(places, count, middle))
            high = middle;
        else
            low = middle + 1;
    }
    (void)cut_within(places, count, high);
    for (int i = places[count - 1].before; i >= 0; i = places[i].before)
        places[i].cut = true;
}

/* All segments but the last. */
static void replay_segments(dv_plan *plan, const place *places, int first) {
    for (int i = first; i < (int)plan->graph->layer_count; i++)
        if (places[i].cut) {
            dv_plan_replay(plan, first, i);
            first = i + 1;
        }
}

static void keep(dv_plan *plan, dv_value value) {
    dv_plan_keep(plan, value, dv_plan_can_replay(plan, value) ? &dv_keep_replayed : &dv_keep_exact);
}

static dv_status choose(dv_plan *plan, dv_error *error) {
    place *places = calloc(plan->graph->layer_count + 1, sizeof *places);
    bool *separates = calloc(plan->graph->layer_count + 1, sizeof *separates);
    if (!places || !separates) {
        free(places);
        free(separates);
        return dv_fail(error, DV_ERROR_MEMORY, "plan: no memory");
    }
    dv_plan_separators(plan, separates);
    find_places(plan, separates, places);
    int first = dv_plan_first_backward(plan), count = (int)plan->graph->layer_count - first;
    if (plan->method.options[SEGMENTS] > 0)
        cut_evenly(places + first, count, (size_t)plan->method.options[SEGMENTS]);
    else if (count > 0) /* something has a backward */
        cut_best(places + first, count);
    replay_segments(plan, places, first);
    free(places);
    free(separates);
    dv_plan_choose(plan, keep);
    return DV_OK;
}

const dv_method_kind dv_method_checkpoint = {
    .name = "checkpoint",
    .help = "keeps the values between segments, and runs a segment forward again before its backward; option: segments",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .choose = choose,
};
