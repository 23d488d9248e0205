/* Sums of squares, image by image, in an order that does not depend on the number of threads. */
#include "graph/gradient_norm.h"

#include <string.h>

enum { TOGETHER = 256, LANES = 16 };

/* Of at most TOGETHER elements, in f32. */
static double square_sum_of_few(const float *x, size_t count) {
    float lanes[LANES] = {0};
    double sum = 0;
    size_t whole = count / LANES * LANES;
    for (size_t i = 0; i < whole; i += LANES)
        for (size_t j = 0; j < LANES; j++)
            lanes[j] += x[i + j] * x[i + j];
    for (size_t i = whole; i < count; i++)
        lanes[i - whole] += x[i] * x[i];
    for (size_t j = 0; j < LANES; j++)
        sum += (double)lanes[j];
    return sum;
}

static double square_sum_of_image(const dv_map *map, const char *image) {
    size_t elements = dv_map_image_elements(map), bytes = dv_type_bytes(map->type);
    float converted[TOGETHER];
    double sum = 0;
    for (size_t done = 0; done < elements; done += TOGETHER) {
        size_t now = elements - done < TOGETHER ? elements - done : TOGETHER;
        const void *from = image + done * bytes;
        if (map->type != DV_F32)
            dv_convert_to_f32(map->type, from, now, converted);
        sum += square_sum_of_few(map->type == DV_F32 ? from : converted, now);
    }
    return sum;
}

double dv_square_sum(const dv_map *map, size_t images, const void *values) {
    enum { MOST = 64 };
    size_t bytes = dv_map_image_elements(map) * dv_type_bytes(map->type);
    double sums[MOST], all = 0;
    for (size_t first = 0; first < images; first += MOST) {
        size_t now = images - first < MOST ? images - first : MOST;
#pragma omp parallel for schedule(static)
        for (size_t n = 0; n < now; n++)
            sums[n] = square_sum_of_image(map, (const char *)values + (first + n) * bytes);
        for (size_t n = 0; n < now; n++)
            all += sums[n];
    }
    return all;
}

dv_layer_reach dv_layer_reach_of(const dv_layer *layer) {
    dv_layer_reach reach = {1, 1};
    if (layer->parameter_count == 0 || layer->parameters[0].rank < 2)
        return reach;
    const dv_parameter *weight = &layer->parameters[0];
    for (int d = 2; d < weight->rank; d++)
        reach.area *= (double)weight->shape[d];
    bool transposed = weight->shape[0] != layer->output.channels;
    size_t all = transposed ? layer->output.channels : layer->inputs[0].channels;
    reach.groups = (double)all / (double)weight->shape[1];
    return reach;
}
