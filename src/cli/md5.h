/* MD5 (RFC 1321), by which the archives of CIFAR are published. Good against damage, not against malice. */
#ifndef DV_CLI_MD5_H
#define DV_CLI_MD5_H

#include <stddef.h>
#include <stdint.h>

typedef struct md5 {
    uint32_t state[4];
    uint64_t bytes;
    uint8_t block[64];
} md5;

enum { MD5_TEXT = 33 };

md5 md5_begin(void);
void md5_add(md5 *sum, const void *data, size_t bytes);
void md5_end(md5 *sum, char text[MD5_TEXT]); /* in hexadecimal */

#endif
