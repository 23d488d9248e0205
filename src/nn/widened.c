/* Passes of bf16 that are computed in f32: a few images at a time are converted, computed by a pass of f32, and rounded
 * back. That is for processors that have no kernels of bf16 for a shape, and for those on which dot products of bf16
 * are no faster than sums of f32. Few enough images that they stay in a cache, so that memory sees bf16 alone. */
#include "base/status.h"
#include "nn/parts.h"
#include "nn/pass.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { CHUNK = 1 << 14 }; /* elements that a thread converts at a time */

typedef struct widened_pass {
    dv_pass pass;
    dv_pass *inner;       /* on f32 */
    size_t images, slice; /* of the pass, of the inner one */
    size_t src, dst;      /* elements of an image */
} widened_pass;

/* The workspace: slices in f32, and what the inner pass works in. */
typedef struct widened_space {
    float *src, *dst;
    void *inner;
} widened_space;

/* Carves it; with workspace NULL it only counts its bytes. */
static widened_space carve(const widened_pass *made, void *workspace, size_t *bytes) {
    return (widened_space){.src = dv_carve(workspace, bytes, made->slice * made->src * sizeof(float)),
                           .dst = dv_carve(workspace, bytes, made->slice * made->dst * sizeof(float)),
                           .inner = dv_carve(workspace, bytes, made->inner->workspace_bytes)};
}

/* ---- running -------------------------------------------------------------------------------- */

static size_t chunk_at(size_t begin, size_t count) {
    return count - begin < CHUNK ? count - begin : CHUNK;
}

static void widen(const uint16_t *src, size_t count, int threads, float *dst) {
#pragma omp parallel for schedule(static) num_threads(threads)
    for (size_t i = 0; i < count; i += CHUNK)
        dv_convert_to_f32(DV_BF16, src + i, chunk_at(i, count), dst + i);
}

static void narrow(const float *src, size_t count, int threads, uint16_t *dst) {
    const dv_elementwise_kernels *kernels = dv_elementwise();
#pragma omp parallel for schedule(static) num_threads(threads)
    for (size_t i = 0; i < count; i += CHUNK)
        kernels->from_f32(DV_BF16, src + i, chunk_at(i, count), false, dst + i);
}

static dv_status run_slice(const widened_pass *made, const dv_pass_arrays *arrays, size_t first,
                           const widened_space *space, dv_error *error) {
    dv_pass_kind kind = made->pass.kind;
    int threads = made->pass.threads;
    size_t src_count = made->slice * made->src, dst_count = made->slice * made->dst;
    uint16_t *src = (uint16_t *)arrays->src + first * made->src, *dst = (uint16_t *)arrays->dst + first * made->dst;
    dv_pass_arrays wide = *arrays;
    wide.src = space->src, wide.dst = space->dst, wide.workspace = space->inner;
    if (kind != DV_PASS_BACKWARD_DATA)
        widen(src, src_count, threads, space->src);
    if (!dv_pass_is_forward(kind))
        widen(dst, dst_count, threads, space->dst);
    DV_TRY(dv_pass_run(made->inner, &wide, error));
    if (kind == DV_PASS_BACKWARD_DATA)
        narrow(space->src, src_count, threads, src);
    else if (dv_pass_is_forward(kind))
        narrow(space->dst, dst_count, threads, dst);
    return DV_OK;
}

static dv_status run(dv_pass *pass, const dv_pass_arrays *arrays, dv_error *error) {
    const widened_pass *made = (const widened_pass *)pass;
    size_t bytes = 0;
    widened_space space = carve(made, arrays->workspace, &bytes);
    for (size_t first = 0; first < made->images; first += made->slice)
        DV_TRY(run_slice(made, arrays, first, &space, error));
    return DV_OK;
}

static dv_status pack_weights(dv_pass *pass, const float *plain, void *packed, void *workspace, const void **weights,
                              dv_error *error) {
    widened_pass *made = (widened_pass *)pass;
    size_t bytes = 0;
    return dv_pass_pack_weights(made->inner, plain, packed, carve(made, workspace, &bytes).inner, weights, error);
}

/* ---- making a pass -------------------------------------------------------------------------- */

static void destroy(dv_pass *pass) {
    dv_pass_free(((widened_pass *)pass)->inner);
    free(pass);
}

static const dv_pass_methods methods = {.pack_weights = pack_weights, .run = run, .destroy = destroy};

static size_t image_elements(size_t channels, const size_t *sides, int rank) {
    for (int d = 0; d < rank; d++)
        channels *= sides[d];
    return channels;
}

static dv_status make_inner(widened_pass *made, const dv_convolution_shape *shape, const char *name, dv_error *error) {
    dv_convolution_shape wide = *shape;
    wide.type = DV_F32;
    made->images = shape->images;
    made->src = image_elements(shape->src_channels, shape->src_sides, shape->rank);
    made->dst = image_elements(shape->dst_channels, shape->dst_sides, shape->rank);
    wide.images = made->slice = dv_slice_images(made->images, (made->src + made->dst) * sizeof(float));
    int maker = dv_pass_expected(made->pass.kind, &wide);
    return dv_pass_makers[maker]->make(&made->inner, made->pass.kind, &wide, name, error);
}

static dv_status pass_new(dv_pass **pass, dv_pass_kind kind, const dv_convolution_shape *shape, const char *name,
                          dv_error *error) {
    widened_pass *made = calloc(1, sizeof *made);
    if (!made)
        return dv_fail(error, DV_ERROR_MEMORY, "%s: no memory to prepare it", name);
    made->pass = (dv_pass){.methods = &methods, .kind = kind, .threads = omp_get_max_threads()};
    dv_status status = make_inner(made, shape, name, error);
    if (status != DV_OK) {
        destroy(&made->pass);
        return status;
    }
    snprintf(made->pass.kernel, sizeof made->pass.kernel, "widened:%.50s", made->inner->kernel);
    made->pass.weights_bytes = made->inner->weights_bytes;
    (void)carve(made, NULL, &made->pass.workspace_bytes);
    *pass = &made->pass;
    return DV_OK;
}

/* ---- what it is good for -------------------------------------------------------------------- */

static bool suits(dv_pass_kind kind, const dv_convolution_shape *shape) {
    (void)kind;
    return shape->type == DV_BF16;
}

static bool is_expected(dv_pass_kind kind, const dv_convolution_shape *shape) {
    return suits(kind, shape) && !dv_onednn_has_kernel(kind, shape);
}

const dv_pass_maker dv_widened_maker = {
    .name = "widened", .suits = suits, .is_expected = is_expected, .make = pass_new};
