/* The inner loops of the layers that are not matrix products, one table of functions per instruction set.
 *
 * Layers cut a batch into parts, hand them to threads and combine their sums; the kernels below do one part
 * of one image, on one thread. Elements are f32 or bf16, channels last; arithmetic is f32. All tables give
 * the same bits: elementwise_reference.c says plainly what they compute.
 *
 * Kernels that take a dv_span go through an image by chunks of DV_CHUNK elements, wherever pixels begin. What
 * belongs to a channel is in extended arrays of channels + DV_CHUNK entries, P[i] = p[i mod channels]: the
 * chunk that starts at channel c reads P + c onwards without a break, however many channels there are. Sums
 * per channel go into extended arrays the same way, and are folded together later.
 *
 * Masks are in the order of the `bits` codec (codec/kernels/kernels.h). */
#ifndef DV_NN_KERNELS_ELEMENTWISE_H
#define DV_NN_KERNELS_ELEMENTWISE_H

#include "base/random.h"
#include "codec/kernels/kernels.h"

/* Elements begin .. end - 1 of an image; pointers that go with it are to the image's first element (or
 * byte of a mask). `begin` is a multiple of DV_CHUNK, and so is `end` unless the image ends there. */
typedef struct dv_span {
    dv_type type;
    size_t channels;
    size_t begin, end;
} dv_span;

static inline size_t dv_extended(size_t channels) {
    return channels + DV_CHUNK;
}

/* A pixel that takes part in a window. */
typedef struct dv_tap {
    size_t pixel; /* of the image */
    float weight; /* average: what it is multiplied with */
    uint8_t code; /* maximum: its number in the window */
} dv_tap;

/* Bytes of one pixel's winners: a stream of codes, `bits` each, in the order of its channels. */
static inline size_t dv_winner_bytes(size_t channels, int bits) {
    return dv_stream_bytes(channels, bits);
}

/* Per channel, extended. The gradient of batch norm's input is
 * diff * scale + (x - mean) * slope + offset. */
typedef struct dv_normalize_diff {
    const float *mean, *scale, *slope, *offset;
} dv_normalize_diff;

typedef struct dv_elementwise_kernels {
    /* sums += x - shift, squares += (x - shift)^2; shift, sums, squares extended. */
    void (*statistics)(const dv_span *span, const void *x, const float *shift, float *sums, float *squares);

    /* out = (x - mean) * scale + bias (+ addend, if not NULL), negatives to zero if relu; the mask of where out is
     * positive, if not NULL. mean, scale, bias extended. out may be x or addend. NaN stays NaN. */
    void (*normalize)(const dv_span *span, const void *x, const void *addend, const float *mean, const float *scale,
                      const float *bias, bool relu, void *out, uint8_t *mask);

    /* The same again from an x that has noise: nothing is compared with zero, but out = 0 where a bit is not set (if
     * mask is not NULL). */
    void (*normalize_again)(const dv_span *span, const void *x, const void *addend, const float *mean,
                            const float *scale, const float *bias, const uint8_t *mask, void *out);

    /* sums += dz, products += dz * (x - mean), where dz is diff, or 0 where a bit is not set (if mask is not
     * NULL). mean, sums, products extended. */
    void (*normalize_sums)(const dv_span *span, const void *diff, const uint8_t *mask, const void *x, const float *mean,
                           float *sums, float *products);

    /* dx (unless NULL) = dz * scale + (x - mean) * slope + offset, and dz itself to `passed` (unless NULL);
     * each added to what is there if its accumulate is set. dx may be x; passed or dx may be diff; passed that
     * accumulates may be dx, where that is not diff. */
    void (*normalize_backward)(const dv_span *span, const void *diff, const uint8_t *mask, const void *x,
                               const dv_normalize_diff *by, void *dx, bool accumulate_dx, void *passed,
                               bool accumulate_passed);

    /* totals[c] += the extended sums of channel c, which become 0. */
    void (*fold)(size_t channels, float *sums, double *totals);

    /* out = x, negatives to zero; the mask of where it is positive, if not NULL. out may be x. NaN stays NaN. */
    void (*rectify)(const dv_span *span, const void *x, void *out, uint8_t *mask);

    /* out = x, negatives times slope; the mask of where it is positive, if not NULL. out may be x. NaN stays NaN. */
    void (*leak)(const dv_span *span, const void *x, float slope, void *out, uint8_t *mask);

    /* out = x where a bit is set, else x * slope; added to what is there if accumulate. out may be x. */
    void (*leak_backward)(const dv_span *span, const void *x, const uint8_t *mask, float slope, bool accumulate,
                          void *out);

    /* out = x * scale where a bit is set, else 0; added to what is there if accumulate. out may be x. */
    void (*apply_mask)(const dv_span *span, const void *x, const uint8_t *mask, float scale, bool accumulate,
                       void *out);

    /* out = x * scale where the image's random word of the element is at least `threshold`, else 0; the mask
     * of where it is. out may be x. */
    void (*dropout)(const dv_span *span, dv_random key, uint32_t threshold, float scale, const void *x, void *out,
                    uint8_t *mask);

    /* out = the sum of `count` inputs, rounded once. out may be any of them. */
    void (*add)(const dv_span *span, const void *const *inputs, size_t count, void *out);

    /* Copies, or adds, `rows` rows of `width` elements, `from` and `to` elements apart. */
    void (*copy)(dv_type type, const void *src, size_t from, void *dst, size_t to, size_t rows, size_t width,
                 bool accumulate);

    /* Converts `count` numbers; adds them to what is there if accumulate. */
    void (*from_f32)(dv_type type, const float *src, size_t count, bool accumulate, void *dst);

    /* sums[c] += column c of [rows][columns], in f32 by groups of rows, in double among groups. */
    void (*sum_rows)(dv_type type, const void *x, size_t rows, size_t columns, double *sums);

    /* out[c] = the mean over `pixels` of x[.][c]. */
    void (*average_pixels)(dv_type type, const void *x, size_t pixels, size_t channels, void *out);

    /* out[c] = sum of the taps' pixels of `image` times their weights; added if accumulate. */
    void (*average_taps)(dv_type type, const void *image, const dv_tap *taps, size_t count, size_t channels,
                         bool accumulate, void *out);

    /* out[c] = largest of the taps' pixels of `image`, the first of equals, the last NaN if there is one; its
     * code to `winners` (unless NULL), `bits` each (4 or 8). count >= 1. */
    void (*max_taps)(dv_type type, const void *image, const dv_tap *taps, size_t count, size_t channels, int bits,
                     void *out, uint8_t *winners);

    /* dx[c] = sum over the taps of diff[pixel][c] where the winner there is the tap's code; added if accumulate.
     * winners: dv_winner_bytes for each pixel of diff. */
    void (*max_taps_backward)(dv_type type, const void *diff, const uint8_t *winners, const dv_tap *taps, size_t count,
                              size_t channels, int bits, bool accumulate, void *dx);
} dv_elementwise_kernels;

/* Rows that are summed in f32 before the sum goes on in higher precision. */
enum { DV_ROW_GROUP = 64 };

extern const dv_elementwise_kernels dv_elementwise_reference;
extern const dv_elementwise_kernels dv_elementwise_baseline; /* SSE2 or NEON */
extern const dv_elementwise_kernels dv_elementwise_avx2;
extern const dv_elementwise_kernels dv_elementwise_avx512;

/* The table for the instruction set in use. */
const dv_elementwise_kernels *dv_elementwise(void);

#endif
