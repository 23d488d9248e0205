/* Checks and parameters of both kinds of convolution. */
#include "nn/convolution.h"
#include "nn/shape.h"

/* Of every side and step of a window: far beyond use, and small enough that nothing below overflows. */
enum { WINDOW_LIMIT = 1 << 20 };
/* Of the elements of all weights. */
static const size_t weights_limit = (size_t)1 << 32;

size_t dv_window_reach(const dv_window *window, int d) {
    return (window->kernel[d] - 1) * window->dilation[d] + 1;
}

static dv_status check_input(const dv_layer *layer, dv_error *error) {
    DV_TRY(dv_layer_check_options(layer, error));
    DV_TRY(dv_layer_check_inputs(layer, 1, 1, error));
    if (layer->inputs[0].rank < 1)
        return dv_layer_fail(layer, error, DV_ERROR_UNSUPPORTED,
                             "takes maps of 1 to %d spatial dimensions, not %s: for vectors use a linear layer",
                             DV_MAX_RANK, dv_shape(&layer->inputs[0]).text);
    return DV_OK;
}

static dv_status check_channels(const dv_layer *layer, dv_error *error) {
    const dv_convolution_options *options = layer->options;
    size_t in = layer->inputs[0].channels, out = options->channels, groups = options->groups;
    if (out == 0)
        return dv_layer_fail(layer, error, DV_ERROR_OPTION, "%zu output channels: give at least 1", out);
    if (groups == 0 || in % groups != 0 || out % groups != 0)
        return dv_layer_fail(layer, error, DV_ERROR_OPTION,
                             "%zu groups do not divide %zu input and %zu output channels: use a common divisor of both",
                             groups, in, out);
    return DV_OK;
}

static dv_status check_window(const dv_layer *layer, int d, dv_error *error) {
    const dv_convolution_options *options = layer->options;
    const struct {
        const char *name;
        size_t value, minimum;
    } steps[] = {{"kernel", options->window.kernel[d], 1},
                 {"stride", options->window.stride[d], 1},
                 {"dilation", options->window.dilation[d], 1},
                 {"padding", options->window.padding[d], 0},
                 {"output padding", options->output_padding[d], 0}};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (steps[i].value < steps[i].minimum || steps[i].value > WINDOW_LIMIT)
            return dv_layer_fail(layer, error, DV_ERROR_OPTION, "%s %zu along side %d: give %zu to %d", steps[i].name,
                                 steps[i].value, d + 1, steps[i].minimum, WINDOW_LIMIT);
    return DV_OK;
}

dv_status dv_convolution_check(const dv_layer *layer, dv_error *error) {
    DV_TRY(check_input(layer, error));
    DV_TRY(check_channels(layer, error));
    for (int d = 0; d < layer->inputs[0].rank; d++)
        DV_TRY(check_window(layer, d, error));
    return DV_OK;
}

/* The product of a parameter's shape, or 0 if it is beyond the limit. */
static size_t product_of(const dv_parameter *parameter) {
    size_t product = 1;
    for (int d = 0; d < parameter->rank; d++) {
        if (parameter->shape[d] > weights_limit / product)
            return 0;
        product *= parameter->shape[d];
    }
    return product;
}

static dv_status check_output(const dv_layer *layer, dv_error *error) {
    dv_error inner;
    if (layer->parameters[0].count == 0)
        return dv_layer_fail(layer, error, DV_ERROR_OPTION,
                             "more than %zu weights: use a smaller kernel or fewer channels", weights_limit);
    if (dv_map_check(&layer->output, &inner) != DV_OK)
        return dv_layer_fail(layer, error, inner.status, "its output: %s", inner.text);
    return DV_OK;
}

dv_status dv_convolution_declare(dv_layer *layer, const size_t *sides, size_t first, size_t second, dv_error *error) {
    const dv_convolution_options *options = layer->options;
    int rank = layer->inputs[0].rank;
    dv_parameter *weight = &layer->parameters[0], *bias = &layer->parameters[1];

    *weight = (dv_parameter){.name = "weight", .rank = 2 + rank, .shape = {first, second}};
    layer->output = layer->inputs[0];
    layer->output.channels = options->channels;
    for (int d = 0; d < rank; d++) {
        layer->output.sides[d] = sides[d];
        weight->shape[2 + d] = options->window.kernel[d];
    }
    weight->count = product_of(weight);
    if (options->initialisation == DV_INITIALISATION_UNIFORM)
        weight->initialisation = DV_INITIALISE_UNIFORM, weight->fan = weight->count / first;
    else
        weight->initialisation = DV_INITIALISE_FAN_OUT, weight->fan = weight->count / second;
    *bias = (dv_parameter){
        .name = "bias", .rank = 1, .shape = {options->channels}, .initialisation = DV_INITIALISE_UNIFORM};
    bias->count = options->channels;
    bias->fan = weight->count / first;

    layer->parameter_count = options->bias ? 2 : 1;
    layer->buffer_count = 0;
    layer->input_need = DV_NEED_NUMBERS;
    layer->needed_for = 1u << 0; /* the weight */
    layer->output_need = DV_NEED_NOTHING;
    return check_output(layer, error);
}
