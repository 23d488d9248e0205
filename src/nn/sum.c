/* The sum of two or more inputs of one shape. Backward passes the gradient on to each. */
#include "nn/parts.h"
#include "nn/shape.h"

static dv_status infer(dv_layer *layer, dv_error *error) {
    DV_TRY(dv_layer_check_inputs(layer, 2, SIZE_MAX, error));
    const dv_map *first = &layer->inputs[0];
    for (size_t i = 1; i < layer->input_count; i++) {
        const dv_map *map = &layer->inputs[i];
        if (map->channels != first->channels || !dv_same_sides(map, first))
            return dv_layer_fail(layer, error, DV_ERROR_ARGUMENT, "adds %s to %s: all inputs must have one shape",
                                 dv_shape(map).text, dv_shape(first).text);
    }
    layer->output = *first;
    layer->input_need = layer->output_need = DV_NEED_NOTHING;
    return DV_OK;
}

enum { AT_ONCE = 8 }; /* inputs */

/* One part of image n. Inputs beyond the first few are added in turns. */
static void add_image(const dv_layer *layer, const dv_forward *call, const dv_span *span, size_t n) {
    const dv_map *map = &layer->output;
    void *output = dv_image_in(map, call->output, n);
    for (size_t done = 0; done < layer->input_count;) {
        const void *images[AT_ONCE];
        size_t count = 0;
        if (done > 0)
            images[count++] = output;
        while (count < AT_ONCE && done < layer->input_count)
            images[count++] = dv_image(map, call->inputs[done++], n);
        dv_elementwise()->add(span, images, count, output);
    }
}

static dv_status forward(const dv_layer *layer, const dv_forward *call, dv_error *error) {
    (void)error;
    dv_forward_spans(layer, call, add_image);
    dv_write_mask(&layer->output, call->images, call->output, call->output_mask);
    return DV_OK;
}

/* diff (or diff + what is there) of all images. */
static void pass_on(const dv_map *map, size_t images, const void *diff, bool accumulate, void *out) {
    size_t elements = dv_map_image_elements(map), parts = dv_part_count(images, elements);
#pragma omp parallel for schedule(static)
    for (size_t p = 0; p < parts; p++) {
        dv_part part = dv_part_at(images, elements, p);
        size_t offset = part.begin * dv_type_bytes(map->type), rows = part.last - part.first;
        dv_elementwise()->copy(map->type, (const char *)dv_image(map, diff, part.first) + offset, elements,
                               (char *)dv_image_in(map, out, part.first) + offset, elements, rows,
                               part.end - part.begin, accumulate);
    }
}

static dv_status backward(const dv_layer *layer, const dv_backward *call, dv_error *error) {
    (void)error;
    for (size_t i = 0; i < layer->input_count; i++)
        if (call->diff_inputs[i] && call->diff_inputs[i] != call->diff_output)
            pass_on(&layer->output, call->images, call->diff_output, call->accumulate[i], call->diff_inputs[i]);
    return DV_OK;
}

const dv_layer_kind dv_sum = {
    .name = "sum",
    .infer = infer,
    .forward = forward,
    .backward = backward,
    .role = DV_ROLE_SUM,
    .in_place = true,
    .diff_in_place = ~0u,
};
