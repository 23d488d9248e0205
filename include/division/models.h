/* Networks by name, with torchvision's shapes and parameter names.
 *
 * - Threads: Any thread may call any function here at any time; each call of dv_model_build makes a graph of its own.
 * - Fork: A graph is prepared for the number of threads: division/threads.h says what a child may do.
 * - Freeing: Models are static; graphs are the caller's, as division/graph.h has it. */
#ifndef DIVISION_MODELS_H
#define DIVISION_MODELS_H

#include <division/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dv_model {
    const char *name;
    const char *help;
    size_t side;    /* of the images it is meant for */
    size_t classes; /* likewise */
} dv_model;

/* The models there are; NULL past the last. Static. */
DV_API const dv_model *dv_model_at(size_t index);

/* The model of that name. An unknown one is an error that names those there are. */
DV_API dv_status dv_model_find(const char *name, const dv_model **model, dv_error *error);

/* Builds and finishes a graph for `batch` RGB images of `side` x `side` and `classes` classes; 0 for either
 * means the model's own. The caller frees the graph. */
DV_API dv_status dv_model_build(const char *name, dv_type type, size_t batch, size_t classes, size_t side,
                                dv_graph **graph, dv_error *error);

/* What the weights of a network begin as. */
typedef enum dv_model_initialisation {
    DV_MODEL_INITIALISATION_OWN,     /* what is usual for the model */
    DV_MODEL_INITIALISATION_PYTORCH, /* as PyTorch's layers begin: convolutions and linear layers, with their biases,
                                        uniform within 1 / sqrt(incoming connections); norms 1 and 0 */
    DV_MODEL_INITIALISATION_COUNT
} dv_model_initialisation;

/* All that a network can be told; zeros are good for all but the batch. */
typedef struct dv_model_options {
    dv_type type; /* of activations: f32 or bf16 */
    size_t batch; /* images */
    size_t classes, side;
    dv_model_initialisation initialisation;
} dv_model_options;

/* The same with all options. */
DV_API dv_status dv_model_build_with(const char *name, const dv_model_options *options, dv_graph **graph,
                                     dv_error *error);

#ifdef __cplusplus
}
#endif

#endif
