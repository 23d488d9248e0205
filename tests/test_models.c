/* The table of models: as many parameters as the published networks have, and torchvision's names. */
#include "check.h"

#include <division/models.h>
#include <math.h>

/* Parameters with the usual number of classes: torchvision's, and of the CIFAR forms those of their papers. */
static const struct {
    const char *model;
    size_t parameters;
} published[] = {
    {"resnet18", 11689512},        {"resnet50", 25557032},           {"resnet152", 60192808},
    {"wide_resnet50_2", 68883240}, {"densenet121", 7978856},         {"densenet161", 28681000},
    {"resnet164_cifar", 1703258},  {"resnet164_published", 1711322}, {"resnet20", 272474},
    {"resnet29_preact", 313562},
};

typedef struct network {
    dv_graph *graph;
    dv_plan *plan;
    dv_run *run;
} network;

/* Batch 1, on images as small as the model takes: parameters do not depend on them. */
static network network_new(const char *name, size_t side) {
    network n;
    dv_plan_options options = dv_plan_options_default();
    options.inference = 1;
    assert_ok(dv_model_build(name, DV_F32, 1, 0, side, &n.graph, &error));
    assert_ok(dv_plan_new(n.graph, &options, &n.plan, &error));
    return n;
}

static void parameters_are_as_published(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof published / sizeof *published; i++) {
        network n = network_new(published[i].model, 32);
        size_t parameters = dv_plan_totals(n.plan).parameters / sizeof(float);
        if (parameters != published[i].parameters)
            fail_msg("%s has %zu parameters, not %zu", published[i].model, parameters, published[i].parameters);
        dv_plan_free(n.plan);
        dv_graph_free(n.graph);
    }
}

static void names_are_torchvisions(void **state) {
    (void)state;
    static const char *const names[] = {"features.conv0.weight",
                                        "features.norm0.running_var",
                                        "features.denseblock2.denselayer12.norm2.bias",
                                        "features.denseblock4.denselayer16.conv2.weight",
                                        "features.transition3.conv.weight",
                                        "features.norm5.weight",
                                        "classifier.bias"};
    network n = network_new("densenet121", 32);
    assert_ok(dv_run_new(n.plan, 1, &n.run, &error));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const dv_run_parameter *p;
        size_t k = 0;
        while ((p = dv_run_parameter_at(n.run, k)) && strcmp(p->name, names[i]) != 0)
            k++;
        if (!p)
            fail_msg("densenet121 has no %s", names[i]);
    }
    dv_run_free(n.run);
    dv_plan_free(n.plan);
    dv_graph_free(n.graph);
}

/* Mean square of the first weights of layer1.0.conv2, which has 64 x 9 connections on both sides. */
static double initialisation(const char *name) {
    network n = network_new(name, 32);
    double sum = 0;
    assert_ok(dv_run_new(n.plan, 1, &n.run, &error));
    const dv_run_parameter *p = NULL;
    for (size_t k = 0; (p = dv_run_parameter_at(n.run, k)) && strcmp(p->name, "layer1.0.conv2.weight") != 0; k++)
        ;
    assert_non_null(p);
    for (size_t i = 0; i < p->count; i++)
        sum += (double)p->data[i] * (double)p->data[i];
    sum /= (double)p->count;
    dv_run_free(n.run);
    dv_plan_free(n.plan);
    dv_graph_free(n.graph);
    return sum;
}

static void initialisations_are_as_published(void **state) {
    (void)state;
    assert_true(fabs(initialisation("resnet18") * 64 * 9 - 2) < 0.05);
    assert_true(fabs(initialisation("resnet18_cifar") * 64 * 9 - 1.0 / 3) < 0.01);
}

static void an_unknown_model_is_an_error_that_names_the_nearest(void **state) {
    (void)state;
    dv_graph *graph;
    assert_fails(dv_model_build("resnet19", DV_F32, 1, 0, 0, &graph, &error), DV_ERROR_OPTION,
                 "did you mean resnet18?");
    assert_fails(dv_model_build("vgg16", DV_F32, 1, 0, 0, &graph, &error), DV_ERROR_OPTION, "division models");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_are_as_published),
        cmocka_unit_test(names_are_torchvisions),
        cmocka_unit_test(initialisations_are_as_published),
        cmocka_unit_test(an_unknown_model_is_an_error_that_names_the_nearest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
