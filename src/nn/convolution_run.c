/* How both kinds of convolution are computed: passes over slices of the batch. In forward the output is
 * packed slice by slice while it is in cache; in backward kept inputs come by slices. */
#include "base/float16.h"
#include "base/sizes.h"
#include "base/status.h"
#include "nn/convolution.h"
#include "nn/parts.h"
#include "nn/pass.h"

#include <stdlib.h>
#include <string.h>

dv_convolution_forced dv_convolution_force;

enum { WEIGHT, BIAS }; /* parameters */

/* Offsets in the workspaces; what a layer does not use has no bytes. Slices have the slice's images. */
typedef struct forward_space {
    size_t weights, pass; /* the packed weights; what the pass works in */
    size_t bytes;
} forward_space;

typedef struct backward_space {
    size_t weights, pass; /* the packed weights; what the pass works in */
    size_t kept;          /* slice of the input in its type; then of the gradient that is to be added */
    size_t sums;          /* [SUM_PARTS][channels] double: bias only */
    size_t bytes;
} backward_space;

/* layer->prepared */
typedef struct convolution {
    bool transposed;
    size_t forward_images, backward_images; /* of a slice; both divide the batch */
    dv_pass *to_output, *to_input, *to_weights;
    forward_space forward;
    backward_space backward;
} convolution;

/* ---- arrays --------------------------------------------------------------------------------- */

/* Elements that a thread adds at a time. */
enum { CHUNK = 1 << 14 };

static size_t chunk_at(size_t begin, size_t count) {
    return count - begin < CHUNK ? count - begin : CHUNK;
}

static void add_values(dv_type type, const char *src, size_t count, char *dst) {
    const dv_elementwise_kernels *kernels = dv_elementwise();
    size_t element = dv_type_bytes(type);
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < count; i += CHUNK) {
        size_t width = chunk_at(i, count);
        kernels->copy(type, src + i * element, width, dst + i * element, width, 1, width, true);
    }
}

/* rows[r][c] += bias[c] */
static void add_bias(dv_type type, const float *bias, size_t channels, size_t rows, void *dst) {
#pragma omp parallel for schedule(static)
    for (size_t r = 0; r < rows; r++) {
        float *wide = (float *)dst + r * channels;
        uint16_t *half = (uint16_t *)dst + r * channels;
        for (size_t c = 0; type == DV_F32 && c < channels; c++)
            wide[c] += bias[c];
        for (size_t c = 0; type == DV_BF16 && c < channels; c++)
            half[c] = dv_bf16_nearest(dv_bf16_to_f32(half[c]) + bias[c]);
    }
}

/* Parts of a sum over rows: their number is fixed, so that the order of the sum is. */
enum { SUM_PARTS = 64 };

/* gradient[c] += sum over r of rows[r][c]; sums is room for [SUM_PARTS][channels]. */
static void add_bias_gradient(const dv_map *map, size_t images, const void *rows, double *sums, float *gradient) {
    const dv_elementwise_kernels *kernels = dv_elementwise();
    size_t channels = map->channels, count = images * (dv_map_image_elements(map) / channels);
    size_t part = (count + SUM_PARTS - 1) / SUM_PARTS, row_bytes = channels * dv_type_bytes(map->type);
#pragma omp parallel for schedule(static)
    for (size_t p = 0; p < SUM_PARTS; p++) {
        size_t first = p * part < count ? p * part : count;
        size_t end = first + part < count ? first + part : count;
        memset(sums + p * channels, 0, channels * sizeof *sums);
        kernels->sum_rows(map->type, (const char *)rows + first * row_bytes, end - first, channels,
                          sums + p * channels);
    }
    for (size_t p = 1; p < SUM_PARTS; p++)
        for (size_t c = 0; c < channels; c++)
            sums[c] += sums[p * channels + c];
    for (size_t c = 0; c < channels; c++)
        gradient[c] += (float)sums[c];
}

/* ---- preparing ------------------------------------------------------------------------------ */

/* The convolution that the layer is, or that it is the transposed one of. */
static dv_convolution_shape shape_of(const dv_layer *layer, bool transposed, size_t images) {
    const dv_convolution_options *options = layer->options;
    const dv_map *src = transposed ? &layer->output : &layer->inputs[0];
    const dv_map *dst = transposed ? &layer->inputs[0] : &layer->output;
    dv_convolution_shape shape = {.type = src->type,
                                  .rank = src->rank,
                                  .images = images,
                                  .groups = options->groups,
                                  .src_channels = src->channels,
                                  .dst_channels = dst->channels,
                                  .window = options->window};
    for (int d = 0; d < src->rank; d++) {
        shape.src_sides[d] = src->sides[d];
        shape.dst_sides[d] = dst->sides[d];
    }
    return shape;
}

