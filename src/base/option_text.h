/* Options behind a name: "division:block=8,bits=2", "step:every=30", "synthetic:side=64", against tables of what there
 * is. The one parser of such texts. */
#ifndef DV_BASE_OPTION_TEXT_H
#define DV_BASE_OPTION_TEXT_H

#include "base/option.h"

#include <division/status.h>
#include <stddef.h>

/* A table of options, and the struct (or array) that their values are in. */
typedef struct dv_option_table {
    const dv_option *options;
    size_t count;
    void *values;
} dv_option_table;

/* If `text` is `name` alone or `name` and a colon, 1, with what follows the colon (or NULL) in *rest; else 0. */
int dv_option_text_names(const char *text, const char *name, const char **rest);

/* Sets all values to their presets; those without one stay as they are. */
void dv_option_text_preset(const dv_option_table *table);

/* Reads `rest`, "option=value,...", into the values; those that it does not name stay as they are, and NULL names none.
 * Failures are DV_ERROR_OPTION, begin with `owner`, and name the option, its value and what it takes. */
dv_status dv_option_text_parse(const char *owner, const char *rest, const dv_option_table *tables, size_t table_count,
                               dv_error *error);

/* Appends "block=8,bits=2" to what is in text[bytes], terminated and cut; `mark` stands before the first. Returns the
 * length of the whole. */
size_t dv_option_text_format(const dv_option_table *table, char mark, char *text, size_t length, size_t bytes);

#endif
