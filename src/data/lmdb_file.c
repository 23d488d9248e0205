/* Reading an LMDB file.
 *
 * Files are mapped, not read, so a record is decoded where it lies. Its pages are given back afterwards: they stay in
 * the system's cache, but the process does not seem to grow by the whole data set. */
#include "data/lmdb_file.h"

#include "base/file.h"
#include "base/status.h"
#include "data/folder_images.h"
#include "data/lmdb_pages.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

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

static dv_status read_description(dv_lmdb_file *file, MDB_txn *transaction, dv_error *error) {
    char name[] = DV_LMDB_DESCRIPTION_KEY;
    MDB_val key = {sizeof name, name}, value;
    dv_error inner;
    int code = mdb_get(transaction, file->table, &key, &value);
    if (code == MDB_NOTFOUND)
        return dv_fail(error, DV_ERROR_FORMAT, "%s: an LMDB file, but not one that 'division data lmdb' made",
                       dv_file_shown(file->path));
    if (code != 0)
        return dv_lmdb_fail("read", file->path, code, error);
    dv_status status = dv_lmdb_description_read(value.mv_data, value.mv_size, &file->description, &inner);
    if (status != DV_OK)
        return dv_fail(error, status, "%s: %.120s", dv_file_shown(file->path), inner.text);
    if (!file->description.complete)
        return dv_fail(error, DV_ERROR_FORMAT, "%s is not complete: call 'division data lmdb' again: it goes on",
                       dv_file_shown(file->path));
    return DV_OK;
}

static dv_status open_table(dv_lmdb_file *file, dv_error *error) {
    MDB_txn *transaction;
    int code = mdb_txn_begin(file->environment, NULL, MDB_RDONLY, &transaction);
    if (code != 0)
        return dv_lmdb_fail("read", file->path, code, error);
    dv_status status = DV_OK;
    code = mdb_dbi_open(transaction, NULL, 0, &file->table);
    if (code != 0)
        status = dv_lmdb_fail("read", file->path, code, error);
    if (status == DV_OK)
        status = read_description(file, transaction, error);
    if (status == DV_OK)
        code = mdb_txn_commit(transaction); /* keeps the table open */
    else
        mdb_txn_abort(transaction);
    return status == DV_OK && code != 0 ? dv_lmdb_fail("read", file->path, code, error) : status;
}

dv_status dv_lmdb_file_open(dv_lmdb_file *file, const char *path, dv_error *error) {
    struct stat status;
    *file = (dv_lmdb_file){.path = strdup(path)};
    if (file->path == NULL)
        return dv_fail(error, DV_ERROR_MEMORY, "no memory for a data set: free some");
    if (stat(path, &status) != 0)
        return dv_fail(error, DV_ERROR_IO, "could not read %s: %s: give what 'division data lmdb' made",
                       dv_file_shown(path), strerror(errno));
    if (!S_ISREG(status.st_mode) || status.st_size == 0)
        return dv_fail(error, DV_ERROR_FORMAT, "%s is no LMDB file: it is %s", dv_file_shown(path),
                       S_ISREG(status.st_mode) ? "empty" : "no regular file");
    DV_TRY(dv_lmdb_file_check(path, error));
    int code = mdb_env_create(&file->environment);
    if (code == 0) /* no lock file: nobody writes, and the disk may be read-only */
        code = mdb_env_open(file->environment, path, MDB_NOSUBDIR | MDB_RDONLY | MDB_NOLOCK | MDB_NOTLS | MDB_NORDAHEAD,
                            0666);
    return code == 0 ? open_table(file, error) : dv_lmdb_fail("open", path, code, error);
}

void dv_lmdb_file_close(dv_lmdb_file *file) {
    if (file->environment != NULL)
        mdb_env_close(file->environment);
    dv_lmdb_description_free(&file->description);
    free(file->path);
    *file = (dv_lmdb_file){0};
}

/* Gives back the pages that lie wholly within what was read. */
static void give_back(const uint8_t *bytes, size_t count) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = ((uintptr_t)bytes + page - 1) / page * page;
    uintptr_t end = ((uintptr_t)bytes + count) / page * page;
    if (end > first)
        (void)madvise((void *)first, end - first, MADV_DONTNEED);
}

/* The bytes of the record at a place. */
static dv_status find_value(const dv_lmdb_file *file, MDB_txn *transaction, size_t place, MDB_val *value,
                            dv_error *error) {
    uint8_t name[DV_LMDB_KEY_BYTES];
    MDB_val key = {sizeof name, name};
    dv_lmdb_key(place, name);
    int code = mdb_get(transaction, file->table, &key, value);
    if (code == MDB_NOTFOUND)
        return dv_fail(error, DV_ERROR_FORMAT, "%s: record %zu: it is missing", dv_file_shown(file->path), place);
    return code == 0 ? DV_OK : dv_lmdb_fail("read", file->path, code, error);
}

/* Puts file and record in front of what is wrong. */
static dv_status name(const dv_lmdb_file *file, size_t place, dv_status status, const dv_error *inner,
                      dv_error *error) {
    if (status == DV_OK)
        return DV_OK;
    return dv_fail(error, status, "%s: record %zu: %.100s", dv_file_shown(file->path), place, inner->text);
}

static dv_status find(const dv_lmdb_file *file, MDB_txn *transaction, size_t place, dv_lmdb_record *record,
                      dv_error *error) {
    MDB_val value;
    dv_error inner;
    DV_TRY(find_value(file, transaction, place, &value, error));
    dv_status status = dv_lmdb_record_read(value.mv_data, value.mv_size, file->description.classes, record, &inner);
    return name(file, place, status, &inner, error);
}

dv_status dv_lmdb_file_label(const dv_lmdb_file *file, size_t place, int32_t *label, dv_error *error) {
    MDB_txn *transaction;
    MDB_val value;
    dv_error inner;
    int code = mdb_txn_begin(file->environment, NULL, MDB_RDONLY, &transaction);
    if (code != 0)
        return dv_lmdb_fail("read", file->path, code, error);
    dv_status status = find_value(file, transaction, place, &value, error);
    if (status == DV_OK) {
        status = dv_lmdb_record_label(value.mv_data, value.mv_size, file->description.classes, label, &inner);
        status = name(file, place, status, &inner, error);
        give_back(value.mv_data, value.mv_size);
    }
    mdb_txn_abort(transaction);
    return status;
}

dv_status dv_lmdb_file_find(const dv_lmdb_file *file, size_t place, dv_lmdb_record *record, void **held,
                            dv_error *error) {
    MDB_txn *transaction;
    *held = NULL;
    int code = mdb_txn_begin(file->environment, NULL, MDB_RDONLY, &transaction);
    if (code != 0)
        return dv_lmdb_fail("read", file->path, code, error);
    dv_status status = find(file, transaction, place, record, error);
    if (status == DV_OK)
        *held = transaction;
    else
        mdb_txn_abort(transaction);
    return status;
}

void dv_lmdb_file_release(const dv_lmdb_record *record, void *held) {
    give_back(record->image, record->image_bytes);
    mdb_txn_abort(held);
}
