/* Fuzzes the reader of safetensors. Of what it accepts, every array must lie in the file behind the one before it, and
 * be readable to its last element. */
#define _GNU_SOURCE /* memfd_create */
#include "train/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_all(const dv_safetensors *file, size_t size) {
    const dv_safetensor *tensor;
    dv_error error;
    uint64_t sum = 0;
    for (size_t i = 0; (tensor = dv_safetensors_at(file, i)) != NULL; i++) {
        if (tensor->end > size || tensor->count > size)
            abort();
        sum += tensor->end - tensor->begin;
        float *values = malloc(tensor->count * sizeof *values + 1);
        if (values == NULL || dv_safetensors_find(file, tensor->name) != tensor)
            abort();
        dv_status status = dv_safetensors_read(file, tensor, values, &error);
        if (status != DV_OK && status != DV_ERROR_UNSUPPORTED)
            abort();
        free(values);
    }
    if (sum > size)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static int descriptor = -1;
    char path[64];
    dv_safetensors *file;
    dv_error error;
    if (descriptor < 0)
        descriptor = memfd_create("fuzz", MFD_CLOEXEC);
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    if (ftruncate(descriptor, 0) != 0 || pwrite(descriptor, data, size, 0) != (ssize_t)size)
        abort();
    if (dv_safetensors_open(path, &file, &error) != DV_OK)
        return 0;
    read_all(file, size);
    dv_safetensors_note(file, "format");
    dv_safetensors_close(file);
    return 0;
}