/* Backward may have slices of both ends. */
static void set_slices(convolution *conv, const dv_layer *layer) {
    const dv_map *input = &layer->inputs[0], *output = &layer->output;
    conv->forward_images = dv_map_slice_images(output);
    conv->backward_images = dv_smaller(dv_map_slice_images(input), conv->forward_images);
    if (dv_convolution_force.slice_images)
        conv->forward_images = conv->backward_images = dv_convolution_force.slice_images;
}

/* Makes the three passes. On failure some may be there. */
static dv_status make_passes(convolution *conv, const dv_layer *layer, dv_error *error) {
    const dv_convolution_options *options = layer->options;
    dv_convolution_shape forward = shape_of(layer, conv->transposed, conv->forward_images);
    dv_convolution_shape backward = shape_of(layer, conv->transposed, conv->backward_images);
    dv_pass_kind to_output = options->bias ? DV_PASS_FORWARD : DV_PASS_FORWARD_NO_BIAS;
    dv_pass_kind to_input = DV_PASS_BACKWARD_DATA;
    if (conv->transposed)
        to_output = DV_PASS_BACKWARD_DATA, to_input = DV_PASS_FORWARD_NO_BIAS;
    DV_TRY(dv_pass_new(&conv->to_output, layer->choices, to_output, &forward, layer->name, error));
    DV_TRY(dv_pass_new(&conv->to_input, layer->choices, to_input, &backward, layer->name, error));
    return dv_pass_new(&conv->to_weights, layer->choices, DV_PASS_BACKWARD_WEIGHTS, &backward, layer->name, error);
}

/* Books `bytes` behind what is booked: their offset, a multiple of 64. */
static size_t book(size_t *total, size_t bytes) {
    size_t offset = *total;
    *total = (offset + bytes + 63) / 64 * 64;
    return offset;
}

static void book_forward(convolution *conv) {
    forward_space *space = &conv->forward;
    space->weights = book(&space->bytes, conv->to_output->weights_bytes);
    space->pass = book(&space->bytes, conv->to_output->workspace_bytes);
}

static void book_backward(convolution *conv, const dv_layer *layer) {
    const dv_convolution_options *options = layer->options;
    backward_space *space = &conv->backward;
    size_t in = dv_map_image_elements(&layer->inputs[0]) * dv_type_bytes(layer->inputs[0].type);
    space->weights = book(&space->bytes, conv->to_input->weights_bytes);
    space->pass = book(&space->bytes, dv_larger(conv->to_input->workspace_bytes, conv->to_weights->workspace_bytes));
    space->kept = book(&space->bytes, conv->backward_images * in);
    space->sums = book(&space->bytes, options->bias ? SUM_PARTS * layer->output.channels * sizeof(double) : 0);
}

/* The gradient of a bias is a sum over the whole gradient of the output. */
static size_t diff_slice_bytes(const convolution *conv, const dv_layer *layer) {
    const dv_convolution_options *options = layer->options;
    size_t bytes = 0, image = dv_map_image_elements(&layer->output) * dv_type_bytes(layer->output.type);
    if (!options->bias)
        book(&bytes, conv->backward_images * image);
    return bytes;
}

/* Products for an element of the output that take about as long as to write it to memory and read it again. */
enum { CHEAP_PRODUCTS = 256 };

static bool is_cheap_twice(const convolution *conv, const dv_layer *layer) {
    size_t products = layer->parameters[WEIGHT].count / layer->output.channels;
    return products <= CHEAP_PRODUCTS && conv->forward_images == dv_map_slice_images(&layer->output);
}

dv_status dv_convolution_prepare(dv_layer *layer, bool transposed, dv_error *error) {
    convolution *conv = calloc(1, sizeof *conv);
    if (!conv)
        return dv_fail(error, DV_ERROR_MEMORY, "%s: no memory to prepare it", layer->name);
    conv->transposed = transposed;
    layer->prepared = conv;
    set_slices(conv, layer);
    dv_status status = make_passes(conv, layer, error);
    if (status != DV_OK) {
        dv_convolution_destroy(layer);
        return status;
    }
    book_forward(conv);
    book_backward(conv, layer);
    layer->saved_bytes = 0;
    layer->forward_workspace_bytes = conv->forward.bytes;
    layer->backward_workspace_bytes = conv->backward.bytes;
    layer->diff_slice_bytes = diff_slice_bytes(conv, layer);
    layer->cheap_twice = is_cheap_twice(conv, layer);
    return DV_OK;
}

