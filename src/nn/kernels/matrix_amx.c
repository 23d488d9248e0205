/* Tiles on AMX, with AVX-512 around them. matrix_reference.c says what each function computes; the processor takes
 * subnormals for zeros while it multiplies and adds.
 *
 * gcc's intrinsics do not tell the compiler which memory a tile is loaded from. What is loaded must have been written
 * by another function, or by a tile: not by a plain store just before. */
#include "nn/kernels/matrix.h"

#include <immintrin.h>

enum { ROW_BYTES = 64 };

/* Every tile is 16 rows of 64 bytes. Numbers 0 to 3 are sums, 4 and 5 the left factors, 6 and 7 the right ones. A
 * constant, for the same reason. */
static const struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} shape = {
    .palette = 1,
    .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
    .rows = {16, 16, 16, 16, 16, 16, 16, 16},
};

static void begin(void) {
    _tile_loadconfig(&shape);
}

static void end(void) {
    _tile_release();
}

/* ---- to lanes ------------------------------------------------------------------------------- */

/* The first `count` of `width` channels. */
static inline uint32_t first_of(size_t count, size_t width) {
    return (uint32_t)((UINT64_C(1) << (count < width ? count : width)) - 1);
}

static void spread(const dv_matrix_pixels *pixels, const dv_matrix_lanes *lanes) {
    for (size_t p = 0; p < pixels->count; p++)
        for (size_t first = 0; first < pixels->channels; first += DV_MATRIX_DEPTH) {
            uint16_t *lane = lanes->data + first / DV_MATRIX_DEPTH * lanes->block + p * lanes->stride;
            __m512i channels = _mm512_setzero_si512();
            if (pixels->data)
                channels = _mm512_maskz_loadu_epi16(first_of(pixels->channels - first, DV_MATRIX_DEPTH),
                                                    pixels->data + p * pixels->stride + first);
            _mm512_store_si512(lane, channels);
        }
}

static inline __m512i sixteen_of(const uint16_t *data, size_t count) {
    if (!data)
        return _mm512_setzero_si512();
    return _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16((__mmask16)first_of(count, DV_MATRIX_SIDE), data));
}

static void pair(const dv_matrix_pixels *pixels, const uint16_t *second, const dv_matrix_lanes *lanes) {
    for (size_t p = 0; p < pixels->count; p++)
        for (size_t first = 0; first < pixels->channels; first += DV_MATRIX_SIDE) {
            uint16_t *lane = lanes->data + first / DV_MATRIX_SIDE * lanes->block + p * lanes->stride;
            size_t at = p * pixels->stride + first, count = pixels->channels - first;
            __m512i low = sixteen_of(pixels->data ? pixels->data + at : NULL, count);
            __m512i high = sixteen_of(second ? second + at : NULL, count);
            _mm512_store_si512(lane, _mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
        }
}

/* Transposes 16 x 16 pairs: pairs of rows, of pairs, of fours, of eights. */
static void turn_tile(uint16_t *tile) {
    __m512i a[DV_MATRIX_SIDE], b[DV_MATRIX_SIDE];
    for (int i = 0; i < 16; i++)
        a[i] = _mm512_load_si512(tile + i * DV_MATRIX_DEPTH);
    for (int i = 0; i < 16; i += 2) {
        b[i] = _mm512_unpacklo_epi32(a[i], a[i + 1]);
        b[i + 1] = _mm512_unpackhi_epi32(a[i], a[i + 1]);
    }
    for (int i = 0; i < 16; i += 4)
        for (int j = 0; j < 2; j++) {
            a[i + 2 * j] = _mm512_unpacklo_epi64(b[i + j], b[i + j + 2]);
            a[i + 2 * j + 1] = _mm512_unpackhi_epi64(b[i + j], b[i + j + 2]);
        }
    for (int i = 0; i < 16; i += 8)
        for (int j = 0; j < 4; j++) {
            b[i + j] = _mm512_shuffle_i32x4(a[i + j], a[i + j + 4], 0x88);
            b[i + j + 4] = _mm512_shuffle_i32x4(a[i + j], a[i + j + 4], 0xdd);
        }
    for (int j = 0; j < 8; j++) {
        a[j] = _mm512_shuffle_i32x4(b[j], b[j + 8], 0x88);
        a[j + 8] = _mm512_shuffle_i32x4(b[j], b[j + 8], 0xdd);
    }
    for (int i = 0; i < 16; i++)
        _mm512_store_si512(tile + i * DV_MATRIX_DEPTH, a[i]);
}

static void turn(uint16_t *tiles, size_t count) {
    for (size_t i = 0; i < count; i++)
        turn_tile(tiles + i * DV_MATRIX_ELEMENTS);
}

/* ---- weights -------------------------------------------------------------------------------- */

/* To the nearest, ties to even, as dv_bf16_nearest; the processor's own instruction would make subnormals zeros. */
static inline __m512i round_to_bf16(__m512 values) {
    __m512i bits = _mm512_castps_si512(values), one = _mm512_set1_epi32(1);
    __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), one);
    __m512i nearest = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
    return _mm512_mask_mov_epi32(nearest, _mm512_cmp_ps_mask(values, values, _CMP_UNORD_Q), quiet);
}

