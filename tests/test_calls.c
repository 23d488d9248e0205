/* The calls of a step apart: their order, what the caller may read and write between them, losses of its own,
 * predictions. */
#include "check.h"
#include "graph/plan.h"

#include <division/graph.h>
#include <math.h>

enum { BATCH = 6, CLASSES = 10 };

typedef struct network {
    dv_graph *graph;
    dv_plan *plan;
    dv_run *run;
} network;

/* Convolutions, a batch norm whose statistics move, dropout that depends on the step. */
static dv_graph *graph_new(dv_type type) {
    dv_graph *graph;
    const dv_convolution_options wide = {.channels = 16, .window = dv_window_square(3, 1, 1), .groups = 1};
    assert_ok(dv_graph_new(type, BATCH, &graph, &error));
    dv_value x = dv_graph_input(graph, 3, 2, (const size_t[]){12, 12});
    x = dv_graph_relu(graph, "relu1",
                      dv_graph_batch_norm(graph, "bn1", dv_graph_convolution(graph, "conv1", x, &wide)));
    x = dv_graph_relu(graph, "relu2",
                      dv_graph_batch_norm(graph, "bn2", dv_graph_convolution(graph, "conv2", x, &wide)));
    x = dv_graph_dropout(graph, "dropout", x, 0.3f);
    x = dv_graph_convolution(graph, "conv3", x, &wide);
    x = dv_graph_global_average_pooling(graph, "pool", x);
    x = dv_graph_linear(graph, "fc", x, &(dv_linear_options){.channels = CLASSES, .bias = true});
    assert_ok(dv_graph_finish(graph, x, &error));
    return graph;
}

static const dv_guard_options no_guard, red_zones = {.zones = true, .fill = true, .pattern = 0xFF};

static network network_new(dv_type type, const char *method, bool inference, const dv_guard_options *guard) {
    network n = {.graph = graph_new(type)};
    dv_plan_options options = dv_plan_options_default();
    options.method = method;
    options.inference = inference;
    assert_ok(dv_plan_new_guarded(n.graph, &options, guard, &n.plan, &error));
    assert_ok(dv_run_new(n.plan, 1, &n.run, &error));
    return n;
}

static void network_free(network n) {
    dv_run_free(n.run);
    dv_plan_free(n.plan);
    dv_graph_free(n.graph);
}

static void fill_images(const dv_map *map, void *images, uint32_t number) {
    for (size_t i = 0; i < dv_map_elements(map); i++) {
        uint32_t random = ((uint32_t)i + number * 40503u) * 2654435761u;
        if (map->type == DV_F32)
            ((float *)images)[i] = (float)(random >> 16) * 0x1p-15f - 1;
        else
            ((uint16_t *)images)[i] = (uint16_t)(0x3f00 + (random >> 16 & 0x80ff)); /* 0.5 to 2, of either sign */
    }
}

static void fill_batch(dv_run *run, uint32_t number) {
    fill_images(dv_run_input_map(run), dv_run_input(run), number);
    for (size_t n = 0; n < BATCH; n++)
        dv_run_labels(run)[n] = (int32_t)((n + number) % CLASSES);
}

/* ---- parts of a step ------------------------------------------------------------------------- */

/* Parameters and running statistics, and gradients where both runs have them. */
static void assert_same(const dv_run *a, const dv_run *b) {
    const dv_run_parameter *p;
    for (size_t i = 0; (p = dv_run_parameter_at(a, i)); i++) {
        const dv_run_parameter *q = dv_run_parameter_at(b, i);
        size_t bytes = p->count * sizeof(float);
        if (memcmp(p->data, q->data, bytes) != 0)
            fail_msg("%s differs", p->name);
        if (p->gradient && q->gradient && memcmp(p->gradient, q->gradient, bytes) != 0)
            fail_msg("the gradient of %s differs", p->name);
    }
}

static const char *const methods[] = {"none",       "division", "division:recompute=norms",
                                      "checkpoint", "swap",     "division:spill=on"};

/* A caller who reads what may be read between the calls. */
static double train_apart(dv_run *run, uint32_t number) {
    const dv_map *map = dv_run_logits_map(run);
    char before[BATCH * CLASSES * 4];
    dv_step_result result;
    fill_batch(run, number);
    assert_ok(dv_run_forward(run, &(dv_step){.batch = number, .label_smoothing = 0.1f, .scale = 0.5f}, &error));
    memcpy(before, dv_run_logits(run), dv_map_bytes(map));
    assert_ok(dv_run_loss(run, &result, &error));
    assert_memory_equal(before, dv_run_logits(run), dv_map_bytes(map));
    assert_non_null(dv_run_logits_gradient(run));
    assert_ok(dv_run_backward(run, &error));
    assert_null(dv_run_logits(run));
    return result.loss;
}

