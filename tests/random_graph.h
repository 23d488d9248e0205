/* Random graphs: small ones, from every function that builds them, with everything that a network need not do.
 *
 *     dv_graph *graph = random_graph(seed, DV_F32);
 *
 * The same seed gives the same graph in every type, and with every compiler: no two dice are
 * rolled in one expression. A layer's name says what it is and what it takes: "sum9(4,4)" is
 * the sum of value 4 with itself. A new builder function is a function and a line in the table `random_builders`. */
#ifndef DV_TESTS_RANDOM_GRAPH_H
#define DV_TESTS_RANDOM_GRAPH_H

#include "base/random.h"
#include "base/sizes.h"
#include "check.h"
#include "graph/graph.h"
#include "nn/shape.h"

/* ---- dice ------------------------------------------------------------------------------------ */

typedef struct dice {
    dv_random key;
    uint32_t rolled;
} dice;

static inline dice dice_of(uint64_t seed, uint64_t purpose) {
    return (dice){.key = dv_random_key((const uint64_t[]){seed, purpose}, 2)};
}

/* A whole number from `least` to `most`. */
static inline size_t roll(dice *d, size_t least, size_t most) {
    return least + dv_random_word(d->key, d->rolled++) % (most - least + 1);
}

static inline bool chance(dice *d, size_t percent) {
    return roll(d, 1, 100) <= percent;
}

/* A number from -1 to 1. */
static inline float roll_number(dice *d) {
    return (float)dv_random_word(d->key, d->rolled++) * 0x1p-31f - 1.0f;
}

static inline size_t roll_of(dice *d, const size_t *choices, size_t count) {
    return choices[roll(d, 0, count - 1)];
}

/* ---- a graph being made ---------------------------------------------------------------------- */

enum { RANDOM_NAME_BYTES = 128, RANDOM_MOST_ELEMENTS = 1200, RANDOM_MOST_CHANNELS = 48, NOT_POSSIBLE = -2 };

typedef struct maker {
    dv_graph *graph;
    dice dice;
    bool chain; /* of layers that mostly take the one before: what can be cut between them */
    char name[RANDOM_NAME_BYTES];
} maker;

static inline const dv_map *map_of(const maker *m, dv_value value) {
    return &m->graph->values[value].map;
}

/* Names the next layer "kind12(3,4)", 12 being the number of its output. */
static inline const char *name_layer(maker *m, const char *kind, const dv_value *inputs, size_t count) {
    int length = snprintf(m->name, sizeof m->name, "%s%zu(", kind, m->graph->value_count);
    for (size_t i = 0; i < count; i++)
        length += snprintf(m->name + length, sizeof m->name - (size_t)length, "%s%d", i ? "," : "", inputs[i]);
    snprintf(m->name + length, sizeof m->name - (size_t)length, ")");
    return m->name;
}

/* Any value, the later ones more often: so that graphs are deep and values are shared all the same. */
static inline dv_value pick_value(maker *m) {
    size_t count = m->graph->value_count, last = chance(&m->dice, 70) ? dv_smaller(count, 3) : count;
    if (m->chain && chance(&m->dice, 90))
        last = 1;
    return (dv_value)(count - roll(&m->dice, 1, last));
}

/* A value with the sides of `x`, and if `channels` its channels too: x itself where there is no other. */
static inline dv_value pick_like(maker *m, dv_value x, bool channels) {
    dv_value found[64];
    size_t count = 0;
    for (size_t v = m->graph->value_count; v-- > 0 && count < 64;)
        if (dv_same_sides(map_of(m, (dv_value)v), map_of(m, x)) &&
            (!channels || map_of(m, (dv_value)v)->channels == map_of(m, x)->channels))
            found[count++] = (dv_value)v;
    return found[roll(&m->dice, 0, count - 1)];
}

/* ---- windows --------------------------------------------------------------------------------- */

static inline size_t reach_of(const dv_window *w, int d) {
    return (w->kernel[d] - 1) * w->dilation[d] + 1;
}

/* Windows of all kinds: of one pixel, larger than the map, with taps that only ever meet padding. */
static inline dv_window random_window(maker *m, dv_value x, bool dilated) {
    const dv_map *map = map_of(m, x);
    dv_window w = dv_window_square(1, 1, 0);
    for (int d = 0; d < map->rank; d++) {
        w.kernel[d] = roll(&m->dice, 1, map->rank == 3 ? 3 : 4);
        w.stride[d] = chance(&m->dice, 50) ? 1 : roll(&m->dice, 1, 3);
        w.dilation[d] = dilated && chance(&m->dice, 30) ? 2 : 1;
        w.padding[d] = roll(&m->dice, 0, w.kernel[d]);
    }
    return w;
}

