/* What plans tell of their schedules: operations in their order, and of each the pieces that it touches, all of them
 * alive and no other read or written; and the bytes alive. */
#include "base/float16.h"
#include "check.h"
#include "graph/plan.h"
#include "random_graph.h"

#include <division/models.h>

/* The last goes on behind the next operations, from which nothing can be hidden then. */
static const char *const methods[] = {
    "none", "division", "division:recompute=norms", "checkpoint", "blpa", "actnn", "acgc", "lean", "swap"};

enum { METHODS = sizeof methods / sizeof *methods, METHODS_TO_HIDE_FROM = METHODS - 1 };

static dv_plan *plan_of(dv_graph *graph, const char *method, int inference, const dv_guard_options *guard) {
    dv_plan_options options = dv_plan_options_default();
    dv_plan *plan;
    options.method = method;
    options.inference = inference;
    assert_ok(dv_plan_new_guarded(graph, &options, guard, &plan, &error));
    return plan;
}

/* ---- a schedule, word by word ---------------------------------------------------------------- */

/* conv, norm + ReLU, conv, pooling, linear. */
static dv_graph *small_graph(void) {
    const dv_convolution_options conv = {.channels = 16, .window = dv_window_square(3, 1, 1), .groups = 1};
    dv_graph *graph;
    assert_ok(dv_graph_new(DV_F32, 2, &graph, &error));
    dv_value x = dv_graph_convolution(graph, "conv1", dv_graph_input(graph, 3, 2, (const size_t[]){8, 8}), &conv);
    x = dv_graph_convolution(graph, "conv2", dv_graph_relu(graph, "relu", dv_graph_batch_norm(graph, "norm", x)),
                             &conv);
    x = dv_graph_global_average_pooling(graph, "pool", x);
    assert_ok(dv_graph_finish(graph, dv_graph_linear(graph, "fc", x, &(dv_linear_options){.channels = 10}), &error));
    return graph;
}

/* One operation: what it is, and what it touches, "role of owner" each, but workspaces, which differ by machine. */
typedef struct line {
    const char *kind, *subject;
    const char *touched[10];
} line;

static const line division_lines[] = {
    {"forward",
     "conv1",
     {"packed output of input", "output of input", "output of conv1", "packed output of conv1", "parameters of conv1"}},
    {"forward",
     "norm",
     {"output of conv1", "output of norm", "packed output of norm", "mask of norm", "saved bytes of norm",
      "parameters of norm", "parameters of norm", "statistics of norm", "statistics of norm"}},
    {"forward", "conv2", {"output of norm", "output of conv2", "parameters of conv2"}},
    {"forward", "pool", {"output of conv2", "output of pool"}},
    {"forward", "fc", {"output of pool", "output of fc", "parameters of fc"}},
    {"loss",
     "fc",
     {"output of fc", "output's gradient of fc", "labels of input", "second labels of input",
      "label weights of input"}},
    {"backward",
     "fc",
     {"output's gradient of fc", "output of pool", "output's gradient of pool", "parameters of fc",
      "parameters' gradient of fc"}},
    {"backward", "pool", {"output's gradient of pool", "output's gradient of conv2"}},
    {"backward",
     "conv2",
     {"output's gradient of conv2", "packed output of norm", "mask of norm", "output's gradient of norm",
      "parameters of conv2", "parameters' gradient of conv2"}},
    {"backward",
     "norm",
     {"output's gradient of norm", "mask of norm", "packed output of conv1", "output's gradient of conv1",
      "saved bytes of norm", "parameters of norm", "parameters of norm", "parameters' gradient of norm",
      "parameters' gradient of norm"}},
    {"backward",
     "conv1",
     {"output's gradient of conv1", "packed output of input", "parameters of conv1", "parameters' gradient of conv1"}},
};

static bool is_workspace(const dv_plan_touched *touched) {
    return strstr(touched->role, "workspace") != NULL;
}

static void compare_line(const dv_plan *plan, size_t at, const line *expected) {
    const dv_plan_operation *operation = dv_plan_operation_at(plan, at);
    size_t found = 0;
    assert_non_null(operation);
    assert_string_equal(operation->kind, expected->kind);
    assert_string_equal(operation->subject, expected->subject);
    for (size_t i = 0; dv_plan_touched_at(plan, at, i); i++) {
        const dv_plan_touched *touched = dv_plan_touched_at(plan, at, i);
        char text[128];
        snprintf(text, sizeof text, "%s of %s", touched->role, touched->owner);
        if (is_workspace(touched))
            continue;
        if (!expected->touched[found] || strcmp(text, expected->touched[found]) != 0)
            fail_msg("%s %s: %s, instead of %s", operation->kind, operation->subject, text, expected->touched[found]);
        found++;
    }
    if (expected->touched[found])
        fail_msg("%s %s does not touch %s", operation->kind, operation->subject, expected->touched[found]);
}

