/* A small U-Net whose logits are maps, against PyTorch (tests/golden/unet.py): loss and every gradient, by the calls of
 * a step, with the library's loss and with the caller's. */
#include "check.h"

#include <division/graph.h>
#include <math.h>

enum { IMAGES = 2, SIDE = 12, PIXELS = SIDE * SIDE, CLASSES = 3 };

typedef struct golden_gradient {
    const char *name;
    double norm;
    size_t places[4];
    double elements[4];
} golden_gradient;

#include "golden/unet.inc"

#define SMOOTHING 0.1f

/* ---- numbers by formula ---------------------------------------------------------------------- */

/* The index-th number of a seed, from 0 to 1. */
static double uniform(uint32_t seed, size_t index) {
    uint32_t x = (uint32_t)index + seed;
    x = (x ^ x >> 16) * 0x7FEB352Du;
    x = (x ^ x >> 15) * 0x846CA68Bu;
    return (double)(x ^ x >> 16) * 0x1p-32;
}

static uint32_t name_seed(const char *name) {
    uint32_t h = 2166136261u;
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 16777619u;
    return h;
}

static void fill_parameters(dv_run *run) {
    const dv_run_parameter *p;
    for (size_t k = 0; (p = dv_run_parameter_at(run, k)); k++) {
        float centre = strstr(p->name, ".bn") && strstr(p->name, ".weight") ? 0.5f : -0.5f;
        for (size_t i = 0; p->gradient && i < p->count; i++)
            p->data[i] = (float)uniform(name_seed(p->name), i) + centre;
    }
}

static void fill_batch(dv_run *run) {
    float *images = dv_run_input(run);
    for (size_t i = 0; i < IMAGES * PIXELS * 3; i++)
        images[i] = (float)uniform(1000003u * BATCH_NUMBER, i) * 2 - 1;
    for (size_t i = 0; i < IMAGES * PIXELS; i++)
        dv_run_labels(run)[i] = (int32_t)(uniform(77777u + BATCH_NUMBER, i) * (CLASSES + 1)) - 1;
}

/* ---- the network ----------------------------------------------------------------------------- */

static dv_value convolve(dv_graph *graph, const char *block, int number, dv_value x, size_t channels) {
    const dv_convolution_options options = {.channels = channels, .window = dv_window_square(3, 1, 1), .groups = 1};
    char name[32];
    snprintf(name, sizeof name, "%s.conv%d", block, number);
    x = dv_graph_convolution(graph, name, x, &options);
    snprintf(name, sizeof name, "%s.bn%d", block, number);
    x = dv_graph_batch_norm(graph, name, x);
    snprintf(name, sizeof name, "%s.relu%d", block, number);
    return dv_graph_relu(graph, name, x);
}

static dv_value twice(dv_graph *graph, const char *block, dv_value x, size_t channels) {
    return convolve(graph, block, 2, convolve(graph, block, 1, x, channels), channels);
}

static dv_graph *unet(void) {
    const dv_pooling_options half = {.window = dv_window_square(2, 2, 0)};
    const dv_convolution_options up = {.channels = 8, .window = dv_window_square(2, 2, 0), .groups = 1, .bias = true};
    const dv_convolution_options classify = {
        .channels = CLASSES, .window = dv_window_square(1, 1, 0), .groups = 1, .bias = true};
    dv_graph *graph;
    assert_ok(dv_graph_new(DV_F32, IMAGES, &graph, &error));
    dv_value whole = twice(graph, "down1", dv_graph_input(graph, 3, 2, (const size_t[]){SIDE, SIDE}), 8);
    dv_value x = twice(graph, "down2", dv_graph_max_pooling(graph, "pool", whole, &half), 16);
    const dv_value both[] = {whole, dv_graph_transposed_convolution(graph, "up1.up1", x, &up)};
    x = twice(graph, "up1", dv_graph_concatenation(graph, "join", both, 2), 8);
    assert_ok(dv_graph_finish(graph, dv_graph_convolution(graph, "classify", x, &classify), &error));
    return graph;
}

