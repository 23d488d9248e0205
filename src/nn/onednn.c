/* Convolution passes on oneDNN's C interface, of version 2.6 or later and of 3.x. One engine for the process; a stream,
 * the primitives and their memory objects per pass. Memory objects have no memory of their own: they are pointed at the
 * caller's arrays right before each execution. */
#include "base/cpu.h"
#include "base/sizes.h"
#include "base/status.h"
#include "nn/pass.h"

#include <omp.h>
#include <oneapi/dnnl/dnnl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* ---- what differs between versions ---------------------------------------------------------- */

/* Everything that makes up the descriptor of a convolution primitive. */
typedef struct pass_geometry {
    dnnl_dims_t strides, dilates, padding_l, padding_r;
} pass_geometry;

#if DNNL_VERSION_MAJOR >= 3

#define NO_MORE_CHOICES dnnl_last_impl_reached

typedef dnnl_memory_desc_t owned_md;      /* an object, to be destroyed */
typedef const_dnnl_memory_desc_t view_md; /* what functions take */

static view_md view(const owned_md *md) {
    return *md;
}

static dnnl_status_t md_init(owned_md *md, int ndims, const dnnl_dims_t dims, dnnl_data_type_t type,
                             dnnl_format_tag_t tag) {
    return dnnl_memory_desc_create_with_tag(md, ndims, dims, type, tag);
}

static void md_destroy(owned_md *md) {
    if (*md)
        dnnl_memory_desc_destroy(*md);
}

static dnnl_status_t append_sum(dnnl_post_ops_t post_ops) {
    return dnnl_post_ops_append_sum(post_ops, 1, 0, dnnl_data_type_undef);
}

static dnnl_status_t forward_desc(dnnl_primitive_desc_t *pd, dnnl_engine_t engine, view_md src, view_md weights,
                                  view_md bias, view_md dst, const pass_geometry *g, const_dnnl_primitive_attr_t attr) {
    return dnnl_convolution_forward_primitive_desc_create(pd, engine, dnnl_forward_training, dnnl_convolution_direct,
                                                          src, weights, bias, dst, g->strides, g->dilates, g->padding_l,
                                                          g->padding_r, attr);
}

/* From the best implementation to number `choice`; NO_MORE_CHOICES if there are not as many. */
static dnnl_status_t skip_to(dnnl_primitive_desc_t pd, int choice) {
    dnnl_status_t status = dnnl_success;
    for (int i = 0; i < choice && status == dnnl_success; i++)
        status = dnnl_primitive_desc_next_impl(pd);
    return status;
}

static dnnl_status_t backward_data_desc(dnnl_primitive_desc_t *pd, dnnl_engine_t engine, view_md src, view_md weights,
                                        view_md dst, const pass_geometry *g, const_dnnl_primitive_attr_t attr,
                                        const_dnnl_primitive_desc_t hint, int choice) {
    dnnl_status_t status = dnnl_convolution_backward_data_primitive_desc_create(
        pd, engine, dnnl_convolution_direct, src, weights, dst, g->strides, g->dilates, g->padding_l, g->padding_r,
        hint, attr);
    return status != dnnl_success ? status : skip_to(*pd, choice);
}

static dnnl_status_t backward_weights_desc(dnnl_primitive_desc_t *pd, dnnl_engine_t engine, view_md src,
                                           view_md weights, view_md dst, const pass_geometry *g,
                                           const_dnnl_primitive_attr_t attr, const_dnnl_primitive_desc_t hint,
                                           int choice) {
    dnnl_status_t status = dnnl_convolution_backward_weights_primitive_desc_create(
        pd, engine, dnnl_convolution_direct, src, weights, NULL, dst, g->strides, g->dilates, g->padding_l,
        g->padding_r, hint, attr);
    return status != dnnl_success ? status : skip_to(*pd, choice);
}

#else

#define NO_MORE_CHOICES dnnl_iterator_ends

typedef dnnl_memory_desc_t owned_md; /* a plain struct */
typedef const dnnl_memory_desc_t *view_md;

static view_md view(const owned_md *md) {
    return md->ndims ? md : NULL;
}

static dnnl_status_t md_init(owned_md *md, int ndims, const dnnl_dims_t dims, dnnl_data_type_t type,
                             dnnl_format_tag_t tag) {
    return dnnl_memory_desc_init_by_tag(md, ndims, dims, type, tag);
}

static void md_destroy(owned_md *md) {
    (void)md;
}

