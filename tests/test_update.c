/* Updates of parameters in a run: behind each backward where gradients are transient, all at once where they are kept;
 * groups, clipping, and what is refused. */
#include "check.h"
#include "graph/run.h"
#include "optimizer/clip.h"

#include <division/models.h>
#include <math.h>

enum { BATCH = 4, SIDE = 16, CLASSES = 10 };

typedef struct network {
    dv_graph *graph;
    dv_plan *plan;
    dv_run *run;
} network;

static network network_new(const dv_plan_options *options) {
    network n;
    assert_ok(dv_model_build("resnet20", DV_F32, BATCH, CLASSES, SIDE, &n.graph, &error));
    assert_ok(dv_plan_new(n.graph, options, &n.plan, &error));
    assert_ok(dv_run_new(n.plan, 1, &n.run, &error));
    return n;
}

static void network_free(network n) {
    dv_run_free(n.run);
    dv_plan_free(n.plan);
    dv_graph_free(n.graph);
}

static void fill_batch(dv_run *run, uint32_t number) {
    float *images = dv_run_input(run);
    for (size_t i = 0; i < dv_map_elements(dv_run_input_map(run)); i++)
        images[i] = (float)((i + 1) * (number + 1) * 2654435761u >> 8 & 255) / 128 - 1;
    for (size_t i = 0; i < BATCH; i++)
        dv_run_labels(run)[i] = (int32_t)((i + number) % CLASSES);
}

static void step(network n, uint64_t number) {
    dv_step_result result;
    fill_batch(n.run, (uint32_t)number);
    assert_ok(dv_run_train(n.run, &(dv_step){.batch = number, .rate = 0.1, .update = number}, &result, &error));
}

static const dv_run_parameter *parameter_named(const dv_run *run, const char *name) {
    const dv_run_parameter *p = NULL;
    for (size_t i = 0; (p = dv_run_parameter_at(run, i)) && strcmp(p->name, name) != 0; i++)
        continue;
    assert_non_null(p);
    return p;
}

/* ---- transient gradients ------------------------------------------------------------------- */

/* Every layer with parameters is updated right behind its backward, and no gradient is to be had. */
static void updates_stand_behind_backward(void **state) {
    (void)state;
    dv_plan_options options = dv_plan_options_default();
    network kept = network_new(&options);
    options.gradients = DV_GRADIENTS_TRANSIENT;
    network n = network_new(&options);
    const dv_plan_operation *before = NULL, *now;
    size_t updates = 0, layers = 0;
    for (size_t i = 0; (now = dv_plan_operation_at(n.plan, i)); before = now, i++) {
        if (strcmp(now->kind, "update") != 0)
            continue;
        assert_string_equal(before->kind, "backward");
        assert_string_equal(before->subject, now->subject);
        updates++;
    }
    for (size_t i = 0; i < n.graph->layer_count; i++)
        layers += n.graph->layers[i].layer.parameter_count > 0;
    assert_int_equal(updates, layers);
    dv_plan_summary of = dv_plan_totals(n.plan), all = dv_plan_totals(kept.plan);
    assert_int_equal(of.gradients, 0);
    assert_int_equal(all.gradients, of.parameters);
    assert_true(of.planned < all.planned);
    for (size_t i = 0; dv_run_parameter_at(n.run, i); i++)
        assert_null(dv_run_parameter_at(n.run, i)->gradient);
    assert_int_equal(dv_run_gradients(n.run), DV_GRADIENTS_TRANSIENT);
    assert_fails(dv_run_update(n.run, 0.1, 0, &error), DV_ERROR_ARGUMENT, "steps update the parameters");
    network_free(kept);
    network_free(n);
}

/* An operation that reads parameters behind their update is found when the plan is made. */
static void a_late_reader_is_found(void **state) {
    (void)state;
    dv_plan_options options = dv_plan_options_default();
    options.gradients = DV_GRADIENTS_TRANSIENT;
    network n = network_new(&options);
    int last = (int)n.graph->layer_count - 1;
    int late = n.plan->layers[last].data[0];
    n.plan->touched[n.plan->told[n.plan->operation_count - 1].first].piece = (size_t)late;
    assert_fails(dv_plan_check_updates(n.plan, &error), DV_ERROR_ARGUMENT, "reads parameters of fc, which are updated");
    network_free(n);
}

/* Infinite images make an infinite loss, or none at all: either way no parameter has moved. */
static void a_loss_that_is_not_finite_updates_nothing(void **state) {
    (void)state;
    dv_plan_options options = dv_plan_options_default();
    options.method = "none";
    options.gradients = DV_GRADIENTS_TRANSIENT;
    network n = network_new(&options), fresh = network_new(&options);
    const dv_run_parameter *bias = parameter_named(n.run, "fc.bias"), *p;
    dv_step_result result;
    bias->data[0] = parameter_named(fresh.run, "fc.bias")->data[0] = 3e38f;
    bias->data[1] = parameter_named(fresh.run, "fc.bias")->data[1] = -3e38f;
    fill_batch(n.run, 0);
    assert_int_equal(dv_run_train(n.run, &(dv_step){.rate = 0.1}, &result, NULL), DV_ERROR_NONFINITE);
    assert_true(dv_run_failed(n.run));
    for (size_t i = 0; (p = dv_run_parameter_at(n.run, i)); i++)
        if (!strstr(p->name, "running"))
            assert_memory_equal(p->data, dv_run_parameter_at(fresh.run, i)->data, p->count * sizeof(float));
    network_free(n);
    network_free(fresh);
}

/* ---- groups -------------------------------------------------------------------------------- */

