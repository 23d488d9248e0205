/* Passes: one direction of one convolution, made for a fixed number of images.
 *
 * Activations are channels last and dense, so that nothing of them is reordered; weights are reordered at each use
 * from the plain f32 array into the order that the pass likes, and their gradient back. Making a pass allocates;
 * running one does not, beyond what oneDNN does inside. Workspaces are the caller's memory.
 *
 * A pass runs with the number of OpenMP threads that it was made with, so that its sums have one order.
 *
 * Several makers compute them: oneDNN (onednn.c) any of them; Winograd's algorithm (winograd.c) those of 3x3, matrix
 * tiles (matrix.c) most of bf16, and f32 in slices (widened.c) any of bf16. Which is fastest depends on the processor:
 * choices (nn/choices.h) say what was measured. */
#ifndef DV_NN_PASS_H
#define DV_NN_PASS_H

#include "nn/layer.h"

/* A convolution: dst[n, o, y] = bias[o] + sum over i, k of weights[o, i, k] src[n, i, y stride + k dilation - padding].
 * src [images, src_sides..., src_channels], dst [images, dst_sides..., dst_channels],
 * weights f32 [dst_channels, src_channels / groups, kernel...]. The last elements of a src side may
 * take no part: padding + stride - 1 of them at most. */
typedef struct dv_convolution_shape {
    dv_type type; /* of src and dst: f32 or bf16 */
    int rank;     /* 1 to 3 */
    size_t images, groups;
    size_t src_channels, dst_channels;
    size_t src_sides[DV_MAX_RANK], dst_sides[DV_MAX_RANK];
    dv_window window;
} dv_convolution_shape;

typedef enum dv_pass_kind {
    DV_PASS_FORWARD,          /* src, weights, bias -> dst */
    DV_PASS_FORWARD_NO_BIAS,  /* src, weights -> dst */
    DV_PASS_BACKWARD_DATA,    /* diff_dst, weights -> diff_src */
    DV_PASS_BACKWARD_WEIGHTS, /* src, diff_dst -> gradient, f32 whatever the type of src is */
} dv_pass_kind;

static inline bool dv_pass_is_forward(dv_pass_kind kind) {
    return kind == DV_PASS_FORWARD || kind == DV_PASS_FORWARD_NO_BIAS;
}

/* The pass's arrays; those that its kind does not have are ignored. Only what it computes is written. */
typedef struct dv_pass_arrays {
    const void *src, *dst; /* or diff_src, diff_dst */
    const void *weights;   /* packed */
    float *gradient;       /* of the weights, plain: is added to */
    const float *bias;     /* [dst_channels] */
    void *workspace;
} dv_pass_arrays;

typedef struct dv_pass dv_pass;

/* How something that computes passes does what the functions below say. */
typedef struct dv_pass_methods {
    dv_status (*pack_weights)(dv_pass *pass, const float *plain, void *packed, void *workspace, const void **weights,
                              dv_error *error);
    dv_status (*run)(dv_pass *pass, const dv_pass_arrays *arrays, dv_error *error);
    void (*destroy)(dv_pass *pass); /* and frees */
} dv_pass_methods;

struct dv_pass {
    const dv_pass_methods *methods;
    dv_pass_kind kind;
    int threads;     /* that it was made for */
    int choice;      /* its number in the choices it was made by; negative: there were none */
    char kernel[64]; /* the name of what computes it: "winograd:fma", or oneDNN's: "jit:avx2" */
    /* What the caller must have room for, at addresses that are multiples of 64. */
    size_t weights_bytes; /* packed weights; 0: it takes them plain, or takes none */
    size_t workspace_bytes;
};

/* Something that computes passes. */
typedef struct dv_pass_maker {
    const char *name; /* in files of choices too: "winograd" */
    /* Whether it can compute the pass here; and whether it is taken where nothing was measured. */
    bool (*suits)(dv_pass_kind kind, const dv_convolution_shape *shape);
    bool (*is_expected)(dv_pass_kind kind, const dv_convolution_shape *shape);
    /* As dv_pass_new. */
    dv_status (*make)(dv_pass **pass, dv_pass_kind kind, const dv_convolution_shape *shape, const char *name,
                      dv_error *error);
} dv_pass_maker;

enum { DV_PASS_MAKERS = 4 };
extern const dv_pass_maker *const dv_pass_makers[DV_PASS_MAKERS]; /* the last one suits everything, and is expected */
extern const dv_pass_maker dv_matrix_maker, dv_winograd_maker, dv_widened_maker, dv_onednn_maker;

/* Whether oneDNN computes a pass by something faster than plain loops. */
bool dv_onednn_has_kernel(dv_pass_kind kind, const dv_convolution_shape *shape);

/* The maker that is taken where nothing was measured: its index. */
int dv_pass_expected(dv_pass_kind kind, const dv_convolution_shape *shape);

/* Makes a pass, to be given back by dv_pass_free: by the maker that `choices` has for it, which take note of it; NULL:
 * by the expected one. `name` of the layer is for messages. A type or a shape that this processor has no kernel for is
 * DV_ERROR_UNSUPPORTED. */
dv_status dv_pass_new(dv_pass **pass, struct dv_choices *choices, dv_pass_kind kind, const dv_convolution_shape *shape,
                      const char *name, dv_error *error);
void dv_pass_free(dv_pass *pass); /* NULL is fine */

/* Weights in the order that dv_pass_run takes, from plain ones [count]: `packed` after filling its
 * weights_bytes, or `plain` itself. For passes that read weights. */
dv_status dv_pass_pack_weights(dv_pass *pass, const float *plain, void *packed, void *workspace, const void **weights,
                               dv_error *error);

dv_status dv_pass_run(dv_pass *pass, const dv_pass_arrays *arrays, dv_error *error);

/* For tests: passes that are made from now on are this maker's, where it suits; NULL: as said above. */
extern const dv_pass_maker *dv_pass_forced;
/* ... and those on matrix tiles use these kernels; NULL: the processor's. */
extern const struct dv_matrix_kernels *dv_matrix_forced;

#endif