/* The window that networks have most: 1 or 3 wide, sides stay as they are. */
static inline dv_window usual_window(maker *m) {
    size_t kernel = chance(&m->dice, 70) ? 3 : 1;
    return dv_window_square(kernel, 1, kernel / 2);
}

/* Whether an output of these sides and channels is there, and small. */
static inline bool is_small(const dv_map *map, const size_t *sides, size_t channels) {
    size_t elements = channels;
    for (int d = 0; d < map->rank; d++)
        elements *= sides[d] > RANDOM_MOST_ELEMENTS ? 0 : sides[d]; /* a negative side is very large */
    return elements > 0 && elements <= RANDOM_MOST_ELEMENTS;
}

/* ---- one builder function each ----------------------------------------------------------------
 * Takes `x` and what else it likes. A negative value if that cannot be: another one is tried. */

static inline dv_convolution_options random_convolution(maker *m, dv_value x) {
    static const size_t some_channels[] = {1, 2, 3, 4, 6, 8, 8, 16, 16, 17, 32};
    const dv_map *map = map_of(m, x);
    bool usual = chance(&m->dice, 50);
    dv_convolution_options options = {.groups = 1};
    options.channels = roll_of(&m->dice, some_channels, sizeof some_channels / sizeof *some_channels);
    if (usual && chance(&m->dice, 70))
        options.channels = map->channels;
    options.window = usual ? usual_window(m) : random_window(m, x, true);
    options.bias = chance(&m->dice, 50);
    options.initialisation = chance(&m->dice, 50) ? DV_INITIALISATION_HE : DV_INITIALISATION_UNIFORM;
    size_t groups = chance(&m->dice, 30) ? roll(&m->dice, 2, map->channels + 1) : 1;
    if (map->channels % groups == 0 && options.channels % groups == 0)
        options.groups = groups;
    return options;
}

static inline dv_value add_convolution(maker *m, dv_value x) {
    const dv_map *map = map_of(m, x);
    dv_convolution_options options = random_convolution(m, x);
    size_t sides[DV_MAX_RANK];
    for (int d = 0; d < map->rank; d++) {
        const dv_window *w = &options.window;
        size_t padded = map->sides[d] + 2 * w->padding[d];
        sides[d] = padded < reach_of(w, d) ? 0 : (padded - reach_of(w, d)) / w->stride[d] + 1;
    }
    if (map->rank == 0 || !is_small(map, sides, options.channels))
        return NOT_POSSIBLE;
    return dv_graph_convolution(m->graph, name_layer(m, "conv", &x, 1), x, &options);
}

static inline dv_value add_transposed_convolution(maker *m, dv_value x) {
    const dv_map *map = map_of(m, x);
    dv_convolution_options options = random_convolution(m, x);
    size_t sides[DV_MAX_RANK];
    for (int d = 0; d < map->rank; d++) {
        const dv_window *w = &options.window;
        size_t most = dv_smaller(dv_larger(w->stride[d], w->dilation[d]), w->padding[d] + w->stride[d]) - 1;
        options.output_padding[d] = roll(&m->dice, 0, most);
        sides[d] = (map->sides[d] - 1) * w->stride[d] + reach_of(w, d) + options.output_padding[d] - 2 * w->padding[d];
    }
    if (map->rank == 0 || !is_small(map, sides, options.channels))
        return NOT_POSSIBLE;
    return dv_graph_transposed_convolution(m->graph, name_layer(m, "transposed", &x, 1), x, &options);
}

static inline dv_value add_relu(maker *m, dv_value x) {
    return dv_graph_relu(m->graph, name_layer(m, "relu", &x, 1), x);
}

static inline dv_value add_sum(maker *m, dv_value x) {
    dv_value inputs[2] = {x, pick_like(m, x, true)};
    if (chance(&m->dice, 50))
        inputs[0] = inputs[1], inputs[1] = x;
    return dv_graph_sum(m->graph, name_layer(m, "sum", inputs, 2), inputs[0], inputs[1]);
}

/* Not of two or three numbers: their deviation may be next to nothing, and whatever is computed with it noise. Often
 * with the sum and the ReLU behind it that it takes over. */
