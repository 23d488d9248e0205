/* Image folders: classes and files in the order of their names, and what is wrong with a folder said. */
#include "images.h"

#include <division/data.h>
#include <unistd.h>

static const char *name(void **state, char *text) {
    snprintf(text, FOLDER_PATH_BYTES, "folder:%.512s", (const char *)*state);
    return text;
}

static void make(void **state, const char *folder) {
    char path[FOLDER_PATH_BYTES];
    assert_int_equal(mkdir(folder_path(state, folder, path), 0777), 0);
}

static void put(void **state, const char *file, size_t side, unsigned seed) {
    char path[FOLDER_PATH_BYTES];
    images_write_jpeg(folder_path(state, file, path), side, side, seed);
}

static void test_order(void **state) {
    static const char *const folders[] = {"train",   "val",   "train/b", "train/B",
                                          "train/a", "val/b", "val/B",   "train/a/folder.jpg"};
    static const int32_t labels[] = {0, 1, 1, 2, 2};
    char text[FOLDER_PATH_BYTES], path[FOLDER_PATH_BYTES];
    static uint8_t image[224 * 224 * 3];
    int32_t label;
    dv_dataset *data;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        make(state, folders[i]);
    put(state, "train/b/1.jpg", 20, 1);
    put(state, "train/a/2.PNG", 30, 2); /* named so, and a JPEG */
    put(state, "train/a/10.Jpeg", 40, 3);
    put(state, "train/B/x.JPEG", 50, 4);
    put(state, "train/a/.hidden.jpg", 40, 3);
    put(state, "val/b/v.jpg", 20, 5);
    assert_int_equal(symlink("folder.jpg", folder_path(state, "train/a/link.jpg", path)), 0); /* to a folder */
    assert_int_equal(symlink("../b/1.jpg", folder_path(state, "train/b/2.jpg", path)), 0);
    images_write_file(folder_path(state, "train/a/notes.txt", path), "hello", 5);
    images_write_file(folder_path(state, "train/README", path), "hello", 5);
    assert_ok(dv_dataset_open(name(state, text), &data, &error));
    dv_dataset_shape shape = dv_dataset_describe(data);
    assert_int_equal(shape.classes, 3);
    assert_int_equal(shape.images[DV_TRAIN], 5);
    assert_int_equal(shape.images[DV_TEST], 1);
    assert_int_equal(shape.side, 224);
    assert_int_equal(shape.held_out, 0);
    assert_string_equal(dv_dataset_unread(data), "1 .txt");
    assert_string_equal(dv_dataset_class_name(data, 0), "B");
    assert_string_equal(dv_dataset_class_name(data, 2), "b");
    assert_null(dv_dataset_class_name(data, 3));
    for (size_t i = 0; i < 5; i++) {
        assert_ok(dv_dataset_load(data, DV_TRAIN, i, image, &label, &error));
        assert_int_equal(label, labels[i]);
    }
    assert_ok(dv_dataset_label(data, DV_TEST, 0, &label, &error));
    assert_int_equal(label, 2);
    assert_fails(dv_dataset_label(data, DV_TEST, 1, &label, &error), DV_ERROR_ARGUMENT, "image 1 of 1");
    dv_dataset_close(data);
}

/* Step by step from nothing to something that works. */
static void test_broken(void **state) {
    char text[FOLDER_PATH_BYTES], path[FOLDER_PATH_BYTES];
    dv_dataset *data = NULL;
    const char *set = name(state, text);
    assert_fails(dv_dataset_open("folder", &data, &error), DV_ERROR_OPTION, "folder:DIR");
    assert_fails(dv_dataset_open("folder:/no/such", &data, &error), DV_ERROR_IO, "/no/such: No such file");
    assert_fails(dv_dataset_open(set, &data, &error), DV_ERROR_FORMAT, "has no folders: put the images");
    make(state, "train");
    assert_fails(dv_dataset_open(set, &data, &error), DV_ERROR_FORMAT, "train has no folders");
    put(state, "train/stray.jpg", 20, 1);
    assert_fails(dv_dataset_open(set, &data, &error), DV_ERROR_FORMAT, "train has no folders");
    make(state, "train/cat");
    assert_fails(dv_dataset_open_with(set, &(dv_dataset_options){0}, &data, &error), DV_ERROR_IO, "val: No such file");
    make(state, "val");
    make(state, "train/cat/folder.jpg");
    assert_fails(dv_dataset_open(set, &data, &error), DV_ERROR_FORMAT, "train/cat has no images");
    put(state, "train/cat/1.jpg", 20, 1);
    assert_fails(dv_dataset_open(set, &data, &error), DV_ERROR_FORMAT, "val has no images");
    make(state, "val/dog");
    assert_fails(dv_dataset_open(set, &data, &error), DV_ERROR_FORMAT, "val/dog is no class: train has no such folder");
    rmdir(folder_path(state, "val/dog", path));
    make(state, "val/cat");
    put(state, "val/cat/1.jpg", 20, 1);
    assert_ok(dv_dataset_open(set, &data, &error));
    dv_dataset_close(data);
}

