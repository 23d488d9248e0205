/* Fuzzes the readers of PyTorch's files: zip archives and pickles. The first bytes of the input are those of the legacy
 * form with a good front, unless they are those of an archive, so that most inputs get as far as a pickle. */
#define _GNU_SOURCE /* memfd_create */
#include "arrays.h"

#include <string.h>

enum { MOST_BYTES = 1 << 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint8_t front[] = {0x80, 2,    0x8a, 10,   0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8,
                                0x50, 0x19, '.',  0x80, 2,    'M',  0xe9, 3,    '.',  '}',  '.'};

static void read_input(const uint8_t *data, size_t size) {
    dv_array_file *file = fuzz_open(data, size);
    if (file == NULL)
        return;
    (void)fuzz_read_all(file, size);
    dv_array_file_close(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t whole[sizeof front + MOST_BYTES];
    read_input(data, size);
    if (size > MOST_BYTES || (size > 0 && (data[0] == 'P' || data[0] == 0x80)))
        return 0;
    memcpy(whole, front, sizeof front);
    memcpy(whole + sizeof front, data, size);
    read_input(whole, sizeof front + size);
    return 0;
}
