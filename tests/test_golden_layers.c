/* Pooling, batch norm, leaky ReLU and the loss against PyTorch, on numbers that both sides make by formula:
 *
 *     /usr/bin/python3 tests/golden/layers.py > tests/golden/layers.inc
 *
 * Arrays are compared by the sum of element i times weight(i). */
#include "gradient.h"
#include "losses.h"

typedef struct golden_pooling {
    bool maximum;
    int rank;
    size_t sides[3], kernel, stride, padding;
    bool ceil, count_padding;
    size_t output_sides[3];
    double output, gradient;
} golden_pooling;

typedef struct golden_batch_norm {
    size_t sides[2];
    float momentum, epsilon;
    double output, gradient;
    double arrays[12]; /* gradients of weight and bias, running mean and variance */
} golden_batch_norm;

typedef struct golden_leaky_relu {
    size_t sides[2];
    float slope;
    double output, gradient;
} golden_leaky_relu;

typedef struct golden_loss {
    size_t classes;
    float smoothing;
    double loss, gradient;
} golden_loss;

typedef struct golden_map_loss {
    size_t sides[2], classes;
    float smoothing;
    size_t without; /* every so many-th pixel has no label */
    size_t counted;
    double loss, gradient;
} golden_map_loss;

#include "golden/layers.inc"

#define COUNT(array) (sizeof(array) / sizeof *(array))
enum { CHANNELS = 3, IMAGES = 2 };

static float *values(size_t count, size_t seed) {
    float *made = guarded_new(count * sizeof(float));
    for (size_t i = 0; i < count; i++)
        made[i] = (float)(int)(((uint32_t)((i + seed) * 2654435761u) >> 24) % 8) - 3;
    return made;
}

static double number(const float *x, size_t count) {
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (double)x[i] * ((double)(i * 7919 % 31) - 15);
    return sum;
}

static void assert_close(const char *what, size_t index, double got, double expected) {
    if (!(fabs(got - expected) <= 1e-4 * (1 + fabs(expected))))
        fail_msg("%s of case %zu: %.9g, PyTorch has %.9g", what, index, got, expected);
}

/* One forward and backward of a layer whose input is `x`; output and input's gradient are new. */
static void run(dv_layer *layer, const dv_layer_arrays *arrays, const float *x, float **output, float **gradient) {
    size_t in = dv_map_elements(&layer->inputs[0]), out = dv_map_elements(&layer->output);
    float *diff = values(out, 77);
    void *saved = guarded_new(layer->saved_bytes), *mask = guarded_new(IMAGES * dv_mask_stride(&layer->output));
    void *work = guarded_new(layer->forward_workspace_bytes + layer->backward_workspace_bytes);
    *output = guarded_new(out * sizeof(float));
    *gradient = guarded_new(in * sizeof(float));
    dv_forward forward = {.images = IMAGES,
                          .arrays = arrays,
                          .inputs = (const void *[]){x},
                          .output = *output,
                          .output_mask = layer->output_need == DV_NEED_MASK ? mask : NULL,
                          .saved = saved,
                          .workspace = work,
                          .training = true};
    assert_ok(layer->kind->forward(layer, &forward, &error));
    dv_kept input = {.access = &dv_keep_exact.access, .map = layer->inputs[0], .exact = x};
    dv_kept kept = {.map = layer->output, .mask = mask, .mask_access = &dv_keep_mask.access, .mask_in = &kept};
    dv_backward backward = {.images = IMAGES,
                            .arrays = arrays,
                            .diff_output = diff,
                            .diff_inputs = (void *[]){*gradient},
                            .accumulate = (bool[]){false},
                            .inputs = (const dv_kept *[]){&input},
                            .output = &kept,
                            .saved = saved,
                            .workspace = work};
    assert_ok(layer->kind->backward(layer, &backward, &error));
    guarded_free(diff, out * sizeof(float));
    guarded_free(saved, layer->saved_bytes);
    guarded_free(mask, IMAGES * dv_mask_stride(&layer->output));
    guarded_free(work, layer->forward_workspace_bytes + layer->backward_workspace_bytes);
}

/* Compares output and gradient, and frees them. */
static void finish(const dv_layer *layer, size_t index, float *output, double expected, float *gradient, double slope) {
    size_t in = dv_map_elements(&layer->inputs[0]), out = dv_map_elements(&layer->output);
    assert_close("output", index, number(output, out), expected);
    assert_close("gradient", index, number(gradient, in), slope);
    guarded_free(output, out * sizeof(float));
    guarded_free(gradient, in * sizeof(float));
}

static void pooling_is_pytorchs(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(poolings); i++) {
        const golden_pooling *golden = &poolings[i];
        dv_map map = {DV_F32, DV_NHWC, IMAGES, CHANNELS, golden->rank, {0}};
        memcpy(map.sides, golden->sides, sizeof map.sides);
        dv_pooling_options options = {dv_window_square(golden->kernel, golden->stride, golden->padding), golden->ceil,
                                      golden->count_padding};
        dv_layer layer = {.kind = golden->maximum ? &dv_max_pooling : &dv_average_pooling, .name = "tested"};
        layer.options = &options;
        layer.input_count = 1;
        layer.inputs = &map;
        assert_ok(layer.kind->infer(&layer, &error));
        if (layer.kind->prepare)
            assert_ok(layer.kind->prepare(&layer, &error));
        for (int d = 0; d < golden->rank; d++)
            assert_int_equal(layer.output.sides[d], golden->output_sides[d]);
        float *x = values(dv_map_elements(&map), 5), *output, *gradient;
        run(&layer, NULL, x, &output, &gradient);
        finish(&layer, i, output, golden->output, gradient, golden->gradient);
        guarded_free(x, dv_map_bytes(&map));
    }
}

