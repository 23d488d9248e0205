/* The look of drawings and of the page. */
#ifndef DV_REPORT_STYLE_H
#define DV_REPORT_STYLE_H

/* CSS of drawings, for light and dark and print: in the page, and in each file of a figure. */
extern const char dv_drawing_style[];

/* CSS of the page around them. */
extern const char dv_page_style[];

/* Hints at once and under a finger, where the browser alone shows them late or never. The page is whole without. */
extern const char dv_page_script[];

#endif
