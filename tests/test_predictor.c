/* The predictor: logits are those of the training's own test to the bit, what a file does not say the options do, and
 * what cannot be read or predicted is refused with a word. */
#include "images.h"

#include <division/predictor.h>
#include <division/training.h>

#include <math.h>

enum { CLASSES = 3, SIDE = 32, TEST_IMAGES = 6 };

/* Trains a little on a folder of images in the test's folder. */
static void train(void **state, char data[FOLDER_PATH_BYTES], char run[FOLDER_PATH_BYTES]) {
    static const char *const settings[][2] = {{"model", "resnet20"}, {"side", "32"}, {"batch", "4"}, {"epochs", "1"}};
    dv_options options = dv_options_default();
    dv_training *training;
    images_make_folder(*state, CLASSES, 4, TEST_IMAGES / CLASSES);
    snprintf(data, FOLDER_PATH_BYTES, "folder:%.512s", (const char *)*state);
    assert_ok(dv_options_set(&options, "data", data, &error));
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        assert_ok(dv_options_set(&options, settings[i][0], settings[i][1], &error));
    assert_ok(dv_training_new(&options, folder_path(state, "run", run), DV_FOLDER_NEW, NULL, &training, &error));
    assert_ok(dv_training_train(training, NULL, &error));
    dv_training_free(training);
}

static const char *image_path(void **state, size_t index, char path[FOLDER_PATH_BYTES]) {
    char name[64];
    size_t each = TEST_IMAGES / CLASSES;
    snprintf(name, sizeof name, "val/class%zu/image%zu.JPEG", index / each, 4 + index % each);
    return folder_path(state, name, path);
}

/* The logits of the test's images through the loader, in the predictor's own run. */
static void reference(dv_predictor *predictor, const char *data, float logits[TEST_IMAGES][CLASSES]) {
    dv_run *run = dv_predictor_run(predictor);
    dv_predictor_description d = dv_predictor_describe(predictor);
    dv_loader_options options = {
        .split = DV_TEST, .batch = d.batch, .side = d.side, .resize = d.resize, .normalisation = d.normalisation};
    dv_dataset *set;
    dv_loader *loader;
    size_t count;
    int32_t labels[TEST_IMAGES];
    assert_ok(dv_dataset_open(data, &set, &error));
    assert_ok(dv_loader_new(set, &options, &loader, &error));
    for (size_t i = 0; i < dv_loader_batches(loader); i++) {
        assert_ok(dv_loader_fill(loader, 0, i, dv_run_input(run), labels, &count, &error));
        assert_ok(dv_run_set_images(run, count, &error));
        assert_ok(dv_run_predict(run, &error));
        memcpy(logits[i * d.batch], dv_run_logits(run), count * sizeof *logits);
    }
    dv_loader_free(loader);
    dv_dataset_close(set);
}

static void test_logits(void **state) {
    char data[FOLDER_PATH_BYTES], run[FOLDER_PATH_BYTES], path[FOLDER_PATH_BYTES];
    float expected[TEST_IMAGES][CLASSES];
    dv_predictor *predictor;
    dv_predictor_options options = dv_predictor_options_default();
    train(state, data, run);
    options.batch = 4;
    assert_ok(dv_predictor_open(run, &options, &predictor, &error));
    dv_predictor_description d = dv_predictor_describe(predictor);
    assert_string_equal(d.model, "resnet20");
    assert_int_equal(d.classes, CLASSES);
    assert_int_equal(d.side, SIDE);
    assert_int_equal(d.resize, SIDE * 8 / 7);
    assert_string_equal(dv_predictor_class_name(predictor, 1), "class1");
    assert_null(dv_predictor_class_name(predictor, CLASSES));
    reference(predictor, data, expected);
    for (size_t first = 0; first < TEST_IMAGES; first += 4) {
        size_t count = TEST_IMAGES - first < 4 ? TEST_IMAGES - first : 4;
        for (size_t i = 0; i < count; i++)
            assert_ok(dv_predictor_read(predictor, i, image_path(state, first + i, path), &error));
        assert_ok(dv_predictor_predict(predictor, count, &error));
        for (size_t i = 0; i < count; i++) {
            const float *shares = dv_predictor_probabilities(predictor, i);
            assert_memory_equal(dv_predictor_logits(predictor, i), expected[first + i], sizeof *expected);
            assert_true(fabs(shares[0] + shares[1] + shares[2] - 1.0) < 1e-6);
        }
        assert_null(dv_predictor_logits(predictor, count));
    }
    dv_predictor_close(predictor);
}

