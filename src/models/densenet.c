/* Densely connected networks (Huang et al. 2017), with torchvision's names:
 *
 *     stem, four dense blocks with transitions between them, norm5, ReLU, global average pooling, linear
 *
 * A layer of a dense block takes all that the layers before it made, joined along the channels: norm1, ReLU, conv1
 * 1x1 to 4 x growth channels, norm2, ReLU, conv2 3x3 to `growth` more. A transition halves channels and sides. */
#include "models/models.h"

enum { BOTTLENECK = 4, MAX_LAYERS = 64 }; /* of a dense block */

/* NAME.normK, NAME.reluK, NAME.convK; K is text, which may be empty. */
static dv_value norm_convolution(dv_graph *graph, const dv_model_shape *shape, const char *block, const char *number,
                                 dv_value x, size_t channels, size_t kernel) {
    char name[DV_LAYER_NAME_BYTES];
    x = dv_graph_batch_norm(graph, dv_layer_name(name, "%snorm%s", block, number), x);
    x = dv_graph_relu(graph, dv_layer_name(name, "%srelu%s", block, number), x);
    return dv_add_convolution(graph, shape, dv_layer_name(name, "%sconv%s", block, number), x, channels, kernel, 1);
}

static dv_value stem(dv_graph *graph, dv_value x, const dv_model_shape *shape) {
    if (shape->small_images)
        return dv_add_convolution(graph, shape, "features.conv0", x, shape->width, 3, 1);
    x = dv_add_convolution(graph, shape, "features.conv0", x, shape->width, 7, 2);
    x = dv_graph_relu(graph, "features.relu0", dv_graph_batch_norm(graph, "features.norm0", x));
    const dv_pooling_options pooling = {.window = dv_window_square(3, 2, 1)};
    return dv_graph_max_pooling(graph, "features.pool0", x, &pooling);
}

/* All that a dense block has made so far, as one value. */
static dv_value join(dv_graph *graph, const char *block, const dv_value *made, size_t count) {
    char name[DV_LAYER_NAME_BYTES];
    if (count == 1)
        return made[0];
    return dv_graph_concatenation(graph, dv_layer_name(name, "%scat%zu", block, count), made, count);
}

static dv_value dense_block(dv_graph *graph, const dv_model_shape *shape, size_t number, dv_value x, size_t layers) {
    char block[DV_LAYER_NAME_BYTES], layer[DV_LAYER_NAME_BYTES];
    dv_value made[MAX_LAYERS + 1] = {x};
    dv_layer_name(block, "features.denseblock%zu.", number);
    for (size_t i = 0; i < layers && i < MAX_LAYERS; i++) {
        dv_layer_name(layer, "features.denseblock%zu.denselayer%zu.", number, i + 1);
        dv_value all = join(graph, block, made, i + 1);
        dv_value y = norm_convolution(graph, shape, layer, "1", all, BOTTLENECK * shape->growth, 1);
        made[i + 1] = norm_convolution(graph, shape, layer, "2", y, shape->growth, 3);
    }
    return join(graph, block, made, layers + 1);
}

static dv_value transition(dv_graph *graph, const dv_model_shape *shape, size_t number, dv_value x, size_t channels) {
    char block[DV_LAYER_NAME_BYTES], name[DV_LAYER_NAME_BYTES];
    dv_layer_name(block, "features.transition%zu.", number);
    x = norm_convolution(graph, shape, block, "", x, channels, 1);
    const dv_pooling_options pooling = {.window = dv_window_square(2, 2, 0)};
    return dv_graph_average_pooling(graph, dv_layer_name(name, "%spool", block), x, &pooling);
}

dv_value dv_build_densenet(dv_graph *graph, dv_value images, const dv_model_shape *shape, size_t classes) {
    dv_value x = stem(graph, images, shape);
    size_t channels = shape->width;
    for (size_t stage = 0; stage < 4; stage++) {
        x = dense_block(graph, shape, stage + 1, x, shape->blocks[stage]);
        channels += shape->blocks[stage] * shape->growth;
        if (stage == 3)
            break;
        channels /= 2;
        x = transition(graph, shape, stage + 1, x, channels);
    }
    x = dv_graph_relu(graph, "features.relu5", dv_graph_batch_norm(graph, "features.norm5", x));
    x = dv_graph_global_average_pooling(graph, "avgpool", x);
    const dv_linear_options options = {.channels = classes, .bias = true};
    return dv_graph_linear(graph, "classifier", x, &options);
}
