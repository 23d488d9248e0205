/* Networks: build a graph of named layers, plan its memory, run training steps in exactly that memory.
 *
 *     dv_graph *graph;
 *     dv_graph_new(DV_F32, 32, &graph, &error);
 *     dv_value x = dv_graph_input(graph, 3, 2, (size_t[]){32, 32});
 *     x = dv_graph_convolution(graph, "conv1", x, &(dv_convolution_options){.channels = 16, ...});
 *     x = dv_graph_batch_norm(graph, "bn1", x);
 *     x = dv_graph_relu(graph, "relu1", x);
 *     ...
 *     dv_graph_finish(graph, x, &error);              tells of the first thing that went wrong, if any
 *     dv_plan_new(graph, &options, &plan, &error);    who keeps what, and where everything lies
 *     dv_run_new(plan, seed, &run, &error);           maps the memory and fills in the parameters
 *
 * Values are maps of the whole batch, channels last.
 *
 * - Threads: One thread at a time builds a graph. Once it is finished, it does not change, and no plan ever does: any
 *   thread may make plans and runs of them at any time. A run is one thread's at a time, its arrays included. Different
 *   runs may be used by different threads at once, also if they are of one graph; but a convolution that oneDNN
 *   computes is computed for one of them at a time.
 * - Fork: Steps use OpenMP's threads: division/threads.h says what a child may do. A run is copied to the child with
 *   all its memory, but if its values lie in a file, the child must not use or free it.
 * - Freeing: Graph, plan and run can be freed in any order: a plan holds its graph and a run its plan, and memory is
 *   given back with the last that needs it. Pointers into a plan or a run live as long as that.
 *
 * Start programs with OMP_WAIT_POLICY=passive in their environment: OpenMP's threads otherwise spin while they wait for
 * each other, and on a busy machine a step takes several times longer. OpenMP reads it before main; `division` itself
 * sets it and starts again. */
#ifndef DIVISION_GRAPH_H
#define DIVISION_GRAPH_H

#include <division/codec.h>
#include <division/export.h>
#include <division/layers.h>
#include <division/optimizer.h>
#include <division/parallel.h>
#include <division/status.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- building ------------------------------------------------------------------------------ */

typedef struct dv_graph dv_graph;

/* A value of a graph. A builder function that fails returns a negative one, which later ones pass on: only
 * dv_graph_finish has to be checked, for a graph, name, options or sides that are NULL too. */
typedef int dv_value;

/* An empty graph for batches of `batch` images, whose values are kept in `type` (f32 or bf16). */
DV_API dv_status dv_graph_new(dv_type type, size_t batch, dv_graph **graph, dv_error *error);
DV_API void dv_graph_free(dv_graph *graph);

/* The images, `sides` [rank]. One per graph. */
DV_API dv_value dv_graph_input(dv_graph *graph, size_t channels, int rank, const size_t *sides);

/* Layers. Names are copied; they must be unique among layers with parameters. */
DV_API dv_value dv_graph_convolution(dv_graph *graph, const char *name, dv_value input,
                                     const dv_convolution_options *options);
DV_API dv_value dv_graph_transposed_convolution(dv_graph *graph, const char *name, dv_value input,
                                                const dv_convolution_options *options);
DV_API dv_value dv_graph_batch_norm(dv_graph *graph, const char *name, dv_value input);
DV_API dv_value dv_graph_relu(dv_graph *graph, const char *name, dv_value input);
/* Negative inputs are multiplied by `slope`, above 0 and below 1. */
DV_API dv_value dv_graph_leaky_relu(dv_graph *graph, const char *name, dv_value input, float slope);
DV_API dv_value dv_graph_max_pooling(dv_graph *graph, const char *name, dv_value input,
                                     const dv_pooling_options *options);
DV_API dv_value dv_graph_average_pooling(dv_graph *graph, const char *name, dv_value input,
                                         const dv_pooling_options *options);
