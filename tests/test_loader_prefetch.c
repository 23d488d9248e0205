/* Workers: the same batches for any number of them and in any order of asking; corrupt images named, counted and
 * replaced; what fails in a worker is told by dv_loader_fill. */
#include "images.h"

#include <division/data.h>
#include <errno.h>

enum { SIDE = 24, BATCH = 7, ELEMENTS = SIDE * SIDE * DV_DATA_CHANNELS, CLASSES = 3, TRAIN = 10, TEST = 4 };

static const dv_loader_options varied = {
    .type = DV_F32, .batch = BATCH, .seed = 11, .shuffle = 1, .augment = 1, .side = SIDE};

static dv_dataset *open_folder(void **state) {
    char text[FOLDER_PATH_BYTES];
    dv_dataset *data;
    snprintf(text, sizeof text, "folder:%.512s", (const char *)*state);
    assert_ok(dv_dataset_open(text, &data, &error));
    return data;
}

static int make_folder(void **state) {
    int code = folder_new(state);
    images_make_folder(*state, CLASSES, TRAIN, TEST);
    return code;
}

/* What an epoch looks like: images, then labels, of all its batches. */
typedef struct epoch {
    float images[5 * BATCH * ELEMENTS];
    int32_t labels[5 * BATCH];
} epoch;

static epoch *read_epoch(const dv_dataset *data, dv_loader_options options, uint64_t number) {
    dv_loader *loader;
    size_t count;
    epoch *made = calloc(1, sizeof *made);
    assert_non_null(made);
    assert_ok(dv_loader_new(data, &options, &loader, &error));
    assert_in_range(dv_loader_batches(loader), 1, 5);
    for (size_t i = 0; i < dv_loader_batches(loader); i++)
        assert_ok(dv_loader_fill(loader, number, i, made->images + i * BATCH * ELEMENTS, made->labels + i * BATCH,
                                 &count, &error));
    dv_loader_free(loader);
    return made;
}

static void test_same_for_any_workers(void **state) {
    static const size_t workers[] = {1, 2, 5}, prefetches[] = {1, 3, 4};
    dv_dataset *data = open_folder(state);
    dv_loader_options options = varied;
    epoch *expected = read_epoch(data, options, 3);
    for (size_t i = 0; i < 3; i++) {
        options.workers = workers[i];
        options.prefetch = prefetches[i];
        epoch *made = read_epoch(data, options, 3);
        assert_memory_equal(made, expected, sizeof *made);
        free(made);
    }
    options.seed++;
    epoch *other = read_epoch(data, options, 3);
    assert_memory_not_equal(other, expected, sizeof *other);
    free(other);
    free(expected);
    dv_dataset_close(data);
}

/* Epoch after epoch, and then here and there. */
static void test_any_order(void **state) {
    static const struct {
        uint64_t epoch;
        size_t batch;
    } asked[] = {{0, 0}, {0, 1}, {0, 2}, {0, 3}, {1, 0}, {1, 1}, {5, 2}, {0, 0}, {0, 0}, {7, 3}, {8, 0}, {8, 2}};
    static float a[BATCH * ELEMENTS], b[BATCH * ELEMENTS];
    int32_t one[BATCH], other[BATCH];
    size_t count;
    dv_loader *plain, *prefetch;
    dv_dataset *data = open_folder(state);
    dv_loader_options options = varied;
    options.drop_last = 1;
    assert_ok(dv_loader_new(data, &options, &plain, &error));
    options.workers = 3;
    assert_ok(dv_loader_new(data, &options, &prefetch, &error));
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        assert_ok(dv_loader_fill(plain, asked[i].epoch, asked[i].batch, a, one, &count, &error));
        assert_ok(dv_loader_fill(prefetch, asked[i].epoch, asked[i].batch, b, other, &count, &error));
        assert_memory_equal(a, b, sizeof a);
        assert_memory_equal(one, other, sizeof one);
    }
    dv_loader_free(plain);
    dv_loader_free(prefetch);
    dv_dataset_close(data);
}

/* A test: the order of the data, twice the same, its last batch smaller. */
static void test_testing(void **state) {
    static float images[BATCH * ELEMENTS];
    int32_t labels[BATCH];
    size_t count;
    dv_loader *loader;
    dv_dataset *data = open_folder(state);
    dv_loader_options options = {.split = DV_TEST, .batch = BATCH, .side = SIDE, .workers = 2};
    assert_ok(dv_loader_new(data, &options, &loader, &error));
    for (size_t i = 0; i < 4; i++) {
        assert_ok(dv_loader_fill(loader, 0, i % 2, images, labels, &count, &error));
        assert_int_equal(count, i % 2 == 0 ? BATCH : 5);
        for (size_t k = 0; k < count; k++)
            assert_int_equal(labels[k], (int)((i % 2 * BATCH + k) / TEST));
        assert_true(images[count * ELEMENTS - 1] != 0);
    }
    dv_loader_free(loader);
    dv_dataset_close(data);
}

