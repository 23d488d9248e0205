/* Folding: a batch norm by running statistics is an affine map of each channel, and so can be part of the convolution
 * in front of it,
 *
 *     s = weight / sqrt(variance + epsilon)
 *     norm(conv(x) + b) = conv(x) s + (b - mean) s + bias
 *
 * which is a convolution with the weights of each output channel times s, and another bias. */
#include "export/onnx.h"

#include "base/status.h"

#include <math.h>
#include <stdlib.h>

enum { WEIGHT, BIAS };
enum { MEAN, VARIANCE };

/* The convolution in front of a batch norm that can take it over, or -1. */
static int find_convolution(const dv_graph *graph, const dv_graph_layer *norm) {
    const dv_graph_value *value = &graph->values[norm->inputs[0]];
    if (norm->layer.kind != &dv_batch_norm || value->producer == DV_INPUT || value->uses != 1)
        return -1;
    return graph->layers[value->producer].layer.kind == &dv_convolution ? value->producer : -1;
}

static dv_status fold(dv_onnx *onnx, size_t norm, size_t convolution, dv_error *error) {
    const dv_layer *layer = &onnx->graph->layers[norm].layer;
    const dv_layer_arrays *by = &onnx->run->arrays[norm], *of = &onnx->run->arrays[convolution];
    const dv_batch_norm_options *options = layer->options;
    const float *bias = onnx->graph->layers[convolution].layer.parameter_count > BIAS ? of->parameters[BIAS] : NULL;
    dv_onnx_fold *made = &onnx->folds[convolution];
    size_t channels = layer->output.channels;
    made->scale = calloc(channels, sizeof *made->scale);
    made->bias = calloc(channels, sizeof *made->bias);
    if (made->scale == NULL || made->bias == NULL)
        return dv_fail(error, DV_ERROR_MEMORY, "no memory to fold batch norms: free some");
    for (size_t c = 0; c < channels; c++) {
        double s =
            (double)by->parameters[WEIGHT][c] / sqrt((double)by->buffers[VARIANCE][c] + (double)options->epsilon);
        double before = bias != NULL ? (double)bias[c] : 0;
        made->scale[c] = s;
        made->bias[c] = (float)((before - (double)by->buffers[MEAN][c]) * s + (double)by->parameters[BIAS][c]);
    }
    onnx->is_folded[norm] = true;
    return DV_OK;
}

dv_status dv_onnx_find_folds(dv_onnx *onnx, dv_error *error) {
    for (size_t i = 0; i < onnx->graph->layer_count && onnx->options->fold; i++) {
        int convolution = find_convolution(onnx->graph, &onnx->graph->layers[i]);
        if (convolution >= 0)
            DV_TRY(fold(onnx, i, (size_t)convolution, error));
    }
    return DV_OK;
}