/* Offsets of sixteen neighbouring channels. */
static inline __m512i sixteen_offsets(size_t stride) {
    const __m512i each = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    return _mm512_mullo_epi32(each, _mm512_set1_epi32((int)stride));
}

static inline __m512 gather(const float *data, __m512i offsets, __mmask16 mask) {
    return _mm512_mask_i32gather_ps(_mm512_setzero_ps(), mask, offsets, data, sizeof *data);
}

static void pack(const float *weights, const dv_matrix_plain *plain, uint16_t *tile) {
    __mmask16 mask = (__mmask16)first_of(plain->to_channels, DV_MATRIX_SIDE);
    __m512i offsets = sixteen_offsets(plain->to_stride);
    for (size_t k = 0; k < DV_MATRIX_DEPTH; k += 2, tile += DV_MATRIX_DEPTH) {
        const float *channel = weights + k * plain->from_stride;
        __m512 low = _mm512_setzero_ps(), high = _mm512_setzero_ps();
        if (k < plain->from_channels)
            low = gather(channel, offsets, mask);
        if (k + 1 < plain->from_channels)
            high = gather(channel + plain->from_stride, offsets, mask);
        _mm512_store_si512(
            tile, _mm512_mask_blend_epi16(0xaaaaaaaa, _mm512_srli_epi32(round_to_bf16(low), 16), round_to_bf16(high)));
    }
}

/* ---- forward and backward data -------------------------------------------------------------- */

static void multiply(const dv_matrix_product *product, size_t lane, size_t columns, float *sums) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (size_t t = 0; t < product->tap_count; t++) {
        const uint16_t *line = product->taps[t].line + lane * DV_MATRIX_DEPTH, *weights = product->taps[t].weights;
        for (size_t b = 0; b < product->blocks; b++) {
            _tile_loadd(4, line, ROW_BYTES);
            _tile_loadd(5, line + DV_MATRIX_ELEMENTS, ROW_BYTES);
            _tile_loadd(6, weights, ROW_BYTES);
            _tile_dpbf16ps(0, 4, 6);
            _tile_dpbf16ps(2, 5, 6);
            if (columns == 2) {
                _tile_loadd(7, weights + DV_MATRIX_ELEMENTS, ROW_BYTES);
                _tile_dpbf16ps(1, 4, 7);
                _tile_dpbf16ps(3, 5, 7);
            }
            line += product->line_block;
            weights += product->weights_block;
        }
    }
    enum { STRIDE = DV_MATRIX_SQUARE * sizeof(float) };
    _tile_stored(0, sums, STRIDE);
    _tile_stored(1, sums + DV_MATRIX_SIDE, STRIDE);
    _tile_stored(2, sums + DV_MATRIX_SIDE * DV_MATRIX_SQUARE, STRIDE);
    _tile_stored(3, sums + DV_MATRIX_SIDE * DV_MATRIX_SQUARE + DV_MATRIX_SIDE, STRIDE);
}

