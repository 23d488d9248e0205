/* Sums of squares in a fixed order: parts of the array that depend on its length alone, in each of them as many sums
 * side by side as make vectors. */
#include "optimizer/clip.h"

#include "base/sizes.h"

enum { PARTS = 64, LANES = 8, LEAST = 1 << 12 };

static double sum_of_part(const float *x, size_t count) {
    double lanes[LANES] = {0}, sum = 0;
    size_t whole = count / LANES * LANES;
    for (size_t i = 0; i < whole; i += LANES)
#pragma omp simd
        for (size_t k = 0; k < LANES; k++)
            lanes[k] += (double)x[i + k] * x[i + k];
    for (size_t i = whole; i < count; i++)
        lanes[i - whole] += (double)x[i] * x[i];
    for (size_t k = 0; k < LANES; k++)
        sum += lanes[k];
    return sum;
}

double dv_sum_of_squares(const float *x, size_t count) {
    double sums[PARTS] = {0}, sum = 0;
    size_t part = dv_larger(dv_divide_up(count, PARTS), LEAST), parts = dv_divide_up(count, part);
#pragma omp parallel for schedule(static) if (parts > 1)
    for (size_t k = 0; k < parts; k++)
        sums[k] = sum_of_part(x + k * part, dv_smaller(part, count - k * part));
    for (size_t k = 0; k < parts; k++)
        sum += sums[k];
    return sum;
}
