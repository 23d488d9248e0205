/* Convolutions on matrix tiles: the processor's kernels against the plain ones, passes on both against oneDNN's, and
 * the same bits with any number of threads. What they make of every shape is in test_convolution and
 * test_transposed_convolution. */
#include "base/cpu.h"
#include "nn/kernels/matrix.h"
#include "passes.h"

enum { SIDE = DV_MATRIX_SIDE, DEPTH = DV_MATRIX_DEPTH, TILE = DV_MATRIX_ELEMENTS, SQUARE = DV_MATRIX_SQUARE };

static const size_t awkward_channels[] = {1, 3, 16, 17, 31, 32, 33, 80};
enum { CHANNEL_CASES = sizeof awkward_channels / sizeof *awkward_channels };

/* The processor's kernels; without them a test is skipped. */
static const dv_matrix_kernels *fast(void) {
    if (!dv_matrix())
        leave_out("the matrix unit: no AMX is in use here");
    return dv_matrix();
}

static uint16_t *made_up_bf16(size_t count, uint32_t seed) {
    float *numbers = made_up(count, seed);
    uint16_t *values = values_of(DV_BF16, numbers, count);
    free(numbers);
    return values;
}

/* Seven pixels of two images, of one, of none. */
static void to_lanes(void **state) {
    (void)state;
    enum { PIXELS = 7, STRIDE = 90, LANES = 4, BLOCK = PIXELS * LANES * DEPTH, BYTES = 5 * BLOCK * 2 };
    const dv_matrix_kernels *kernels = fast();
    uint16_t *data = made_up_bf16(2 * PIXELS * STRIDE, 1);
    for (int i = 0; i < CHANNEL_CASES; i++)
        for (int how = 0; how < 6; how++) {
            const uint16_t *first = how % 3 == 2 ? NULL : data, *second = how > 0 ? NULL : data + PIXELS * STRIDE;
            dv_matrix_pixels pixels = {first, PIXELS, STRIDE, awkward_channels[i]};
            uint16_t *got[] = {guarded_new(BYTES), guarded_new(BYTES)};
            for (int j = 0; j < 2; j++) {
                const dv_matrix_kernels *used = j ? &dv_matrix_reference : kernels;
                dv_matrix_lanes lanes = {got[j] + DEPTH, LANES * DEPTH, BLOCK};
                if (how < 3)
                    used->pair(&pixels, second, &lanes);
                else
                    used->spread(&pixels, &lanes);
            }
            assert_memory_equal(got[0], got[1], BYTES);
            guarded_free(got[0], BYTES);
            guarded_free(got[1], BYTES);
        }
    guarded_free(data, 2 * PIXELS * STRIDE * sizeof *data);
}

static void turning(void **state) {
    (void)state;
    enum { COUNT = 3 };
    const dv_matrix_kernels *kernels = fast();
    uint16_t *got = made_up_bf16(COUNT * TILE, 5), *expected = made_up_bf16(COUNT * TILE, 5);
    kernels->turn(got, COUNT);
    dv_matrix_reference.turn(expected, COUNT);
    assert_memory_equal(got, expected, COUNT * TILE * sizeof *got);
    guarded_free(got, COUNT * TILE * sizeof *got);
    guarded_free(expected, COUNT * TILE * sizeof *got);
}

static const float odd_numbers[] = {NAN,     INFINITY, -INFINITY,   -0.0f,      1e-40f,
                                    -1e-42f, 3.4e38f,  1.00390625f, 1.01171875f};
enum { ODD_NUMBERS = sizeof odd_numbers / sizeof *odd_numbers };

/* Plain weights to tiles and sums of tiles to a plain gradient: as they lie forwards, and backwards. */
static void plain_weights(void **state) {
    (void)state;
    enum { WINDOW = 9, COUNT = DEPTH * DEPTH * WINDOW };
    const dv_matrix_kernels *kernels = fast();
    float *weights = made_up(COUNT, 3), *sums = made_up(DV_MATRIX_SUMS, 4);
    for (size_t i = 0; i < ODD_NUMBERS; i++)
        weights[7 * i * WINDOW] = odd_numbers[i];
    for (int i = 0; awkward_channels[i] <= DEPTH; i++)
        for (int how = 0; how < 4; how++) {
            bool back = how & 1, other = how & 2;
            size_t from = other ? awkward_channels[i] : DEPTH, to = other ? SIDE : awkward_channels[i] % SIDE + 1;
            dv_matrix_plain plain = {from, back ? DEPTH * WINDOW : WINDOW, to, back ? WINDOW : DEPTH * WINDOW};
            uint16_t *packed[] = {guarded_new(TILE * sizeof(uint16_t)), guarded_new(TILE * sizeof(uint16_t))};
            float *gradients[] = {made_up(COUNT, 5), made_up(COUNT, 5)};
            for (int j = 0; j < 2; j++) {
                const dv_matrix_kernels *used = j ? &dv_matrix_reference : kernels;
                plain.from_channels = from;
                used->pack(weights, &plain, packed[j]);
                plain.from_channels = from < SIDE ? from : SIDE;
                used->add(sums, &plain, gradients[j]);
            }
            assert_memory_equal(packed[0], packed[1], TILE * sizeof(uint16_t));
            assert_memory_equal(gradients[0], gradients[1], COUNT * sizeof(float));
            for (int j = 0; j < 2; j++) {
                guarded_free(packed[j], TILE * sizeof(uint16_t));
                free(gradients[j]);
            }
        }
    free(weights);
    free(sums);
}

