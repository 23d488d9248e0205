/* Images in LMDB files, one for each split: `division data lmdb` makes them of an image folder. */
#include "base/file.h"
#include "base/status.h"
#include "data/augmentation.h"
#include "data/folder_images.h"
#include "data/lmdb_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct lmdb_data {
    dv_dataset base;
    dv_lmdb_file files[DV_SPLIT_COUNT];
} lmdb_data;

static dv_status fetch(const dv_dataset *dataset, dv_split split, size_t index, dv_record *record, dv_error *error) {
    dv_lmdb_record found;
    DV_TRY(dv_lmdb_file_find(&((const lmdb_data *)dataset)->files[split], index, &found, &record->held, error));
    record->bytes = found.image;
    record->count = found.image_bytes;
    record->label = (int32_t)found.label;
    return DV_OK;
}

static void release(const dv_dataset *dataset, dv_record *record) {
    (void)dataset;
    dv_lmdb_file_release(record->held);
}

static dv_status find_label(const dv_dataset *dataset, dv_split split, size_t index, int32_t *label, dv_error *error) {
    return dv_lmdb_file_label(&((const lmdb_data *)dataset)->files[split], index, label, error);
}

static void name_image(const dv_dataset *dataset, dv_split split, size_t index, char name[DV_IMAGE_NAME_BYTES]) {
    dv_lmdb_record record;
    void *held;
    const char *shown = dv_folder_split_name(split);
    if (dv_lmdb_file_find(&((const lmdb_data *)dataset)->files[split], index, &record, &held, NULL) != DV_OK) {
        snprintf(name, DV_IMAGE_NAME_BYTES, "%s.lmdb: record %zu", shown, index);
        return;
    }
    snprintf(name, DV_IMAGE_NAME_BYTES, "%s.lmdb: record %zu: %.*s", shown, index, (int)record.name_bytes, record.name);
    dv_lmdb_file_release(held);
}

static void close_lmdb(dv_dataset *dataset) {
    lmdb_data *data = (lmdb_data *)dataset;
    for (dv_split split = 0; split < DV_SPLIT_COUNT; split++)
        dv_lmdb_file_close(&data->files[split]);
    free(data);
}

/* The files of a folder; of a file, itself and the one beside it. */
static char *find_file(const char *text, dv_split split) {
    struct stat status;
    if (stat(text, &status) == 0 && S_ISDIR(status.st_mode))
        return dv_lmdb_split_path(text, split);
    if (split == DV_TRAIN)
        return strdup(text);
    char *folder = strdup(text), *slash = folder != NULL ? strrchr(folder, '/') : NULL;
    if (slash != NULL)
        *slash = '\0';
    char *path = folder != NULL ? dv_lmdb_split_path(slash != NULL ? folder : ".", split) : NULL;
    free(folder);
    return path;
}

static dv_status open_file(lmdb_data *data, const char *text, dv_split split, dv_error *error) {
    char *path = find_file(text, split);
    if (path == NULL)
        return dv_fail(error, DV_ERROR_MEMORY, "no memory for a data set: free some");
    dv_status status = dv_lmdb_file_open(&data->files[split], path, error);
    free(path);
    data->base.shape.images[split] = data->files[split].description.images;
    return status;
}

/* Both must be of the same classes. */
static dv_status check_classes(const lmdb_data *data, dv_error *error) {
    const dv_lmdb_description *a = &data->files[DV_TRAIN].description, *b = &data->files[DV_TEST].description;
    size_t i = 0;
    while (i < a->classes && i < b->classes && strcmp(a->class_names[i], b->class_names[i]) == 0)
        i++;
    if (i == a->classes && i == b->classes)
        return DV_OK;
    return dv_fail(error, DV_ERROR_FORMAT, "%s and the test's are of different classes, from class %zu on",
                   dv_file_shown(data->files[DV_TRAIN].path), i);
}

static dv_status fill(lmdb_data *data, const char *text, dv_error *error) {
    for (dv_split split = 0; split < DV_SPLIT_COUNT; split++)
        DV_TRY(open_file(data, text, split, error));
    DV_TRY(check_classes(data, error));
    data->base.shape.classes = data->files[DV_TRAIN].description.classes;
    data->base.class_names = data->files[DV_TRAIN].description.class_names;
    return DV_OK;
}

static dv_status open_lmdb(const char *text, const dv_dataset_options *options, dv_dataset **dataset, dv_error *error) {
    (void)options;
    if (text == NULL || *text == '\0')
        return dv_fail(error, DV_ERROR_OPTION, "data: lmdb: give the folder with train.lmdb and val.lmdb: lmdb:DIR");
    lmdb_data *made = calloc(1, sizeof *made);
    if (made == NULL)
        return dv_fail(error, DV_ERROR_MEMORY, "no memory for a data set: free some");
    made->base = (dv_dataset){.kind = &dv_lmdb_images,
                              .shape = {.side = DV_PHOTOGRAPH_SIDE},
                              .normalisation = DV_PHOTOGRAPHS,
                              .usual = dv_augmentation_default(DV_CROP_RESIZED)};
    dv_status status = fill(made, text, error);
    if (status == DV_OK)
        *dataset = &made->base;
    else
        close_lmdb(&made->base);
    return status;
}

const dv_dataset_kind dv_lmdb_images = {
    .name = "lmdb",
    .usage = "lmdb:DIR",
    .help = "train.lmdb and val.lmdb of the folder, made by 'division data lmdb'; or the first of them by name",
    .open = open_lmdb,
    .close = close_lmdb,
    .fetch = fetch,
    .release = release,
    .name_image = name_image,
    .label = find_label,
};
