/* What a layer is: shapes, needs, forward, backward. One file per kind of layer implements it; the graph
 * wires layers together, decides how values survive from forward to backward, and owns all memory.
 *
 * Values are maps of the whole batch, channels last (NHWC), in f32 or bf16, all of one type in a graph.
 * Parameters, their gradients, statistics and sums are f32 whatever the values are.
 *
 * A layer's life:
 *     infer      from the inputs' shapes to the output's shape and the parameters' sizes: no memory yet
 *     prepare    books workspace and what it saves; makes library primitives (may allocate)
 *     forward / backward, once a step: no allocation. Some kinds can recompute their output while the backward
 *                of later layers needs it
 *     destroy    gives back what prepare made
 *
 * Every reduction has a fixed order, which does not depend on the number of threads where it is ours. oneDNN's, in
 * convolutions and linear layers, does: twice with the same number is the same bits. */
#ifndef DV_NN_LAYER_H
#define DV_NN_LAYER_H

#include "codec/blpa.h"
#include "nn/kept.h"
#include "parallel/world.h"

#include <division/codec.h>
#include <division/layers.h>
#include <division/status.h>
#include <stdbool.h>

typedef struct dv_layer dv_layer;

/* What backward must have again of a value. */
typedef enum dv_need {
    DV_NEED_NOTHING,
    DV_NEED_MASK,    /* where it is positive */
    DV_NEED_NUMBERS, /* all of it, possibly approximate */
} dv_need;

/* How a parameter starts. */
typedef enum dv_parameter_initialisation {
    DV_INITIALISE_ZERO,
    DV_INITIALISE_ONE,
    DV_INITIALISE_FAN_OUT, /* normal, variance 2 / fan: He's, over the outgoing connections */
    DV_INITIALISE_UNIFORM, /* uniform in +-1/sqrt(fan): a linear layer's, PyTorch's default */
} dv_parameter_initialisation;

enum { DV_LAYER_MAX_PARAMETERS = 2, DV_LAYER_MAX_BUFFERS = 2, DV_PARAMETER_MAX_RANK = 5 };

/* A trained array. Its memory belongs to a run, and reaches the layer with each call (dv_layer_arrays). */
typedef struct dv_parameter {
    const char *name; /* "weight", "bias": with the layer's name before it, torchvision's */
    int rank;
    size_t shape[DV_PARAMETER_MAX_RANK]; /* PyTorch's: [out, in / groups, kernel...] */
    size_t count;                        /* the product */
    dv_parameter_initialisation initialisation;
    size_t fan;
    uint64_t key; /* of the random numbers that it begins as: the graph's */
} dv_parameter;

/* Arrays that are not trained but belong to the model: running mean and variance. f32 [count]. */
typedef struct dv_buffer {
    const char *name; /* "running_mean", "running_var" */
    size_t count;
    float start; /* what it is filled with at first */
} dv_buffer;

/* Where one run has a layer's parameters and buffers: arrays of their counts. */
typedef struct dv_layer_arrays {
    float *parameters[DV_LAYER_MAX_PARAMETERS];
    float *gradients[DV_LAYER_MAX_PARAMETERS]; /* backward adds to them; NULL in inference, and of those that are
                                                * frozen: backward leaves them out */
    float *buffers[DV_LAYER_MAX_BUFFERS];
    bool frozen; /* none of its parameters is trained: running statistics are used in training too, and stay */
} dv_layer_arrays;

/* What follows a layer and can be part of it. */
typedef enum dv_role {
    DV_ROLE_NONE, /* nothing of the kind */
    DV_ROLE_SUM,  /* the sum of its inputs */
    DV_ROLE_RELU, /* max(input, 0) */
} dv_role;

/* Whose images the statistics of a norm are of: this rank's, or those of the batch on all ranks. */
typedef struct dv_ranks_norm {
    dv_world *world; /* NULL: of the images at hand */
    size_t images;   /* of all ranks */
} dv_ranks_norm;

struct dv_forward;

/* An input that is nowhere as a whole: the layer that makes it, for one other alone, makes slices of it whenever they
 * are asked for. */
typedef struct dv_sliced_input {
    const dv_layer *layer;
    const struct dv_forward *call; /* its own, with its workspace */
} dv_sliced_input;

/* One call of forward. Memory is that of whole batches; of the images in it the first `images` are there. What the
 * others hold is undefined, NaN perhaps, and nobody's: a layer may write there, in all but inputs, and must let nothing
 * of it into what is there. */