/* Sums of three elements of a window over two blocks of channels, the lines at lanes that begin anywhere. */
static void products(void **state) {
    (void)state;
    enum { LANES = 3 * SQUARE, BLOCK = LANES * DEPTH, WEIGHTS = 3 * 2 * 2 * TILE };
    const dv_matrix_kernels *kernels = fast();
    uint16_t *lines = made_up_bf16(2 * BLOCK, 6), *weights = made_up_bf16(WEIGHTS, 7);
    dv_matrix_tap taps[3];
    for (size_t i = 0; i < 3; i++)
        taps[i] = (dv_matrix_tap){lines + i * 5 * DEPTH, weights + i * 4 * TILE};
    dv_matrix_product product = {taps, 3, 2, BLOCK, 2 * TILE};
    for (size_t columns = 1; columns <= 2; columns++) {
        float *got = guarded_new(SQUARE * SQUARE * sizeof *got), *expected = guarded_new(SQUARE * SQUARE * sizeof *got);
        kernels->begin();
        kernels->multiply(&product, 17, columns, got);
        kernels->end();
        dv_matrix_reference.multiply(&product, 17, columns, expected);
        assert_near(got, expected, (size_t)SQUARE * SQUARE, 1e-6);
        guarded_free(got, SQUARE * SQUARE * sizeof *got);
        guarded_free(expected, SQUARE * SQUARE * sizeof *got);
    }
    guarded_free(lines, 2 * BLOCK * sizeof *lines);
    guarded_free(weights, WEIGHTS * sizeof *weights);
}

/* Rounding of every kind of number, and lanes and channels that are not there. */
static void storing(void **state) {
    (void)state;
    enum { PIXELS = 5, LANES = 12, IMAGES = 10, COUNT = PIXELS * IMAGES * 40 };
    const dv_matrix_kernels *kernels = fast();
    float *sums = made_up((size_t)SQUARE * SQUARE, 8), *bias = made_up(SQUARE, 9);
    for (size_t i = 0; i < ODD_NUMBERS; i++)
        for (size_t j = 0; j < SQUARE; j++)
            sums[j * SQUARE + 3 * i] = odd_numbers[i];
    for (size_t channels = 1; channels <= SQUARE; channels++)
        for (size_t lane = 0; lane < (size_t)PIXELS * LANES; lane += SQUARE) {
            uint16_t *got = guarded_new(COUNT * sizeof *got), *expected = guarded_new(COUNT * sizeof *got);
            dv_matrix_target target = {got,         PIXELS, 40,       IMAGES,
                                       PIXELS * 40, LANES,  channels, channels % 2 ? bias : NULL};
            kernels->store(sums, lane, &target);
            target.data = expected;
            dv_matrix_reference.store(sums, lane, &target);
            assert_memory_equal(got, expected, COUNT * sizeof *got);
            guarded_free(got, COUNT * sizeof *got);
            guarded_free(expected, COUNT * sizeof *got);
        }
    free(sums);
    free(bias);
}

static void gradients(void **state) {
    (void)state;
    enum { CHUNKS = 3, LINE = CHUNKS * TILE, BLOCK = 3 * LINE, SUMS = 2 * 3 * DV_MATRIX_SUMS };
    const dv_matrix_kernels *kernels = fast();
    uint16_t *turned = made_up_bf16(2 * BLOCK, 10), *pairs = made_up_bf16(2 * BLOCK, 11);
    const dv_matrix_meeting meetings[] = {{turned, pairs + DEPTH}, {turned + LINE, pairs + LINE - DEPTH}};
    const size_t block[] = {BLOCK, BLOCK};
    for (size_t rows = 1; rows <= 2; rows++)
        for (size_t columns = 1; columns <= 2; columns++) {
            float *got = made_up(SUMS, 12), *expected = made_up(SUMS, 12);
            kernels->begin();
            kernels->multiply_add(meetings, 2, CHUNKS, block, rows, columns, got, 3 * DV_MATRIX_SUMS);
            kernels->end();
            dv_matrix_reference.multiply_add(meetings, 2, CHUNKS, block, rows, columns, expected, 3 * DV_MATRIX_SUMS);
            assert_near(got, expected, SUMS, 1e-6);
            for (size_t i = columns * DV_MATRIX_SUMS; i < (size_t)3 * DV_MATRIX_SUMS; i++)
                assert_true(got[i] == expected[i]); /* tiles that were not asked for */
            free(got);
            free(expected);
        }
    guarded_free(turned, 2 * BLOCK * sizeof *turned);
    guarded_free(pairs, 2 * BLOCK * sizeof *pairs);
}

