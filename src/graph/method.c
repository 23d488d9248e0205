/* The table of methods. A new one is a policy and a line here. */
#include "graph/method.h"

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

/* Everything with spatial dimensions is packed; what linear layers need is small and kept as it is. What a dense
 * block joins again and again is kept once, before it is joined. */
static dv_keeper keep_packed_maps(const dv_method *method, const dv_graph *graph, dv_value value) {
    (void)method;
    const dv_map *map = &graph->values[value].map;
    if (is_joined(graph, value))
        return DV_KEEP_JOINED;
    return dv_map_image_elements(map) == map->channels ? DV_KEEP_EXACT : DV_KEEP_PACKED;
}

static const dv_method_kind kinds[] = {
    {.name = "none", .help = "keeps everything exactly, as frameworks do", .keeper = keep_exact},
    {.name = "division",
     .help = "block averages in bf16 and the rest in a few bits; options of the codec: block, bits, dither",
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

/* The same codec with 8 bits or more. Images are made of bytes, so that this leaves next to nothing out; they are a
 * small part of what is kept, and noise in them would spoil the gradient of the first layer. */
static dv_codec for_images(dv_codec codec) {
    for (size_t i = 0; i < codec.kind->option_count; i++)
        if (strcmp(codec.kind->options[i].name, "bits") == 0 && codec.options[i] < 8)
            codec.options[i] = 8;
    return codec;
}

const dv_codec *dv_method_codec(const dv_method *method, const dv_graph *graph, dv_value value) {
    return value == graph->input ? &method->input : &method->codec;
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
        if (kind->packs) {
            DV_TRY(dv_codec_parse(text, &method->codec, error));
            method->input = for_images(method->codec);
            return DV_OK;
        }
        if (text[length])
            return dv_fail(error, DV_ERROR_OPTION, "method %s takes no options: drop \"%.40s\"", kind->name,
                           text + length);
        return DV_OK;
    }
    return dv_fail(error, DV_ERROR_OPTION, "unknown method \"%.40s\": there are %s", text, known);
}
