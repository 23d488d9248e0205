/* Numbers as people read them, the same in drawings, tables and texts, and the same in every locale. */
#ifndef DV_REPORT_UNITS_H
#define DV_REPORT_UNITS_H

typedef enum dv_unit {
    DV_UNIT_NONE,    /* three digits: "0.0347" */
    DV_UNIT_COUNT,   /* whole: "128" */
    DV_UNIT_PERCENT, /* "88.45 %" */
    DV_UNIT_BYTES,   /* "3.4 MB", powers of 1000, as the program prints them */
    DV_UNIT_TIMES,   /* "10.5 ×" */
    DV_UNIT_SPEED    /* images in a second: "315 images/s" */
} dv_unit;

enum { DV_UNIT_TEXT = 64 };

/* A number with at most so many digits behind the point, 0 to 12, and no zeros at its end. Returns `text`. */
const char *dv_decimal_text(double number, int decimals, char text[DV_UNIT_TEXT]);

/* A number with about so many digits that count: "0.00123", "1235", "6.1e-9". Returns `text`. */
const char *dv_digits_text(double number, int digits, char text[DV_UNIT_TEXT]);

/* A number in its unit; "–" for NaN. Returns `text`. */
const char *dv_unit_text(dv_unit unit, double number, char text[DV_UNIT_TEXT]);

/* The marks of an axis share one power of 1000, that of `largest`, and so many digits that `step` is seen. */
const char *dv_mark_text(dv_unit unit, double number, double step, double largest, char text[DV_UNIT_TEXT]);

/* All digits of a number, for programs; nothing for NaN. Returns `text`. */
const char *dv_exact_text(double number, char text[DV_UNIT_TEXT]);

#endif
