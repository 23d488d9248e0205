/* Parameters and running statistics of a run: their memory, their names, what they begin as. */
#include "base/random.h"
#include "base/status.h"
#include "graph/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A normal number from position `i` of a key's sequence (Box-Muller). */
static float normal(dv_random key, uint32_t i) {
    double u = ((double)dv_random_word(key, 2 * i) + 0.5) * 0x1p-32;
    double v = (double)dv_random_word(key, 2 * i + 1) * 0x1p-32;
    return (float)(sqrt(-2 * log(u)) * cos(6.283185307179586 * v));
}

static float initial(const dv_parameter *parameter, dv_random key, uint32_t i) {
    switch (parameter->initialisation) {
    case DV_INITIALISE_ONE:
        return 1;
    case DV_INITIALISE_FAN_OUT:
        return sqrtf(2.0f / (float)parameter->fan) * normal(key, i);
    case DV_INITIALISE_UNIFORM:
        return ((float)dv_random_word(key, i) * 0x1p-31f - 1.0f) / sqrtf((float)parameter->fan);
    default:
        return 0;
    }
}

static void initialise(const dv_parameter *parameter, uint64_t seed, float *data) {
    const uint64_t words[] = {seed, 0x706172616d, parameter->key};
    dv_random key = dv_random_key(words, 3);
    for (size_t i = 0; i < parameter->count; i++)
        data[i] = initial(parameter, key, (uint32_t)i);
}

/* "layer1.0.conv2" + "weight". NULL if there is no memory. */
static char *joined(const char *layer, const char *name) {
    size_t bytes = strlen(layer) + strlen(name) + 2;
    char *text = malloc(bytes);
    if (text) {
        strcpy(text, layer);
        strcat(text, ".");
        strcat(text, name);
    }
    return text;
}

static dv_status add_parameter(dv_run *run, const char *layer, const char *name, int rank, const size_t *shape,
                               size_t count, float *data, float *gradient, float *optimizer, float *average,
                               dv_error *error) {
    dv_run_parameter *made = &run->parameters[run->parameter_count];
    *made = (dv_run_parameter){.name = joined(layer, name),
                               .rank = rank,
                               .count = count,
                               .data = data,
                               .gradient = gradient,
                               .optimizer = optimizer,
                               .average = average};
    if (!made->name)
        return dv_fail(error, DV_ERROR_MEMORY, "run: no memory");
    memcpy(made->shape, shape, (size_t)rank * sizeof *shape);
    run->parameter_count++;
    return DV_OK;
}

/* Where the gradient of a layer's parameter `k` is; in a bucket behind those of others. */
static float *gradient_of(const dv_run *run, const dv_layer_plan *where, size_t k) {
    float *piece = dv_run_piece(run, where->gradient[k]);
    return piece ? piece + where->gradient_at[k] : NULL;
}

/* The parameters of layer `i`. */
static dv_status fill_parameters(dv_run *run, size_t i, dv_error *error) {
    const dv_layer *layer = &run->plan->graph->layers[i].layer;
    const dv_layer_plan *where = &run->plan->layers[i];
    dv_layer_arrays *arrays = &run->arrays[i];
    arrays->frozen = dv_plan_is_frozen(run->plan, (int)i);
    for (size_t k = 0; k < layer->parameter_count; k++) {
        const dv_parameter *p = &layer->parameters[k];
        arrays->parameters[k] = dv_run_piece(run, where->data[k]);
        arrays->gradients[k] = gradient_of(run, where, k);
        initialise(p, run->seed, arrays->parameters[k]);
        DV_TRY(add_parameter(run, layer->name, p->name, p->rank, p->shape, p->count, arrays->parameters[k],
                             where->update_at >= 0 ? NULL : arrays->gradients[k],
                             dv_run_piece(run, where->optimizer[k]), dv_run_piece(run, where->average[k]), error));
    }
    return DV_OK;
}

/* Its running statistics. */
static dv_status fill_buffers(dv_run *run, size_t i, dv_error *error) {
    const dv_layer *layer = &run->plan->graph->layers[i].layer;
    const dv_layer_plan *where = &run->plan->layers[i];
    for (size_t k = 0; k < layer->buffer_count; k++) {
        const dv_buffer *b = &layer->buffers[k];
        float *data = run->arrays[i].buffers[k] = dv_run_piece(run, where->buffers[k]);
        for (size_t j = 0; data && j < b->count; j++)
            data[j] = b->start;
        DV_TRY(add_parameter(run, layer->name, b->name, 1, &b->count, b->count, data, NULL, NULL,
                             dv_run_piece(run, where->buffer_average[k]), error));
    }
    return DV_OK;
}

dv_status dv_run_fill_arrays(dv_run *run, dv_error *error) {
    for (size_t i = 0; i < run->plan->graph->layer_count; i++) {
        DV_TRY(fill_parameters(run, i, error));
        DV_TRY(fill_buffers(run, i, error));
    }
    return DV_OK;
}