static dnnl_status_t append_sum(dnnl_post_ops_t post_ops) {
    return dnnl_post_ops_append_sum(post_ops, 1);
}

static dnnl_status_t forward_desc(dnnl_primitive_desc_t *pd, dnnl_engine_t engine, view_md src, view_md weights,
                                  view_md bias, view_md dst, const pass_geometry *g, const_dnnl_primitive_attr_t attr) {
    dnnl_convolution_desc_t desc;
    dnnl_status_t status =
        dnnl_dilated_convolution_forward_desc_init(&desc, dnnl_forward_training, dnnl_convolution_direct, src, weights,
                                                   bias, dst, g->strides, g->dilates, g->padding_l, g->padding_r);
    return status != dnnl_success ? status : dnnl_primitive_desc_create(pd, &desc, attr, engine, NULL);
}

/* The implementation number `choice`, best first; NO_MORE_CHOICES if there are not as many. */
static dnnl_status_t desc_at(dnnl_primitive_desc_t *pd, const dnnl_convolution_desc_t *desc, dnnl_engine_t engine,
                             const_dnnl_primitive_attr_t attr, const_dnnl_primitive_desc_t hint, int choice) {
    dnnl_primitive_desc_iterator_t iterator = NULL;
    dnnl_status_t status = dnnl_primitive_desc_iterator_create(&iterator, desc, attr, engine, hint);
    for (int i = 0; i < choice && status == dnnl_success; i++)
        status = dnnl_primitive_desc_iterator_next(iterator);
    if (status == dnnl_success && !(*pd = dnnl_primitive_desc_iterator_fetch(iterator)))
        status = dnnl_out_of_memory;
    if (iterator)
        dnnl_primitive_desc_iterator_destroy(iterator);
    return status;
}

static dnnl_status_t backward_data_desc(dnnl_primitive_desc_t *pd, dnnl_engine_t engine, view_md src, view_md weights,
                                        view_md dst, const pass_geometry *g, const_dnnl_primitive_attr_t attr,
                                        const_dnnl_primitive_desc_t hint, int choice) {
    dnnl_convolution_desc_t desc;
    dnnl_status_t status = dnnl_dilated_convolution_backward_data_desc_init(
        &desc, dnnl_convolution_direct, src, weights, dst, g->strides, g->dilates, g->padding_l, g->padding_r);
    return status != dnnl_success ? status : desc_at(pd, &desc, engine, attr, hint, choice);
}

static dnnl_status_t backward_weights_desc(dnnl_primitive_desc_t *pd, dnnl_engine_t engine, view_md src,
                                           view_md weights, view_md dst, const pass_geometry *g,
                                           const_dnnl_primitive_attr_t attr, const_dnnl_primitive_desc_t hint,
                                           int choice) {
    dnnl_convolution_desc_t desc;
    dnnl_status_t status = dnnl_dilated_convolution_backward_weights_desc_init(
        &desc, dnnl_convolution_direct, src, weights, NULL, dst, g->strides, g->dilates, g->padding_l, g->padding_r);
    return status != dnnl_success ? status : desc_at(pd, &desc, engine, attr, hint, choice);
}

#endif

/* ---- the engine, and statuses in words ------------------------------------------------------ */

static dnnl_engine_t the_engine; /* lives as long as the process; NULL if it could not be made */

/* oneDNN sets up AMX's tiles by what the processor says of them. A limit that the user set stays. */
static void create_engine(void) {
    if (dv_amx_is_half_hidden() && !getenv("ONEDNN_MAX_CPU_ISA") && !getenv("DNNL_MAX_CPU_ISA"))
        (void)dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx512_core_bf16);
    if (dnnl_engine_create(&the_engine, dnnl_cpu, 0) != dnnl_success)
        the_engine = NULL;
}

static dnnl_engine_t engine_get(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, create_engine);
    return the_engine;
}

static const char *status_words(dnnl_status_t status) {
    switch (status) {
    case dnnl_out_of_memory:
        return "out of memory";
    case dnnl_invalid_arguments:
        return "invalid arguments";
    case dnnl_unimplemented:
    case NO_MORE_CHOICES:
        return "it has no kernel for this processor, type and shape: use f32, or a newer oneDNN";
    case dnnl_runtime_error:
        return "runtime error";
    default:
        return "unexpected status";
    }
}

static dv_status status_from(dnnl_status_t status) {
    return status == dnnl_out_of_memory ? DV_ERROR_MEMORY : DV_ERROR_UNSUPPORTED;
}