/* Freed while workers are busy, before the first batch, and never asked. */
static void test_leaving(void **state) {
    static float images[BATCH * ELEMENTS];
    int32_t labels[BATCH];
    size_t count;
    dv_loader *loader;
    dv_dataset *data = open_folder(state);
    dv_loader_options options = varied;
    options.workers = 4;
    for (int asked = 0; asked < 6; asked++) {
        assert_ok(dv_loader_new(data, &options, &loader, &error));
        for (size_t i = 0; i < (size_t)asked % 3; i++)
            assert_ok(dv_loader_fill(loader, 0, i, images, labels, &count, &error));
        dv_loader_free(loader);
    }
    dv_dataset_close(data);
}

/* ---- corrupt images ------------------------------------------------------------------------ */

static void cut_image(void **state, const char *name, off_t bytes) {
    char path[FOLDER_PATH_BYTES];
    assert_int_equal(truncate(folder_path(state, name, path), bytes), 0);
}

typedef struct telling {
    size_t count;
    char text[2][256];
} telling;

static void hear(void *context, const char *text) {
    telling *to = context;
    if (to->count < 2)
        snprintf(to->text[to->count], sizeof to->text[0], "%s", text);
    to->count++;
}

/* With one in more than a hundred corrupt, it is named once, counted once, and the next one stands in for it. Three may
 * be, and not four. */
static void test_corrupt(void **state) {
    enum { MANY = 120, SMALL = 8, ROUNDS = 2 };
    static float images[MANY * SMALL * SMALL * 3];
    static int32_t labels[MANY];
    char root[FOLDER_PATH_BYTES], text[FOLDER_PATH_BYTES];
    size_t count;
    dv_dataset *data;
    folder_path(state, "many", root);
    mkdir(root, 0777);
    images_make_folder(root, 1, MANY, 1);
    cut_image(state, "many/train/class0/image17.JPEG", 300); /* by name the tenth: image0, 1, 10, 100, 101, ... */
    snprintf(text, sizeof text, "folder:%.768s", root);
    assert_ok(dv_dataset_open(text, &data, &error));
    for (size_t workers = 0; workers < 3; workers++) {
        telling told = {0};
        dv_loader *loader;
        dv_loader_options options = {
            .batch = MANY, .side = SMALL, .workers = workers, .corrupt = hear, .context = &told};
        assert_ok(dv_loader_new(data, &options, &loader, &error));
        for (size_t i = 0; i < ROUNDS; i++)
            assert_ok(dv_loader_fill(loader, i, 0, images, labels, &count, &error));
        assert_int_equal(count, MANY);
        assert_int_equal(told.count, 1);
        assert_int_equal(dv_loader_corrupt(loader), 1);
        assert_non_null(strstr(told.text[0], "train/class0/image17.JPEG: corrupt JPEG"));
        size_t doubles = 0, bytes = SMALL * SMALL * 3 * sizeof(float);
        for (size_t k = 1; k < MANY; k++)
            doubles += memcmp(images + k * SMALL * SMALL * 3, images + (k - 1) * SMALL * SMALL * 3, bytes) == 0;
        assert_int_equal(doubles, 1);
        dv_loader_free(loader);
    }
    cut_image(state, "many/train/class0/image20.JPEG", 0);
    cut_image(state, "many/train/class0/image21.JPEG", 0);
    dv_loader *loader;
    assert_ok(dv_loader_new(data, &(dv_loader_options){.batch = MANY, .side = SMALL, .workers = 2}, &loader, &error));
    assert_ok(dv_loader_fill(loader, 0, 0, images, labels, &count, &error));
    dv_loader_free(loader);
    cut_image(state, "many/train/class0/image22.JPEG", 0);
    assert_ok(dv_loader_new(data, &(dv_loader_options){.batch = MANY, .side = SMALL, .workers = 2}, &loader, &error));
    assert_fails(dv_loader_fill(loader, 0, 0, images, labels, &count, &error), DV_ERROR_FORMAT,
                 "train/class0/image22.JPEG: it is empty; with this, 4 of 120 images are corrupt, too many");
    dv_loader_free(loader);
    dv_dataset_close(data);
}

/* A file that is gone stops the run, whoever misses it; and what follows can still be had. */
static void test_missing(void **state) {
    static float images[BATCH * ELEMENTS];
    char path[FOLDER_PATH_BYTES];
    int32_t labels[BATCH];
    size_t count;
    dv_dataset *data = open_folder(state);
    assert_int_equal(remove(folder_path(state, "train/class1/image3.JPEG", path)), 0); /* the 14th */
    for (size_t workers = 0; workers < 3; workers++) {
        dv_loader *loader;
        dv_loader_options options = {.batch = BATCH, .side = SIDE, .workers = workers};
        assert_ok(dv_loader_new(data, &options, &loader, &error));
        assert_ok(dv_loader_fill(loader, 0, 0, images, labels, &count, &error));
        assert_fails(dv_loader_fill(loader, 0, 1, images, labels, &count, &error), DV_ERROR_IO,
                     "train/class1/image3.JPEG: No such file");
        assert_ok(dv_loader_fill(loader, 0, 2, images, labels, &count, &error));
        dv_loader_free(loader);
    }
    dv_dataset_close(data);
}

