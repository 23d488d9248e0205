/* Reading the records of an LMDB file. */
#include "data/lmdb_file.h"

#include "base/file.h"
#include "base/status.h"
#include "data/folder_images.h"

#include <errno.h>
#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

dv_status dv_lmdb_fail(const char *action, const char *path, int code, dv_error *error) {
    const char *shown = dv_file_shown(path);
    if (code == ENOSPC || code == EDQUOT || code == EFBIG)
        return dv_fail(error, DV_ERROR_IO, "could not %s %s: %s: make room and call it again: it goes on from there",
                       action, shown, mdb_strerror(code));
    if (code == EIO) /* LMDB's name for a write that a full disk cut short */
        return dv_fail(error, DV_ERROR_IO, "could not %s %s: %s, or the disk is full: make room and call it again",
                       action, shown, mdb_strerror(code));
    if (code == ENOMEM)
        return dv_fail(error, DV_ERROR_MEMORY, "could not %s %s: no memory: free some", action, shown);
    if (code == MDB_INVALID || code == MDB_VERSION_MISMATCH || code == MDB_CORRUPTED || code == MDB_PAGE_NOTFOUND)
        return dv_fail(error, DV_ERROR_FORMAT, "could not %s %s: %s: is it a file of 'division data lmdb'?", action,
                       shown, mdb_strerror(code));
    return dv_fail(error, DV_ERROR_IO, "could not %s %s: %s: check the path and the device", action, shown,
                   mdb_strerror(code));
}

char *dv_lmdb_split_path(const char *folder, dv_split split) {
    size_t bytes = strlen(folder) + 32;
    char *path = malloc(bytes);
    if (path != NULL)
        snprintf(path, bytes, "%s/%s.lmdb", folder, dv_folder_split_name(split));
    return path;
}

/* Puts the file, and what is meant within it, in front of what is wrong. */
static dv_status name(const dv_lmdb_file *file, const char *part, dv_status status, const dv_error *inner,
                      dv_error *error) {
    if (status == DV_OK)
        return DV_OK;
    return dv_fail(error, status, "%s: %s%.120s", dv_file_shown(file->path), part, inner->text);
}

static dv_status name_record(const dv_lmdb_file *file, size_t place, dv_status status, const dv_error *inner,
                             dv_error *error) {
    char part[40];
    snprintf(part, sizeof part, "record %zu: ", place);
    return name(file, part, status, inner, error);
}

/* ---- the file ------------------------------------------------------------------------------ */

static dv_status read_description(dv_lmdb_file *file, dv_error *error) {
    static const char key[] = DV_LMDB_DESCRIPTION_KEY;
    uint8_t *text;
    size_t bytes;
    dv_error inner;
    dv_status status = dv_lmdb_pages_find(&file->pages, key, sizeof key, SIZE_MAX, &text, &bytes, &inner);
    DV_TRY(name(file, "", status, &inner, error));
    if (text == NULL)
        return dv_fail(error, DV_ERROR_FORMAT, "%s: an LMDB file, but not one that 'division data lmdb' made",
                       dv_file_shown(file->path));
    status = dv_lmdb_description_read((const char *)text, bytes, &file->description, &inner);
    free(text);
    DV_TRY(name(file, "", status, &inner, error));
    if (!file->description.complete)
        return dv_fail(error, DV_ERROR_FORMAT, "%s is not complete: call 'division data lmdb' again: it goes on",
                       dv_file_shown(file->path));
    return DV_OK;
}

dv_status dv_lmdb_file_open(dv_lmdb_file *file, const char *path, dv_error *error) {
    *file = (dv_lmdb_file){.path = strdup(path), .pages.descriptor = -1};
    if (file->path == NULL)
        return dv_fail(error, DV_ERROR_MEMORY, "no memory for a data set: free some");
    DV_TRY(dv_lmdb_pages_open(&file->pages, path, error));
    return read_description(file, error);
}

void dv_lmdb_file_close(dv_lmdb_file *file) {
    if (file->path != NULL)
        dv_lmdb_pages_close(&file->pages);
    dv_lmdb_description_free(&file->description);
    free(file->path);
    *file = (dv_lmdb_file){0};
}

/* ---- records ------------------------------------------------------------------------------- */

/* The first `most` bytes of the record at a place, the caller's to free(). */
static dv_status read_value(const dv_lmdb_file *file, size_t place, size_t most, uint8_t **value, size_t *bytes,
                            dv_error *error) {
    uint8_t key[DV_LMDB_KEY_BYTES];
    dv_error inner;
    dv_lmdb_key(place, key);
    dv_status status = dv_lmdb_pages_find(&file->pages, key, sizeof key, most, value, bytes, &inner);
    if (status == DV_OK && *value == NULL)
        status = dv_fail(&inner, DV_ERROR_FORMAT, "it is missing");
    return name_record(file, place, status, &inner, error);
}

dv_status dv_lmdb_file_label(const dv_lmdb_file *file, size_t place, int32_t *label, dv_error *error) {
    uint8_t *value;
    size_t bytes;
    dv_error inner;
    DV_TRY(read_value(file, place, DV_LMDB_HEADER_BYTES, &value, &bytes, error));
    dv_status status = dv_lmdb_record_label(value, bytes, file->description.classes, label, &inner);
    free(value);
    return name_record(file, place, status, &inner, error);
}

dv_status dv_lmdb_file_find(const dv_lmdb_file *file, size_t place, dv_lmdb_record *record, void **held,
                            dv_error *error) {
    uint8_t *value;
    size_t bytes;
    dv_error inner;
    *held = NULL;
    DV_TRY(read_value(file, place, SIZE_MAX, &value, &bytes, error));
    dv_status status = dv_lmdb_record_read(value, bytes, file->description.classes, record, &inner);
    if (status == DV_OK)
        *held = value;
    else
        free(value);
    return name_record(file, place, status, &inner, error);
}

void dv_lmdb_file_release(void *held) {
    free(held);
}
