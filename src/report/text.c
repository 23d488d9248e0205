/* The growing text. */
#include "report/text.h"

#include "base/file.h"
#include "base/printable.h"
#include "base/status.h"
#include "report/units.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 4096, FORMATTED_BYTES = 1024 };

void dv_text_free(dv_text *text) {
    free(text->data);
    *text = (dv_text){0};
}

/* Makes room for `bytes` more and a final zero. */
static bool reserve(dv_text *text, size_t bytes) {
    size_t room = text->room > 0 ? text->room : FIRST_ROOM;
    while (room - text->length <= bytes && room <= SIZE_MAX / 2)
        room *= 2;
    char *data = room != text->room && !text->failed ? realloc(text->data, room) : text->data;
    if (data == NULL || text->failed) {
        text->failed = true;
        return false;
    }
    text->data = data;
    text->room = room;
    return true;
}

void dv_text_bytes(dv_text *text, const void *data, size_t bytes) {
    if (!reserve(text, bytes))
        return;
    memcpy(text->data + text->length, data, bytes);
    text->length += bytes;
    text->data[text->length] = '\0';
}

void dv_text_put(dv_text *text, const char *words) {
    dv_text_bytes(text, words, strlen(words));
}

void dv_text_format(dv_text *text, const char *format, ...) {
    char formatted[FORMATTED_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(formatted, sizeof formatted, format, arguments);
    va_end(arguments);
    dv_text_put(text, formatted);
}

/* One character of words from outside; 0 bytes of it mean that it is none. */
static void escape_character(dv_text *text, const char *at, size_t length) {
    static const struct {
        char character;
        const char *entity;
    } entities[] = {{'&', "&amp;"},  {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"},
                    {'\'', "&#39;"}, {'\n', " "},   {'\t', " "},   {'\r', " "}};
    for (size_t i = 0; length == 1 && i < sizeof entities / sizeof *entities; i++)
        if (*at == entities[i].character) {
            dv_text_put(text, entities[i].entity);
            return;
        }
    if (length == 0 || !dv_is_printable(at, length))
        dv_text_put(text, "\xef\xbf\xbd");
    else
        dv_text_bytes(text, at, length);
}

void dv_text_escape(dv_text *text, const char *words) {
    for (size_t length; *words != '\0'; words += length > 0 ? length : 1) {
        length = dv_utf8_length(words);
        escape_character(text, words, length);
    }
}

void dv_text_number(dv_text *text, double number, int decimals) {
    char shown[DV_UNIT_TEXT];
    dv_text_put(text, dv_decimal_text(number, decimals, shown));
}

dv_status dv_text_replace(const dv_text *text, const char *path, dv_error *error) {
    if (text->failed)
        return dv_fail(error, DV_ERROR_MEMORY, "%.100s: no memory for its text: close other programs",
                       dv_file_shown(path));
    return dv_file_replace(path, text->length > 0 ? text->data : "", text->length, error);
}
