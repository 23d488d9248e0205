/* What the targets of array files have in common: the input becomes a file, and of what its reader accepts every array
 * must lie in the file and be readable to its last element. */
#ifndef DV_FUZZ_ARRAYS_H
#define DV_FUZZ_ARRAYS_H

#include "train/array_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Needs _GNU_SOURCE, for memfd_create. NULL: the reader refused it. */
static inline dv_array_file *fuzz_open(const uint8_t *data, size_t size) {
    static int descriptor = -1;
    char path[64];
    dv_array_file *file;
    dv_error error;
    if (descriptor < 0)
        descriptor = memfd_create("fuzz", MFD_CLOEXEC);
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    if (ftruncate(descriptor, 0) != 0 || pwrite(descriptor, data, size, 0) != (ssize_t)size)
        abort();
    return dv_array_file_open(path, &file, &error) == DV_OK ? file : NULL;
}

/* Reads all arrays; the bytes of all of them are returned. */
static inline uint64_t fuzz_read_all(const dv_array_file *file, size_t size) {
    const dv_array *array;
    dv_error error;
    uint64_t sum = 0;
    for (size_t i = 0; (array = dv_array_file_at(file, i)) != NULL; i++) {
        if (array->end > size || array->begin > array->end || array->count > size)
            abort();
        sum += array->end - array->begin;
        float *values = malloc(array->count * sizeof *values + 1);
        if (values == NULL || dv_array_file_find(file, array->name) != array)
            abort();
        dv_status status = dv_array_file_read(file, array, values, &error);
        if (status != DV_OK && status != DV_ERROR_UNSUPPORTED)
            abort();
        free(values);
    }
    return sum;
}

#endif
