/* Horizontal bars: a row for each, its name above it and its number behind it, so that names may be long. */
#ifndef DV_REPORT_BARS_H
#define DV_REPORT_BARS_H

#include "report/axis.h"
#include "report/draw.h"

enum { DV_BAR_WORDS = 512 };

typedef struct dv_bar {
    const char *name; /* the caller's */
    size_t series;
    double number;
    dv_range spread;          /* of the numbers that this one is the mean of; drawn where it is more than a point */
    double published;         /* a figure to compare with, drawn as a diamond; NaN: none */
    char words[DV_BAR_WORDS]; /* behind the bar; empty: the number in its unit */
    char hint[DV_BAR_WORDS];  /* empty: name and words */
} dv_bar;

typedef struct dv_bar_chart {
    const char *title, *caption;
    dv_unit unit;
    bool from_zero;   /* or from a round number below all */
    double reference; /* a line across; NaN: none */
    dv_bar *bars;     /* the caller's */
    size_t count;
} dv_bar_chart;

/* Draws the whole panel. */
void dv_draw_bars(dv_drawing *drawing, const dv_bar_chart *chart);

/* Room for bars of a panel, zeros with an empty spread and nothing published; the caller's to free(). If there is no
 * memory the drawing has failed. */
dv_bar *dv_bars_new(dv_drawing *drawing, size_t count);

#endif