static void test_options(void **state) {
    static const struct {
        dv_loader_options options;
        const char *words;
    } cases[] = {
        {{.batch = 1, .side = 1025}, "side: 1025: must be from 1 to 1024"},
        {{.batch = 1, .side = 32, .resize = 31}, "resize: 31: must be from 32 to 2048"},
        {{.batch = 1, .workers = 257}, "workers: 257: must be from 0 to 256"},
        {{.batch = 1, .prefetch = 65}, "prefetch: 65: must be from 1 to 64"},
        {{.batch = 1, .side = 3, .augmentation = {.crop = DV_CROP_REFLECT, .padding = 3}}, "less than the side, 3"},
        {{.batch = 1, .augmentation = {.crop = 99}}, "crop 99 is none"},
    };
    dv_dataset *data = open_folder(state);
    dv_loader *loader = NULL;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_fails(dv_loader_new(data, &cases[i].options, &loader, &error), DV_ERROR_OPTION, cases[i].words);
    dv_loader_options small = {.batch = 2, .workers = 1}, large = {.batch = 4, .workers = 2};
    size_t image = 224 * 224 * 3; /* its least: two batches ahead */
    assert_in_range(dv_loader_bytes(data, &small), 4 * image, 4 * image + 5000000);
    assert_in_range(dv_loader_bytes(data, &large), 8 * image, 8 * image + 10000000);
    dv_dataset_close(data);
}

/* Data of one size at another: enlarged, or a random part of it. */
static void test_other_side(void **state) {
    (void)state;
    enum { LARGE = 48 };
    static float images[4 * LARGE * LARGE * 3];
    int32_t labels[4];
    size_t count;
    dv_dataset *data;
    dv_loader *loader;
    assert_ok(dv_dataset_open("synthetic:side=32,train=4", &data, &error));
    for (int augment = 0; augment < 2; augment++) {
        dv_loader_options options = {.batch = 4, .side = LARGE, .augment = augment};
        assert_ok(dv_augmentation_parse("resized", &options.augmentation, &error));
        assert_ok(dv_loader_new(data, &options, &loader, &error));
        assert_ok(dv_loader_fill(loader, 0, 0, images, labels, &count, &error));
        assert_true(images[0] != 0 && images[4 * LARGE * LARGE * 3 - 1] != 0);
        dv_loader_free(loader);
    }
    dv_dataset_close(data);
}

/* The shorter side of an image in a test, for photographs and for data of one size. */
static size_t resize_of(const dv_dataset *data, const char *augment, size_t side, size_t resize, int differ) {
    dv_loader_options options = {.side = side, .resize = resize};
    assert_ok(dv_augmentation_parse(augment, &options.augmentation, &error));
    assert_int_equal(dv_loader_scales_differ(data, &options), differ);
    return dv_loader_resize(data, &options);
}

/* A test shows images at a scale at which training shows them, unless it is told otherwise. */
static void test_scales(void **state) {
    dv_dataset *photographs = open_folder(state), *squares;
    assert_ok(dv_dataset_open("synthetic:side=32,train=4", &squares, &error));
    assert_int_equal(resize_of(photographs, "usual", 224, 0, 0), 256);
    assert_int_equal(resize_of(photographs, "resized", 32, 0, 0), 36);
    assert_int_equal(resize_of(photographs, "resized", 32, 40, 0), 40);
    assert_int_equal(resize_of(photographs, "resized:least=0.81", 90, 0, 0), 100);
    assert_int_equal(resize_of(photographs, "resized:least=0.81", 90, 103, 1), 103);
    assert_int_equal(resize_of(photographs, "zero", 32, 0, 0), 32);
    assert_int_equal(resize_of(photographs, "reflect", 32, 0, 0), 32);
    assert_int_equal(resize_of(photographs, "none", 32, 0, 0), 32);
    assert_int_equal(resize_of(photographs, "none", 32, 36, 0), 36);
    assert_int_equal(resize_of(photographs, "zero", 32, 36, 1), 36);
    assert_int_equal(resize_of(squares, "usual", 0, 0, 0), 32);
    assert_int_equal(resize_of(squares, "resized", 48, 0, 0), 48);
    assert_int_equal(resize_of(squares, "reflect", 32, 40, 1), 40);
    dv_dataset_close(squares);
    dv_dataset_close(photographs);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_same_for_any_workers, make_folder, images_folder_free),
        cmocka_unit_test_setup_teardown(test_any_order, make_folder, images_folder_free),
        cmocka_unit_test_setup_teardown(test_testing, make_folder, images_folder_free),
        cmocka_unit_test_setup_teardown(test_leaving, make_folder, images_folder_free),
        cmocka_unit_test_setup_teardown(test_corrupt, make_folder, images_folder_free),
        cmocka_unit_test_setup_teardown(test_missing, make_folder, images_folder_free),
        cmocka_unit_test_setup_teardown(test_options, make_folder, images_folder_free),
        cmocka_unit_test(test_other_side),
        cmocka_unit_test_setup_teardown(test_scales, make_folder, images_folder_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
