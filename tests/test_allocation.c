/* Packing and unpacking allocate nothing, and neither does a step of training. */
#include "allocations.h"
#include "maps.h"

#include <division/models.h>
#include <division/train.h>

#if ALLOCATIONS_ARE_COUNTED

static long allocations_of(const char *text, const dv_map *map, int threads) {
    dv_codec codec = codec_of(text);
    codec.threads = threads;
    size_t bytes = packed_bytes_of(&codec, map);
    void *src = map_values(map, 3), *packed = guarded_new(bytes), *dst = guarded_new(dv_map_bytes(map));
    long before = 0;
    for (int round = 0; round < 3; round++) {
        dv_error error;
        char again[100];
        if (round == 1)
            before = atomic_load(&allocations);
        assert_int_equal(dv_codec_parse(text, &codec, &error), DV_OK);
        dv_codec_format(&codec, again, sizeof again);
        codec.threads = threads;
        assert_int_equal(dv_codec_packed_bytes(&codec, map, &bytes, &error), DV_OK);
        assert_int_equal(dv_codec_encode(&codec, map, NULL, src, packed, bytes, &error), DV_OK);
        assert_int_equal(dv_codec_decode(&codec, map, NULL, packed, bytes, dst, &error), DV_OK);
        assert_int_equal(dv_codec_decode_images(&codec, map, NULL, 1, 1, packed, bytes, dst, &error), DV_OK);
        assert_int_equal(dv_codec_encode(&codec, map, NULL, src, packed, bytes - 1, &error), DV_ERROR_BUFFER);
    }
    long after = atomic_load(&allocations);
    guarded_free(packed, bytes);
    guarded_free(dst, dv_map_bytes(map));
    free(src);
    return after - before;
}

