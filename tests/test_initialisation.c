/* What weights begin as: bounds, mean and variance of each kind of layer, and of whole models. */
#include "check.h"

#include <division/models.h>
#include <math.h>

typedef struct network {
    dv_graph *graph;
    dv_plan *plan;
    dv_run *run;
} network;

/* The run of a finished graph, which it takes over. */
static network network_of(dv_graph *graph) {
    network n = {.graph = graph};
    dv_plan_options options = dv_plan_options_default();
    options.inference = 1;
    assert_ok(dv_plan_new(n.graph, &options, &n.plan, &error));
    assert_ok(dv_run_new(n.plan, 7, &n.run, &error));
    return n;
}

static void network_free(network *n) {
    dv_run_free(n->run);
    dv_plan_free(n->plan);
    dv_graph_free(n->graph);
}

static const dv_run_parameter *find(const network *n, const char *name) {
    const dv_run_parameter *p;
    for (size_t i = 0; (p = dv_run_parameter_at(n->run, i)) != NULL; i++)
        if (strcmp(p->name, name) == 0)
            return p;
    fail_msg("there is no parameter %s", name);
    return NULL;
}

/* Incoming connections, as PyTorch counts them: all of a weight's shape but its first number. */
static size_t connections(const dv_run_parameter *weight) {
    return weight->count / weight->shape[0];
}

/* Mean and variance are within five of their own deviations of those of numbers with the given variance (and the fourth
 * moment `kurtosis` times its square). */
static void assert_moments(const dv_run_parameter *p, double variance, double kurtosis) {
    double sum = 0, squares = 0, count = (double)p->count;
    for (size_t i = 0; i < p->count; i++) {
        sum += (double)p->data[i];
        squares += (double)p->data[i] * (double)p->data[i];
    }
    if (fabs(sum / count) > 5 * sqrt(variance / count))
        fail_msg("%s: mean %g", p->name, sum / count);
    if (fabs(squares / count - variance) > 5 * variance * sqrt((kurtosis - 1) / count))
        fail_msg("%s: variance %g, and not %g", p->name, squares / count, variance);
}

/* Uniform within 1 / sqrt(incoming): variance a third of the bound's square. The bound is nearly reached. */
static void assert_uniform(const dv_run_parameter *p, size_t incoming) {
    double bound = 1 / sqrt((double)incoming), largest = 0;
    for (size_t i = 0; i < p->count; i++)
        if (fabs((double)p->data[i]) > largest) /* fmax is an internal error of gcc 12 for AArch64 */
            largest = fabs((double)p->data[i]);
    if (largest > bound * 1.000001 || largest < bound * (1 - 12.0 / (double)p->count))
        fail_msg("%s: at most %g, and not %g", p->name, largest, bound);
    assert_moments(p, bound * bound / 3, 1.8);
}

static void assert_all(const dv_run_parameter *p, float number) {
    for (size_t i = 0; i < p->count; i++)
        if (p->data[i] != number)
            fail_msg("%s: %g, and not %g", p->name, (double)p->data[i], (double)number);
}

/* ---- layers -------------------------------------------------------------------------------- */

static dv_graph *graph_of_each(dv_initialisation initialisation) {
    dv_graph *graph;
    assert_ok(dv_graph_new(DV_F32, 1, &graph, &error));
    dv_value x = dv_graph_input(graph, 24, 2, (const size_t[]){6, 6});
    dv_convolution_options options = {.channels = 80,
                                      .window = dv_window_square(3, 1, 1),
                                      .groups = 1,
                                      .bias = true,
                                      .initialisation = initialisation};
    x = dv_graph_convolution(graph, "conv", x, &options);
    options.groups = 4;
    x = dv_graph_convolution(graph, "grouped", x, &options);
    x = dv_graph_batch_norm(graph, "norm", x);
    options.groups = 1, options.channels = 56;
    x = dv_graph_transposed_convolution(graph, "transposed", x, &options);
    x = dv_graph_global_average_pooling(graph, "pool", x);
    x = dv_graph_linear(graph, "linear", x, &(dv_linear_options){.channels = 100, .bias = true});
    assert_ok(dv_graph_finish(graph, x, &error));
    return graph;
}

/* Of PyTorch 2: Conv2d(24, 80, 3), Conv2d(80, 80, 3, groups=4), ConvTranspose2d(80, 56, 3), Linear(56, 100). */
static void layers_begin_as_pytorchs(void **state) {
    (void)state;
    static const struct {
        const char *layer;
        size_t incoming;
    } layers[] = {{"conv", 24 * 9}, {"grouped", 20 * 9}, {"transposed", 56 * 9}, {"linear", 56}};
    network n = network_of(graph_of_each(DV_INITIALISATION_UNIFORM));
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s.weight", layers[i].layer);
        assert_int_equal(connections(find(&n, name)), layers[i].incoming);
        assert_uniform(find(&n, name), layers[i].incoming);
        snprintf(name, sizeof name, "%s.bias", layers[i].layer);
        assert_uniform(find(&n, name), layers[i].incoming);
    }
    assert_all(find(&n, "norm.weight"), 1);
    assert_all(find(&n, "norm.bias"), 0);
    network_free(&n);
}

static void layers_begin_as_he_has_it(void **state) {
    (void)state;
    network n = network_of(graph_of_each(DV_INITIALISATION_HE));
    assert_moments(find(&n, "conv.weight"), 2.0 / (80 * 9), 3);
    assert_moments(find(&n, "grouped.weight"), 2.0 / (80 * 9), 3);
    assert_moments(find(&n, "transposed.weight"), 2.0 / (80 * 9), 3);
    assert_uniform(find(&n, "linear.weight"), 56);
    network_free(&n);
}

/* ---- models -------------------------------------------------------------------------------- */

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), count = strlen(end);
    return length >= count && strcmp(text + length - count, end) == 0;
}

/* Weights of one number per channel, and biases behind them, are those of a norm. */
static void assert_begins_as_pytorchs(const dv_run_parameter *p, const dv_run_parameter *weight) {
    if (ends_with(p->name, ".running_mean") || ends_with(p->name, ".running_var"))
        assert_all(p, ends_with(p->name, "var"));
    else if (weight->rank == 1)
        assert_all(p, p == weight);
    else
        assert_uniform(p, connections(weight));
}

static void every_model_can_begin_as_pytorchs(void **state) {
    (void)state;
    static const char *const models[] = {"resnet18",        "resnet18_cifar",      "resnet20",
                                         "resnet164_cifar", "resnet164_published", "densenet121"};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        const dv_model_options options = {.batch = 1, .side = 32, .initialisation = DV_MODEL_INITIALISATION_PYTORCH};
        const dv_run_parameter *p, *weight = NULL;
        dv_graph *graph;
        assert_ok(dv_model_build_with(models[i], &options, &graph, &error));
        network n = network_of(graph);
        for (size_t k = 0; (p = dv_run_parameter_at(n.run, k)) != NULL; k++) {
            weight = ends_with(p->name, ".weight") ? p : weight;
            assert_begins_as_pytorchs(p, weight);
        }
        network_free(&n);
    }
}

static void wrong_options_are_refused(void **state) {
    (void)state;
    dv_graph *graph;
    assert_fails(dv_model_build_with("resnet20", &(dv_model_options){.batch = 1, .initialisation = 2}, &graph, &error),
                 DV_ERROR_OPTION, "initialisation: 2: must be from 0 to 1");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_begin_as_pytorchs),
        cmocka_unit_test(layers_begin_as_he_has_it),
        cmocka_unit_test(every_model_can_begin_as_pytorchs),
        cmocka_unit_test(wrong_options_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