void dv_convolution_destroy(dv_layer *layer) {
    convolution *conv = layer->prepared;
    if (!conv)
        return;
    dv_pass_free(conv->to_output);
    dv_pass_free(conv->to_input);
    dv_pass_free(conv->to_weights);
    free(conv);
    layer->prepared = NULL;
}

const dv_pass *dv_convolution_pass(const dv_layer *layer, int index, size_t *runs) {
    const convolution *conv = layer->prepared;
    const dv_pass *passes[] = {conv->to_output, conv->to_input, conv->to_weights};
    *runs = layer->output.images / (index == 0 ? conv->forward_images : conv->backward_images);
    return index < 3 ? passes[index] : NULL;
}

/* ---- running -------------------------------------------------------------------------------- */

/* A pass's arrays, from the layer's two ends. */
static dv_pass_arrays ends(const convolution *conv, const void *input, const void *output) {
    return conv->transposed ? (dv_pass_arrays){.src = output, .dst = input}
                            : (dv_pass_arrays){.src = input, .dst = output};
}

/* Of a slice's images from `first` on, those that are there. Passes take whole slices, whose memory is planned. */
static size_t there(size_t images, size_t first, size_t slice) {
    return dv_smaller(slice, images - first);
}

static size_t pixels_of(const dv_map *map) {
    return dv_map_image_elements(map) / map->channels;
}

/* One slice of forward. */
static dv_status forward_slice(const dv_layer *layer, const dv_forward *call, const void *weights, const void *input,
                               void *output, dv_error *error) {
    const dv_convolution_options *options = layer->options;
    convolution *conv = layer->prepared;
    dv_pass_arrays arrays = ends(conv, input, output);
    arrays.weights = weights;
    arrays.bias = call->arrays->parameters[BIAS];
    arrays.workspace = (char *)call->workspace + conv->forward.pass;
    DV_TRY(dv_pass_run(conv->to_output, &arrays, error));
    if (conv->transposed && options->bias)
        add_bias(layer->output.type, call->arrays->parameters[BIAS], layer->output.channels,
                 conv->forward_images * pixels_of(&layer->output), output);
    return DV_OK;
}

dv_status dv_convolution_forward(const dv_layer *layer, const dv_forward *call, dv_error *error) {
    convolution *conv = layer->prepared;
    char *workspace = call->workspace;
    const void *weights;
    DV_TRY(dv_pass_pack_weights(conv->to_output, call->arrays->parameters[WEIGHT], workspace + conv->forward.weights,
                                workspace + conv->forward.pass, &weights, error));
    for (size_t first = 0; first < call->images; first += conv->forward_images) {
        const void *input = dv_image(&layer->inputs[0], call->inputs[0], first);
        void *output = dv_image_in(&layer->output, call->output, first);
        DV_TRY(forward_slice(layer, call, weights, input, output, error));
        if (call->store_output)
            DV_TRY(dv_kept_store(call->store_output, first, there(call->images, first, conv->forward_images), output,
                                 error));
    }
    if (call->output_mask)
        dv_write_mask(&layer->output, call->images, call->output, call->output_mask);
    return DV_OK;
}

/* The weights are packed at each call: they are few where a layer is run by slices (cheap_twice). */
dv_status dv_convolution_forward_slice(const dv_layer *layer, const dv_forward *call, size_t first, void *images,
                                       dv_error *error) {
    convolution *conv = layer->prepared;
    char *workspace = call->workspace;
    const void *weights;
    DV_TRY(dv_pass_pack_weights(conv->to_output, call->arrays->parameters[WEIGHT], workspace + conv->forward.weights,
                                workspace + conv->forward.pass, &weights, error));
    return forward_slice(layer, call, weights, dv_image(&layer->inputs[0], call->inputs[0], first), images, error);
}

