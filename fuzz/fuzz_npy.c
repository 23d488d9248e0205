/* Fuzzes the reader of .npy files. What it accepts must describe exactly the bytes it was given, and be
 * written by dv_npy_write's rules: a type and a shape that take the array's bytes. */
#include <division/tools/npy.h>

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    dv_npy array;
    dv_error error;
    if (dv_npy_parse("input", data, size, &array, &error) != DV_OK)
        return 0;
    size_t bytes = dv_type_bytes(array.type);
    for (int i = 0; i < array.rank; i++)
        bytes *= array.shape[i];
    const uint8_t *elements = array.data;
    if (bytes != array.bytes || elements < data || elements + bytes != data + size)
        abort();
    volatile uint8_t sum = 0; /* every byte can be read */
    for (size_t i = 0; i < bytes; i++)
        sum = (uint8_t)(sum + elements[i]);
    return 0;
}