DV_API dv_value dv_graph_global_average_pooling(dv_graph *graph, const char *name, dv_value input);
DV_API dv_value dv_graph_dropout(dv_graph *graph, const char *name, dv_value input, float probability);
DV_API dv_value dv_graph_linear(dv_graph *graph, const char *name, dv_value input, const dv_linear_options *options);
DV_API dv_value dv_graph_sum(dv_graph *graph, const char *name, dv_value a, dv_value b);
DV_API dv_value dv_graph_concatenation(dv_graph *graph, const char *name, const dv_value *inputs, size_t count);

/* Losses. Each takes the logits, that is the output of the last layer, and ends the graph: its own output is for
 * dv_graph_finish alone. */

/* Softmax cross-entropy of logits whose channels are classes, with label smoothing (dv_step). Logits without sides have
 * a label per image. Logits that are maps have one per pixel, or DV_NO_LABEL: such a pixel counts nowhere. */
DV_API dv_value dv_graph_softmax_cross_entropy(dv_graph *graph, const char *name, dv_value logits);

/* Ends building, with what a loss gave, or with logits, of which softmax cross-entropy is taken then. Fuses batch norms
 * with the sums and ReLUs that follow them, and prepares the layers. Returns the first error of the whole building.
 * From then on the graph does not change: any number of plans and runs can be made of it. */
DV_API dv_status dv_graph_finish(dv_graph *graph, dv_value output, dv_error *error);

/* ---- planning ------------------------------------------------------------------------------ */

typedef struct dv_plan dv_plan;

/* Where the gradients of parameters are. */
typedef enum dv_gradients {
    DV_GRADIENTS_KEPT, /* in arrays of their own: steps add to them, and dv_run_update takes them. To be asked for by
                          whoever reads them, adds up those of several batches, or clips them */
    DV_GRADIENTS_TRANSIENT, /* in workspace: each parameter is updated right behind the backward that completes its
                               gradient, whose memory is others' then. Needs an optimizer, and no clipping */
} dv_gradients;

/* What gradients are while they travel between ranks. */
typedef enum dv_reduce { DV_REDUCE_F32, DV_REDUCE_BF16 } dv_reduce;

typedef struct dv_plan_options {
    const char *method; /* "none", "division", "division:bits=2,recompute=norms": how values survive until backward */
    const char *optimizer; /* "sgd", "adamw:beta2=0.95,decay=0.05" (division/optimizer.h); NULL: none, parameters are
                              the caller's to update */
    const char *groups;    /* of parameters, with another decay or rate: "vectors:decay=0"; NULL: none */
    double clip;           /* gradients whose norm, over all parameters, is larger are scaled down to it; 0: never */
    dv_gradients gradients;
    int average;       /* 1: room for a running average of each parameter and running statistic */
    int inference;     /* forward only: nothing is kept, no gradients */
    const char *spill; /* folder of the file that values lie in, if the method uses one; NULL: /var/tmp */

    /* What is not trained, in training: globs (fnmatch) of names with commas between them, "conv1,bn1,layer[12]". A
     * glob names a parameter if it matches its name or a beginning of it that ends at a dot: "fc" stands for fc.weight
     * and fc.bias, "layer1" for everything in it. Frozen parameters have no gradient and no optimizer's arrays, and
     * nothing is kept for a backward that is not run. A batch norm that is frozen, weight and bias, uses its running
     * statistics and does not move them. Dropout is random as ever. NULL or "": everything is trained. Copied. */
    const char *freeze;

    /* Processes that train together (division/parallel.h), each with a batch of its own; 0 or 1: alone. Gradients lie
     * in buckets then, which are added up over all ranks while backward goes on; transient ones are updated a few
     * buckets later. */
    size_t ranks;
    dv_reduce reduce;
    int sync_norm; /* batch norms take their statistics over the images of all ranks */
} dv_plan_options;

/* "division", "sgd", gradients that are kept. */
DV_API dv_plan_options dv_plan_options_default(void);

/* The methods there are: name and one line of help of the index-th, or NULL past the last. */
DV_API const char *dv_method_name_at(size_t index);
DV_API const char *dv_method_help_at(size_t index);

/* Their options, with bounds: those of the codec that the method packs with, then its own. NULL past the last. Static.
 */
DV_API const dv_option *dv_method_option_at(size_t method, size_t index);