static void groups_have_their_own_rate_and_decay(void **state) {
    (void)state;
    dv_plan_options options = dv_plan_options_default();
    options.optimizer = "sgd:momentum=0,decay=0.5";
    options.groups = "fc.weight:rate=4;vectors:decay=0";
    network n = network_new(&options);
    static const struct {
        const char *name;
        float rate, decay;
    } expected[] = {
        {"conv1.weight", 0.5f, 0.5f}, {"fc.weight", 2, 0.5f}, {"fc.bias", 0.5f, 0}, {"bn1.weight", 0.5f, 0}};
    step(n, 0);
    float before[4], gradient[4];
    for (size_t i = 0; i < 4; i++) {
        const dv_run_parameter *p = parameter_named(n.run, expected[i].name);
        before[i] = p->data[0];
        gradient[i] = p->gradient[0];
    }
    assert_ok(dv_run_update(n.run, 0.5, 0, &error));
    for (size_t i = 0; i < 4; i++) {
        float after = before[i] - expected[i].rate * (gradient[i] + expected[i].decay * before[i]);
        assert_true(parameter_named(n.run, expected[i].name)->data[0] == after);
    }
    network_free(n);
}

/* ---- clipping ------------------------------------------------------------------------------ */

static double norm_of_gradients(const dv_run *run) {
    const dv_run_parameter *p;
    double sum = 0;
    for (size_t i = 0; (p = dv_run_parameter_at(run, i)); i++)
        for (size_t k = 0; p->gradient && k < p->count; k++)
            sum += (double)p->gradient[k] * p->gradient[k];
    return sqrt(sum);
}

/* A step along the gradient is as long as the rate times the norm that is asked for. */
static void gradients_are_clipped(void **state) {
    (void)state;
    static const double parts[] = {0.01, 1.5}; /* of the norm */
    dv_plan_options options = dv_plan_options_default();
    options.optimizer = "sgd:momentum=0,decay=0";
    for (size_t i = 0; i < 2; i++) {
        network probe = network_new(&options);
        step(probe, 0);
        double norm = norm_of_gradients(probe.run);
        options.clip = parts[i] * norm;
        network n = network_new(&options);
        step(n, 0);
        const dv_run_parameter *p = parameter_named(n.run, "conv1.weight");
        float before = p->data[3], gradient = p->gradient[3], scale = (float)dv_clip_factor(options.clip, norm);
        assert_ok(dv_run_update(n.run, 0.5, 0, &error));
        assert_true(fabsf(p->data[3] - (before - 0.5f * scale * gradient)) <= 1e-6f * fabsf(before));
        assert_true(i == 0 ? scale < 0.0101f : scale == 1);
        assert_true(norm_of_gradients(n.run) == 0);
        options.clip = 0;
        network_free(probe);
        network_free(n);
    }
}

static void a_norm_that_is_not_finite_updates_nothing(void **state) {
    (void)state;
    dv_plan_options options = dv_plan_options_default();
    options.clip = 1;
    network n = network_new(&options);
    step(n, 0);
    const dv_run_parameter *p = parameter_named(n.run, "fc.bias");
    float before = p->data[0];
    p->gradient[1] = INFINITY;
    assert_fails(dv_run_update(n.run, 0.1, 0, &error), DV_ERROR_NONFINITE, "the norm of the gradients is inf");
    assert_true(p->data[0] == before && dv_run_failed(n.run));
    assert_fails(dv_run_update(n.run, 0.1, 0, &error), DV_ERROR_ARGUMENT, "failed half-way");
    network_free(n);
}

/* ---- what is refused ----------------------------------------------------------------------- */

static void plans_say_what_is_wrong(void **state) {
    (void)state;
    static const struct {
        dv_plan_options options;
        const char *words;
    } cases[] = {
        {{.optimizer = "adam"}, "unknown optimizer"},
        {{.optimizer = "sgd", .clip = -1}, "clip: -1: must be a norm, or 0 for none"},
        {{.optimizer = "sgd", .clip = INFINITY}, "clip: inf"},
        {{.gradients = DV_GRADIENTS_TRANSIENT}, "transient gradients need an optimizer"},
        {{.optimizer = "sgd", .clip = 1, .gradients = DV_GRADIENTS_TRANSIENT}, "transient gradients can't be clipped"},
        {{.optimizer = "sgd", .groups = "head.*:rate=10"}, "groups: \"head.*\" matches no parameter"},
    };
    dv_graph *graph;
    dv_plan *plan;
    assert_ok(dv_model_build("resnet20", DV_F32, BATCH, CLASSES, SIDE, &graph, &error));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        dv_plan_options options = cases[i].options;
        options.method = "none";
        assert_fails(dv_plan_new(graph, &options, &plan, &error), DV_ERROR_OPTION, cases[i].words);
    }
    dv_graph_free(graph);
}

static void without_an_optimizer_there_is_no_update(void **state) {
    (void)state;
    dv_plan_options options = dv_plan_options_default();
    options.optimizer = NULL;
    network n = network_new(&options);
    assert_null(dv_run_optimizer(n.run));
    assert_null(parameter_named(n.run, "fc.bias")->optimizer);
    assert_fails(dv_run_update(n.run, 0.1, 0, &error), DV_ERROR_ARGUMENT, "planned without an optimizer");
    network_free(n);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(updates_stand_behind_backward),
        cmocka_unit_test(a_late_reader_is_found),
        cmocka_unit_test(a_loss_that_is_not_finite_updates_nothing),
        cmocka_unit_test(groups_have_their_own_rate_and_decay),
        cmocka_unit_test(gradients_are_clipped),
        cmocka_unit_test(a_norm_that_is_not_finite_updates_nothing),
        cmocka_unit_test(plans_say_what_is_wrong),
        cmocka_unit_test(without_an_optimizer_there_is_no_update),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
