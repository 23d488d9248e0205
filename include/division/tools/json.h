/* Writing JSON, without allocation: one value at a time, to a file or into a buffer of the caller's.
 *
 *     dv_json json;
 *     dv_json_to_file(&json, stdout);
 *     dv_json_object(&json, NULL);
 *     dv_json_number(&json, "ratio", 13.7);
 *     dv_json_end(&json);
 *     dv_json_finish(&json, &error);
 *
 * A key is given to everything inside an object, and NULL to everything else. Failures are remembered,
 * and dv_json_finish tells: nothing has to be checked in between. */
#ifndef DIVISION_TOOLS_JSON_H
#define DIVISION_TOOLS_JSON_H

#include <division/status.h>
#include <division/tools/tool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { DV_JSON_MAX_DEPTH = 64 };

/* A writer. Its fields are its own business. */
typedef struct dv_json {
    FILE *file;       /* where to write, or NULL to write into the buffer; the caller's */
    char *buffer;     /* the caller's */
    size_t bytes;     /* of the buffer */
    size_t length;    /* of the text so far, also what did not fit */
    uint64_t objects; /* bit d: depth d + 1 is an object, else an array */
    uint64_t filled;  /* bit d: depth d + 1 has something in it */
    int depth;
    int misused; /* a key where there should be none or none where there should be one, an end too many */
} dv_json;

/* Begins a text. The file, or the buffer, belongs to the caller and must live until dv_json_finish. */
DV_TOOL void dv_json_to_file(dv_json *json, FILE *file);
DV_TOOL void dv_json_to_buffer(dv_json *json, char *buffer, size_t bytes);

/* Opens an object or an array; dv_json_end closes the innermost. */
DV_TOOL void dv_json_object(dv_json *json, const char *key);
DV_TOOL void dv_json_array(dv_json *json, const char *key);
DV_TOOL void dv_json_end(dv_json *json);

/* Values. Text is UTF-8, a byte that is not becomes U+FFFD, and NULL is null. A number has as many digits
 * as it takes to read the same double again; NaN and the infinities, which JSON lacks, are null. */
DV_TOOL void dv_json_text(dv_json *json, const char *key, const char *text);
DV_TOOL void dv_json_number(dv_json *json, const char *key, double number);
DV_TOOL void dv_json_integer(dv_json *json, const char *key, int64_t integer);
DV_TOOL void dv_json_unsigned(dv_json *json, const char *key, uint64_t integer);
DV_TOOL void dv_json_boolean(dv_json *json, const char *key, int truth);
DV_TOOL void dv_json_null(dv_json *json, const char *key);

/* Ends the text: with a newline in a file, with a zero byte in a buffer (always, even if it was cut).
 * Fails if something is still open or was called in the wrong place, if the buffer is too small, or if
 * the file could not be written. A writer to a file may then begin the next line. */
DV_TOOL dv_status dv_json_finish(dv_json *json, dv_error *error);

#ifdef __cplusplus
}
#endif

#endif
