/* The loop: it learns, tells, stops where it should, goes on where it stopped, and gives the same bits again. */
#include "check.h"

#include <division/options.h>
#include <division/train.h>
#include <math.h>

enum { SIDE = 8, BATCH = 10, CLASSES = 10, MOST_RECORDS = 16 };

/* Ten batches to learn from, the last of three images. */
static const char DATA[] = "synthetic:side=8,train=93,test=33";

/* What a network has beside a convolution and a linear layer. */
typedef enum layers { NORM, NO_NORM, NORM_OF_POOLED } layers;

/* A network of one convolution, a norm and a linear layer, and all that it takes to train it. */
typedef struct fixture {
    dv_graph *graph;
    dv_plan *plan;
    dv_run *run;
    dv_dataset *data;
    dv_options options;
    dv_train_callbacks callbacks;
    dv_train_state state;
    dv_train_result result;
    size_t begun, records, steps, tests, saves;
    double slowest, longest; /* speed and time left, of those told while training */
    dv_epoch_record record[MOST_RECORDS];
    size_t stop_at; /* sets `stop` after so many steps */
    volatile sig_atomic_t stop;
} fixture;

static void build(fixture *f, const char *method, size_t batch, layers with, const char *data) {
    dv_plan_options options = dv_plan_options_default();
    options.method = method;
    options.average = 1;
    assert_ok(dv_graph_new(DV_F32, batch, &f->graph, &error));
    dv_value x = dv_graph_input(f->graph, DV_DATA_CHANNELS, 2, (const size_t[]){SIDE, SIDE});
    x = dv_graph_convolution(
        f->graph, "conv", x,
        &(dv_convolution_options){.channels = 16, .window = dv_window_square(3, 1, 1), .groups = 1});
    x = with == NORM ? dv_graph_batch_norm(f->graph, "norm", x) : x;
    x = dv_graph_relu(f->graph, "relu", x);
    x = dv_graph_global_average_pooling(f->graph, "pool", x);
    x = with == NORM_OF_POOLED ? dv_graph_batch_norm(f->graph, "norm", x) : x;
    x = dv_graph_linear(f->graph, "fc", x, &(dv_linear_options){.channels = CLASSES, .bias = true});
    assert_ok(dv_graph_finish(f->graph, x, &error));
    assert_ok(dv_plan_new(f->graph, &options, &f->plan, &error));
    assert_ok(dv_run_new(f->plan, 5, &f->run, &error));
    assert_ok(dv_dataset_open(data, &f->data, &error));
}

static dv_status count_begin(void *context, dv_error *error) {
    fixture *f = context;
    (void)error;
    f->begun++;
    return DV_OK;
}

static void count_step(void *context, const dv_train_progress *progress) {
    fixture *f = context;
    assert_true(progress->step >= 1 && progress->step <= progress->steps);
    assert_true(progress->epoch >= 1 && progress->epoch <= progress->epochs);
    assert_true(isfinite(progress->loss) && progress->top1 >= 0 && progress->top1 <= 100);
    if (!progress->testing) {
        f->slowest = fmin(f->slowest, progress->images_per_second);
        f->longest = fmax(f->longest, progress->seconds_left);
    }
    f->steps += !progress->testing;
    f->tests += progress->testing != 0;
    f->stop = f->stop_at > 0 && f->steps >= f->stop_at;
}

static dv_status keep_record(void *context, const dv_epoch_record *record, dv_error *error) {
    fixture *f = context;
    (void)error;
    assert_in_range(f->records, 0, MOST_RECORDS - 1);
    f->record[f->records++] = *record;
    return DV_OK;
}

static dv_status count_save(void *context, const dv_train_state *saved, dv_error *error) {
    fixture *f = context;
    (void)error;
    assert_ptr_equal(saved, &f->state);
    f->saves++;
    return DV_OK;
}