/* A slice of the input as it was kept. Behind the images that are there it has zeros, in a place of its own. */
static dv_status load_input(const dv_layer *layer, const dv_backward *call, size_t first, const void **input,
                            dv_error *error) {
    convolution *conv = layer->prepared;
    const dv_map *map = &layer->inputs[0];
    size_t bytes = dv_map_image_elements(map) * dv_type_bytes(map->type);
    size_t slice = conv->backward_images, count = there(call->images, first, slice);
    char *buffer = (char *)call->workspace + conv->backward.kept;
    DV_TRY(dv_kept_images(call->inputs[0], first, count, buffer, input, error));
    if (count == slice)
        return DV_OK;
    if (*input != buffer)
        memcpy(buffer, *input, count * bytes);
    dv_clear_images(buffer, bytes, count, slice);
    *input = buffer;
    return DV_OK;
}

/* Adds the weights' gradient of the slice from image `first` on to the parameter's. */
static dv_status add_weights_gradient(const dv_layer *layer, const dv_backward *call, size_t first,
                                      const void *diff_output, dv_error *error) {
    convolution *conv = layer->prepared;
    char *workspace = call->workspace;
    const void *input;
    DV_TRY(load_input(layer, call, first, &input, error));
    dv_pass_arrays arrays = ends(conv, input, diff_output);
    arrays.gradient = call->arrays->gradients[WEIGHT];
    arrays.workspace = workspace + conv->backward.pass;
    return dv_pass_run(conv->to_weights, &arrays, error);
}

/* The input's gradient of a slice: straight into `diff_input`, or through the memory of what has been used. */
static dv_status find_diff_input(const dv_layer *layer, char *workspace, const void *weights, const void *diff_output,
                                 bool accumulate, void *diff_input, dv_error *error) {
    convolution *conv = layer->prepared;
    const dv_map *map = &layer->inputs[0];
    void *buffer = workspace + conv->backward.kept;
    dv_pass_arrays arrays = ends(conv, accumulate ? buffer : diff_input, diff_output);
    arrays.weights = weights;
    arrays.workspace = workspace + conv->backward.pass;
    DV_TRY(dv_pass_run(conv->to_input, &arrays, error));
    if (accumulate)
        add_values(map->type, buffer, conv->backward_images * dv_map_image_elements(map), diff_input);
    return DV_OK;
}

/* The gradient of the output from image `first` on. Images that are not there become zeros. */
static dv_status load_diff(const dv_layer *layer, const dv_backward *call, size_t first, void **diff_output,
                           dv_error *error) {
    const convolution *conv = layer->prepared;
    const dv_sliced_diff *from = call->sliced;
    size_t slice = conv->backward_images, count = there(call->images, first, slice);
    *diff_output = from ? (char *)call->workspace + layer->backward_workspace_bytes
                        : dv_image_in(&layer->output, call->diff_output, first);
    if (from)
        DV_TRY(from->layer->kind->diff_images(from->layer, from->call, from->workspace, first, count, *diff_output,
                                              error));
    dv_clear_images(*diff_output, dv_map_image_elements(&layer->output) * dv_type_bytes(layer->output.type), count,
                    slice);
    return DV_OK;
}

/* One slice of backward, from image `first` on. Images that are not there are zeros at both ends, so that they add
 * nothing to the weights' gradient. */
static dv_status backward_slice(const dv_layer *layer, const dv_backward *call, const void *weights, size_t first,
                                dv_error *error) {
    void *diff_output;
    DV_TRY(load_diff(layer, call, first, &diff_output, error));
    if (call->arrays->gradients[WEIGHT])
        DV_TRY(add_weights_gradient(layer, call, first, diff_output, error));
    if (!call->diff_inputs[0])
        return DV_OK;
    return find_diff_input(layer, call->workspace, weights, diff_output, call->accumulate[0],
                           dv_image_in(&layer->inputs[0], call->diff_inputs[0], first), error);
}

dv_status dv_convolution_backward(const dv_layer *layer, const dv_backward *call, dv_error *error) {
    convolution *conv = layer->prepared;
    char *workspace = call->workspace;
    const void *weights = NULL;
    bool sliced = call->arrays->gradients[WEIGHT] || call->diff_inputs[0];
    if (call->arrays->gradients[BIAS])
        add_bias_gradient(&layer->output, call->images, call->diff_output, (void *)(workspace + conv->backward.sums),
                          call->arrays->gradients[BIAS]);
    if (call->diff_inputs[0])
        DV_TRY(dv_pass_pack_weights(conv->to_input, call->arrays->parameters[WEIGHT],
                                    workspace + conv->backward.weights, workspace + conv->backward.pass, &weights,
                                    error));
    for (size_t first = 0; sliced && first < call->images; first += conv->backward_images)
        DV_TRY(backward_slice(layer, call, weights, first, error));
    return DV_OK;
}