static inline dv_value add_batch_norm(maker *m, dv_value x) {
    if (dv_map_elements(map_of(m, x)) / map_of(m, x)->channels < 4)
        return NOT_POSSIBLE;
    dv_value y = dv_graph_batch_norm(m->graph, name_layer(m, "norm", &x, 1), x);
    if (chance(&m->dice, 40))
        y = add_sum(m, y);
    return chance(&m->dice, 40) ? add_relu(m, y) : y;
}

static inline dv_value add_leaky_relu(maker *m, dv_value x) {
    static const float slopes[] = {0.01f, 0.2f, 0.9f};
    return dv_graph_leaky_relu(m->graph, name_layer(m, "leaky", &x, 1), x, slopes[roll(&m->dice, 0, 2)]);
}

static inline bool random_pooling(maker *m, dv_value x, dv_pooling_options *options) {
    const dv_map *map = map_of(m, x);
    options->window = random_window(m, x, false);
    options->ceil = chance(&m->dice, 50);
    options->count_padding = chance(&m->dice, 50);
    for (int d = 0; d < map->rank; d++) {
        dv_window *w = &options->window;
        w->padding[d] = dv_smaller(w->padding[d], w->kernel[d] / 2);
        if (w->kernel[d] > map->sides[d] + 2 * w->padding[d])
            return false;
    }
    return map->rank > 0;
}

static inline dv_value add_max_pooling(maker *m, dv_value x) {
    dv_pooling_options options;
    return random_pooling(m, x, &options) ? dv_graph_max_pooling(m->graph, name_layer(m, "max", &x, 1), x, &options)
                                          : NOT_POSSIBLE;
}

static inline dv_value add_average_pooling(maker *m, dv_value x) {
    dv_pooling_options options;
    return random_pooling(m, x, &options)
               ? dv_graph_average_pooling(m->graph, name_layer(m, "average", &x, 1), x, &options)
               : NOT_POSSIBLE;
}

static inline dv_value add_global_average_pooling(maker *m, dv_value x) {
    return dv_graph_global_average_pooling(m->graph, name_layer(m, "global", &x, 1), x);
}

static inline dv_value add_dropout(maker *m, dv_value x) {
    static const float probabilities[] = {0, 0.1f, 0.5f};
    return dv_graph_dropout(m->graph, name_layer(m, "dropout", &x, 1), x, probabilities[roll(&m->dice, 0, 2)]);
}

static inline dv_value add_linear(maker *m, dv_value x) {
    dv_linear_options options = {.channels = roll(&m->dice, 1, 20)};
    options.bias = chance(&m->dice, 50);
    if (map_of(m, x)->rank != 0)
        return NOT_POSSIBLE;
    return dv_graph_linear(m->graph, name_layer(m, "linear", &x, 1), x, &options);
}

static inline dv_value add_concatenation(maker *m, dv_value x) {
    dv_value inputs[4] = {x};
    size_t count = roll(&m->dice, 1, 4), channels = map_of(m, x)->channels;
    for (size_t i = 1; i < count; i++) {
        inputs[i] = pick_like(m, x, false);
        channels += map_of(m, inputs[i])->channels;
    }
    if (channels > RANDOM_MOST_CHANNELS)
        return NOT_POSSIBLE;
    return dv_graph_concatenation(m->graph, name_layer(m, "concatenation", inputs, count), inputs, count);
}

typedef struct random_builder {
    const char *function; /* without dv_graph_ */
    size_t weight;        /* how often it is tried */
    dv_value (*add)(maker *m, dv_value x);
} random_builder;

static const random_builder random_builders[] = {
    {"convolution", 8, add_convolution},
    {"transposed_convolution", 3, add_transposed_convolution},
    {"batch_norm", 6, add_batch_norm},
    {"relu", 5, add_relu},
    {"leaky_relu", 3, add_leaky_relu},
    {"max_pooling", 2, add_max_pooling},
    {"average_pooling", 2, add_average_pooling},
    {"global_average_pooling", 1, add_global_average_pooling},
    {"dropout", 2, add_dropout},
    {"linear", 1, add_linear},
    {"sum", 5, add_sum},
    {"concatenation", 3, add_concatenation},
    {"softmax_cross_entropy", 0, NULL}, /* which ends a graph */
};

enum { RANDOM_BUILDERS = sizeof random_builders / sizeof *random_builders };

