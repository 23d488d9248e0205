/* Whole networks: losses and gradients against PyTorch's (tests/golden/network.py made the files), the same bits
 * for the same seed, unbiased gradients under `division`, no allocation in a step, errors that say where. */
#include "base/float16.h"
#include "check.h"

#include <division/graph.h>
#include <division/models.h>
#include <math.h>

/* ---- weights, images and labels: the formulas of network.py --------------------------------- */

static double uniform(uint32_t seed, uint32_t position) {
    uint32_t x = position + seed;
    x = (x ^ x >> 16) * 0x7feb352d;
    x = (x ^ x >> 15) * 0x846ca68b;
    return (double)(x ^ x >> 16) * 0x1p-32;
}

static uint32_t name_seed(const char *name) {
    uint32_t hash = 2166136261u;
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 16777619u;
    return hash;
}

static int ends_with(const char *text, const char *end) {
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

/* At the end of a block. */
static int calm(const char *name) {
    return ends_with(name, "bn3.weight") || ends_with(name, "layer4.0.downsample.1.weight");
}

static void fill_parameters(dv_run *run) {
    size_t features = 0;
    const dv_run_parameter *p;
    for (size_t i = 0; (p = dv_run_parameter_at(run, i)); i++)
        if (strcmp(p->name, "fc.weight") == 0)
            features = p->shape[1];
    for (size_t i = 0; (p = dv_run_parameter_at(run, i)); i++) {
        for (size_t j = 0; !strstr(p->name, ".running_") && j < p->count; j++) {
            double u = uniform(name_seed(p->name), (uint32_t)j) - 0.5;
            if (p->rank == 4)
                u *= 2 * sqrt(6.0 / (double)(p->shape[0] * p->shape[2] * p->shape[3]));
            else if (p->rank == 2 || strcmp(p->name, "fc.bias") == 0)
                u *= 0.2 / sqrt((double)features);
            else
                u = u * 0.2 + (calm(p->name) ? 0.1 : ends_with(p->name, "weight") ? 1.0 : 0.0);
            p->data[j] = (float)u;
        }
    }
}

static void fill_statistics(dv_run *run) {
    const dv_run_parameter *p;
    for (size_t i = 0; (p = dv_run_parameter_at(run, i)); i++)
        for (size_t j = 0; strstr(p->name, ".running_") && j < p->count; j++) {
            double u = uniform(name_seed(p->name), (uint32_t)j);
            p->data[j] = (float)(ends_with(p->name, "running_mean") ? 0.2 * u - 0.1 : 0.5 + u);
        }
}

static void fill_batch(dv_run *run, uint32_t number, size_t classes) {
    const dv_map *map = dv_run_input_map(run);
    float *images = dv_run_input(run);
    for (size_t i = 0; i < dv_map_elements(map); i++) {
        float value = (float)(uniform(1000003 * (number + 1), (uint32_t)i) * 2 - 1);
        if (map->type == DV_F32)
            images[i] = value;
        else
            ((uint16_t *)images)[i] = dv_bf16_nearest(value);
    }
    for (size_t n = 0; n < map->images; n++)
        dv_run_labels(run)[n] = (int32_t)(uniform(77777 + number * 1000, (uint32_t)n) * (double)classes);
}

/* Plain SGD with weight decay, and gradients back to zero. */
static void update(dv_run *run, float rate, float decay) {
    const dv_run_parameter *p;
    for (size_t i = 0; (p = dv_run_parameter_at(run, i)); i++)
        for (size_t j = 0; p->gradient && j < p->count; j++) {
            p->data[j] -= rate * (p->gradient[j] + decay * p->data[j]);
            p->gradient[j] = 0;
        }
}

/* ---- runs ---------------------------------------------------------------------------------- */

typedef struct network {
    dv_graph *graph;
    dv_plan *plan;
    dv_run *run;
} network;

static network frozen_network_of(dv_type type, const char *model, size_t batch, size_t side, const char *method,
                                 const char *freeze) {
    network n;
    dv_plan_options options = dv_plan_options_default();
    options.method = method;
    options.freeze = freeze;
    options.optimizer = NULL;
    assert_ok(dv_model_build(model, type, batch, 10, side, &n.graph, &error));
    assert_ok(dv_plan_new(n.graph, &options, &n.plan, &error));
    assert_ok(dv_run_new(n.plan, 1, &n.run, &error));
    fill_parameters(n.run);
    if (freeze)
        fill_statistics(n.run);
    return n;
}

static network network_of(dv_type type, const char *model, size_t batch, size_t side, const char *method) {
    return frozen_network_of(type, model, batch, side, method, NULL);
}

static network network_new(const char *model, size_t batch, size_t side, const char *method) {
    return network_of(DV_F32, model, batch, side, method);
}

static void network_free(network n) {
    dv_run_free(n.run);
    dv_plan_free(n.plan);
    dv_graph_free(n.graph);
}

static const dv_run_parameter *parameter_named(const dv_run *run, const char *name) {
    const dv_run_parameter *p;
    for (size_t i = 0; (p = dv_run_parameter_at(run, i)); i++)
        if (strcmp(p->name, name) == 0)
            return p;
    fail_msg("no parameter %s", name);
    return NULL;
}

static double norm_of(const float *x, size_t count) {
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (double)x[i] * x[i];
    return sqrt(sum);
}

/* ---- against PyTorch ----------------------------------------------------------------------- */

/* How far gradients may be from PyTorch's, against their norm, and losses, relatively. */
#define GRADIENT_TOLERANCE 1e-4
#define LOSS_TOLERANCE 1e-3

/* "gradient NAME NORM i:value ...": each entry and the norm, against the norm. */
static void check_gradient(const dv_run *run, char *line) {
    char *rest = NULL, *name = strtok_r(line, " \n", &rest);
    double norm = strtod(strtok_r(NULL, " \n", &rest), NULL);
    const dv_run_parameter *p = parameter_named(run, name);
    double got = norm_of(p->gradient, p->count);
    if (fabs(got - norm) > GRADIENT_TOLERANCE * norm)
        fail_msg("%s: norm of the gradient %.9g, PyTorch's %.9g", name, got, norm);
    for (char *entry; (entry = strtok_r(NULL, " \n", &rest));) {
        char *colon = strchr(entry, ':');
        size_t index = strtoul(entry, NULL, 10);
        double value = strtod(colon + 1, NULL);
        if (fabs((double)p->gradient[index] - value) > GRADIENT_TOLERANCE * norm)
            fail_msg("%s[%zu]: gradient %.9g, PyTorch's %.9g, norm %.9g", name, index, p->gradient[index], value, norm);
    }
}

/* What is frozen is so in PyTorch by requires_grad_(False), and by eval() of batch norms. */
static void compare_with_pytorch(const char *model, size_t side, const char *freeze, const char *file) {
    char path[512], line[512];
    const char *source = getenv("DV_SOURCE_DIR");
    snprintf(path, sizeof path, "%s/tests/golden/%s", source ? source : ".", file);
    FILE *golden = fopen(path, "r");
    if (!golden)
        fail_msg("%s: not found: run the tests through ctest, or in the folder of the source", path);
    network n = frozen_network_of(DV_F32, model, 4, side, "none", freeze);
    const dv_run_parameter *p;
    unsigned steps = 0, gradients = 0, trained = 0;
    for (size_t i = 0; (p = dv_run_parameter_at(n.run, i)); i++)
        trained += p->gradient != NULL;
    while (fgets(line, sizeof line, golden)) {
        dv_step_result result;
        double expected;
        if (strncmp(line, "loss ", 5) == 0) {
            char *rest;
            unsigned long number = strtoul(line + 5, &rest, 10);
            expected = strtod(rest, NULL);
            if (steps > 0)
                update(n.run, 0.01f, 5e-4f);
            fill_batch(n.run, (uint32_t)number, 10);
            assert_ok(dv_run_train(n.run, &(dv_step){.batch = steps}, &result, &error));
            if (fabs(result.loss - expected) > LOSS_TOLERANCE * expected)
                fail_msg("%s: step %u: loss %.9g, PyTorch's %.9g", model, steps, result.loss, expected);
            steps++;
        } else if (strncmp(line, "gradient ", 9) == 0) {
            check_gradient(n.run, line + 9);
            gradients++;
        }
    }
    fclose(golden);
    assert_int_equal(steps, 20);
    assert_int_equal(gradients, trained);
    network_free(n);
}

static void resnet18_is_pytorchs(void **state) {
    (void)state;
    if (test_scale() > 1)
        leave_out("ResNet-18 beside PyTorch's: too long where every step is slow");
    compare_with_pytorch("resnet18_cifar", 32, NULL, "resnet18_cifar.txt");
    compare_with_pytorch("resnet18_cifar", 32, "conv1,bn1,layer1,layer3.0,layer4.0.bn?", "resnet18_cifar_frozen.txt");
}

static void resnet50_is_pytorchs(void **state) {
    (void)state;
    if (test_scale() > 1)
        leave_out("ResNet-50 beside PyTorch's: too long where every step is slow");
    compare_with_pytorch("resnet50", 64, NULL, "resnet50_64.txt");
    compare_with_pytorch("resnet50", 64, "conv1,bn1,layer[123]", "resnet50_64_frozen.txt");
}

/* ---- properties ---------------------------------------------------------------------------- */

static void same_seed_gives_the_same_bits(void **state) {
    (void)state;
    double losses[2][50];
    size_t steps = 50 / test_scale();
    memset(losses, 0, sizeof losses);
    for (int turn = 0; turn < 2; turn++) {
        network n = network_new("resnet20", 4, 16, "division:recompute=norms");
        for (unsigned step = 0; step < steps; step++) {
            dv_step_result result;
            fill_batch(n.run, step % 5, 10);
            assert_ok(dv_run_train(n.run, &(dv_step){.batch = step, .label_smoothing = 0.1f}, &result, &error));
            update(n.run, 0.02f, 5e-4f);
            losses[turn][step] = result.loss;
        }
        network_free(n);
    }
    assert_memory_equal(losses[0], losses[1], sizeof losses[0]);
}

/* At side 16 the last blocks of ResNet-18 see maps of one pixel: all of a window but its middle falls on padding. */
static void padding_has_no_gradient(void **state) {
    (void)state;
    static const char *const names[] = {"layer3.0.conv2.weight", "layer4.0.conv1.weight", "layer4.1.conv2.weight"};
    static const dv_type types[] = {DV_F32, DV_BF16};
    for (int i = 0; i < 2; i++) {
        network n = network_of(types[i], "resnet18", 4, 16, "none");
        dv_step_result result;
        fill_batch(n.run, 0, 10);
        assert_ok(dv_run_train(n.run, &(dv_step){.batch = 0}, &result, &error));
        for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
            const dv_run_parameter *p = parameter_named(n.run, names[k]);
            for (size_t j = 0; j < p->count; j++)
                if (!isfinite(p->gradient[j]) || (j % 9 != 4 && p->gradient[j] != 0))
                    fail_msg("%s: %s[%zu]: gradient %g", dv_type_name(types[i]), names[k], j, (double)p->gradient[j]);
        }
        network_free(n);
    }
}

