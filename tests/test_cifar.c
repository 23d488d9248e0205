/* CIFAR's binary files: pixels and labels come out where they belong, and a file that is not what it should be is
 * named with the reason. */
#include "check.h"
#include "folder.h"

#include <division/data.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SIDE = 32, PLANE = SIDE * SIDE, IMAGE = 3 * PLANE, RECORDS = 4 };

static const char *const cifar10_files[] = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                            "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"};

/* The byte of a plane of the image that is the `number`-th of the file with this index. */
static uint8_t level(size_t file, size_t number, size_t channel, size_t at) {
    return (uint8_t)(file * 31 + number * 7 + channel * 101 + at * 3 + at / SIDE * 5);
}

static void write_bytes(const char *path, const uint8_t *data, size_t bytes) {
    FILE *stream = fopen(path, "wb");
    assert_non_null(stream);
    assert_int_equal(bytes ? fwrite(data, 1, bytes, stream) : 0, bytes);
    assert_int_equal(fclose(stream), 0);
}

/* A file of records with `labels` bytes before each image: the last is its label, file + number. */
static void write_records(const char *path, size_t file, size_t labels, size_t records) {
    uint8_t *data = calloc(records + 1, labels + IMAGE), *at = data;
    assert_non_null(data);
    for (size_t number = 0; number < records; number++) {
        at[labels - 1] = (uint8_t)(file + number);
        at += labels;
        for (size_t i = 0; i < IMAGE; i++)
            *at++ = level(file, number, i / PLANE, i % PLANE);
    }
    write_bytes(path, data, (size_t)(at - data));
    free(data);
}

static void write_cifar10(void **state) {
    char path[FOLDER_PATH_BYTES];
    for (size_t file = 0; file < 6; file++)
        write_records(folder_path(state, cifar10_files[file], path), file, 1, RECORDS);
}

static const char *name(void **state, const char *kind, char *text) {
    snprintf(text, FOLDER_PATH_BYTES, "%s:%s", kind, (const char *)*state);
    return text;
}

static void check_image(const dv_dataset *data, dv_split split, size_t file, size_t number) {
    uint8_t image[IMAGE];
    int32_t label;
    assert_ok(
        dv_dataset_load(data, split, split == DV_TRAIN ? file * RECORDS + number : number, image, &label, &error));
    assert_int_equal(label, file + number);
    for (size_t i = 0; i < IMAGE; i++)
        assert_int_equal(image[i], level(file, number, i % 3, i / 3));
}

static void test_cifar10(void **state) {
    char text[FOLDER_PATH_BYTES];
    dv_dataset *data;
    write_cifar10(state);
    assert_ok(dv_dataset_open(name(state, "cifar10", text), &data, &error));
    dv_dataset_shape shape = dv_dataset_describe(data);
    assert_int_equal(shape.images[DV_TRAIN], 5 * RECORDS);
    assert_int_equal(shape.images[DV_TEST], RECORDS);
    assert_int_equal(shape.classes, 10);
    assert_int_equal(shape.side, SIDE);
    for (size_t file = 0; file < 6; file++)
        for (size_t number = 0; number < RECORDS; number++)
            check_image(data, file < 5 ? DV_TRAIN : DV_TEST, file, number);
    dv_dataset_close(data);
}

static void test_cifar100(void **state) {
    char path[FOLDER_PATH_BYTES], text[FOLDER_PATH_BYTES];
    dv_dataset *data;
    write_records(folder_path(state, "train.bin", path), 0, 2, 2 * RECORDS);
    write_records(folder_path(state, "test.bin", path), 95, 2, RECORDS);
    assert_ok(dv_dataset_open(name(state, "cifar100", text), &data, &error));
    dv_dataset_shape shape = dv_dataset_describe(data);
    assert_int_equal(shape.images[DV_TRAIN], 2 * RECORDS);
    assert_int_equal(shape.classes, 100);
    check_image(data, DV_TRAIN, 0, 5);
    check_image(data, DV_TEST, 95, 3);
    dv_dataset_close(data);
}