static inline const random_builder *pick_builder(dice *d) {
    size_t all = 0, i = 0;
    for (size_t k = 0; k < RANDOM_BUILDERS; k++)
        all += random_builders[k].weight;
    for (size_t at = roll(d, 0, all - 1); at >= random_builders[i].weight; i++)
        at -= random_builders[i].weight;
    return &random_builders[i];
}

/* ---- the whole ------------------------------------------------------------------------------- */

static inline dv_value add_images(maker *m) {
    static const size_t most_sides[] = {0, 40, 11, 6};
    size_t sides[DV_MAX_RANK], channels = chance(&m->dice, 20) ? 16 : roll(&m->dice, 1, 8);
    int rank = (int)roll(&m->dice, 1, 3);
    for (int d = 0; d < rank; d++) {
        size_t least = chance(&m->dice, 10) ? 1 : 3;
        sides[d] = roll(&m->dice, least, most_sides[rank]);
    }
    return dv_graph_input(m->graph, channels, rank, sides);
}

enum { RANDOM_MOST_ENDS = 64 };

/* What nobody has taken yet. */
static inline size_t find_ends(maker *m, dv_value *ends) {
    size_t count = 0;
    dv_graph_link(m->graph);
    for (size_t v = 0; v < m->graph->value_count && count < RANDOM_MOST_ENDS; v++)
        if (m->graph->values[v].uses == 0)
            ends[count++] = (dv_value)v;
    return count;
}

static inline dv_value join(maker *m, const dv_value *ends, size_t count) {
    if (count == 1)
        return ends[0];
    return dv_graph_concatenation(m->graph, name_layer(m, "ends", ends, count < 6 ? count : 6), ends, count);
}

/* Joins all ends: what has no sides any more after pooling over them. */
static inline dv_value join_ends(maker *m) {
    dv_value ends[RANDOM_MOST_ENDS];
    size_t count = find_ends(m, ends);
    for (size_t i = 0; i < count; i++)
        if (map_of(m, ends[i])->rank > 0)
            ends[i] = add_global_average_pooling(m, ends[i]);
    return join(m, ends, count);
}

/* Joins ends that all have the same sides: a map, whose loss is taken pixel by pixel. NOT_POSSIBLE if they have not. */
static inline dv_value join_maps(maker *m, dice *d) {
    dv_value ends[RANDOM_MOST_ENDS];
    size_t count = find_ends(m, ends);
    for (size_t i = 0; i < count; i++)
        if (map_of(m, ends[i])->rank == 0 || !dv_same_sides(map_of(m, ends[0]), map_of(m, ends[i])))
            return NOT_POSSIBLE;
    const dv_convolution_options options = {
        .channels = roll(d, 2, 6), .window = dv_window_square(1, 1, 0), .groups = 1, .bias = true};
    dv_value pixels = dv_graph_convolution(m->graph, "pixels", join(m, ends, count), &options);
    return chance(d, 50) ? pixels : dv_graph_softmax_cross_entropy(m->graph, "loss of pixels", pixels);
}

static inline dv_graph *random_graph(uint64_t seed, dv_type type) {
    maker m = {.dice = dice_of(seed, 1)};
    m.chain = chance(&m.dice, 40);
    size_t layers = roll(&m.dice, 2, 16);
    assert_ok(dv_graph_new(type, roll(&m.dice, 1, 6), &m.graph, &error));
    add_images(&m);
    for (size_t tries = 0; m.graph->layer_count < layers && tries < 10 * layers; tries++) {
        const random_builder *builder = pick_builder(&m.dice);
        if (builder->add(&m, pick_value(&m)) == -1)
            break; /* dv_graph_finish says what is wrong */
    }
    dice d = dice_of(seed, 4);
    dv_value logits = chance(&d, 50) ? join_maps(&m, &d) : NOT_POSSIBLE;
    bool maps = logits != NOT_POSSIBLE;
    if (!maps)
        logits = join_ends(&m);
    if (!maps && logits >= 0 && (map_of(&m, logits)->channels < 2 || chance(&m.dice, 75)))
        logits = dv_graph_linear(m.graph, "classifier", logits,
                                 &(dv_linear_options){.channels = roll(&m.dice, 2, 10), .bias = true});
    dv_error error = {0};
    if (dv_graph_finish(m.graph, logits, &error) != DV_OK)
        fail_msg("seed %llu: the graph cannot be built: %s", (unsigned long long)seed, error.text);
    return m.graph;
}

#endif
