/* Images and folders of them for tests of the data sets. */
#ifndef DV_TESTS_IMAGES_H
#define DV_TESTS_IMAGES_H

#include "check.h"
#include "folder.h"

#include "data/image.h"

#include <sys/stat.h>

/* A smooth image [height][width][3] with a few edges, another for each seed; the caller's to free. */
static inline uint8_t *images_paint(size_t width, size_t height, unsigned seed) {
    uint8_t *image = malloc(width * height * DV_PIXEL);
    assert_non_null(image);
    for (size_t y = 0; y < height; y++)
        for (size_t x = 0; x < width; x++) {
            uint8_t *pixel = image + (y * width + x) * DV_PIXEL;
            pixel[0] = (uint8_t)(40 + 150 * x / width + seed * 13 % 50);
            pixel[1] = (uint8_t)(200 - 150 * y / height);
            pixel[2] = (uint8_t)((x / 20 + y / 25 + seed) % 2 * 90 + 60 + seed * 7 % 80);
        }
    return image;
}

static inline void images_write_file(const char *path, const void *data, size_t bytes) {
    FILE *stream = fopen(path, "wb");
    assert_non_null(stream);
    assert_int_equal(fwrite(data, 1, bytes, stream), bytes);
    assert_int_equal(fclose(stream), 0);
}

static inline void images_write_jpeg(const char *path, size_t width, size_t height, unsigned seed) {
    uint8_t *image = images_paint(width, height, seed), *bytes;
    size_t count;
    assert_ok(dv_jpeg_write(image, width, height, 90, &bytes, &count, &error));
    images_write_file(path, bytes, count);
    free(bytes);
    free(image);
}

/* A data set of folders with `classes` classes of `train` and `val` images each, of different sizes. */
static inline void images_make_folder(const char *root, size_t classes, size_t train, size_t val) {
    char path[FOLDER_PATH_BYTES];
    for (size_t i = 0; i < classes * (train + val); i++) {
        size_t label = i % classes, number = i / classes;
        const char *split = number < train ? "train" : "val";
        snprintf(path, sizeof path, "%.512s/%s", root, split);
        mkdir(path, 0777);
        snprintf(path, sizeof path, "%.512s/%s/class%zu", root, split, label);
        mkdir(path, 0777);
        snprintf(path, sizeof path, "%.512s/%s/class%zu/image%zu.JPEG", root, split, label, number);
        images_write_jpeg(path, 40 + i * 7 % 60, 45 + i * 11 % 50, (unsigned)i);
    }
}

/* Removes a folder and all that is in it. */
static inline void images_remove(const char *path) {
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        char inner[FOLDER_PATH_BYTES];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        snprintf(inner, sizeof inner, "%.700s/%.256s", path, entry->d_name);
        if (unlink(inner) != 0)
            images_remove(inner);
    }
    if (folder != NULL)
        closedir(folder);
    rmdir(path);
}

/* The teardown of a test whose folder has folders in it. */
static inline int images_folder_free(void **state) {
    images_remove(*state);
    int code = access(*state, F_OK) == 0 ? -1 : 0;
    free(*state);
    return code;
}

#endif