/* The names of all images of a split, one after the other. */
static void names_of(const dv_dataset *data, dv_split split, char text[4096]) {
    char one[256];
    text[0] = '\0';
    for (size_t i = 0; i < dv_dataset_describe(data).images[split]; i++) {
        assert_ok(dv_dataset_image_name(data, split, i, one, sizeof one, &error));
        strcat(strcat(text, one), " ");
    }
}

/* Classes without val/, in train/ or in the folder itself: a share of each, the same whoever opens it, and each image
 * in one split. */
static void hold_out(void **state, const char *prefix) {
    enum { FILES = 20 };
    char text[FOLDER_PATH_BYTES], file[64], path[FOLDER_PATH_BYTES], train[4096], test[4096], other[4096];
    static uint8_t image[224 * 224 * 3];
    int32_t label;
    dv_dataset *data;
    for (int class = 0; class < 2; class ++) {
        snprintf(file, sizeof file, "%s%c", prefix, 'a' + class);
        make(state, file);
        for (int i = 0; i < FILES / (1 + class * 9); i++) {
            snprintf(file, sizeof file, "%s%c/%d.jpg", prefix, 'a' + class, i);
            put(state, file, 20, (unsigned)i);
        }
    }
    snprintf(file, sizeof file, "%sa/1.webm", prefix);
    images_write_file(folder_path(state, file, path), "hello", 5);
    assert_ok(dv_dataset_open(name(state, text), &data, &error));
    dv_dataset_shape shape = dv_dataset_describe(data);
    assert_int_equal(shape.images[DV_TRAIN], FILES - 2 + 1);
    assert_int_equal(shape.images[DV_TEST], 2 + 1);
    assert_int_equal(shape.held_out, 3);
    assert_string_equal(dv_dataset_unread(data), "1 .webm");
    names_of(data, DV_TRAIN, train);
    names_of(data, DV_TEST, test);
    for (char *one = strtok(strcpy(other, test), " "); one != NULL; one = strtok(NULL, " ")) {
        char whole[80];
        snprintf(whole, sizeof whole, "%s ", one);
        assert_null(strstr(train, whole));
    }
    assert_ok(dv_dataset_load(data, DV_TEST, 2, image, &label, &error));
    assert_int_equal(label, 1);
    dv_dataset_close(data);
    assert_ok(dv_dataset_open(text, &data, &error));
    names_of(data, DV_TEST, other);
    assert_string_equal(test, other);
    dv_dataset_close(data);
    assert_ok(dv_dataset_open_with(text, &(dv_dataset_options){.hold_out = 0.5, .seed = 2}, &data, &error));
    names_of(data, DV_TEST, other);
    assert_string_not_equal(test, other);
    assert_int_equal(dv_dataset_describe(data).held_out, FILES / 2 + 1);
    dv_dataset_close(data);
    assert_fails(dv_dataset_open_with(text, &(dv_dataset_options){.hold_out = 1}, &data, &error), DV_ERROR_OPTION,
                 "hold-out: 1: must be from 0 to 0.9");
    assert_fails(dv_dataset_open_with(text, &(dv_dataset_options){0}, &data, &error), DV_ERROR_IO, "No such file");
}

static void test_without_test(void **state) {
    make(state, "train");
    hold_out(state, "train/");
}

static void test_flat(void **state) {
    hold_out(state, "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_order, folder_new, images_folder_free),
        cmocka_unit_test_setup_teardown(test_without_test, folder_new, images_folder_free),
        cmocka_unit_test_setup_teardown(test_flat, folder_new, images_folder_free),
        cmocka_unit_test_setup_teardown(test_broken, folder_new, images_folder_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
