/* NumPy's array files (.npy): read and write them.
 *
 * Versions 1.0 to 3.0, little-endian f4 and f2 in C order. Anything else is refused with a message that
 * says how to save the array so that it can be read. */
#ifndef DIVISION_TOOLS_NPY_H
#define DIVISION_TOOLS_NPY_H

#include <division/codec.h>
#include <division/status.h>
#include <division/tools/tool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { DV_NPY_MAX_RANK = 8 };

/* An array: `rank` axes, the last one contiguous. */
typedef struct dv_npy {
    dv_type type; /* DV_F32 or DV_F16 */
    int rank;     /* 0 for a scalar */
    size_t shape[DV_NPY_MAX_RANK];
    void *data;   /* from dv_npy_read: owned, aligned to 64 bytes; otherwise the caller's */
    size_t bytes; /* of the data */
} dv_npy;

/* Reads an array from a file. dv_npy_free releases it. On failure `array` is empty. */
DV_TOOL dv_status dv_npy_read(const char *path, dv_npy *array, dv_error *error);

/* The same from memory. `array->data` then points into `memory`, at any alignment, and must neither be
 * written nor freed. `name` is what messages call it. */
DV_TOOL dv_status dv_npy_parse(const char *name, const void *memory, size_t bytes, dv_npy *array, dv_error *error);

/* Writes an array as version 1.0, all of it or nothing: on failure an existing file stays as it was. */
DV_TOOL dv_status dv_npy_write(const char *path, const dv_npy *array, dv_error *error);

/* Frees what dv_npy_read allocated. The array is empty afterwards; an empty one may be given. */
DV_TOOL void dv_npy_free(dv_npy *array);

#ifdef __cplusplus
}
#endif

#endif