typedef struct dv_forward {
    size_t images; /* 1 to output.images */
    const dv_layer_arrays *arrays;
    const void *const *inputs;     /* [input_count] whole batches */
    const dv_sliced_input *sliced; /* instead of inputs[0], of layers that can do so (input_slice_bytes); the output may
                                    * be the memory of inputs[1] then. NULL: it is there */
    void *output;                  /* may be the memory of inputs[0], if the kind allows it */
    uint8_t *output_mask;          /* where to leave 1 bit per element, set where the output is positive: image n at
                                    * n * dv_mask_stride(&layer->output), in the order of the `bits` codec. NULL: not wanted */
    const dv_kept *store_output; /* how to store the output, slice by slice while it is in cache, if the kind does that
                                  * itself (stores_output). NULL: not */
    const dv_kept *store_input;  /* the same of inputs[0], with the output's mask at hand (stores_input) */
    void *saved;                 /* [dv_layer_saved_bytes] kept until backward */
    void *workspace;             /* [forward_workspace_bytes], contents undefined; and behind them store_input_bytes
                                  * or input_slice_bytes */
    bool training;               /* else: inference; nothing is saved, running statistics are used */
    bool replay;              /* in training: a second time for the same batch. Running statistics have moved already */
    uint64_t seed, step, key; /* random numbers: of the training, of the step, of the layer */
    uint64_t first_image;     /* ... and the number of the first image in the step */
    dv_ranks_norm norm;
} dv_forward;

struct dv_backward;

/* The gradient of a layer's output that nobody has written: the one layer that takes the output makes slices of it. */
typedef struct dv_sliced_diff {
    const dv_layer *layer;          /* which makes it */
    const struct dv_backward *call; /* its backward, which has been */
    void *workspace;                /* [diff_images_bytes of it] */
} dv_sliced_diff;

/* One call of backward, of the images that forward had; for the others the same is true. */
typedef struct dv_backward {
    size_t images;
    const dv_layer_arrays *arrays;
    void *diff_output;            /* whole batch; read alone, but for the images that are not there */
    const dv_sliced_diff *sliced; /* instead of it, of layers that can do so (diff_slice_bytes). NULL: it is there */
    void *diff_state;             /* [diff_state_bytes] where to leave what diff_images uses later: diff_inputs[0] is
                                   * NULL then. NULL: diff_inputs[0] is to be written, if it is there */
    void *const *diff_inputs;     /* [input_count]; NULL where not wanted; may be the memory of diff_output where the
                                   * kind allows it (diff_in_place) */
    const bool *accumulate;       /* [input_count] add to what is in diff_inputs[i], else overwrite it */
    const dv_kept *const *inputs; /* [input_count]; NULL where not needed */
    const dv_kept *output;        /* NULL if not needed */
    const void *saved;
    void *workspace; /* [backward_workspace_bytes] */
    uint64_t seed, step, key;
    dv_ranks_norm norm;
} dv_backward;

/* What a loss compares with. Images that are mixed of two have two labels: the loss is weight x that against the first
 * plus (1 - weight) x that against the second, and the label that counts as correct is the one of more weight. */
typedef struct dv_targets {
    const void *data;       /* [images][target_bytes] of the layer: labels, mostly */
    const int32_t *seconds; /* [images], or NULL: one label each; one whose image has weight 1 may be anything */
    const float *weights;   /* [images], of the first label, 0 to 1; NULL likewise */
    float smoothing;        /* of labels, 0 to 1 */
} dv_targets;

/* One call of a loss. Of the images the first `images` are there, as in dv_forward. */
typedef struct dv_loss_call {
    size_t images;
    const void *input; /* whole batch: the logits */
    dv_targets targets;
    float scale;      /* of the gradient */
    void *diff_input; /* to write d(loss) / d(input) x scale to; NULL: not wanted */
    void *workspace;  /* [forward_workspace_bytes], contents undefined */
} dv_loss_call;

/* What a loss found. */
typedef struct dv_loss_result {
    double loss;              /* the mean over all that is counted */
    size_t counted;           /* images or, of maps, pixels that have a label */
    size_t correct, correct5; /* of them: those whose label is the first of the logits, among the first five */
} dv_loss_result;

