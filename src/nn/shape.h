/* Checks that the kinds of layers share, and shapes as text for their messages. */
#ifndef DV_NN_SHAPE_H
#define DV_NN_SHAPE_H

#include "base/status.h"
#include "nn/layer.h"

/* "[32, 56, 56, 64]": images, sides, channels, as in memory. */
typedef struct dv_shape_text {
    char text[96];
} dv_shape_text;
dv_shape_text dv_shape(const dv_map *map);

/* Fails with "name (kind): message". */
#define dv_layer_fail(layer, error, status, format, ...) \
    dv_fail(error, status, "%s (%s): " format, (layer)->name, (layer)->kind->name, __VA_ARGS__)

/* What every kind asks of its inputs: from `least` to `most` of them, each a map that can exist, channels
 * last, all in f32 or all in bf16, of equally many images. */
dv_status dv_layer_check_inputs(const dv_layer *layer, size_t least, size_t most, dv_error *error);

/* ... and that there are options. */
dv_status dv_layer_check_options(const dv_layer *layer, dv_error *error);

/* Whether two maps have the same rank and sides. */
bool dv_same_sides(const dv_map *a, const dv_map *b);

#endif
