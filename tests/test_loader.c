/* The loader: every image once an epoch, in an order that seed and epoch give, whatever the threads. */
#include "check.h"

#include "base/float16.h"
#include "data/order.h"

#include <division/data.h>
#include <math.h>
#include <omp.h>

enum { SIDE = 8, ELEMENTS = SIDE * SIDE * DV_DATA_CHANNELS };

typedef struct fixture {
    dv_dataset *data;
    dv_loader *loader;
} fixture;

static fixture make(const char *text, dv_loader_options options) {
    fixture made = {0};
    assert_ok(dv_dataset_open(text, &made.data, &error));
    assert_ok(dv_loader_new(made.data, &options, &made.loader, &error));
    return made;
}

static void end(fixture *made) {
    dv_loader_free(made->loader);
    dv_dataset_close(made->data);
}

static void test_orders_are_permutations(void **state) {
    (void)state;
    static const uint64_t counts[] = {1, 2, 3, 4, 5, 16, 17, 255, 1000, 65536, 65537};
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
        uint64_t count = counts[k];
        dv_order order = dv_order_new(7, k, count);
        unsigned char *seen = calloc(count, 1);
        assert_non_null(seen);
        for (uint64_t i = 0; i < count; i++) {
            uint64_t at = dv_order_at(&order, i);
            assert_true(at < count && !seen[at]);
            seen[at] = 1;
        }
        free(seen);
    }
}

/* Places and what is there have nothing to do with each other: the correlation is within five deviations of 0, and
 * as many neighbours rise as fall. */
static void test_orders_are_mixed(void **state) {
    (void)state;
    enum { COUNT = 10000 };
    for (uint64_t epoch = 0; epoch < 5; epoch++) {
        dv_order order = dv_order_new(1, epoch, COUNT), next = dv_order_new(1, epoch + 1, COUNT);
        double sum = 0;
        int rising = 0, fixed = 0, same = 0;
        for (uint64_t i = 0; i < COUNT; i++) {
            uint64_t at = dv_order_at(&order, i);
            sum += ((double)i - COUNT / 2.0) * ((double)at - COUNT / 2.0);
            rising += i > 0 && at > dv_order_at(&order, i - 1);
            fixed += at == i;
            same += at == dv_order_at(&next, i);
        }
        double correlation = sum / COUNT / (COUNT / 12.0 * COUNT);
        assert_true(correlation < 0.05 && correlation > -0.05);
        assert_in_range(rising, COUNT / 2 - 200, COUNT / 2 + 200);
        assert_in_range(fixed, 0, 8);
        assert_in_range(same, 0, 8);
    }
}

/* Which image of the data a normalised one is, or -1. */
static int find(const dv_dataset *data, size_t count, const float *image) {
    for (size_t i = 0; i < count; i++) {
        uint8_t bytes[ELEMENTS];
        int32_t label;
        size_t k = 0;
        assert_ok(dv_dataset_load(data, DV_TRAIN, i, bytes, &label, &error));
        while (k < ELEMENTS && image[k] == ((float)bytes[k] - 127.5f) * (1 / 50.0f))
            k++;
        if (k == ELEMENTS)
            return (int)i;
    }
    return -1;
}

static void test_every_image_once(void **state) {
    (void)state;
    enum { IMAGES = 23, BATCH = 5 };
    fixture made =
        make("synthetic:side=8,train=23", (dv_loader_options){.type = DV_F32, .batch = BATCH, .seed = 3, .shuffle = 1});
    int seen[IMAGES] = {0}, moved = 0;
    size_t bytes = sizeof(float) * BATCH * ELEMENTS, count;
    int32_t labels[BATCH];
    float *images = guarded_new(bytes);
    assert_int_equal(dv_loader_batches(made.loader), 5);
    for (size_t b = 0; b < 5; b++) {
        memset(images, 0xFF, bytes);
        memset(labels, 0xFF, sizeof labels);
        assert_ok(dv_loader_fill(made.loader, 1, b, images, labels, &count, &error));
        assert_int_equal(count, b < 4 ? 5 : 3);
        for (size_t i = count; i < BATCH; i++) /* what is behind the last batch is left alone */
            assert_true(labels[i] == -1 && isnan(images[i * ELEMENTS]) && isnan(images[(i + 1) * ELEMENTS - 1]));
        for (size_t i = 0; i < count; i++) {
            int index = find(made.data, IMAGES, images + i * ELEMENTS);
            assert_in_range(index, 0, IMAGES - 1);
            assert_int_equal(labels[i], index % 10);
            moved += (size_t)index != b * BATCH + i;
            seen[index]++;
        }
    }
    for (int i = 0; i < IMAGES; i++)
        assert_int_equal(seen[i], 1);
    assert_true(moved > IMAGES / 2);
    assert_fails(dv_loader_fill(made.loader, 1, 5, images, labels, &count, &error), DV_ERROR_ARGUMENT, "batch 5 of 5");
    guarded_free(images, bytes);
    end(&made);
}