/* ---- making a pass -------------------------------------------------------------------------- */

typedef struct onednn_pass {
    dv_pass pass; /* its threads are those that the primitives were made for, and their workspaces */
    dnnl_stream_t stream;
    dnnl_primitive_t convolution;
    dnnl_primitive_t reorder; /* plain -> packed; of a backward-weights pass: packed added to plain. NULL: not needed */
    dnnl_memory_t src, weights, bias, dst, workspace;
    dnnl_memory_t plain, reorder_workspace;
    size_t packed_at;     /* where in the workspace the packed gradient is */
    bool clears;          /* the workspace, before each run */
    pthread_mutex_t busy; /* the memory objects point to the arrays of one call at a time */
} onednn_pass;

/* What exists only while a pass is made. */
typedef struct pass_maker {
    owned_md src, weights, diff_weights, plain, bias, dst;
    pass_geometry geometry;
    dnnl_primitive_attr_t attr;
    dnnl_primitive_desc_t hint, desc, reorder_desc;
} pass_maker;

#define ONEDNN_TRY(expression)                       \
    do {                                             \
        dnnl_status_t onednn_status_ = (expression); \
        if (onednn_status_ != dnnl_success)          \
            return onednn_status_;                   \
    } while (0)

static dnnl_data_type_t data_type(const dv_convolution_shape *shape) {
    return shape->type == DV_BF16 ? dnnl_bf16 : dnnl_f32;
}

/* [images, channels, sides...], which is how oneDNN counts whatever the order in memory is. */
static dnnl_status_t activation_md(owned_md *md, const dv_convolution_shape *shape, size_t channels,
                                   const size_t *sides) {
    static const dnnl_format_tag_t tags[] = {dnnl_nwc, dnnl_nhwc, dnnl_ndhwc};
    dnnl_dims_t dims = {(dnnl_dim_t)shape->images, (dnnl_dim_t)channels};
    for (int d = 0; d < shape->rank; d++)
        dims[2 + d] = (dnnl_dim_t)sides[d];
    return md_init(md, 2 + shape->rank, dims, data_type(shape), tags[shape->rank - 1]);
}

/* [groups, dst channels of one, src channels of one, kernel...], without the first if there is one group:
 * plain, and in the order that the kernel likes. diff_weights are f32 whatever the weights are. */
static dnnl_status_t weights_mds(pass_maker *maker, const dv_convolution_shape *shape) {
    static const dnnl_format_tag_t tags[] = {dnnl_abc, dnnl_abcd, dnnl_abcde, dnnl_abcdef};
    dnnl_dims_t dims;
    int ndims = 0;
    if (shape->groups > 1)
        dims[ndims++] = (dnnl_dim_t)shape->groups;
    dims[ndims++] = (dnnl_dim_t)(shape->dst_channels / shape->groups);
    dims[ndims++] = (dnnl_dim_t)(shape->src_channels / shape->groups);
    for (int d = 0; d < shape->rank; d++)
        dims[ndims++] = (dnnl_dim_t)shape->window.kernel[d];
    ONEDNN_TRY(md_init(&maker->plain, ndims, dims, dnnl_f32, tags[shape->rank - 1 + (shape->groups > 1)]));
    ONEDNN_TRY(md_init(&maker->diff_weights, ndims, dims, dnnl_f32, dnnl_format_tag_any));
    return md_init(&maker->weights, ndims, dims, data_type(shape), dnnl_format_tag_any);
}

/* The padding behind is what makes the sides meet exactly; it is negative where elements of src are left
 * over. oneDNN's dilation is the number of elements skipped. */
static void geometry_init(pass_geometry *geometry, const dv_convolution_shape *shape) {
    const dv_window *window = &shape->window;
    for (int d = 0; d < shape->rank; d++) {
        size_t reach = (window->kernel[d] - 1) * window->dilation[d] + 1;
        size_t covered = (shape->dst_sides[d] - 1) * window->stride[d] + reach;
        geometry->strides[d] = (dnnl_dim_t)window->stride[d];
        geometry->dilates[d] = (dnnl_dim_t)window->dilation[d] - 1;
        geometry->padding_l[d] = (dnnl_dim_t)window->padding[d];
        geometry->padding_r[d] = (dnnl_dim_t)covered - (dnnl_dim_t)shape->src_sides[d] - geometry->padding_l[d];
    }
}

