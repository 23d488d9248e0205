/* How bits are shared out among items, such that the noise of all is least: what ActNN does with the images of a value,
 * and with values. */
#ifndef DV_GRAPH_SHARE_BITS_H
#define DV_GRAPH_SHARE_BITS_H

#include <stddef.h>

enum { DV_BITS_MOST = 8 };

/* Items [count]: with b bits the noise of one is cost / (2^b - 1)^2, and it takes weight x b of the budget. */
typedef struct dv_bits_items {
    size_t count;
    const float *cost, *weight; /* weight NULL: 1 for all */
    float *bits;                /* 1 to DV_BITS_MOST: the result */
} dv_bits_items;

/* All begin with the most bits, and the item whose noise grows least by weight loses one, until the budget holds or all
 * have 1. Items that are alike lose in turns. Nothing is allocated. */
void dv_share_bits(const dv_bits_items *items, double budget);

#endif
