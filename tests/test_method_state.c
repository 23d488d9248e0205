/* A method that learns: what it sees of backward, when it adapts, and that its state travels in checkpoints. */
#include "check.h"
#include "codec/actnn.h"
#include "graph/keep_groups.h"

#include <division/checkpoint.h>
#include <division/models.h>
#include <division/train.h>
#include <math.h>

/* ---- the method: remembers, by layer, how large gradients were ------------------------------- */

enum { STEPS_DONE, LAYERS }; /* of the state: a counter, then two numbers per layer */

static size_t state_count(const dv_plan *plan) {
    return LAYERS + 2 * plan->graph->layer_count;
}

static double square_sum(const float *x, size_t count) {
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (double)x[i] * (double)x[i];
    return sum;
}

/* Before: the gradient of the output. After: those of the first parameter, which nothing has updated yet. */
static void observe(const dv_observation *seen, float *state) {
    const dv_layer *layer = &seen->plan->graph->layers[seen->layer].layer;
    float *mine = state + LAYERS + 2 * seen->layer;
    if (!seen->done)
        mine[0] = (float)square_sum(seen->call->diff_output, dv_map_elements(&layer->output));
    else if (layer->parameter_count > 0)
        mine[1] = (float)square_sum(seen->call->arrays->gradients[0], layer->parameters[0].count);
}

static void adapt(const dv_plan *plan, uint64_t batch, float *state) {
    (void)plan;
    assert_true(state[STEPS_DONE] == (float)batch);
    state[STEPS_DONE]++;
}

static void keep(dv_plan *plan, dv_value value) {
    dv_plan_keep(plan, value, &dv_keep_exact);
}

static dv_status choose(dv_plan *plan, dv_error *error) {
    (void)error;
    dv_plan_choose(plan, keep);
    return DV_OK;
}

static const dv_method_kind watching = {
    .name = "watching", .choose = choose, .state_count = state_count, .observe = observe, .adapt = adapt};

/* ---- tests ----------------------------------------------------------------------------------- */

typedef struct network {
    dv_graph *graph;
    dv_plan *plan;
    dv_run *run;
} network;

static network network_new(const char *method) {
    network n;
    dv_plan_options options = dv_plan_options_default();
    options.method = method;
    assert_ok(dv_model_build("resnet20", DV_F32, 4, 10, 16, &n.graph, &error));
    assert_ok(dv_plan_new(n.graph, &options, &n.plan, &error));
    assert_ok(dv_run_new(n.plan, 1, &n.run, &error));
    return n;
}

static void network_free(network n) {
    dv_run_free(n.run);
    dv_plan_free(n.plan);
    dv_graph_free(n.graph);
}

static void train(const network *n, uint64_t batch) {
    dv_step_result result;
    const dv_map *map = dv_run_input_map(n->run);
    for (size_t i = 0; i < dv_map_elements(map); i++)
        ((float *)dv_run_input(n->run))[i] = (float)((uint32_t)(i + batch) * 2654435761u >> 16) * 0x1p-16f - 0.5f;
    for (size_t i = 0; i < map->images; i++)
        dv_run_labels(n->run)[i] = (int32_t)(i % 10);
    assert_ok(dv_run_train(n->run, &(dv_step){.batch = batch}, &result, &error));
}

static void a_method_sees_gradients(void **state) {
    (void)state;
    network n = network_new("watching");
    const dv_run_parameter *remembered = dv_run_method_state(n.run), *p;
    assert_int_equal(remembered->count, state_count(n.plan));
    for (size_t i = 0; i < remembered->count; i++)
        assert_true(remembered->data[i] == 0);
    train(&n, 0);
    assert_true(remembered->data[STEPS_DONE] == 1);
    size_t at = 0;
    for (size_t i = 0; i < n.graph->layer_count; i++) {
        const dv_layer *layer = &n.graph->layers[i].layer;
        assert_true(remembered->data[LAYERS + 2 * i] > 0);
        if (layer->parameter_count > 0) {
            p = dv_run_parameter_at(n.run, at);
            assert_true(remembered->data[LAYERS + 2 * i + 1] == (float)square_sum(p->gradient, p->count));
        }
        at += layer->parameter_count + layer->buffer_count;
    }
    network_free(n);
    n = network_new("none");
    assert_null(dv_run_method_state(n.run));
    network_free(n);
}

