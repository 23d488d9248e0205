/* Characters of text that comes from outside: names in files, names of files. */
#ifndef DV_BASE_PRINTABLE_H
#define DV_BASE_PRINTABLE_H

#include <division/status.h>
#include <stdbool.h>
#include <stddef.h>

/* Length in bytes of the UTF-8 character at `text`, or 0 if it is not one (overlong, a surrogate, cut). */
size_t dv_utf8_length(const char *text);

/* Whether the character at `text`, of this length, is none that a terminal acts upon. */
bool dv_is_printable(const char *text, size_t length);

/* Whether all of a text is such characters. */
bool dv_all_printable(const char *text);

#endif