typedef struct dv_layer_kind {
    const char *name; /* "convolution" */

    /* Checks input_count, inputs and options; sets output, parameters, buffers, needs. */
    dv_status (*infer)(dv_layer *layer, dv_error *error);

    /* Sets saved_bytes, the workspaces and recompute_bytes; makes what it needs in layer->prepared. NULL: nothing to
     * do. */
    dv_status (*prepare)(dv_layer *layer, dv_error *error);
    void (*destroy)(dv_layer *layer); /* of what prepare made, which may be called again. NULL: nothing to do */

    /* The passes of a prepared layer, that of forward and those of backward, and how often each runs in a step; NULL
     * past the last. NULL: it has none. */
    const struct dv_pass *(*pass)(const dv_layer *layer, int index, size_t *runs);

    /* On failure the message says what; the caller adds layer and step. */
    dv_status (*forward)(const dv_layer *layer, const dv_forward *call, dv_error *error);
    dv_status (*backward)(const dv_layer *layer, const dv_backward *call, dv_error *error);

    /* Makes a slice of the output, dv_map_slice_images of it from image `first` on, at `images`: as forward does it, to
     * the bit. Of `call` the output is not used. NULL: cannot. */
    dv_status (*forward_slice)(const dv_layer *layer, const dv_forward *call, size_t first, void *images,
                               dv_error *error);

    /* Instead of forward and backward, which follow each other at once: the layer is a loss, which takes one input and
     * ends a graph. NULL: it is none. */
    dv_status (*loss)(const dv_layer *layer, const dv_loss_call *call, dv_loss_result *result, dv_error *error);

    /* Makes images first .. first + count - 1 of the output again, from what is kept of the inputs, which may have to
     * be recomputed themselves. `output` has inputs, arrays, mask, saved and workspace; `images` is no part of the
     * workspace. NULL: cannot. */
    dv_status (*recompute)(const dv_layer *layer, const dv_kept *output, size_t first, size_t count, void *images,
                           dv_error *error);

    /* Makes images first .. first + count - 1 of the gradient of inputs[0], when backward has been, with a
     * diff_state. Reads diff_output, which is still there, and what is kept; no parameters, which may have been
     * updated. `workspace` has diff_images_bytes. NULL: cannot. */
    dv_status (*diff_images)(const dv_layer *layer, const dv_backward *call, void *workspace, size_t first,
                             size_t count, void *images, dv_error *error);

    /* What forward did, of kinds that normalise: pointers into `arrays` and `saved`. NULL: not one of them. */
    dv_normalisation (*normalisation)(const dv_layer *layer, const dv_layer_arrays *arrays, const void *saved);

    /* Traits: what graphs, plans and methods want to know. They never ask which kind a layer is. */
    bool in_place;          /* output may be the memory of inputs[0] */
    bool stores_output;     /* forward stores the output itself where it is told to */
    bool stores_input;      /* ... and inputs[0], before it overwrites it */
    unsigned diff_in_place; /* bit i: diff_inputs[i] may be the memory of diff_output (one of them at a time) */
    bool joins;             /* the output is the inputs side by side: nothing is computed */
    bool normalises; /* the output is inputs[0], normalised by statistics of the batch; the other input is added */
    bool last_input_first; /* recompute gets its last input, into `images`, before it touches its workspace */

    /* Fusing: what a layer is to the one before it, and whether that one can take it over. take_over changes the
     * layer's options, before it is inferred anew. NULL: takes over nothing. */
    dv_role role;
    bool (*can_take_over)(const dv_layer *layer, dv_role role);
    void (*take_over)(dv_layer *layer, dv_role role);
} dv_layer_kind;

struct dv_layer {
    const dv_layer_kind *kind;
    const char *name;    /* "layer1.0.conv2" */
    uint64_t key;        /* of its random numbers: what dropout drops depends on it. The graph's */
    const void *options; /* the kind's own struct, owned by the graph */
    size_t input_count;
    const dv_map *inputs;       /* [input_count] shapes */
    struct dv_choices *choices; /* who computes its passes; NULL: the expected makers. The graph's */

    /* set by infer */
    dv_map output;
    size_t parameter_count, buffer_count;
    dv_parameter parameters[DV_LAYER_MAX_PARAMETERS];
    dv_buffer buffers[DV_LAYER_MAX_BUFFERS];
    dv_need input_need;       /* of the inputs in input_need_mask */
    unsigned input_need_mask; /* bit i: input i is needed; all ones unless infer says otherwise */
    unsigned needed_for;    /* bit p: the inputs and what is saved are needed as long as parameter p is trained. If all
                             * of these are frozen, backward reads neither. 0: it always does */
    dv_need output_need;    /* of the output */
    bool zero_outside_mask; /* the output is zero where it is not positive */
    size_t fewest_images;   /* that it can be trained with; 0 is 1 */
    size_t target_bytes;    /* a loss: of what it is given for an image */
    bool takes_labels;      /* ... which is labels: int32 [pixels of the input] */
    bool mixes_labels;      /* ... of which an image can have a second one */

