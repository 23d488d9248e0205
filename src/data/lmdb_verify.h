/* Verifying LMDB files, alone or against the folder they were made of. */
#ifndef DV_DATA_LMDB_VERIFY_H
#define DV_DATA_LMDB_VERIFY_H

#include "data/dataset.h"

#include <division/tools/lmdb.h>

/* `source` may be NULL; else each record must have the name and the label of its image. Sets the result's images and
 * bytes. */
dv_status dv_lmdb_verify_against(const char *destination, const dv_dataset *source, const dv_lmdb_callbacks *callbacks,
                                 dv_lmdb_result *result, dv_error *error);

#endif
