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
    [SEGMENTS] = {.name = "segments",
                  .help = "how many, about; 0: as many as take the least memory",
                  .minimum = 0,
                  .maximum = 1000000,
                  .preset = 0},
};

/* A layer, as something between which a network can be cut. */
typedef struct place {
    bool separates; /* its output is all that later layers take of it and of those before */
    size_t kept;    /* bytes that `none` keeps of its output, and what it saves */
    size_t output;  /* bytes of its output */
} place;

static void find_places(const dv_plan *plan, place *places) {
    const dv_graph *graph = plan->graph;
    int alive = graph->values[graph->input].last_user >= 0;
    for (int i = 0; i < (int)graph->layer_count; i++) {
        const dv_graph_layer *node = &graph->layers[i];
        const dv_value_plan *v = &plan->values[node->output];
        for (size_t k = 0; k < node->layer.input_count; k++) {
            bool again = false;
            for (size_t j = 0; j < k; j++)
                again = again || node->inputs[j] == node->inputs[k];
            alive -= !again && graph->values[node->inputs[k]].last_user == i;
        }
        alive += graph->values[node->output].last_user > i;
        bool read = dv_is_read(v->numbers_read) || dv_is_read(v->mask_read);
        size_t bytes = dv_map_bytes(&graph->values[node->output].map);
        places[i] = (place){.separates = alive == 1 && graph->values[node->output].last_user > i,
                            .kept = (read ? bytes : 0) + (plan->layers[i].backward ? node->layer.saved_bytes : 0),
                            .output = bytes};
    }
}

/* Cuts behind separating layers, each as soon as its segment has `least` bytes. Returns the most bytes that are kept at
 * once, and calls `cut` for every segment but the last if it is not NULL. */
static size_t cut_into(dv_plan *plan, const place *places, size_t least,
                       void (*cut)(dv_plan *plan, int first, int last)) {
    size_t between = 0, inside = 0, most = 0;
    int first = 0, count = (int)plan->graph->layer_count;
    for (int i = 0; i < count; i++) {
        if (i == count - 1 || (places[i].separates && inside + places[i].kept >= least)) {
            most = between + inside > most ? between + inside : most;
            if (cut && i < count - 1)
                cut(plan, first, i);
            between += places[i].output;
            inside = 0;
            first = i + 1;
        } else {
            inside += places[i].kept;
        }
    }
    return most;
}

/* The bytes that a segment should have: those of the whole, by the number that is asked for or that takes the least. */
static size_t choose_least(dv_plan *plan, const place *places) {
    size_t all = 0, best = 0, best_most = SIZE_MAX, layers = plan->graph->layer_count;
    for (size_t i = 0; i < layers; i++)
        all += places[i].kept;
    if (plan->method.options[SEGMENTS] > 0)
        return all / (size_t)plan->method.options[SEGMENTS];
    for (size_t n = 1; n <= layers; n++) {
        size_t most = cut_into(plan, places, all / n, NULL);
        if (most < best_most) {
            best_most = most;
            best = all / n;
        }
    }
    return best;
}

static void keep(dv_plan *plan, dv_value value) {
    dv_plan_keep(plan, value, dv_plan_can_replay(plan, value) ? &dv_keep_replayed : &dv_keep_exact);
}

static dv_status choose(dv_plan *plan, dv_error *error) {
    place *places = calloc(plan->graph->layer_count + 1, sizeof *places);
    if (!places)
        return dv_fail(error, DV_ERROR_MEMORY, "plan: no memory");
    find_places(plan, places);
    cut_into(plan, places, choose_least(plan, places), dv_plan_replay);
    free(places);
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
