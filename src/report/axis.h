/* Axes: where a number stands, and marks at round numbers. */
#ifndef DV_REPORT_AXIS_H
#define DV_REPORT_AXIS_H

#include "report/draw.h"
#include "report/units.h"

#include <stdbool.h>
#include <stddef.h>

enum { DV_MOST_MARKS = 24 };

typedef struct dv_axis {
    double low, high; /* numbers at the ends */
    double from, to;  /* pixels of the ends */
    bool logarithmic;
    dv_unit unit;
    double step; /* between marks; 0 on a logarithmic axis */
    double marks[DV_MOST_MARKS];
    size_t mark_count;
} dv_axis;

/* A range of numbers; it starts as DV_RANGE_EMPTY. NaN and the infinities are left out. */
typedef struct dv_range {
    double low, high;
} dv_range;

#define DV_RANGE_EMPTY ((dv_range){1e300, -1e300})

void dv_range_add(dv_range *range, double number);
bool dv_range_is_empty(const dv_range *range);

/* An axis of which the range is a part, with about `wanted` marks at 1, 2 or 5 times a power of ten (whole numbers
 * where the unit is a count), which begins and ends with a mark. */
dv_axis dv_axis_linear(dv_range range, dv_unit unit, int wanted);

/* The same without room beside the range: for epochs and positions. */
dv_axis dv_axis_tight(dv_range range, dv_unit unit, int wanted);

/* An axis of positive numbers on which equal distances are equal ratios. */
dv_axis dv_axis_logarithmic(dv_range range, dv_unit unit);

/* The pixel of a number. */
double dv_axis_at(const dv_axis *axis, double number);

/* The words of a mark. */
const char *dv_axis_mark_text(const dv_axis *axis, size_t mark, char text[DV_UNIT_TEXT]);

/* A field with an axis at its left and one below it. */
typedef struct dv_field {
    double left, top, right, bottom;
    dv_axis x, y;
} dv_field;

/* Draws title, axes, marks and grid of a field whose axes are made, from `top` on with so many pixels of `height`
 * between the axes, and gives them their pixels. Returns where it ends. */
double dv_draw_field(dv_drawing *drawing, dv_field *field, const char *title, double height, const char *y_words,
                     const char *x_words);

/* The same with so many pixels of a `lane` between field and horizontal axis. */
double dv_draw_field_above(dv_drawing *drawing, dv_field *field, const char *title, double height, double lane,
                           const char *y_words, const char *x_words);

#endif