/* Classes have names where the file that comes with the data is there and complete. */
static void test_names(void **state) {
    char path[FOLDER_PATH_BYTES], text[FOLDER_PATH_BYTES];
    static const char names[] = "a\nb\nc\nd\ne\nf\ng\nh\ni\nten\n\n";
    write_cifar10(state);
    for (int complete = 0; complete < 2; complete++) {
        dv_dataset *data;
        folder_path(state, "batches.meta.txt", path);
        write_bytes(path, (const uint8_t *)names, complete ? sizeof names - 1 : 12);
        assert_ok(dv_dataset_open(name(state, "cifar10", text), &data, &error));
        if (complete)
            assert_string_equal(dv_dataset_class_name(data, 9), "ten");
        else
            assert_string_equal(dv_dataset_class_name(data, 9), "truck"); /* the published ones */
        dv_dataset_close(data);
    }
}

/* In the folder that the archive unpacks to. */
static void test_inner_folder(void **state) {
    char path[FOLDER_PATH_BYTES], text[FOLDER_PATH_BYTES], inner[FOLDER_PATH_BYTES];
    dv_dataset *data;
    folder_path(state, "cifar-10-batches-bin", inner);
    assert_int_equal(mkdir(inner, 0777), 0);
    write_cifar10((void **)&(char *){inner});
    assert_ok(dv_dataset_open(name(state, "cifar10", text), &data, &error));
    assert_int_equal(dv_dataset_describe(data).images[DV_TRAIN], 5 * RECORDS);
    dv_dataset_close(data);
    for (size_t file = 0; file < 6; file++)
        remove(folder_path((void **)&(char *){inner}, cifar10_files[file], path));
}

/* Each is done to a whole set of files, one after the other. */
static void test_wrong_files(void **state) {
    char path[FOLDER_PATH_BYTES], text[FOLDER_PATH_BYTES];
    dv_dataset *data = NULL;
    const char *set = name(state, "cifar10", text);
    assert_fails(dv_dataset_open("cifar10", &data, &error), DV_ERROR_OPTION, "cifar10:DIR");
    assert_fails(dv_dataset_open("cifar10:", &data, &error), DV_ERROR_OPTION, "cifar10:DIR");
    assert_fails(dv_dataset_open(set, &data, &error), DV_ERROR_IO, "data_batch_1.bin: No such file");
    write_cifar10(state);
    folder_path(state, "data_batch_3.bin", path);

    assert_int_equal(truncate(path, 3 * (IMAGE + 1) + 500), 0);
    assert_fails(dv_dataset_open(set, &data, &error), DV_ERROR_FORMAT, "data_batch_3.bin has 9719 bytes");
    assert_int_equal(truncate(path, 3 * (IMAGE + 1)), 0); /* at a record's end */
    assert_fails(dv_dataset_open(set, &data, &error), DV_ERROR_FORMAT, "data_batch_3.bin has 3 records");
    assert_int_equal(truncate(path, 0), 0);
    assert_fails(dv_dataset_open(set, &data, &error), DV_ERROR_FORMAT, "data_batch_3.bin has 0 bytes");
    write_records(path, 8, 1, RECORDS); /* labels 8 to 11 */
    assert_fails(dv_dataset_open(set, &data, &error), DV_ERROR_FORMAT, "data_batch_3.bin: record 2: label 10");
    write_records(path, 0, 2, RECORDS); /* a file of CIFAR-100 */
    assert_fails(dv_dataset_open(set, &data, &error), DV_ERROR_FORMAT, "data_batch_3.bin has 12296 bytes");
    assert_int_equal(remove(path), 0);
    assert_int_equal(mkdir(path, 0777), 0);
    assert_fails(dv_dataset_open(set, &data, &error), DV_ERROR_FORMAT, "data_batch_3.bin is no regular file");
    assert_null(data);
}

/* A file of so many black images of class 0, without taking their room on the disk. */
static void write_holes(const char *path, size_t records) {
    write_bytes(path, NULL, 0);
    assert_int_equal(truncate(path, (off_t)(records * (1 + IMAGE))), 0);
}

/* The published set, but for its test images, which were cut short between two records. */
static void test_cut_between_records(void **state) {
    char path[FOLDER_PATH_BYTES], text[FOLDER_PATH_BYTES];
    dv_dataset *data;
    for (size_t file = 0; file < 6; file++)
        write_holes(folder_path(state, cifar10_files[file], path), 10000);
    assert_ok(dv_dataset_open(name(state, "cifar10", text), &data, &error));
    dv_dataset_close(data);
    write_holes(folder_path(state, "test_batch.bin", path), 9999);
    assert_fails(dv_dataset_open(text, &data, &error), DV_ERROR_FORMAT,
                 "test_batch.bin has 9999 images, and that of cifar10 10000: it is not complete");
}

