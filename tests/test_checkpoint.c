/* Checkpoints: a run and its state come back as they were; weights of other programs are taken; what does not fit is
 * listed by name. */
#include "check.h"
#include "folder.h"

#include "train/safetensors.h"

#include <division/checkpoint.h>
#include <math.h>

enum { SIDE = 4, BATCH = 2 };

typedef struct fixture {
    dv_graph *graph;
    dv_plan *plan;
    dv_run *run;
} fixture;

static fixture fixture_new(uint64_t seed, size_t classes, const char *optimizer, int average) {
    fixture f;
    dv_plan_options options = {.method = "none", .optimizer = optimizer, .average = average};
    assert_ok(dv_graph_new(DV_F32, BATCH, &f.graph, &error));
    dv_value x = dv_graph_input(f.graph, 3, 2, (const size_t[]){SIDE, SIDE});
    x = dv_graph_convolution(
        f.graph, "conv", x, &(dv_convolution_options){.channels = 5, .window = dv_window_square(3, 1, 1), .groups = 1});
    x = dv_graph_batch_norm(f.graph, "norm", x);
    x = dv_graph_global_average_pooling(f.graph, "pool", x);
    x = dv_graph_linear(f.graph, "fc", x, &(dv_linear_options){.channels = classes, .bias = true});
    assert_ok(dv_graph_finish(f.graph, x, &error));
    assert_ok(dv_plan_new(f.graph, &options, &f.plan, &error));
    assert_ok(dv_run_new(f.plan, seed, &f.run, &error));
    return f;
}

static void fixture_free(fixture *f) {
    dv_run_free(f->run);
    dv_plan_free(f->plan);
    dv_graph_free(f->graph);
}

static size_t slots_of(const dv_run *run) {
    size_t count = 0;
    while (dv_optimizer_slot_at(dv_run_optimizer(run), count) != NULL)
        count++;
    return count;
}

/* Numbers that differ everywhere into all arrays. */
static void fill(fixture *f, float start) {
    const dv_run_parameter *p;
    for (size_t i = 0; (p = dv_run_parameter_at(f->run, i)) != NULL; i++)
        for (size_t k = 0; k < p->count; k++) {
            p->data[k] = start++;
            for (size_t s = 0; p->optimizer != NULL && s < slots_of(f->run); s++)
                p->optimizer[s * p->count + k] = start++;
            if (p->average != NULL)
                p->average[k] = start++;
        }
}

static void assert_same_array(const char *name, const float *a, const float *b, size_t count) {
    if ((a == NULL) != (b == NULL) || (a != NULL && memcmp(a, b, count * sizeof *a) != 0))
        fail_msg("%s differs", name);
}

static void assert_same(const fixture *a, const fixture *b) {
    const dv_run_parameter *one, *other;
    for (size_t i = 0; (one = dv_run_parameter_at(a->run, i)) != NULL; i++) {
        other = dv_run_parameter_at(b->run, i);
        assert_same_array(one->name, one->data, other->data, one->count);
        assert_same_array(one->name, one->optimizer, other->optimizer, slots_of(a->run) * one->count);
        assert_same_array(one->name, one->average, other->average, one->count);
    }
}

static const dv_train_state some_state = {.step = 17,
                                          .steps_per_epoch = 5,
                                          .seed = UINT64_MAX,
                                          .loss = 0.1,
                                          .correct = 3,
                                          .images = 20,
                                          .seconds = 1.0 / 3,
                                          .all_images = 1ull << 60,
                                          .all_seconds = 1e300,
                                          .training_seconds = 5e-324,
                                          .best_top1 = 61.8,
                                          .best_epoch = 4};

static dv_checkpoint *open_checkpoint(const char *path) {
    dv_checkpoint *checkpoint = NULL;
    assert_ok(dv_checkpoint_open(path, &checkpoint, &error));
    return checkpoint;
}

