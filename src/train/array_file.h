/* Files of named arrays, whichever program wrote them: safetensors, and what torch.save leaves. The kind of a file is
 * recognised by its first bytes, not by its name.
 *
 * Arrays are read in pieces, from the file straight to where they belong: a file of any size takes no more memory than
 * its description of them. */
#ifndef DV_TRAIN_ARRAY_FILE_H
#define DV_TRAIN_ARRAY_FILE_H

#include <division/status.h>
#include <stddef.h>
#include <stdint.h>

enum { DV_ARRAY_MAX_RANK = 8 };

/* An array of a file. */
typedef struct dv_array {
    const char *name; /* lives as long as the file is open */
    int type;         /* index of dv_array_type_name */
    int rank;
    size_t shape[DV_ARRAY_MAX_RANK], count;
    size_t stride[DV_ARRAY_MAX_RANK]; /* in elements; rows need not follow each other */
    uint64_t begin, end;              /* bytes of the file: its first element, and behind the last in memory */
} dv_array;

typedef struct dv_array_file dv_array_file;

/* Opens a file and checks all that it says of its arrays: that it is what its format says, and that every array lies in
 * the file. A failure names the file and the reason. */
dv_status dv_array_file_open(const char *path, dv_array_file **file, dv_error *error);
void dv_array_file_close(dv_array_file *file);

/* The arrays, in the order of their names; NULL past the last. */
const dv_array *dv_array_file_at(const dv_array_file *file, size_t index);
const dv_array *dv_array_file_find(const dv_array_file *file, const char *name);

/* The value of a note that stands in the file beside its arrays, or NULL. */
const char *dv_array_file_note(const dv_array_file *file, const char *name);

/* "F32", "BF16", "I64", ... */
const char *dv_array_type_name(int type);

/* Reads an array of floating-point numbers into dst [count] as f32, row after row. */
dv_status dv_array_file_read(const dv_array_file *file, const dv_array *array, float *dst, dv_error *error);

#endif