static dnnl_status_t maker_init(pass_maker *maker, dv_pass_kind kind, const dv_convolution_shape *shape) {
    ONEDNN_TRY(activation_md(&maker->src, shape, shape->src_channels, shape->src_sides));
    ONEDNN_TRY(activation_md(&maker->dst, shape, shape->dst_channels, shape->dst_sides));
    ONEDNN_TRY(weights_mds(maker, shape));
    dnnl_dims_t channels = {(dnnl_dim_t)shape->dst_channels};
    if (kind == DV_PASS_FORWARD)
        ONEDNN_TRY(md_init(&maker->bias, 1, channels, dnnl_f32, dnnl_a));
    geometry_init(&maker->geometry, shape);
    ONEDNN_TRY(dnnl_primitive_attr_create(&maker->attr));
    return dnnl_primitive_attr_set_scratchpad_mode(maker->attr, dnnl_scratchpad_mode_user);
}

static void maker_destroy(pass_maker *maker) {
    dnnl_primitive_desc_t descs[] = {maker->hint, maker->desc, maker->reorder_desc};
    for (size_t i = 0; i < sizeof descs / sizeof *descs; i++)
        if (descs[i])
            dnnl_primitive_desc_destroy(descs[i]);
    if (maker->attr)
        dnnl_primitive_attr_destroy(maker->attr);
    owned_md *mds[] = {&maker->src, &maker->weights, &maker->diff_weights, &maker->plain, &maker->bias, &maker->dst};
    for (size_t i = 0; i < sizeof mds / sizeof *mds; i++)
        md_destroy(mds[i]);
}

/* The name lives as long as the descriptor. */
static const char *kernel_of(const_dnnl_primitive_desc_t desc) {
    const char *kernel = "";
    dnnl_primitive_desc_query(desc, dnnl_query_impl_info_str, 0, &kernel);
    return kernel;
}

/* Kernels of backward that go wrong, and the shapes that they do it with. */

/* 1x1 with strides writes past its workspace where src is channels last and its channels are less than a vector
 * (oneDNN's issue 6035, in all versions so far); channels that are whole vectors are safe with any instruction set. */
static bool writes_past_workspace(const dv_convolution_shape *shape) {
    bool strided = false;
    for (int d = 0; d < shape->rank; d++)
        strided = strided || shape->window.stride[d] > 1;
    return strided && shape->src_channels / shape->groups % 16 != 0;
}

/* bf16 in three dimensions with groups, or with a stride along the first two, gives wrong sums and touches memory that
 * is not its own (2.6.3, AVX-512); with AMX a stride leaves numbers that were never set. */
static bool sums_wrongly(const dv_convolution_shape *shape) {
    return shape->rank == 3 && (shape->groups > 1 || shape->window.stride[0] > 1 || shape->window.stride[1] > 1);
}

/* bf16 takes pixels by twos. A single one of one channel is taken with what lies a stride further on, behind src, which
 * is multiplied by zero: NaN if it is not finite (2.6.3, AVX-512). */
static bool reads_past_src(const dv_convolution_shape *shape) {
    int last = shape->rank - 1;
    return shape->src_channels == shape->groups && shape->dst_sides[last] == 1 && shape->window.stride[last] > 1;
}

/* In three dimensions, padding before the first that is more than a stride leaves sums that were never set, and is
 * written past the gradient (2.6.3, AVX-512, kernels of four and more). */
static bool skips_into_padding(const dv_convolution_shape *shape) {
    return shape->rank == 3 && shape->window.stride[0] > 1 && shape->window.padding[0] > shape->window.stride[0];
}

/* bf16 takes the channels of dst by twos. Where they are odd, and pixels 30 or a multiple of it, what is taken with the
 * last one is not left out (2.6.3, AVX-512). */
static bool takes_one_channel_too_many(const dv_convolution_shape *shape) {
    return shape->dst_channels / shape->groups % 2 != 0;
}

/* bf16 in three dimensions leaves sums of an earlier call in the gradient (3.7.2, AVX-512). */
static bool adds_to_what_was_there(const dv_convolution_shape *shape) {
    return DNNL_VERSION_MAJOR >= 3 && shape->rank == 3;
}

