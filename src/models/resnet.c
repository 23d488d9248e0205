/* Residual networks (He et al. 2015), wide ones (Zagoruyko & Komodakis 2016) and the small ones for CIFAR:
 *
 *     stem, stages of blocks, global average pooling, linear
 *
 * A block is two 3x3 convolutions, or 1x1, 3x3, 1x1 (a bottleneck, 4 times as wide outside as inside), each with
 * a batch norm, added to the block's input, which a 1x1 convolution brings to the same shape where it differs.
 * The stride is in the 3x3 convolution, as torchvision has it. */
#include "models/models.h"

enum { EXPANSION = 4 }; /* of a bottleneck */

/* convolution NAME.convK, batch norm NAME.bnK. */
static dv_value convolution_norm(dv_graph *graph, const dv_model_shape *shape, const char *block, int number,
                                 dv_value x, size_t channels, size_t kernel, size_t stride) {
    char name[DV_LAYER_NAME_BYTES];
    x = dv_add_convolution(graph, shape, dv_layer_name(name, "%sconv%d", block, number), x, channels, kernel, stride);
    return dv_graph_batch_norm(graph, dv_layer_name(name, "%sbn%d", block, number), x);
}

static dv_value relu(dv_graph *graph, const char *block, int number, dv_value x) {
    char name[DV_LAYER_NAME_BYTES];
    return dv_graph_relu(graph, dv_layer_name(name, "%srelu%d", block, number), x);
}

/* The branch with the convolutions. */
static dv_value residual(dv_graph *graph, const char *block, dv_value x, const dv_model_shape *shape, size_t width,
                         size_t stride) {
    if (!shape->bottleneck) {
        x = relu(graph, block, 1, convolution_norm(graph, shape, block, 1, x, width, 3, stride));
        return convolution_norm(graph, shape, block, 2, x, width, 3, 1);
    }
    size_t inner = width * shape->inner / 64;
    x = relu(graph, block, 1, convolution_norm(graph, shape, block, 1, x, inner, 1, 1));
    x = relu(graph, block, 2, convolution_norm(graph, shape, block, 2, x, inner, 3, stride));
    return convolution_norm(graph, shape, block, 3, x, width * EXPANSION, 1, 1);
}

/* The branch that passes the input on, brought to the other's shape if need be. */
static dv_value shortcut(dv_graph *graph, const dv_model_shape *shape, const char *block, dv_value x, size_t channels,
                         size_t stride, bool project) {
    char name[DV_LAYER_NAME_BYTES];
    if (!project)
        return x;
    x = dv_add_convolution(graph, shape, dv_layer_name(name, "%sdownsample.0", block), x, channels, 1, stride);
    return dv_graph_batch_norm(graph, dv_layer_name(name, "%sdownsample.1", block), x);
}

static dv_value stem(dv_graph *graph, dv_value x, const dv_model_shape *shape) {
    size_t kernel = shape->small_images ? 3 : 7, stride = shape->small_images ? 1 : 2;
    x = relu(graph, "", 1, convolution_norm(graph, shape, "", 1, x, shape->width, kernel, stride));
    const dv_pooling_options pooling = {.window = dv_window_square(3, 2, 1)};
    return shape->small_images ? x : dv_graph_max_pooling(graph, "maxpool", x, &pooling);
}

dv_value dv_build_resnet(dv_graph *graph, dv_value images, const dv_model_shape *shape, size_t classes) {
    char block[DV_LAYER_NAME_BYTES], name[DV_LAYER_NAME_BYTES];
    dv_value x = stem(graph, images, shape);
    size_t channels = shape->width;
    for (size_t stage = 0; stage < 4 && shape->blocks[stage]; stage++)
        for (size_t i = 0; i < shape->blocks[stage]; i++) {
            size_t stride = stage > 0 && i == 0 ? 2 : 1, width = shape->width << stage;
            size_t out = shape->bottleneck ? width * EXPANSION : width;
            dv_layer_name(block, "layer%zu.%zu.", stage + 1, i);
            dv_value branch = residual(graph, block, x, shape, width, stride);
            dv_value same = shortcut(graph, shape, block, x, out, stride, stride != 1 || channels != out);
            x = dv_graph_sum(graph, dv_layer_name(name, "%sadd", block), branch, same);
            x = dv_graph_relu(graph, dv_layer_name(name, "%srelu", block), x);
            channels = out;
        }
    x = dv_graph_global_average_pooling(graph, "avgpool", x);
    const dv_linear_options options = {.channels = classes, .bias = true};
    return dv_graph_linear(graph, "fc", x, &options);
}
