/* Drawing: shapes and words as SVG.
 *
 *     dv_drawing drawing = {0};
 *     dv_draw_line(&drawing, 0, 10, 100, 10, "axis");
 *     dv_draw_words(&drawing, (dv_words){.x = 50, .y = 24, .at = DV_MIDDLE}, "epoch");
 *     dv_draw_finish(&drawing, &place, &text);
 *
 * Coordinates are pixels from the upper left corner, y downwards. A shape has a class that the style (style.h) gives
 * its look, and may have a hint: words that are shown where it is pointed at. All words are escaped here. */
#ifndef DV_REPORT_DRAW_H
#define DV_REPORT_DRAW_H

#include "report/text.h"

#include <stdbool.h>
#include <stddef.h>

/* Sizes of letters that the style knows, in pixels. */
enum { DV_LETTERS = 12, DV_SMALL_LETTERS = 11, DV_TITLE_LETTERS = 14 };

/* All panels have this width: wide enough for a line of words, and letters stay legible on a telephone. */
enum { DV_PANEL_WIDTH = 400 };

/* One panel of a figure, while it is drawn. Starts as zeros. */
typedef struct dv_drawing {
    dv_text body;  /* shapes so far */
    dv_text title; /* what it shows, escaped; the words of its heading */
    double height; /* grows as shapes are added below each other; what draws sets it */
} dv_drawing;

void dv_drawing_free(dv_drawing *drawing);

typedef enum dv_anchor { DV_START, DV_MIDDLE, DV_END } dv_anchor;

/* Where words stand, and how. */
typedef struct dv_words {
    double x, y;      /* of the anchor, on the line that letters stand on */
    dv_anchor at;     /* which end of the words x is */
    const char *look; /* a class, or NULL */
    double room;      /* pixels that they may take: longer ones are cut in their middle; 0: any number */
    const char *hint; /* NULL: none, or all of the words if they are cut */
} dv_words;

void dv_draw_words(dv_drawing *drawing, dv_words place, const char *words);

/* The heading of a drawing, at its top; also the title of the whole, for those who do not see it. */
enum { DV_HEADING_HEIGHT = 22, DV_EDGE = 12 };
void dv_draw_heading(dv_drawing *drawing, const char *words);

/* About as wide as words of so many pixels become, rather a little too wide. */
double dv_words_width(const char *words, double letters);

/* Shapes. `look` is a class, or several with spaces between them; `hint` may be NULL. */
void dv_draw_line(dv_drawing *drawing, double x1, double y1, double x2, double y2, const char *look);
void dv_draw_box(dv_drawing *drawing, double x, double y, double width, double height, const char *look,
                 const char *hint);

/* A path through points: begin, then points, then end. After dv_path_lift the next point begins a new part. A
 * point that is no number is left out. */
typedef struct dv_path {
    dv_drawing *drawing;
    bool down; /* the pen is */
} dv_path;

dv_path dv_path_begin(dv_drawing *drawing, const char *look);
void dv_path_point(dv_path *path, double x, double y);
void dv_path_lift(dv_path *path);
void dv_path_close(dv_path *path); /* back to where the part began */
void dv_path_end(dv_path *path, const char *hint);

/* ---- series: what tells one method from another, with colours and without -------------------- */

enum { DV_COLOURS = 8, DV_DASHES = 5, DV_MARKS = 7, DV_LOOK_BYTES = 48 };

/* "name c2 d1": the class `name` with colour and dashes of a series. Series 0 has the colour of words. */
const char *dv_series_look(size_t series, const char *name, char look[DV_LOOK_BYTES]);

/* The mark of a series at a point. */
void dv_draw_mark(dv_drawing *drawing, double x, double y, double radius, size_t series, const char *hint);

/* ---- legends ------------------------------------------------------------------------------- */

typedef struct dv_legend_entry {
    const char *words;
    size_t series;
} dv_legend_entry;

/* Draws entries from `top` on, as many in a row as there is room for. Returns where they end. */
double dv_draw_legend(dv_drawing *drawing, double top, const dv_legend_entry *entries, size_t count);

/* ---- the whole ----------------------------------------------------------------------------- */

/* How a finished drawing stands in a page or a file. */
typedef struct dv_svg {
    const char *class; /* NULL: none */
    double x, y;       /* in the drawing around it */
    bool inside;       /* there is a drawing around it */
} dv_svg;

/* Appends the drawing as an <svg> element, and frees it. */
void dv_draw_finish(dv_drawing *drawing, const dv_svg *svg, dv_text *text);

#endif
