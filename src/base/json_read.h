/* Reading JSON: a cursor that walks over a text in memory once and builds nothing.
 *
 *     dv_json_cursor json = dv_json_cursor_at(text, bytes);
 *     for (dv_json_enter(&json, '{'); dv_json_next(&json, '}');) {
 *         dv_json_read_key(&json, key, sizeof key);
 *         dv_json_skip(&json);
 *     }
 *     if (!dv_json_ended(&json)) ... json.problem says why
 *
 * Strict: what RFC 8259 does not allow is a problem. The first problem is remembered, and every call after it does
 * nothing and returns false: only the end has to be checked. */
#ifndef DV_BASE_JSON_READ_H
#define DV_BASE_JSON_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct dv_json_cursor {
    const char *begin, *at, *end; /* the text; the caller's, and it need not end with a zero */
    bool fresh;                   /* an object or array was just entered: no comma before the next thing */
    const char *problem;          /* what is wrong at `at`, static text; NULL: nothing so far */
} dv_json_cursor;

dv_json_cursor dv_json_cursor_at(const char *text, size_t bytes);

/* Makes a problem of what was just read, with the caller's reason. Returns false. */
bool dv_json_refuse(dv_json_cursor *json, const char *problem);

/* Enters the object ('{') or the array ('[') that must come next. */
bool dv_json_enter(dv_json_cursor *json, char opening);

/* Inside one: true if there is something more, whose comma is then behind; false after its end ('}' or ']'). */
bool dv_json_next(dv_json_cursor *json, char closing);

/* A string, unescaped, with a final zero, which is there after a problem too. One that takes more than `bytes`, or has
 * a zero in it, is a problem. Bytes that are no UTF-8 are passed on. */
bool dv_json_read_text(dv_json_cursor *json, char *text, size_t bytes);

/* A string and the colon behind it. */
bool dv_json_read_key(dv_json_cursor *json, char *text, size_t bytes);

/* A whole number of at most 64 bits, digits alone. */
bool dv_json_read_unsigned(dv_json_cursor *json, uint64_t *number);

/* A string, number or word (true, false, null) as text: strings unescaped, the others as written. `is_null` says
 * whether it is the word null. */
bool dv_json_read_scalar(dv_json_cursor *json, char *text, size_t bytes, bool *is_null);

/* Any value, passed over. */
bool dv_json_skip(dv_json_cursor *json);

/* True if nothing but space is left and there was no problem. */
bool dv_json_ended(dv_json_cursor *json);

/* Where the cursor stands, in bytes from the start. */
size_t dv_json_position(const dv_json_cursor *json);

#endif
