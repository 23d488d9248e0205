/* Steps of fewer images than were planned for: they are the steps of a plan for so many, whatever is in the memory
 * behind the images. To the bit where sums over images have one order: with slices of one image that is everywhere but
 * in the linear layer, which oneDNN computes for the whole batch at once. With slices of the usual size, to rounding.
 */
#include "base/status.h"
#include "check.h"
#include "graph/guard.h"
#include "graph/plan.h"
#include "maps.h"
#include "nn/layer.h"
#include "nn/pass.h"

#include <division/models.h>
#include <division/train.h>

enum { PLANNED = 6, SIDE = 32 };

/* ---- networks -------------------------------------------------------------------------------- */

/* Dropout on maps and behind the pooling, a sum, a concatenation and both kinds of pooling. */
static dv_status dropout_network(dv_type type, size_t batch, dv_graph **graph, dv_error *error) {
    const dv_convolution_options convolution = {.channels = 16, .window = dv_window_square(3, 1, 1), .groups = 1};
    const dv_pooling_options pooling = {.window = dv_window_square(3, 2, 1)};
    DV_TRY(dv_graph_new(type, batch, graph, error));
    dv_graph *g = *graph;
    dv_value x = dv_graph_input(g, 3, 2, (const size_t[]){15, 17});
    x = dv_graph_relu(g, "relu1", dv_graph_batch_norm(g, "bn1", dv_graph_convolution(g, "conv1", x, &convolution)));
    dv_value dropped = dv_graph_dropout(g, "drop1", x, 0.3f);
    dv_value both = dv_graph_concatenation(g, "both", (const dv_value[]){x, dropped}, 2);
    dv_value y = dv_graph_convolution(g, "conv2", both, &convolution);
    y = dv_graph_relu(g, "relu2", dv_graph_sum(g, "sum", dv_graph_batch_norm(g, "bn2", y), x));
    y = dv_graph_average_pooling(g, "average", dv_graph_max_pooling(g, "max", y, &pooling), &pooling);
    y = dv_graph_relu(g, "relu3", dv_graph_convolution(g, "conv3", y, &convolution));
    y = dv_graph_dropout(g, "drop2", dv_graph_global_average_pooling(g, "pool", y), 0.5f);
    return dv_graph_finish(g, dv_graph_linear(g, "fc", y, &(dv_linear_options){.channels = 10, .bias = true}), error);
}

static dv_graph *build(const char *model, dv_type type, size_t batch) {
    dv_graph *graph = NULL;
    if (model)
        assert_ok(dv_model_build(model, type, batch, 10, SIDE, &graph, &error));
    else
        assert_ok(dropout_network(type, batch, &graph, &error));
    return graph;
}

typedef struct trained {
    dv_plan *plan;
    dv_run *run;
} trained;

/* All memory is NaN until it is written. */
static trained trained_new(const char *model, dv_type type, size_t batch, const char *method) {
    static const dv_guard_options guard = {.zones = true, .fill = true, .pattern = 0xFF};
    dv_plan_options options = dv_plan_options_default();
    dv_graph *graph = build(model, type, batch);
    trained t;
    options.method = method;
    assert_ok(dv_plan_new_guarded(graph, &options, &guard, &t.plan, &error));
    assert_ok(dv_run_new(t.plan, 1, &t.run, &error));
    dv_graph_free(graph);
    return t;
}

static void trained_free(trained t) {
    dv_run_free(t.run);
    dv_plan_free(t.plan);
}

/* `images` images that depend on the number of the step, and behind them NaN and labels that are none. */
static void feed(dv_run *run, size_t images, uint32_t number) {
    const dv_map *map = dv_run_input_map(run);
    memset(dv_run_input(run), 0xFF, dv_map_bytes(map));
    for (size_t i = 0; i < images * dv_map_image_elements(map); i++)
        store_element(map->type, dv_run_input(run), i,
                      (float)((i * 2654435761u + number * 40503u) >> 16 & 255) / 128 - 1);
    for (size_t n = 0; n < map->images; n++)
        dv_run_labels(run)[n] = n < images ? (int32_t)((n + number) % 10) : 1000;
    assert_ok(dv_run_set_images(run, images, &error));
}