/* Sixteen channels from `first` on, if the target has them. */
static inline void store_sixteen(const float *sums, size_t first, const dv_matrix_target *target, uint16_t *to) {
    if (first >= target->channels)
        return;
    __mmask16 mask = (__mmask16)first_of(target->channels - first, DV_MATRIX_SIDE);
    __m512 values = _mm512_loadu_ps(sums + first);
    if (target->bias)
        values = _mm512_add_ps(values, _mm512_maskz_loadu_ps(mask, target->bias + first));
    __m512i halves = _mm512_srli_epi32(round_to_bf16(values), 16);
    _mm256_mask_storeu_epi16(to + first, mask, _mm512_cvtepi32_epi16(halves));
}

static void store(const float *sums, size_t lane, const dv_matrix_target *target) {
    size_t pixel = lane / target->lanes_per_pixel, image = lane % target->lanes_per_pixel;
    for (size_t i = 0; i < DV_MATRIX_SQUARE && pixel < target->pixels; i++, sums += DV_MATRIX_SQUARE) {
        if (image < target->images) {
            uint16_t *to = target->data + image * target->image_stride + pixel * target->pixel_stride;
            store_sixteen(sums, 0, target, to);
            store_sixteen(sums, DV_MATRIX_SIDE, target, to);
        }
        if (++image == target->lanes_per_pixel)
            image = 0, pixel++;
    }
}

/* ---- the gradient of weights ---------------------------------------------------------------- */

static void multiply_add(const dv_matrix_meeting *meetings, size_t count, size_t chunks, const size_t block[2],
                         size_t rows, size_t columns, float *sums, size_t sums_row) {
    float *below = sums + sums_row;
    _tile_loadd(0, sums, ROW_BYTES);
    if (columns > 1)
        _tile_loadd(1, sums + DV_MATRIX_SUMS, ROW_BYTES);
    if (rows > 1)
        _tile_loadd(2, below, ROW_BYTES);
    if (rows > 1 && columns > 1)
        _tile_loadd(3, below + DV_MATRIX_SUMS, ROW_BYTES);
    for (size_t m = 0; m < count; m++)
        for (size_t i = 0; i < chunks; i++) {
            const uint16_t *turned = meetings[m].turned + i * DV_MATRIX_ELEMENTS;
            const uint16_t *pairs = meetings[m].pairs + i * DV_MATRIX_ELEMENTS;
            _tile_loadd(4, turned, ROW_BYTES);
            _tile_loadd(6, pairs, ROW_BYTES);
            _tile_dpbf16ps(0, 4, 6);
            if (columns > 1) {
                _tile_loadd(7, pairs + block[1], ROW_BYTES);
                _tile_dpbf16ps(1, 4, 7);
            }
            if (rows > 1) {
                _tile_loadd(5, turned + block[0], ROW_BYTES);
                _tile_dpbf16ps(2, 5, 6);
                if (columns > 1)
                    _tile_dpbf16ps(3, 5, 7);
            }
        }
    _tile_stored(0, sums, ROW_BYTES);
    if (columns > 1)
        _tile_stored(1, sums + DV_MATRIX_SUMS, ROW_BYTES);
    if (rows > 1)
        _tile_stored(2, below, ROW_BYTES);
    if (rows > 1 && columns > 1)
        _tile_stored(3, below + DV_MATRIX_SUMS, ROW_BYTES);
}

static void add(const float *sums, const dv_matrix_plain *plain, float *gradient) {
    __mmask16 mask = (__mmask16)first_of(plain->from_channels, DV_MATRIX_SIDE);
    __m512i offsets = sixteen_offsets(plain->from_stride);
    for (size_t r = 0; r < plain->to_channels; r++, sums += DV_MATRIX_SIDE, gradient += plain->to_stride) {
        __m512 sum = _mm512_add_ps(gather(gradient, offsets, mask), _mm512_loadu_ps(sums));
        _mm512_mask_i32scatter_ps(gradient, mask, offsets, sum, sizeof *gradient);
    }
}

const dv_matrix_kernels dv_matrix_amx = {
    .name = "matrix:amx",
    .begin = begin,
    .end = end,
    .spread = spread,
    .pair = pair,
    .turn = turn,
    .pack = pack,
    .multiply = multiply,
    .store = store,
    .multiply_add = multiply_add,
    .add = add,
};
