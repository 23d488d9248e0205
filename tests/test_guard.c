/* Guards of the arena: a layer that writes one byte outside of its pieces is named, guards change no bit and no planned
 * byte, and of what is planned nothing is left unwritten without a reason. */
#include "check.h"
#include "graph/plan.h"

#include <division/models.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define __asan_address_is_poisoned(address) ((void)(address), 1)
#endif

static const dv_guard_options red_zones = {.zones = true, .fill = true, .pattern = 0xFF};

typedef struct network {
    dv_graph *graph;
    dv_plan *plan;
    dv_run *run;
} network;

static network run_of(dv_graph *graph, const char *method, const dv_guard_options *guard) {
    network n = {.graph = graph};
    dv_plan_options options = dv_plan_options_default();
    options.method = method;
    assert_ok(dv_plan_new_guarded(graph, &options, guard, &n.plan, &error));
    assert_ok(dv_run_new(n.plan, 1, &n.run, &error));
    return n;
}

static void network_free(network n) {
    dv_run_free(n.run);
    dv_plan_free(n.plan);
    dv_graph_free(n.graph);
}

static void fill_batch(dv_run *run) {
    const dv_map *map = dv_run_input_map(run);
    for (size_t i = 0; i < dv_map_elements(map); i++) {
        float number = (float)((uint32_t)i * 2654435761u >> 16) * 0x1p-16f - 0.5f;
        if (map->type == DV_F32)
            ((float *)dv_run_input(run))[i] = number;
        else
            ((uint16_t *)dv_run_input(run))[i] = (uint16_t)(0x3f00 + (i * 37 & 0x80ff)); /* 0.5 to 2, of either sign */
    }
    for (size_t i = 0; i < map->images; i++)
        dv_run_labels(run)[i] = (int32_t)(i % 10);
}

static dv_status step(network *n, dv_error *error) {
    dv_step_result result;
    fill_batch(n->run);
    return dv_run_train(n->run, &(dv_step){.batch = 0}, &result, error);
}

/* ---- layers that write too far --------------------------------------------------------------- */

static dv_graph *small_graph(void) {
    dv_graph *graph;
    assert_ok(dv_graph_new(DV_F32, 3, &graph, &error));
    const dv_convolution_options conv = {.channels = 5, .window = dv_window_square(3, 1, 1), .groups = 1};
    dv_value x = dv_graph_input(graph, 3, 2, (const size_t[]){7, 5});
    x = dv_graph_relu(graph, "relu", dv_graph_convolution(graph, "conv", x, &conv));
    x = dv_graph_dropout(graph, "dropout", x, 0.5f);
    x = dv_graph_global_average_pooling(graph, "pool", dv_graph_convolution(graph, "second", x, &conv));
    assert_ok(dv_graph_finish(
        graph, dv_graph_linear(graph, "fc", x, &(dv_linear_options){.channels = 10, .bias = true}), &error));
    return graph;
}

enum { LAYER = 1 }; /* the ReLU, which is replaced by one that does harm */

/* What it does wrong. */
typedef struct harm {
    const char *words; /* of the message */
    bool backward;
    enum { OUTPUT, BITS, WORKSPACE } where; /* backward: OUTPUT is the gradient that it finds */
    ptrdiff_t byte;                         /* from the start, or, if not negative, from the end */
} harm;

static const harm harms[] = {
    {"relu wrote 1 bytes past the end of relu's output", false, OUTPUT, 0},
    {"relu wrote 9 bytes past the end of relu's output", false, OUTPUT, 8},
    {"relu wrote 1 bytes before the start of relu's output", false, OUTPUT, -1},
    {"relu wrote 256 bytes before the start of relu's output", false, OUTPUT, -256},
    {"relu wrote 1 bytes past the end of relu's mask", false, BITS, 0},
    {"relu wrote 1 bytes past the end of conv's output's gradient", true, OUTPUT, 0},
    {"relu wrote 1 bytes before the start of conv's output's gradient", true, OUTPUT, -1},
    {"relu wrote 1 bytes past the end of relu's backward workspace", true, WORKSPACE, 0},
};

static const harm *done;
static bool was_poisoned;

