/* Residual networks with pre-activation (He et al. 2016), in the form for CIFAR: batch norm and ReLU come before
 * each convolution, and what the blocks add up is never cut at zero on its way.
 *
 *     conv1, three stages of blocks, bn, ReLU, global average pooling, linear
 *
 * A block is bn1, ReLU, conv1 1x1, bn2, ReLU, conv2 3x3, bn3, ReLU, conv3 1x1 (4 times as wide), added to its input.
 * Where the shape changes, a 1x1 convolution of what comes out of the first ReLU is added instead. */
#include "models/models.h"

enum { EXPANSION = 4 };

/* Batch norm, ReLU and convolution number `number` of a block. `active` gets what the convolution takes. */
static dv_value norm_convolution(dv_graph *graph, const dv_model_shape *shape, const char *block, int number,
                                 dv_value x, size_t channels, size_t kernel, size_t stride, dv_value *active) {
    char name[DV_LAYER_NAME_BYTES];
    x = dv_graph_batch_norm(graph, dv_layer_name(name, "%sbn%d", block, number), x);
    x = dv_graph_relu(graph, dv_layer_name(name, "%srelu%d", block, number), x);
    if (active)
        *active = x;
    return dv_add_convolution(graph, shape, dv_layer_name(name, "%sconv%d", block, number), x, channels, kernel,
                              stride);
}

static dv_value add_block(dv_graph *graph, const dv_model_shape *shape, const char *block, dv_value x, size_t width,
                          size_t stride, bool project) {
    char name[DV_LAYER_NAME_BYTES];
    size_t out = width * EXPANSION;
    dv_value active, same = x;
    dv_value y = norm_convolution(graph, shape, block, 1, x, width, 1, 1, &active);
    y = norm_convolution(graph, shape, block, 2, y, width, 3, stride, NULL);
    y = norm_convolution(graph, shape, block, 3, y, out, 1, 1, NULL);
    if (project)
        same = dv_add_convolution(graph, shape, dv_layer_name(name, "%sdownsample.0", block), active, out, 1, stride);
    return dv_graph_sum(graph, dv_layer_name(name, "%sadd", block), y, same);
}

dv_value dv_build_preact_resnet(dv_graph *graph, dv_value images, const dv_model_shape *shape, size_t classes) {
    char block[DV_LAYER_NAME_BYTES];
    dv_value x = dv_add_convolution(graph, shape, "conv1", images, shape->width, 3, 1);
    for (size_t stage = 0; stage < 4 && shape->blocks[stage]; stage++)
        for (size_t i = 0; i < shape->blocks[stage]; i++) {
            dv_layer_name(block, "layer%zu.%zu.", stage + 1, i);
            x = add_block(graph, shape, block, x, shape->width << stage, stage > 0 && i == 0 ? 2 : 1, i == 0);
        }
    x = dv_graph_relu(graph, "relu", dv_graph_batch_norm(graph, "bn", x));
    x = dv_graph_global_average_pooling(graph, "avgpool", x);
    const dv_linear_options options = {.channels = classes, .bias = true};
    return dv_graph_linear(graph, "fc", x, &options);
}
