/* Ranks that train together against one process with the whole batch: gradients, buckets, updates, statistics. */
#include "ranks.h"

#include "base/random.h"
#include "check.h"
#include "graph/plan.h"

#include <division/graph.h>
#include <division/models.h>

#include <math.h>

enum { IMAGES = 8, SIDE = 16, CLASSES = 10, STEPS = 3 };

#define RATE 0.01
#define SMOOTH "smooth"

/* One network of a case, on one rank. */
typedef struct network {
    const struct setting *setting;
    dv_graph *graph;
    dv_plan *plan;
    dv_run *run;
    float *gradient; /* [count] of all parameters, of the first step */
    float *weights;  /* [count] after STEPS */
    size_t count;
    double loss[STEPS]; /* this rank's part */
} network;

typedef struct setting {
    const char *method, *model; /* SMOOTH, or one of the library's */
    size_t ranks, batches;      /* of a step, on each rank */
    size_t bucket_bytes;
    dv_gradients gradients;
    dv_reduce reduce;
    double clip;
    bool own_norm; /* each rank has its own statistics */
} setting;

/* How far ranks may be from one process: gradients and weights by their norm. */
typedef struct bounds {
    double gradients, weights, loss;
} bounds;

/* ---- a network whose gradients are equal to rounding ------------------------------------------ */

static dv_value convolution_norm(dv_graph *graph, const char *name, dv_value x, size_t channels, size_t stride) {
    char norm[32];
    const dv_convolution_options options = {
        .channels = channels, .window = dv_window_square(3, stride, 1), .groups = 1};
    snprintf(norm, sizeof norm, "%s.norm", name);
    return dv_graph_batch_norm(graph, norm, dv_graph_convolution(graph, name, x, &options));
}

static dv_value residual(dv_graph *graph, int number, dv_value x, size_t channels) {
    char name[32];
    snprintf(name, sizeof name, "stage%d.first", number);
    x = convolution_norm(graph, name, x, channels, 2);
    snprintf(name, sizeof name, "stage%d.second", number);
    dv_value branch = convolution_norm(graph, name, x, channels, 1);
    snprintf(name, sizeof name, "stage%d.sum", number);
    return dv_graph_sum(graph, name, branch, x);
}

/* A residual network without ReLUs. Kernels of some machines round otherwise in a smaller batch, and an element of a
 * ReLU that is next to zero then changes its sign, and with it gradients by a hundredth of their norm. */
static void build_smooth(size_t images, dv_graph **graph) {
    assert_ok(dv_graph_new(DV_F32, images, graph, &error));
    dv_value x = dv_graph_input(*graph, 3, 2, (const size_t[]){SIDE, SIDE});
    x = convolution_norm(*graph, "stem", x, 16, 1);
    x = residual(*graph, 1, x, 32);
    x = residual(*graph, 2, x, 64);
    x = dv_graph_global_average_pooling(*graph, "pool", x);
    x = dv_graph_linear(*graph, "linear", x, &(dv_linear_options){.channels = CLASSES, .bias = true});
    assert_ok(dv_graph_finish(*graph, x, &error));
}

/* ---- a rank --------------------------------------------------------------------------------- */

/* Image `number` of a step, the same whoever has it. */
static void fill_image(float *image, size_t elements, size_t step, size_t number) {
    dv_random key = dv_random_key((const uint64_t[]){step, number}, 2);
    for (size_t i = 0; i < elements; i++)
        image[i] = (float)dv_random_word(key, (uint32_t)i) * 0x1p-31f - 1;
}

static void fill_batch(network *n, size_t step, size_t first, size_t count) {
    float *images = dv_run_input(n->run);
    size_t elements = SIDE * SIDE * 3;
    for (size_t i = 0; i < count; i++) {
        fill_image(images + i * elements, elements, step, first + i);
        dv_run_labels(n->run)[i] = (int32_t)((first + i) * 7 % CLASSES);
    }
}