static void allocations_are_counted(void **state) {
    (void)state;
    long before = atomic_load(&allocations);
    void *volatile memory = malloc(10);
    free(memory);
    assert_int_equal(atomic_load(&allocations) - before, 1);
    void *page = mmap(NULL, 10, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(page, 10);
    assert_int_equal(atomic_load(&allocations) - before, 2);
}

static void packing_allocates_nothing(void **state) {
    (void)state;
    static const char *const texts[] = {"division", "division:bits=8,dither=subtractive", "exact", "bits"};
    for (int threads = 1; threads <= 2; threads++)
        for (size_t t = 0; t < 4; t++)
            for (int kind = 0; kind < DV_TYPE_COUNT * DV_LAYOUT_COUNT; kind++) {
                dv_map map = {.images = 3, .channels = 600, .rank = 2, .sides = {17, 19}};
                map.type = (dv_type)(kind % DV_TYPE_COUNT);
                map.layout = (dv_layout)(kind / DV_TYPE_COUNT);
                long count = allocations_of(texts[t], &map, threads);
                if (count)
                    fail_msg("%s, %s, %d threads: %ld allocations", texts[t], map_text(&map), threads, count);
            }
}

/* ---- training -------------------------------------------------------------------------------- */

static dv_error error;

static void assert_fine(dv_status status) {
    if (status != DV_OK)
        fail_msg("%s", error.text);
}

/* A network with one layer of every kind; with logits that are maps it has no need of the last two. */
static dv_graph *every_kind(dv_type type, bool maps) {
    dv_graph *graph;
    assert_fine(dv_graph_new(type, 2, &graph, &error));
    dv_value x = dv_graph_input(graph, 3, 2, (const size_t[]){16, 16}), both[2];
    const dv_convolution_options wide = {.channels = 16, .window = dv_window_square(3, 1, 1), .groups = 1};
    const dv_convolution_options up = {.channels = 8, .window = dv_window_square(2, 2, 0), .groups = 1, .bias = true};
    const dv_pooling_options half = {.window = dv_window_square(2, 2, 0)};
    x = dv_graph_batch_norm(graph, "bn", dv_graph_convolution(graph, "conv", x, &wide));
    x = dv_graph_relu(graph, "relu", x);
    both[0] = dv_graph_max_pooling(graph, "max", x, &half);
    both[1] = dv_graph_average_pooling(graph, "average", x, &half);
    x = dv_graph_concatenation(graph, "both", both, 2);
    x = dv_graph_sum(graph, "sum", x, dv_graph_dropout(graph, "dropout", x, 0.5f));
    x = dv_graph_relu(graph, "relu2", dv_graph_transposed_convolution(graph, "up", x, &up));
    if (!maps) {
        x = dv_graph_global_average_pooling(graph, "pool", x);
        x = dv_graph_linear(graph, "fc", x, &(const dv_linear_options){.channels = 10, .bias = true});
    }
    assert_fine(dv_graph_finish(graph, x, &error));
    return graph;
}

static void fill_images(dv_run *run) {
    const dv_map *map = dv_run_input_map(run);
    unsigned char *input = dv_run_input(run);
    for (size_t i = 0; i < dv_map_bytes(map); i++)
        input[i] = i % 2 ? 0x3f : (unsigned char)(37 * i); /* numbers near 1 in f32 and bf16 */
}

static void step(dv_run *run, uint64_t number) {
    dv_step_result result;
    fill_images(run);
    const dv_map *logits = dv_run_logits_map(run);
    for (size_t i = 0; i < dv_map_elements(logits) / logits->channels; i++)
        dv_run_labels(run)[i] = (int32_t)(i % logits->channels);
    assert_fine(dv_run_forward(run, &(dv_step){.batch = number, .rate = 0.01, .update = number}, &error));
    assert_fine(dv_run_loss(run, &result, &error));
    assert_fine(dv_run_backward(run, &error));
    if (dv_run_gradients(run) == DV_GRADIENTS_KEPT)
        assert_fine(dv_run_update(run, 0.01, number, &error));
    fill_images(run);
    assert_fine(dv_run_predict(run, &error));
}

/* What a run is told beside its method. */
typedef struct way_to_train {
    const char *optimizer, *freeze;
    int kept; /* gradients, which are clipped then */
} way_to_train;

/* Allocations of two steps, after a first one. Takes the graph. */
static long allocations_of_training(dv_graph *graph, const char *method, const way_to_train *how) {
    dv_plan_options options = dv_plan_options_default();
    dv_plan *plan;
    dv_run *run;
    options.method = method;
    options.optimizer = how->optimizer;
    options.freeze = how->freeze;
    options.gradients = how->kept ? DV_GRADIENTS_KEPT : DV_GRADIENTS_TRANSIENT;
    options.clip = how->kept ? 1 : 0;
    assert_fine(dv_plan_new(graph, &options, &plan, &error));
    assert_fine(dv_run_new(plan, 1, &run, &error));
    step(run, 0);
    long before = atomic_load(&allocations);
    step(run, 1);
    step(run, 2);
    long count = atomic_load(&allocations) - before;
    dv_run_free(run);
    dv_plan_free(plan);
    dv_graph_free(graph);
    return count;
}

/* Maps are no smaller than 4 x 4: for a 3x3 window on less, oneDNN falls back on matrix products, which allocate. */
static void training_allocates_nothing(void **state) {
    (void)state;
    static const char *const methods[] = {"none", "division", "division:recompute=norms"};
    static const char *const networks[] = {"resnet20", "every kind", "maps"};
    static const char *const optimizers[] = {"sgd", "adamw", "rmsprop:momentum=0.9,centered=yes"};
    static const char *const frozen[] = {"conv1,bn1,layer1,layer3.0", "bn", "conv,bn"};
    for (int way = 0; way < 36; way++) {
        dv_type type = way & 1 ? DV_BF16 : DV_F32;
        const char *method = methods[way / 6 % 3];
        int network = way / 2 % 3;
        dv_graph *graph;
        if (network > 0)
            graph = every_kind(type, network == 2);
        else
            assert_fine(dv_model_build("resnet20", type, 2, 10, 16, &graph, &error));
        const way_to_train how = {optimizers[way % 3], way < 18 ? "" : frozen[network], way / 3 % 2};
        long count = allocations_of_training(graph, method, &how);
        if (count)
            fail_msg("%s, %s, %s, frozen '%s': %ld allocations", networks[network], method, dv_type_name(type),
                     how.freeze, count);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allocations_are_counted),
        cmocka_unit_test(packing_allocates_nothing),
        cmocka_unit_test(training_allocates_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void) {
    print_message("left out: a sanitizer has replaced the allocator, or this is not the GNU C library\n");
    return 0;
}

#endif