static fixture *fixture_with(const char *method, size_t batch, layers with, const char *data) {
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->options = dv_options_default();
    f->options.epochs = 3;
    f->state = dv_train_state_default();
    f->slowest = INFINITY;
    f->callbacks = (dv_train_callbacks){.begin = count_begin,
                                        .progress = count_step,
                                        .epoch = keep_record,
                                        .save = count_save,
                                        .context = f,
                                        .stop = &f->stop};
    build(f, method, batch, with, data);
    return f;
}

/* A plan for what the options have become, and a run of it. */
static void plan_again(fixture *f, const char *method) {
    dv_plan_options options = dv_plan_options_default();
    char text[DV_OPTIMIZER_TEXT_BYTES];
    dv_run_free(f->run);
    dv_plan_free(f->plan);
    assert_ok(dv_options_for_plan(&f->options, text, &options, &error));
    options.method = method;
    assert_ok(dv_plan_new(f->graph, &options, &f->plan, &error));
    assert_ok(dv_run_new(f->plan, 5, &f->run, &error));
}

static fixture *fixture_new(const char *method) {
    return fixture_with(method, BATCH, NORM, DATA);
}

static void fixture_free(fixture *f) {
    dv_run_free(f->run);
    dv_plan_free(f->plan);
    dv_graph_free(f->graph);
    dv_dataset_close(f->data);
    free(f);
}

static void train(fixture *f) {
    assert_ok(dv_train(f->run, f->plan, f->data, &f->options, &f->callbacks, &f->state, &f->result, &error));
}

/* Fails unless both have the same parameters and statistics to the last bit. */
static void assert_same(fixture *a, fixture *b) {
    const dv_run_parameter *one, *other;
    for (size_t i = 0; (one = dv_run_parameter_at(a->run, i)) != NULL; i++) {
        other = dv_run_parameter_at(b->run, i);
        if (memcmp(one->data, other->data, one->count * sizeof(float)) != 0)
            fail_msg("%s differs", one->name);
    }
}

static void copy_state(fixture *from, fixture *to) {
    const dv_run_parameter *one, *other;
    for (size_t i = 0; (one = dv_run_parameter_at(from->run, i)) != NULL; i++) {
        other = dv_run_parameter_at(to->run, i);
        memcpy(other->data, one->data, one->count * sizeof(float));
        memcpy(other->average, one->average, one->count * sizeof(float));
        for (size_t slot = 0; one->optimizer != NULL && dv_optimizer_slot_at(dv_run_optimizer(from->run), slot); slot++)
            memcpy(other->optimizer + slot * one->count, one->optimizer + slot * one->count,
                   one->count * sizeof(float));
    }
    to->state = from->state;
}

static void test_records(void **state) {
    (void)state;
    fixture *f = fixture_new("none");
    train(f);
    assert_int_equal(f->records, 3);
    assert_int_equal(f->steps, 30);
    assert_int_equal(f->tests, 3 * 4);
    for (size_t i = 0; i < 3; i++) {
        const dv_epoch_record *r = &f->record[i];
        assert_int_equal(r->epoch, i + 1);
        assert_int_equal(r->steps, 10 * (i + 1));
        assert_true(r->complete && r->tested);
        assert_true(r->train_loss > 0 && r->test_loss > 0 && r->seconds > 0 && r->images_per_second > 0);
        assert_true(fmod(r->test_top1 * 33 / 100 + 1e-9, 1) < 1e-6); /* of 33 images, not of 40 */
        assert_int_equal(r->activation_bytes, dv_plan_totals(f->plan).activations);
        assert_true(r->peak_bytes > 0);
    }
    assert_true(f->record[2].train_loss < f->record[0].train_loss);
    assert_true(f->record[0].learning_rate > f->record[2].learning_rate);
    assert_int_equal(f->result.last.epoch, 3);
    assert_false(f->result.stopped);
    assert_int_equal(f->begun, 1);
    assert_int_equal(f->saves, 3);
    dv_test_result test;
    assert_ok(dv_test(f->run, f->data, DV_TEST, NULL, NULL, &test, &error));
    assert_true(test.loss == f->record[2].test_loss && test.top1 == f->record[2].test_top1);
    assert_true(test.top5 >= test.top1 && test.images == 33);
    fixture_free(f);
}

