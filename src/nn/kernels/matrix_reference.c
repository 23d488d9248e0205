/* Tiles in plain C: what the kernels compute, to be read, and to be tested against. */
#include "base/float16.h"
#include "nn/kernels/matrix.h"

#include <stdbool.h>
#include <string.h>

static void nothing(void) {}

static uint16_t channel_at(const uint16_t *data, const dv_matrix_pixels *pixels, size_t pixel, size_t channel) {
    return data && channel < pixels->channels ? data[pixel * pixels->stride + channel] : 0;
}

static void spread(const dv_matrix_pixels *pixels, const dv_matrix_lanes *lanes) {
    for (size_t p = 0; p < pixels->count; p++)
        for (size_t first = 0; first < pixels->channels; first += DV_MATRIX_DEPTH) {
            uint16_t *lane = lanes->data + first / DV_MATRIX_DEPTH * lanes->block + p * lanes->stride;
            for (size_t c = 0; c < DV_MATRIX_DEPTH; c++)
                lane[c] = channel_at(pixels->data, pixels, p, first + c);
        }
}

static void pair(const dv_matrix_pixels *pixels, const uint16_t *second, const dv_matrix_lanes *lanes) {
    for (size_t p = 0; p < pixels->count; p++)
        for (size_t first = 0; first < pixels->channels; first += DV_MATRIX_SIDE) {
            uint16_t *lane = lanes->data + first / DV_MATRIX_SIDE * lanes->block + p * lanes->stride;
            for (size_t c = 0; c < DV_MATRIX_SIDE; c++) {
                lane[2 * c] = channel_at(pixels->data, pixels, p, first + c);
                lane[2 * c + 1] = channel_at(second, pixels, p, first + c);
            }
        }
}

static void turn(uint16_t *tiles, size_t count) {
    for (uint16_t *tile = tiles; tile < tiles + count * DV_MATRIX_ELEMENTS; tile += DV_MATRIX_ELEMENTS) {
        uint16_t turned[DV_MATRIX_ELEMENTS];
        for (size_t lane = 0; lane < DV_MATRIX_DEPTH; lane++)
            for (size_t c = 0; c < DV_MATRIX_SIDE; c++)
                turned[c * DV_MATRIX_DEPTH + lane] = tile[lane / 2 * DV_MATRIX_DEPTH + 2 * c + lane % 2];
        memcpy(tile, turned, sizeof turned);
    }
}

static void pack(const float *weights, const dv_matrix_plain *plain, uint16_t *tile) {
    for (size_t k = 0; k < DV_MATRIX_DEPTH; k++)
        for (size_t n = 0; n < DV_MATRIX_SIDE; n++) {
            bool there = k < plain->from_channels && n < plain->to_channels;
            tile[k / 2 * DV_MATRIX_DEPTH + 2 * n + k % 2] =
                there ? dv_bf16_nearest(weights[k * plain->from_stride + n * plain->to_stride]) : 0;
        }
}

/* sums[r * stride + c] += sum over k of left[r][k] right[k / 2][c][k % 2], all of a tile. */
static void add_tiles(const uint16_t *left, const uint16_t *right, float *sums, size_t stride) {
    for (size_t r = 0; r < DV_MATRIX_SIDE; r++)
        for (size_t c = 0; c < DV_MATRIX_SIDE; c++)
            for (size_t k = 0; k < DV_MATRIX_DEPTH; k++)
                sums[r * stride + c] += dv_bf16_to_f32(left[r * DV_MATRIX_DEPTH + k]) *
                                        dv_bf16_to_f32(right[k / 2 * DV_MATRIX_DEPTH + 2 * c + k % 2]);
}

static void multiply(const dv_matrix_product *product, size_t lane, size_t columns, float *sums) {
    memset(sums, 0, DV_MATRIX_SQUARE * DV_MATRIX_SQUARE * sizeof *sums);
    for (size_t t = 0; t < product->tap_count; t++)
        for (size_t b = 0; b < product->blocks; b++)
            for (size_t r = 0; r < 2; r++)
                for (size_t c = 0; c < columns; c++)
                    add_tiles(product->taps[t].line + b * product->line_block +
                                  (lane + r * DV_MATRIX_SIDE) * DV_MATRIX_DEPTH,
                              product->taps[t].weights + b * product->weights_block + c * DV_MATRIX_ELEMENTS,
                              sums + r * DV_MATRIX_SIDE * DV_MATRIX_SQUARE + c * DV_MATRIX_SIDE, DV_MATRIX_SQUARE);
}

static void store(const float *sums, size_t lane, const dv_matrix_target *target) {
    for (size_t i = 0; i < DV_MATRIX_SQUARE; i++, sums += DV_MATRIX_SQUARE) {
        size_t pixel = (lane + i) / target->lanes_per_pixel, image = (lane + i) % target->lanes_per_pixel;
        if (pixel >= target->pixels || image >= target->images)
            continue;
        uint16_t *to = target->data + image * target->image_stride + pixel * target->pixel_stride;
        for (size_t c = 0; c < target->channels; c++)
            to[c] = dv_bf16_nearest(target->bias ? sums[c] + target->bias[c] : sums[c]);
    }
}

static void multiply_add(const dv_matrix_meeting *meetings, size_t count, size_t chunks, const size_t block[2],
                         size_t rows, size_t columns, float *sums, size_t sums_row) {
    for (size_t m = 0; m < count; m++)
        for (size_t i = 0; i < chunks * DV_MATRIX_ELEMENTS; i += DV_MATRIX_ELEMENTS)
            for (size_t r = 0; r < rows; r++)
                for (size_t c = 0; c < columns; c++)
                    add_tiles(meetings[m].turned + r * block[0] + i, meetings[m].pairs + c * block[1] + i,
                              sums + r * sums_row + c * DV_MATRIX_SUMS, DV_MATRIX_SIDE);
}

static void add(const float *sums, const dv_matrix_plain *plain, float *gradient) {
    for (size_t r = 0; r < plain->to_channels; r++)
        for (size_t c = 0; c < plain->from_channels; c++)
            gradient[r * plain->to_stride + c * plain->from_stride] += sums[r * DV_MATRIX_SIDE + c];
}

const dv_matrix_kernels dv_matrix_reference = {
    .name = "matrix:reference",
    .begin = nothing,
    .end = nothing,
    .spread = spread,
    .pair = pair,
    .turn = turn,
    .pack = pack,
    .multiply = multiply,
    .store = store,
    .multiply_add = multiply_add,
    .add = add,
};
