/* The method `lean`: who keeps what, and in how many bytes. (Random graphs hold its gradients to the exact ones.) */
#include "check.h"
#include "graph/plan.h"

#include <division/models.h>
#include <string.h>

static dv_plan *plan_of(const char *model, int side, const char *method) {
    dv_plan_options options = dv_plan_options_default();
    dv_graph *graph;
    dv_plan *plan;
    assert_ok(dv_model_build(model, DV_F32, 2, 0, (size_t)side, &graph, &error));
    options.method = method;
    assert_ok(dv_plan_new(graph, &options, &plan, &error));
    dv_graph_free(graph);
    return plan;
}

static const char *keeper_of(const dv_plan *plan, const char *layer) {
    const dv_plan_row *row;
    for (size_t i = 0; (row = dv_plan_row_at(plan, i)); i++)
        if (strcmp(row->layer, layer) == 0)
            return row->keeper;
    fail_msg("no layer %s", layer);
    return NULL;
}

typedef struct expected {
    const char *layer, *keeper;
} expected;

static void check_keepers(const char *model, const char *method, const expected *rows, size_t count) {
    dv_plan *plan = plan_of(model, 0, method);
    for (size_t i = 0; i < count; i++)
        assert_string_equal(keeper_of(plan, rows[i].layer), rows[i].keeper);
    dv_plan_free(plan);
}

static void one_code_for_norm_and_mask(void **state) {
    (void)state;
    static const expected resnet[] = {{"input", "packed"},
                                      {"conv1", "lean"},
                                      {"bn1", "recomputed"},
                                      {"layer1.0.conv2", "lean"},
                                      {"layer1.0.bn2", "recomputed"},
                                      {"avgpool", "exact"}};
    check_keepers("resnet20", "lean", resnet, sizeof resnet / sizeof *resnet);
}

/* A chain of the length of its bound ends with a value that is kept. */
static void chains_end(void **state) {
    (void)state;
    static const expected resnet[] = {
        {"layer1.0.bn2", "recomputed"}, {"layer1.1.bn2", "packed"}, {"layer1.2.bn2", "recomputed"}};
    check_keepers("resnet20", "lean:chain=2", resnet, sizeof resnet / sizeof *resnet);
}

static void a_mask_lies_beside(void **state) {
    (void)state;
    static const expected unmasked[] = {{"conv1", "packed"}, {"bn1", "recomputed + mask"}};
    check_keepers("resnet20", "lean:mask=off", unmasked, sizeof unmasked / sizeof *unmasked);
    static const expected dense[] = {{"features.denseblock1.denselayer1.conv2", "packed"},
                                     {"features.denseblock1.denselayer2.conv1", "lean"},
                                     {"features.denseblock1.denselayer2.norm1", "recomputed + mask"}};
    check_keepers("densenet121_cifar", "lean", dense, sizeof dense / sizeof *dense);
}

static size_t activations(const char *model, int side, const char *method) {
    dv_plan *plan = plan_of(model, side, method);
    size_t bytes = dv_plan_totals(plan).activations;
    dv_plan_free(plan);
    return bytes;
}

static void bytes_are_few(void **state) {
    (void)state;
    static const struct {
        const char *model;
        size_t times;
    } cases[] = {{"resnet50", 20}, {"wide_resnet50_2", 20}, {"densenet161", 30}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_true(activations(cases[i].model, 224, "none") >=
                    cases[i].times * activations(cases[i].model, 224, "lean"));
}

/* A few images have too few samples of a map for a channel, unless every pixel is one. */
static void samples_are_many_or_none(void **state) {
    (void)state;
    size_t without = activations("resnet20", 32, "lean:sample=0");
    assert_int_equal(activations("resnet20", 32, "lean"), without);
    assert_true(activations("resnet20", 32, "lean:sample=1") > without);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_code_for_norm_and_mask), cmocka_unit_test(chains_end),
        cmocka_unit_test(a_mask_lies_beside),         cmocka_unit_test(bytes_are_few),
        cmocka_unit_test(samples_are_many_or_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
