/* Batch norm, with an addition and a ReLU behind it if wanted.
 *
 *     forward    xhat = (x - mean) * istd,  y = f(xhat * weight + bias + addend)
 *     backward   dz = diff_output where y > 0 (all of it without ReLU), and so the addend's gradient
 *                d bias = sum dz,  d weight = sum dz * xhat
 *                dx = weight * istd * (dz - mean(dz) - xhat * mean(dz * xhat))
 *
 * Forward reads x twice: for mean and variance, and to write the output with its mask in one pass. Both
 * statistics come from one pass over x - shift, where shift is the batch's first pixel, so that a mean far
 * from zero costs no digits. Backward reads diff_output and x twice: for the two sums, and for the gradients.
 *
 * Over several ranks, if asked for, sums are added up over all of them, in forward and in backward: the statistics are
 * those of the whole batch. Gradients of weight and bias stay this rank's, as all gradients do.
 *
 * Frozen, it is an affine map: mean and istd are the running ones in training too, and
 *                dx = weight * istd * dz
 * so that backward reads the mask of y alone, and nothing is saved.
 *
 * The output can be recomputed from a packed x: without a comparison with zero, so that it is right on average, because
 * the mask says where it was positive.
 *
 * Sums are f32 over a few dozen elements, double beyond, in an order that follows from the shape. */
#include "base/sizes.h"
#include "codec/lean.h"
#include "nn/parts.h"
#include "nn/shape.h"

#include <math.h>
#include <string.h>

enum { WEIGHT, BIAS };              /* parameters */
enum { RUNNING_MEAN, RUNNING_VAR }; /* buffers */
enum { ENTRIES_PER_SUM = 32 };      /* elements of a channel that are summed in f32, about */

static const dv_batch_norm_options *options_of(const dv_layer *layer) {
    return layer->options;
}

/* Elements per channel of `images` images. */
static size_t population(const dv_map *map, size_t images) {
    return images * (dv_map_image_elements(map) / map->channels);
}

/* The same of all whose statistics are taken together. */
static double norm_population(const dv_map *map, const dv_ranks_norm *norm, size_t images) {
    return (double)population(map, norm->world ? norm->images : images);
}

/* ---- infer ----------------------------------------------------------------------------------- */

static dv_status check_options(const dv_layer *layer, dv_error *error) {
    DV_TRY(dv_layer_check_options(layer, error));
    const dv_batch_norm_options *options = options_of(layer);
    if (!(options->epsilon > 0 && isfinite(options->epsilon)))
        return dv_layer_fail(layer, error, DV_ERROR_OPTION, "epsilon is %g: it must be above 0 (1e-5 is common)",
                             (double)options->epsilon);
    if (!(options->momentum >= 0 && options->momentum <= 1))
        return dv_layer_fail(layer, error, DV_ERROR_OPTION, "momentum is %g: it must be from 0 to 1 (0.1 is common)",
                             (double)options->momentum);
    return DV_OK;
}