static dv_step_result train(dv_run *run, size_t images, uint32_t number) {
    dv_step_result result;
    feed(run, images, number);
    assert_ok(dv_run_train(run, &(dv_step){.batch = number, .label_smoothing = 0.1f}, &result, &error));
    return result;
}

static dv_step_result evaluate(dv_run *run, size_t images, uint32_t number) {
    dv_step_result result;
    feed(run, images, number);
    assert_ok(dv_run_evaluate(run, &result, &error));
    return result;
}

/* ---- comparing ------------------------------------------------------------------------------- */

typedef struct limits {
    double library, own; /* of the linear layer, of all others: of an array's norm; 0: to the bit */
} limits;

static void compare_arrays(const char *text, const char *name, size_t count, const float *a, const float *b,
                           double limit) {
    double norm = 0, distance = 0;
    if (limit == 0 && memcmp(a, b, count * sizeof *a) != 0)
        fail_msg("%s: another %s", text, name);
    for (size_t i = 0; i < count; i++) {
        norm += (double)a[i] * (double)a[i];
        distance += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
    }
    if (!(sqrt(distance) <= limit * (sqrt(norm) + 1e-3)))
        fail_msg("%s: %s differs by %g, of a norm of %g", text, name, sqrt(distance), sqrt(norm));
}

/* Gradients, and running statistics. */
static void compare(const char *text, dv_run *a, dv_run *b, limits within) {
    const dv_run_parameter *p, *q;
    for (size_t k = 0; (p = dv_run_parameter_at(a, k)); k++) {
        q = dv_run_parameter_at(b, k);
        bool library = strncmp(p->name, "fc.", 3) == 0 || strncmp(p->name, "classifier.", 11) == 0;
        compare_arrays(text, p->name, p->count, p->gradient ? p->gradient : p->data,
                       q->gradient ? q->gradient : q->data, library ? within.library : within.own);
    }
}

static void compare_results(const char *text, dv_step_result a, dv_step_result b, double limit) {
    if (!(fabs(a.loss - b.loss) <= limit * fabs(a.loss)))
        fail_msg("%s: loss %.17g, and %.17g in a plan for more images", text, a.loss, b.loss);
}

