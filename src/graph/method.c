/* The table of methods. A new one is a policy and a line here. */
#include "graph/method.h"

#include "base/sizes.h"
#include "base/status.h"
#include "codec/kind.h"

#include <stdio.h>
#include <string.h>

static dv_keeper keep_exact(const dv_method *method, const dv_graph *graph, dv_value value) {
    (void)method;
    (void)graph;
    (void)value;
    return DV_KEEP_EXACT;
}

/* A concatenation of values that are not concatenations themselves. */
static bool is_joined(const dv_graph *graph, dv_value value) {
    int producer = graph->values[value].producer;
    if (producer == DV_INPUT || graph->layers[producer].layer.kind != &dv_concatenation)
        return false;
    const dv_graph_layer *node = &graph->layers[producer];
    for (size_t k = 0; k < node->layer.input_count; k++) {
        int from = graph->values[node->inputs[k]].producer;
        if (from != DV_INPUT && graph->layers[from].layer.kind == &dv_concatenation)
            return false;
    }
    return true;
}

/* A later layer's backward needs its numbers. */
static bool is_needed(const dv_graph *graph, dv_value value) {
    const dv_graph_value *v = &graph->values[value];
    for (int i = v->producer + 1; i <= v->last_user; i++) {
        const dv_graph_layer *node = &graph->layers[i];
        for (size_t k = 0; k < node->layer.input_count; k++)
            if (node->inputs[k] == value && node->layer.input_need == DV_NEED_NUMBERS &&
                dv_layer_needs_input(&node->layer, k))
                return true;
    }
    return false;
}

/* Values that are unpacked for one that is made again: noise and time grow with them. The blocks of a stage of
 * ResNet-18 are such a chain, each adding to what the one before made. */
enum { MOST_UNPACKED = 4 };

/* How many values would be unpacked to make this one again: its batch norm's input, and what that adds, which may be
 * made again itself. 0 if it must be kept: no batch norm made it, it would take too many, or one that nobody else
 * needs. */
static int count_unpacked(const dv_graph *graph, dv_value value) {
    int producer = graph->values[value].producer;
    if (producer == DV_INPUT || graph->layers[producer].layer.kind != &dv_batch_norm)
        return 0;
    const dv_graph_layer *node = &graph->layers[producer];
    const dv_batch_norm_options *options = node->layer.options;
    if (!options->add)
        return 1;
    int added = count_unpacked(graph, node->inputs[1]);
    if (added == 0 && is_needed(graph, node->inputs[1]))
        added = 1;
    return added > 0 && added < MOST_UNPACKED ? added + 1 : 0;
}

/* Everything with spatial dimensions is packed; what linear layers need is small and kept as it is. What a dense
 * block joins again and again is kept once, before it is joined. */
static dv_keeper keep_packed_maps(const dv_method *method, const dv_graph *graph, dv_value value) {
    const dv_map *map = &graph->values[value].map;
    if (is_joined(graph, value))
        return DV_KEEP_RECOMPUTED;
    if (dv_map_image_elements(map) == map->channels)
        return DV_KEEP_EXACT;
    return method->recompute_norms && count_unpacked(graph, value) > 0 ? DV_KEEP_RECOMPUTED : DV_KEEP_PACKED;
}

static const dv_method_kind kinds[] = {
    {.name = "none", .help = "keeps everything exactly, as frameworks do", .keeper = keep_exact},
    {.name = "division",
     .help = "block averages in bf16 and the rest in a few bits; options: block, bits, dither, recompute",
     .packs = true,
     .keeper = keep_packed_maps},
};

enum { KIND_COUNT = sizeof kinds / sizeof *kinds };

const char *dv_method_name_at(size_t index) {
    return index < KIND_COUNT ? kinds[index].name : NULL;
}

const char *dv_method_help_at(size_t index) {
    return index < KIND_COUNT ? kinds[index].help : NULL;
}

static int32_t *bits_of(dv_codec *codec) {
    for (size_t i = 0; i < codec->kind->option_count; i++)
        if (strcmp(codec->kind->options[i].name, "bits") == 0)
            return &codec->options[i];
    return NULL;
}

/* The same codec with 8 bits or more. Images are made of bytes, so that this leaves next to nothing out; they are a
 * small part of what is kept, and noise in them would spoil the gradient of the first layer. */
static dv_codec for_images(dv_codec codec) {
    int32_t *bits = bits_of(&codec);
    if (bits && *bits < 8)
        *bits = 8;
    return codec;
}

/* The same codec with the bits of two values, as far as there are so many. */
static dv_codec for_sources(dv_codec codec) {
    int32_t *bits = bits_of(&codec);
    if (bits && *bits <= 4)
        *bits *= 2;
    return codec;
}

/* ---- options from text ----------------------------------------------------------------------- */

enum { TEXT_BYTES = 200 };

static const char RECOMPUTE[] = "recompute=";

/* Reads the value of `recompute`, `length` characters. */
static dv_status set_recompute(dv_method *method, const char *value, size_t length, dv_error *error) {
    method->recompute_norms = length == 5 && memcmp(value, "norms", length) == 0;
    if (!method->recompute_norms && !(length == 7 && memcmp(value, "nothing", length) == 0))
        return dv_fail(error, DV_ERROR_OPTION, "%s: recompute=%.*s: must be nothing or norms", method->kind->name,
                       (int)dv_smaller(length, 40), value);
    return DV_OK;
}

/* Takes the method's own option out of "name:option=value,...". The rest, in `rest`, is for the codec. */
static dv_status take_own_option(const char *text, dv_method *method, char rest[TEXT_BYTES], dv_error *error) {
    size_t name = strcspn(text, ":"), used = name;
    if (strlen(text) >= TEXT_BYTES)
        return dv_fail(error, DV_ERROR_OPTION, "%s: %zu characters of options: there are not so many",
                       method->kind->name, strlen(text));
    memcpy(rest, text, name);
    for (const char *at = text + name; *at;) {
        size_t length = strcspn(++at, ",");
        if (strncmp(at, RECOMPUTE, strlen(RECOMPUTE)) == 0) {
            DV_TRY(set_recompute(method, at + strlen(RECOMPUTE), length - strlen(RECOMPUTE), error));
        } else {
            rest[used] = used == name ? ':' : ',';
            memcpy(rest + used + 1, at, length);
            used += 1 + length;
        }
        at += length;
    }
    rest[used] = '\0';
    return DV_OK;
}

static dv_status parse_packing(const char *text, dv_method *method, dv_error *error) {
    char rest[TEXT_BYTES];
    DV_TRY(take_own_option(text, method, rest, error));
    DV_TRY(dv_codec_parse(rest, &method->codec, error));
    method->input = for_images(method->codec);
    method->source = for_sources(method->codec);
    return DV_OK;
}

dv_status dv_method_parse(const char *text, dv_method *method, dv_error *error) {
    char known[120] = "";
    size_t length = strcspn(text, ":");
    for (size_t i = 0; i < KIND_COUNT; i++) {
        const dv_method_kind *kind = &kinds[i];
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i ? ", " : "", kind->name);
        if (strlen(kind->name) != length || memcmp(kind->name, text, length) != 0)
            continue;
        *method = (dv_method){.kind = kind};
        if (kind->packs)
            return parse_packing(text, method, error);
        if (text[length])
            return dv_fail(error, DV_ERROR_OPTION, "method %s takes no options: drop \"%.40s\"", kind->name,
                           text + length);
        return DV_OK;
    }
    return dv_fail(error, DV_ERROR_OPTION, "unknown method \"%.40s\": there are %s", text, known);
}
