/* Softmax cross-entropy of a map of logits, without a graph. */
#ifndef DV_TESTS_LOSSES_H
#define DV_TESTS_LOSSES_H

#include "nn/layer.h"

/* The loss of `logits` and, unless diff is NULL, its gradient times `scale`. */
static inline dv_status cross_entropy(const dv_map *map, const void *logits, const dv_targets *targets, float scale,
                                      void *diff, dv_loss_result *result, dv_error *error) {
    dv_layer layer = {.kind = &dv_softmax_cross_entropy, .name = "loss", .input_count = 1, .inputs = map};
    dv_loss_call call = {
        .images = map->images, .input = logits, .targets = *targets, .scale = scale, .diff_input = diff};
    dv_status status = layer.kind->infer(&layer, error);
    return status == DV_OK ? layer.kind->loss(&layer, &call, result, error) : status;
}

#endif
