/* A sheet of images, each on a card: the image, a caption, bars with names and shares.
 *
 *     +-----------+  +-----------+
 *     |   image   |  |   image   |
 *     | caption   |  | caption   |
 *     |###cat 90 %|  |##  dog 70%|
 *     |   dog 10 %|  |#   cat 30%|
 *     +-----------+  +-----------+
 */
#ifndef DV_CLI_SHEET_H
#define DV_CLI_SHEET_H

#include <division/tools/picture.h>

enum { SHEET_MOST_BARS = 10, SHEET_MOST_IMAGES = 400 };

/* Colours of pictures that the program draws. */
extern const dv_colour sheet_paper, sheet_ink, sheet_pale, sheet_plain, sheet_right, sheet_wrong;

/* What all cards have in common. */
typedef struct sheet_layout {
    size_t images, columns; /* columns 0: as many as make the sheet about square, up to 6 */
    size_t side;            /* of the images, in pixels of their own */
    size_t tile;            /* the least width of a card: smaller images are drawn larger */
    size_t bars;            /* below the caption, up to SHEET_MOST_BARS */
    size_t text_zoom;       /* of captions and bars; those that do not fit are drawn with 1, and cut off then */
} sheet_layout;

typedef struct sheet {
    sheet_layout layout;
    size_t zoom, width, height; /* of an image's pixels, and of a card with the gap behind it */
    dv_picture picture;
} sheet;

/* A bar: its name, its share of the width from 0 to 1, and the colour of that part. */
typedef struct sheet_bar {
    const char *name;
    double share;
    dv_colour colour;
} sheet_bar;

/* One image [side][side][3] with all that is said of it. */
typedef struct sheet_card {
    const uint8_t *pixels;
    const char *caption;
    size_t bar_count;
    sheet_bar bars[SHEET_MOST_BARS];
} sheet_card;

/* An empty sheet; sheet_free releases it. */
dv_status sheet_new(const sheet_layout *layout, sheet *made, dv_error *error);
void sheet_free(sheet *made);

/* Draws the card of the index-th image, counted from the upper left along rows. */
void sheet_draw(sheet *to, size_t index, const sheet_card *card);

/* Draws a text that is at most `width` pixels wide: smaller than `zoom` if need be, with two dots where it is cut. */
void sheet_text(dv_picture *picture, size_t x, size_t y, size_t width, const char *text, size_t zoom, dv_colour colour);

#endif
