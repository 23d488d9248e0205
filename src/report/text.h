/* A text that grows: pages, drawings and tables are written into one, and reach a file when they are whole.
 *
 * The first failure to get memory is remembered and everything after it is lost: only dv_text_replace has to be
 * checked. Numbers are written by arithmetic and not by printf, whose decimal point depends on the locale. */
#ifndef DV_REPORT_TEXT_H
#define DV_REPORT_TEXT_H

#include <division/export.h>
#include <division/status.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct dv_text {
    char *data; /* owned; NULL while it is empty */
    size_t length, room;
    bool failed; /* there was no memory */
} dv_text;

/* Releases what the text has and makes it empty. */
void dv_text_free(dv_text *text);

/* Appends bytes, or a text as it is. */
void dv_text_bytes(dv_text *text, const void *data, size_t bytes);
void dv_text_put(dv_text *text, const char *words);

/* Appends as printf does. Not for numbers with a decimal point. */
void dv_text_format(dv_text *text, const char *format, ...) DV_PRINTF(2, 3);

/* Appends words from outside so that they are text in HTML and XML, between tags and in quotation marks. What XML does
 * not allow, control characters and bytes that are no UTF-8, becomes U+FFFD, and ends of lines become spaces. */
void dv_text_escape(dv_text *text, const char *words);

/* Appends a number with so many digits behind the point, 0 to 6, without zeros at its end. */
void dv_text_number(dv_text *text, double number, int decimals);

/* Makes the text the contents of a file, at once or not at all. */
dv_status dv_text_replace(const dv_text *text, const char *path, dv_error *error);

#endif
