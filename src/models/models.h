/* How models are listed and built. A new family is a file with a builder, and its models' lines in the table
 * of models.c. */
#ifndef DV_MODELS_MODELS_H
#define DV_MODELS_MODELS_H

#include <division/models.h>
#include <stdarg.h>
#include <stdbool.h>

/* What distinguishes the models of a family: numbers that its builder knows how to read. */
typedef struct dv_model_shape {
    size_t blocks[4]; /* per stage; 0 where there is none */
    size_t width;     /* channels of the first stage */
    size_t inner;     /* channels inside a bottleneck, in 64ths of the usual (64: as usual, 128: twice as wide) */
    int bottleneck;   /* blocks of 1x1, 3x3, 1x1 instead of 3x3, 3x3 */
    int small_images; /* a 3x3 stem without pooling */
    int raw_shortcut; /* pre-activation: the form that DIVISION was published with */
    size_t growth;    /* channels that each layer of a dense block adds */
    dv_initialisation initialisation;
} dv_model_shape;

typedef struct dv_model_entry {
    dv_model model;
    /* Adds everything between the images and the logits, which it returns. */
    dv_value (*build)(dv_graph *graph, dv_value images, const dv_model_shape *shape, size_t classes);
    dv_model_shape shape;
} dv_model_entry;

dv_value dv_build_resnet(dv_graph *graph, dv_value images, const dv_model_shape *shape, size_t classes);
dv_value dv_build_preact_resnet(dv_graph *graph, dv_value images, const dv_model_shape *shape, size_t classes);
dv_value dv_build_densenet(dv_graph *graph, dv_value images, const dv_model_shape *shape, size_t classes);

/* A name made like printf's, for one call: it is copied by the graph. */
enum { DV_LAYER_NAME_BYTES = 96 };
const char *dv_layer_name(char text[DV_LAYER_NAME_BYTES], const char *format, ...) DV_PRINTF(2, 3);

/* A square convolution without bias, as all these networks use. */
dv_value dv_add_convolution(dv_graph *graph, const dv_model_shape *shape, const char *name, dv_value input,
                            size_t channels, size_t kernel, size_t stride);

#endif
