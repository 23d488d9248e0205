/* The list of a graph's distinct passes. */
#include "nn/choices.h"

#include "base/status.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool same_shape(const dv_convolution_shape *a, const dv_convolution_shape *b) {
    if (a->type != b->type || a->rank != b->rank || a->images != b->images || a->groups != b->groups ||
        a->src_channels != b->src_channels || a->dst_channels != b->dst_channels)
        return false;
    for (int d = 0; d < a->rank; d++)
        if (a->src_sides[d] != b->src_sides[d] || a->dst_sides[d] != b->dst_sides[d] ||
            a->window.kernel[d] != b->window.kernel[d] || a->window.stride[d] != b->window.stride[d] ||
            a->window.padding[d] != b->window.padding[d] || a->window.dilation[d] != b->window.dilation[d])
            return false;
    return true;
}

static bool make_room(dv_choices *choices) {
    if (choices->count < choices->capacity)
        return true;
    size_t capacity = choices->capacity ? 2 * choices->capacity : 32;
    dv_choice *at = realloc(choices->at, capacity * sizeof *at);
    if (!at)
        return false;
    choices->at = at;
    choices->capacity = capacity;
    return true;
}

static dv_status no_memory(dv_error *error) {
    return dv_fail(error, DV_ERROR_MEMORY, "no memory for the choice of a convolution's pass");
}

static dv_status add(dv_choices *choices, const dv_choice *choice, int *index, dv_error *error) {
    if (!make_room(choices))
        return no_memory(error);
    *index = (int)choices->count;
    choices->at[choices->count++] = *choice;
    return DV_OK;
}

/* The choice of a layer, or with NULL that of all others; negative: there is none. */
static int find(const dv_choices *choices, const dv_choice *like, const char *layer) {
    for (size_t i = 0; i < choices->count; i++) {
        const dv_choice *at = &choices->at[i];
        bool same_layer = layer ? at->layer && strcmp(at->layer, layer) == 0 : !at->layer;
        if (same_layer && at->kind == like->kind && at->threads == like->threads &&
            same_shape(&at->shape, &like->shape))
            return (int)i;
    }
    return -1;
}

dv_status dv_choices_note(dv_choices *choices, dv_pass_kind kind, const dv_convolution_shape *shape, const char *layer,
                          int *index, dv_error *error) {
    int expected = dv_pass_expected(kind, shape);
    const dv_choice made = {
        .kind = kind, .shape = *shape, .threads = omp_get_max_threads(), .maker = expected, .expected = expected};
    *index = find(choices, &made, layer);
    if (*index < 0)
        *index = find(choices, &made, NULL);
    return *index < 0 ? add(choices, &made, index, error) : DV_OK;
}

/* ---- choices of single layers ---------------------------------------------------------------- */

dv_status dv_choices_part(dv_choices *choices, int index, const char *layer, int *own, dv_error *error) {
    if (strpbrk(layer, ":\n"))
        return dv_fail(error, DV_ERROR_UNSUPPORTED, "%s: such a name can't be written to a file of choices", layer);
    dv_choice made = choices->at[index];
    made.layer = strdup(layer);
    dv_status status = made.layer ? add(choices, &made, own, error) : no_memory(error);
    if (status != DV_OK)
        free(made.layer);
    return status;
}

void dv_choices_unite(dv_choices *choices) {
    size_t count = 0;
    for (size_t i = 0; i < choices->count; i++) {
        if (choices->at[i].layer)
            free(choices->at[i].layer);
        else
            choices->at[count++] = choices->at[i];
    }
    choices->count = count;
}

void dv_choices_free(dv_choices *choices) {
    dv_choices_unite(choices);
    free(choices->at);
    *choices = (dv_choices){0};
}

/* ---- candidates ------------------------------------------------------------------------------ */

int dv_choice_candidates(const dv_choice *choice) {
    int count = 0;
    for (int m = 0; m < DV_PASS_MAKERS; m++)
        count += dv_pass_makers[m]->suits(choice->kind, &choice->shape);
    return count;
}

bool dv_choice_is_measured(const dv_choice *choice) {
    for (int m = 0; m < DV_PASS_MAKERS; m++)
        if (dv_pass_makers[m]->suits(choice->kind, &choice->shape) && choice->seconds[m] <= 0)
            return false;
    return true;
}

int dv_choice_fastest(const dv_choice *choice, size_t most) {
    const double margin = 0.97;
    int fastest = choice->expected;
    double least = choice->seconds[fastest] * margin;
    for (int m = 0; m < DV_PASS_MAKERS && least > 0; m++)
        if (choice->seconds[m] > 0 && choice->bytes[m] <= most && choice->seconds[m] < least) {
            fastest = m;
            least = choice->seconds[m];
        }
    return fastest;
}

double dv_choice_operations(const dv_choice *choice) {
    const dv_convolution_shape *shape = &choice->shape;
    double products = (double)shape->images * (double)shape->src_channels * (double)shape->dst_channels;
    for (int d = 0; d < shape->rank; d++)
        products *= (double)shape->dst_sides[d] * (double)shape->window.kernel[d];
    return 2 * products / (double)shape->groups;
}

/* ---- text ----------------------------------------------------------------------------------- */

static const char *const kind_names[] = {
    [DV_PASS_FORWARD] = "forward-bias",
    [DV_PASS_FORWARD_NO_BIAS] = "forward",
    [DV_PASS_BACKWARD_DATA] = "backward-data",
    [DV_PASS_BACKWARD_WEIGHTS] = "backward-weights",
};

/* " sides 56x56" */
static void add_sides(char *text, const char *name, const size_t *sides, int rank) {
    size_t used = strlen(text);
    used += (size_t)snprintf(text + used, DV_CHOICE_TEXT_BYTES - used, " %s", name);
    for (int d = 0; d < rank && used < DV_CHOICE_TEXT_BYTES; d++)
        used += (size_t)snprintf(text + used, DV_CHOICE_TEXT_BYTES - used, "%c%zu", d ? 'x' : ' ', sides[d]);
}

const char *dv_choice_text(const dv_choice *choice, char text[DV_CHOICE_TEXT_BYTES]) {
    const dv_convolution_shape *shape = &choice->shape;
    snprintf(text, DV_CHOICE_TEXT_BYTES, "%s %s threads %d images %zu groups %zu channels %zu to %zu",
             kind_names[choice->kind], dv_type_name(shape->type), choice->threads, shape->images, shape->groups,
             shape->src_channels, shape->dst_channels);
    add_sides(text, "sides", shape->src_sides, shape->rank);
    add_sides(text, "to", shape->dst_sides, shape->rank);
    add_sides(text, "kernel", shape->window.kernel, shape->rank);
    add_sides(text, "stride", shape->window.stride, shape->rank);
    add_sides(text, "padding", shape->window.padding, shape->rank);
    add_sides(text, "dilation", shape->window.dilation, shape->rank);
    return text;
}