/* A step and a test of `images` of PLANNED images, and in a plan for them. */
static void check(const char *model, dv_type type, const char *method, size_t images, limits within) {
    char text[160];
    trained own = trained_new(model, type, images, method), larger = trained_new(model, type, PLANNED, method);
    snprintf(text, sizeof text, "%s, %s, %s, %zu of %d images", model ? model : "dropout", dv_type_name(type), method,
             images, PLANNED);
    double of_loss = within.own > 0 ? within.own : 1e-12;
    compare_results(text, train(own.run, images, 7), train(larger.run, images, 7), of_loss);
    compare(text, own.run, larger.run, within);
    compare_results(text, evaluate(own.run, images, 8), evaluate(larger.run, images, 8), of_loss);
    trained_free(own);
    trained_free(larger);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static const char *const methods[] = {"none", "division", "division:recompute=norms", "checkpoint",
                                      "swap:tmpfs=allowed"};

enum { METHODS = sizeof methods / sizeof *methods };

static void fewer_images_are_a_plan_for_fewer(void **state) {
    (void)state;
    static const limits exact = {1e-5, 0};
    dv_slice_bytes_force(1);
    for (size_t m = 0; m < METHODS; m++)
        for (int half = 0; half < 2; half++) {
            check(NULL, half ? DV_BF16 : DV_F32, methods[m], 5, exact);
            check(NULL, half ? DV_BF16 : DV_F32, methods[m], 1, exact);
            if (test_scale() == 1)
                check("resnet20", half ? DV_BF16 : DV_F32, methods[m], 4, exact);
        }
    if (test_scale() == 1)
        check("densenet121_cifar", DV_F32, "division:recompute=norms", 5, exact);
    dv_slice_bytes_force(0);
}

/* Slices of several images, of which the last is not full. What is packed can be another code where rounding is. In
 * bf16 a network of twenty layers makes much of each rounding: so both plans have Winograd's passes where they can,
 * which round alike whatever the number of images. */
static void slices_need_not_be_full(void **state) {
    (void)state;
    static const size_t bytes[] = {0, 1 << 17, 1 << 16};
    for (size_t i = 0; i < 3 * METHODS * 2; i++) {
        dv_type type = i % 2 ? DV_BF16 : DV_F32;
        const char *method = methods[i / 2 % METHODS];
        double limit = type == DV_BF16 ? 5e-2 : strncmp(method, "division", 8) == 0 ? 1e-2 : 1e-4;
        dv_pass_forced = type == DV_BF16 ? &dv_winograd_maker : NULL;
        dv_slice_bytes_force(bytes[i / 2 / METHODS]);
        check(NULL, type, method, 5, (limits){limit, limit});
        if (test_scale() == 1 && i / 2 / METHODS < 2)
            check("resnet20", type, method, 4, (limits){limit, limit});
    }
    dv_pass_forced = NULL;
    dv_slice_bytes_force(0);
}

/* What a smaller step leaves behind the images harms no full one. */
static void full_steps_follow(void **state) {
    (void)state;
    for (size_t m = 0; m < METHODS; m++) {
        trained plain = trained_new(NULL, DV_F32, PLANNED, methods[m]);
        trained after = trained_new(NULL, DV_F32, PLANNED, methods[m]);
        const dv_run_parameter *p, *q;
        assert_int_equal(dv_run_images(after.run), PLANNED);
        train(after.run, 2, 1);
        assert_int_equal(dv_run_images(after.run), 2);
        for (size_t k = 0; (p = dv_run_parameter_at(after.run, k)); k++) {
            q = dv_run_parameter_at(plain.run, k);
            memcpy(p->data, q->data, p->count * sizeof(float));
            if (p->gradient)
                memset(p->gradient, 0, p->count * sizeof(float));
        }
        assert_true(train(after.run, PLANNED, 2).loss == train(plain.run, PLANNED, 2).loss);
        compare(methods[m], plain.run, after.run, (limits){0, 0});
        trained_free(plain);
        trained_free(after);
    }
}

static void bounds_are_checked(void **state) {
    (void)state;
    trained t = trained_new(NULL, DV_F32, PLANNED, "none");
    assert_fails(dv_run_set_images(t.run, 0, &error), DV_ERROR_OPTION, "images: 0: must be from 1 to 6");
    assert_fails(dv_run_set_images(t.run, PLANNED + 1, &error), DV_ERROR_OPTION, "images: 7");
    assert_fails(dv_run_set_images(NULL, 1, &error), DV_ERROR_ARGUMENT, "NULL");
    assert_int_equal(dv_run_images(t.run), PLANNED);
    assert_int_equal(dv_run_fewest_images(t.run), 1);
    trained_free(t);
}

/* A batch norm of rank 0 has one value of each image and channel: one image has no variance. */
static void one_value_has_no_variance(void **state) {
    (void)state;
    dv_graph *graph;
    dv_plan *plan;
    dv_run *run;
    dv_step_result result;
    dv_plan_options options = dv_plan_options_default();
    assert_ok(dv_graph_new(DV_F32, 4, &graph, &error));
    dv_value x = dv_graph_input(graph, 3, 2, (const size_t[]){5, 5});
    x = dv_graph_batch_norm(graph, "norm", dv_graph_global_average_pooling(graph, "pool", x));
    x = dv_graph_linear(graph, "fc", x, &(dv_linear_options){.channels = 10, .bias = true});
    assert_ok(dv_graph_finish(graph, x, &error));
    assert_ok(dv_plan_new(graph, &options, &plan, &error));
    assert_ok(dv_run_new(plan, 1, &run, &error));
    assert_int_equal(dv_run_fewest_images(run), 2);
    train(run, 2, 0);
    feed(run, 1, 0);
    assert_fails(dv_run_train(run, &(dv_step){.batch = 0}, &result, &error), DV_ERROR_UNSUPPORTED,
                 "norm: one value per channel");
    feed(run, 1, 0);
    assert_ok(dv_run_evaluate(run, &result, &error));
    dv_run_free(run);
    dv_plan_free(plan);
    dv_graph_free(graph);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fewer_images_are_a_plan_for_fewer),
        cmocka_unit_test(slices_need_not_be_full),
        cmocka_unit_test(full_steps_follow),
        cmocka_unit_test(bounds_are_checked),
        cmocka_unit_test(one_value_has_no_variance),
    };
    return cmocka_run_group_tests_name("images", tests, NULL, NULL);
}