/* A file that becomes shorter under the data set's hands. */
static void test_vanishing(void **state) {
    char path[FOLDER_PATH_BYTES], text[FOLDER_PATH_BYTES];
    uint8_t image[IMAGE];
    int32_t label;
    dv_dataset *data;
    write_cifar10(state);
    assert_ok(dv_dataset_open(name(state, "cifar10", text), &data, &error));
    assert_int_equal(truncate(folder_path(state, "test_batch.bin", path), 2 * (IMAGE + 1)), 0);
    assert_ok(dv_dataset_load(data, DV_TEST, 1, image, &label, &error));
    assert_fails(dv_dataset_load(data, DV_TEST, 2, image, &label, &error), DV_ERROR_IO, "test_batch.bin");
    dv_dataset_close(data);
}

/* How an image looks after normalisation at a place: a byte, or the black that is added around. */
static float normal(uint8_t byte, size_t channel) {
    static const float mean[] = {0.4914f, 0.4822f, 0.4465f}, deviation[] = {0.2470f, 0.2435f, 0.2616f};
    return ((float)byte - 255 * mean[channel]) * (1 / (255 * deviation[channel]));
}

/* Whether `image` is the one of the file, moved and mirrored so. */
static int is_moved(const float *image, size_t file, size_t number, int left, int top, int flip) {
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++)
            for (size_t channel = 0; channel < 3; channel++) {
                int u = left + (flip ? SIDE - 1 - x : x), v = top + y;
                uint8_t byte =
                    u < 0 || u >= SIDE || v < 0 || v >= SIDE ? 0 : level(file, number, channel, (size_t)(v * SIDE + u));
                if (image[(y * SIDE + x) * 3 + (int)channel] != normal(byte, channel))
                    return 0;
            }
    return 1;
}

/* Varied images are those of the files moved by up to 4 pixels and perhaps mirrored, and every move comes up. */
static void test_augmentation(void **state) {
    enum { EPOCHS = 60, PADDING = 4, MOVES = 2 * PADDING + 1 };
    static float images[RECORDS * IMAGE];
    char text[FOLDER_PATH_BYTES];
    int32_t labels[RECORDS];
    size_t count, lefts[MOVES] = {0}, tops[MOVES] = {0}, flips[2] = {0};
    dv_dataset *data;
    dv_loader *loader;
    write_cifar10(state);
    assert_ok(dv_dataset_open(name(state, "cifar10", text), &data, &error));
    dv_loader_options options = {.split = DV_TEST, .batch = RECORDS, .seed = 5, .augment = 1};
    assert_ok(dv_loader_new(data, &options, &loader, &error));
    for (size_t epoch = 0; epoch < EPOCHS / test_scale() + 1; epoch++) {
        assert_ok(dv_loader_fill(loader, epoch, 0, images, labels, &count, &error));
        for (size_t i = 0; i < RECORDS; i++) {
            int found = 0;
            for (int k = 0; k < MOVES * MOVES * 2 && !found; k++) {
                int left = k / 2 % MOVES, top = k / 2 / MOVES;
                found = is_moved(images + i * IMAGE, 5, i, left - PADDING, top - PADDING, k % 2);
                lefts[left] += (size_t)found;
                tops[top] += (size_t)found;
                flips[k % 2] += (size_t)found;
            }
            assert_true(found);
        }
    }
    for (size_t i = 0; i < MOVES && test_scale() == 1; i++)
        assert_true(lefts[i] > 0 && tops[i] > 0);
    assert_true(flips[0] > 0 && flips[1] > 0);
    dv_loader_free(loader);
    dv_dataset_close(data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_cifar10, folder_new, folder_free),
        cmocka_unit_test_setup_teardown(test_cifar100, folder_new, folder_free),
        cmocka_unit_test_setup_teardown(test_names, folder_new, folder_free),
        cmocka_unit_test_setup_teardown(test_inner_folder, folder_new, folder_free),
        cmocka_unit_test_setup_teardown(test_wrong_files, folder_new, folder_free),
        cmocka_unit_test_setup_teardown(test_cut_between_records, folder_new, folder_free),
        cmocka_unit_test_setup_teardown(test_vanishing, folder_new, folder_free),
        cmocka_unit_test_setup_teardown(test_augmentation, folder_new, folder_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
