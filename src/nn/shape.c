/* Checks that the kinds of layers share. */
#include "nn/shape.h"

#include <stdio.h>

dv_shape_text dv_shape(const dv_map *map) {
    dv_shape_text shape;
    size_t room = sizeof shape.text;
    int length = snprintf(shape.text, room, "[%zu", map->images);
    for (int d = 0; d < map->rank && d < DV_MAX_RANK; d++)
        length += snprintf(shape.text + length, room - (size_t)length, ", %zu", map->sides[d]);
    snprintf(shape.text + length, room - (size_t)length, ", %zu]", map->channels);
    return shape;
}

/* A map that layers can work on. */
static dv_status check_map(const dv_layer *layer, const dv_map *map, dv_error *error) {
    dv_error inner;
    dv_status status = dv_map_check(map, &inner);
    if (status != DV_OK)
        return dv_layer_fail(layer, error, status, "%s", inner.text);
    if (map->layout != DV_NHWC)
        return dv_layer_fail(layer, error, DV_ERROR_UNSUPPORTED,
                             "input %s is channels first: layers take channels last", dv_shape(map).text);
    if (map->type != DV_F32 && map->type != DV_BF16)
        return dv_layer_fail(layer, error, DV_ERROR_UNSUPPORTED, "input is %s: layers take f32 or bf16",
                             dv_type_name(map->type));
    return DV_OK;
}

dv_status dv_layer_check_inputs(const dv_layer *layer, size_t least, size_t most, dv_error *error) {
    if (layer->input_count < least || layer->input_count > most)
        return dv_layer_fail(layer, error, DV_ERROR_ARGUMENT, "%zu inputs: it takes %s%zu", layer->input_count,
                             least == most ? "" : "at least ", least);
    for (size_t i = 0; i < layer->input_count; i++) {
        const dv_map *map = &layer->inputs[i], *first = &layer->inputs[0];
        DV_TRY(check_map(layer, map, error));
        if (map->type != first->type || map->images != first->images)
            return dv_layer_fail(
                layer, error, DV_ERROR_ARGUMENT, "input %zu is %s %s, input 0 %s %s: they must have one type and batch",
                i, dv_type_name(map->type), dv_shape(map).text, dv_type_name(first->type), dv_shape(first).text);
    }
    return DV_OK;
}

dv_status dv_layer_check_options(const dv_layer *layer, dv_error *error) {
    if (layer->options)
        return DV_OK;
    return dv_layer_fail(layer, error, DV_ERROR_ARGUMENT, "%s", "options are missing");
}

bool dv_same_sides(const dv_map *a, const dv_map *b) {
    bool same = a->rank == b->rank;
    for (int d = 0; same && d < a->rank; d++)
        same = a->sides[d] == b->sides[d];
    return same;
}