/* The images of a step are numbered batch by batch, and in each rank by rank. */
static void train_step(network *n, size_t rank, size_t step) {
    const setting *s = n->setting;
    size_t each = IMAGES / s->ranks / s->batches;
    for (size_t i = 0; i < s->batches; i++) {
        size_t first = (i * s->ranks + rank) * each;
        dv_step_result result;
        fill_batch(n, step, first, each);
        const dv_step told = {.batch = step,
                              .scale = (float)each / IMAGES,
                              .rate = RATE,
                              .update = step,
                              .first_image = first,
                              .more = i + 1 < s->batches};
        assert_ok(dv_run_train(n->run, &told, &result, &error));
        n->loss[step] += result.loss * (double)each / IMAGES;
    }
}

static void keep(const network *n, float *to, bool gradients) {
    const dv_run_parameter *p;
    for (size_t i = 0; (p = dv_run_parameter_at(n->run, i)) != NULL; i++) {
        const float *from = gradients ? p->gradient : p->data;
        if (from)
            memcpy(to, from, p->count * sizeof *to);
        to += p->count;
    }
}

static void make_network(network *n, size_t images) {
    const setting *s = n->setting;
    const dv_run_parameter *p;
    dv_plan_options options = dv_plan_options_default();
    options.method = s->method;
    options.gradients = s->gradients;
    options.ranks = s->ranks;
    options.reduce = s->reduce;
    options.clip = s->clip;
    options.sync_norm = !s->own_norm;
    if (strcmp(s->model, SMOOTH) == 0)
        build_smooth(images, &n->graph);
    else
        assert_ok(dv_model_build(s->model, DV_F32, images, CLASSES, SIDE, &n->graph, &error));
    assert_ok(dv_plan_new(n->graph, &options, &n->plan, &error));
    assert_ok(dv_run_new(n->plan, 1, &n->run, &error));
    for (size_t i = 0; (p = dv_run_parameter_at(n->run, i)) != NULL; i++)
        n->count += p->count;
    n->gradient = calloc(n->count, sizeof *n->gradient);
    n->weights = calloc(n->count, sizeof *n->weights);
}

static void train(dv_world *world, void *argument) {
    network *n = argument;
    make_network(n, IMAGES / n->setting->ranks / n->setting->batches);
    assert_ok(dv_run_join(n->run, n->setting->ranks > 1 ? world : NULL, &error));
    for (size_t step = 0; step < STEPS; step++) {
        train_step(n, dv_world_rank(world), step);
        if (step == 0)
            keep(n, n->gradient, true);
        if (n->setting->gradients == DV_GRADIENTS_KEPT)
            assert_ok(dv_run_update(n->run, RATE, step, &error));
    }
    keep(n, n->weights, false);
    dv_run_free(n->run);
    dv_plan_free(n->plan);
    dv_graph_free(n->graph);
}

/* ---- comparing ------------------------------------------------------------------------------ */

static void train_on_ranks(const setting *s, network *networks) {
    for (size_t r = 0; r < s->ranks; r++)
        networks[r] = (network){.setting = s};
    dv_bucket_bytes_force(s->bucket_bytes);
    on_ranks(s->ranks, 100, train, networks, sizeof *networks);
    dv_bucket_bytes_force(0);
}

static void release(network *networks, size_t count) {
    for (size_t r = 0; r < count; r++) {
        free(networks[r].gradient);
        free(networks[r].weights);
    }
}

/* ||a - b|| / ||b||. */
static double distance(const float *a, const float *b, size_t count) {
    double square = 0, norm = 0;
    for (size_t i = 0; i < count; i++) {
        square += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        norm += (double)b[i] * (double)b[i];
    }
    return sqrt(square / norm);
}

static double loss_of(const network *networks, size_t ranks, size_t step) {
    double sum = 0;
    for (size_t r = 0; r < ranks; r++)
        sum += networks[r].loss[step];
    return sum;
}

