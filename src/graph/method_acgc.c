/* AC-GC: every channel is kept as coarsely as the error of the gradients allows. How large an error that is follows
 * from the gradients themselves, measured in every hundredth step:
 *
 *     read by a convolution      error² = ε Σ‖gW‖² / (2 elements Σ (window / stride²) ‖gY‖²), over its readers
 *     read by a norm, channel k  error² = ε ‖gX‖² pixels / (channels γ² istd⁴ g), 2^-16 at least,
 *                                g = (∂γ)² + istd² nnz² max(gz²) (max|x| / 2)²
 *
 * gW, gY, gX are gradients of weights, output and input, gz that of the norm's output before the ReLU. Of what was
 * found the mean of the last ten is used. All values share the pool of the plan, whose bytes are fixed: `bits` on
 * average. */
#include "base/sizes.h"
#include "base/status.h"
#include "codec/map.h"
#include "graph/gradient_norm.h"
#include "graph/keep_channels.h"

#include <division/tools/option.h>
#include <math.h>
#include <string.h>

enum { EPS_BITS }; /* options */
enum { BITS = 0 /* the codec's option */, EVERY = 100, LAST = 10 };

static const dv_option options[] = {
    [EPS_BITS] = {"eps_bits", "N", "error of the gradients: 2^-N of their norm", DV_INTEGER_IN(EPS_BITS, -16, 16),
                  .preset = "0"},
};

/* ---- the choice ------------------------------------------------------------------------------ */

static void keep(dv_plan *plan, dv_value value) {
    const dv_map *map = &plan->graph->values[value].map;
    bool flat = dv_map_image_elements(map) == map->channels;
    plan->values[value].codec = plan->method.codec;
    dv_plan_keep(plan, value, flat ? &dv_keep_exact : &dv_keep_channels);
}

static bool is_in_channels(const dv_plan *plan, dv_value value) {
    return plan->values[value].keeper == &dv_keep_channels;
}

static dv_status choose(dv_plan *plan, dv_error *error) {
    (void)error;
    size_t at = 0;
    dv_plan_choose(plan, keep);
    for (dv_value v = 0; v < (dv_value)plan->graph->value_count; v++)
        if (is_in_channels(plan, v)) {
            plan->values[v].state_at = at;
            at += dv_channels_state_count(plan, v);
        }
    return DV_OK;
}

size_t dv_channels_most(const dv_plan *plan) {
    size_t most = 0;
    for (dv_value v = 0; v < (dv_value)plan->graph->value_count; v++)
        most = is_in_channels(plan, v) ? dv_larger(most, plan->graph->values[v].map.channels) : most;
    return most;
}

/* What is known of each value; then magnitudes, counts and maxima of one value's channels, while they are needed. */
static size_t state_count(const dv_plan *plan) {
    size_t count = 3 * dv_channels_most(plan);
    for (dv_value v = 0; v < (dv_value)plan->graph->value_count; v++)
        count += is_in_channels(plan, v) ? dv_channels_state_count(plan, v) : 0;
    return count;
}

/* ---- convolutions and linear layers ------------------------------------------------------------ */

/* The mean of the last few: the first of a step's readers makes room, and each adds its part. */
static double part_of(const float *numbers) {
    return 1 / fmin((double)numbers[DV_CHANNELS_SAMPLES] + 1, LAST);
}

static void observe_output(const dv_observation *seen, dv_value value, float *numbers) {
    const dv_layer *layer = &seen->plan->graph->layers[seen->layer].layer;
    double pixels = (double)dv_map_image_elements(&layer->output) / (double)layer->output.channels;
    double from = (double)dv_map_image_elements(&layer->inputs[0]) / (double)layer->inputs[0].channels;
    double square = dv_square_sum(&layer->output, seen->call->images, seen->call->diff_output);
    double part = part_of(numbers), kept = dv_plan_first_to_weigh(seen->plan, seen->layer, value) ? 1 - part : 1;
    double now = dv_layer_reach_of(layer).area * pixels / from * square;
    numbers[DV_CHANNELS_OUTPUT] = (float)(kept * (double)numbers[DV_CHANNELS_OUTPUT] + part * now);
}