/* What the images or one layer take. Text lives as long as the plan. */
typedef struct dv_plan_row {
    const char *layer, *kind;
    dv_map output;
    const char *keeper;      /* how its output is kept: "exact", "packed + mask", "recomputed", "mask", "-" */
    size_t kept_bytes;       /* of the output, with its mask */
    size_t saved_bytes;      /* what the layer itself saves: statistics, indices, masks */
    size_t frozen_bytes;     /* of its parameters, those that are not trained; 0 in inference */
    double bits_per_element; /* of the output, kept */
} dv_plan_row;

/* Bytes by purpose. planned = permanent parts + what the most crowded moment of a step takes. */
typedef struct dv_plan_summary {
    size_t parameters, gradients, optimizer, buffers; /* permanent; buffers are running statistics and the method's
                                                         state, averages count as the optimizer's, and gradients that
                                                         are transient as workspace */
    size_t frozen;                                    /* of the parameters: those that are not trained */
    size_t activations;                               /* all that is kept when forward ends */
    size_t workspace;                                 /* planned - activations - the permanent parts */
    size_t planned;                                   /* in all: the arena */
    size_t spilled;                                   /* beside it: bytes of the file that values lie in */
} dv_plan_summary;

/* Decides how each value is kept, and lays everything out in one arena. */
DV_API dv_status dv_plan_new(dv_graph *graph, const dv_plan_options *options, dv_plan **plan, dv_error *error);
DV_API void dv_plan_free(dv_plan *plan);
DV_API dv_plan_summary dv_plan_totals(const dv_plan *plan);
/* The images, then the layers; NULL past the last. */
DV_API const dv_plan_row *dv_plan_row_at(const dv_plan *plan, size_t index);

/* A step is done operation by operation: the schedule of the plan. Text lives as long as the plan. */
typedef struct dv_plan_operation {
    const char *kind;     /* "forward", "loss", "replay" (forward again, before backward), "backward", "update" (of the
                             layer's parameters, whose gradients are transient), "reduce" (the gradients of the bucket
                             that the layer completes begin to be added up over all ranks); of a value in a file "write" and
                             "read", which begin it, and "written", which waits for the end of "write" */
    const char *subject;  /* the layer's name, or the value's, which is that of the layer that makes it: "input" for
                             the images */
    size_t alive_bytes;   /* of all pieces of the arena that are in use meanwhile. The most of any operation is at most
                             the planned bytes; what those have more is gaps between pieces */
    size_t touched_count; /* pieces that it touches */
} dv_plan_operation;

/* A piece of the arena that an operation reads or writes. */
typedef struct dv_plan_touched {
    const char *owner; /* the layer whose it is, or whose output's; "input" for the images' and the labels' */
    const char *role;  /* "output", "packed output", "mask", "output's gradient", "backward workspace", ... */
    size_t bytes;
    size_t piece; /* its number: one piece may have several owners, who work in place */
} dv_plan_touched;

/* The operations in their order, and the pieces that one of them touches; NULL past the last. */
DV_API const dv_plan_operation *dv_plan_operation_at(const dv_plan *plan, size_t index);
DV_API const dv_plan_touched *dv_plan_touched_at(const dv_plan *plan, size_t operation, size_t index);

/* ---- running ------------------------------------------------------------------------------- */

typedef struct dv_run dv_run;

/* A parameter or running statistic of a run: arrays that live as long as the run. */
typedef struct dv_run_parameter {
    const char *name; /* "layer1.0.conv2.weight" */
    int rank;
    size_t shape[5], count;
    float *data;      /* [count] */
    float *gradient;  /* [count]; NULL for running statistics, for what is frozen, in inference, and where gradients are
                         transient */
    float *optimizer; /* [slots][count], in the order of dv_optimizer_slot_at; NULL without any, for running statistics,
                         for what is frozen and in inference */
    float *average;   /* [count]; NULL unless planned, and for what is frozen, whose average it is itself */
} dv_run_parameter;

/* What a step measured. */
typedef struct dv_step_result {
    double loss;              /* mean over all that is counted; 0 if that is nothing */
    size_t correct, correct5; /* of what is counted: those whose label had the largest logit, one of the five largest */
    size_t counted;           /* images; pixels that have a label, where the logits are maps */
} dv_step_result;