static double train_at_once(dv_run *run, uint32_t number) {
    dv_step_result result;
    fill_batch(run, number);
    assert_ok(dv_run_train(run, &(dv_step){.batch = number, .label_smoothing = 0.1f, .scale = 0.5f}, &result, &error));
    return result.loss;
}

/* With each method, with guards and without: parts of a step are the step, to the bit. */
static void parts_make_a_step(void **state) {
    (void)state;
    dv_spill_least_force(1024);
    for (size_t way = 0; way < 4 * sizeof methods / sizeof *methods; way++) {
        dv_type type = way & 1 ? DV_BF16 : DV_F32;
        network whole = network_new(type, methods[way / 4], false, &no_guard);
        network apart = network_new(type, methods[way / 4], false, way & 2 ? &red_zones : &no_guard);
        for (uint32_t i = 0; i < 3; i++)
            assert_true(train_at_once(whole.run, i) == train_apart(apart.run, i));
        assert_same(whole.run, apart.run);
        network_free(whole);
        network_free(apart);
    }
    dv_spill_least_force(0);
}

/* ---- order ----------------------------------------------------------------------------------- */

/* What a caller does, and the word with which it is refused, or NULL. */
typedef struct attempt {
    enum { FORWARD, LOSS, GRADIENT, BACKWARD, PREDICT, EVALUATE, TRAIN, IMAGES, ABANDON } what;
    const char *words;
} attempt;

static dv_status attempted(dv_run *run, const attempt *a, dv_error *error) {
    const dv_step step = {.batch = 1};
    dv_step_result result;
    switch (a->what) {
    case FORWARD:
        return dv_run_forward(run, &step, error);
    case LOSS:
        return dv_run_loss(run, &result, error);
    case GRADIENT:
        return memset(dv_run_logits_gradient(run), 0, BATCH * CLASSES * 4) ? DV_OK : DV_ERROR_ARGUMENT;
    case BACKWARD:
        return dv_run_backward(run, error);
    case PREDICT:
        return dv_run_predict(run, error);
    case EVALUATE:
        return dv_run_evaluate(run, &result, error);
    case TRAIN:
        return dv_run_train(run, &step, &result, error);
    case IMAGES:
        return dv_run_set_images(run, BATCH, error);
    default:
        dv_run_abandon(run);
        return DV_OK;
    }
}

static bool takes_images(const attempt *a) {
    return a->what == FORWARD || a->what == PREDICT || a->what == TRAIN || a->what == EVALUATE;
}

static void calls_out_of_order_are_refused(void **state) {
    (void)state;
    static const char under_way[] = "end it with dv_run_backward";
    static const attempt attempts[] = {
        {LOSS, "call dv_run_forward or dv_run_predict before"},
        {BACKWARD, "call dv_run_forward before"},
        {FORWARD, NULL},
        {FORWARD, under_way},
        {PREDICT, under_way},
        {EVALUATE, under_way},
        {TRAIN, under_way},
        {IMAGES, under_way},
        {BACKWARD, "call dv_run_loss before"},
        {LOSS, NULL},
        {LOSS, NULL}, /* again is the same */
        {FORWARD, under_way},
        {PREDICT, under_way},
        {BACKWARD, NULL},
        {BACKWARD, "call dv_run_forward before"},
        {FORWARD, NULL},
        {GRADIENT, NULL},
        {BACKWARD, NULL},
        {PREDICT, NULL},
        {BACKWARD, "call dv_run_forward instead of dv_run_predict"},
        {LOSS, NULL},
        {LOSS, NULL},
        {BACKWARD, "call dv_run_forward instead of dv_run_predict"},
        {PREDICT, NULL},
        {IMAGES, NULL},
        {LOSS, "call dv_run_forward or dv_run_predict before"},
        {ABANDON, NULL}, /* nothing */
        {FORWARD, NULL},
        {ABANDON, NULL},
        {LOSS, "call dv_run_forward or dv_run_predict before"},
        {TRAIN, NULL},
        {EVALUATE, NULL},
    };
    network n = network_new(DV_F32, "division", false, &red_zones);
    void *images = dv_run_input(n.run); /* held on to: asking for it would end a prediction */
    for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++) {
        const attempt *a = &attempts[i];
        dv_error error = {0};
        if (!a->words && takes_images(a))
            fill_images(dv_run_input_map(n.run), images, 1);
        dv_status status = attempted(n.run, a, &error);
        if (status != (a->words ? DV_ERROR_ARGUMENT : DV_OK) || (a->words && !strstr(error.text, a->words)))
            fail_msg("attempt %zu: status %d, \"%s\"", i, (int)status, error.text);
        assert_false(dv_run_failed(n.run));
    }
    network_free(n);
}