static const struct {
    dv_pass_kind kind;
    const char *kernel; /* a part of its name */
    bool (*breaks)(const dv_convolution_shape *shape);
} broken[] = {
    {DV_PASS_BACKWARD_WEIGHTS, "1x1", writes_past_workspace},
    {DV_PASS_BACKWARD_WEIGHTS, "jit_bf16", sums_wrongly},
    {DV_PASS_BACKWARD_WEIGHTS, "amx_bf16", sums_wrongly},
    {DV_PASS_BACKWARD_WEIGHTS, "jit_bf16", reads_past_src},
    {DV_PASS_BACKWARD_WEIGHTS, "jit_bf16:", adds_to_what_was_there},
    {DV_PASS_BACKWARD_WEIGHTS, "jit:avx512", skips_into_padding},
    {DV_PASS_BACKWARD_DATA, "jit_bf16_1x1", takes_one_channel_too_many},
};

static bool is_broken(dv_pass_kind kind, const_dnnl_primitive_desc_t desc, const dv_convolution_shape *shape) {
    const char *kernel = kernel_of(desc);
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++)
        if (broken[i].kind == kind && strstr(kernel, broken[i].kernel) && broken[i].breaks(shape))
            return true;
    return false;
}

/* Whether element `k` of the window along side `d` falls on an element of src for some element of dst. */
static bool meets_src(const dv_convolution_shape *shape, int d, size_t k) {
    const dv_window *window = &shape->window;
    for (size_t y = 0; y < shape->dst_sides[d]; y++) {
        size_t at = y * window->stride[d] + k * window->dilation[d];
        if (at >= window->padding[d] && at - window->padding[d] < shape->src_sides[d])
            return true;
    }
    return false;
}

/* Whether the window has elements that fall on padding only. Their gradient is zero, and the kernels of bf16 (2.6.3,
 * AVX-512) leave it as it was: in the packed gradient, and in the sums of each thread that it is made of, which are
 * somewhere in the workspace. */
static bool has_idle_elements(const dv_convolution_shape *shape) {
    for (int d = 0; d < shape->rank; d++)
        for (size_t k = 0; k < shape->window.kernel[d]; k++)
            if (!meets_src(shape, d, k))
                return true;
    return false;
}

/* The best implementation of a direction of backward that is not broken. */
static dnnl_status_t sound_backward_desc(pass_maker *maker, dv_pass_kind kind, const dv_convolution_shape *shape) {
    view_md src = view(&maker->src), dst = view(&maker->dst);
    for (int choice = 0;; choice++) {
        if (kind == DV_PASS_BACKWARD_DATA)
            ONEDNN_TRY(backward_data_desc(&maker->desc, engine_get(), src, view(&maker->weights), dst, &maker->geometry,
                                          maker->attr, maker->hint, choice));
        else
            ONEDNN_TRY(backward_weights_desc(&maker->desc, engine_get(), src, view(&maker->diff_weights), dst,
                                             &maker->geometry, maker->attr, maker->hint, choice));
        if (!is_broken(kind, maker->desc, shape))
            return dnnl_success;
        dnnl_primitive_desc_destroy(maker->desc);
        maker->desc = NULL;
    }
}

/* The primitive descriptor of the convolution. Those of backward take the forward one as a hint. */
static dnnl_status_t convolution_desc(pass_maker *maker, dv_pass_kind kind, const dv_convolution_shape *shape) {
    view_md src = view(&maker->src), weights = view(&maker->weights), dst = view(&maker->dst);
    bool forward = kind == DV_PASS_FORWARD || kind == DV_PASS_FORWARD_NO_BIAS;
    ONEDNN_TRY(forward_desc(forward ? &maker->desc : &maker->hint, engine_get(), src, weights, view(&maker->bias), dst,
                            &maker->geometry, maker->attr));
    return forward ? dnnl_success : sound_backward_desc(maker, kind, shape);
}

static dnnl_status_t memory_init(dnnl_memory_t *memory, view_md md) {
    return dnnl_memory_create(memory, md, engine_get(), DNNL_MEMORY_NONE);
}

/* A memory object for the descriptor's workspace, if it needs one; the pass books the larger of all. */
static dnnl_status_t workspace_init(onednn_pass *made, dnnl_memory_t *memory, const_dnnl_primitive_desc_t desc) {
    view_md md = dnnl_primitive_desc_query_md(desc, dnnl_query_scratchpad_md, 0);
    size_t bytes = md ? dnnl_memory_desc_get_size(md) : 0;
    if (bytes == 0)
        return dnnl_success;
    if (bytes > made->pass.workspace_bytes)
        made->pass.workspace_bytes = bytes;
    return memory_init(memory, md);
}

