/* The part of template.h for bf16 with channels last: two channels to a word.
 *
 * A word of two bf16 becomes two f32 by a shift and a mask, one vector operation each, and two fixed-point numbers go
 * back into a word likewise. Nothing moves from lane to lane, which is what conversions of 16 to 32 bits cost. So
 * statistics, averages and scales of a tile are in split order here: those of even channels first, then those of odd
 * ones. On a little-endian machine the even channel is the lower half. */

typedef uint32_t pair __attribute__((aligned(2), may_alias));

INLINE float even_of(pair both) {
    return dv_bits_float(both << 16);
}

INLINE float odd_of(pair both) {
    return dv_bits_float(both & 0xffff0000);
}

/* Adds one of two channels, of `items` pixels `stride` words apart, to the `half` columns from `first` on. `items` and
 * `odd` are constants. */
INLINE void columns_add_half(columns *all, size_t first, const pair *restrict x, size_t stride, size_t items,
                             size_t half, bool odd) {
    float *restrict sums = all->sum + first, *restrict minima = all->minimum + first,
                    *restrict maxima = all->maximum + first;
    for (size_t i = 0; i < half; i++) {
        float sum = sums[i], minimum = minima[i], maximum = maxima[i];
        for (size_t j = 0; j < items; j++) {
            float value = odd ? odd_of(x[j * stride + i]) : even_of(x[j * stride + i]);
            sum += value;
            minimum = smaller(value, minimum);
            maximum = larger(value, maximum);
        }
        sums[i] = sum;
        minima[i] = minimum;
        maxima[i] = maximum;
    }
}

/* Adds `items` pixels of 2 x `half` channels to columns in split order. `items` is a constant. */
INLINE void columns_add_pair_items(columns *all, size_t first, const pair *x, size_t stride, size_t items,
                                   size_t half) {
    columns_add_half(all, first, x, stride, items, half, false);
    columns_add_half(all, first + half, x, stride, items, half, true);
}

LOOP void columns_add_pairs(columns *all, size_t first, const pair *x, size_t stride, size_t items, size_t half) {
    for (; items >= DV_GROUP; items -= DV_GROUP, x += DV_GROUP * stride)
        columns_add_pair_items(all, first, x, stride, DV_GROUP, half);
    switch (items) { /* as in columns_add */
    case 7:
        columns_add_pair_items(all, first, x, stride, 7, half);
        break;
    case 6:
        columns_add_pair_items(all, first, x, stride, 6, half);
        break;
    case 4:
        columns_add_pair_items(all, first, x, stride, 4, half);
        break;
    default:
        for (; items > 0; items--, x += stride)
            columns_add_pair_items(all, first, x, stride, 1, half);
    }
}

/* Numbers in split order to that of the channels. */
static void interleave(const uint16_t *restrict split, size_t half, uint16_t *restrict to) {
    for (size_t i = 0; i < half; i++) {
        to[2 * i] = split[i];
        to[2 * i + 1] = split[half + i];
    }
}

/* A number for each element of a run. */
typedef struct halved {
    ALIGNED float even[DV_RUN / 2], odd[DV_RUN / 2];
} halved;

/* From those of a pixel in split order, for `times` pixels. */
static void halve(const float *split, size_t half, size_t times, halved *to) {
    memcpy(to->even, split, half * sizeof *split);
    memcpy(to->odd, split + half, half * sizeof *split);
    repeat(to->even, half, times);
    repeat(to->odd, half, times);
}

/* The same of averages in the order of the channels, from element `at` on. */
static void halve_averages(const uint16_t *averages, size_t half, size_t times, size_t at, halved *to) {
    const pair *both = (const pair *)averages;
    for (size_t i = 0; i < half; i++) {
        to->even[at + i] = even_of(both[i]);
        to->odd[at + i] = odd_of(both[i]);
    }
    repeat(to->even + at, half, times);
    repeat(to->odd + at, half, times);
}

/* quantize, of rows of `half` words that are `stride` words apart. */
LOOP void quantize_pairs(const pair *restrict x, size_t stride, size_t rows, size_t half, const halved *restrict low,
                         const halved *restrict offset, const halved *restrict scale, pair *restrict fixed) {
    for (size_t j = 0; j < rows; j++, x += stride, fixed += half)
        UNROLL for (size_t i = 0; i < half; i++) {
            float even = (even_of(x[i]) - low->even[i] - offset->even[i]) * scale->even[i];
            float odd = (odd_of(x[i]) - low->odd[i] - offset->odd[i]) * scale->odd[i];
            fixed[i] = ((uint32_t)(int32_t)even & 0xffff) | (uint32_t)(int32_t)odd << 16;
        }
}
