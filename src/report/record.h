/* Records: JSON objects whose fields go to members of a struct, by a table. */
#ifndef DV_REPORT_RECORD_H
#define DV_REPORT_RECORD_H

#include "base/json_read.h"

#include <division/status.h>
#include <stddef.h>

/* A field. Text goes to an array of DV_NAME_TEXT characters, a number, true (1) or false (0) to a double. Tables end
 * with a NULL key. */
typedef struct dv_record_field {
    const char *key;
    size_t offset;
    bool is_text;
} dv_record_field;

#define DV_RECORD_NUMBER(type, member) \
    { #member, offsetof(type, member), false }
#define DV_RECORD_TEXT(type, member) \
    { #member, offsetof(type, member), true }
#define DV_RECORD_END \
    { NULL, 0, false }

/* Makes all numbers NaN and all texts empty. */
void dv_record_clear(const dv_record_field *fields, void *record);

/* Reads the value behind `key` into its member, or passes over it if the table does not have it. */
bool dv_record_read_field(dv_json_cursor *json, const char *key, const dv_record_field *fields, void *record);

/* Reads a whole object. */
bool dv_record_read(dv_json_cursor *json, const dv_record_field *fields, void *record);

/* No figure of ours is larger, and arithmetic with numbers up to here does not overflow. */
#define DV_LARGEST_NUMBER 1e18

/* A scalar's text as a number; false if it is none, or larger than that. */
bool dv_record_number(const char *text, double *number);

/* ---- lines --------------------------------------------------------------------------------- */

/* What reads a line, which the cursor stands at. Problems are those of the cursor, or an error of its own. */
typedef dv_status dv_line_reader(void *context, dv_json_cursor *json, dv_error *error);

/* Gives every line of a text, of the file `path`, to `read`, empty ones left out. `cut` becomes true where the last
 * line has no end and can't be read: its writer was killed, and the lines before are whole. An error names file and
 * line. */
typedef struct dv_record_text {
    const char *path; /* for messages */
    const char *text; /* the caller's */
    size_t bytes;
} dv_record_text;

dv_status dv_record_lines(const dv_record_text *file, dv_line_reader *read, void *context, bool *cut, dv_error *error);

#endif