static const char *const optimizers[] = {"sgd:momentum=0", "sgd", "adamw", "rmsprop",
                                         "rmsprop:momentum=0.5,centered=1"};
enum { OPTIMIZERS = sizeof optimizers / sizeof *optimizers };

static void test_round_trip(void **state) {
    char path[FOLDER_PATH_BYTES];
    for (int variant = 0; variant < 2 * OPTIMIZERS; variant++) {
        const char *optimizer = optimizers[variant >> 1];
        int average = variant & 1;
        fixture a = fixture_new(1, 7, optimizer, average), b = fixture_new(2, 7, optimizer, average);
        const dv_note note = {"model", "a \"model\""};
        fill(&a, 1);
        assert_ok(dv_checkpoint_write(folder_path(state, "c", path),
                                      &(dv_checkpoint_content){a.run, &some_state, 0, &note, 1}, &error));
        dv_checkpoint *checkpoint = open_checkpoint(path);
        dv_train_state read;
        assert_ok(dv_checkpoint_resume(checkpoint, b.run, &read, NULL, NULL, &error));
        assert_same(&a, &b);
        assert_memory_equal(&read, &some_state, sizeof read);
        assert_string_equal(dv_checkpoint_note(checkpoint, "model"), "a \"model\"");
        assert_string_equal(dv_checkpoint_note(checkpoint, "format"), "pt");
        assert_int_equal(dv_checkpoint_has_averages(checkpoint), average);
        dv_checkpoint_close(checkpoint);
        fixture_free(&a);
        fixture_free(&b);
    }
}

/* Nothing tested yet is NaN, and stays it. */
static void test_state_of_the_start(void **state) {
    char path[FOLDER_PATH_BYTES];
    fixture a = fixture_new(1, 7, "sgd", 0);
    dv_train_state start = dv_train_state_default(), read;
    start.steps_per_epoch = 3;
    assert_ok(dv_checkpoint_write(folder_path(state, "c", path),
                                  &(dv_checkpoint_content){.run = a.run, .state = &start}, &error));
    dv_checkpoint *checkpoint = open_checkpoint(path);
    assert_ok(dv_checkpoint_resume(checkpoint, a.run, &read, NULL, NULL, &error));
    assert_true(isnan(read.best_top1) && read.step == 0 && read.images == 0);
    dv_checkpoint_close(checkpoint);
    fixture_free(&a);
}

/* Weights alone: those of training, or their averages; from a checkpoint of training either as well. */
static void test_weights(void **state) {
    char path[FOLDER_PATH_BYTES];
    fixture a = fixture_new(1, 7, "sgd", 1), b = fixture_new(2, 7, "sgd", 0);
    fill(&a, 1);
    for (int averages = 0; averages < 2; averages++)
        for (int training = 0; training < 2; training++) {
            dv_checkpoint_content content = {
                .run = a.run, .state = training ? &some_state : NULL, .averages = averages};
            dv_checkpoint_choice choice = {.averages = averages && training};
            assert_ok(dv_checkpoint_write(folder_path(state, "c", path), &content, &error));
            dv_checkpoint *checkpoint = open_checkpoint(path);
            fill(&b, -1000);
            assert_ok(dv_checkpoint_load(checkpoint, &choice, b.run, NULL, NULL, &error));
            assert_int_equal(dv_checkpoint_has_averages(checkpoint), training);
            const dv_run_parameter *one, *other;
            for (size_t i = 0; (one = dv_run_parameter_at(a.run, i)) != NULL; i++) {
                other = dv_run_parameter_at(b.run, i);
                assert_same_array(one->name, averages ? one->average : one->data, other->data, one->count);
            }
            dv_train_state read;
            if (!training)
                assert_fails(dv_checkpoint_resume(checkpoint, b.run, &read, NULL, NULL, &error), DV_ERROR_FORMAT,
                             "can't be gone on from: its note training.step is missing");
            dv_checkpoint_close(checkpoint);
        }
    fixture_free(&a);
    fixture_free(&b);
}