/* Writes the weights of a run without any note. */
static void write_bare(const char *run, const char *path) {
    dv_predictor *predictor;
    assert_ok(dv_predictor_open(run, NULL, &predictor, &error));
    dv_checkpoint_content content = {.run = dv_predictor_run(predictor)};
    assert_ok(dv_checkpoint_write(path, &content, &error));
    dv_predictor_close(predictor);
}

static void test_missing(void **state) {
    char data[FOLDER_PATH_BYTES], run[FOLDER_PATH_BYTES], bare[FOLDER_PATH_BYTES], names[FOLDER_PATH_BYTES];
    dv_predictor *predictor;
    dv_predictor_options options = dv_predictor_options_default();
    train(state, data, run);
    write_bare(run, folder_path(state, "bare.safetensors", bare));
    assert_fails(dv_predictor_open(bare, &options, &predictor, &error), DV_ERROR_OPTION,
                 "give --model, --classes, --side, --resize, --normalise");
    options.model = "resnet20";
    options.classes = CLASSES;
    options.side = SIDE;
    assert_fails(dv_predictor_open(bare, &options, &predictor, &error), DV_ERROR_OPTION, "give --resize, --normalise");
    options.resize = SIDE;
    options.normalise = "0.5+0.5+0.5/0.25+0.25+0.25";
    assert_ok(dv_predictor_open(bare, &options, &predictor, &error));
    assert_null(dv_predictor_class_name(predictor, 0));
    dv_predictor_close(predictor);
    images_write_file(folder_path(state, "names.txt", names), "cat\r\ndog\nowl", 12);
    options.names = names;
    assert_ok(dv_predictor_open(bare, &options, &predictor, &error));
    assert_string_equal(dv_predictor_class_name(predictor, 0), "cat");
    assert_string_equal(dv_predictor_class_name(predictor, 2), "owl");
    dv_predictor_close(predictor);
    images_write_file(names, "cat\ndog\n", 8);
    assert_fails(dv_predictor_open(bare, &options, &predictor, &error), DV_ERROR_FORMAT,
                 "has 2 lines, and the network 3 classes");
    options = dv_predictor_options_default();
    options.network_only = 1;
    options.model = "resnet20";
    options.classes = CLASSES;
    assert_ok(dv_predictor_open(bare, &options, &predictor, &error));
    assert_fails(dv_predictor_read(predictor, 0, bare, &error), DV_ERROR_ARGUMENT, "network_only");
    dv_predictor_close(predictor);
}

/* Another side than the training's scales what images are resized to. */
static void test_other_side(void **state) {
    char data[FOLDER_PATH_BYTES], run[FOLDER_PATH_BYTES];
    dv_predictor *predictor;
    dv_predictor_options options = dv_predictor_options_default();
    train(state, data, run);
    options.side = 2 * SIDE;
    assert_ok(dv_predictor_open(run, &options, &predictor, &error));
    assert_int_equal(dv_predictor_describe(predictor).resize, 2 * (SIDE * 8 / 7));
    dv_predictor_close(predictor);
    options.resize = SIDE;
    assert_fails(dv_predictor_open(run, &options, &predictor, &error), DV_ERROR_OPTION, "resize: 32");
}

