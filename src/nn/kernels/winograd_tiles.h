/* Tiles and weights to points and back, a vector of channels at a time: along both sides by the same transform in one
 * variable, which the file that includes this has. Lanes are channels everywhere, so that nothing is shuffled. */
#ifndef DV_NN_KERNELS_WINOGRAD_TILES_H
#define DV_NN_KERNELS_WINOGRAD_TILES_H

#include "nn/kernels/winograd.h"
#include "nn/kernels/winograd_lanes.h"

enum { KERNEL = 3, PANEL = DV_WINOGRAD_PANEL, SIDE = DV_WINOGRAD_SIDE, MOST = DV_WINOGRAD_MOST_SIDE };

/* A transform in one variable. It is a constant wherever it is given, and so are the numbers of what it takes and
 * makes. */
typedef void (*line_transform)(const lanes *x, lanes *y);

/* ---- tiles ---------------------------------------------------------------------------------- */

ALWAYS bool is_whole(const dv_winograd_pixels *pixels, int side) {
    return pixels->top == 0 && pixels->left == 0 && pixels->bottom == side && pixels->right == side;
}

ALWAYS bool has_pixel(const dv_winograd_pixels *pixels, int i, int j) {
    return i >= pixels->top && i < pixels->bottom && j >= pixels->left && j < pixels->right;
}

/* The place of line `line` in a walk over lines that are `stride` bytes apart. It keeps the compiler from finding all
 * of a tile's addresses beforehand: it has no registers for so many. */
ALWAYS const char *step_bytes(const char *pointer, int line, size_t stride) {
    pointer += line > 0 ? stride : 0;
    __asm__("" : "+r"(pointer));
    return pointer;
}

/* ... `stride` floats apart. */
ALWAYS const float *step(const float *pointer, int line, size_t stride) {
    return (const void *)step_bytes((const char *)pointer, line, stride * sizeof(float));
}

ALWAYS size_t bytes_of(dv_type type) {
    return type == DV_F32 ? sizeof(float) : sizeof(uint16_t);
}

/* Lanes of the pixels of line `i`, those that the tile does not have as zeros. */
ALWAYS void load_line(const dv_winograd_pixels *pixels, dv_type type, const char *line, int i, int side, bool whole,
                      lanes *x) {
    size_t pixel = pixels->pixel * bytes_of(type);
    for (int j = 0; j < side; j++)
        x[j] = whole || has_pixel(pixels, i, j) ? load_typed(type, line + (size_t)j * pixel) : all(0);
}

/* tile_to_points for a tile that is whole, or for one at an edge, of pixels of a type: both are constants. */
ALWAYS void read_tile(const dv_winograd_pixels *pixels, dv_type type, bool whole, int from, int to, line_transform line,
                      size_t channels, float *points, size_t stride, size_t panel_stride) {
    for (size_t c = 0; c < channels; c += LANES) {
        lanes lines[MOST][MOST];
        const char *src = (const char *)pixels->data + c * bytes_of(type);
        for (int i = 0; i < from; i++) {
            lanes x[MOST];
            src = step_bytes(src, i, pixels->row * bytes_of(type));
            load_line(pixels, type, src, i, from, whole, x);
            line(x, lines[i]);
        }
        float *dst = points + c / PANEL * panel_stride + c % PANEL;
        for (int j = 0; j < to; j++) {
            lanes x[MOST], y[MOST];
            dst = (float *)step(dst, j, stride);
            for (int i = 0; i < from; i++)
                x[i] = lines[i][j];
            line(x, y);
            for (int i = 0; i < to; i++)
                store(dst + (size_t)(i * to) * stride, y[i]);
        }
    }
}

/* `from` pixels along a side to `to` points. */
ALWAYS void tile_to_points(const dv_winograd_pixels *pixels, int from, int to, line_transform line, size_t channels,
                           float *points, size_t stride, size_t panel_stride) {
    bool whole = is_whole(pixels, from);
    if (pixels->type == DV_F32 && whole)
        read_tile(pixels, DV_F32, true, from, to, line, channels, points, stride, panel_stride);
    else if (pixels->type == DV_F32)
        read_tile(pixels, DV_F32, false, from, to, line, channels, points, stride, panel_stride);
    else if (whole)
        read_tile(pixels, DV_BF16, true, from, to, line, channels, points, stride, panel_stride);
    else
        read_tile(pixels, DV_BF16, false, from, to, line, channels, points, stride, panel_stride);
}