static void observe_weights(const dv_observation *seen, dv_value value, float *numbers) {
    const dv_layer *layer = &seen->plan->graph->layers[seen->layer].layer;
    const float *gradient = seen->call->arrays->gradients[0];
    const dv_map as_map = {.type = DV_F32, .images = 1, .channels = layer->parameters[0].count};
    double square = gradient ? dv_square_sum(&as_map, 1, gradient) : 0;
    double part = part_of(numbers), kept = dv_plan_first_to_weigh(seen->plan, seen->layer, value) ? 1 - part : 1;
    numbers[DV_CHANNELS_GRADIENT] = (float)(kept * (double)numbers[DV_CHANNELS_GRADIENT] + part * square);
}

/* ---- norms ------------------------------------------------------------------------------------- */

/* The bit of element `index` of an image, in the order of the `bits` codec. */
static bool is_set(const uint8_t *mask, size_t elements, size_t index) {
    enum { CHUNK = 256 };
    size_t chunk = index / CHUNK * CHUNK, bytes = (dv_smaller(CHUNK, elements - chunk) + 7) / 8;
    return mask[chunk / 8 + (index - chunk) % bytes] >> (index - chunk) / bytes & 1;
}

/* Adds a pixel's gradients before the ReLU: how many are not zero, and the largest square of each channel. */
static void add_pixel(const dv_map *map, const uint8_t *mask, size_t pixel, const float *diff, float *counts,
                      float *largest) {
    size_t elements = dv_map_image_elements(map);
    for (size_t c = 0; c < map->channels; c++)
        if (diff[c] != 0 && (!mask || is_set(mask, elements, pixel * map->channels + c))) {
            counts[c]++;
            largest[c] = fmaxf(largest[c], diff[c] * diff[c]);
        }
}

static void observe_norm_output(const dv_observation *seen, float *counts, float *largest, float *row) {
    const dv_layer *layer = &seen->plan->graph->layers[seen->layer].layer;
    const dv_map *map = &layer->output;
    const uint8_t *mask = layer->zero_outside_mask ? seen->call->output->mask : NULL;
    size_t pixels = dv_map_image_elements(map) / map->channels, bytes = map->channels * dv_type_bytes(map->type);
    memset(counts, 0, map->channels * sizeof *counts);
    memset(largest, 0, map->channels * sizeof *largest);
    for (size_t n = 0; n < seen->call->images; n++)
        for (size_t p = 0; p < pixels; p++) {
            dv_convert_to_f32(map->type, (const char *)seen->call->diff_output + (n * pixels + p) * bytes,
                              map->channels, row);
            add_pixel(map, mask ? mask + n * dv_mask_stride(map) : NULL, p, row, counts, largest);
        }
}

static void observe_norm(const dv_observation *seen, const float *counts, const float *largest, float *numbers) {
    const dv_layer *layer = &seen->plan->graph->layers[seen->layer].layer;
    const dv_map *map = &layer->inputs[0];
    const float *gradient = seen->call->arrays->gradients[0];
    dv_normalisation norm = layer->kind->normalisation(layer, seen->call->arrays, seen->call->saved);
    if (!seen->call->diff_inputs[0] || !gradient)
        return;
    double square = dv_square_sum(map, seen->call->images, seen->call->diff_inputs[0]), part = part_of(numbers);
    double population = (double)(seen->call->images * dv_map_pixels(map));
    for (size_t c = 0; c < map->channels; c++) {
        double weight = (double)norm.weight[c], istd = (double)norm.istd[c];
        double half = dv_channels_reach(seen->call->inputs[0], c) / 2;
        double g = pow((double)gradient[c], 2) + pow(istd * (double)counts[c] * half, 2) * (double)largest[c];
        double below = (double)map->channels * weight * weight * pow(istd, 4) * g;
        double error = ldexp(square * population, -seen->plan->method.options[EPS_BITS]) / fmax(below, 1e-30);
        float *mean = &numbers[DV_CHANNELS_EACH + c];
        *mean = (float)((1 - part) * (double)*mean + part * fmin(fmax(error, 0x1p-16), 1e30));
    }
}