/* Written with the training's state, read by --resume, and no part of the weights alone. */
static void state_is_in_checkpoints(void **state) {
    (void)state;
    char path[512];
    const char *folder = getenv("DV_TEMP");
    snprintf(path, sizeof path, "%s/method.safetensors", folder ? folder : ".");
    network from = network_new("watching"), to = network_new("watching"), other = network_new("none");
    train(&from, 0);
    train(&from, 1);
    dv_train_state done = dv_train_state_default(), read;
    done.step = 2, done.steps_per_epoch = 10, done.images = 8;
    const dv_checkpoint_content content = {.run = from.run, .state = &done};
    assert_ok(dv_checkpoint_write(path, &content, &error));
    dv_checkpoint *checkpoint;
    assert_ok(dv_checkpoint_open(path, &checkpoint, &error));
    assert_ok(dv_checkpoint_resume(checkpoint, to.run, &read, NULL, NULL, &error));
    const dv_run_parameter *a = dv_run_method_state(from.run), *b = dv_run_method_state(to.run);
    assert_memory_equal(a->data, b->data, a->count * sizeof(float));
    assert_ok(dv_checkpoint_load(checkpoint, &(dv_checkpoint_choice){0}, other.run, NULL, NULL, &error));
    dv_checkpoint_close(checkpoint);
    remove(path);
    network_free(from);
    network_free(to);
    network_free(other);
}

/* Training goes on from a checkpoint as if it had not been stopped: the same gradients and the same state, to the bit.
 */
static void check_resumed(const char *method) {
    char path[512];
    const char *folder = getenv("DV_TEMP");
    snprintf(path, sizeof path, "%s/resumed.safetensors", folder ? folder : ".");
    network from = network_new(method), to = network_new(method);
    train(&from, 0);
    train(&from, 1);
    dv_train_state done = dv_train_state_default(), read;
    done.step = 2, done.steps_per_epoch = 10, done.images = 8;
    const dv_checkpoint_content content = {.run = from.run, .state = &done};
    assert_ok(dv_checkpoint_write(path, &content, &error));
    dv_checkpoint *checkpoint;
    assert_ok(dv_checkpoint_open(path, &checkpoint, &error));
    assert_ok(dv_checkpoint_resume(checkpoint, to.run, &read, NULL, NULL, &error));
    dv_checkpoint_close(checkpoint);
    const dv_run_parameter *p, *q;
    for (size_t i = 0; (p = dv_run_parameter_at(from.run, i)) && (q = dv_run_parameter_at(to.run, i)); i++)
        if (p->gradient)
            memcpy(q->gradient, p->gradient, p->count * sizeof(float)); /* gradients add up here */
    for (uint64_t step = 2; step < 4; step++) {
        train(&from, step);
        train(&to, step);
    }
    for (size_t i = 0; (p = dv_run_parameter_at(from.run, i)) && (q = dv_run_parameter_at(to.run, i)); i++)
        if (p->gradient && memcmp(p->gradient, q->gradient, p->count * sizeof(float)) != 0)
            fail_msg("%s: another gradient of %s after a resume", method, p->name);
    const dv_run_parameter *a = dv_run_method_state(from.run), *b = dv_run_method_state(to.run);
    assert_memory_equal(a->data, b->data, a->count * sizeof(float));
    remove(path);
    network_free(from);
    network_free(to);
}

static void methods_that_learn_go_on(void **state) {
    (void)state;
    check_resumed("actnn");
    check_resumed("acgc");
    check_resumed("actnn:level=L4,bits=3");
}

/* Bits move between values and images, and stay within what was planned. */
static void bits_are_shared_out(void **state) {
    (void)state;
    network n = network_new("actnn");
    for (uint64_t step = 0; step < 3; step++)
        train(&n, step);
    const float *learned = dv_run_method_state(n.run)->data;
    double taken = 0, budget = 0;
    bool moved = false;
    for (size_t v = 0; v < n.graph->value_count; v++) {
        const dv_value_plan *plan = &n.plan->values[v];
        if (plan->keeper != &dv_keep_groups || !dv_groups_weighs(n.plan, (dv_value)v))
            continue;
        double groups = (double)dv_actnn_groups(&n.graph->values[v].map);
        taken += groups * (double)learned[plan->state_at + DV_GROUPS_BITS];
        budget += groups * 2 * 4;
        moved = moved || learned[plan->state_at + DV_GROUPS_BITS] != 2 * 4;
    }
    assert_true(moved && taken <= budget && taken > 0.97 * budget);
    network_free(n);
}

int main(void) {
    dv_method_added = &watching;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_method_sees_gradients),
        cmocka_unit_test(state_is_in_checkpoints),
        cmocka_unit_test(methods_that_learn_go_on),
        cmocka_unit_test(bits_are_shared_out),
    };
    return cmocka_run_group_tests_name("method state", tests, NULL, NULL);
}
