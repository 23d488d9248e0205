/* Residual networks with pre-activation (He et al. 2016), in the form for CIFAR: batch norm and ReLU come before
 * each convolution, and what the blocks add up is never cut at zero on its way.
 *
 *     conv1, three stages of blocks, bn, ReLU, global average pooling, linear
 *
 * A block is bn1, ReLU, conv1 1x1, bn2, ReLU, conv2 3x3, bn3, ReLU, conv3 1x1 (4 times as wide), added to its input.
 * Where the shape changes, a 1x1 convolution of what comes out of the first ReLU is added instead.
 *
 * The form that DIVISION and BLPA were published with (raw_shortcut) has that convolution take the block's input as it
 * is, the stride in conv1 instead of conv2, and a bias in conv3. */
#include "models/models.h"

enum { EXPANSION = 4 };

/* Batch norm and ReLU number `number` of a block. */
static dv_value activate(dv_graph *graph, const char *block, int number, dv_value x) {
    char name[DV_LAYER_NAME_BYTES];
    x = dv_graph_batch_norm(graph, dv_layer_name(name, "%sbn%d", block, number), x);
    return dv_graph_relu(graph, dv_layer_name(name, "%srelu%d", block, number), x);
}

/* Its convolution of that number. */
static dv_value convolution(dv_graph *graph, const dv_model_shape *shape, const char *block, int number, dv_value x,
                            size_t channels, size_t kernel, size_t stride, bool bias) {
    char name[DV_LAYER_NAME_BYTES];
    dv_layer_name(name, "%sconv%d", block, number);
    const dv_convolution_options options = {.channels = channels,
                                            .window = dv_window_square(kernel, stride, kernel / 2),
                                            .groups = 1,
                                            .bias = bias,
                                            .initialisation = shape->initialisation};
    return dv_graph_convolution(graph, name, x, &options);
}

static dv_value add_block(dv_graph *graph, const dv_model_shape *shape, const char *block, dv_value x, size_t width,
                          size_t stride, bool project) {
    char name[DV_LAYER_NAME_BYTES];
    size_t out = width * EXPANSION;
    bool raw = shape->raw_shortcut;
    dv_value active = activate(graph, block, 1, x), same = x;
    dv_value y = convolution(graph, shape, block, 1, active, width, 1, raw ? stride : 1, false);
    y = convolution(graph, shape, block, 2, activate(graph, block, 2, y), width, 3, raw ? 1 : stride, false);
    y = convolution(graph, shape, block, 3, activate(graph, block, 3, y), out, 1, 1, raw);
    if (project)
        same = dv_add_convolution(graph, shape, dv_layer_name(name, raw ? "%sshortcut" : "%sdownsample.0", block),
                                  raw ? x : active, out, 1, stride);
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