/* The reorder between the plain weights and the kernel's. */
static dnnl_status_t reorder_init(onednn_pass *made, pass_maker *maker, view_md packed) {
    view_md from = view(&maker->plain), to = packed;
    if (made->pass.kind == DV_PASS_BACKWARD_WEIGHTS) {
        dnnl_post_ops_t post_ops;
        ONEDNN_TRY(dnnl_post_ops_create(&post_ops));
        dnnl_status_t status = append_sum(post_ops);
        if (status == dnnl_success)
            status = dnnl_primitive_attr_set_post_ops(maker->attr, post_ops);
        dnnl_post_ops_destroy(post_ops);
        ONEDNN_TRY(status);
        from = packed, to = view(&maker->plain);
    }
    ONEDNN_TRY(
        dnnl_reorder_primitive_desc_create(&maker->reorder_desc, from, engine_get(), to, engine_get(), maker->attr));
    ONEDNN_TRY(dnnl_primitive_create(&made->reorder, maker->reorder_desc));
    ONEDNN_TRY(memory_init(&made->plain, view(&maker->plain)));
    return workspace_init(made, &made->reorder_workspace, maker->reorder_desc);
}

static dnnl_status_t pass_init(onednn_pass *made, pass_maker *maker, const dv_convolution_shape *shape) {
    ONEDNN_TRY(maker_init(maker, made->pass.kind, shape));
    ONEDNN_TRY(convolution_desc(maker, made->pass.kind, shape));
    snprintf(made->pass.kernel, sizeof made->pass.kernel, "%s", kernel_of(maker->desc));
    ONEDNN_TRY(dnnl_primitive_create(&made->convolution, maker->desc));
    ONEDNN_TRY(dnnl_stream_create(&made->stream, engine_get(), dnnl_stream_default_flags));

    bool gradient = made->pass.kind == DV_PASS_BACKWARD_WEIGHTS;
    view_md packed =
        dnnl_primitive_desc_query_md(maker->desc, gradient ? dnnl_query_diff_weights_md : dnnl_query_weights_md, 0);
    ONEDNN_TRY(memory_init(&made->src, view(&maker->src)));
    ONEDNN_TRY(memory_init(&made->dst, view(&maker->dst)));
    ONEDNN_TRY(memory_init(&made->weights, packed));
    if (made->pass.kind == DV_PASS_FORWARD)
        ONEDNN_TRY(memory_init(&made->bias, view(&maker->bias)));
    ONEDNN_TRY(workspace_init(made, &made->workspace, maker->desc));
    if (!gradient && dnnl_memory_desc_equal(packed, view(&maker->plain)))
        return dnnl_success;
    ONEDNN_TRY(reorder_init(made, maker, packed));
    size_t packed_bytes = dnnl_memory_desc_get_size(packed);
    if (gradient) {
        made->packed_at = (made->pass.workspace_bytes + 63) / 64 * 64;
        made->pass.workspace_bytes = made->packed_at + packed_bytes;
        made->clears = has_idle_elements(shape);
    } else {
        made->pass.weights_bytes = packed_bytes;
    }
    return dnnl_success;
}

static const char *const kind_words[] = {
    [DV_PASS_FORWARD] = "forward",
    [DV_PASS_FORWARD_NO_BIAS] = "forward",
    [DV_PASS_BACKWARD_DATA] = "backward data",
    [DV_PASS_BACKWARD_WEIGHTS] = "backward weights",
};

static void destroy(dv_pass *pass) {
    onednn_pass *made = (onednn_pass *)pass;
    dnnl_memory_t memories[] = {made->src,   made->weights,          made->bias, made->dst, made->workspace,
                                made->plain, made->reorder_workspace};
    for (size_t i = 0; i < sizeof memories / sizeof *memories; i++)
        if (memories[i])
            dnnl_memory_destroy(memories[i]);
    if (made->reorder)
        dnnl_primitive_destroy(made->reorder);
    if (made->convolution)
        dnnl_primitive_destroy(made->convolution);
    if (made->stream)
        dnnl_stream_destroy(made->stream);
    pthread_mutex_destroy(&made->busy);
    free(made);
}

/* ---- running it ----------------------------------------------------------------------------- */

enum { MAX_ARGUMENTS = 5 };

/* The arguments of one execution. */
typedef struct argument_list {
    dnnl_exec_arg_t entries[MAX_ARGUMENTS];
    int count;
    dnnl_status_t status; /* the first failure */
} argument_list;

