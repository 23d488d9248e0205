/* MD5: 64 steps over blocks of 64 bytes. */
#include "md5.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BLOCK = 64, LENGTH_AT = 56 };

md5 md5_begin(void) {
    return (md5){.state = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476}};
}

static uint32_t rotate(uint32_t x, int by) {
    return x << by | x >> (32 - by);
}

static uint32_t word(const uint8_t *block, int index) {
    const uint8_t *at = block + 4 * index;
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* The function and the word of a step; its constant is the fraction of a sine. */
static uint32_t mix(int step, const uint32_t s[4], const uint8_t *block) {
    uint32_t constant = (uint32_t)(int64_t)floor(fabs(sin(step + 1)) * 4294967296.0);
    switch (step / 16) {
    case 0:
        return ((s[1] & s[2]) | (~s[1] & s[3])) + constant + word(block, step);
    case 1:
        return ((s[3] & s[1]) | (~s[3] & s[2])) + constant + word(block, (5 * step + 1) % 16);
    case 2:
        return (s[1] ^ s[2] ^ s[3]) + constant + word(block, (3 * step + 5) % 16);
    default:
        return (s[2] ^ (s[1] | ~s[3])) + constant + word(block, 7 * step % 16);
    }
}

static void add_block(md5 *sum, const uint8_t *block) {
    static const int turns[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
    uint32_t s[4];
    memcpy(s, sum->state, sizeof s);
    for (int step = 0; step < 64; step++) {
        uint32_t next = s[1] + rotate(s[0] + mix(step, s, block), turns[step / 16][step % 4]);
        s[0] = s[3];
        s[3] = s[2];
        s[2] = s[1];
        s[1] = next;
    }
    for (int i = 0; i < 4; i++)
        sum->state[i] += s[i];
}

void md5_add(md5 *sum, const void *data, size_t bytes) {
    const uint8_t *at = data;
    while (bytes > 0) {
        size_t used = sum->bytes % BLOCK, part = BLOCK - used < bytes ? BLOCK - used : bytes;
        memcpy(sum->block + used, at, part);
        sum->bytes += part;
        at += part;
        bytes -= part;
        if (sum->bytes % BLOCK == 0)
            add_block(sum, sum->block);
    }
}

void md5_end(md5 *sum, char text[MD5_TEXT]) {
    uint8_t length[8];
    uint64_t bits = sum->bytes * 8;
    for (int i = 0; i < 8; i++)
        length[i] = (uint8_t)(bits >> 8 * i);
    md5_add(sum, "\x80", 1);
    while (sum->bytes % BLOCK != LENGTH_AT)
        md5_add(sum, "", 1);
    md5_add(sum, length, sizeof length);
    for (int i = 0; i < 16; i++)
        snprintf(text + 2 * i, 3, "%02x", (unsigned)(sum->state[i / 4] >> 8 * (i % 4) & 0xff));
}
