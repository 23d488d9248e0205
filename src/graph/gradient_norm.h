/* What methods that learn measure of a layer's backward. */
#ifndef DV_GRAPH_GRADIENT_NORM_H
#define DV_GRAPH_GRADIENT_NORM_H

#include "nn/layer.h"

/* The sum of the squares of the first `images` images. Its order follows from the shape. */
double dv_square_sum(const dv_map *map, size_t images, const void *values);

/* Elements of the window of a layer with a weight [out, in / groups, window...], and its groups. 1 and 1 of others. */
typedef struct dv_layer_reach {
    double area, groups;
} dv_layer_reach;

dv_layer_reach dv_layer_reach_of(const dv_layer *layer);

#endif