/* Points `memory` at `data` and appends it; a pass without that memory has no such argument. */
static void argument_add(argument_list *list, int index, dnnl_memory_t memory, const void *data) {
    if (!memory || list->status != dnnl_success)
        return;
    list->status = dnnl_memory_set_data_handle(memory, (void *)data);
    list->entries[list->count++] = (dnnl_exec_arg_t){index, memory};
}

/* Executes with as many threads as the primitive was made for, whatever OpenMP's number is by now. */
static dnnl_status_t execute_as_made(const onednn_pass *made, dnnl_primitive_t primitive, const argument_list *list) {
    int threads = omp_get_max_threads();
    if (threads != made->pass.threads)
        omp_set_num_threads(made->pass.threads);
    dnnl_status_t status = dnnl_primitive_execute(primitive, made->stream, list->count, list->entries);
    if (threads != made->pass.threads)
        omp_set_num_threads(threads);
    return status;
}

static dv_status execute(const onednn_pass *made, dnnl_primitive_t primitive, const argument_list *list,
                         dv_error *error) {
    dnnl_status_t status = list->status;
    if (status == dnnl_success)
        status = execute_as_made(made, primitive, list);
    if (status == dnnl_success)
        status = dnnl_stream_wait(made->stream);
    if (status == dnnl_success)
        return DV_OK;
    return dv_fail(error, status_from(status), "oneDNN's %s convolution (%s) failed: %s", kind_words[made->pass.kind],
                   made->pass.kernel, status_words(status));
}

static dv_status reorder_weights(onednn_pass *made, const float *plain, void *packed, void *workspace,
                                 dv_error *error) {
    argument_list list = {0};
    argument_add(&list, DNNL_ARG_FROM, made->plain, plain);
    argument_add(&list, DNNL_ARG_TO, made->weights, packed);
    argument_add(&list, DNNL_ARG_SCRATCHPAD, made->reorder_workspace, workspace);
    return execute(made, made->reorder, &list, error);
}

static dv_status pack_weights(dv_pass *pass, const float *plain, void *packed, void *workspace, const void **weights,
                              dv_error *error) {
    onednn_pass *made = (onednn_pass *)pass;
    *weights = made->reorder ? packed : plain;
    if (!made->reorder)
        return DV_OK;
    pthread_mutex_lock(&made->busy);
    dv_status status = reorder_weights(made, plain, packed, workspace, error);
    pthread_mutex_unlock(&made->busy);
    return status;
}

/* Adds the packed gradient to the plain one. */
static dv_status add_gradient(onednn_pass *made, const dv_pass_arrays *arrays, dv_error *error) {
    argument_list list = {0};
    argument_add(&list, DNNL_ARG_FROM, made->weights, (char *)arrays->workspace + made->packed_at);
    argument_add(&list, DNNL_ARG_TO, made->plain, arrays->gradient);
    argument_add(&list, DNNL_ARG_SCRATCHPAD, made->reorder_workspace, arrays->workspace);
    return execute(made, made->reorder, &list, error);
}

/* By all threads, and by pieces that are much for one of them. */
static void clear_workspace(const onednn_pass *made, char *workspace) {
    enum { PIECE = 1 << 16 };
    size_t bytes = made->pass.workspace_bytes;
#pragma omp parallel for schedule(static) num_threads(made->pass.threads)
    for (size_t i = 0; i < bytes; i += PIECE)
        memset(workspace + i, 0, dv_smaller(bytes - i, PIECE));
}

/* oneDNN's indices of a pass's arrays. */
static const struct {
    int src, weights, dst;
} argument_index[] = {
    [DV_PASS_FORWARD] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST},
    [DV_PASS_FORWARD_NO_BIAS] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST},
    [DV_PASS_BACKWARD_DATA] = {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST},
    [DV_PASS_BACKWARD_WEIGHTS] = {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST},
};

static dv_status compute(onednn_pass *made, const dv_pass_arrays *arrays, dv_error *error) {
    dv_pass_kind kind = made->pass.kind;
    bool gradient = kind == DV_PASS_BACKWARD_WEIGHTS;
    const void *weights = gradient ? (char *)arrays->workspace + made->packed_at : arrays->weights;
    argument_list list = {0};
    argument_add(&list, argument_index[kind].src, made->src, arrays->src);
    argument_add(&list, argument_index[kind].weights, made->weights, weights);
    argument_add(&list, argument_index[kind].dst, made->dst, arrays->dst);
    argument_add(&list, DNNL_ARG_BIAS, made->bias, arrays->bias);
    argument_add(&list, DNNL_ARG_SCRATCHPAD, made->workspace, arrays->workspace);
    if (made->clears)
        clear_workspace(made, arrays->workspace);
    DV_TRY(execute(made, made->convolution, &list, error));
    return gradient ? add_gradient(made, arrays, error) : DV_OK;
}

