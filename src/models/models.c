/* The table of models. */
#include "models/models.h"

#include "base/status.h"

#include <division/tools/option.h>

#include <stdio.h>
#include <string.h>

/* ImageNet's residual networks, and those for images of 32 x 32. */
#define RESNET(text, a, b, c, d, deep, note)                                                                          \
    {                                                                                                                 \
        .model = {.name = (text), .help = (note), .side = 224, .classes = 1000}, .build = dv_build_resnet, .shape = { \
            .blocks = {(a), (b), (c), (d)},                                                                           \
            .width = 64,                                                                                              \
            .inner = 64,                                                                                              \
            .bottleneck = (deep)                                                                                      \
        }                                                                                                             \
    }
#define CIFAR_RESNET(text, n)                                                                                       \
    {                                                                                                               \
        .model = {.name = (text), .help = "ResNet for 32 x 32 images, widths 16 to 64", .side = 32, .classes = 10}, \
        .build = dv_build_resnet, .shape = {                                                                        \
            .blocks = {(n), (n), (n)},                                                                              \
            .width = 16,                                                                                            \
            .inner = 64,                                                                                            \
            .small_images = 1                                                                                       \
        }                                                                                                           \
    }
#define PUBLISHED_PREACT(text, n, note)                                                                        \
    {                                                                                                          \
        .model = {.name = (text), .help = (note), .side = 32, .classes = 10}, .build = dv_build_preact_resnet, \
        .shape = {                                                                                             \
            .blocks = {(n), (n), (n)},                                                                         \
            .width = 16,                                                                                       \
            .bottleneck = 1,                                                                                   \
            .small_images = 1,                                                                                 \
            .raw_shortcut = 1,                                                                                 \
            .initialisation = DV_INITIALISATION_UNIFORM                                                        \
        }                                                                                                      \
    }
#define DENSENET(text, note, pixels, labels, first, more, a, b, c, d, small)                                          \
    {                                                                                                                 \
        .model = {.name = (text), .help = (note), .side = (pixels), .classes = (labels)}, .build = dv_build_densenet, \
        .shape = {                                                                                                    \
            .blocks = {(a), (b), (c), (d)},                                                                           \
            .width = (first),                                                                                         \
            .growth = (more),                                                                                         \
            .small_images = (small)                                                                                   \
        }                                                                                                             \
    }

static const dv_model_entry entries[] = {
    RESNET("resnet18", 2, 2, 2, 2, 0, "ResNet for 224 x 224 images"),
    RESNET("resnet34", 3, 4, 6, 3, 0, "ResNet for 224 x 224 images"),
    RESNET("resnet50", 3, 4, 6, 3, 1, "ResNet with bottlenecks for 224 x 224 images"),
    RESNET("resnet101", 3, 4, 23, 3, 1, "ResNet with bottlenecks for 224 x 224 images"),
    RESNET("resnet152", 3, 8, 36, 3, 1, "ResNet with bottlenecks for 224 x 224 images"),
    {.model =
         {.name = "wide_resnet50_2", .help = "ResNet-50 with bottlenecks twice as wide", .side = 224, .classes = 1000},
     .build = dv_build_resnet,
     .shape = {.blocks = {3, 4, 6, 3}, .width = 64, .inner = 128, .bottleneck = 1}},
    {.model = {.name = "resnet18_cifar",
               .help = "ResNet-18 for 32 x 32 images: a 3 x 3 stem, no pooling",
               .side = 32,
               .classes = 10},
     .build = dv_build_resnet,
     .shape = {.blocks = {2, 2, 2, 2},
               .width = 64,
               .inner = 64,
               .small_images = 1,
               .initialisation = DV_INITIALISATION_UNIFORM}}, /* as in the trainings that are published for it */
    CIFAR_RESNET("resnet20", 3),
    CIFAR_RESNET("resnet32", 5),
    CIFAR_RESNET("resnet44", 7),
    CIFAR_RESNET("resnet56", 9),
    CIFAR_RESNET("resnet110", 18),
    {.model = {.name = "resnet164_cifar",
               .help = "pre-activation ResNet with bottlenecks for 32 x 32 images, widths 16 to 64",
               .side = 32,
               .classes = 10},
     .build = dv_build_preact_resnet,
     .shape = {.blocks = {18, 18, 18}, .width = 16, .bottleneck = 1, .small_images = 1}},
    PUBLISHED_PREACT("resnet164_published", 18,
                     "ResNet-164 as DIVISION and BLPA were published with: shortcuts from raw inputs"),
    PUBLISHED_PREACT("resnet29_preact", 3, "the form of resnet164_published with 3 blocks a stage instead of 18"),
    DENSENET("densenet121", "DenseNet for 224 x 224 images", 224, 1000, 64, 32, 6, 12, 24, 16, 0),
    DENSENET("densenet161", "DenseNet for 224 x 224 images, wider", 224, 1000, 96, 48, 6, 12, 36, 24, 0),
    DENSENET("densenet121_cifar", "DenseNet-121 for 32 x 32 images", 32, 10, 64, 32, 6, 12, 24, 16, 1),
    DENSENET("densenet161_cifar", "DenseNet-161 for 32 x 32 images", 32, 10, 96, 48, 6, 12, 36, 24, 1),
};

