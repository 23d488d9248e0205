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

static const dv_graph_layer *norm_of(const dv_graph *graph, dv_value value) {
    int producer = graph->values[value].producer;
    bool norm = producer != DV_INPUT && graph->layers[producer].layer.kind == &dv_batch_norm;
    return norm ? &graph->layers[producer] : NULL;
}

/* A batch norm's output is recomputed from at most so many values: noise and time grow with them. The blocks of a stage
 * of ResNet-18 are such a chain, each adding to what the one before made. */
enum { MOST_SOURCES = 4 };

/* The values that this one would be recomputed from: what its batch norm normalises (a concatenation counts as one),
 * and those of what it adds. 0 if it must be kept: no batch norm made it, or one behind another; it takes too many, or
 * one that nobody else needs. */
static int count_sources(const dv_graph *graph, dv_value value) {
    const dv_graph_layer *norm = norm_of(graph, value);
    if (!norm || norm_of(graph, norm->inputs[0]))
        return 0;
    if (norm->layer.input_count == 1)
        return 1;
    int added = count_sources(graph, norm->inputs[1]);
    if (added == 0 && is_needed(graph, norm->inputs[1]))
        added = 1;
    return added > 0 && added < MOST_SOURCES ? added + 1 : 0;
}

/* Everything with spatial dimensions is packed, if it is not recomputed: what batch norms make, and what a dense block
 * joins again and again. What linear layers need is small and kept as it is. */
static dv_keeper keep_packed_maps(const dv_method *method, const dv_graph *graph, dv_value value) {
    const dv_map *map = &graph->values[value].map;
    if (is_joined(graph, value))
        return DV_KEEP_RECOMPUTED;
    if (dv_map_image_elements(map) == map->channels)
        return DV_KEEP_EXACT;
    return method->recompute_norms && count_sources(graph, value) > 0 ? DV_KEEP_RECOMPUTED : DV_KEEP_PACKED;
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

static bool equals(const char *text, size_t length, const char *word) {
    return strlen(word) == length && memcmp(text, word, length) == 0;
}

static bool is_option_of(const dv_codec_kind *kind, const char *name, size_t length) {
    for (size_t i = 0; i < kind->option_count; i++)
        if (equals(name, length, kind->options[i].name))
            return true;
    return false;
}

static dv_status fail_unknown(const dv_codec_kind *kind, const char *name, size_t length, dv_error *error) {
    char known[120] = "";
    for (size_t i = 0; i < kind->option_count; i++)
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s, ", kind->options[i].name);
    return dv_fail(error, DV_ERROR_OPTION, "%s: unknown option \"%.*s\": there are %srecompute", kind->name,
                   (int)dv_smaller(length, 40), name, known);
}

static dv_status set_recompute(dv_method *method, const char *value, size_t length, dv_error *error) {
    method->recompute_norms = equals(value, length, "norms");
    if (!method->recompute_norms && !equals(value, length, "nothing"))
        return dv_fail(error, DV_ERROR_OPTION, "%s: recompute=%.*s: must be nothing or norms", method->kind->name,
                       (int)dv_smaller(length, 40), value);
    return DV_OK;
}

/* Takes `recompute`, which is the method's own, out of "name:option=value,...". The rest, in `rest`, is for the codec,
 * which has the method's name. */
static dv_status take_recompute(const char *text, dv_method *method, char rest[TEXT_BYTES], dv_error *error) {
    size_t used = strlen(method->kind->name);
    if (strlen(text) >= TEXT_BYTES)
        return dv_fail(error, DV_ERROR_OPTION, "method %s: more than %d characters: give each option once",
                       method->kind->name, TEXT_BYTES - 1);
    strcpy(rest, method->kind->name);
    DV_TRY(dv_codec_parse(rest, &method->codec, error));
    for (const char *at = text + used; *at;) {
        size_t length = strcspn(++at, ","), name = strcspn(at, "=,");
        const char *value = at + name + (name < length ? 1 : 0);
        if (equals(at, name, "recompute")) {
            DV_TRY(set_recompute(method, value, (size_t)(at + length - value), error));
        } else if (name > 0 && !is_option_of(method->codec.kind, at, name)) {
            return fail_unknown(method->codec.kind, at, name, error);
        } else {
            rest[used] = used == strlen(method->kind->name) ? ':' : ',';
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
    DV_TRY(take_recompute(text, method, rest, error));
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