/* What differences were told. */
typedef struct told {
    int count;
    char text[16][160];
} told;

static void tell(void *context, const char *text) {
    told *t = context;
    assert_in_range(t->count, 0, 15);
    snprintf(t->text[t->count++], sizeof t->text[0], "%.159s", text);
}

/* A file like PyTorch's, with counters and another classifier. */
static void test_other_classes(void **state) {
    char path[FOLDER_PATH_BYTES];
    static float zeros[135];
    const dv_safetensors_source sources[] = {
        {"conv.weight", 4, (const size_t[]){5, 3, 3, 3}, zeros},
        {"norm.weight", 1, (const size_t[]){5}, zeros},
        {"norm.running_mean", 1, (const size_t[]){5}, zeros},
        {"norm.running_var", 1, (const size_t[]){5}, zeros},
        {"norm.num_batches_tracked", 0, NULL, zeros},
        {"fc.weight", 2, (const size_t[]){9, 5}, zeros},
        {"fc.bias", 1, (const size_t[]){9}, zeros},
        {"fc2.bias", 1, (const size_t[]){2}, zeros},
    };
    static const char *const expected[] = {"missing: norm.bias [5]",
                                           "other shape: fc.weight is [9, 5], should be [7, 5]",
                                           "other shape: fc.bias is [9], should be [7]", "unexpected: fc2.bias [2]"};
    fixture a = fixture_new(1, 7, "sgd", 0), before = fixture_new(1, 7, "sgd", 0);
    told t = {0};
    dv_checkpoint_choice choice = {0};
    assert_ok(dv_safetensors_write(folder_path(state, "c", path), sources, 8, NULL, 0, &error));
    dv_checkpoint *checkpoint = open_checkpoint(path);
    assert_fails(dv_checkpoint_load(checkpoint, &choice, a.run, tell, &t, &error), DV_ERROR_FORMAT,
                 "1 missing, 1 unexpected, 2 of other shape (missing: norm.bias [5]; ...)");
    assert_int_equal(t.count, 4);
    for (int i = 0; i < 4; i++)
        assert_string_equal(t.text[i], expected[i]);
    assert_same(&a, &before);
    dv_checkpoint_close(checkpoint);

    /* without the last layer, and complete, it fits */
    dv_safetensors_source complete[9];
    memcpy(complete, sources, sizeof sources);
    complete[8] = (dv_safetensors_source){"norm.bias", 1, (const size_t[]){5}, zeros};
    assert_ok(dv_safetensors_write(path, complete, 9, NULL, 0, &error));
    checkpoint = open_checkpoint(path);
    choice.except = "fc";
    assert_ok(dv_checkpoint_load(checkpoint, &choice, a.run, NULL, NULL, &error));
    const dv_run_parameter *p, *old;
    for (size_t i = 0; (p = dv_run_parameter_at(a.run, i)) != NULL; i++) {
        old = dv_run_parameter_at(before.run, i);
        assert_same_array(p->name, p->data, strncmp(p->name, "fc", 2) == 0 ? old->data : zeros, p->count);
    }
    dv_checkpoint_close(checkpoint);
    fixture_free(&a);
    fixture_free(&before);
}