/* All ranks have the same bits. */
static void assert_alike(const network *networks, size_t ranks) {
    for (size_t r = 1; r < ranks; r++) {
        assert_memory_equal(networks[r].gradient, networks[0].gradient, networks[0].count * sizeof(float));
        assert_memory_equal(networks[r].weights, networks[0].weights, networks[0].count * sizeof(float));
    }
}

/* Trains on ranks and in one process, with the whole batch or with `batches` of it. */
static void compare(const setting *s, size_t batches, const bounds *most) {
    network ranks[MOST_RANKS], one[1];
    setting alone = *s;
    alone.ranks = 1;
    alone.batches = batches;
    alone.gradients = batches > 1 ? DV_GRADIENTS_KEPT : s->gradients;
    train_on_ranks(s, ranks);
    train_on_ranks(&alone, one);
    assert_alike(ranks, s->ranks);
    bool kept = s->gradients == DV_GRADIENTS_KEPT;
    bounds off = {.gradients = kept ? distance(ranks[0].gradient, one[0].gradient, one[0].count) : 0,
                  .weights = distance(ranks[0].weights, one[0].weights, one[0].count)};
    for (size_t step = 0; step < STEPS; step++)
        off.loss = fmax(off.loss, fabs(loss_of(ranks, s->ranks, step) - one[0].loss[step]));
    if (!(off.gradients <= most->gradients && off.weights <= most->weights && off.loss <= most->loss))
        fail_msg("%s, %s, %zu ranks: gradients are off by %g, weights by %g, losses by %g", s->model, s->method,
                 s->ranks, off.gradients, off.weights, off.loss);
    release(ranks, s->ranks);
    release(one, 1);
}

/* ---- cases ---------------------------------------------------------------------------------- */

static const bounds rounding = {1e-5, 1e-5, 1e-5};

/* A few codes of two bits are others where rounding decides on them. With another dither an eighth of the norm is. */
static const bounds codes = {2e-2, 1e-4, 1e-3};

/* A few signs of elements of ReLUs too. With statistics of its own images alone a rank is off by more than half. */
static const bounds signs = {5e-2, 5e-3, 1e-2};

/* Norms take the statistics of the whole batch, dither goes by the image's number in the step. */
static void gradients_are_those_of_the_whole_batch(void **state) {
    (void)state;
    static const struct {
        const char *model, *method;
        const bounds *bounds;
    } cases[] = {
        {SMOOTH, "none", &rounding},        {SMOOTH, "checkpoint", &rounding},
        {SMOOTH, "division", &codes},       {SMOOTH, "division:recompute=norms", &codes},
        {"resnet20", "none", &signs},       {"resnet20", "division", &signs},
        {"resnet20", "checkpoint", &signs}, {"resnet20", "division:recompute=norms", &signs},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t ranks = 2; ranks <= 4; ranks += 2) {
            setting s = {.method = cases[i].method,
                         .model = cases[i].model,
                         .ranks = ranks,
                         .batches = 1,
                         .bucket_bytes = 100000};
            compare(&s, 1, cases[i].bounds);
        }
}

/* The same with updates behind each bucket. */
static void transient_gradients(void **state) {
    (void)state;
    static const size_t buckets[] = {1, 100000, 0};
    for (size_t i = 0; i < sizeof buckets / sizeof *buckets; i++) {
        setting s = {.method = "none",
                     .model = SMOOTH,
                     .ranks = 2,
                     .batches = 1,
                     .bucket_bytes = buckets[i],
                     .gradients = DV_GRADIENTS_TRANSIENT};
        compare(&s, 1, &rounding);
    }
}

/* Two ranks with two batches each are one process with two of twice the size, and two ranks with one batch each and
 * statistics of their own are one process with both. */
static void accumulated_batches(void **state) {
    (void)state;
    setting s = {.method = "division", .model = SMOOTH, .ranks = 2, .batches = 2, .bucket_bytes = 100000};
    compare(&s, 2, &codes);
    s.model = "resnet20";
    s.own_norm = true;
    s.batches = 1;
    network ranks[MOST_RANKS], one[1];
    setting alone = s;
    alone.ranks = 1;
    alone.batches = 2;
    train_on_ranks(&s, ranks);
    train_on_ranks(&alone, one);
    assert_alike(ranks, 2);
    double off = distance(ranks[0].gradient, one[0].gradient, one[0].count);
    assert_true(off < 1e-6);
    release(ranks, 2);
    release(one, 1);
}

