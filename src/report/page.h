/* The page, and figures as files. */
#ifndef DV_REPORT_PAGE_H
#define DV_REPORT_PAGE_H

#include "report/figure.h"

/* Writes the whole page into `text`. */
void dv_page_write(const dv_report_data *data, const char *title, dv_text *text);

/* Writes shapes as an SVG file of their own, with the style of drawings. */
void dv_svg_file(const char *title, int width, int height, const dv_text *body, dv_text *text);

/* Writes a figure as an SVG file of its own, its panels in two columns. */
void dv_figure_svg(const dv_figure *figure, const dv_report_data *data, dv_text *text);

/* Writes the numbers of a figure as CSV. */
void dv_figure_csv(const dv_figure *figure, const dv_report_data *data, dv_text *text);

#endif