static dv_status run(dv_pass *pass, const dv_pass_arrays *arrays, dv_error *error) {
    onednn_pass *made = (onednn_pass *)pass;
    pthread_mutex_lock(&made->busy);
    dv_status status = compute(made, arrays, error);
    pthread_mutex_unlock(&made->busy);
    return status;
}

/* ---- the maker ------------------------------------------------------------------------------ */

/* oneDNN counts the vectors of an image in 32 bits, and divides by what is left of the number. */
static dv_status check_size(const dv_convolution_shape *shape, const char *name, dv_error *error) {
    enum { VECTOR = 8 }; /* floats of the shortest that its kernels have */
    const size_t *sides[] = {shape->src_sides, shape->dst_sides};
    const size_t channels[] = {shape->src_channels, shape->dst_channels};
    for (int end = 0; end < 2; end++) {
        size_t pixels = 1, most = (size_t)INT32_MAX * VECTOR / channels[end];
        for (int d = 0; d < shape->rank; d++)
            pixels = pixels > most / sides[end][d] ? most + 1 : pixels * sides[end][d];
        if (pixels > most)
            return dv_fail(error, DV_ERROR_UNSUPPORTED,
                           "%s: oneDNN computes at most %zu elements of %zu channels at a time: use a smaller batch, "
                           "smaller images or fewer channels",
                           name, most, channels[end]);
    }
    return DV_OK;
}

/* oneDNN writes kernels into memory without having looked whether it got some (2.6.3). A pass takes up to 4 MB, as
 * measured; nothing is left of this but the knowledge that there was more. */
static dv_status check_memory(const char *name, dv_error *error) {
    enum { ENOUGH = 16 << 20 };
    void *memory = mmap(NULL, ENOUGH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return dv_fail(
            error, DV_ERROR_MEMORY,
            "%s: less than %d MB of memory are left for its kernels: free some, or raise the limit on address "
            "space (ulimit -v)",
            name, ENOUGH >> 20);
    munmap(memory, ENOUGH);
    return DV_OK;
}

static const dv_pass_methods methods = {.pack_weights = pack_weights, .run = run, .destroy = destroy};

static dv_status pass_new(dv_pass **pass, dv_pass_kind kind, const dv_convolution_shape *shape, const char *name,
                          dv_error *error) {
    DV_TRY(check_size(shape, name, error));
    DV_TRY(check_memory(name, error));
    if (!engine_get())
        return dv_fail(error, DV_ERROR_UNSUPPORTED, "%s: oneDNN has no engine for this processor", name);
    onednn_pass *made = calloc(1, sizeof *made);
    if (!made)
        return dv_fail(error, DV_ERROR_MEMORY, "%s: no memory for its primitives", name);
    pass_maker maker = {0};
    made->pass = (dv_pass){.methods = &methods, .kind = kind, .threads = omp_get_max_threads()};
    pthread_mutex_init(&made->busy, NULL);
    dnnl_status_t status = pass_init(made, &maker, shape);
    maker_destroy(&maker);
    if (status == dnnl_success) {
        *pass = &made->pass;
        return DV_OK;
    }
    destroy(&made->pass);
    return dv_fail(error, status_from(status), "%s: oneDNN cannot make the %s convolution in %s: %s", name,
                   kind_words[kind], dv_type_name(shape->type), status_words(status));
}

/* Its plain loops, which are there to be correct, are called "ref". */
bool dv_onednn_has_kernel(dv_pass_kind kind, const dv_convolution_shape *shape) {
    pass_maker maker = {0};
    bool has = engine_get() && maker_init(&maker, kind, shape) == dnnl_success &&
               convolution_desc(&maker, kind, shape) == dnnl_success && strncmp(kernel_of(maker.desc), "ref", 3) != 0;
    maker_destroy(&maker);
    return has;
}

static bool suits(dv_pass_kind kind, const dv_convolution_shape *shape) {
    (void)kind, (void)shape;
    return true;
}

const dv_pass_maker dv_onednn_maker = {.name = "onednn", .suits = suits, .is_expected = suits, .make = pass_new};