/* The same for any number of threads, and for bf16 what rounding makes of it. */
static void test_threads_and_types(void **state) {
    (void)state;
    enum { BATCH = 17 };
    static float first[BATCH * ELEMENTS], again[BATCH * ELEMENTS];
    static uint16_t half[BATCH * ELEMENTS];
    int32_t labels[BATCH], same[BATCH];
    size_t count;
    int threads = omp_get_max_threads();
    dv_loader_options options = {.type = DV_F32, .batch = BATCH, .seed = 9, .shuffle = 1, .augment = 1};
    for (int n = 1; n <= 5; n += 2) {
        omp_set_num_threads(n);
        fixture made = make("synthetic:side=8,train=100", options);
        assert_ok(dv_loader_fill(made.loader, 2, 1, n == 1 ? first : again, n == 1 ? labels : same, &count, &error));
        end(&made);
        if (n == 1)
            continue;
        assert_memory_equal(first, again, sizeof first);
        assert_memory_equal(labels, same, sizeof labels);
    }
    omp_set_num_threads(threads);
    options.type = DV_BF16;
    fixture made = make("synthetic:side=8,train=100", options);
    assert_ok(dv_loader_fill(made.loader, 2, 1, half, same, &count, &error));
    for (size_t i = 0; i < BATCH * ELEMENTS; i++)
        assert_int_equal(half[i], dv_bf16_nearest(first[i]));
    assert_ok(dv_loader_fill(made.loader, 3, 1, half, same, &count, &error));
    assert_memory_not_equal(labels, same, sizeof labels); /* another epoch, another order */
    end(&made);
}

/* How many threads there may be is the caller's to change at any time. */
static void test_other_threads_later(void **state) {
    (void)state;
    int before = omp_get_max_threads();
    omp_set_num_threads(1);
    fixture made = make("synthetic:side=8,train=8,test=4", (dv_loader_options){.batch = 4});
    omp_set_num_threads(16);
    end(&made);
    omp_set_num_threads(before);
}

static void test_batches(void **state) {
    (void)state;
    static const struct {
        size_t batch;
        int drop_last;
        size_t batches;
    } cases[] = {{1, 0, 23}, {1, 1, 23}, {5, 0, 5}, {5, 1, 4}, {23, 0, 1}, {23, 1, 1}, {24, 0, 1}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        fixture made =
            make("synthetic:side=8,test=23",
                 (dv_loader_options){.split = DV_TEST, .batch = cases[k].batch, .drop_last = cases[k].drop_last});
        assert_int_equal(dv_loader_batches(made.loader), cases[k].batches);
        end(&made);
    }
}

static void test_wrong_calls(void **state) {
    (void)state;
    dv_dataset *data = NULL;
    dv_loader *loader = NULL;
    assert_ok(dv_dataset_open("synthetic:side=8,train=23", &data, &error));
    assert_fails(dv_loader_new(data, &(dv_loader_options){.batch = 0}, &loader, &error), DV_ERROR_OPTION,
                 "batch: 0: must be at least 1");
    assert_fails(dv_loader_new(data, &(dv_loader_options){.batch = 24, .drop_last = 1}, &loader, &error),
                 DV_ERROR_OPTION, "batch: 24: the data has 23 images");
    assert_fails(dv_loader_new(data, &(dv_loader_options){.batch = 1, .type = DV_F16}, &loader, &error),
                 DV_ERROR_UNSUPPORTED, "f16");
    assert_fails(dv_loader_new(NULL, &(dv_loader_options){.batch = 1}, &loader, &error), DV_ERROR_ARGUMENT, "NULL");
    assert_null(loader);
    dv_loader_free(NULL);
    dv_dataset_close(data);
}

/* Ranks share each batch: no image twice, none left out, in an order that does not depend on their number. A batch that
 * is not full is shared evenly. */
static void test_ranks_share(void **state) {
    (void)state;
    enum { IMAGES = 23, BATCH = 3, RANKS = 3 };
    int seen[IMAGES] = {0};
    for (size_t rank = 0; rank < RANKS; rank++) {
        fixture made = make("synthetic:side=8,train=23",
                            (dv_loader_options){.batch = BATCH, .seed = 3, .shuffle = 1, .ranks = RANKS, .rank = rank});
        assert_int_equal(dv_loader_batches(made.loader), 3);
        for (size_t b = 0; b < 3; b++) {
            float images[BATCH * ELEMENTS];
            int32_t labels[BATCH];
            size_t count, place = dv_loader_place(made.loader, b);
            assert_ok(dv_loader_fill(made.loader, 1, b, images, labels, &count, &error));
            assert_int_equal(count, b < 2 ? BATCH : rank == 0 ? 1 : 2);
            dv_order order = dv_order_new(3, 1, IMAGES);
            for (size_t i = 0; i < count; i++) {
                int index = find(made.data, IMAGES, images + i * ELEMENTS);
                assert_int_equal(index, dv_order_at(&order, place + i));
                seen[index]++;
            }
        }
        end(&made);
    }
    for (int i = 0; i < IMAGES; i++)
        assert_int_equal(seen[i], 1);
    dv_dataset *data;
    dv_loader *loader;
    assert_ok(dv_dataset_open("synthetic", &data, &error));
    assert_fails(dv_loader_new(data, &(dv_loader_options){.batch = 2, .ranks = 2, .rank = 2}, &loader, &error),
                 DV_ERROR_ARGUMENT, "rank 2 of 2");
    dv_dataset_close(data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_orders_are_permutations),
        cmocka_unit_test(test_orders_are_mixed),
        cmocka_unit_test(test_every_image_once),
        cmocka_unit_test(test_threads_and_types),
        cmocka_unit_test(test_other_threads_later),
        cmocka_unit_test(test_batches),
        cmocka_unit_test(test_wrong_calls),
        cmocka_unit_test(test_ranks_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
