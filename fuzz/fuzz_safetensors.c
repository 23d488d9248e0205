/* Fuzzes the reader of safetensors. Of what it accepts, every array must lie in the file behind the one before it, and
 * be readable to its last element. */
#define _GNU_SOURCE /* memfd_create */
#include "arrays.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    dv_array_file *file = fuzz_open(data, size);
    if (file == NULL)
        return 0;
    if (fuzz_read_all(file, size) > size && data[0] != 'P' && data[0] != 0x80) /* PyTorch's tensors may share bytes */
        abort();
    dv_array_file_note(file, "format");
    dv_array_file_close(file);
    return 0;
}
