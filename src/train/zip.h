/* The directory of a zip archive: which records it has, and where their bytes lie. Nothing is unpacked. */
#ifndef DV_TRAIN_ZIP_H
#define DV_TRAIN_ZIP_H

#include "train/array_kind.h"

typedef struct dv_zip_record {
    const char *name; /* lives as long as the directory */
    unsigned method;  /* 0: stored as it is; 8: deflated; ... */
    bool encrypted;
    uint64_t bytes;  /* in the archive */
    uint64_t header; /* byte of the file at which the record begins */
} dv_zip_record;

typedef struct dv_zip {
    dv_zip_record *records; /* by name, each once */
    size_t count;
    char *names;
} dv_zip;

/* Reads the directory at the end of a file, also one of more than 4 GiB. */
dv_status dv_zip_read(const dv_array_file *file, dv_zip *zip, dv_error *error);
void dv_zip_free(dv_zip *zip);

/* The record of this name, or NULL. */
const dv_zip_record *dv_zip_find(const dv_zip *zip, const char *name);

/* Where the bytes of a record begin. Those that are compressed or encrypted are refused by name. */
dv_status dv_zip_locate(const dv_array_file *file, const dv_zip_record *record, uint64_t *begin, dv_error *error);

#endif