static void test_same_bits(void **state) {
    (void)state;
    static const char *const methods[] = {"none", "division"};
    for (size_t i = 0; i < 2; i++) {
        fixture *a = fixture_new(methods[i]), *b = fixture_new(methods[i]);
        train(a);
        train(b);
        assert_same(a, b);
        for (size_t k = 0; k < 3; k++)
            assert_true(a->record[k].train_loss == b->record[k].train_loss &&
                        a->record[k].test_loss == b->record[k].test_loss);
        fixture_free(a);
        fixture_free(b);
    }
}

/* Thirty steps, or some and then, from what they left, the rest: the same, wherever the cut is, and the records of the
 * epochs too. With everything on that a step could depend on. */
static void test_goes_on(void **state) {
    (void)state;
    static const size_t cuts[] = {1, 9, 10, 14, 29, 30}; /* the even ones with workers, who guess what comes next */
    fixture *whole = fixture_new("division");
    dv_options options = whole->options;
    options.mix = (dv_mix_options){.mixup = 0.2, .cutmix = 1};
    options.average = 0.9;
    options.schedule.warmup = 1.5;
    whole->options = options;
    train(whole);
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        fixture *first = fixture_new("division"), *second = fixture_new("division");
        first->options = second->options = options;
        second->options.loading.workers = cuts[i] % 2 == 0 ? 2 : 0;
        first->stop_at = cuts[i];
        train(first);
        assert_true(first->result.stopped && first->steps == cuts[i]);
        copy_state(first, second);
        train(second);
        assert_int_equal(second->steps, 30 - cuts[i]);
        assert_same(whole, second);
        const dv_epoch_record *last = &second->record[second->records - 1];
        assert_true(last->train_loss == whole->record[2].train_loss && last->test_loss == whole->record[2].test_loss);
        assert_true(last->train_top1 == whole->record[2].train_top1 && last->complete && last->tested);
        assert_true(second->state.best_top1 == whole->state.best_top1);
        fixture_free(first);
        fixture_free(second);
    }
    fixture_free(whole);
}

/* Training ends when so many epochs brought no better test; a training that was interrupted ends at the same epoch. */
static void test_patience(void **state) {
    (void)state;
    fixture *whole = fixture_new("none"), *first = fixture_new("none"), *second = fixture_new("none");
    dv_options options = whole->options;
    options.schedule.rate = 0; /* only running statistics move, and then nothing is better any more */
    options.epochs = 50;
    options.patience = 2;
    whole->options = first->options = second->options = options;
    train(whole);
    uint64_t epochs = dv_train_state_epochs(&whole->state);
    assert_true(epochs < 50 && epochs == whole->state.best_epoch + 2 && !whole->result.stopped);
    assert_true(dv_train_lost_patience(&whole->state, &options) && dv_train_is_finished(&whole->state, &options));
    first->stop_at = whole->steps - 5;
    train(first);
    assert_true(first->result.stopped && !dv_train_lost_patience(&first->state, &options));
    copy_state(first, second);
    train(second);
    assert_int_equal(second->steps, 5);
    assert_same(whole, second);
    assert_int_equal(second->state.best_epoch, whole->state.best_epoch);
    options.patience = 3; /* more of it goes on */
    assert_false(dv_train_is_finished(&whole->state, &options));
    options.patience = 2;
    options.test_every = epochs + 1; /* that epoch would not have been tested */
    assert_false(dv_train_lost_patience(&whole->state, &options));
    assert_false(dv_train_lost_patience(NULL, &options) || dv_train_lost_patience(&whole->state, NULL));
    fixture_free(whole);
    fixture_free(first);
    fixture_free(second);
}

