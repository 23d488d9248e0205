/* DIVISION: every map is packed, as block averages and a few bits per element; what follows cheaply from other kept
 * values is recomputed. What linear layers read is small and stays as it is.
 *
 * With recompute=norms the output z of a batch norm is recomputed from its packed input x. Both are read, by the norm's
 * own backward and by the layer behind it; x alone with the bits of both has a 25th of the noise's variance. */
#include "base/status.h"
#include "codec/kind.h"
#include "graph/plan.h"

#include <string.h>

enum { RECOMPUTE, SPILL }; /* options */
enum { NOTHING, NORMS };
enum { OFF, ON };

static const char *const recompute_words[] = {"nothing", "norms", NULL}, *const spill_words[] = {"off", "on", NULL};

static const dv_option options[] = {
    [RECOMPUTE] = {"recompute", NULL, "what is recomputed from its packed input: norms, the outputs of batch norms",
                   DV_WORD_IN(RECOMPUTE, recompute_words), .preset = "nothing"},
    [SPILL] = {"spill", NULL, "on: packed values lie in a file until backward", DV_WORD_IN(SPILL, spill_words),
               .preset = "off"},
};

/* ---- codecs ---------------------------------------------------------------------------------- */

static int32_t *bits_of(dv_codec *codec) {
    for (size_t i = 0; i < codec->kind->option_count; i++)
        if (strcmp(codec->kind->options[i].name, "bits") == 0)
            return &codec->options[i];
    return NULL;
}

/* The codec with 8 bits or more. Images are made of bytes, so that this leaves next to nothing out; they are a
 * small part of what is kept, and noise in them would spoil the gradient of the first layer. */
static dv_codec for_images(dv_codec codec) {
    int32_t *bits = bits_of(&codec);
    if (bits && *bits < 8)
        *bits = 8;
    return codec;
}

/* The codec with the bits of two values, as far as there are so many. */
static dv_codec for_sources(dv_codec codec) {
    int32_t *bits = bits_of(&codec);
    if (bits && *bits <= 4)
        *bits *= 2;
    return codec;
}

/* ---- the choice ------------------------------------------------------------------------------ */

/* The inputs of a recomputed value: what a batch norm normalises gets the bits of both, through concatenations too. */
static void strengthen_sources(dv_plan *plan, dv_value value) {
    const dv_graph_layer *node = &plan->graph->layers[plan->graph->values[value].producer];
    const dv_codec *of_value = &plan->values[value].codec, source = for_sources(plan->method.codec);
    bool joined_source =
        node->layer.kind->joins && memcmp(of_value->options, source.options, sizeof source.options) == 0;
    size_t count = node->layer.kind->normalises ? 1 : joined_source ? node->layer.input_count : 0;
    for (size_t k = 0; k < count; k++)
        if (node->inputs[k] != plan->graph->input)
            plan->values[node->inputs[k]].codec = source;
}

/* A batch norm's output is recomputed from at most so many values: noise and time grow with them. The blocks of a stage
 * of ResNet-18 are such a chain, each adding to what the one before made. */
enum { MOST_SOURCES = 4 };

static bool is_recomputed(const dv_plan *plan, dv_value value) {
    return dv_plan_count_sources(plan, value, MOST_SOURCES) > 0;
}

static void keep(dv_plan *plan, dv_value value) {
    const dv_map *map = &plan->graph->values[value].map;
    bool flat = dv_map_image_elements(map) == map->channels;
    bool norms = plan->method.options[RECOMPUTE] == NORMS;
    if (dv_plan_is_joined(plan, value) || (!flat && norms && is_recomputed(plan, value))) {
        dv_plan_keep(plan, value, &dv_keep_recomputed);
        strengthen_sources(plan, value);
    } else if (!flat && plan->method.options[SPILL] == ON && dv_plan_can_spill(plan, value)) {
        dv_plan_spill(plan, value, &dv_keep_packed);
    } else {
        dv_plan_keep(plan, value, flat ? &dv_keep_exact : &dv_keep_packed);
    }
}

static dv_status choose(dv_plan *plan, dv_error *error) {
    (void)error;
    for (size_t v = 0; v < plan->graph->value_count; v++)
        plan->values[v].codec = plan->method.codec;
    plan->values[plan->graph->input].codec = for_images(plan->method.codec);
    dv_plan_choose(plan, keep);
    return DV_OK;
}

const dv_method_kind dv_method_division = {
    .name = "division",
    .help =
        "block averages in bf16 and the rest in a few bits; options: block, bits, dither, lfc, hfc, recompute, spill",
    .codec = "division",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .choose = choose,
};
