/* Bits shared out among items, against the best of all ways to do it. */
#include "base/random.h"
#include "check.h"
#include "graph/share_bits.h"

#include <math.h>

enum { MOST = 5 };

typedef struct items {
    float cost[MOST], weight[MOST], bits[MOST];
} items;

static void share(items *all, size_t count, double budget) {
    dv_share_bits(&(dv_bits_items){count, all->cost, all->weight, all->bits}, budget);
}

static double noise_of(const items *all, const float *bits, size_t count) {
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (double)all->cost[i] / pow((1 << (int)bits[i]) - 1, 2);
    return sum;
}

static double taken_by(const items *all, const float *bits, size_t count) {
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (double)(all->weight[i] * bits[i]);
    return sum;
}

/* The least noise of all 8^count ways that keep to the budget; INFINITY: none does. */
static double least_noise(const items *all, size_t count, double budget) {
    double least = INFINITY;
    for (unsigned way = 0; way < 1u << 3 * count; way++) {
        float bits[MOST];
        for (size_t i = 0; i < count; i++)
            bits[i] = (float)(1 + (way >> 3 * i & 7));
        if (taken_by(all, bits, count) <= budget)
            least = fmin(least, noise_of(all, bits, count));
    }
    return least;
}

static items items_from(uint64_t seed, size_t count, int weighted) {
    const dv_random key = dv_random_key(&seed, 1);
    items all = {0};
    for (uint32_t i = 0; i < count; i++) {
        all.cost[i] = exp2f((float)(dv_random_word(key, 2 * i) >> 24) / 16 - 8);
        all.weight[i] = weighted ? (float)(1 + dv_random_word(key, 2 * i + 1) % 4) : 1;
    }
    return all;
}

/* The best of all where weights are alike; with weights the last step can be too large, and never more than what an
 * item less would give. */
static void as_good_as_any(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        size_t count = 2 + seed % 3;
        int weighted = seed % 2 == 1;
        items all = items_from(seed, count, weighted);
        double weights = taken_by(&all, (const float[]){1, 1, 1, 1, 1}, count),
               budget = floor(weights * (1.5 + (double)(seed % 5)));
        share(&all, count, budget);
        double found = noise_of(&all, all.bits, count), best = least_noise(&all, count, budget);
        assert_true(taken_by(&all, all.bits, count) <= budget);
        assert_true(found >= best * (1 - 1e-9));
        double allowed =
            weighted ? least_noise(&all, count, budget - 3) : best; /* a weight of 4, less the 1 it is for */
        if (!(found <= allowed * (1 + 1e-9)))
            fail_msg("seed %d: noise %g, and %g at best", (int)seed, found, best);
    }
}

static void items_that_are_alike_get_the_same(void **state) {
    (void)state;
    for (int cost = 0; cost < 2; cost++) {
        items all = {0};
        for (size_t i = 0; i < MOST; i++)
            all.cost[i] = (float)cost, all.weight[i] = 1;
        share(&all, MOST, 2 * MOST);
        for (size_t i = 0; i < MOST; i++)
            assert_true(all.bits[i] == 2);
    }
}

static void bounds(void **state) {
    (void)state;
    items all = items_from(3, MOST, 0);
    share(&all, MOST, 0); /* not to be had: one bit each */
    for (size_t i = 0; i < MOST; i++)
        assert_true(all.bits[i] == 1);
    share(&all, MOST, 1000);
    for (size_t i = 0; i < MOST; i++)
        assert_true(all.bits[i] == 8);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_good_as_any),
        cmocka_unit_test(items_that_are_alike_get_the_same),
        cmocka_unit_test(bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
