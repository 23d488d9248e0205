/* Characters of text that comes from outside: names in files, names of files. */
#ifndef DV_BASE_PRINTABLE_H
#define DV_BASE_PRINTABLE_H

#include <division/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Length in bytes of the UTF-8 character at `text`, or 0 if it is not one (overlong, a surrogate, cut). */
size_t dv_utf8_length(const char *text);

/* The same, but 1 for a byte that is no character: how far on the next one is. */
size_t dv_utf8_step(const char *text);

/* The number of the character at `text`, as Unicode has it; U+FFFD for a byte that is none. */
uint32_t dv_utf8_code(const char *text);

/* Whether the character at `text`, of this length, is none that a terminal acts upon. */
bool dv_is_printable(const char *text, size_t length);

/* Whether all of a text is such characters. */
bool dv_all_printable(const char *text);

#endif