/* Groups of images with a last one that is not full, bands of rows, blocks of channels: bands of forward because of the
 * channels, of the gradient because of the rows, and parts of a gradient. The last ones are too much for plain C. */
static const size_t shapes[][5] = {{40, 40, 24, 4, 1}, {5, 33, 80, 9, 2},   {2, 512, 16, 17, 1},  {34, 16, 8, 13, 1},
                                   {33, 512, 8, 5, 1}, {2, 512, 100, 4, 1}, {40, 300, 250, 6, 2}, {2, 512, 100, 40, 1}};
enum { SLOW_SHAPES = 2 };
enum { SHAPES = sizeof shapes / sizeof *shapes };

static dv_convolution_shape shape_at(size_t i) {
    return square_shape(DV_BF16, shapes[i][0], shapes[i][1], shapes[i][2], shapes[i][3], shapes[i][4]);
}

/* Values are rounded to 8 bits, the gradient of weights is not. */
static void passes(void **state) {
    (void)state;
    const dv_matrix_kernels *all[] = {&dv_matrix_reference, dv_matrix()};
    for (size_t i = 0; i < SHAPES; i++)
        for (int kind = DV_PASS_FORWARD; kind <= DV_PASS_BACKWARD_WEIGHTS; kind++) {
            dv_convolution_shape shape = shape_at(i), wide = shape;
            wide.type = DV_F32;
            dv_pass_forced = &dv_onednn_maker;
            size_t count;
            float *expected = computed((dv_pass_kind)kind, &wide, 2, &count);
            dv_pass_forced = NULL;
            for (int j = i < SHAPES - SLOW_SHAPES ? 0 : 1; j < 2 && all[j]; j++) {
                dv_matrix_forced = all[j];
                float *got = computed((dv_pass_kind)kind, &shape, 2, &count);
                assert_near(got, expected, count, kind == DV_PASS_BACKWARD_WEIGHTS ? 1e-5 : 3e-3);
                free(got);
            }
            dv_matrix_forced = NULL;
            free(expected);
        }
}

static void any_number_of_threads(void **state) {
    (void)state;
    const dv_matrix_kernels *all[] = {&dv_matrix_reference, dv_matrix()};
    for (int j = 0; j < 2 && all[j]; j++)
        for (int i = 0; i < 2 * 3; i++) {
            dv_pass_kind kind = (dv_pass_kind)(DV_PASS_FORWARD_NO_BIAS + i % 3);
            dv_convolution_shape shape = shape_at(i < 3 ? 1 : 3);
            size_t count;
            dv_matrix_forced = all[j];
            float *expected = computed(kind, &shape, 1, &count);
            for (int threads = 2; threads <= 5; threads++) {
                float *got = computed(kind, &shape, threads, &count);
                assert_memory_equal(got, expected, count * sizeof(float));
                free(got);
            }
            dv_matrix_forced = NULL;
            free(expected);
        }
}

static void expect_kernel(dv_convolution_shape shape, bool matrix) {
    for (int kind = DV_PASS_FORWARD; kind <= DV_PASS_BACKWARD_WEIGHTS; kind++) {
        dv_pass *pass;
        assert_ok(dv_pass_new(&pass, NULL, (dv_pass_kind)kind, &shape, "conv", &error));
        assert_int_equal(strncmp(pass->kernel, "matrix", 6) == 0, matrix);
        dv_pass_free(pass);
    }
}

static void who_computes(void **state) {
    (void)state;
    dv_convolution_shape shape = shape_at(0);
    shape.type = DV_F32;
    expect_kernel(shape, false);
    if (!dv_matrix())
        return;
    expect_kernel(shape_at(0), true);
    shape = shape_at(1), shape.rank = 1;
    expect_kernel(shape, true);
    shape = shape_at(0), shape.groups = 2;
    expect_kernel(shape, false);
    shape = square_shape(DV_BF16, 8, 256, 256, 1 << 16, 1), shape.rank = 1; /* rows too long for any cache */
    expect_kernel(shape, false);
    dv_pass_forced = &dv_onednn_maker;
    expect_kernel(shape_at(0), false);
    dv_pass_forced = NULL;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(to_lanes), cmocka_unit_test(turning),      cmocka_unit_test(plain_weights),
        cmocka_unit_test(products), cmocka_unit_test(storing),      cmocka_unit_test(gradients),
        cmocka_unit_test(passes),   cmocka_unit_test(who_computes), cmocka_unit_test(any_number_of_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
