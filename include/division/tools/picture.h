/* Pictures: a canvas of RGB pixels to draw maps, images, boxes and text on, and a PNG file to keep it in.
 *
 *     dv_picture picture;
 *     dv_picture_new(&picture, 640, 480, DV_WHITE, &error);
 *     dv_picture_text(&picture, 8, 8, "input", 2, DV_BLACK);
 *     dv_picture_write(&picture, "map.png", &error);
 *     dv_picture_free(&picture);
 *
 * Coordinates are pixels from the upper left corner. Whatever lies outside the canvas is not drawn. */
#ifndef DIVISION_TOOLS_PICTURE_H
#define DIVISION_TOOLS_PICTURE_H

#include <division/status.h>
#include <division/tools/tool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dv_colour {
    uint8_t red, green, blue;
} dv_colour;

#define DV_BLACK ((dv_colour){0, 0, 0})
#define DV_WHITE ((dv_colour){255, 255, 255})

enum { DV_PICTURE_MAX_SIDE = 32768 };

/* A canvas. */
typedef struct dv_picture {
    size_t width, height;
    dv_colour *pixels; /* [height][width]; owned */
} dv_picture;

/* Makes a canvas of one colour, with sides of 1 to DV_PICTURE_MAX_SIDE. dv_picture_free releases it. */
DV_TOOL dv_status dv_picture_new(dv_picture *picture, size_t width, size_t height, dv_colour colour, dv_error *error);
DV_TOOL void dv_picture_free(dv_picture *picture);

/* Fills a rectangle. */
DV_TOOL void dv_picture_fill(dv_picture *picture, size_t x, size_t y, size_t width, size_t height, dv_colour colour);

/* How a number becomes a colour. */
typedef enum dv_scale {
    DV_SCALE_GREY,      /* low is black, high is white */
    DV_SCALE_DIVERGING, /* low is blue, the middle white, high red: for signed numbers, low = -high */
    DV_SCALE_COUNT
} dv_scale;

/* The colour of `value` between `low` and `high`; values outside have the colour of the nearer end, and
 * NaN is magenta. If low equals high, everything has the middle colour. */
DV_TOOL dv_colour dv_scale_colour(dv_scale scale, float value, float low, float high);

/* A two-dimensional map of numbers to draw. */
typedef struct dv_picture_map {
    const float *values; /* the caller's; the element (x, y) is values[y * stride_y + x * stride_x] */
    size_t width, height;
    size_t stride_x, stride_y;
    size_t zoom_x, zoom_y; /* pixels that an element takes */
    float low, high;       /* the ends of the scale */
    dv_scale scale;
} dv_picture_map;

/* Draws a map with its upper left corner at (x, y). */
DV_TOOL void dv_picture_draw_map(dv_picture *picture, size_t x, size_t y, const dv_picture_map *map);

/* Draws an image, [height][width] pixels of the caller's, each as a square of `zoom` pixels. */
DV_TOOL void dv_picture_draw_image(dv_picture *picture, size_t x, size_t y, const dv_colour *image, size_t width,
                                   size_t height, size_t zoom);

/* Pixels that a character takes, its gap to the next included, at zoom 1. */
enum { DV_TEXT_WIDTH = 6, DV_TEXT_HEIGHT = 9 };

/* Draws one line of text in UTF-8: ASCII and the letters of Latin-1; other characters become a box each. `zoom` is the
 * size of a dot of the font. */
DV_TOOL void dv_picture_text(dv_picture *picture, size_t x, size_t y, const char *text, size_t zoom, dv_colour colour);

/* The same from bottom to top, turned to the left: (x, y) is where its upper left corner comes to be, at the bottom. */
DV_TOOL void dv_picture_text_up(dv_picture *picture, size_t x, size_t y, const char *text, size_t zoom,
                                dv_colour colour);

/* Writes the canvas as a PNG file, all of it or nothing. */
DV_TOOL dv_status dv_picture_write(const dv_picture *picture, const char *path, dv_error *error);

#ifdef __cplusplus
}
#endif

#endif
