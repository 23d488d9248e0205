/* Labels of points, put where they cover neither each other nor a point. */
#ifndef DV_REPORT_LABELS_H
#define DV_REPORT_LABELS_H

#include "report/axis.h"
#include "report/draw.h"

typedef struct dv_label {
    double x, y;       /* the point, in pixels */
    const char *words; /* the caller's */
} dv_label;

/* Draws labels beside their points, inside of the field, with a line to a point that is further away. One for which
 * there is no room is left out: a legend must have it. Returns how many were. */
size_t dv_draw_labels(dv_drawing *drawing, const dv_field *field, const dv_label *labels, size_t count);

#endif