/* A fixture whose plan is what the options ask for. */
static fixture *fixture_planned(const dv_options *options) {
    fixture *f = fixture_new("division");
    f->options = *options;
    plan_again(f, "division");
    return f;
}

/* Ten steps, or four and then six: with every optimizer, with gradients that are transient, and that are kept to be
 * clipped or accumulated. */
static void test_optimizers_go_on(void **state) {
    (void)state;
    static const struct {
        const char *optimizer;
        double clip;
        size_t accumulate;
    } cases[] = {{"sgd", 0, 1},    {"sgd:momentum=0", 0.5, 1}, {"sgd:nesterov=yes", 0, 2},
                 {"adamw", 0, 1},  {"adamw", 0.5, 2},          {"rmsprop:momentum=0.9,centered=yes", 0, 1},
                 {"rmsprop", 1, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        dv_options options = dv_options_default();
        options.epochs = 1;
        options.schedule.rate = 0.01;
        assert_ok(dv_options_set(&options, "optimizer", cases[i].optimizer, &error));
        assert_ok(dv_options_set(&options, "groups", "vectors:decay=0;fc:rate=2", &error));
        options.clip = cases[i].clip;
        options.accumulate = cases[i].accumulate;
        options.average = 0.9;
        fixture *whole = fixture_planned(&options), *first = fixture_planned(&options);
        fixture *second = fixture_planned(&options);
        train(whole);
        first->stop_at = 4;
        train(first);
        assert_true(first->result.stopped);
        copy_state(first, second);
        train(second);
        assert_same(whole, second);
        fixture_free(whole);
        fixture_free(first);
        fixture_free(second);
    }
}

/* What the options ask for is held to what was planned. */
static void test_plans_that_do_not_fit(void **state) {
    (void)state;
    fixture *f = fixture_new("none");
    f->options.momentum = 0;
    assert_fails(dv_train(f->run, f->plan, f->data, &f->options, NULL, &f->state, &f->result, &error),
                 DV_ERROR_ARGUMENT, "the plan has another optimizer");
    f->options = dv_options_default();
    plan_again(f, "none");
    f->options.accumulate = 2;
    assert_fails(dv_train(f->run, f->plan, f->data, &f->options, NULL, &f->state, &f->result, &error),
                 DV_ERROR_ARGUMENT, "planned to be transient");
    fixture_free(f);
}

static void test_options_of_optimizers(void **state) {
    (void)state;
    static const struct {
        const char *optimizer, *name, *value, *words;
    } cases[] = {
        {"adamw", "momentum", "0.8", "momentum is sgd's alone: leave it out"},
        {"adamw", "nesterov", "yes", "nesterov is sgd's alone"},
        {"sgd:momentum=0", "nesterov", "yes", "nesterov: needs momentum"},
    };
    char text[DV_OPTIMIZER_TEXT_BYTES];
    dv_plan_options plan;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        dv_options options = dv_options_default();
        assert_ok(dv_options_set(&options, "optimizer", cases[i].optimizer, &error));
        assert_ok(dv_options_set(&options, cases[i].name, cases[i].value, &error));
        assert_fails(dv_options_for_plan(&options, text, &plan, &error), DV_ERROR_OPTION, cases[i].words);
        assert_fails(dv_options_check(&options, &error), DV_ERROR_OPTION, cases[i].words);
    }
    dv_options options = dv_options_default();
    assert_fails(dv_options_set(&options, "optimizer", "lamb", &error), DV_ERROR_OPTION, "unknown optimizer");
    assert_fails(dv_options_set(&options, "groups", "fc", &error), DV_ERROR_OPTION, "must be a glob of names");
    assert_ok(dv_options_set(&options, "optimizer", "sgd:momentum=0.5", &error));
    assert_ok(dv_options_for_plan(&options, text, &plan, &error));
    assert_string_equal(text, "sgd:decay=0.00050000000000000001,momentum=0.90000000000000002,nesterov=0,momentum=0.5");
    assert_true(plan.optimizer == text && plan.gradients == DV_GRADIENTS_TRANSIENT && plan.groups == NULL);
    options.accumulate = 2;
    assert_ok(dv_options_for_plan(&options, text, &plan, &error));
    assert_true(plan.gradients == DV_GRADIENTS_KEPT);
}