/* The mean gradient over many seeds (here: steps, which key the noise as well) is that of `none`: but for `rest` of its
 * norm, what is left of the noise. */
static void check_unbiased(const char *method, double rest) {
    enum { TRIES = 200 };
    static const char *const names[] = {"conv1.weight",          "layer1.0.conv1.weight",
                                        "layer2.0.bn1.weight",   "layer2.1.conv2.weight",
                                        "layer3.2.conv2.weight", "layer3.0.downsample.0.weight"};
    network exact = network_new("resnet20", 4, 16, "none"), packed = network_new("resnet20", 4, 16, method);
    dv_step_result result;
    fill_batch(exact.run, 0, 10);
    assert_ok(dv_run_train(exact.run, &(dv_step){.batch = 0}, &result, &error));
    for (unsigned step = 0; step < TRIES; step++) { /* gradients add up */
        fill_batch(packed.run, 0, 10);
        assert_ok(dv_run_train(packed.run, &(dv_step){.batch = step, .scale = 1.0f / TRIES}, &result, &error));
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const dv_run_parameter *a = parameter_named(exact.run, names[i]), *b = parameter_named(packed.run, names[i]);
        double difference = 0, norm = norm_of(a->gradient, a->count);
        for (size_t j = 0; j < a->count; j++)
            difference += pow((double)a->gradient[j] - b->gradient[j], 2);
        print_message("%s: %s: |mean - exact| / |exact| = %.3f\n", method, names[i], sqrt(difference) / norm);
        assert_true(sqrt(difference) < rest * norm);
    }
    network_free(exact);
    network_free(packed);
}