/* Maps the arena, all of it at once, and initialises the parameters from `seed`. If it does not fit in the
 * memory that is available: DV_ERROR_MEMORY, before anything is touched. */
DV_API dv_status dv_run_new(dv_plan *plan, uint64_t seed, dv_run **run, dv_error *error);
DV_API void dv_run_free(dv_run *run);

/* Makes the run one of a world's ranks, whose number the plan has. The world must outlive it. Gradients are then sums
 * over all ranks, when dv_run_backward returns: the scale of a step says what part of them is whose. Running statistics
 * are the means of all ranks'. */
DV_API dv_status dv_run_join(dv_run *run, dv_world *world, dv_error *error);

/* How many images the steps to come take, from 1 to the batch that was planned for, which it is until it is set. They
 * are the first ones of the input and of the labels; what is behind them is not read, and the loss and its gradient are
 * means over them. A step in a plan for a larger batch is the same as one in a plan for so many images, but for the
 * order of the sums over images in convolutions, linear layers and, where values are packed, batch norms. */
DV_API dv_status dv_run_set_images(dv_run *run, size_t images, dv_error *error);
DV_API size_t dv_run_images(const dv_run *run);

/* The fewest images that the run can be trained with: 1, or 2 where a batch norm sees one value of each image. */
DV_API size_t dv_run_fewest_images(const dv_run *run);

/* Where the next batch goes: images in the input's map (dv_run_input_map), labels [batch] or, where the logits are
 * maps, [batch][pixels]. Images are to be filled in anew before every step or prediction: their memory is reused during
 * it, and by logits that were predicted, which dv_run_input therefore ends. */
DV_API const dv_map *dv_run_input_map(const dv_run *run);
DV_API void *dv_run_input(dv_run *run);
DV_API int32_t *dv_run_labels(dv_run *run);

/* The same memory as the labels', for losses that compare with something else: they say with what. Labels are NULL
 * then. */
DV_API void *dv_run_targets(dv_run *run);

/* For training on images that are mixed of two: a second label for each [batch], and the weight of the first one
 * [batch], from 0 to 1. Weights are 1 until they are set, and both stay as they are from step to step. NULL where the
 * loss does not take two labels: where the logits are maps. */
DV_API int32_t *dv_run_second_labels(dv_run *run);
DV_API float *dv_run_label_weights(dv_run *run);

/* Parameters and running statistics, in the order of the layers; NULL past the last. */
DV_API const dv_run_parameter *dv_run_parameter_at(const dv_run *run, size_t index);

/* What is frozen: the text of the plan's option; "" if nothing is. It lives as long as the run. */
DV_API const char *dv_run_freeze(const dv_run *run);

/* What the method remembers from step to step: an array of f32 that belongs into a checkpoint. NULL: nothing. */
DV_API const dv_run_parameter *dv_run_method_state(const dv_run *run);

/* What a step of training is told. */
typedef struct dv_step {
    uint64_t batch;        /* the number of the step in the training, on which dither and dropout depend */
    float label_smoothing; /* 0 to 1 */
    float scale;           /* of the gradients; 0: 1 */
    double rate;           /* of the optimizer, where gradients are transient */
    uint64_t update;       /* likewise: the number of its step, from 0 */
    uint64_t first_image;  /* the number of the first image in the step, of batches that are accumulated and of other
                              ranks; dither and dropout depend on it too */
    size_t all_images; /* of this batch on all ranks, which a sync_norm has the statistics of; 0: each has as many */
    int more;          /* more batches of this step follow: gradients are not added up over ranks yet */
} dv_step;