/* Tests after every second epoch and the last: the same training. An epoch without one is complete. */
static void test_tests_seldom(void **state) {
    (void)state;
    static const int tested[] = {0, 1, 1};
    fixture *often = fixture_new("none"), *seldom = fixture_new("none");
    seldom->options.test_every = 2;
    train(often);
    train(seldom);
    assert_int_equal(seldom->records, 3);
    assert_int_equal(seldom->tests, 2 * often->tests / 3);
    for (size_t i = 0; i < 3; i++) {
        const dv_epoch_record *record = &seldom->record[i];
        assert_true(record->complete && record->tested == tested[i]);
        assert_true(tested[i] ? record->test_top1 >= 0 : isnan(record->test_top1));
        assert_true(record->train_loss == often->record[i].train_loss);
    }
    assert_int_equal(dv_train_state_epochs(&seldom->state), 3);
    assert_same(often, seldom);
    fixture_free(often);
    fixture_free(seldom);
}

/* An epoch that another process began, a million seconds ago, does not slow what is told; the log counts them. */
static void test_speed(void **state) {
    (void)state;
    fixture *f = fixture_new("none");
    f->stop_at = 4;
    train(f);
    assert_true(f->slowest > 1 && f->longest < 1e5);
    f->state.seconds += 1e6;
    f->stop_at = f->stop = 0;
    train(f);
    assert_int_equal(f->steps, 30);
    assert_true(f->slowest > 1 && f->longest < 1e5);
    assert_true(f->record[1].epoch == 1 && f->record[1].seconds > 1e6 && f->record[1].images_per_second < 1);
    fixture_free(f);
}

/* What was trained with another seed or batch is no beginning for this training; one that is done has nothing left. */
static void test_other_states(void **state) {
    (void)state;
    fixture *f = fixture_new("none");
    train(f);
    size_t steps = f->steps;
    train(f);
    assert_true(f->steps == steps && f->result.last.epoch == 0);
    f->options.seed++;
    assert_fails(dv_train(f->run, f->plan, f->data, &f->options, &f->callbacks, &f->state, &f->result, &error),
                 DV_ERROR_OPTION, "seed: 2: what was trained so far had 1");
    f->options.seed--;
    f->state.steps_per_epoch = 11;
    assert_fails(dv_train(f->run, f->plan, f->data, &f->options, &f->callbacks, &f->state, &f->result, &error),
                 DV_ERROR_OPTION, "an epoch has 10 steps, but had 11");
    f->state.steps_per_epoch = 10;
    f->state.step_images++;
    assert_fails(dv_train(f->run, f->plan, f->data, &f->options, &f->callbacks, &f->state, &f->result, &error),
                 DV_ERROR_OPTION, "images, but took");
    f->state.step_images = 0; /* as in a checkpoint of before */
    f->state.data_images++;
    assert_fails(dv_train(f->run, f->plan, f->data, &f->options, &f->callbacks, &f->state, &f->result, &error),
                 DV_ERROR_OPTION, "images, but had");
    f->state.data_images = 0;
    train(f);
    fixture_free(f);
}

/* With hardly any time between saves, every step is saved: those inside an epoch at once, the last after its test. */
static void test_saves_meanwhile(void **state) {
    (void)state;
    fixture *f = fixture_new("none");
    f->options.epochs = 2;
    f->options.save_minutes = 1e-9;
    train(f);
    assert_int_equal(f->saves, 20);
    fixture_free(f);
}