NOT_SANITIZED static void do_harm(void *piece, size_t bytes) {
    unsigned char *at = (unsigned char *)piece + done->byte + (done->byte < 0 ? 0 : (ptrdiff_t)bytes);
    was_poisoned = __asan_address_is_poisoned(at);
    *at = 0;
}

static dv_status harmful_forward(const dv_layer *layer, const dv_forward *call, dv_error *error) {
    const dv_map *map = &layer->output;
    dv_status status = dv_relu.forward(layer, call, error);
    if (!done->backward && done->where == OUTPUT)
        do_harm(call->output, dv_map_bytes(map));
    if (!done->backward && done->where == BITS)
        do_harm(call->output_mask, map->images * dv_mask_stride(map));
    return status;
}

static dv_status harmful_backward(const dv_layer *layer, const dv_backward *call, dv_error *error) {
    dv_status status = dv_relu.backward(layer, call, error);
    if (done->backward && done->where == OUTPUT)
        do_harm(call->diff_inputs[0], dv_map_bytes(&layer->output));
    if (done->backward && done->where == WORKSPACE)
        do_harm(call->workspace, layer->backward_workspace_bytes);
    return status;
}

static void a_byte_too_far_is_caught(void **state) {
    (void)state;
    dv_layer_kind harmful = dv_relu;
    harmful.forward = harmful_forward;
    harmful.backward = harmful_backward;
    harmful.in_place = false;
    harmful.diff_in_place = 0;
    for (size_t i = 0; i < sizeof harms / sizeof *harms; i++) {
        dv_graph *graph = small_graph();
        assert_ptr_equal(graph->layers[LAYER].layer.kind, &dv_relu);
        graph->layers[LAYER].layer.kind = &harmful;
        done = &harms[i];
        was_poisoned = false;
        network n = run_of(graph, "division", &red_zones);
        assert_fails(step(&n, &error), DV_ERROR_BUFFER, done->words);
        assert_true(was_poisoned);
        network_free(n);
    }
}

NOT_SANITIZED static void write_behind(void *memory, size_t bytes) {
    ((char *)memory)[bytes] = 1;
}

/* Also one that does it between steps: who fills in a batch. The next step finds everything in order again. */
static void callers_are_watched_too(void **state) {
    (void)state;
    network n = run_of(small_graph(), "division", &red_zones);
    dv_step_result result;
    assert_ok(step(&n, &error));
    fill_batch(n.run);
    write_behind(dv_run_labels(n.run), 3 * sizeof(int32_t));
    assert_fails(dv_run_train(n.run, &(dv_step){.batch = 0}, &result, &error), DV_ERROR_BUFFER,
                 "whoever filled in the batch wrote 1 bytes past the end of the input's labels");
    network_free(n);
    n = run_of(small_graph(), "division", &red_zones);
    fill_batch(n.run);
    write_behind(dv_run_input(n.run), dv_map_bytes(dv_run_input_map(n.run)));
    assert_fails(dv_run_evaluate(n.run, &result, &error), DV_ERROR_BUFFER, "past the end of the input's output");
    network_free(n);
}

/* ---- no difference --------------------------------------------------------------------------- */

static const char *const methods[] = {"none", "division", "division:recompute=norms", "lean"};
static const char *const models[] = {"resnet20", "densenet121_cifar"};

/* What is tried with each: a network, a method, a type. Fewer where tests are slow. */
typedef struct way {
    const char *model, *method;
    dv_type type;
} way;

static size_t way_count(void) {
    return test_scale() > 1 ? 8 : 12;
}

static way way_at(size_t i) {
    return (way){models[i / 8], methods[i % 4], i / 4 & 1 ? DV_BF16 : DV_F32};
}

static dv_graph *model_graph(way w) {
    dv_graph *graph;
    assert_ok(dv_model_build(w.model, w.type, 2, 10, 16, &graph, &error));
    return graph;
}