    /* set by prepare */
    size_t saved_bytes;
    size_t forward_workspace_bytes, backward_workspace_bytes;
    size_t store_input_bytes;    /* of workspace more, behind that of forward, if it is told to store its input */
    size_t input_slice_bytes;    /* ... or if its first input comes by slices. 0: it cannot */
    bool cheap_twice;            /* forward_slice takes hardly more time than to write and read what it makes */
    size_t recompute_bytes;      /* of workspace for recompute */
    size_t recompute_mask_bytes; /* ... and behind them, if the mask of the output is read out of a code */
    size_t recompute_pass_bytes; /* instead of both, if the first input comes normalised */
    size_t diff_slice_bytes;     /* of workspace more, behind that of backward, if the gradient of the output comes by
                                  * slices. 0: it cannot */
    size_t diff_state_bytes;     /* that backward leaves for diff_images */
    size_t diff_images_bytes;    /* of workspace for it */
    void *prepared;
};

/* What backward needs depends on the parameters that are trained: bit p of `trained` for parameter p. */
static inline bool dv_layer_needs_anything(const dv_layer *layer, unsigned trained) {
    return layer->needed_for == 0 || (layer->needed_for & trained);
}

/* What it needs of input `k`. */
static inline dv_need dv_layer_input_need(const dv_layer *layer, size_t k, unsigned trained) {
    bool needed = dv_layer_needs_anything(layer, trained) && (layer->input_need_mask >> (k < 31 ? k : 31) & 1);
    return needed ? layer->input_need : DV_NEED_NOTHING;
}

/* What forward saves for it. */
static inline size_t dv_layer_saved_bytes(const dv_layer *layer, unsigned trained) {
    return dv_layer_needs_anything(layer, trained) ? layer->saved_bytes : 0;
}

/* Bytes of one image's mask: a multiple of 64. */
size_t dv_mask_stride(const dv_map *map);

/* Images that backward should handle together: the largest divisor of the batch such that a slice of a
 * map of `image_bytes` per image fits in a shared cache (DV_SLICE_BYTES), at least 1. */
enum { DV_SLICE_BYTES = 8 << 20 };
size_t dv_slice_images(size_t images, size_t image_bytes);

/* For tests: slices of at most so many bytes, 0: DV_SLICE_BYTES. Not while there is a graph whose layers are prepared.
 */
void dv_slice_bytes_force(size_t bytes);

/* The same of a map. */
size_t dv_map_slice_images(const dv_map *map);

/* ---- the kinds and their options ------------------------------------------------------------ */

/* input [N, ..., C]; weight [out, in / groups, kernel...] (transposed: [in, out / groups, kernel...]).
 * Needs its input's numbers for the gradient of the weight. */
extern const dv_layer_kind dv_convolution, dv_transposed_convolution;

/* Needs the numbers of inputs[0] (not of inputs[1]) and, if relu, the mask of its output. Saves mean and
 * 1 / standard deviation. Parameters weight and bias [C], buffers running_mean and running_var [C]. Frozen it is an
 * affine map by the running statistics: needs the mask alone, and saves nothing. */
extern const dv_layer_kind dv_batch_norm;

extern const dv_layer_kind dv_relu;       /* no options; needs the mask of its output; in place */
extern const dv_layer_kind dv_leaky_relu; /* needs the mask of its output, which it is not zero outside of; in place */
extern const dv_layer_kind dv_sum;        /* no options; two or more inputs of one shape; diff is passed on */
extern const dv_layer_kind dv_concatenation; /* no options; inputs that differ in channels only */

extern const dv_layer_kind dv_max_pooling;     /* saves the winner: 4 bits (window <= 16), else 8 (window <= 256) */
extern const dv_layer_kind dv_average_pooling; /* needs nothing */
extern const dv_layer_kind dv_global_average_pooling; /* no options; output has rank 0 */

extern const dv_layer_kind dv_dropout; /* saves one bit per element; identity in inference */

/* input of rank 0: [N, C]; weight [out, in]. Needs its input's numbers for the gradient of the weight. */
extern const dv_layer_kind dv_linear;

/* The loss of classifiers: of logits [images][classes] against a label per image or, of maps, against one per pixel,
 * DV_NO_LABEL where there is none. No options. */
extern const dv_layer_kind dv_softmax_cross_entropy;

#endif
