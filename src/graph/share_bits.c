/* Bits among items, without a heap: what an item's noise grows by from b to b - 1 bits is the larger the smaller b is.
 * So lowering the cheapest again and again is the same as taking all growths that are below a threshold, and the
 * threshold is found by halving the interval that it is in. */
#include "graph/share_bits.h"

#include <math.h>
#include <stdbool.h>

static double weight_of(const dv_bits_items *items, size_t i) {
    return items->weight ? (double)items->weight[i] : 1;
}

/* Growth of an item's noise by its weight, from `bits` to one less. */
static double growth(const dv_bits_items *items, size_t i, int bits) {
    double fewer = (double)((1 << (bits - 1)) - 1), now = (double)((1 << bits) - 1);
    return (double)items->cost[i] * (1 / (fewer * fewer) - 1 / (now * now)) / weight_of(items, i);
}

/* The bits that are left when all growths below the threshold are taken. */
static int bits_at(const dv_bits_items *items, size_t i, double threshold) {
    int bits = DV_BITS_MOST;
    while (bits > 1 && growth(items, i, bits) < threshold)
        bits--;
    return bits;
}

/* Sets the bits, and returns what they take. */
static double take(const dv_bits_items *items, double threshold) {
    double taken = 0;
    for (size_t i = 0; i < items->count; i++) {
        items->bits[i] = (float)bits_at(items, i, threshold);
        taken += weight_of(items, i) * (double)items->bits[i];
    }
    return taken;
}

/* What is taken with thresholds just above and below differs by growths that are alike: these are taken one by one. */
static void lower_in_turns(const dv_bits_items *items, double threshold, double taken, double budget) {
    for (bool any = true; any && taken > budget;) {
        any = false;
        for (size_t i = 0; i < items->count && taken > budget; i++) {
            int bits = (int)items->bits[i];
            if (bits == 1 || growth(items, i, bits) >= threshold)
                continue;
            items->bits[i]--;
            taken -= weight_of(items, i);
            any = true;
        }
    }
}

void dv_share_bits(const dv_bits_items *items, double budget) {
    enum { HALVINGS = 60 };
    const double lowest = -150;
    double low = lowest, high = 150; /* logarithms, to the base of two, of thresholds too low and high enough */
    for (int i = 0; i < HALVINGS; i++) {
        double middle = (low + high) / 2;
        if (take(items, exp2(middle)) > budget)
            low = middle;
        else
            high = middle;
    }
    double threshold = low > lowest ? exp2(low) : 0; /* items that cost nothing are taken by all others */
    lower_in_turns(items, exp2(high), take(items, threshold), budget);
}
