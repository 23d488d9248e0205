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

/* What a transform of a tile's lanes is compiled for, all of it constants. */
typedef struct tile_case {
    dv_type type; /* of the pixels */
    bool whole;   /* no pixel of the tile is outside */
    bool full;    /* all lanes are channels */
    int from, to; /* along a side */
    line_transform line;
} tile_case;

/* Lanes of the pixels of line `i`, those that the tile does not have as zeros. */
ALWAYS void load_line(const dv_winograd_pixels *pixels, tile_case is, const char *line, int i, size_t count, lanes *x) {
    size_t pixel = pixels->pixel * bytes_of(is.type);
    for (int j = 0; j < is.from; j++)
        if (!is.whole && !has_pixel(pixels, i, j))
            x[j] = all(0);
        else if (is.full)
            x[j] = load_typed(is.type, line + (size_t)j * pixel);
        else
            x[j] = load_some(is.type, line + (size_t)j * pixel, count);
}

/* The points of `count` channels from c on; what is left of the lanes is zeros. */
ALWAYS void read_lanes(const dv_winograd_pixels *pixels, tile_case is, size_t c, size_t count, float *points,
                       size_t stride, size_t panel_stride) {
    lanes lines[MOST][MOST];
    const char *src = (const char *)pixels->data + c * bytes_of(is.type);
    for (int i = 0; i < is.from; i++) {
        lanes x[MOST];
        src = step_bytes(src, i, pixels->row * bytes_of(is.type));
        load_line(pixels, is, src, i, count, x);
        is.line(x, lines[i]);
    }
    float *dst = points + c / PANEL * panel_stride + c % PANEL;
    for (int j = 0; j < is.to; j++) {
        lanes x[MOST], y[MOST];
        dst = (float *)step(dst, j, stride);
        for (int i = 0; i < is.from; i++)
            x[i] = lines[i][j];
        is.line(x, y);
        for (int i = 0; i < is.to; i++)
            store(dst + (size_t)(i * is.to) * stride, y[i]);
    }
}

/* tile_to_points of a type, a constant. */
ALWAYS void read_tile(const dv_winograd_pixels *pixels, dv_type type, int from, int to, line_transform line,
                      size_t channels, float *points, size_t stride, size_t panel_stride) {
    const tile_case whole = {type, true, true, from, to, line}, edge = {type, false, true, from, to, line},
                    some = {type, false, false, from, to, line};
    size_t c = 0, full = channels / LANES * LANES, end = (channels + PANEL - 1) / PANEL * PANEL;
    if (is_whole(pixels, from))
        for (; c < full; c += LANES)
            read_lanes(pixels, whole, c, LANES, points, stride, panel_stride);
    else
        for (; c < full; c += LANES)
            read_lanes(pixels, edge, c, LANES, points, stride, panel_stride);
    for (; c < end; c += LANES)
        read_lanes(pixels, some, c, c < channels ? channels - c : 0, points, stride, panel_stride);
}

/* `from` pixels along a side to `to` points. */
ALWAYS void tile_to_points(const dv_winograd_pixels *pixels, int from, int to, line_transform line, size_t channels,
                           float *points, size_t stride, size_t panel_stride) {
    if (pixels->type == DV_F32)
        read_tile(pixels, DV_F32, from, to, line, channels, points, stride, panel_stride);
    else
        read_tile(pixels, DV_BF16, from, to, line, channels, points, stride, panel_stride);
}

/* `count` channels from c on of a tile's results. */
ALWAYS void write_lanes(const float *points, size_t stride, const dv_winograd_pixels *pixels, tile_case is, size_t c,
                        size_t count, lanes added) {
    lanes columns[MOST][MOST];
    const float *src = points + c;
    for (int j = 0; j < is.from; j++) {
        lanes x[MOST], y[MOST];
        src = step(src, j, stride);
        for (int i = 0; i < is.from; i++)
            x[i] = load(src + (size_t)(i * is.from) * stride);
        is.line(x, y);
        for (int i = 0; i < is.to; i++)
            columns[i][j] = y[i];
    }
    char *dst = (char *)pixels->data + c * bytes_of(is.type);
    for (int i = 0; i < is.to; i++) {
        lanes y[MOST];
        dst = (char *)step_bytes(dst, i, pixels->row * bytes_of(is.type));
        is.line(columns[i], y);
        for (int j = 0; j < is.to; j++)
            if (is.full && (is.whole || has_pixel(pixels, i, j)))
                store_typed(is.type, dst + (size_t)j * pixels->pixel * bytes_of(is.type), add(y[j], added));
            else if (!is.full && has_pixel(pixels, i, j))
                store_some(is.type, dst + (size_t)j * pixels->pixel * bytes_of(is.type), add(y[j], added), count);
    }
}

/* points_to_tile of a type, a constant. */
ALWAYS void write_tile(const float *points, size_t stride, size_t channels, const float *bias,
                       const dv_winograd_pixels *pixels, dv_type type, int from, int to, line_transform line) {
    const tile_case whole = {type, true, true, from, to, line}, edge = {type, false, true, from, to, line},
                    some = {type, false, false, from, to, line};
    size_t c = 0, full = channels / LANES * LANES;
    if (is_whole(pixels, to))
        for (; c < full; c += LANES)
            write_lanes(points, stride, pixels, whole, c, LANES, bias ? load(bias + c) : all(0));
    else
        for (; c < full; c += LANES)
            write_lanes(points, stride, pixels, edge, c, LANES, bias ? load(bias + c) : all(0));
    if (c < channels)
        write_lanes(points, stride, pixels, some, c, channels - c,
                    bias ? load_some(DV_F32, bias + c, channels - c) : all(0));
}

/* The other way, `from` points to `to` pixels, to which the bias is added. */
ALWAYS void points_to_tile(const float *points, size_t stride, size_t channels, const float *bias,
                           const dv_winograd_pixels *pixels, int from, int to, line_transform line) {
    if (pixels->type == DV_F32)
        write_tile(points, stride, channels, bias, pixels, DV_F32, from, to, line);
    else
        write_tile(points, stride, channels, bias, pixels, DV_BF16, from, to, line);
}

/* ---- weights -------------------------------------------------------------------------------- */

/* Where a layout has weight `w` of 3x3. */
ALWAYS int place_of(const dv_winograd_weights *layout, int w) {
    return layout->turned ? KERNEL * KERNEL - 1 - w : w;
}

/* The weights of a panel's row to points, each times what its point has along both sides. */
ALWAYS void weights_to_points(const float *plain, const dv_winograd_weights *layout, size_t columns,
                              const float *scales, line_transform line, float *panel, size_t stride) {
    float square[KERNEL * KERNEL][PANEL] = {{0}};
    for (int w = 0; w < KERNEL * KERNEL; w++)
        for (size_t column = 0; column < columns; column++)
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
ALWAYS void points_to_weights(const float *panel, size_t stride, const dv_winograd_weights *layout, size_t columns,
                              const float *scales, line_transform line, float *plain) {
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
    for (size_t column = 0; column < columns; column++)
        for (int w = 0; w < KERNEL * KERNEL; w++)
            plain[column * layout->column_stride + place_of(layout, w)] += square[w][column];
}

#endif