/* With ReLU behind it. */
static void batch_norm_is_pytorchs(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(batch_norms); i++) {
        const golden_batch_norm *golden = &batch_norms[i];
        dv_map map = {DV_F32, DV_NHWC, IMAGES, CHANNELS, 2, {golden->sides[0], golden->sides[1]}};
        dv_batch_norm_options options = {golden->epsilon, golden->momentum, false, true};
        dv_layer layer = {.kind = &dv_batch_norm, .name = "tested", .options = &options, .input_count = 1};
        layer.inputs = &map;
        assert_ok(dv_batch_norm.infer(&layer, &error));
        assert_ok(dv_batch_norm.prepare(&layer, &error));
        float weight[] = {0.5f, -1.5f, 2}, bias[] = {0.25f, 1, -0.5f}, found[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1};
        dv_layer_arrays arrays = {
            .parameters = {weight, bias}, .gradients = {found, found + 3}, .buffers = {found + 6, found + 9}};
        float *x = values(dv_map_elements(&map), 9), *output, *gradient;
        run(&layer, &arrays, x, &output, &gradient);
        finish(&layer, i, output, golden->output, gradient, golden->gradient);
        for (size_t j = 0; j < 12; j++)
            assert_close("parameter or statistic", i, (double)found[j], golden->arrays[j]);
        guarded_free(x, dv_map_bytes(&map));
    }
}

static void leaky_relu_is_pytorchs(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(leaky_relus); i++) {
        const golden_leaky_relu *golden = &leaky_relus[i];
        dv_map map = {DV_F32, DV_NHWC, IMAGES, CHANNELS, 2, {golden->sides[0], golden->sides[1]}};
        dv_leaky_relu_options options = {golden->slope};
        dv_layer layer = {.kind = &dv_leaky_relu, .name = "tested", .options = &options, .input_count = 1};
        layer.inputs = &map;
        assert_ok(dv_leaky_relu.infer(&layer, &error));
        assert_ok(dv_leaky_relu.prepare(&layer, &error));
        float *x = values(dv_map_elements(&map), 9), *output, *gradient;
        run(&layer, NULL, x, &output, &gradient);
        finish(&layer, i, output, golden->output, gradient, golden->gradient);
        guarded_free(x, dv_map_bytes(&map));
    }
}

static void loss_is_pytorchs(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(losses); i++) {
        const golden_loss *golden = &losses[i];
        dv_map map = {DV_F32, DV_NHWC, IMAGES, golden->classes, 0, {0}};
        int32_t labels[] = {1, (int32_t)golden->classes - 1};
        float *logits = values(dv_map_elements(&map), 3), *diff = guarded_new(dv_map_bytes(&map));
        dv_loss_result result;
        assert_ok(cross_entropy(&map, logits, &(dv_targets){.data = labels, .smoothing = golden->smoothing}, 1, diff,
                                &result, &error));
        assert_close("loss", i, result.loss * IMAGES, golden->loss);
        assert_close("gradient", i, number(diff, dv_map_elements(&map)), golden->gradient);
        guarded_free(logits, dv_map_bytes(&map));
        guarded_free(diff, dv_map_bytes(&map));
    }
}

static void loss_of_maps_is_pytorchs(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(map_losses); i++) {
        const golden_map_loss *golden = &map_losses[i];
        dv_map map = {DV_F32, DV_NHWC, IMAGES, golden->classes, 2, {golden->sides[0], golden->sides[1]}};
        size_t rows = dv_map_elements(&map) / golden->classes;
        int32_t *labels = guarded_new(rows * sizeof *labels);
        float *logits = values(dv_map_elements(&map), 3), *diff = guarded_new(dv_map_bytes(&map));
        dv_loss_result result;
        for (size_t row = 0; row < rows; row++)
            labels[row] = row % golden->without == 0 ? DV_NO_LABEL : (int32_t)(row * 5 % golden->classes);
        assert_ok(cross_entropy(&map, logits, &(dv_targets){.data = labels, .smoothing = golden->smoothing}, 1, diff,
                                &result, &error));
        assert_int_equal(result.counted, golden->counted);
        assert_close("loss", i, result.loss, golden->loss);
        assert_close("gradient", i, number(diff, dv_map_elements(&map)), golden->gradient);
        guarded_free(labels, rows * sizeof *labels);
        guarded_free(logits, dv_map_bytes(&map));
        guarded_free(diff, dv_map_bytes(&map));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pooling_is_pytorchs),      cmocka_unit_test(batch_norm_is_pytorchs),
        cmocka_unit_test(leaky_relu_is_pytorchs),   cmocka_unit_test(loss_is_pytorchs),
        cmocka_unit_test(loss_of_maps_is_pytorchs),
    };
    return cmocka_run_group_tests_name("golden layers", tests, NULL, NULL);
}
