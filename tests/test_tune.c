/* Tuning: every candidate of every network's passes computes the same, choices follow measured times and the plan's
 * bytes, and files of choices are believed only if they are whole and this processor's. */
#include "base/cpu.h"
#include "base/file.h"
#include "graph/graph.h"
#include "nn/choices.h"
#include "passes.h"

#include <division/models.h>
#include <division/tune.h>

#include <unistd.h>

static char folder[] = "/tmp/dv_tune_XXXXXX";

static int make_folder(void **state) {
    (void)state;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(setenv("XDG_CACHE_HOME", folder, 1), 0);
    return 0;
}

static int remove_folder(void **state) {
    (void)state;
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command); /* NOLINT(cert-env33-c): the name is ours */
}

static const char *in_folder(const char *name) {
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* ---- candidates ----------------------------------------------------------------------------- */

/* Every candidate of a pass against oneDNN's, which test_convolution holds to plain sums. */
static void check_candidates(const dv_choice *choice) {
    size_t count;
    dv_pass_forced = &dv_onednn_maker;
    float *expected = computed(choice->kind, &choice->shape, 2, &count);
    for (int m = 0; m < DV_PASS_MAKERS; m++) {
        if (dv_pass_makers[m] == &dv_onednn_maker || !dv_pass_makers[m]->suits(choice->kind, &choice->shape))
            continue;
        dv_pass_forced = dv_pass_makers[m];
        float *got = computed(choice->kind, &choice->shape, 2, &count);
        bool rounded = choice->shape.type == DV_BF16 && choice->kind != DV_PASS_BACKWARD_WEIGHTS;
        assert_near(got, expected, count, rounded ? 1e-2 : 2e-5);
        free(got);
    }
    dv_pass_forced = NULL;
    free(expected);
}

/* Passes that another network has had already. */
static bool is_new(dv_choices *seen, const dv_choice *choice) {
    size_t before = seen->count;
    int index;
    assert_ok(dv_choices_note(seen, choice->kind, &choice->shape, "", &index, &error));
    return seen->count > before;
}

static void candidates_of_all_networks(void **state) {
    (void)state;
    enum { SIDE = 32 };
    dv_choices seen = {0};
    for (size_t m = 0; dv_model_at(m); m += test_scale())
        for (int type = DV_F32; type <= DV_BF16; type++) {
            dv_graph *graph;
            assert_ok(dv_model_build(dv_model_at(m)->name, (dv_type)type, 2, 0, SIDE, &graph, &error));
            for (size_t i = 0; i < graph->choices.count; i++)
                if (dv_choice_candidates(&graph->choices.at[i]) > 1 && is_new(&seen, &graph->choices.at[i]))
                    check_candidates(&graph->choices.at[i]);
            dv_graph_free(graph);
        }
    dv_choices_free(&seen);
}

/* ---- choosing ------------------------------------------------------------------------------- */

enum { WINOGRAD = 1, ONEDNN = DV_PASS_MAKERS - 1 }; /* in dv_pass_makers */

static dv_choice choice_with(double winograd, double onednn) {
    dv_convolution_shape shape = square_shape(DV_F32, 8, 32, 32, 16, 1);
    dv_choice choice = {.kind = DV_PASS_FORWARD, .shape = shape, .threads = 1, .maker = ONEDNN, .expected = ONEDNN};
    choice.seconds[WINOGRAD] = winograd, choice.seconds[ONEDNN] = onednn;
    choice.bytes[WINOGRAD] = 1000, choice.bytes[ONEDNN] = 10;
    return choice;
}

static void the_fastest(void **state) {
    (void)state;
    dv_choice choice = choice_with(1, 2);
    assert_int_equal(dv_choice_fastest(&choice, SIZE_MAX), WINOGRAD);
    assert_int_equal(dv_choice_fastest(&choice, 1000), WINOGRAD);
    assert_int_equal(dv_choice_fastest(&choice, 999), ONEDNN);
    choice = choice_with(2, 1);
    assert_int_equal(dv_choice_fastest(&choice, SIZE_MAX), ONEDNN);
    choice = choice_with(0.99, 1); /* noise */
    assert_int_equal(dv_choice_fastest(&choice, SIZE_MAX), ONEDNN);
    choice = choice_with(0, 0);
    assert_int_equal(dv_choice_fastest(&choice, SIZE_MAX), ONEDNN);
}

static void parsing(void **state) {
    (void)state;
    dv_tune_options tune = dv_tune_options_default();
    assert_ok(dv_tune_parse("again:prefer=speed", &tune, &error));
    assert_int_equal(tune.mode, DV_TUNE_AGAIN);
    assert_true(tune.prefer_speed);
    assert_ok(dv_tune_parse("cache", &tune, &error));
    assert_int_equal(tune.mode, DV_TUNE_CACHE);
    assert_false(tune.prefer_speed);
    assert_fails(dv_tune_parse("fast", &tune, &error), DV_ERROR_OPTION, "unknown way to tune \"fast\"");
    assert_fails(dv_tune_parse("off:prefer=speed", &tune, &error), DV_ERROR_OPTION, "off: unknown option");
    assert_fails(dv_tune_parse("cache:prefer=ease", &tune, &error), DV_ERROR_OPTION, "must be memory or speed");
    assert_int_equal(setenv("DV_TUNE", "off", 1), 0);
    assert_ok(dv_tune_parse(NULL, &tune, &error));
    assert_int_equal(tune.mode, DV_TUNE_OFF);
    assert_int_equal(setenv("DV_TUNE", "sometimes", 1), 0);
    assert_fails(dv_tune_parse("", &tune, &error), DV_ERROR_OPTION, "DV_TUNE: unknown way to tune \"sometimes\"");
    assert_int_equal(unsetenv("DV_TUNE"), 0);
}

/* ---- graphs --------------------------------------------------------------------------------- */

static dv_graph *network_new(void) {
    dv_graph *graph;
    assert_ok(dv_model_build("resnet20", DV_F32, 8, 0, 0, &graph, &error));
    return graph;
}

static size_t planned(dv_graph *graph) {
    dv_plan_options options = dv_plan_options_default();
    dv_plan *plan;
    assert_ok(dv_plan_new(graph, &options, &plan, &error));
    size_t bytes = dv_plan_totals(plan).planned;
    dv_plan_free(plan);
    return bytes;
}

/* A file of choices in which Winograd's passes take no time, wherever they suit, so that they are all wished for. */
static void write_wishes(const char *path) {
    dv_graph *graph = network_new();
    for (size_t i = 0; i < graph->choices.count; i++) {
        dv_choice *choice = &graph->choices.at[i];
        assert_ok(dv_choice_measure(choice, &error));
        if (choice->seconds[WINOGRAD] > 0)
            choice->seconds[WINOGRAD] = 1e-6, choice->maker = WINOGRAD;
    }
    assert_ok(dv_graph_write_passes(graph, path, &error));
    dv_graph_free(graph);
}

static void no_more_bytes(void **state) {
    (void)state;
    char path[4096];
    dv_graph *graph = network_new();
    dv_plan_options plan = dv_plan_options_default();
    dv_tune_options tune = dv_tune_options_default();
    dv_tune_result result;
    size_t before = planned(graph);
    assert_true(dv_choices_cache_path(path, sizeof path));
    write_wishes(path);
    assert_ok(dv_graph_tune(graph, &plan, &tune, &result, &error));
    assert_int_equal(result.measured, 0); /* all of it was in the file */
    assert_true(planned(graph) <= before);
    size_t changed = result.changed;
    tune.prefer_speed = 1;
    assert_ok(dv_graph_tune(graph, &plan, &tune, &result, &error));
    assert_true(result.changed >= changed);
    for (size_t i = 0; i < graph->choices.count; i++)
        assert_int_equal(graph->choices.at[i].maker, graph->choices.at[i].seconds[WINOGRAD] > 0 ? WINOGRAD : ONEDNN);
    dv_graph_free(graph);
}

/* Who computes the passes of a graph, the first letter of each. */
static void makers_of(const dv_graph *graph, char *letters, size_t most) {
    size_t count = 0, runs;
    for (size_t i = 0; i < graph->layer_count; i++) {
        const dv_layer *layer = &graph->layers[i].layer;
        const dv_pass *pass;
        for (int p = 0; layer->kind->pass && (pass = layer->kind->pass(layer, p, &runs)); p++) {
            assert_true(count + 1 < most);
            letters[count++] = *dv_pass_makers[graph->choices.at[pass->choice].maker]->name;
        }
    }
    letters[count] = '\0';
}

/* A pass that would raise the peak is left out where it would, and there alone; a training that goes on does the same.
 */
static void single_layers(void **state) {
    (void)state;
    enum { MOST = 512 };
    char path[4096], chosen[MOST], read[MOST];
    dv_graph *graph = network_new(), *later = network_new();
    dv_plan_options plan = dv_plan_options_default();
    dv_tune_options tune = dv_tune_options_default();
    assert_true(dv_choices_cache_path(path, sizeof path));
    write_wishes(path);
    assert_ok(dv_graph_tune(graph, &plan, &tune, NULL, &error));
    makers_of(graph, chosen, MOST);
    for (size_t i = 0; i < graph->choices.count; i++) {
        const dv_choice *own = &graph->choices.at[i];
        assert_true(!own->layer || own->bytes[own->maker] <= own->bytes[own->expected]);
    }
    if (dv_isa_current() == DV_ISA_AVX512) /* where oneDNN is expected, which takes less memory */
        assert_true(strchr(chosen, 'w') && strchr(chosen, 'o') && graph->choices.at[graph->choices.count - 1].layer);
    tune.kept = in_folder("layers.txt");
    assert_ok(dv_graph_write_passes(graph, tune.kept, &error));
    assert_ok(dv_graph_tune(later, &plan, &tune, NULL, &error));
    makers_of(later, read, MOST);
    assert_string_equal(read, chosen);
    assert_int_equal(planned(later), planned(graph));
    dv_graph_free(later);
    dv_graph_free(graph);
}

/* Where the plan has room, it is as if speed went first. */
static void room_is_used(void **state) {
    (void)state;
    enum { MOST = 512 };
    char path[4096], fastest[MOST], roomy[MOST];
    dv_graph *first = network_new(), *second = network_new();
    dv_plan_options plan = dv_plan_options_default();
    dv_tune_options tune = dv_tune_options_default();
    assert_true(dv_choices_cache_path(path, sizeof path));
    write_wishes(path);
    tune.room = SIZE_MAX / 2;
    assert_ok(dv_graph_tune(second, &plan, &tune, NULL, &error));
    makers_of(second, roomy, MOST);
    tune = dv_tune_options_default();
    tune.prefer_speed = true;
    assert_ok(dv_graph_tune(first, &plan, &tune, NULL, &error));
    makers_of(first, fastest, MOST);
    assert_string_equal(roomy, fastest);
    tune.room = 1; /* less than there must be: then it is as if there were none */
    dv_graph *third = network_new();
    size_t expected = planned(third);
    assert_ok(dv_graph_tune(third, &plan, &tune, NULL, &error));
    assert_true(planned(third) <= expected);
    dv_graph_free(third);
    dv_graph_free(second);
    dv_graph_free(first);
}

static float loss_of(dv_graph *graph) {
    dv_plan_options options = dv_plan_options_default();
    dv_plan *plan;
    dv_run *run;
    dv_step_result result;
    assert_ok(dv_plan_new(graph, &options, &plan, &error));
    assert_ok(dv_run_new(plan, 1, &run, &error));
    const dv_map *map = dv_run_input_map(run);
    for (uint64_t batch = 0; batch < 2; batch++) {
        float *images = dv_run_input(run);
        for (size_t i = 0; i < dv_map_elements(map); i++)
            images[i] = (float)(i * 2654435761u % 1000) * 1e-3f - 0.5f;
        memset(dv_run_labels(run), 0, map->images * sizeof(int32_t));
        assert_ok(
            dv_run_train(run, &(dv_step){.batch = batch, .scale = 1, .rate = 0.1, .update = true}, &result, &error));
    }
    dv_run_free(run);
    dv_plan_free(plan);
    return (float)result.loss;
}

/* A training that goes on has the passes it had, whatever was measured since. */
static void kept(void **state) {
    (void)state;
    const char *path = in_folder("passes.txt");
    write_wishes(path);
    dv_plan_options plan = dv_plan_options_default();
    dv_tune_options tune = {.mode = DV_TUNE_AGAIN, .kept = path};
    dv_tune_result result;
    float losses[2];
    for (int i = 0; i < 2; i++) {
        dv_graph *graph = network_new();
        assert_ok(dv_graph_tune(graph, &plan, &tune, &result, &error));
        assert_int_equal(result.measured, 0);
        for (size_t c = 0; c < graph->choices.count; c++)
            assert_int_equal(graph->choices.at[c].maker,
                             graph->choices.at[c].seconds[WINOGRAD] > 0 ? WINOGRAD : ONEDNN);
        losses[i] = loss_of(graph);
        dv_graph_free(graph);
    }
    assert_memory_equal(&losses[0], &losses[1], sizeof losses[0]);
}

static void not_while_there_are_plans(void **state) {
    (void)state;
    dv_graph *graph = network_new();
    dv_plan_options options = dv_plan_options_default();
    dv_tune_options tune = dv_tune_options_default();
    dv_plan *plan;
    assert_ok(dv_plan_new(graph, &options, &plan, &error));
    assert_fails(dv_graph_tune(graph, &options, &tune, NULL, &error), DV_ERROR_ARGUMENT, "has plans already");
    dv_plan_free(plan);
    dv_graph_free(graph);
}

/* ---- files ---------------------------------------------------------------------------------- */

static size_t read_back(const char *path) {
    size_t found;
    dv_graph *graph = network_new();
    assert_ok(dv_choices_read(&graph->choices, path, true, &found, &error));
    dv_graph_free(graph);
    return found;
}

static void write_text(const char *path, const char *text, size_t bytes) {
    assert_ok(dv_file_replace(path, text, bytes, &error));
}

static void damaged_files(void **state) {
    (void)state;
    const char *path = in_folder("damaged.txt");
    void *text;
    size_t bytes;
    write_wishes(path);
    size_t whole = read_back(path);
    assert_true(whole > 0);
    assert_ok(dv_file_read(path, 1 << 20, &text, &bytes, &error));
    char *copy = malloc(bytes + 1);
    assert_non_null(copy);

    memcpy(copy, text, bytes); /* another processor's */
    copy[strcspn(copy, "\n") + 6]++;
    write_text(path, copy, bytes);
    assert_int_equal(read_back(path), 0);

    uint32_t random = 1; /* anything anywhere: a line that is damaged says nothing, others are as they were */
    for (int i = 0; i < 200; i++) {
        memcpy(copy, text, bytes);
        random = random * 1664525u + 1013904223u;
        copy[random % bytes] = (char)(random >> 24);
        write_text(path, copy, bytes);
        assert_true(read_back(path) <= whole);
    }
    for (size_t cut = 0; cut < bytes; cut += bytes / 20) {
        write_text(path, text, cut);
        assert_true(read_back(path) < whole);
    }
    free(copy);
    free(text);
    assert_int_equal(read_back(in_folder("missing.txt")), 0);
}

/* A second network's choices go beside the first one's. */
static void two_networks_in_a_file(void **state) {
    (void)state;
    const char *path = in_folder("two.txt");
    write_wishes(path);
    size_t whole = read_back(path);
    dv_graph *other;
    assert_ok(dv_model_build("resnet20", DV_F32, 4, 0, 0, &other, &error));
    for (size_t i = 0; i < other->choices.count; i++)
        other->choices.at[i].seconds[2] = 1;
    assert_ok(dv_graph_write_passes(other, path, &error));
    dv_graph_free(other);
    assert_int_equal(read_back(path), whole);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(candidates_of_all_networks),
        cmocka_unit_test(the_fastest),
        cmocka_unit_test(parsing),
        cmocka_unit_test(no_more_bytes),
        cmocka_unit_test(single_layers),
        cmocka_unit_test(room_is_used),
        cmocka_unit_test(kept),
        cmocka_unit_test(not_while_there_are_plans),
        cmocka_unit_test(damaged_files),
        cmocka_unit_test(two_networks_in_a_file),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
