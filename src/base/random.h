/* Counter-based random numbers: a number depends on a key and a position, never on what was drawn
 * before, so any thread can make any part of a sequence.
 *
 * A key is 64 bits, mixed by dv_random_key from words such as seed, step, value and image. The
 * sequence of a key is dv_random_word(key, 0), dv_random_word(key, 1), ...: 32 bits each, from two
 * rounds of multiply and shift with the key added before each round. That is two vector
 * multiplications for 32 bits, an order of magnitude cheaper than the generators made for simulation; it is meant
 * for dither, dropout and shuffles. */
#ifndef DV_BASE_RANDOM_H
#define DV_BASE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

typedef struct dv_random {
    uint32_t low, high;
} dv_random;

/* A bijection of 64 bits that flips each output bit with probability one half (SplitMix64's). */
static inline uint64_t dv_random_mix(uint64_t x) {
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

/* The key of a sequence of words. Every word matters, and so does their order. */
static inline dv_random dv_random_key(const uint64_t *words, size_t count) {
    uint64_t key = 0;
    for (size_t i = 0; i < count; i++)
        key = dv_random_mix(key + words[i] + 0x9e3779b97f4a7c15);
    return (dv_random){(uint32_t)key, (uint32_t)(key >> 32)};
}

/* The word at `position` of a key's sequence. */
static inline uint32_t dv_random_word(dv_random key, uint32_t position) {
    uint32_t x = position + key.low;
    x = (x ^ x >> 16) * 0x7feb352d;
    x += key.high;
    x = (x ^ x >> 15) * 0x846ca68b;
    return x ^ x >> 16;
}

#endif
