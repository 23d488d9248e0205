/* Plans: pieces that live at the same time do not overlap, sharing memory changes nothing, planned bytes are the
 * bytes that a run takes. */
#include "check.h"
#include "graph/plan.h"

#include <division/models.h>
#include <unistd.h>

static const char *const methods[] = {"none", "division", "division:recompute=norms", "checkpoint"};
enum { METHODS = sizeof methods / sizeof *methods, CASES = 3 * METHODS };
static const char *const models[] = {"resnet20", "resnet164_cifar", "densenet121_cifar"};

typedef struct network {
    dv_graph *graph;
    dv_plan *plan;
    dv_run *run;
} network;

static network planned_with(const dv_guard_options *guard, const char *model, size_t batch, size_t side,
                            const char *method) {
    network n = {0};
    dv_plan_options options = dv_plan_options_default();
    options.method = method;
    assert_ok(dv_model_build(model, DV_F32, batch, 10, side, &n.graph, &error));
    assert_ok(dv_plan_new_guarded(n.graph, &options, guard, &n.plan, &error));
    return n;
}

static network planned(const char *model, size_t batch, size_t side, const char *method) {
    return planned_with(&(dv_guard_options){0}, model, batch, side, method);
}

static void network_free(network n) {
    dv_run_free(n.run);
    dv_plan_free(n.plan);
    dv_graph_free(n.graph);
}

static bool overlap(const dv_piece *a, const dv_piece *b) {
    bool together = a->first <= b->last && b->first <= a->last;
    return together && a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
}

static void pieces_do_not_overlap(void **state) {
    (void)state;
    for (size_t i = 0; i < CASES; i++) {
        network n = planned(models[i / METHODS], 2, 16, methods[i % METHODS]);
        size_t end = 0;
        for (size_t a = 0; a < n.plan->piece_count; a++) {
            const dv_piece *piece = &n.plan->pieces[a];
            end = piece->offset + piece->bytes > end ? piece->offset + piece->bytes : end;
            for (size_t b = 0; b < a; b++)
                if (overlap(piece, &n.plan->pieces[b]))
                    fail_msg("%s, %s: pieces %zu and %zu overlap", models[i / METHODS], methods[i % METHODS], b, a);
        }
        assert_in_range(n.plan->arena_bytes, end, end + DV_PLACE_ALIGNMENT);
        assert_int_equal(dv_plan_totals(n.plan).planned, n.plan->arena_bytes);
        network_free(n);
    }
}

static void train(network *n, size_t steps) {
    assert_ok(dv_run_new(n->plan, 1, &n->run, &error));
    const dv_map *map = dv_run_input_map(n->run);
    for (size_t step = 0; step < steps; step++) {
        dv_step_result result;
        for (size_t i = 0; i < dv_map_elements(map); i++)
            ((float *)dv_run_input(n->run))[i] = (float)((uint32_t)(i + step) * 2654435761u >> 16) * 0x1p-16f - 0.5f;
        for (size_t i = 0; i < map->images; i++)
            dv_run_labels(n->run)[i] = (int32_t)(i % 10);
        assert_ok(dv_run_train(n->run, &(dv_step){.batch = step}, &result, &error));
    }
}

/* If a piece were given away too early, its bytes would differ from those of a run that shares nothing, and whose
 * pieces are NaN until they are written. */
static void sharing_memory_changes_nothing(void **state) {
    (void)state;
    for (size_t i = 0; i < (test_scale() > 1 ? METHODS : CASES); i++) {
        network shared = planned(models[i / METHODS], 2, 16, methods[i % METHODS]),
                apart = planned_with(&(dv_guard_options){.apart = true, .fill = true, .pattern = 0xFF},
                                     models[i / METHODS], 2, 16, methods[i % METHODS]);
        assert_true(apart.plan->arena_bytes > shared.plan->arena_bytes);
        train(&shared, 2);
        train(&apart, 2);
        const dv_run_parameter *p, *q;
        for (size_t k = 0; (p = dv_run_parameter_at(shared.run, k)) && (q = dv_run_parameter_at(apart.run, k)); k++)
            if (p->gradient && memcmp(p->gradient, q->gradient, p->count * sizeof(float)) != 0)
                fail_msg("%s, %s: another gradient of %s", models[i / METHODS], methods[i % METHODS], p->name);
        network_free(shared);
        network_free(apart);
    }
}

/* Bytes of this process that are resident now. */
static size_t resident(void) {
    size_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL)
        leave_out("memory that is taken: there is no /proc");
    assert_int_equal(fscanf(file, "%*u %zu", &pages), 1);
    fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void planned_bytes_are_used(void **state) {
    (void)state;
    if (test_scale() > 1)
        leave_out("memory that is taken: sanitizers take some of their own");
    for (int i = 0; i < METHODS; i++) {
        network warm = planned("resnet20", 64, 32, methods[i]); /* what libraries allocate once is there afterwards */
        train(&warm, 1);
        network_free(warm);
        network n = planned("resnet20", 64, 32, methods[i]);
        size_t before = resident(), bytes = dv_plan_totals(n.plan).planned;
        train(&n, 2);
        size_t taken = resident() - before;
        print_message("%s: planned %zu, taken %zu\n", methods[i], bytes, taken);
        assert_in_range(taken, bytes - bytes / 100, bytes + (4u << 20));
        network_free(n);
    }
}

/* The rows tell of everything that is kept: the images, and what each layer leaves behind. */
static void rows_add_up(void **state) {
    (void)state;
    for (size_t i = 0; i < CASES; i++) {
        network n = planned(models[i / METHODS], 2, 16, methods[i % METHODS]);
        size_t bytes = 0, count = 0;
        const dv_plan_row *row;
        for (; (row = dv_plan_row_at(n.plan, count)); count++)
            bytes += row->kept_bytes + row->saved_bytes;
        assert_int_equal(bytes, dv_plan_totals(n.plan).activations);
        assert_int_equal(count, 1 + n.graph->layer_count);
        row = dv_plan_row_at(n.plan, 0);
        assert_string_equal(row->layer, "input");
        assert_string_equal(row->keeper, i % METHODS == 0 || i % METHODS == 3 ? "exact" : "packed");
        assert_true(row->bits_per_element >= 8); /* packed too: images have that many */
        network_free(n);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_do_not_overlap),
        cmocka_unit_test(sharing_memory_changes_nothing),
        cmocka_unit_test(planned_bytes_are_used),
        cmocka_unit_test(rows_add_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