/* ---- learning ---------------------------------------------------------------------------------- */

static void observe_input(const dv_observation *seen, dv_value value, float *state) {
    const dv_plan *plan = seen->plan;
    size_t most = dv_channels_most(plan);
    float *numbers = state + plan->values[value].state_at, *counts = state + plan->state_count - 2 * most;
    bool norm = plan->graph->layers[seen->layer].layer.kind->normalisation != NULL;
    if (norm && seen->done)
        observe_norm(seen, counts, counts + most, numbers);
    else if (norm)
        observe_norm_output(seen, counts, counts + most, counts - most);
    else if (seen->done)
        observe_weights(seen, value, numbers);
    else
        observe_output(seen, value, numbers);
}

static void observe(const dv_observation *seen, float *state) {
    const dv_graph_layer *node = &seen->plan->graph->layers[seen->layer];
    for (size_t k = 0; seen->call->step % EVERY == 0 && k < node->layer.input_count; k++)
        if (is_in_channels(seen->plan, node->inputs[k]) && dv_plan_reads(seen->plan, seen->layer, node->inputs[k]))
            observe_input(seen, node->inputs[k], state);
}

/* What a value must have, what it would have liked beyond that, and what the plan gave it: in units. */
typedef struct wish {
    double least, more, planned;
} wish;

/* What a value takes with one width for all its channels, in units. */
static double units_of(const dv_plan *plan, dv_value value, unsigned width) {
    size_t units = dv_channels_bytes(plan, value, width) / DV_CHANNELS_UNIT;
    return (double)units;
}

static wish wish_of(const dv_plan *plan, dv_value value, const float *state) {
    double wanted = (double)state[plan->values[value].state_at + DV_CHANNELS_WANTED];
    double least = units_of(plan, value, dv_channels_least_width(plan, value));
    unsigned width = (unsigned)plan->method.codec.options[BITS];
    return (wish){least, fmax(wanted - least, 0), units_of(plan, value, width)};
}

/* Rounded down to what f32 holds. */
static float units(double room) {
    float below = (float)floor(room);
    return (double)below > room ? nextafterf(below, 0) : below;
}

/* All have the least that they can do with, and shares of the rest by what they would have liked. */
static void adapt(const dv_plan *plan, uint64_t batch, float *state) {
    wish all = {0, 0, 0};
    for (dv_value v = 0; v < (dv_value)plan->graph->value_count; v++) {
        if (!is_in_channels(plan, v))
            continue;
        wish one = wish_of(plan, v, state);
        all = (wish){all.least + one.least, all.more + one.more, all.planned + one.planned};
    }
    for (dv_value v = 0; v < (dv_value)plan->graph->value_count; v++) {
        if (!is_in_channels(plan, v))
            continue;
        float *numbers = state + plan->values[v].state_at;
        wish one = wish_of(plan, v, state);
        double share = all.more > 0 ? one.more / all.more * (all.planned - all.least) : 0;
        numbers[DV_CHANNELS_ROOM] = units(one.least + share);
        if (batch % EVERY == 0)
            numbers[DV_CHANNELS_SAMPLES] = fminf(numbers[DV_CHANNELS_SAMPLES] + 1, LAST);
    }
}

const dv_method_kind dv_method_acgc = {
    .name = "acgc",
    .help = "each channel as coarsely as the error of gradients allows; options: bits, eps_bits",
    .codec = "acgc",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .choose = choose,
    .state_count = state_count,
    .observe = observe,
    .adapt = adapt,
};