static void operations_touch_what_they_should(void **state) {
    (void)state;
    dv_graph *graph = small_graph();
    dv_plan *plan = plan_of(graph, "division", 0, &(dv_guard_options){0});
    size_t count = sizeof division_lines / sizeof *division_lines;
    for (size_t i = 0; i < count; i++)
        compare_line(plan, i, &division_lines[i]);
    assert_null(dv_plan_operation_at(plan, count));
    assert_null(dv_plan_touched_at(plan, count, 0));
    assert_null(dv_plan_touched_at(plan, 0, dv_plan_operation_at(plan, 0)->touched_count));
    dv_plan_free(plan);
    dv_graph_free(graph);
}

/* ---- properties ------------------------------------------------------------------------------ */

/* Bytes are the piece's, the piece is alive and has a name. */
static void check_touched(const dv_plan *plan, size_t at, const dv_plan_touched *touched) {
    assert_non_null(touched->role);
    assert_non_null(touched->owner);
    assert_true(touched->piece < plan->piece_count);
    const dv_piece *piece = &plan->pieces[touched->piece];
    assert_int_equal(touched->bytes, piece->bytes);
    if (piece->first > (int)at || piece->last < (int)at)
        fail_msg("%s %s touches %s of %s, which is alive from %d to %d, not at %zu",
                 dv_plan_operation_at(plan, at)->kind, dv_plan_operation_at(plan, at)->subject, touched->role,
                 touched->owner, piece->first, piece->last, at);
}

/* The most crowded operation takes the planned bytes, but for gaps; none takes less than what it touches. */
static void check_plan(const dv_plan *plan) {
    size_t peak = 0, count = 0;
    for (; dv_plan_operation_at(plan, count); count++) {
        const dv_plan_operation *operation = dv_plan_operation_at(plan, count);
        assert_true(operation->touched_count > 0);
        for (size_t i = 0; i < operation->touched_count; i++) {
            const dv_plan_touched *touched = dv_plan_touched_at(plan, count, i);
            check_touched(plan, count, touched);
            assert_true(touched->bytes <= operation->alive_bytes);
        }
        peak = operation->alive_bytes > peak ? operation->alive_bytes : peak;
    }
    assert_int_equal(count, plan->operation_count);
    assert_true(peak <= dv_plan_totals(plan).planned);
    assert_true(peak > dv_plan_totals(plan).planned / 2);
}

static void what_is_touched_is_alive(void **state) {
    (void)state;
    static const char *const models[] = {"resnet20", "resnet18_cifar", "densenet121_cifar"};
    for (size_t m = 0; m < sizeof models / sizeof *models; m++)
        for (size_t i = 0; i <= METHODS; i++) {
            dv_graph *graph;
            assert_ok(dv_model_build(models[m], DV_F32, 8, 10, 16, &graph, &error));
            dv_plan *plan = plan_of(graph, methods[i % METHODS], i == METHODS, &(dv_guard_options){0});
            check_plan(plan);
            dv_plan_free(plan);
            dv_graph_free(graph);
        }
}

/* ---- nothing else is touched ----------------------------------------------------------------- */

static void fill_batch(dv_run *run, size_t classes) {
    const dv_map *map = dv_run_input_map(run);
    for (size_t i = 0; i < dv_map_elements(map); i++) {
        float number = (float)((uint32_t)i * 2654435761u >> 16) * 0x1p-16f - 0.5f;
        if (map->type == DV_F32)
            ((float *)dv_run_input(run))[i] = number;
        else
            ((uint16_t *)dv_run_input(run))[i] = dv_bf16_nearest(number);
    }
    for (size_t i = 0; i < dv_map_elements(dv_run_logits_map(run)) / classes; i++)
        dv_run_labels(run)[i] = (int32_t)(i % classes);
    for (size_t i = 0; dv_run_second_labels(run) && i < map->images; i++) {
        dv_run_second_labels(run)[i] = 0;
        dv_run_label_weights(run)[i] = 0.75f;
    }
}