/* The calls of a step, and the order in which they can be made:
 *
 *     dv_run_forward ──► dv_run_loss ──► dv_run_backward                                        a step of training
 *     dv_run_forward ──► dv_run_logits_gradient, which the caller writes ──► dv_run_backward    ... with its own loss
 *     dv_run_predict ──► dv_run_loss, if there are labels                                       with statistics as
 *                                                                                               they are
 *
 * A call out of this order is DV_ERROR_ARGUMENT, says what to call first, and changes nothing. Any other failure of
 * forward, loss or backward spoils the run (dv_run_failed). Between forward and backward no other step or prediction
 * can begin, and the number of images cannot be set.
 *
 * What is valid when:
 *
 *     images                  from being filled in to dv_run_forward or dv_run_predict
 *     labels                  until they are filled in anew; they are read by dv_run_loss alone
 *     logits                  from dv_run_forward to dv_run_backward; from dv_run_predict to the call that begins the
 *                             next batch: dv_run_input, dv_run_set_images, dv_run_forward or dv_run_predict
 *     gradient of the logits  from dv_run_loss or dv_run_logits_gradient to dv_run_backward */

/* Forward in training: running statistics move, and what backward needs is kept. */
DV_API dv_status dv_run_forward(dv_run *run, const dv_step *step, dv_error *error);

/* The loss of the logits against the labels and, in training, the gradient of the logits. */
DV_API dv_status dv_run_loss(dv_run *run, dv_step_result *result, dv_error *error);

/* From the gradient of the logits to those of the parameters, which are added to what the parameters' gradients are;
 * where these are transient, parameters are updated. */
DV_API dv_status dv_run_backward(dv_run *run, dv_error *error);

/* dv_run_forward, dv_run_loss and dv_run_backward. */
DV_API dv_status dv_run_train(dv_run *run, const dv_step *step, dv_step_result *result, dv_error *error);

/* Gives up the step under way, if there is one: no gradient changes, and running statistics have moved. */
DV_API void dv_run_abandon(dv_run *run);

/* What the last layer made of the images that are there, [images] of dv_run_logits_map, to be read; NULL while there is
 * nothing to read. */
DV_API const dv_map *dv_run_logits_map(const dv_run *run);
DV_API const void *dv_run_logits(const dv_run *run);

/* The gradient of the loss by the logits, in the same map, for losses of the caller's own: to be called between forward
 * and backward, instead of dv_run_loss, and to be written for all images that are there. dv_step's scale and label
 * smoothing are the caller's to use then. Behind dv_run_loss it is what that wrote, and can be changed. Numbers that
 * are not finite are DV_ERROR_NONFINITE in dv_run_backward, which has changed nothing then. NULL at any other time. */
DV_API void *dv_run_logits_gradient(dv_run *run);

/* A step of the optimizer, the `number`-th from 0, with gradients that were kept: clips them, updates all parameters by
 * them, and leaves them zero. A norm that is not finite is DV_ERROR_NONFINITE if gradients are to be clipped; nothing
 * is updated then. Where gradients are transient there is nothing to call. */
DV_API dv_status dv_run_update(dv_run *run, double rate, uint64_t number, dv_error *error);

/* The optimizer of the run's plan, or NULL: none. It lives as long as the run. */
DV_API const dv_optimizer *dv_run_optimizer(const dv_run *run);
DV_API dv_gradients dv_run_gradients(const dv_run *run);

/* Whether a step of training failed half-way (values that are not finite, a disk that is full or gone): gradients and
 * running statistics may be of a part of it, so that the run can neither train nor be saved any more. A new one can,
 * that begins from a checkpoint. */
DV_API int dv_run_failed(const dv_run *run);

/* The time that steps have waited so far for the file that values lie in; 0 without one. */
DV_API double dv_run_waited_seconds(const dv_run *run);

/* Forward with running statistics, which do not move, in plans for training as for inference: dv_run_logits has the
 * result. Images are those of dv_run_set_images, each on its own: the result does not depend on the others. */
DV_API dv_status dv_run_predict(dv_run *run, dv_error *error);

/* dv_run_predict and dv_run_loss. */
DV_API dv_status dv_run_evaluate(dv_run *run, dv_step_result *result, dv_error *error);

/* Bytes that are available for a run on this machine now: free memory, or what the control groups of this process
 * leave, if that is less. */
DV_API size_t dv_memory_available(void);

/* The most memory this process has had resident so far. */
DV_API size_t dv_memory_peak(void);

#ifdef __cplusplus
}
#endif

#endif