enum { MODEL_COUNT = sizeof entries / sizeof *entries };

const dv_model *dv_model_at(size_t index) {
    return index < MODEL_COUNT ? &entries[index].model : NULL;
}

static dv_status fail_unknown(const char *name, dv_error *error) {
    const char *names[MODEL_COUNT];
    for (size_t i = 0; i < MODEL_COUNT; i++)
        names[i] = entries[i].model.name;
    const char *nearest = dv_nearest(name, names, MODEL_COUNT);
    if (nearest != NULL)
        return dv_fail(error, DV_ERROR_OPTION,
                       "unknown model \"%.40s\": did you mean %s? 'division models' lists what there is", name,
                       nearest);
    return dv_fail(error, DV_ERROR_OPTION, "unknown model \"%.40s\": 'division models' lists what there is", name);
}

static dv_status find(const char *name, const dv_model_entry **entry, dv_error *error) {
    for (size_t i = 0; i < MODEL_COUNT; i++)
        if (strcmp(entries[i].model.name, name) == 0) {
            *entry = &entries[i];
            return DV_OK;
        }
    return fail_unknown(name, error);
}

dv_status dv_model_find(const char *name, const dv_model **model, dv_error *error) {
    const dv_model_entry *entry;
    DV_NEED(name);
    DV_NEED(model);
    DV_TRY(find(name, &entry, error));
    *model = &entry->model;
    return DV_OK;
}

/* The numbers of the builder, as the options want them. */
static dv_model_shape shape_of(const dv_model_entry *entry, const dv_model_options *options) {
    dv_model_shape shape = entry->shape;
    if (options->initialisation == DV_MODEL_INITIALISATION_PYTORCH)
        shape.initialisation = DV_INITIALISATION_UNIFORM; /* linear layers and norms begin so in any case */
    return shape;
}

dv_status dv_model_build_with(const char *name, const dv_model_options *options, dv_graph **graph, dv_error *error) {
    const dv_model_entry *entry;
    DV_NEED(name);
    DV_NEED(options);
    DV_NEED(graph);
    DV_TRY(find(name, &entry, error));
    DV_TRY(
        dv_check_count("initialisation", (size_t)options->initialisation, 0, DV_MODEL_INITIALISATION_COUNT - 1, error));
    size_t side = options->side ? options->side : entry->model.side;
    size_t classes = options->classes ? options->classes : entry->model.classes;
    dv_model_shape shape = shape_of(entry, options);
    dv_graph *made;
    DV_TRY(dv_graph_new(options->type, options->batch, &made, error));
    dv_value images = dv_graph_input(made, 3, 2, (const size_t[]){side, side});
    dv_status status = dv_graph_finish(made, entry->build(made, images, &shape, classes), error);
    if (status == DV_OK)
        *graph = made;
    else
        dv_graph_free(made);
    return status;
}

dv_status dv_model_build(const char *name, dv_type type, size_t batch, size_t classes, size_t side, dv_graph **graph,
                         dv_error *error) {
    const dv_model_options options = {.type = type, .batch = batch, .classes = classes, .side = side};
    return dv_model_build_with(name, &options, graph, error);
}

const char *dv_layer_name(char text[DV_LAYER_NAME_BYTES], const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, DV_LAYER_NAME_BYTES, format, arguments);
    va_end(arguments);
    return text;
}

dv_value dv_add_convolution(dv_graph *graph, const dv_model_shape *shape, const char *name, dv_value input,
                            size_t channels, size_t kernel, size_t stride) {
    const dv_convolution_options options = {.channels = channels,
                                            .window = dv_window_square(kernel, stride, kernel / 2),
                                            .groups = 1,
                                            .initialisation = shape->initialisation};
    return dv_graph_convolution(graph, name, input, &options);
}
