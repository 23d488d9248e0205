/* The layout of our LMDB files (docs/data.md): reading and writing records and the description, no file involved. */
#ifndef DV_DATA_LMDB_FORMAT_H
#define DV_DATA_LMDB_FORMAT_H

#include <division/status.h>
#include <stddef.h>
#include <stdint.h>

/* ---- records ------------------------------------------------------------------------------- */

/* A key is the place of the record, most significant byte first, so that LMDB has them in order. */
enum { DV_LMDB_KEY_BYTES = 8, DV_LMDB_HEADER_BYTES = 12, DV_LMDB_MAX_NAME = 1024 };

typedef struct dv_lmdb_record {
    uint32_t label;
    const char *name; /* "class/file", not terminated */
    size_t name_bytes;
    const uint8_t *image;
    size_t image_bytes;
} dv_lmdb_record;

void dv_lmdb_key(uint64_t place, uint8_t key[DV_LMDB_KEY_BYTES]);

/* Bytes of a record, and writing it there. */
size_t dv_lmdb_record_bytes(const dv_lmdb_record *record);
void dv_lmdb_record_write(const dv_lmdb_record *record, uint8_t *value);

/* Takes a record apart; what it points to lies in `value`. Fails, DV_ERROR_FORMAT, if it is not whole or not as it
 * was written. */
dv_status dv_lmdb_record_read(const uint8_t *value, size_t bytes, size_t classes, dv_lmdb_record *record,
                              dv_error *error);

/* The label alone, whatever the rest is like. */
dv_status dv_lmdb_record_label(const uint8_t *value, size_t bytes, size_t classes, int32_t *label, dv_error *error);

/* ---- the description ----------------------------------------------------------------------- */

#define DV_LMDB_DESCRIPTION_KEY "division" /* with its final zero, so that it is no record's */

typedef struct dv_lmdb_description {
    size_t images, classes;
    size_t resize, quality;
    uint32_t source; /* a checksum of the names of the files it is made of, in order */
    int complete;
    char **class_names; /* [classes]; owned */
} dv_lmdb_description;

/* As text, the caller's to free(). NULL: no memory. */
char *dv_lmdb_describe(const dv_lmdb_description *description);

/* Reads it again; dv_lmdb_description_free releases it, also after a failure. */
dv_status dv_lmdb_description_read(const char *text, size_t bytes, dv_lmdb_description *description, dv_error *error);
void dv_lmdb_description_free(dv_lmdb_description *description);

#endif
