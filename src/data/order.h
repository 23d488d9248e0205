/* A permutation of 0 .. count - 1 that is given by a key, without a table: any place of it can be had by any
 * thread, and an epoch of a million images takes no memory.
 *
 * A Feistel network permutes the smallest 2^(2k) >= count numbers; those that land outside go through it
 * again until they land inside, which takes less than four rounds on average. */
#ifndef DV_DATA_ORDER_H
#define DV_DATA_ORDER_H

#include "base/random.h"

enum { DV_ORDER_ROUNDS = 8 };

typedef struct dv_order {
    dv_random key;
    uint64_t count;
    unsigned half; /* bits of each half: 1 to 32 */
} dv_order;

/* The order of `count` (1 to 2^63) things in an epoch. */
static inline dv_order dv_order_new(uint64_t seed, uint64_t epoch, uint64_t count) {
    dv_order order = {dv_random_key((const uint64_t[]){seed, epoch, 0x6f72646572}, 3), count, 1};
    while (order.half < 32 && (uint64_t)1 << 2 * order.half < count)
        order.half++;
    return order;
}

static inline uint64_t dv_order_pass(const dv_order *order, uint64_t at) {
    uint32_t mask = (uint32_t)(((uint64_t)1 << order->half) - 1);
    uint32_t left = (uint32_t)(at >> order->half) & mask, right = (uint32_t)at & mask;
    for (uint32_t i = 0; i < DV_ORDER_ROUNDS; i++) {
        dv_random key = {order->key.low + i * 0x9e3779b9u, order->key.high ^ i * 0x85ebca6bu};
        uint32_t mixed = (left ^ dv_random_word(key, right)) & mask;
        left = right;
        right = mixed;
    }
    return (uint64_t)left << order->half | right;
}

/* What is at place `at` (below count) of the order. */
static inline uint64_t dv_order_at(const dv_order *order, uint64_t at) {
    do
        at = dv_order_pass(order, at);
    while (at >= order->count);
    return at;
}

#endif