static dv_run *run_new(const char *method) {
    dv_plan_options options = dv_plan_options_default();
    dv_graph *graph = unet();
    dv_plan *plan;
    dv_run *run;
    options.method = method;
    assert_ok(dv_plan_new(graph, &options, &plan, &error));
    assert_ok(dv_run_new(plan, 1, &run, &error));
    dv_plan_free(plan);
    dv_graph_free(graph);
    fill_parameters(run);
    return run;
}

/* ---- the comparison -------------------------------------------------------------------------- */

/* Rounding is below 1e-6 of the norm here; biases before a batch norm sum up to next to nothing. */
static void check_gradient(const dv_run_parameter *p, const golden_gradient *golden, double largest) {
    double sum = 0, allowed = 1e-5 * golden->norm + 1e-7 * largest;
    for (size_t i = 0; i < p->count; i++)
        sum += (double)p->gradient[i] * (double)p->gradient[i];
    if (!(fabs(sqrt(sum) - golden->norm) <= allowed))
        fail_msg("%s: norm %.9g, PyTorch's %.9g", p->name, sqrt(sum), golden->norm);
    for (int k = 0; k < 4; k++) {
        double own = (double)p->gradient[golden->places[k]];
        if (!(fabs(own - golden->elements[k]) <= allowed))
            fail_msg("%s, element %zu: %.9g, PyTorch's %.9g", p->name, golden->places[k], own, golden->elements[k]);
    }
}

static void check_gradients(dv_run *run) {
    size_t count = sizeof gradients / sizeof *gradients, found = 0;
    double largest = 0;
    const dv_run_parameter *p;
    for (size_t g = 0; g < count; g++)
        largest = fmax(largest, gradients[g].norm);
    for (size_t k = 0; (p = dv_run_parameter_at(run, k)); k++)
        for (size_t g = 0; g < count; g++)
            if (strcmp(p->name, gradients[g].name) == 0) {
                check_gradient(p, &gradients[g], largest);
                found++;
            }
    assert_int_equal(found, count);
}

static void gradients_are_pytorchs(void **state) {
    (void)state;
    static const char *const methods[] = {"none", "checkpoint", "checkpoint:segments=4"};
    for (size_t m = 0; m < 3; m++) {
        dv_run *run = run_new(methods[m]);
        dv_step_result result;
        fill_batch(run);
        assert_ok(dv_run_forward(run, &(dv_step){.batch = 0, .label_smoothing = SMOOTHING}, &error));
        assert_ok(dv_run_loss(run, &result, &error));
        assert_ok(dv_run_backward(run, &error));
        assert_int_equal(result.counted, COUNTED);
        assert_true(fabs(result.loss - golden_loss) < 1e-6);
        check_gradients(run);
        dv_run_free(run);
    }
}

/* d loss / d logits of one pixel, in plain words. */
static void write_gradient(const float *z, int32_t label, float *gradient) {
    double sum = 0;
    for (int k = 0; k < CLASSES; k++)
        sum += exp((double)z[k]);
    for (int k = 0; k < CLASSES; k++) {
        double wanted = (k == label ? 1 - (double)SMOOTHING : 0) + (double)SMOOTHING / CLASSES;
        gradient[k] = label < 0 ? 0 : (float)((exp((double)z[k]) / sum - wanted) / COUNTED);
    }
}

static void so_they_are_with_a_loss_of_the_callers(void **state) {
    (void)state;
    dv_run *run = run_new("none");
    int32_t labels[IMAGES * PIXELS];
    fill_batch(run);
    memcpy(labels, dv_run_labels(run), sizeof labels);
    memset(dv_run_labels(run), 0x7f, sizeof labels); /* of no use to anybody */
    assert_ok(dv_run_forward(run, &(dv_step){.batch = 0}, &error));
    const float *logits = dv_run_logits(run);
    float *gradient = dv_run_logits_gradient(run);
    for (size_t i = 0; i < IMAGES * PIXELS; i++)
        write_gradient(logits + i * CLASSES, labels[i], gradient + i * CLASSES);
    assert_ok(dv_run_backward(run, &error));
    check_gradients(run);
    dv_run_free(run);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_pytorchs),
        cmocka_unit_test(so_they_are_with_a_loss_of_the_callers),
    };
    return cmocka_run_group_tests_name("unet", tests, NULL, NULL);
}
