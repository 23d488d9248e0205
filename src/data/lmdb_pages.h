/* The pages of an LMDB file, read without LMDB: it takes them on trust, and a damaged one would end the process. It
 * also maps the whole file, and pages of a map that were read count as the process's memory, though they are the
 * system's cache. Here they are copied, a page at a time. */
#ifndef DV_DATA_LMDB_PAGES_H
#define DV_DATA_LMDB_PAGES_H

#include <division/status.h>
#include <stddef.h>
#include <stdint.h>

/* A file of one table. */
typedef struct dv_lmdb_pages {
    int descriptor; /* -1: none */
    size_t page_bytes;
    uint64_t pages; /* of the file */
    uint64_t root;  /* of the table: the page that its tree begins with */
    unsigned depth; /* of the tree; 0: it is empty */
    size_t entries;
} dv_lmdb_pages;

/* Opens a file and looks at the pages that lead to the records, and at those that say which pages are free: they must
 * be there and be sound. What the records hold their checksums tell. It reads about 30 bytes a record. What is wrong
 * with the file is DV_ERROR_FORMAT. After success it must be closed. */
dv_status dv_lmdb_pages_open(dv_lmdb_pages *file, const char *path, dv_error *error);
void dv_lmdb_pages_close(dv_lmdb_pages *file);

/* Opens a file, looks, and closes it. */
dv_status dv_lmdb_pages_check(const char *path, dv_error *error);

/* Finds the value of a key. `value` is the caller's to free(): all of it, or its first `most` bytes if it has more;
 * `bytes` is how many those are. NULL: the table has no such key. The error does not name the file. Many threads may
 * call it at once. */
dv_status dv_lmdb_pages_find(const dv_lmdb_pages *file, const void *key, size_t key_bytes, size_t most, uint8_t **value,
                             size_t *bytes, dv_error *error);

#endif
