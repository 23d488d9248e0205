/* Options, as library code takes them from texts that are not terminated. */
#ifndef DV_BASE_OPTION_H
#define DV_BASE_OPTION_H

#include <division/tools/option.h>

/* Reads text[length] into the option's value; NULL is no text. Returns 0, and leaves the value alone, if the option
 * does not take it. */
int dv_option_read(const dv_option *option, void *values, const char *text, size_t length);

/* Appends `count` words to what is in text[bytes], "a, b or c" with marks ", " and " or ". */
void dv_join_words(const char *const *words, size_t count, const char *between, const char *last, char *text,
                   size_t bytes);

#endif