/* Whatever was refused in its midst, a step is what it would have been. */
static void a_refused_call_changes_nothing(void **state) {
    (void)state;
    network disturbed = network_new(DV_F32, "division", false, &no_guard);
    network quiet = network_new(DV_F32, "division", false, &no_guard);
    dv_step_result result;
    (void)train_apart(quiet.run, 1);
    fill_batch(disturbed.run, 1);
    assert_ok(dv_run_forward(disturbed.run, &(dv_step){.batch = 1, .label_smoothing = 0.1f, .scale = 0.5f}, &error));
    assert_fails(dv_run_predict(disturbed.run, &error), DV_ERROR_ARGUMENT, "under way");
    assert_fails(dv_run_set_images(disturbed.run, 2, &error), DV_ERROR_ARGUMENT, "under way");
    assert_ok(dv_run_loss(disturbed.run, &result, &error));
    assert_fails(dv_run_forward(disturbed.run, &(dv_step){.batch = 2}, &error), DV_ERROR_ARGUMENT, "under way");
    assert_ok(dv_run_backward(disturbed.run, &error));
    assert_same(disturbed.run, quiet.run);
    network_free(disturbed);
    network_free(quiet);
}

static void a_step_can_be_given_up(void **state) {
    (void)state;
    dv_spill_least_force(1024);
    for (size_t m = 0; m < sizeof methods / sizeof *methods; m++) {
        network n = network_new(DV_F32, methods[m], false, &red_zones);
        const dv_run_parameter *first = dv_run_parameter_at(n.run, 0);
        dv_step_result result;
        fill_batch(n.run, 1);
        assert_ok(dv_run_forward(n.run, &(dv_step){.batch = 1}, &error));
        assert_ok(dv_run_loss(n.run, &result, &error));
        dv_run_abandon(n.run);
        assert_null(dv_run_logits(n.run));
        assert_null(dv_run_logits_gradient(n.run));
        for (size_t i = 0; i < first->count; i++)
            assert_true(first->gradient[i] == 0);
        assert_true(train_apart(n.run, 1) > 0);
        network_free(n);
    }
    dv_spill_least_force(0);
}

/* ---- losses of the caller's own -------------------------------------------------------------- */

/* The gradient that the built-in loss writes, written by the caller, is the same step. */
static void a_gradient_can_be_given(void **state) {
    (void)state;
    for (size_t way = 0; way < 2 * sizeof methods / sizeof *methods; way++) {
        const dv_guard_options *guard = way & 1 ? &red_zones : &no_guard;
        network built_in = network_new(DV_F32, methods[way / 2], false, guard);
        network own = network_new(DV_F32, methods[way / 2], false, guard);
        size_t bytes = dv_map_bytes(dv_run_logits_map(own.run));
        float gradient[BATCH * CLASSES];
        dv_step_result result;
        fill_batch(built_in.run, 1);
        assert_ok(dv_run_forward(built_in.run, &(dv_step){.batch = 1}, &error));
        assert_ok(dv_run_loss(built_in.run, &result, &error));
        memcpy(gradient, dv_run_logits_gradient(built_in.run), bytes);
        assert_ok(dv_run_backward(built_in.run, &error));
        fill_batch(own.run, 1);
        memset(dv_run_labels(own.run), -1, BATCH * sizeof(int32_t)); /* nobody reads them */
        assert_ok(dv_run_forward(own.run, &(dv_step){.batch = 1}, &error));
        memcpy(dv_run_logits_gradient(own.run), gradient, bytes);
        assert_ok(dv_run_backward(own.run, &error));
        assert_same(built_in.run, own.run);
        network_free(built_in);
        network_free(own);
    }
}

NOT_SANITIZED static void write_zeros(void *memory, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        ((volatile char *)memory)[i] = 0;
}