static dv_status infer(dv_layer *layer, dv_error *error) {
    DV_TRY(check_options(layer, error));
    const dv_batch_norm_options *options = options_of(layer);
    size_t inputs = options->add ? 2 : 1;
    DV_TRY(dv_layer_check_inputs(layer, inputs, inputs, error));
    const dv_map *x = &layer->inputs[0], *addend = &layer->inputs[inputs - 1];
    if (x->channels != addend->channels || !dv_same_sides(x, addend))
        return dv_layer_fail(layer, error, DV_ERROR_ARGUMENT, "adds %s to %s: give it two inputs of one shape",
                             dv_shape(addend).text, dv_shape(x).text);
    size_t channels = x->channels;
    layer->output = *x;
    layer->parameter_count = layer->buffer_count = 2;
    layer->parameters[WEIGHT] = (dv_parameter){
        .name = "weight", .rank = 1, .shape = {channels}, .count = channels, .initialisation = DV_INITIALISE_ONE};
    layer->parameters[BIAS] = (dv_parameter){
        .name = "bias", .rank = 1, .shape = {channels}, .count = channels, .initialisation = DV_INITIALISE_ZERO};
    layer->buffers[RUNNING_MEAN] = (dv_buffer){.name = "running_mean", .count = channels, .start = 0};
    layer->buffers[RUNNING_VAR] = (dv_buffer){.name = "running_var", .count = channels, .start = 1};
    layer->input_need = DV_NEED_NUMBERS;
    layer->input_need_mask = 1; /* what is added is not needed again */
    layer->needed_for = 1u << WEIGHT | 1u << BIAS;
    layer->output_need = options->relu ? DV_NEED_MASK : DV_NEED_NOTHING;
    layer->zero_outside_mask = options->relu;
    layer->fewest_images = population(x, 1) > 1 ? 1 : 2; /* one value has no variance */
    return DV_OK;
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Two sums per channel, of which every part has its own. */
typedef struct pair_of_sums {
    size_t parts;    /* that there is room for */
    float *extended; /* [parts][2][channels + DV_CHUNK]: what has been summed last */
    double *partial; /* [parts][2][channels] */
    double *all;     /* [2][channels] */
} pair_of_sums;

typedef struct workspace {
    pair_of_sums sums;
    float *mean, *scale, *slope, *offset; /* extended. Forward: slope is not used, offset is the bias */
    void *slice;                          /* backward: images of x, if they cannot be decoded in place */
    uint8_t *mask;                        /* backward: mask of a slice, if it was not kept */
} workspace;

static size_t image_bytes(const dv_map *map) {
    return dv_map_image_elements(map) * dv_type_bytes(map->type);
}

/* Parts of the whole batch or of a slice of it, whichever has more. */
static size_t most_parts(const dv_map *map) {
    size_t elements = dv_map_image_elements(map), whole = dv_part_count(map->images, elements);
    size_t slice = dv_part_count(dv_map_slice_images(map), elements);
    return whole > slice ? whole : slice;
}

/* Cuts `memory` into arrays, or books it if it is NULL. Returns its bytes. */
static size_t cut_workspace(const dv_layer *layer, void *memory, bool backward, workspace *w) {
    const dv_map *map = &layer->inputs[0];
    size_t channels = map->channels, extended = dv_extended(channels) * sizeof(float), offset = 0;
    size_t parts = most_parts(map);
    w->sums.parts = parts;
    w->sums.extended = dv_carve(memory, &offset, parts * 2 * extended);
    w->sums.partial = dv_carve(memory, &offset, parts * 2 * channels * sizeof(double));
    w->sums.all = dv_carve(memory, &offset, 2 * channels * sizeof(double));
    w->mean = dv_carve(memory, &offset, extended);
    w->scale = dv_carve(memory, &offset, extended);
    w->slope = dv_carve(memory, &offset, extended);
    w->offset = dv_carve(memory, &offset, extended);
    w->slice = NULL;
    w->mask = NULL;
    if (backward) {
        size_t images = dv_map_slice_images(map);
        w->slice = dv_carve(memory, &offset, images * image_bytes(map));
        if (options_of(layer)->relu)
            w->mask = dv_carve(memory, &offset, images * dv_mask_stride(map));
    }
    return offset;
}

/* Cuts what backward leaves for diff_images: its coefficients. */
static size_t cut_diff_state(const dv_layer *layer, void *memory, workspace *w) {
    size_t extended = dv_extended(layer->output.channels) * sizeof(float), offset = 0;
    w->mean = dv_carve(memory, &offset, extended);
    w->scale = dv_carve(memory, &offset, extended);
    w->slope = dv_carve(memory, &offset, extended);
    w->offset = dv_carve(memory, &offset, extended);
    return offset;
}

enum { PARTS_OF_SLICE = 4, FEWEST_IMAGES = 4 };

/* Images that are recomputed at once: part of a slice, 2 MB, so that what is unpacked is still in a core's cache when
 * it is normalised; but a whole slice where that would be too few images for threads to share. */
static size_t images_at_once(const dv_map *map) {
    size_t few = dv_slice_images(map->images, PARTS_OF_SLICE * image_bytes(map));
    return few >= FEWEST_IMAGES ? few : dv_map_slice_images(map);
}

/* What recomputing takes. */
typedef struct recompute_space {
    float *mean, *scale, *bias; /* extended; with one pass it has nothing but these */
    void *x;                    /* images; NULL where nothing is added, and x can be where the output will be */
    uint8_t *mask;              /* of these images; there only if a code has it (recompute_mask_bytes) */
} recompute_space;

static size_t cut_recompute_space(const dv_layer *layer, void *memory, bool one_pass, recompute_space *s) {
    const dv_map *map = &layer->output;
    size_t extended = dv_extended(map->channels) * sizeof(float), offset = 0;
    s->mean = dv_carve(memory, &offset, extended);
    s->scale = dv_carve(memory, &offset, extended);
    s->bias = dv_carve(memory, &offset, extended);
    if (one_pass)
        return offset;
    s->x = options_of(layer)->add ? dv_carve(memory, &offset, images_at_once(map) * image_bytes(map)) : NULL;
    size_t bytes = offset;
    s->mask = dv_carve(memory, &offset, 0);
    return bytes;
}

static dv_status prepare(dv_layer *layer, dv_error *error) {
    (void)error;
    workspace w;
    layer->saved_bytes = 2 * layer->output.channels * sizeof(float);
    layer->forward_workspace_bytes = cut_workspace(layer, NULL, false, &w);
    layer->backward_workspace_bytes = cut_workspace(layer, NULL, true, &w);
    layer->store_input_bytes = images_at_once(&layer->output) * image_bytes(&layer->output);
    layer->input_slice_bytes = (dv_map_slice_images(&layer->output) * image_bytes(&layer->output) + 63) / 64 * 64;
    layer->recompute_bytes = cut_recompute_space(layer, NULL, false, &(recompute_space){0});
    layer->recompute_pass_bytes = cut_recompute_space(layer, NULL, true, &(recompute_space){0});
    layer->recompute_mask_bytes = images_at_once(&layer->output) * dv_mask_stride(&layer->output);
    layer->diff_state_bytes = cut_diff_state(layer, NULL, &w);
    layer->diff_images_bytes = layer->recompute_mask_bytes;
    return DV_OK;
}

/* ---- sums over all but the channels ---------------------------------------------------------- */

/* Some images, and what is summed over them: x - center and its square or, with a diff, the masked diff and
 * its product with x - center. */
typedef struct summands {
    const dv_map *map;
    size_t images;
    const void *x, *diff;
    const uint8_t *mask; /* or NULL */
    const float *center; /* extended */
} summands;

/* Adds elements begin .. end - 1 of image n to the extended sums. */
static void add_span(const summands *of, size_t n, dv_span span, float *first, float *second) {
    const void *x = dv_image(of->map, of->x, n);
    if (!of->diff) {
        dv_elementwise()->statistics(&span, x, of->center, first, second);
        return;
    }
    const uint8_t *mask = of->mask ? of->mask + n * dv_mask_stride(of->map) : NULL;
    dv_elementwise()->normalize_sums(&span, dv_image(of->map, of->diff, n), mask, x, of->center, first, second);
}

/* Sums over part `index` of the images, into the partial sums at `place`. */
static void sum_part(const summands *of, size_t index, size_t place, const pair_of_sums *sums) {
    const dv_elementwise_kernels *kernels = dv_elementwise();
    size_t channels = of->map->channels, extended = dv_extended(channels);
    size_t segment = (ENTRIES_PER_SUM * extended + DV_CHUNK - 1) / DV_CHUNK * DV_CHUNK;
    float *first = sums->extended + place * 2 * extended, *second = first + extended;
    double *partial = sums->partial + place * 2 * channels;
    dv_part part = dv_part_at(of->images, dv_map_image_elements(of->map), index);
    memset(first, 0, 2 * extended * sizeof *first);
    memset(partial, 0, 2 * channels * sizeof *partial);
    size_t summed = 0;
    for (size_t n = part.first; n < part.last; n++)
        for (size_t begin = part.begin; begin < part.end;) {
            size_t room = segment - summed, left = part.end - begin;
            dv_span span = {of->map->type, channels, begin, begin + (room < left ? room : left)};
            add_span(of, n, span, first, second);
            summed += (span.end - begin + DV_CHUNK - 1) / DV_CHUNK * DV_CHUNK;
            begin = span.end;
            if (summed == segment || (n + 1 == part.last && begin == part.end)) {
                kernels->fold(channels, first, partial);
                kernels->fold(channels, second, partial + channels);
                summed = 0;
            }
        }
}

/* Adds the sums over parts first .. first + count - 1 of the images to sums->all, in their order. */
static void sum_parts(const summands *of, size_t first, size_t count, const pair_of_sums *sums) {
    size_t channels = of->map->channels;
#pragma omp parallel for schedule(static)
    for (size_t p = 0; p < count; p++)
        sum_part(of, first + p, p, sums);
    for (size_t p = 0; p < count; p++)
        for (size_t i = 0; i < 2 * channels; i++)
            sums->all[i] += sums->partial[p * 2 * channels + i];
}

/* The same over the images. Fewer images than the batch has may have more parts than there is room for: then by turns,
 * which does not change the order. */
static void sum_images(const summands *of, const pair_of_sums *sums) {
    size_t parts = dv_part_count(of->images, dv_map_image_elements(of->map));
    for (size_t first = 0; first < parts; first += sums->parts)
        sum_parts(of, first, dv_smaller(sums->parts, parts - first), sums);
}

/* ---- forward --------------------------------------------------------------------------------- */

/* Makes sums of x - shift those of all ranks. Each has a shift of its own: theirs meet at zero. Sums are double, so
 * that a mean costs digits only where it is a million deviations away. */
static dv_status sum_over_ranks(const dv_layer *layer, const dv_forward *call, const pair_of_sums *sums, float *shift,
                                dv_error *error) {
    size_t channels = layer->output.channels;
    double count = (double)population(&layer->output, call->images);
    for (size_t c = 0; c < channels; c++) {
        double moved = (double)shift[c], sum = sums->all[c];
        sums->all[c] = sum + count * moved;
        sums->all[channels + c] += (2 * sum + count * moved) * moved;
        shift[c] = 0;
    }
    return dv_world_sum(call->norm.world, DV_SUM_F64, sums->all, 2 * channels, layer->name, error);
}

/* Mean and biased variance of every channel, from sums of x - shift. */
static dv_status batch_statistics(const dv_layer *layer, double count, const pair_of_sums *sums, const float *shift,
                                  float *mean, float *variance, dv_error *error) {
    size_t channels = layer->output.channels;
    for (size_t c = 0; c < channels; c++) {
        double distance = sums->all[c] / count, square = sums->all[channels + c] / count - distance * distance;
        mean[c] = (float)((double)shift[c] + distance);
        variance[c] = (float)(square > 0 || isnan(square) ? square : 0);
        if (!isfinite(mean[c]) || !isfinite(variance[c]))
            return dv_fail(error, DV_ERROR_NONFINITE,
                           "mean %g or variance %g of channel %zu of its input is not finite", (double)mean[c],
                           (double)variance[c], c);
    }
    return DV_OK;
}

static void update_running(const dv_layer *layer, const dv_forward *call, const float *mean, const float *variance) {
    float momentum = options_of(layer)->momentum, *running_mean = call->arrays->buffers[RUNNING_MEAN];
    float *running_var = call->arrays->buffers[RUNNING_VAR];
    double count = norm_population(&layer->output, &call->norm, call->images);
    for (size_t c = 0; c < layer->output.channels; c++) {
        float unbiased = (float)((double)variance[c] * count / (count - 1));
        running_mean[c] = (1 - momentum) * running_mean[c] + momentum * mean[c];
        running_var[c] = (1 - momentum) * running_var[c] + momentum * unbiased;
    }
}

/* Where images of x from `first` on are, at most a slice of them: where the whole is, or in the workspace, where the
 * layer before makes them. */
static dv_status take_input(const dv_layer *layer, const dv_forward *call, size_t first, const void **x,
                            dv_error *error) {
    const dv_sliced_input *from = call->sliced;
    void *slice = (char *)call->workspace + layer->forward_workspace_bytes;
    *x = from ? slice : dv_image(&layer->output, call->inputs[0], first);
    return from ? from->layer->kind->forward_slice(from->layer, from->call, first, slice, error) : DV_OK;
}

/* Sums of x - shift and its square, by slices; the shift is the first pixel, extended. */
static dv_status sum_input(const dv_layer *layer, const dv_forward *call, const pair_of_sums *sums, float *shift,
                           dv_error *error) {
    const dv_map *map = &layer->inputs[0];
    size_t step = dv_map_slice_images(map);
    memset(sums->all, 0, 2 * map->channels * sizeof *sums->all);
    for (size_t first = 0; first < call->images; first += step) {
        summands of = {.map = map, .images = dv_smaller(step, call->images - first), .center = shift};
        DV_TRY(take_input(layer, call, first, &of.x, error));
        if (first == 0) {
            dv_convert_to_f32(map->type, of.x, map->channels, shift);
            dv_extend(shift, map->channels);
        }
        sum_images(&of, sums);
    }
    return DV_OK;
}

/* Of the batch at hand: leaves mean and 1 / standard deviation in saved [2][channels]. */
static dv_status measure(const dv_layer *layer, const dv_forward *call, const workspace *w, float *saved,
                         dv_error *error) {
    const dv_map *map = &layer->inputs[0];
    size_t channels = map->channels;
    float *variance = w->scale;
    double count = norm_population(map, &call->norm, call->images);
    if (count < 2)
        return dv_fail(error, DV_ERROR_UNSUPPORTED, "one value per channel has no variance: train with a larger batch");
    DV_TRY(sum_input(layer, call, &w->sums, w->mean, error));
    if (call->norm.world)
        DV_TRY(sum_over_ranks(layer, call, &w->sums, w->mean, error));
    DV_TRY(batch_statistics(layer, count, &w->sums, w->mean, saved, variance, error));
    if (!call->replay)
        update_running(layer, call, saved, variance);
    for (size_t c = 0; c < channels; c++)
        saved[channels + c] = (float)(1 / sqrt((double)variance[c] + (double)options_of(layer)->epsilon));
    return DV_OK;
}

/* 1 / standard deviation of channel `c`, by the running variance. */
static float running_istd(const dv_layer *layer, const dv_layer_arrays *arrays, size_t c) {
    double variance = (double)arrays->buffers[RUNNING_VAR][c] + (double)options_of(layer)->epsilon;
    return (float)(1 / sqrt(variance));
}

/* What x is multiplied with and moved by: from the batch's statistics, or in inference and if frozen the running ones.
 */
static dv_status choose_scales(const dv_layer *layer, const dv_forward *call, const workspace *w, dv_error *error) {
    size_t channels = layer->output.channels;
    const dv_layer_arrays *arrays = call->arrays;
    const float *saved = call->training && !arrays->frozen ? call->saved : NULL;
    if (saved)
        DV_TRY(measure(layer, call, w, call->saved, error));
    for (size_t c = 0; c < channels; c++) {
        float istd = saved ? saved[channels + c] : running_istd(layer, arrays, c);
        w->mean[c] = saved ? saved[c] : arrays->buffers[RUNNING_MEAN][c];
        w->scale[c] = istd * arrays->parameters[WEIGHT][c];
        w->offset[c] = arrays->parameters[BIAS][c];
        if (!isfinite(w->mean[c]) || !isfinite(istd))
            return dv_fail(error, DV_ERROR_NONFINITE, "running mean or variance of channel %zu is not finite: %s", c,
                           "the model was not trained, or its training failed");
    }
    dv_extend(w->mean, channels);
    dv_extend(w->scale, channels);
    dv_extend(w->offset, channels);
    return DV_OK;
}

/* Writes images first .. first + count - 1 of the output and their mask, from those at x. */
static void normalize_images(const dv_layer *layer, const dv_forward *call, const workspace *w, size_t first,
                             size_t count, const void *x) {
    const dv_batch_norm_options *options = options_of(layer);
    const dv_elementwise_kernels *kernels = dv_elementwise();
    const dv_map *map = &layer->output;
    size_t elements = dv_map_image_elements(map), parts = dv_part_count(count, elements);
#pragma omp parallel for schedule(static)
    for (size_t p = 0; p < parts; p++) {
        dv_part part = dv_part_at(count, elements, p);
        dv_span span = dv_part_span(map, &part);
        for (size_t n = first + part.first; n < first + part.last; n++)
            kernels->normalize(&span, dv_image(map, x, n - first),
                               options->add ? dv_image(map, call->inputs[1], n) : NULL, w->mean, w->scale, w->offset,
                               options->relu, dv_image_in(map, call->output, n),
                               call->output_mask ? call->output_mask + n * dv_mask_stride(map) : NULL);
    }
}

/* Where images at x are when the output has been made: where they were, or a copy that is made before that overwrites
 * them, behind the rest of the workspace. */
static const void *input_behind(const dv_layer *layer, const dv_forward *call, const char *x, size_t count) {
    const dv_map *map = &layer->output;
    if (call->sliced || call->inputs[0] != call->output)
        return x;
    size_t bytes = image_bytes(map), elements = dv_map_image_elements(map), parts = dv_part_count(count, elements);
    char *copy = (char *)call->workspace + layer->forward_workspace_bytes;
#pragma omp parallel for schedule(static)
    for (size_t p = 0; p < parts; p++) {
        dv_part part = dv_part_at(count, elements, p);
        size_t begin = part.begin * (bytes / elements), end = part.end * (bytes / elements);
        for (size_t n = part.first; n < part.last; n++)
            memcpy(copy + n * bytes + begin, x + n * bytes + begin, end - begin);
    }
    return copy;
}

/* Makes images from `first` on of the output, from those at x, and stores what is to be stored of both. */
static dv_status make_images(const dv_layer *layer, const dv_forward *call, const workspace *w, size_t first,
                             size_t count, const void *x, dv_error *error) {
    const dv_map *map = &layer->output;
    const void *behind = call->store_input ? input_behind(layer, call, x, count) : NULL;
    normalize_images(layer, call, w, first, count, x);
    if (call->store_output)
        DV_TRY(dv_kept_store(call->store_output, first, count, dv_image(map, call->output, first), error));
    return call->store_input
               ? dv_kept_store_input(call->store_input, first, count, behind, dv_image(map, call->output, first), error)
               : DV_OK;
}

static dv_status forward(const dv_layer *layer, const dv_forward *call, dv_error *error) {
    const dv_map *map = &layer->output;
    workspace w;
    cut_workspace(layer, call->workspace, false, &w);
    DV_TRY(choose_scales(layer, call, &w, error));
    size_t taken = call->sliced ? dv_map_slice_images(map) : call->images;
    size_t step = call->store_input ? images_at_once(map) : call->store_output ? dv_map_slice_images(map) : taken;
    for (size_t first = 0; first < call->images; first += taken) {
        size_t last = dv_smaller(first + taken, call->images);
        const void *x;
        DV_TRY(take_input(layer, call, first, &x, error));
        for (size_t at = first; at < last; at += step)
            DV_TRY(make_images(layer, call, &w, at, dv_smaller(step, last - at), dv_image(map, x, at - first), error));
    }
    return DV_OK;
}

/* ---- recompute ------------------------------------------------------------------------------- */

/* The coefficients of forward, from what it saved or the running statistics of a frozen layer, which stay: parameters
 * change after backward only. */
static void choose_scales_again(const dv_layer *layer, const dv_kept *output, const recompute_space *s) {
    const dv_layer_arrays *arrays = output->arrays;
    const float *saved = output->saved;
    size_t channels = layer->output.channels;
    for (size_t c = 0; c < channels; c++) {
        float istd = arrays->frozen ? running_istd(layer, arrays, c) : saved[channels + c];
        s->mean[c] = arrays->frozen ? arrays->buffers[RUNNING_MEAN][c] : saved[c];
        s->scale[c] = istd * arrays->parameters[WEIGHT][c];
        s->bias[c] = arrays->parameters[BIAS][c];
    }
    dv_extend(s->mean, channels);
    dv_extend(s->scale, channels);
    dv_extend(s->bias, channels);
}

static void normalize_kept(const dv_map *map, const recompute_space *s, const void *x, const void *addend,
                           const uint8_t *mask, size_t count, void *images) {
    size_t elements = dv_map_image_elements(map), parts = dv_part_count(count, elements);
#pragma omp parallel for schedule(static)
    for (size_t p = 0; p < parts; p++) {
        dv_part part = dv_part_at(count, elements, p);
        dv_span span = dv_part_span(map, &part);
        for (size_t n = part.first; n < part.last; n++)
            dv_elementwise()->normalize_again(&span, dv_image(map, x, n), dv_image(map, addend, n), s->mean, s->scale,
                                              s->bias, mask ? mask + n * dv_mask_stride(map) : NULL,
                                              dv_image_in(map, images, n));
    }
}

/* x comes as it is, and its mask. */
static dv_status recompute_from(const dv_layer *layer, const dv_kept *output, size_t first, size_t count,
                                const void *addend, void *images, dv_error *error) {
    const dv_map *map = &layer->output;
    recompute_space s;
    const void *x;
    cut_recompute_space(layer, output->workspace, false, &s);
    DV_TRY(dv_kept_images(output->inputs[0], first, count, s.x ? s.x : images, &x, error));
    choose_scales_again(layer, output, &s);
    const uint8_t *mask = output->mask ? output->mask + first * dv_mask_stride(map) : NULL;
    if (options_of(layer)->relu && !mask)
        DV_TRY(dv_kept_mask(output, first, count, s.mask, &mask, error));
    normalize_kept(map, &s, x, addend, mask, count, images);
    return DV_OK;
}

/* x comes normalised. */
static dv_status recompute_in_one_pass(const dv_layer *layer, const dv_kept *output, size_t first, size_t count,
                                       const void *addend, void *images, dv_error *error) {
    recompute_space s;
    cut_recompute_space(layer, output->workspace, true, &s);
    choose_scales_again(layer, output, &s);
    const dv_lean_norm norm = {s.mean, s.scale, s.bias, addend};
    return dv_kept_normalized(output->inputs[0], first, count, &norm, images, error);
}

/* What is added comes first, to where the output will be: if it is recomputed too, it may be so in the same workspace,
 * which is used for x and the coefficients only then. */
static dv_status recompute(const dv_layer *layer, const dv_kept *output, size_t first, size_t count, void *images,
                           dv_error *error) {
    const dv_map *map = &layer->output;
    size_t step = images_at_once(map);
    for (size_t done = 0; done < count; done += step) {
        size_t at = first + done, now = dv_smaller(step, count - done);
        void *to = dv_image_in(map, images, done);
        const void *addend = NULL;
        if (options_of(layer)->add)
            DV_TRY(dv_kept_images(output->inputs[1], at, now, to, &addend, error));
        DV_TRY((output->one_pass ? recompute_in_one_pass : recompute_from)(layer, output, at, now, addend, to, error));
    }
    return DV_OK;
}

/* ---- backward -------------------------------------------------------------------------------- */

/* Where backward finds x and the mask, and how many images it takes at once. */
typedef struct source {
    const dv_layer *layer;
    const dv_backward *call;
    const workspace *w;
    size_t step;   /* images at once */
    void *decoded; /* memory for all of x that is the gradient's in the end, or NULL */
} source;

/* x is decoded once where the gradient of x will be, if that is to be overwritten and is no memory of diff_output's;
 * else slice by slice, twice. */
static source find_source(const dv_layer *layer, const dv_backward *call, const workspace *w) {
    bool frozen = call->arrays->frozen;
    bool direct = (frozen || call->inputs[0]->exact) && (!options_of(layer)->relu || call->output->mask);
    void *dx = call->diff_inputs[0];
    source from = {layer, call, w, direct ? call->images : dv_map_slice_images(&layer->output), NULL};
    if (!frozen && dx && !call->accumulate[0] && dx != call->diff_output)
        from.decoded = dx;
    return from;
}

/* x and mask of a step's images from `first` on. `second`: they were asked for before. The slope of a frozen layer is
 * zero, so that any numbers will do for x, as they will where the gradient of x is not asked for. */
static dv_status take_images(const source *from, size_t first, bool second, summands *at, dv_error *error) {
    const dv_map *map = &from->layer->output;
    size_t now = dv_smaller(from->step, from->call->images - first);
    *at = (summands){.map = map, .images = now, .center = from->w->mean};
    void *buffer = from->decoded ? dv_image_in(map, from->decoded, first) : from->w->slice;
    at->diff = dv_image(map, from->call->diff_output, first);
    if (from->call->arrays->frozen || (second && !from->call->diff_inputs[0]))
        at->x = at->diff;
    else if (second && from->decoded && !from->call->inputs[0]->exact)
        at->x = buffer;
    else
        DV_TRY(dv_kept_images(from->call->inputs[0], first, now, buffer, &at->x, error));
    if (options_of(from->layer)->relu)
        DV_TRY(dv_kept_mask(from->call->output, first, now, from->w->mask, &at->mask, error));
    return DV_OK;
}

/* Adds to the gradients of weight and bias. */
static void add_gradients(const dv_layer *layer, const dv_backward *call, const workspace *w) {
    const dv_layer_arrays *arrays = call->arrays;
    const float *istd = (const float *)call->saved + layer->output.channels;
    size_t channels = layer->output.channels;
    for (size_t c = 0; c < channels; c++) {
        if (arrays->gradients[BIAS])
            arrays->gradients[BIAS][c] += (float)w->sums.all[c];
        if (arrays->gradients[WEIGHT])
            arrays->gradients[WEIGHT][c] += (float)(w->sums.all[channels + c] * (double)istd[c]);
    }
}

/* Turns the sums into the coefficients of the input's gradient. */
static void choose_slopes(const dv_layer *layer, const dv_backward *call, const workspace *w) {
    const float *saved = call->saved;
    size_t channels = layer->output.channels;
    double count = norm_population(&layer->output, &call->norm, call->images);
    for (size_t c = 0; c < channels; c++) {
        double istd = (double)saved[channels + c], scale = istd * (double)call->arrays->parameters[WEIGHT][c];
        double sum = w->sums.all[c], product = w->sums.all[channels + c] * istd; /* of dz, of dz * xhat */
        w->scale[c] = (float)scale;
        w->slope[c] = (float)(-scale * istd * product / count);
        w->offset[c] = (float)(-scale * sum / count);
    }
}

/* Sums over the batch, and what follows from them. */
static dv_status find_slopes(const source *from, dv_error *error) {
    const workspace *w = from->w;
    size_t channels = from->layer->output.channels;
    memcpy(w->mean, from->call->saved, channels * sizeof *w->mean);
    dv_extend(w->mean, channels);
    memset(w->sums.all, 0, 2 * channels * sizeof *w->sums.all);
    for (size_t first = 0; first < from->call->images; first += from->step) {
        summands at;
        DV_TRY(take_images(from, first, false, &at, error));
        sum_images(&at, &w->sums);
    }
    add_gradients(from->layer, from->call, w);
    DV_TRY(dv_world_sum(from->call->norm.world, DV_SUM_F64, w->sums.all, 2 * channels, from->layer->name, error));
    choose_slopes(from->layer, from->call, w);
    return DV_OK;
}

/* The same of a frozen layer, whose statistics do not depend on the batch. */
static void choose_frozen_slopes(const source *from) {
    const workspace *w = from->w;
    const dv_layer_arrays *arrays = from->call->arrays;
    for (size_t c = 0; c < from->layer->output.channels; c++) {
        w->scale[c] = running_istd(from->layer, arrays, c) * arrays->parameters[WEIGHT][c];
        w->mean[c] = w->slope[c] = w->offset[c] = 0;
    }
}

/* Writes the gradients of the images `at`, which are to be at `dx` and `passed` (unless NULL). */
static void write_gradients(const source *from, const summands *at, void *dx, void *passed) {
    const dv_map *map = at->map;
    const dv_backward *call = from->call;
    const workspace *w = from->w;
    bool add_to_passed = passed && call->accumulate[1];
    dv_normalize_diff by = {w->mean, w->scale, w->slope, w->offset};
    size_t elements = dv_map_image_elements(map), parts = dv_part_count(at->images, elements);
#pragma omp parallel for schedule(static)
    for (size_t p = 0; p < parts; p++) {
        dv_part part = dv_part_at(at->images, elements, p);
        dv_span span = dv_part_span(map, &part);
        for (size_t n = part.first; n < part.last; n++)
            dv_elementwise()->normalize_backward(&span, dv_image(map, at->diff, n),
                                                 at->mask ? at->mask + n * dv_mask_stride(map) : NULL,
                                                 dv_image(map, at->x, n), &by, dv_image_in(map, dx, n),
                                                 call->accumulate[0], dv_image_in(map, passed, n), add_to_passed);
    }
}

static dv_status backward(const dv_layer *layer, const dv_backward *call, dv_error *error) {
    workspace w;
    cut_workspace(layer, call->workspace, true, &w);
    if (call->diff_state)
        cut_diff_state(layer, call->diff_state, &w);
    source from = find_source(layer, call, &w);
    if (call->arrays->frozen)
        choose_frozen_slopes(&from);
    else
        DV_TRY(find_slopes(&from, error));
    float *const coefficients[] = {w.mean, w.scale, w.slope, w.offset};
    for (size_t i = 0; i < sizeof coefficients / sizeof *coefficients; i++)
        dv_extend(coefficients[i], layer->output.channels);
    const dv_map *map = &layer->output;
    void *dx = call->diff_inputs[0], *passed = options_of(layer)->add ? call->diff_inputs[1] : NULL;
    for (size_t first = 0; (dx || passed) && first < call->images; first += from.step) {
        summands at;
        DV_TRY(take_images(&from, first, true, &at, error));
        write_gradients(&from, &at, dv_image_in(map, dx, first), dv_image_in(map, passed, first));
    }
    return DV_OK;
}

/* x is decoded where its gradient will be. */
static dv_status diff_images(const dv_layer *layer, const dv_backward *call, void *memory, size_t first, size_t count,
                             void *images, dv_error *error) {
    const dv_map *map = &layer->output;
    size_t step = images_at_once(map);
    workspace w = {.mask = memory};
    cut_diff_state(layer, call->diff_state, &w);
    for (size_t done = 0; done < count; done += step) {
        source from = {layer, call, &w, dv_smaller(step, count - done), NULL};
        summands at;
        w.slice = dv_image_in(map, images, done);
        DV_TRY(take_images(&from, first + done, false, &at, error));
        write_gradients(&from, &at, w.slice, NULL);
    }
    return DV_OK;
}

static dv_normalisation normalisation(const dv_layer *layer, const dv_layer_arrays *arrays, const void *saved) {
    const float *mean = saved;
    return (dv_normalisation){mean, mean + layer->output.channels, arrays->parameters[WEIGHT],
                              arrays->parameters[BIAS]};
}

/* ---- fusing ---------------------------------------------------------------------------------- */

/* A sum, then a ReLU: nothing comes behind the ReLU. */
static bool can_take_over(const dv_layer *layer, dv_role role) {
    const dv_batch_norm_options *options = options_of(layer);
    return !options->relu && (role == DV_ROLE_RELU || (role == DV_ROLE_SUM && !options->add));
}

static void take_over(dv_layer *layer, dv_role role) {
    dv_batch_norm_options *options = (dv_batch_norm_options *)layer->options;
    options->add = options->add || role == DV_ROLE_SUM;
    options->relu = role == DV_ROLE_RELU;
}

const dv_layer_kind dv_batch_norm = {
    .name = "batch norm",
    .infer = infer,
    .prepare = prepare,
    .forward = forward,
    .backward = backward,
    .recompute = recompute,
    .diff_images = diff_images,
    .normalisation = normalisation,
    .in_place = true,
    .stores_output = true,
    .stores_input = true,
    .normalises = true,
    .last_input_first = true,
    .can_take_over = can_take_over,
    .take_over = take_over,
    .diff_in_place = 1u << 0 | 1u << 1,
};
