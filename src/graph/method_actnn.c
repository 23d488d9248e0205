/* ActNN: groups of 256 elements in a few bits, rounded at random. At level L3 the bits are shared out anew in every
 * step, two on average: among the images of a value by how far their elements are apart, and among values by how their
 * noise weighs in the gradients, of which the last step is remembered.
 *
 *     forward    ranges of each image's groups ──► bits of each image, within those of its value
 *     backward   the gradient of the output of each convolution ──► how noise in its input weighs
 *     adapt      both, of all values and images ──► bits of each value in the next step
 *
 * Values that norms alone read have a share of their own that does not change, so that all planned bytes are fixed. */
#include "base/status.h"
#include "codec/actnn.h"
#include "codec/map.h"
#include "graph/gradient_norm.h"
#include "graph/keep_groups.h"
#include "graph/share_bits.h"

#include <division/tools/option.h>

enum { LEVEL }; /* options */
enum { L0, L1, L2, L3, L4 };
enum { BITS = 0 /* the codec's option */, FIXED_BITS = 4 };

static const char *const level_words[] = {"L0", "L1", "L2", "L3", "L4", NULL};

static const dv_option options[] = {
    [LEVEL] =
        {"level", NULL,
         "L0 exact, L1 inputs of convolutions in 4 bits, L2 all in 4 bits, L3 bits shared out anew in every step, "
         "L4 L3 in a file",
         DV_WORD_IN(LEVEL, level_words), .preset = "L3"},
};

static int level_of(const dv_plan *plan) {
    return plan->method.options[LEVEL];
}

/* ---- the choice ------------------------------------------------------------------------------ */

bool dv_groups_weighs(const dv_plan *plan, dv_value value) {
    const dv_graph_value *v = &plan->graph->values[value];
    for (int i = v->producer + 1; i <= v->last_user; i++)
        if (dv_plan_weighs(plan, i, value))
            return true;
    return false;
}

static void keep(dv_plan *plan, dv_value value) {
    int level = level_of(plan);
    plan->values[value].codec = plan->method.codec;
    if (level < L3)
        plan->values[value].codec.options[BITS] = FIXED_BITS;
    if (level == L0 || (level == L1 && !dv_groups_weighs(plan, value)))
        dv_plan_keep(plan, value, &dv_keep_exact);
    else if (level < L3)
        dv_plan_keep(plan, value, &dv_keep_packed);
    else if (level == L4 && dv_plan_can_spill(plan, value))
        dv_plan_spill(plan, value, &dv_keep_groups);
    else
        dv_plan_keep(plan, value, &dv_keep_groups);
}

static bool is_in_groups(const dv_plan *plan, dv_value value) {
    return plan->values[value].keeper && dv_keeper_in_memory(&plan->values[value]) == &dv_keep_groups;
}

static dv_status choose(dv_plan *plan, dv_error *error) {
    (void)error;
    size_t at = 0;
    dv_plan_choose(plan, keep);
    for (dv_value v = 0; v < (dv_value)plan->graph->value_count; v++)
        if (is_in_groups(plan, v)) {
            plan->values[v].state_at = at;
            at += dv_groups_state_count(plan);
        }
    return DV_OK;
}

/* ---- learning -------------------------------------------------------------------------------- */

/* Values whose images share the pool. */
static bool is_shared(const dv_plan *plan, dv_value value) {
    return plan->values[value].keeper == &dv_keep_groups && dv_groups_weighs(plan, value);
}

/* Images of values that share the pool. */
static size_t shared_images(const dv_plan *plan) {
    size_t count = 0;
    for (dv_value v = 0; v < (dv_value)plan->graph->value_count; v++)
        count += is_shared(plan, v) ? plan->graph->batch : 0;
    return count;
}

/* What is known of each value, and room to share out bits in. */
static size_t state_count(const dv_plan *plan) {
    size_t count = 3 * shared_images(plan);
    for (dv_value v = 0; v < (dv_value)plan->graph->value_count; v++)
        count += is_in_groups(plan, v) ? dv_groups_state_count(plan) : 0;
    return count;
}

/* How noise in a layer's input weighs: kernel area / (4 groups) x 256 / pixels of the output x the mean squared norm of
 * an image's gradient. */
static double weight_of(const dv_observation *seen) {
    const dv_layer *layer = &seen->plan->graph->layers[seen->layer].layer;
    dv_layer_reach reach = dv_layer_reach_of(layer);
    double pixels = (double)dv_map_pixels(&layer->output);
    double square = dv_square_sum(&layer->output, seen->call->images, seen->call->diff_output);
    return reach.area / (4 * reach.groups) * 256 / pixels * square / (double)seen->call->images;
}

/* The layer that reads the value first in backward begins, and the others add. */
static void observe(const dv_observation *seen, float *state) {
    const dv_plan *plan = seen->plan;
    const dv_graph_layer *node = &plan->graph->layers[seen->layer];
    for (size_t k = 0; !seen->done && k < node->layer.input_count; k++) {
        dv_value value = node->inputs[k];
        if (!dv_plan_weighs(plan, seen->layer, value) || !is_in_groups(plan, value))
            continue;
        float *weight = state + plan->values[value].state_at + DV_GROUPS_GRADIENT;
        bool begins = dv_plan_first_to_weigh(plan, seen->layer, value);
        *weight = (float)weight_of(seen) + (begins ? 0 : *weight);
    }
}

/* What the images of all these values are worth, one behind the other, and what each takes of the pool. */
static size_t list_images(const dv_plan *plan, const float *state, float *cost, float *weight) {
    size_t count = 0;
    for (dv_value v = 0; v < (dv_value)plan->graph->value_count; v++) {
        const float *numbers = state + plan->values[v].state_at,
                    *ranges = numbers + DV_GROUPS_EACH + plan->graph->batch;
        for (size_t n = 0; is_shared(plan, v) && n < (size_t)numbers[DV_GROUPS_IMAGES]; n++, count++) {
            cost[count] = numbers[DV_GROUPS_GRADIENT] * ranges[n];
            weight[count] = (float)dv_actnn_groups(&plan->graph->values[v].map);
        }
    }
    return count;
}

/* The bits that a value's images have got, as those of a whole batch. */
static void give_bits(const dv_plan *plan, const float *bits, float *state) {
    for (dv_value v = 0; v < (dv_value)plan->graph->value_count; v++) {
        if (!is_shared(plan, v))
            continue;
        float *numbers = state + plan->values[v].state_at;
        size_t images = (size_t)numbers[DV_GROUPS_IMAGES], sum = 0;
        for (size_t n = 0; n < images; n++)
            sum += (size_t)*bits++;
        size_t whole = images > 0 ? sum * plan->graph->batch / images : 0;
        numbers[DV_GROUPS_BITS] = (float)whole;
    }
}

static void adapt(const dv_plan *plan, uint64_t batch, float *state) {
    (void)batch;
    size_t room = shared_images(plan);
    float *cost = state + state_count(plan) - 3 * room, *weight = cost + room, *bits = weight + room;
    const dv_bits_items all = {list_images(plan, state, cost, weight), cost, weight, bits};
    double budget = 0;
    for (size_t i = 0; i < all.count; i++)
        budget += (double)(weight[i] * (float)plan->method.codec.options[BITS]);
    dv_share_bits(&all, budget);
    give_bits(plan, bits, state);
}

const dv_method_kind dv_method_actnn = {
    .name = "actnn",
    .help = "groups of 256 elements in a few bits, shared out by what they do to the gradient; options: bits, level",
    .codec = "actnn",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .choose = choose,
    .state_count = state_count,
    .observe = observe,
    .adapt = adapt,
};
