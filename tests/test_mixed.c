/* Method `mixed`: with the letters of what another method does it is that method, to the bit; what cannot be is told.
 */
#include "check.h"

#include <division/graph.h>
#include <division/models.h>

enum { MOST = 1000, BATCH = 2 };

static dv_plan *planned(dv_graph *graph, const char *method) {
    dv_plan_options options = dv_plan_options_default();
    dv_plan *plan;
    options.method = method;
    assert_ok(dv_plan_new(graph, &options, &plan, &error));
    return plan;
}

static dv_graph *network(const char *name, dv_type type) {
    const dv_model_options options = {.type = type, .batch = BATCH, .side = 32, .classes = 10};
    dv_graph *graph;
    assert_ok(dv_model_build_with(name, &options, &graph, &error));
    return graph;
}

static bool begins(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

/* The letters of what a plan does; `packed` for values that are packed, `images` for the images if they are. */
static void write_letters(const dv_plan *plan, char packed, char images, char *text) {
    static const struct {
        const char *keeper;
        char letter;
    } known[] = {{"exact, spilled", 's'}, {"exact", 'x'}, {"recomputed", 'r'},
                 {"replayed", 'p'},       {"packed", 0},  {"lean", 0}};
    size_t i = 0;
    for (const dv_plan_row *row; (row = dv_plan_row_at(plan, i)); i++) {
        text[i] = '-';
        for (size_t k = 0; text[i] == '-' && k < sizeof known / sizeof *known; k++)
            if (begins(row->keeper, known[k].keeper))
                text[i] = known[k].letter ? known[k].letter : i == 0 ? images : packed;
    }
    text[i] = '\0';
}

/* Two steps with each, in which parameters move: losses and parameters are the same. */
static void check_alike(const dv_plan *a, const dv_plan *b) {
    dv_run *runs[2];
    assert_ok(dv_run_new((dv_plan *)a, 1, &runs[0], &error));
    assert_ok(dv_run_new((dv_plan *)b, 1, &runs[1], &error));
    for (uint64_t step = 0; step < 2; step++) {
        dv_step_result found[2];
        for (int i = 0; i < 2; i++) {
            const dv_map *map = dv_run_input_map(runs[i]);
            size_t bytes = dv_map_bytes(map);
            unsigned char *images = dv_run_input(runs[i]);
            for (size_t k = 0; k < bytes; k++) /* numbers below 2 in either type */
                images[k] = (unsigned char)((k % 2 ? 0x3e : 0) + (k * 2654435761u >> 13) % 29);
            for (int32_t n = 0; n < BATCH; n++)
                dv_run_labels(runs[i])[n] = n;
            assert_ok(dv_run_train(runs[i], &(dv_step){.batch = step}, &found[i], &error));
            assert_ok(dv_run_update(runs[i], 0.01, step, &error));
        }
        assert_true(found[0].loss == found[1].loss);
    }
    for (size_t i = 0; dv_run_parameter_at(runs[0], i); i++) {
        const dv_run_parameter *p = dv_run_parameter_at(runs[0], i), *q = dv_run_parameter_at(runs[1], i);
        if (memcmp(p->data, q->data, p->count * sizeof *p->data) != 0)
            fail_msg("%s differs", p->name);
    }
    dv_run_free(runs[0]);
    dv_run_free(runs[1]);
}

/* Where a segment ends with a value that nobody reads, letters do not tell it: it ends later, and keeps no more. */
static void check_bytes(const dv_plan *mixed, const dv_plan *other, bool replays) {
    dv_plan_summary a = dv_plan_totals(mixed), b = dv_plan_totals(other);
    assert_true(a.activations == b.activations || (replays && a.activations < b.activations));
    if (!replays)
        assert_int_equal(a.planned, b.planned);
}

static void is_the_method_that_its_letters_are_of(void **state) {
    (void)state;
    static const struct {
        const char *method;
        char packed, images;
    } cases[] = {
        {"none", '-', '-'},
        {"division:dither=subtractive", 'b', 'h'},
        {"division:bits=1,dither=subtractive", 'a', 'h'},
        {"division:bits=4,dither=subtractive", 'd', 'h'},
        {"division:bits=8,dither=subtractive", 'h', 'h'},
        {"lean:chain=64", 'l', 'w'},
        {"lean:levels=15,chain=64", 'n', 'w'},
        {"checkpoint", '-', '-'},
        {"checkpoint:segments=3", '-', '-'},
        {"swap", '-', '-'},
    };
    static const struct {
        const char *name;
        dv_type type;
        size_t first; /* case */
    } models[] = {{"resnet20", DV_F32, 0}, {"resnet20", DV_BF16, 5}, {"densenet121_cifar", DV_F32, 8}};
    char text[MOST] = "mixed:", *letters = text + strlen(text);
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        dv_graph *graph = network(models[m].name, models[m].type);
        for (size_t i = models[m].first; i < sizeof cases / sizeof *cases; i++) {
            dv_plan *other = planned(graph, cases[i].method);
            write_letters(other, cases[i].packed, cases[i].images, letters);
            dv_plan *mixed = planned(graph, text);
            check_bytes(mixed, other, strchr(letters, 'p') != NULL);
            check_alike(mixed, other);
            dv_plan_free(mixed);
            dv_plan_free(other);
        }
        dv_graph_free(graph);
    }
}