/* Who writes past the end of it is told. */
static void a_gradient_that_is_too_long_is_found(void **state) {
    (void)state;
    network n = network_new(DV_F32, "division", false, &red_zones);
    size_t bytes = dv_map_bytes(dv_run_logits_map(n.run));
    fill_batch(n.run, 1);
    assert_ok(dv_run_forward(n.run, &(dv_step){.batch = 1}, &error));
    write_zeros(dv_run_logits_gradient(n.run), bytes + 1);
    assert_fails(dv_run_backward(n.run, &error), DV_ERROR_BUFFER,
                 "whoever had the logits wrote 1 bytes past the end of fc's output's gradient");
    assert_true(dv_run_failed(n.run));
    network_free(n);
}

/* A gradient with NaN in it is refused, and can be written anew. */
static void a_gradient_that_is_not_finite_is_refused(void **state) {
    (void)state;
    network n = network_new(DV_F32, "division", false, &no_guard);
    fill_batch(n.run, 1);
    assert_ok(dv_run_forward(n.run, &(dv_step){.batch = 1}, &error));
    float *gradient = dv_run_logits_gradient(n.run);
    memset(gradient, 0, dv_map_bytes(dv_run_logits_map(n.run)));
    gradient[3 * CLASSES + 1] = NAN;
    assert_fails(dv_run_backward(n.run, &error), DV_ERROR_NONFINITE, "logits of image 3 is not finite");
    assert_false(dv_run_failed(n.run));
    gradient[3 * CLASSES + 1] = 1;
    assert_ok(dv_run_backward(n.run, &error));
    network_free(n);
}

/* ---- prediction ------------------------------------------------------------------------------ */

/* With any number of images the logits are evaluation's, in every plan, and no statistic moves. */
static void predictions_are_those_of_evaluation(void **state) {
    (void)state;
    for (int way = 0; way < 8; way++) {
        dv_type type = way & 1 ? DV_BF16 : DV_F32;
        const dv_guard_options *guard = way & 4 ? &red_zones : &no_guard;
        network n = network_new(type, "division", way & 2, guard), other = network_new(type, "none", true, guard);
        size_t image_bytes = dv_map_bytes(dv_run_logits_map(n.run)) / BATCH;
        for (size_t images = 1; images <= BATCH; images++) {
            dv_step_result result;
            assert_ok(dv_run_set_images(n.run, images, &error));
            assert_ok(dv_run_set_images(other.run, images, &error));
            fill_batch(n.run, 3);
            assert_ok(dv_run_predict(n.run, &error));
            fill_batch(other.run, 3);
            assert_ok(dv_run_evaluate(other.run, &result, &error));
            assert_memory_equal(dv_run_logits(n.run), dv_run_logits(other.run), images * image_bytes);
        }
        assert_same(n.run, other.run);
        network_free(n);
        network_free(other);
    }
}

/* Logits are there until the next batch begins. */
static void a_prediction_ends_with_the_next_batch(void **state) {
    (void)state;
    network n = network_new(DV_F32, "division", true, &red_zones);
    assert_null(dv_run_logits(n.run));
    fill_batch(n.run, 1);
    assert_ok(dv_run_predict(n.run, &error));
    assert_non_null(dv_run_logits(n.run));
    assert_null(dv_run_logits_gradient(n.run));
    (void)dv_run_input(n.run);
    assert_null(dv_run_logits(n.run));
    assert_fails(dv_run_forward(n.run, &(dv_step){.batch = 1}, &error), DV_ERROR_ARGUMENT, "inference");
    network_free(n);
}

/* A prediction that failed spoils nothing. */
static void a_failed_evaluation_leaves_the_run(void **state) {
    (void)state;
    network n = network_new(DV_F32, "division", false, &red_zones);
    dv_step_result result;
    fill_batch(n.run, 1);
    dv_run_labels(n.run)[0] = CLASSES;
    assert_fails(dv_run_evaluate(n.run, &result, &error), DV_ERROR_ARGUMENT, "label 10");
    assert_null(dv_run_logits(n.run));
    assert_false(dv_run_failed(n.run));
    assert_true(train_apart(n.run, 1) > 0);
    network_free(n);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_make_a_step),
        cmocka_unit_test(calls_out_of_order_are_refused),
        cmocka_unit_test(a_refused_call_changes_nothing),
        cmocka_unit_test(a_step_can_be_given_up),
        cmocka_unit_test(a_gradient_can_be_given),
        cmocka_unit_test(a_gradient_that_is_too_long_is_found),
        cmocka_unit_test(a_gradient_that_is_not_finite_is_refused),
        cmocka_unit_test(predictions_are_those_of_evaluation),
        cmocka_unit_test(a_prediction_ends_with_the_next_batch),
        cmocka_unit_test(a_failed_evaluation_leaves_the_run),
    };
    return cmocka_run_group_tests_name("calls", tests, NULL, NULL);
}
