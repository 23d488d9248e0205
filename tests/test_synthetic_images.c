/* Made-up images: the same everywhere, balanced, of any side; and hard for whoever only weighs pixels. */
#include "check.h"

#include <division/data.h>
#include <math.h>

enum { CLASSES = 10, SIDE = 32, ELEMENTS = SIDE * SIDE * DV_DATA_CHANNELS };

static dv_dataset *open_data(const char *text) {
    dv_dataset *data = NULL;
    assert_ok(dv_dataset_open(text, &data, &error));
    return data;
}

static int32_t load(const dv_dataset *data, dv_split split, size_t index, uint8_t *image) {
    int32_t label = -1;
    assert_ok(dv_dataset_load(data, split, index, image, &label, &error));
    return label;
}

static uint64_t checksum(const uint8_t *bytes, size_t count) {
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum = (sum ^ bytes[i]) * 0x100000001b3;
    return sum;
}

/* The sums were made by this test; they hold the images of all compilers and processors to the same bytes. */
static void test_same_bytes_everywhere(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t side;
        uint64_t sum;
    } cases[] = {{"synthetic", 32, 0x0ab0b8f485a05b85},
                 {"synthetic:seed=1", 32, 0xaa1a119a5c118991},
                 {"synthetic:side=47", 47, 0x8d603ee80d4ff566}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        dv_dataset *data = open_data(cases[k].text);
        size_t bytes = cases[k].side * cases[k].side * DV_DATA_CHANNELS;
        uint8_t *image = guarded_new(bytes);
        uint64_t sum = 0;
        for (size_t i = 0; i < 40; i++) {
            load(data, i % 2 ? DV_TEST : DV_TRAIN, i, image);
            sum = sum * 31 + checksum(image, bytes);
        }
        if (sum != cases[k].sum)
            fail_msg("%s: the sum is 0x%016llx", cases[k].text, (unsigned long long)sum);
        guarded_free(image, bytes);
        dv_dataset_close(data);
    }
}

/* Seed, split and index each give another image; the number of images and what was asked before give none. */
static void test_what_matters(void **state) {
    (void)state;
    static uint8_t first[ELEMENTS], other[ELEMENTS];
    dv_dataset *data = open_data("synthetic"), *seeded = open_data("synthetic:seed=5"),
               *small = open_data("synthetic:train=100,test=100");
    load(data, DV_TRAIN, 10, first);
    load(data, DV_TRAIN, 20, other);
    assert_memory_not_equal(first, other, ELEMENTS);
    load(data, DV_TEST, 10, other);
    assert_memory_not_equal(first, other, ELEMENTS);
    load(seeded, DV_TRAIN, 10, other);
    assert_memory_not_equal(first, other, ELEMENTS);
    load(small, DV_TRAIN, 10, other);
    assert_memory_equal(first, other, ELEMENTS);
    load(data, DV_TRAIN, 10, other);
    assert_memory_equal(first, other, ELEMENTS);
    dv_dataset_close(data);
    dv_dataset_close(seeded);
    dv_dataset_close(small);
}

static void test_shape_and_balance(void **state) {
    (void)state;
    static uint8_t image[ELEMENTS];
    dv_dataset *data = open_data("synthetic:train=300,test=200");
    dv_dataset_shape shape = dv_dataset_describe(data);
    size_t counts[CLASSES] = {0};
    double sum = 0, squares = 0, count = 0;
    assert_int_equal(shape.images[DV_TRAIN], 300);
    assert_int_equal(shape.images[DV_TEST], 200);
    assert_int_equal(shape.classes, CLASSES);
    assert_int_equal(shape.side, SIDE);
    for (size_t i = 0; i < 300; i++) {
        int32_t label = load(data, DV_TRAIN, i, image);
        assert_in_range(label, 0, CLASSES - 1);
        counts[label]++;
        for (size_t k = 0; k < ELEMENTS; k++, count++) {
            sum += image[k];
            squares += image[k] * image[k];
        }
    }
    for (size_t i = 0; i < CLASSES; i++)
        assert_int_equal(counts[i], 30);
    double mean = sum / count, deviation = sqrt(squares / count - mean * mean);
    assert_true(fabs(mean - 127.5) < 6 && fabs(deviation - 50) < 5); /* what the loader normalises by */
    dv_dataset_close(data);
}