static void test_refused(void **state) {
    char data[FOLDER_PATH_BYTES], run[FOLDER_PATH_BYTES], path[FOLDER_PATH_BYTES];
    dv_predictor *predictor;
    train(state, data, run);
    assert_ok(dv_predictor_open(run, NULL, &predictor, &error));
    assert_fails(dv_predictor_predict(predictor, 1, &error), DV_ERROR_ARGUMENT, "place 0 has no image");
    assert_fails(dv_predictor_predict(predictor, 2, &error), DV_ERROR_ARGUMENT, "2 images of a batch of 1");
    assert_fails(dv_predictor_read(predictor, 1, image_path(state, 0, path), &error), DV_ERROR_ARGUMENT,
                 "place 1 of a batch of 1");
    assert_fails(dv_predictor_read(predictor, 0, "/no/such.jpg", &error), DV_ERROR_IO, "/no/such.jpg: No such file");
    assert_ok(dv_predictor_read(predictor, 0, image_path(state, 0, path), &error));
    assert_fails(dv_predictor_read_bytes(predictor, 0, "<html>", 6, &error), DV_ERROR_FORMAT, "but text");
    assert_fails(dv_predictor_predict(predictor, 1, &error), DV_ERROR_ARGUMENT, "place 0 has no image");
    assert_ok(dv_predictor_read(predictor, 0, image_path(state, 0, path), &error));
    assert_ok(dv_predictor_predict(predictor, 1, &error));
    dv_predictor_close(predictor);
}

typedef struct heard {
    size_t images, right;
    double loss;
} heard;

static void hear(void *context, const dv_test_image *image) {
    heard *h = context;
    float shares[CLASSES];
    size_t first;
    assert_int_equal(image->index, h->images++);
    assert_int_equal(image->classes, CLASSES);
    assert_int_equal(image->label, image->index / (TEST_IMAGES / CLASSES));
    dv_softmax(image->logits, CLASSES, shares);
    dv_top_labels(image->logits, CLASSES, &first, 1);
    h->right += first == (size_t)image->label;
    h->loss -= log(shares[image->label]);
}

/* A test tells of each image, and its sums are the same. */
static void test_each(void **state) {
    char data[FOLDER_PATH_BYTES], run[FOLDER_PATH_BYTES];
    dv_predictor *predictor;
    dv_predictor_options options = dv_predictor_options_default();
    dv_dataset *set;
    dv_test_result plain, told;
    train(state, data, run);
    assert_ok(dv_dataset_open(data, &set, &error));
    for (int i = 0; i < 2; i++) {
        heard h = {0};
        options.batch = 4;
        options.precision = i == 0 ? "f32" : "bf16";
        assert_ok(dv_predictor_open(run, &options, &predictor, &error));
        assert_ok(dv_test(dv_predictor_run(predictor), set, DV_TEST, NULL, NULL, &plain, &error));
        assert_ok(dv_test_each(dv_predictor_run(predictor), set, DV_TEST, NULL, hear, &h, &told, &error));
        assert_true(plain.loss == told.loss && plain.top1 == told.top1);
        assert_int_equal(h.images, TEST_IMAGES);
        assert_true(fabs(told.top1 - 100.0 * (double)h.right / TEST_IMAGES) < 1e-9);
        assert_true(fabs(told.loss - h.loss / TEST_IMAGES) < 1e-4 * told.loss);
        dv_predictor_close(predictor);
    }
    dv_dataset_close(set);
}

static void test_top(void **state) {
    static const float numbers[] = {1, 5, 3, 5, -2, 4};
    size_t labels[8];
    (void)state;
    assert_int_equal(dv_top_labels(numbers, 6, labels, 3), 3);
    assert_int_equal(labels[0], 1);
    assert_int_equal(labels[1], 3);
    assert_int_equal(labels[2], 5);
    assert_int_equal(dv_top_labels(numbers, 6, labels, 8), 6);
    assert_int_equal(labels[5], 4);
    assert_int_equal(dv_top_labels(NULL, 6, labels, 1), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_logits, folder_new, images_folder_free),
        cmocka_unit_test_setup_teardown(test_missing, folder_new, images_folder_free),
        cmocka_unit_test_setup_teardown(test_other_side, folder_new, images_folder_free),
        cmocka_unit_test_setup_teardown(test_refused, folder_new, images_folder_free),
        cmocka_unit_test_setup_teardown(test_each, folder_new, images_folder_free),
        cmocka_unit_test(test_top),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
