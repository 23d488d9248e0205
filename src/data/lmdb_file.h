/* One LMDB file of images, for reading. */
#ifndef DV_DATA_LMDB_FILE_H
#define DV_DATA_LMDB_FILE_H

#include "data/dataset.h"
#include "data/lmdb_format.h"
#include "data/lmdb_pages.h"

typedef struct dv_lmdb_file {
    char *path; /* NULL: not opened */
    dv_lmdb_pages pages;
    dv_lmdb_description description;
} dv_lmdb_file;

/* Opens a file and reads its description; one that is not complete is refused. After a failure, too, it must be
 * closed. */
dv_status dv_lmdb_file_open(dv_lmdb_file *file, const char *path, dv_error *error);
void dv_lmdb_file_close(dv_lmdb_file *file);

/* Reads the record at a place. It stays until what comes back in `held` is given to dv_lmdb_file_release. */
dv_status dv_lmdb_file_find(const dv_lmdb_file *file, size_t place, dv_lmdb_record *record, void **held,
                            dv_error *error);
void dv_lmdb_file_release(void *held);

/* The label of the record at a place, without a look at the rest of it. */
dv_status dv_lmdb_file_label(const dv_lmdb_file *file, size_t place, int32_t *label, dv_error *error);

/* What LMDB says, and what to do about it. */
dv_status dv_lmdb_fail(const char *action, const char *path, int code, dv_error *error);

/* The file of a split in a folder: "DIR/train.lmdb", the caller's to free(). */
char *dv_lmdb_split_path(const char *folder, dv_split split);

#endif
