/* Options from text: "block=8,bits=2" against tables of what there is. */
#ifndef DV_BASE_OPTION_TEXT_H
#define DV_BASE_OPTION_TEXT_H

#include <division/option.h>
#include <division/status.h>
#include <stddef.h>

/* A table of options, and where their values go. */
typedef struct dv_option_set {
    const dv_option *options;
    size_t count;
    int32_t *values; /* [count] */
} dv_option_set;

/* Whether `text` is `name` alone or `name` and a colon. */
int dv_option_text_names(const char *text, const char *name);

/* Sets all values to their presets, and then to what stands behind the colon of "name:option=value,...", if there is
 * one. An error names the option, its value and its bounds. */
dv_status dv_option_text_parse(const char *text, const dv_option_set *sets, size_t set_count, dv_error *error);

int dv_option_allows(const dv_option *option, int32_t value);

/* Appends "block=8,bits=2" to what is in text[bytes], terminated and cut; `mark` stands before the first. Returns the
 * length of the whole. */
size_t dv_option_text_format(const dv_option_set *set, char mark, char *text, size_t length, size_t bytes);

#endif