static void gradients_are_unbiased_under_division(void **state) {
    (void)state;
    if (test_scale() > 1)
        leave_out("gradients on average: too long where every step is slow");
    check_unbiased("division", 0.12);
    check_unbiased("division:recompute=norms", 0.05);
}

static void a_nan_is_named(void **state) {
    (void)state;
    const char *const methods[] = {"none", "division"};
    const char *const told[] = {"bn1: mean nan", "input: division: NaN in image 0"};
    for (int i = 0; i < 2; i++) {
        network n = network_new("resnet20", 2, 16, methods[i]);
        dv_step_result result;
        fill_batch(n.run, 0, 10);
        ((float *)dv_run_input(n.run))[100] = NAN;
        assert_fails(dv_run_train(n.run, &(dv_step){.batch = 312}, &result, &error), DV_ERROR_NONFINITE, told[i]);
        network_free(n);
        n = network_new("resnet20", 2, 16, methods[i]);
        fill_batch(n.run, 0, 10);
        dv_run_labels(n.run)[1] = 10;
        assert_fails(dv_run_train(n.run, &(dv_step){.batch = 313}, &result, &error), DV_ERROR_ARGUMENT,
                     "loss: label 10 of image 1");
        network_free(n);
    }
}

static void division_keeps_a_tenth(void **state) {
    (void)state;
    dv_graph *graph;
    dv_plan *plan;
    size_t kept[2];
    dv_plan_options options = dv_plan_options_default();
    assert_ok(dv_model_build("resnet50", DV_F32, 32, 0, 0, &graph, &error));
    for (int i = 0; i < 2; i++) {
        options.method = i ? "division" : "none";
        assert_ok(dv_plan_new(graph, &options, &plan, &error));
        kept[i] = dv_plan_totals(plan).activations;
        dv_plan_free(plan);
    }
    print_message("ResNet-50, batch 32: %zu / %zu = %.2f\n", kept[0], kept[1], (double)kept[0] / (double)kept[1]);
    assert_true((double)kept[0] >= 10.5 * (double)kept[1]);
    dv_graph_free(graph);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resnet18_is_pytorchs),
        cmocka_unit_test(resnet50_is_pytorchs),
        cmocka_unit_test(same_seed_gives_the_same_bits),
        cmocka_unit_test(padding_has_no_gradient),
        cmocka_unit_test(gradients_are_unbiased_under_division),
        cmocka_unit_test(a_nan_is_named),
        cmocka_unit_test(division_keeps_a_tenth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
