/* CRC-32C bit by bit: event files are small. */
#include "report/crc32c.h"

uint32_t dv_crc32c(const void *data, size_t bytes) {
    const uint32_t polynomial = 0x82f63b78; /* reflected */
    const unsigned char *at = data;
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < bytes; i++) {
        crc ^= at[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? polynomial : 0);
    }
    return ~crc;
}

uint32_t dv_crc32c_masked(const void *data, size_t bytes) {
    uint32_t crc = dv_crc32c(data, bytes);
    return (crc >> 15 | crc << 17) + 0xa282ead8;
}