/* A checkpoint that one optimizer left, another does not take. */
static void test_other_optimizers(void **state) {
    static const struct {
        const char *was, *is, *words;
    } cases[] = {
        {"sgd", "adamw", "was trained with sgd: go on with that (--optimizer)"},
        {"sgd:momentum=0", "adamw", "was trained with sgd"},
        {NULL, "adamw", "was trained with sgd"}, /* from before checkpoints said so */
        {"adamw", "sgd:momentum=0", "optimizer: sgd: "},
        {"sgd:momentum=0", "sgd", "has no velocity: give sgd the options that it was trained with"},
        {"rmsprop", "rmsprop:centered=1", "has no grad_avg: give rmsprop the options"},
    };
    char path[FOLDER_PATH_BYTES];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fixture was = fixture_new(1, 7, cases[i].was, 0), is = fixture_new(1, 7, cases[i].is, 0);
        dv_train_state read;
        assert_ok(dv_checkpoint_write(folder_path(state, "c", path),
                                      &(dv_checkpoint_content){.run = was.run, .state = &some_state}, &error));
        dv_checkpoint *checkpoint = open_checkpoint(path);
        assert_fails(dv_checkpoint_resume(checkpoint, is.run, &read, NULL, NULL, &error), DV_ERROR_OPTION,
                     cases[i].words);
        dv_checkpoint_close(checkpoint);
        fixture_free(&was);
        fixture_free(&is);
    }
}

/* Averages that a run needs and a checkpoint lacks are named. */
static void test_lacks(void **state) {
    char path[FOLDER_PATH_BYTES];
    fixture plain = fixture_new(1, 7, "sgd", 0), all = fixture_new(1, 7, "sgd", 1);
    dv_train_state read;
    assert_ok(dv_checkpoint_write(folder_path(state, "c", path),
                                  &(dv_checkpoint_content){.run = plain.run, .state = &some_state}, &error));
    dv_checkpoint *checkpoint = open_checkpoint(path);
    assert_fails(dv_checkpoint_resume(checkpoint, all.run, &read, NULL, NULL, &error), DV_ERROR_FORMAT,
                 "7 missing, 0 unexpected, 0 of other shape (missing: average.conv.weight [5, 3, 3, 3]");
    dv_checkpoint_close(checkpoint);
    fixture_free(&plain);
    fixture_free(&all);
}

static void test_bad_states(void **state) {
    char path[FOLDER_PATH_BYTES];
    fixture a = fixture_new(1, 7, NULL, 0);
    dv_train_state bad[3] = {some_state, some_state, some_state}, read;
    bad[0].steps_per_epoch = 0;
    bad[1].correct = 21;
    bad[2].step = 0;
    for (size_t i = 0; i < 3; i++) {
        assert_ok(dv_checkpoint_write(folder_path(state, "c", path),
                                      &(dv_checkpoint_content){.run = a.run, .state = &bad[i]}, &error));
        dv_checkpoint *checkpoint = open_checkpoint(path);
        assert_fails(dv_checkpoint_resume(checkpoint, a.run, &read, NULL, NULL, &error), DV_ERROR_FORMAT,
                     "contradict each other");
        dv_checkpoint_close(checkpoint);
    }
    static const char *const texts[] = {"", "x", "-1", "1x", "99999999999999999999"};
    for (size_t i = 0; i < 5; i++) {
        const dv_note note = {"training.step", texts[i]};
        assert_ok(
            dv_checkpoint_write(path, &(dv_checkpoint_content){.run = a.run, .notes = &note, .note_count = 1}, &error));
        dv_checkpoint *checkpoint = open_checkpoint(path);
        assert_fails(dv_checkpoint_resume(checkpoint, a.run, &read, NULL, NULL, &error), DV_ERROR_FORMAT,
                     "its note training.step is");
        dv_checkpoint_close(checkpoint);
    }
    fixture_free(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_round_trip, folder_new, folder_free),
        cmocka_unit_test_setup_teardown(test_state_of_the_start, folder_new, folder_free),
        cmocka_unit_test_setup_teardown(test_weights, folder_new, folder_free),
        cmocka_unit_test_setup_teardown(test_other_classes, folder_new, folder_free),
        cmocka_unit_test_setup_teardown(test_other_optimizers, folder_new, folder_free),
        cmocka_unit_test_setup_teardown(test_lacks, folder_new, folder_free),
        cmocka_unit_test_setup_teardown(test_bad_states, folder_new, folder_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