/* A run after a step. */
static dv_run *run_after_step(dv_graph *graph, const char *method, dv_gradients gradients,
                              const dv_guard_options *guard, double *loss) {
    dv_plan_options options = dv_plan_options_default();
    dv_plan *plan;
    dv_run *run;
    dv_step_result result;
    options.method = method;
    options.gradients = gradients;
    assert_ok(dv_plan_new_guarded(graph, &options, guard, &plan, &error));
    assert_ok(dv_run_new(plan, 1, &run, &error));
    dv_plan_free(plan);
    fill_batch(run, graph->values[graph->logits].map.channels);
    assert_ok(dv_run_train(run, &(dv_step){.batch = 3, .label_smoothing = 0.1f, .rate = 0.1}, &result, &error));
    *loss = result.loss;
    return run;
}

/* With all that an operation is not listed to touch out of its reach, a step computes what it does otherwise. */
static void check_hidden_with(const char *what, dv_graph *graph, const char *method, dv_gradients gradients) {
    double losses[2];
    dv_run *plain = run_after_step(graph, method, gradients, &(dv_guard_options){0}, &losses[0]);
    dv_run *hidden = run_after_step(graph, method, gradients, &(dv_guard_options){.hide = true}, &losses[1]);
    const dv_run_parameter *p, *q;
    if (memcmp(&losses[0], &losses[1], sizeof losses[0]) != 0)
        fail_msg("%s, %s: a loss of %g, not %g", what, method, losses[1], losses[0]);
    for (size_t k = 0; (p = dv_run_parameter_at(plain, k)) && (q = dv_run_parameter_at(hidden, k)); k++)
        if (memcmp(p->data, q->data, p->count * sizeof(float)) != 0 ||
            (p->gradient && memcmp(p->gradient, q->gradient, p->count * sizeof(float)) != 0))
            fail_msg("%s, %s: another %s", what, method, p->name);
    dv_run_free(plain);
    dv_run_free(hidden);
}

static void check_hidden(const char *what, dv_graph *graph, const char *method) {
    check_hidden_with(what, graph, method, DV_GRADIENTS_KEPT);
    check_hidden_with(what, graph, method, DV_GRADIENTS_TRANSIENT);
}

static void nothing_else_is_touched(void **state) {
    (void)state;
    for (size_t i = 0; i < METHODS_TO_HIDE_FROM; i++) {
        dv_graph *graph;
        assert_ok(dv_model_build("resnet20", DV_F32, 2, 10, 16, &graph, &error));
        check_hidden("resnet20", graph, methods[i]);
        dv_graph_free(graph);
    }
}

/* With every kind of layer. */
static void nothing_else_is_touched_in_random_graphs(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < (test_scale() > 1 ? 4 : 40); seed++)
        for (size_t i = 0; i < METHODS_TO_HIDE_FROM; i++) {
            dv_graph *graph = random_graph(seed, seed & 1 ? DV_BF16 : DV_F32);
            char what[32];
            snprintf(what, sizeof what, "random graph %llu", (unsigned long long)seed);
            check_hidden(what, graph, methods[i]);
            dv_graph_free(graph);
        }
}

/* A list that lacks a piece is found out, in forward and in backward. */
static void what_a_list_lacks_is_found(void **state) {
    (void)state;
    static const struct {
        size_t at;
        const char *owner, *role, *words;
    } lacks[] = {
        {1, "norm", "mask", "norm wrote into norm's mask, which the schedule does not say"},
        {8, "norm", "output's gradient", "conv2 wrote into conv1's output's gradient"}, /* in one piece */
    };
    for (size_t i = 0; i < sizeof lacks / sizeof *lacks; i++) {
        dv_graph *graph = small_graph();
        dv_plan *plan = plan_of(graph, "division", 0, &(dv_guard_options){.hide = true});
        dv_plan_touched *touched = plan->touched + plan->told[lacks[i].at].first;
        while (strcmp(touched->owner, lacks[i].owner) != 0 || strcmp(touched->role, lacks[i].role) != 0)
            touched++;
        touched->piece = plan->piece_count;
        dv_run *run;
        dv_step_result result;
        assert_ok(dv_run_new(plan, 1, &run, &error));
        fill_batch(run, 10);
        assert_fails(dv_run_train(run, &(dv_step){.batch = 0}, &result, &error), DV_ERROR_BUFFER, lacks[i].words);
        dv_run_free(run);
        dv_plan_free(plan);
        dv_graph_free(graph);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations_touch_what_they_should), cmocka_unit_test(what_is_touched_is_alive),
        cmocka_unit_test(nothing_else_is_touched),           cmocka_unit_test(nothing_else_is_touched_in_random_graphs),
        cmocka_unit_test(what_a_list_lacks_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
