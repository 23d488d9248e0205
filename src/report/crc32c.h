/* CRC-32C (Castagnoli): the checksum of TFRecord files. */
#ifndef DV_REPORT_CRC32C_H
#define DV_REPORT_CRC32C_H

#include <stddef.h>
#include <stdint.h>

uint32_t dv_crc32c(const void *data, size_t bytes);

/* The checksum as TFRecord has it, turned and moved, so that a record of records is not its own checksum. */
uint32_t dv_crc32c_masked(const void *data, size_t bytes);

#endif