static void guards_change_nothing(void **state) {
    (void)state;
    for (size_t i = 0; i < way_count(); i++) {
        way w = way_at(i);
        network plain = run_of(model_graph(w), w.method, &(dv_guard_options){0});
        network guarded = run_of(model_graph(w), w.method, &red_zones);
        assert_true(guarded.plan->arena_bytes > plain.plan->arena_bytes);
        assert_int_equal(dv_plan_totals(guarded.plan).planned, plain.plan->arena_bytes);
        assert_int_equal(dv_plan_totals(guarded.plan).workspace, dv_plan_totals(plain.plan).workspace);
        for (int k = 0; k < 2; k++) {
            assert_ok(step(&plain, &error));
            assert_ok(step(&guarded, &error));
        }
        const dv_run_parameter *p, *q;
        for (size_t k = 0; (p = dv_run_parameter_at(plain.run, k)) && (q = dv_run_parameter_at(guarded.run, k)); k++)
            if (p->gradient && memcmp(p->gradient, q->gradient, p->count * sizeof(float)) != 0)
                fail_msg("%s, %s, %s: another gradient of %s", w.model, w.method, dv_type_name(w.type), p->name);
        network_free(plain);
        network_free(guarded);
    }
}

/* ---- everything is written ------------------------------------------------------------------- */

/* Pieces that a step need not write in full, and why. All others must be, and of these some byte. */
static const struct {
    const char *role, *reason;
} partly_written[] = {
    {"forward workspace", "libraries ask for more than they use, parts are rounded up to 64 bytes"},
    {"backward workspace", "the same; and buffers of a slice serve only where values are packed, or masks not kept"},
    {"mask", "each image's are rounded up to 64 bytes"},
    {"recompute workspace", "the same, of a mask that is decoded there"},
};

static bool may_be_partly_written(const dv_owner *owner) {
    for (size_t i = 0; i < sizeof partly_written / sizeof *partly_written; i++)
        if (strcmp(partly_written[i].role, owner->role) == 0)
            return true;
    return false;
}

/* Where the arena is. */
static const unsigned char *arena_of(const network *n) {
    int piece = n->plan->values[n->graph->input].data;
    return (const unsigned char *)dv_run_input(n->run) - n->plan->pieces[piece].offset;
}

/* Bytes that still are what the piece was filled with, in two runs that filled it with different patterns. */
static size_t unwritten(const network runs[2], size_t piece) {
    const dv_piece *p = &runs[0].plan->pieces[piece];
    const unsigned char *a = arena_of(&runs[0]) + p->offset, *b = arena_of(&runs[1]) + p->offset;
    size_t count = 0;
    for (size_t i = 0; i < p->bytes; i++)
        count += a[i] == runs[0].plan->guard.pattern && b[i] == runs[1].plan->guard.pattern;
    return count;
}

static size_t report_unwritten(const network runs[2], way w) {
    const dv_plan *plan = runs[0].plan;
    dv_owner *owners = calloc(plan->piece_count, sizeof *owners);
    size_t found = 0;
    dv_plan_owners(plan, owners);
    for (size_t i = 0; i < plan->piece_count; i++) {
        if (!owners[i].role)
            fail_msg("%s, %s: piece %zu is nobody's", w.model, w.method, i);
        size_t count = owners[i].given ? 0 : unwritten(runs, i);
        if (count == 0 || (count < plan->pieces[i].bytes && may_be_partly_written(&owners[i])))
            continue;
        print_message("%s, %s, %s: %s's %s: %zu of %zu bytes are never written\n", w.model, w.method,
                      dv_type_name(w.type), owners[i].layer ? owners[i].layer->name : "input", owners[i].role, count,
                      plan->pieces[i].bytes);
        found++;
    }
    free(owners);
    return found;
}

static void what_is_planned_is_written(void **state) {
    (void)state;
    size_t found = 0;
    for (size_t i = 0; i < way_count(); i++) {
        way w = way_at(i);
        network runs[2];
        for (int k = 0; k < 2; k++) {
            const dv_guard_options apart = {.apart = true, .fill = true, .pattern = k ? 0x5A : 0xFF};
            runs[k] = run_of(model_graph(w), w.method, &apart);
            assert_ok(step(&runs[k], &error));
        }
        found += report_unwritten(runs, w);
        network_free(runs[0]);
        network_free(runs[1]);
    }
    assert_int_equal(found, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_byte_too_far_is_caught),
        cmocka_unit_test(callers_are_watched_too),
        cmocka_unit_test(guards_change_nothing),
        cmocka_unit_test(what_is_planned_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