/* ---- a linear classifier ------------------------------------------------------------------- */

typedef struct linear {
    float weights[CLASSES][ELEMENTS], bias[CLASSES];
} linear;

static void scores(const linear *model, const float *x, float out[CLASSES]) {
    for (int c = 0; c < CLASSES; c++) {
        float sums[16] = {0}, sum = model->bias[c];
        for (size_t i = 0; i < ELEMENTS; i += 16)
            for (size_t k = 0; k < 16; k++)
                sums[k] += model->weights[c][i + k] * x[i + k];
        for (size_t k = 0; k < 16; k++)
            sum += sums[k];
        out[c] = sum;
    }
}

/* One step of softmax regression. */
static void learn(linear *model, const float *x, int32_t label, float rate) {
    float out[CLASSES], sum = 0, largest = -INFINITY;
    scores(model, x, out);
    for (int c = 0; c < CLASSES; c++)
        largest = fmaxf(largest, out[c]);
    for (int c = 0; c < CLASSES; c++)
        sum += out[c] = expf(out[c] - largest);
    for (int c = 0; c < CLASSES; c++) {
        float slope = rate * (out[c] / sum - (float)(c == label));
        model->bias[c] -= slope;
        for (size_t i = 0; i < ELEMENTS; i++)
            model->weights[c][i] -= slope * x[i];
    }
}

static int32_t load_numbers(const dv_dataset *data, dv_split split, size_t index, float *x) {
    static uint8_t image[ELEMENTS];
    int32_t label = load(data, split, index, image);
    for (size_t i = 0; i < ELEMENTS; i++)
        x[i] = ((float)image[i] - 127.5f) / 50;
    return label;
}

static void test_a_linear_model_fails(void **state) {
    (void)state;
    enum { LEARNT = 20000, TESTED = 1000 };
    static float x[ELEMENTS];
    float out[CLASSES];
    size_t correct = 0;
    dv_dataset *data = open_data("synthetic");
    linear *model = calloc(1, sizeof *model);
    assert_non_null(model);
    for (size_t i = 0; i < LEARNT; i++) {
        int32_t label = load_numbers(data, DV_TRAIN, i, x);
        learn(model, x, label, 2e-4f * (1 - (float)i / LEARNT));
    }
    for (size_t i = 0; i < TESTED; i++) {
        int32_t label = load_numbers(data, DV_TEST, i, x), best = 0;
        scores(model, x, out);
        for (int c = 1; c < CLASSES; c++)
            best = out[c] > out[best] ? c : best;
        correct += best == label;
    }
    print_message("a linear model: %.1f %%\n", 100.0 * (double)correct / TESTED);
    assert_in_range(correct, TESTED * 8 / 100, TESTED * 40 / 100);
    free(model);
    dv_dataset_close(data);
}

static void test_wrong_texts(void **state) {
    (void)state;
    dv_dataset *data = NULL;
    uint8_t byte;
    int32_t label;
    assert_fails(dv_dataset_open("synthtic", &data, &error), DV_ERROR_OPTION,
                 "\"synthtic\" is no data set: there is synthetic");
    assert_fails(dv_dataset_open("synthetic:side=7", &data, &error), DV_ERROR_OPTION, "from 8 to 512");
    assert_fails(dv_dataset_open("synthetic:train=0", &data, &error), DV_ERROR_OPTION, "train=0");
    assert_fails(dv_dataset_open("synthetic:classes=3", &data, &error), DV_ERROR_OPTION, "unknown option \"classes\"");
    assert_fails(dv_dataset_open(NULL, &data, &error), DV_ERROR_ARGUMENT, "NULL");
    assert_null(data);
    data = open_data("synthetic:test=5");
    assert_fails(dv_dataset_load(data, DV_TEST, 5, &byte, &label, &error), DV_ERROR_ARGUMENT, "image 5 of 5");
    assert_fails(dv_dataset_load(data, DV_SPLIT_COUNT, 0, &byte, &label, &error), DV_ERROR_ARGUMENT, "image 0 of 0");
    dv_dataset_close(data);
    dv_dataset_close(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bytes_everywhere), cmocka_unit_test(test_what_matters),
        cmocka_unit_test(test_shape_and_balance),     cmocka_unit_test(test_a_linear_model_fails),
        cmocka_unit_test(test_wrong_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
