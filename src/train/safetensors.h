/* The file format safetensors: named arrays, and a few notes about them.
 *
 *     8 bytes           length of the header, little-endian
 *     header            JSON: {"name": {"dtype": "F32", "shape": [64, 3, 7, 7], "data_offsets": [0, 37632]}, ...,
 *                              "__metadata__": {"key": "value", ...}}, spaces at the end to align what follows
 *     arrays            little-endian, row-major, one behind the other without holes
 *
 * They are read through train/array_file.h, as files of other kinds are. */
#ifndef DV_TRAIN_SAFETENSORS_H
#define DV_TRAIN_SAFETENSORS_H

#include <division/checkpoint.h>
#include <division/status.h>
#include <stddef.h>

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