/* A code that has a mask inside, beside outputs of norms that are exact: nothing of these is lost, and the mask is
 * right. */
static void lean_codes_stand_beside_exact_values(void **state) {
    (void)state;
    char text[MOST] = "mixed:", *letters = text + strlen(text);
    dv_graph *graph = network("resnet20", DV_F32);
    dv_plan *none = planned(graph, "none"), *lean = planned(graph, "lean");
    write_letters(none, 'x', 'x', letters);
    for (size_t i = 1; letters[i]; i++)
        if (strcmp(dv_plan_row_at(lean, i)->keeper, "lean") == 0)
            letters[i] = 'l';
    dv_plan *mixed = planned(graph, text), *again = planned(graph, text);
    assert_true(dv_plan_totals(mixed).activations < dv_plan_totals(none).activations * 7 / 10);
    assert_true(dv_plan_totals(mixed).activations > dv_plan_totals(lean).activations);
    check_alike(mixed, again);
    dv_plan_free(again);
    dv_plan_free(mixed);
    dv_plan_free(lean);
    dv_plan_free(none);
    dv_graph_free(graph);
}

/* What is recomputed from exact values is what it was. */
static void recomputes_exactly_from_exact_values(void **state) {
    (void)state;
    char text[MOST] = "mixed:", *letters = text + strlen(text);
    dv_graph *graph = network("resnet20", DV_F32);
    dv_plan *none = planned(graph, "none"), *recomputed = planned(graph, "division:recompute=norms");
    write_letters(recomputed, 'x', 'x', letters);
    assert_non_null(strchr(letters, 'r'));
    dv_plan *mixed = planned(graph, text);
    assert_true(dv_plan_totals(mixed).activations < dv_plan_totals(none).activations * 7 / 10);
    check_alike(mixed, none);
    dv_plan_free(mixed);
    dv_plan_free(recomputed);
    dv_plan_free(none);
    dv_graph_free(graph);
}

static void check_refused(dv_graph *graph, const char *letters, const char *words) {
    dv_plan_options options = dv_plan_options_default();
    char text[MOST];
    dv_plan *plan;
    snprintf(text, sizeof text, "mixed:%s", letters);
    options.method = text;
    assert_fails(dv_plan_new(graph, &options, &plan, &error), DV_ERROR_OPTION, words);
}

/* Letters of `none` but for one. */
static void check_refused_at(dv_graph *graph, size_t index, char letter, const char *words) {
    char letters[MOST];
    dv_plan *none = planned(graph, "none");
    write_letters(none, '-', '-', letters);
    letters[index] = letter;
    check_refused(graph, letters, words);
    dv_plan_free(none);
}

static void tells_what_cannot_be(void **state) {
    (void)state;
    dv_graph *graph = network("resnet20", DV_F32);
    dv_plan_options options = dv_plan_options_default();
    dv_plan *plan;
    options.method = "mixed";
    assert_fails(dv_plan_new(graph, &options, &plan, &error), DV_ERROR_OPTION, "mixed: 0 letters for the ");
    check_refused(graph, "xxx", "mixed: 3 letters for the ");
    check_refused_at(graph, 0, 'q', "mixed: 'q' stands for no way to keep the images");
    check_refused_at(graph, 2, '\n', "mixed: '?' stands for no way to keep bn1");
    check_refused_at(graph, 0, 'r', "mixed: the images cannot be recomputed ('r')");
    check_refused_at(graph, 1, 'r', "mixed: conv1 cannot be recomputed ('r')");
    check_refused_at(graph, 0, 'p', "mixed: the images cannot be replayed ('p')");
    dv_graph_free(graph);
}

/* A packed value between segments cannot be what a segment begins with. */
static void tells_what_a_replay_cannot_read(void **state) {
    (void)state;
    char letters[MOST];
    dv_graph *graph = network("resnet20", DV_F32);
    dv_plan *checkpoint = planned(graph, "checkpoint:segments=3");
    write_letters(checkpoint, '-', '-', letters);
    letters[0] = 'h';
    check_refused(graph, letters, "mixed: the images must be exact ('x') when conv1 runs again, not 'h'");
    dv_plan_free(checkpoint);
    dv_graph_free(graph);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_the_method_that_its_letters_are_of), cmocka_unit_test(lean_codes_stand_beside_exact_values),
        cmocka_unit_test(recomputes_exactly_from_exact_values),  cmocka_unit_test(tells_what_cannot_be),
        cmocka_unit_test(tells_what_a_replay_cannot_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