/* An average with a decay of almost nothing is the weights, so its test finds the same; with one, it does not. */
static void test_average(void **state) {
    (void)state;
    fixture *plain = fixture_new("none"), *follows = fixture_new("none"), *lags = fixture_new("none");
    follows->options.average = 1e-30;
    lags->options.average = 0.9;
    train(plain);
    train(follows);
    train(lags);
    assert_same(plain, follows);
    assert_same(plain, lags); /* the weights themselves do not know of it */
    assert_true(fabs(plain->record[2].test_loss - follows->record[2].test_loss) < 1e-5);
    assert_true(fabs(plain->record[2].test_loss - lags->record[2].test_loss) > 1e-4);
    fixture_free(plain);
    fixture_free(follows);
    fixture_free(lags);
}

/* Half the batch twice is as good as all of it at once, but for batch norm, which sees halves: so only that the
 * steps are as many and the rates are the same, and that the gradients are a mean: without it the loss explodes. */
static void test_accumulation(void **state) {
    (void)state;
    fixture *f = fixture_new("none");
    f->options.accumulate = 3;
    train(f);
    assert_int_equal(f->steps, 12); /* ten batches an epoch: three steps of three, and one of the last */
    assert_int_equal(f->result.last.steps, 12);
    assert_true(f->record[2].train_loss < 3);
    fixture_free(f);
}