static void clipped_gradients(void **state) {
    (void)state;
    setting s = {.method = "none", .model = SMOOTH, .ranks = 2, .batches = 1, .bucket_bytes = 100000, .clip = 0.5};
    compare(&s, 1, &rounding);
}

/* Eight bits of mantissa on the way: gradients are off by about 2^-9, and all ranks have the same. */
static void bf16_on_the_way(void **state) {
    (void)state;
    static const bounds mantissa = {5e-3, 1e-4, 1e-4};
    setting s = {
        .method = "none", .model = SMOOTH, .ranks = 2, .batches = 1, .bucket_bytes = 100000, .reduce = DV_REDUCE_BF16};
    compare(&s, 1, &mantissa);
    s.gradients = DV_GRADIENTS_TRANSIENT;
    compare(&s, 1, &mantissa);
}

/* Twice the same is the same bits. */
static void same_bits_twice(void **state) {
    (void)state;
    setting s = {.method = "division",
                 .model = "resnet20",
                 .ranks = 4,
                 .batches = 1,
                 .bucket_bytes = 50000,
                 .gradients = DV_GRADIENTS_TRANSIENT,
                 .own_norm = true};
    network first[MOST_RANKS], second[MOST_RANKS];
    train_on_ranks(&s, first);
    train_on_ranks(&s, second);
    assert_alike(first, 4);
    assert_memory_equal(first[0].weights, second[0].weights, first[0].count * sizeof(float));
    release(first, 4);
    release(second, 4);
}

/* ---- plans ---------------------------------------------------------------------------------- */

/* Every trained layer is in a bucket, buckets are reduced in the order of backward, and updates come behind. */
static void buckets_of_a_plan(void **state) {
    (void)state;
    const setting s = {.method = "division", .model = "resnet20", .ranks = 4, .gradients = DV_GRADIENTS_TRANSIENT};
    network n = {.setting = &s};
    dv_bucket_bytes_force(100000);
    make_network(&n, 2);
    dv_bucket_bytes_force(0);
    const dv_plan *plan = n.plan;
    assert_true(plan->bucket_count > 3);
    for (size_t i = 0; i < plan->graph->layer_count; i++) {
        const dv_layer_plan *layer = &plan->layers[i];
        assert_true((layer->trained != 0) == (layer->bucket >= 0));
        if (layer->bucket < 0)
            continue;
        const dv_bucket *bucket = &plan->buckets[layer->bucket];
        assert_true(layer->backward_at < bucket->reduce_at && bucket->reduce_at < layer->update_at);
        assert_true(plan->pieces[bucket->piece].first <= layer->backward_at);
        assert_true(plan->pieces[bucket->piece].last >= layer->update_at);
    }
    for (size_t b = 1; b < plan->bucket_count; b++)
        assert_true(plan->buckets[b - 1].reduce_at < plan->buckets[b].reduce_at);
    assert_fails(dv_run_join(n.run, NULL, &error), DV_ERROR_ARGUMENT, "planned for 4 ranks, and there are 1");
    assert_fails(dv_run_forward(n.run, &(dv_step){.batch = 0}, &error), DV_ERROR_ARGUMENT, "dv_run_join");
    dv_run_free(n.run);
    dv_plan_free(n.plan);
    dv_graph_free(n.graph);
    release(&n, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_those_of_the_whole_batch),
        cmocka_unit_test(transient_gradients),
        cmocka_unit_test(accumulated_batches),
        cmocka_unit_test(clipped_gradients),
        cmocka_unit_test(bf16_on_the_way),
        cmocka_unit_test(same_bits_twice),
        cmocka_unit_test(buckets_of_a_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
