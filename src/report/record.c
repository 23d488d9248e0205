/* JSON objects into structs, and files of them line by line. */
#include "report/record.h"

#include "base/file.h"
#include "base/status.h"
#include "report/data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_BYTES = 128, NUMBER_BYTES = 512 };

void dv_record_clear(const dv_record_field *fields, void *record) {
    for (; fields->key != NULL; fields++) {
        void *member = (char *)record + fields->offset;
        if (fields->is_text)
            *(char *)member = '\0';
        else
            *(double *)member = NAN;
    }
}

bool dv_record_number(const char *text, double *number) {
    char *end;
    *number = strcmp(text, "true") == 0;
    if (*number > 0 || strcmp(text, "false") == 0)
        return true;
    *number = strtod(text, &end);
    return end != text && *end == '\0' && fabs(*number) <= DV_LARGEST_NUMBER;
}

static bool read_number(dv_json_cursor *json, double *number) {
    char text[NUMBER_BYTES];
    bool is_null;
    *number = NAN;
    if (!dv_json_read_scalar(json, text, sizeof text, &is_null))
        return false;
    return is_null || dv_record_number(text, number) ||
           dv_json_refuse(json, "a number of at most 1e18 should stand here");
}

static bool read_text(dv_json_cursor *json, char text[DV_NAME_TEXT]) {
    bool is_null = false;
    if (!dv_json_read_scalar(json, text, DV_NAME_TEXT, &is_null))
        return false;
    if (is_null)
        text[0] = '\0';
    return true;
}

bool dv_record_read_field(dv_json_cursor *json, const char *key, const dv_record_field *fields, void *record) {
    for (; fields->key != NULL; fields++) {
        if (strcmp(fields->key, key) != 0)
            continue;
        void *member = (char *)record + fields->offset;
        return fields->is_text ? read_text(json, member) : read_number(json, member);
    }
    return dv_json_skip(json);
}

bool dv_record_read(dv_json_cursor *json, const dv_record_field *fields, void *record) {
    char key[KEY_BYTES];
    dv_record_clear(fields, record);
    for (dv_json_enter(json, '{'); dv_json_next(json, '}');)
        if (dv_json_read_key(json, key, sizeof key))
            dv_record_read_field(json, key, fields, record);
    return json->problem == NULL;
}

/* ---- lines --------------------------------------------------------------------------------- */

/* One line of a file, its number from 1. */
typedef struct line {
    const char *path;
    const char *begin, *end;
    size_t number;
    bool ended; /* by a newline */
} line;

static bool is_empty(const line *at) {
    for (const char *c = at->begin; c < at->end; c++)
        if (*c != ' ' && *c != '\t' && *c != '\r')
            return false;
    return true;
}

static dv_status read_line(const line *at, dv_line_reader *read, void *context, bool *cut, dv_error *error) {
    dv_json_cursor json = dv_json_cursor_at(at->begin, (size_t)(at->end - at->begin));
    dv_error inner = {0};
    dv_status status = read(context, &json, &inner);
    if (json.problem != NULL && !at->ended && at->number > 1) {
        *cut = true;
        return DV_OK;
    }
    if (json.problem != NULL)
        return dv_fail(error, DV_ERROR_FORMAT,
                       "%.80s: line %zu is no JSON object, at character %zu: %s: give a file as the program prints it",
                       dv_file_shown(at->path), at->number, dv_json_position(&json) + 1, json.problem);
    if (status != DV_OK)
        return dv_fail(error, status, "%.80s: line %zu: %s", dv_file_shown(at->path), at->number, inner.text);
    return DV_OK;
}

dv_status dv_record_lines(const dv_record_text *file, dv_line_reader *read, void *context, bool *cut, dv_error *error) {
    line at = {.path = file->path, .begin = file->text, .number = 1};
    *cut = false;
    for (const char *end = file->text + file->bytes; at.begin < end; at.begin = at.end + 1, at.number++) {
        const char *newline = memchr(at.begin, '\n', (size_t)(end - at.begin));
        at.end = newline != NULL ? newline : end;
        at.ended = newline != NULL;
        if (!is_empty(&at))
            DV_TRY(read_line(&at, read, context, cut, error));
    }
    return DV_OK;
}
