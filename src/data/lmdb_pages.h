/* The pages of an LMDB file, looked at before LMDB does. */
#ifndef DV_DATA_LMDB_PAGES_H
#define DV_DATA_LMDB_PAGES_H

#include <division/status.h>

/* LMDB takes the pages of its trees on trust: a damaged one would end the process. So those that lead to the records,
 * and those that say which pages are free, must be there and be sound. What the records hold their checksums tell. It
 * reads about 30 bytes a record. What is wrong is DV_ERROR_FORMAT. */
dv_status dv_lmdb_file_check(const char *path, dv_error *error);

#endif
