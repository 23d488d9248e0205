/* Methods that differ in memory and time alone: over many steps every parameter, running statistic and loss is that of
 * the method that they are held to, to the bit. DV_ALIKE_STEPS=20 in the environment: so many steps of every network.
 */
#include "check.h"

#include <division/graph.h>
#include <division/models.h>

static const struct {
    const char *method, *as;
} pairs[] = {
    {"checkpoint", "none"},
    {"checkpoint:segments=2", "none"},
    {"checkpoint:segments=1000", "none"},
    {"swap", "none"},
    {"actnn:level=L0", "none"},
    {"division:spill=on", "division"},
    {"division:spill=on,recompute=norms", "division:recompute=norms"},
};

enum { PAIRS = sizeof pairs / sizeof *pairs };

/* ---- networks -------------------------------------------------------------------------------- */

/* Convolutions, norms and dropout, in two dimensions and behind the pooling. */
static dv_status dropout_network(dv_type type, size_t batch, dv_graph **graph, dv_error *error) {
    const dv_convolution_options convolution = {.channels = 16, .window = dv_window_square(3, 1, 1), .groups = 1};
    const dv_pooling_options pooling = {.window = dv_window_square(3, 2, 1)};
    dv_status status = dv_graph_new(type, batch, graph, error);
    if (status != DV_OK)
        return status;
    dv_graph *g = *graph;
    dv_value x = dv_graph_input(g, 3, 2, (const size_t[]){15, 17});
    for (int i = 0; i < 3; i++) {
        static const char *const names[3][5] = {{"conv1", "bn1", "relu1", "drop1", "pool1"},
                                                {"conv2", "bn2", "relu2", "drop2", "pool2"},
                                                {"conv3", "bn3", "relu3", "drop3", "pool3"}};
        x = dv_graph_convolution(g, names[i][0], x, &convolution);
        x = dv_graph_relu(g, names[i][2], dv_graph_batch_norm(g, names[i][1], x));
        x = dv_graph_dropout(g, names[i][3], x, 0.3f);
        x = dv_graph_max_pooling(g, names[i][4], x, &pooling);
    }
    x = dv_graph_dropout(g, "drop4", dv_graph_global_average_pooling(g, "pool", x), 0.5f);
    x = dv_graph_linear(g, "fc", x, &(dv_linear_options){.channels = 10, .bias = true});
    return dv_graph_finish(g, x, error);
}

typedef struct network {
    const char *name; /* of a model, or NULL: the network with dropout */
    size_t batch, side, steps;
    dv_type type;
} network;

static const network networks[] = {
    {NULL, 20, 0, 8, DV_F32},
    {NULL, 5, 0, 8, DV_BF16},
    {"resnet20", 4, 32, 4, DV_F32},
    {"resnet50", 2, 64, 2, DV_F32},
    {"densenet121_cifar", 2, 32, 2, DV_F32},
    {"resnet50", 2, 64, 2, DV_BF16},
};

/* ---- runs ------------------------------------------------------------------------------------ */

typedef struct trained {
    dv_plan *plan;
    dv_run *run;
} trained;

static trained trained_new(dv_graph *graph, const char *method) {
    trained t;
    dv_plan_options options = dv_plan_options_default();
    options.method = method;
    assert_ok(dv_plan_new(graph, &options, &t.plan, &error));
    assert_ok(dv_run_new(t.plan, 1, &t.run, &error));
    return t;
}

static void trained_free(trained t) {
    dv_run_free(t.run);
    dv_plan_free(t.plan);
}

static double train(const trained *t, uint32_t number) {
    const dv_map *map = dv_run_input_map(t->run);
    const dv_run_parameter *p;
    dv_step_result result;
    for (size_t i = 0; i < dv_map_elements(map); i++) {
        float value = (float)((i * 2654435761u + number * 40503u) >> 16 & 255) / 128 - 1;
        uint32_t word;
        memcpy(&word, &value, sizeof word);
        if (map->type == DV_F32)
            ((float *)dv_run_input(t->run))[i] = value;
        else
            ((uint16_t *)dv_run_input(t->run))[i] = (uint16_t)(word >> 16);
    }
    for (size_t n = 0; n < map->images; n++)
        dv_run_labels(t->run)[n] = (int32_t)((n + number) % 10);
    assert_ok(dv_run_train(t->run, &(dv_step){.batch = number}, &result, &error));
    for (size_t i = 0; (p = dv_run_parameter_at(t->run, i)); i++)
        for (size_t j = 0; p->gradient && j < p->count; j++) {
            p->data[j] -= 0.02f * p->gradient[j];
            p->gradient[j] = 0;
        }
    return result.loss;
}

static void compare(const network *of, const char *method, const trained *exact, const trained *other) {
    const dv_run_parameter *p, *q;
    for (size_t i = 0; (p = dv_run_parameter_at(exact->run, i)); i++) {
        q = dv_run_parameter_at(other->run, i);
        if (memcmp(p->data, q->data, p->count * sizeof(float)) != 0)
            fail_msg("%s, %s, %s: another %s", of->name ? of->name : "dropout", dv_type_name(of->type), method,
                     p->name);
    }
}

static dv_graph *build(const network *of) {
    dv_graph *graph = NULL;
    if (of->name)
        assert_ok(dv_model_build(of->name, of->type, of->batch, 10, of->side, &graph, &error));
    else
        assert_ok(dropout_network(of->type, of->batch, &graph, &error));
    return graph;
}

/* Both methods of a pair side by side, on one graph. */
static void check_pair(const network *of, dv_graph *graph, const char *method, const char *as) {
    const char *wanted = getenv("DV_ALIKE_STEPS");
    size_t steps = wanted ? strtoul(wanted, NULL, 10) : test_scale() > 1 ? 2 : of->steps;
    const char *name = of->name ? of->name : "dropout";
    trained expected = trained_new(graph, as), other = trained_new(graph, method);
    for (uint32_t step = 0; step < steps; step++)
        if (train(&other, step) != train(&expected, step))
            fail_msg("%s, %s, %s: another loss in step %u", name, dv_type_name(of->type), method, step);
    compare(of, method, &expected, &other);
    print_message("%s, %s, %s: %zu bytes planned, of %zu with %s\n", name, dv_type_name(of->type), method,
                  dv_plan_totals(other.plan).planned, dv_plan_totals(expected.plan).planned, as);
    trained_free(expected);
    trained_free(other);
}

static void methods_train_alike(void **state) {
    (void)state;
    size_t count = sizeof networks / sizeof *networks;
    for (size_t i = 0; i < count; i++) {
        if (test_scale() > 1 && networks[i].name)
            continue;
        dv_graph *graph = build(&networks[i]);
        for (size_t p = 0; p < PAIRS; p++)
            check_pair(&networks[i], graph, pairs[p].method, pairs[p].as);
        dv_graph_free(graph);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(methods_train_alike),
    };
    return cmocka_run_group_tests_name("methods alike", tests, NULL, NULL);
}