/* points_to_tile, likewise. */
ALWAYS void write_tile(const float *points, size_t stride, size_t channels, const float *bias,
                       const dv_winograd_pixels *pixels, dv_type type, bool whole, int from, int to,
                       line_transform line) {
    for (size_t c = 0; c < channels; c += LANES) {
        lanes columns[MOST][MOST], added = bias ? load(bias + c) : all(0);
        const float *src = points + c;
        for (int j = 0; j < from; j++) {
            lanes x[MOST], y[MOST];
            src = step(src, j, stride);
            for (int i = 0; i < from; i++)
                x[i] = load(src + (size_t)(i * from) * stride);
            line(x, y);
            for (int i = 0; i < to; i++)
                columns[i][j] = y[i];
        }
        char *dst = (char *)pixels->data + c * bytes_of(type);
        for (int i = 0; i < to; i++) {
            lanes y[MOST];
            dst = (char *)step_bytes(dst, i, pixels->row * bytes_of(type));
            line(columns[i], y);
            for (int j = 0; j < to; j++)
                if (whole || has_pixel(pixels, i, j))
                    store_typed(type, dst + (size_t)j * pixels->pixel * bytes_of(type), add(y[j], added));
        }
    }
}

/* The other way, `from` points to `to` pixels, to which the bias is added. */
ALWAYS void points_to_tile(const float *points, size_t stride, size_t channels, const float *bias,
                           const dv_winograd_pixels *pixels, int from, int to, line_transform line) {
    bool whole = is_whole(pixels, to);
    if (pixels->type == DV_F32 && whole)
        write_tile(points, stride, channels, bias, pixels, DV_F32, true, from, to, line);
    else if (pixels->type == DV_F32)
        write_tile(points, stride, channels, bias, pixels, DV_F32, false, from, to, line);
    else if (whole)
        write_tile(points, stride, channels, bias, pixels, DV_BF16, true, from, to, line);
    else
        write_tile(points, stride, channels, bias, pixels, DV_BF16, false, from, to, line);
}

/* ---- weights -------------------------------------------------------------------------------- */

/* Where a layout has weight `w` of 3x3. */
ALWAYS int place_of(const dv_winograd_weights *layout, int w) {
    return layout->turned ? KERNEL * KERNEL - 1 - w : w;
}

/* The weights of a panel's row to points, each times what its point has along both sides. */
ALWAYS void weights_to_points(const float *plain, const dv_winograd_weights *layout, const float *scales,
                              line_transform line, float *panel, size_t stride) {
    float square[KERNEL * KERNEL][PANEL];
    for (int w = 0; w < KERNEL * KERNEL; w++)
        for (int column = 0; column < PANEL; column++)
            square[w][column] = plain[column * layout->column_stride + place_of(layout, w)];
    for (int c = 0; c < PANEL; c += LANES) {
        lanes rows[KERNEL][SIDE];
        for (int i = 0; i < KERNEL; i++) {
            lanes x[KERNEL];
            for (int j = 0; j < KERNEL; j++)
                x[j] = load(square[i * KERNEL + j] + c);
            line(x, rows[i]);
        }
        for (int j = 0; j < SIDE; j++) {
            lanes x[KERNEL], y[SIDE];
            for (int i = 0; i < KERNEL; i++)
                x[i] = rows[i][j];
            line(x, y);
            for (int i = 0; i < SIDE; i++)
                store(panel + (size_t)(i * SIDE + j) * stride + c, times(y[i], scales[i] * scales[j]));
        }
    }
}

/* The other way, of a gradient: adds to it. */
ALWAYS void points_to_weights(const float *panel, size_t stride, const dv_winograd_weights *layout, const float *scales,
                              line_transform line, float *plain) {
    float square[KERNEL * KERNEL][PANEL];
    for (int c = 0; c < PANEL; c += LANES) {
        lanes rows[SIDE][KERNEL];
        for (int i = 0; i < SIDE; i++) {
            lanes x[SIDE];
            for (int j = 0; j < SIDE; j++)
                x[j] = times(load(panel + (size_t)(i * SIDE + j) * stride + c), scales[i] * scales[j]);
            line(x, rows[i]);
        }
        for (int j = 0; j < KERNEL; j++) {
            lanes x[SIDE], y[KERNEL];
            for (int i = 0; i < SIDE; i++)
                x[i] = rows[i][j];
            line(x, y);
            for (int i = 0; i < KERNEL; i++)
                store(square[i * KERNEL + j] + c, y[i]);
        }
    }
    for (int column = 0; column < PANEL; column++)
        for (int w = 0; w < KERNEL * KERNEL; w++)
            plain[column * layout->column_stride + place_of(layout, w)] += square[w][column];
}

#endif
