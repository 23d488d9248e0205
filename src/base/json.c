/* The JSON writer: every value goes through `begin_value`, which puts the comma and the key, and every
 * character through `put`, which knows where it goes. */
#include <division/tools/json.h>

#include "base/printable.h"
#include "base/status.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Appends `count` characters, as far as there is room for them and the terminating zero. */
static void put(dv_json *json, const char *text, size_t count) {
    if (json->file != NULL) {
        fwrite(text, 1, count, json->file); /* dv_json_finish asks ferror */
    } else if (json->length < json->bytes) {
        size_t room = json->bytes - json->length - 1;
        memcpy(json->buffer + json->length, text, count < room ? count : room);
    }
    json->length += count;
}

static void put_text(dv_json *json, const char *text) {
    put(json, text, strlen(text));
}

/* Appends a control character as its number. */
static void put_control(dv_json *json, unsigned number) {
    char escape[8];
    snprintf(escape, sizeof escape, "\\u%04x", number);
    put_text(json, escape);
}

/* Appends one ASCII character, escaped where JSON wants it. */
static void put_ascii(dv_json *json, char character) {
    static const char letters[] = "\"\"\\\\\bb\ff\nn\rr\tt"; /* character, letter of its escape */
    char escape[8];
    for (size_t i = 0; i + 1 < sizeof letters; i += 2) {
        if (letters[i] != character)
            continue;
        snprintf(escape, sizeof escape, "\\%c", letters[i + 1]);
        put_text(json, escape);
        return;
    }
    if ((unsigned char)character >= 0x20 && character != 0x7f) {
        put(json, &character, 1);
        return;
    }
    put_control(json, (unsigned char)character);
}

static void put_quoted(dv_json *json, const char *text) {
    put(json, "\"", 1);
    while (*text != '\0') {
        size_t length = dv_utf8_length(text);
        if (length == 1)
            put_ascii(json, *text);
        if (length == 0)
            put_text(json, "\\ufffd");
        if (length > 1 && dv_is_printable(text, length))
            put(json, text, length);
        else if (length > 1) /* one of the control characters from 0x80 to 0x9f */
            put_control(json, (unsigned char)text[1]);
        text += length > 0 ? length : 1;
    }
    put(json, "\"", 1);
}

/* The bit of the innermost open object or array. */
static uint64_t innermost(const dv_json *json) {
    return UINT64_C(1) << (json->depth - 1);
}

/* Everything that precedes a value: the comma, and in an object the key. */
static void begin_value(dv_json *json, const char *key) {
    int in_object = json->depth > 0 && (json->objects & innermost(json)) != 0;
    if (in_object != (key != NULL) || (json->depth == 0 && json->length > 0))
        json->misused = 1;
    if (json->depth > 0) {
        if (json->filled & innermost(json))
            put(json, ", ", 2);
        json->filled |= innermost(json);
    }
    if (key == NULL)
        return;
    put_quoted(json, key);
    put(json, ": ", 2);
}

static void begin_text(dv_json *json, FILE *file, char *buffer, size_t bytes) {
    *json = (dv_json){.file = file, .buffer = buffer, .bytes = bytes};
}

void dv_json_to_file(dv_json *json, FILE *file) {
    begin_text(json, file, NULL, 0);
}

void dv_json_to_buffer(dv_json *json, char *buffer, size_t bytes) {
    begin_text(json, NULL, buffer, buffer != NULL ? bytes : 0);
}

static void open_level(dv_json *json, const char *key, int is_object) {
    begin_value(json, key);
    if (json->depth == DV_JSON_MAX_DEPTH) {
        json->misused = 1;
        return;
    }
    json->depth++;
    json->objects = is_object ? json->objects | innermost(json) : json->objects & ~innermost(json);
    json->filled &= ~innermost(json);
    put(json, is_object ? "{" : "[", 1);
}

void dv_json_object(dv_json *json, const char *key) {
    open_level(json, key, 1);
}

void dv_json_array(dv_json *json, const char *key) {
    open_level(json, key, 0);
}

void dv_json_end(dv_json *json) {
    if (json->depth == 0) {
        json->misused = 1;
        return;
    }
    put(json, json->objects & innermost(json) ? "}" : "]", 1);
    json->depth--;
}

void dv_json_text(dv_json *json, const char *key, const char *text) {
    begin_value(json, key);
    if (text == NULL) {
        put_text(json, "null");
    } else {
        put_quoted(json, text);
    }
}

/* Makes the decimal separator of the process's locale a point. */
static void use_decimal_point(char *text) {
    size_t start = strspn(text, "+-0123456789eE");
    size_t length = strcspn(text + start, "+-0123456789eE");
    if (length == 0)
        return;
    text[start] = '.';
    memmove(text + start + 1, text + start + length, strlen(text + start + length) + 1);
}

void dv_json_number(dv_json *json, const char *key, double number) {
    char text[64];
    begin_value(json, key);
    if (!isfinite(number)) {
        put_text(json, "null");
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, number);
        if (strtod(text, NULL) == number)
            break;
    }
    use_decimal_point(text);
    put_text(json, text);
}

void dv_json_integer(dv_json *json, const char *key, int64_t integer) {
    char text[32];
    begin_value(json, key);
    snprintf(text, sizeof text, "%" PRId64, integer);
    put_text(json, text);
}

void dv_json_unsigned(dv_json *json, const char *key, uint64_t integer) {
    char text[32];
    begin_value(json, key);
    snprintf(text, sizeof text, "%" PRIu64, integer);
    put_text(json, text);
}

void dv_json_boolean(dv_json *json, const char *key, int truth) {
    begin_value(json, key);
    put_text(json, truth ? "true" : "false");
}

void dv_json_null(dv_json *json, const char *key) {
    dv_json_text(json, key, NULL);
}

/* What is wrong with a finished text, `length` long. */
static dv_status check(const dv_json *json, size_t length, dv_error *error) {
    if (json->misused || json->depth != 0 || length == 0)
        return dv_fail(error, DV_ERROR_ARGUMENT,
                       "JSON: the calls do not form one value: pair every object and array "
                       "with an end, and give keys inside objects only");
    if (json->file != NULL && ferror(json->file))
        return dv_fail(error, DV_ERROR_IO, "JSON: could not write: check the space left where the output goes");
    if (json->file == NULL && length >= json->bytes)
        return dv_fail(error, DV_ERROR_BUFFER,
                       "JSON: the text takes %zu bytes and the buffer has %zu: give a larger one", length + 1,
                       json->bytes);
    return DV_OK;
}

dv_status dv_json_finish(dv_json *json, dv_error *error) {
    DV_NEED(json);
    size_t length = json->length;
    if (json->file != NULL)
        put(json, "\n", 1);
    if (json->file == NULL && json->bytes > 0)
        json->buffer[length < json->bytes ? length : json->bytes - 1] = '\0';
    dv_status status = check(json, length, error);
    begin_text(json, json->file, json->buffer, json->bytes);
    return status;
}
