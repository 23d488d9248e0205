/* Looks at every record: that it is there, that its checksum is right, that its class exists, and, if the folder it
 * was made of is at hand, that it is the image that belongs there. */
#include "data/lmdb_verify.h"

#include "base/file.h"
#include "base/status.h"
#include "data/folder_images.h"
#include "data/lmdb_file.h"
#include "data/lmdb_progress.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { AT_ONCE = 256 };

typedef struct verification {
    const dv_dataset *source;
    const dv_lmdb_callbacks *callbacks;
    dv_lmdb_result *result;
    struct timespec start;
    size_t before, all_images;
} verification;

static void tell(const verification *all, dv_split split, size_t done, size_t images) {
    dv_lmdb_tell(all->callbacks, &all->start,
                 (dv_lmdb_progress){.split = split,
                                    .verifying = 1,
                                    .done = done,
                                    .images = images,
                                    .all_done = all->before + done,
                                    .all_images = all->all_images});
}

/* Whether a record is that of its image in the folder. */
static dv_status compare(const dv_dataset *source, const dv_lmdb_file *file, dv_split split, size_t place,
                         const dv_lmdb_record *record, dv_error *error) {
    char name[DV_LMDB_MAX_NAME];
    int32_t label;
    dv_order order = dv_lmdb_order(split, source->shape.images[split]);
    size_t index = (size_t)dv_order_at(&order, place);
    dv_folder_image_path(source, split, index, name, sizeof name);
    DV_TRY(source->kind->label(source, split, index, &label, error));
    if (strlen(name) == record->name_bytes && memcmp(name, record->name, record->name_bytes) == 0 &&
        (uint32_t)label == record->label)
        return DV_OK;
    return dv_fail(error, DV_ERROR_FORMAT, "%s: record %zu is not that of %.100s: remove the file and convert again",
                   dv_file_shown(file->path), place, name);
}

static dv_status check_record(const verification *all, const dv_lmdb_file *file, dv_split split, size_t place,
                              dv_error *error) {
    dv_lmdb_record record;
    void *held;
    DV_TRY(dv_lmdb_file_find(file, place, &record, &held, error));
    dv_status status = all->source != NULL ? compare(all->source, file, split, place, &record, error) : DV_OK;
    dv_lmdb_file_release(held);
    return status;
}

/* Of several failures, the first is told. */
static dv_status check_some(const verification *all, const dv_lmdb_file *file, dv_split split, size_t first, size_t end,
                            dv_error *error) {
    size_t failed = end;
    dv_status status = DV_OK;
#pragma omp parallel for schedule(dynamic, 8)
    for (size_t place = first; place < end; place++) {
        dv_error inner;
        dv_status one = check_record(all, file, split, place, &inner);
        if (one == DV_OK)
            continue;
#pragma omp critical(dv_lmdb_verify_failure)
        if (place < failed) {
            failed = place;
            status = one;
            if (error != NULL)
                *error = inner;
        }
    }
    return status;
}

static dv_status check_file(verification *all, const dv_lmdb_file *file, dv_split split, dv_error *error) {
    size_t images = file->description.images;
    struct stat status;
    if (file->pages.entries != images + 1)
        return dv_fail(error, DV_ERROR_FORMAT, "%s has %zu records and is to have %zu: convert again",
                       dv_file_shown(file->path), file->pages.entries - 1, images);
    for (size_t first = 0; first < images && !dv_lmdb_stop_asked(all->callbacks); first += AT_ONCE) {
        size_t end = images - first < AT_ONCE ? images : first + AT_ONCE;
        DV_TRY(check_some(all, file, split, first, end, error));
        tell(all, split, end, images);
    }
    all->before += images;
    all->result->images[split] = images;
    all->result->bytes[split] = stat(file->path, &status) == 0 ? (size_t)status.st_size : 0;
    return DV_OK;
}

static dv_status check_files(verification *all, const char *folder, dv_lmdb_file files[DV_SPLIT_COUNT],
                             dv_error *error) {
    for (dv_split split = 0; split < DV_SPLIT_COUNT; split++) {
        char *path = dv_lmdb_split_path(folder, split);
        if (path == NULL)
            return dv_fail(error, DV_ERROR_MEMORY, "no memory to verify: free some");
        dv_status status = dv_lmdb_file_open(&files[split], path, error);
        free(path);
        DV_TRY(status);
        all->all_images += files[split].description.images;
    }
    for (dv_split split = 0; split < DV_SPLIT_COUNT; split++)
        DV_TRY(check_file(all, &files[split], split, error));
    return DV_OK;
}

dv_status dv_lmdb_verify_against(const char *destination, const dv_dataset *source, const dv_lmdb_callbacks *callbacks,
                                 dv_lmdb_result *result, dv_error *error) {
    dv_lmdb_file files[DV_SPLIT_COUNT] = {{0}};
    verification all = {.source = source, .callbacks = callbacks, .result = result};
    clock_gettime(CLOCK_MONOTONIC, &all.start);
    dv_status status = check_files(&all, destination, files, error);
    for (dv_split split = 0; split < DV_SPLIT_COUNT; split++)
        dv_lmdb_file_close(&files[split]);
    if (dv_lmdb_stop_asked(callbacks))
        result->complete = 0;
    return status;
}

dv_status dv_lmdb_verify(const char *destination, const dv_lmdb_callbacks *callbacks, dv_lmdb_result *result,
                         dv_error *error) {
    if (destination == NULL || result == NULL)
        return dv_fail(error, DV_ERROR_ARGUMENT, "lmdb: destination or result is NULL");
    *result = (dv_lmdb_result){.complete = 1};
    return dv_lmdb_verify_against(destination, NULL, callbacks, result, error);
}
