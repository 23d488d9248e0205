/* Forward and backward of convolutions allocate nothing. (oneDNN does inside: arguments of a call, panels of a
 * matrix product.) */
#include "allocations.h"
#include "convolutions.h"

#if ALLOCATIONS_ARE_COUNTED

/* Allocations in one forward and one backward, after a first of each. */
static long allocations_of(const layer_case *of, dv_type type) {
    bench b;
    bench_memory m;
    bench_mode mode = {.codec = "division", .accumulate = true};
    bench_init(&b, of, type, true);
    bench_memory_init(&b, &mode, &m);
    dv_kept kept = bench_keep(&b, &mode, &m, 0);
    const void *inputs[] = {m.inputs[0]};
    void *diffs[] = {m.diff_inputs[0]};
    const dv_kept *needed[] = {&kept};
    dv_forward forward = {.images = b.images,
                          .arrays = &b.arrays,
                          .inputs = inputs,
                          .output = m.output,
                          .workspace = m.forward_workspace,
                          .training = true};
    dv_backward backward = {.images = b.images,
                            .arrays = &b.arrays,
                            .diff_output = m.diff_output,
                            .diff_inputs = diffs,
                            .accumulate = &mode.accumulate,
                            .inputs = needed,
                            .workspace = m.backward_workspace};
    for (int round = 0; round < 2; round++) {
        atomic_store(&allocations, 0);
        assert_int_equal(of->kind->forward(&b.layer, &forward, NULL), DV_OK);
        assert_int_equal(of->kind->backward(&b.layer, &backward, NULL), DV_OK);
    }
    long count = atomic_load(&allocations);
    bench_memory_free(&b, &m);
    bench_destroy(&b);
    return count;
}

static void allocations_are_counted(void **state) {
    (void)state;
    atomic_store(&allocations, 0);
    void *volatile memory = malloc(10);
    free(memory);
    assert_int_equal(atomic_load(&allocations), 1);
}

static void nothing_is_allocated(void **state) {
    (void)state;
    static const dv_convolution_options options[] = {
        {32, {{3, 3}, {1, 1}, {1, 1}, {1, 1}}, 1, true, {0}, DV_INITIALISATION_HE},
        {32, {{1, 1}, {2, 2}, {0, 0}, {1, 1}}, 1, false, {0}, DV_INITIALISATION_HE},
        {24, {{3, 3}, {1, 1}, {2, 2}, {2, 2}}, 24, true, {0}, DV_INITIALISATION_HE},
        {32, {{3, 3}, {1, 1}, {1, 1}, {1, 1}}, 1, true, {0}, DV_INITIALISATION_HE}, /* with 48 channels: by Winograd's
                                                                                      algorithm */
    };
    static const size_t channels[] = {24, 24, 24, 48};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        for (int way = 0; way < 4; way++) {
            layer_case of = {.kind = way / 2 ? &dv_transposed_convolution : &dv_convolution, .input_count = 1};
            of.options = &options[i];
            of.inputs[0] = (dv_map){DV_F32, DV_NHWC, 4, channels[i], 2, {40, 40}};
            long count = allocations_of(&of, way % 2 ? DV_BF16 : DV_F32);
            if (count)
                fail_msg("%s %zu, %s: %ld allocations", of.kind->name, i, way % 2 ? "bf16" : "f32", count);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allocations_are_counted),
        cmocka_unit_test(nothing_is_allocated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void) {
    print_message("left out: a sanitizer has replaced the allocator, or this is not the GNU C library\n");
    return 0;
}

#endif
