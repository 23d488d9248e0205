/* The file format safetensors: named arrays, and a few notes about them.
 *
 *     8 bytes           length of the header, little-endian
 *     header            JSON: {"name": {"dtype": "F32", "shape": [64, 3, 7, 7], "data_offsets": [0, 37632]}, ...,
 *                              "__metadata__": {"key": "value", ...}}, spaces at the end to align what follows
 *     arrays            little-endian, row-major, one behind the other without holes
 *
 * Arrays are read in pieces, from the file straight to where they belong: a file of any size takes no more memory
 * than its header. */
#ifndef DV_TRAIN_SAFETENSORS_H
#define DV_TRAIN_SAFETENSORS_H

#include <division/checkpoint.h>
#include <division/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DV_SAFETENSORS_MAX_RANK = 8 };

/* An array of a file. */
typedef struct dv_safetensor {
    const char *name; /* lives as long as the file is open */
    int type;         /* index of dv_safetensors_type_name */
    int rank;
    size_t shape[DV_SAFETENSORS_MAX_RANK], count;
    uint64_t begin, end; /* in bytes from the start of the arrays */
} dv_safetensor;

typedef struct dv_safetensors dv_safetensors;

/* Opens a file and checks all of its header: that it is what the format says, that every array lies in the file, and
 * that they neither overlap nor leave holes. A failure names the file and the reason. */
dv_status dv_safetensors_open(const char *path, dv_safetensors **file, dv_error *error);
void dv_safetensors_close(dv_safetensors *file);

/* The arrays, in the order of their names; NULL past the last. */
const dv_safetensor *dv_safetensors_at(const dv_safetensors *file, size_t index);
const dv_safetensor *dv_safetensors_find(const dv_safetensors *file, const char *name);

/* The value of a note of "__metadata__", or NULL. */
const char *dv_safetensors_note(const dv_safetensors *file, const char *name);

/* "F32", "BF16", "I64", ... */
const char *dv_safetensors_type_name(int type);

/* Reads an array of floating-point numbers into dst [count] as f32. */
dv_status dv_safetensors_read(const dv_safetensors *file, const dv_safetensor *tensor, float *dst, dv_error *error);

/* An array to be written; all of it is the caller's. */
typedef struct dv_safetensors_source {
    const char *name;
    int rank;
    const size_t *shape;
    const float *data;
} dv_safetensors_source;

/* Writes arrays of f32 and notes, all or nothing: an existing file is replaced when the new one is complete and on
 * the disk. */
dv_status dv_safetensors_write(const char *path, const dv_safetensors_source *sources, size_t source_count,
                               const dv_note *notes, size_t note_count, dv_error *error);

#endif