/* All images are trained on, or those that make whole steps. */
static void test_last_batch(void **state) {
    (void)state;
    static const struct {
        size_t accumulate, steps, left_out;
        int drop_last;
    } cases[] = {{1, 10, 0, 0}, {1, 9, 3, 1}, {4, 3, 0, 0}, {4, 2, 13, 1}, {9, 2, 0, 0}, {9, 1, 3, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fixture *f = fixture_new("division");
        f->options.accumulate = cases[i].accumulate;
        f->options.drop_last = cases[i].drop_last;
        f->options.mix.mixup = 0.2; /* of the images that are there */
        train(f);
        assert_int_equal(f->steps, 3 * cases[i].steps);
        assert_int_equal(dv_train_left_out(f->run, f->data, &f->options), cases[i].left_out);
        assert_int_equal(f->state.all_images, 3 * (93 - cases[i].left_out));
        assert_int_equal(dv_run_images(f->run), BATCH);
        f->options.drop_last = !f->options.drop_last;
        assert_fails(dv_train(f->run, f->plan, f->data, &f->options, NULL, &f->state, &f->result, &error),
                     DV_ERROR_OPTION, "and --drop-last");
        fixture_free(f);
    }
}

/* The images of a step have the same weight in it, whichever batch they are in: without norms, 13 images are the same
 * in batches of ten and three, of five, five and three, and all at once. */
static void test_images_weigh_the_same(void **state) {
    (void)state;
    static const size_t batches[][2] = {{13, 1}, {10, 2}, {5, 3}};
    fixture *f[3];
    for (size_t i = 0; i < 3; i++) {
        f[i] = fixture_with("none", batches[i][0], NO_NORM, "synthetic:side=8,train=13,test=8");
        f[i]->options.accumulate = batches[i][1];
        train(f[i]);
        assert_int_equal(f[i]->steps, 3);
    }
    const dv_run_parameter *p, *q;
    for (size_t k = 0; (p = dv_run_parameter_at(f[0]->run, k)); k++)
        for (size_t i = 1; i < 3; i++) {
            q = dv_run_parameter_at(f[i]->run, k);
            for (size_t j = 0; j < p->count; j++)
                assert_true(fabs((double)p->data[j] - (double)q->data[j]) < 1e-5);
        }
    for (size_t i = 0; i < 3; i++)
        fixture_free(f[i]);
}

/* A norm of one value per image can't be trained with a last batch of one: that one is left out, and no other. */
static void test_last_batch_is_too_small(void **state) {
    (void)state;
    static const struct {
        const char *data;
        layers with;
        size_t left_out;
    } cases[] = {{"synthetic:side=8,train=91,test=31", NORM_OF_POOLED, 1},
                 {"synthetic:side=8,train=92,test=31", NORM_OF_POOLED, 0},
                 {"synthetic:side=8,train=90,test=31", NORM_OF_POOLED, 0},
                 {"synthetic:side=8,train=91,test=31", NORM, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fixture *f = fixture_with("none", BATCH, cases[i].with, cases[i].data);
        size_t images = dv_dataset_describe(f->data).images[DV_TRAIN];
        train(f);
        assert_int_equal(dv_train_left_out(f->run, f->data, &f->options), cases[i].left_out);
        assert_int_equal(f->state.all_images, 3 * (images - cases[i].left_out));
        fixture_free(f);
    }
}

static void test_stops(void **state) {
    (void)state;
    fixture *f = fixture_new("none");
    f->stop_at = 14;
    train(f);
    assert_true(f->result.stopped);
    assert_int_equal(f->steps, 14);
    assert_int_equal(f->records, 2);
    assert_false(f->record[1].complete || f->record[1].tested);
    assert_true(isnan(f->record[1].test_top1) && isfinite(f->record[1].train_loss));
    fixture_free(f);

    f = fixture_new("none");
    f->options.steps = 12;
    train(f);
    assert_false(f->result.stopped);
    assert_int_equal(f->result.last.steps, 12);
    assert_true(f->record[1].tested && !f->record[1].complete);
    assert_int_equal(f->state.step, 12);
    assert_int_equal(f->state.images, 20);
    fixture_free(f);
}

static dv_status refuse(void *context, const dv_epoch_record *record, dv_error *error) {
    (void)context;
    (void)record;
    snprintf(error->text, sizeof error->text, "enough");
    return error->status = DV_ERROR_IO;
}

/* A stop before the first step, or a call that can't work: nothing begins. */
static void test_does_not_begin(void **state) {
    (void)state;
    fixture *f = fixture_new("none");
    f->stop = 1;
    train(f);
    assert_true(f->result.stopped && f->begun == 0 && f->saves == 0 && f->records == 0);
    f->stop = 0;
    f->options.loading.resize = SIDE - 1;
    assert_fails(dv_train(f->run, f->plan, f->data, &f->options, &f->callbacks, &f->state, &f->result, &error),
                 DV_ERROR_OPTION, "resize");
    assert_int_equal(f->begun, 0);
    fixture_free(f);
}

static void test_failures(void **state) {
    (void)state;
    fixture *f = fixture_new("none");
    f->callbacks.epoch = refuse;
    assert_fails(dv_train(f->run, f->plan, f->data, &f->options, &f->callbacks, &f->state, &f->result, &error),
                 DV_ERROR_IO, "enough");
    assert_int_equal(f->steps, 10);
    f->options.accumulate = 11;
    assert_fails(dv_train(f->run, f->plan, f->data, &f->options, NULL, &f->state, &f->result, &error), DV_ERROR_OPTION,
                 "accumulate: 11: an epoch has 10 batches");
    f->options.accumulate = 0;
    assert_fails(dv_train(f->run, f->plan, f->data, &f->options, NULL, &f->state, &f->result, &error), DV_ERROR_OPTION,
                 "accumulate: 0: must be a whole number from 1 to 65536");
    f->options = dv_options_default();
    f->options.mix.cutmix = -1;
    assert_fails(dv_train(f->run, f->plan, f->data, &f->options, NULL, &f->state, &f->result, &error), DV_ERROR_OPTION,
                 "cutmix: -1");
    f->options = dv_options_default();
    f->options.average = 1;
    assert_fails(dv_train(f->run, f->plan, f->data, &f->options, NULL, &f->state, &f->result, &error), DV_ERROR_OPTION,
                 "average: 1");
    f->options = dv_options_default();
    f->options.label_smoothing = 1;
    assert_fails(dv_train(f->run, f->plan, f->data, &f->options, NULL, &f->state, &f->result, &error), DV_ERROR_OPTION,
                 "label-smoothing: 1");
    fixture_free(f);
}

/* Trains until it fails of numbers that are not finite, or too large, and tells what to do about that. */
static void expect_explosion(fixture *f, const char *what, const char *advice) {
    dv_error error = {0};
    f->options.schedule.kind = DV_SCHEDULE_CONSTANT;
    dv_status status = dv_train(f->run, f->plan, f->data, &f->options, &f->callbacks, &f->state, &f->result, &error);
    assert_int_equal(status, DV_ERROR_NONFINITE);
    if (strncmp(error.text, "step ", 5) != 0 || !strstr(error.text, what) || !strstr(error.text, advice))
        fail_msg("\"%s\": expected \"step\", \"%s\" and \"%s\"", error.text, what, advice);
}

/* A learning rate that explodes. */
static void test_explosion(void **state) {
    (void)state;
    fixture *f = fixture_new("none");
    f->options.epochs = 16;
    f->options.schedule.rate = 1000;
    f->options.weight_decay = 1;
    plan_again(f, "none");
    expect_explosion(f, "", "use a learning rate (--lr) below 1000 or a warm-up (--warmup), or check the data");
    fixture_free(f);
}

static const dv_run_parameter *parameter_named(const dv_run *run, const char *name) {
    const dv_run_parameter *p = NULL;
    for (size_t i = 0; (p = dv_run_parameter_at(run, i)) && strcmp(p->name, name) != 0; i++)
        continue;
    assert_non_null(p);
    return p;
}

/* A loss that grows without bound, in numbers that are all finite; with a warm-up, which was too short. */
static void test_divergence(void **state) {
    (void)state;
    fixture *f = fixture_new("none");
    const dv_run_parameter *weight = parameter_named(f->run, "fc.weight");
    for (size_t i = 0; i < weight->count; i++)
        weight->data[i] *= 1e9f;
    f->options.schedule.rate = 0.5;
    f->options.schedule.warmup = 1;
    expect_explosion(f, "training diverges: the loss is ", "or a longer warm-up (--warmup), or check the data");
    for (size_t i = 0; i < weight->count; i++)
        assert_true(weight->gradient[i] == 0); /* backward, which may update parameters, has not begun */
    fixture_free(f);
}

/* Logits of a test after an epoch, whose training went well. */
static void test_divergence_in_a_test(void **state) {
    (void)state;
    fixture *f = fixture_new("none");
    const dv_run_parameter *variance = parameter_named(f->run, "norm.running_var");
    for (size_t i = 0; i < variance->count; i++)
        variance->data[i] = NAN;
    expect_explosion(f, "test, batch 1: norm: ", "use a learning rate (--lr) below 0.1 or a warm-up (--warmup)");
    fixture_free(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_records),
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_goes_on),
        cmocka_unit_test(test_patience),
        cmocka_unit_test(test_accumulation),
        cmocka_unit_test(test_last_batch),
        cmocka_unit_test(test_images_weigh_the_same),
        cmocka_unit_test(test_last_batch_is_too_small),
        cmocka_unit_test(test_stops),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_does_not_begin),
        cmocka_unit_test(test_explosion),
        cmocka_unit_test(test_divergence),
        cmocka_unit_test(test_divergence_in_a_test),
        cmocka_unit_test(test_other_states),
        cmocka_unit_test(test_saves_meanwhile),
        cmocka_unit_test(test_average),
        cmocka_unit_test(test_speed),
        cmocka_unit_test(test_optimizers_go_on),
        cmocka_unit_test(test_plans_that_do_not_fit),
        cmocka_unit_test(test_options_of_optimizers),
        cmocka_unit_test(test_tests_seldom),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
