/* What may reach a terminal: UTF-8 without control characters, neither those below 0x20 nor those of 0x80 to 0x9f. */
#include "base/printable.h"

#include <division/tools/text.h>
#include <string.h>

size_t dv_utf8_length(const char *at) {
    const unsigned char *text = (const unsigned char *)at;
    if (text[0] < 0x80)
        return 1;
    size_t length = text[0] >= 0xc2 && text[0] < 0xe0 ? 2 : (text[0] & 0xf0) == 0xe0 ? 3 : 4;
    if (text[0] < 0xc2 || text[0] > 0xf4)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    if (text[0] == 0xe0 && text[1] < 0xa0)
        return 0; /* overlong */
    if (text[0] == 0xed && text[1] > 0x9f)
        return 0; /* a surrogate */
    if (text[0] == 0xf0 && text[1] < 0x90)
        return 0; /* overlong */
    if (text[0] == 0xf4 && text[1] > 0x8f)
        return 0; /* above U+10FFFF */
    return length;
}

size_t dv_utf8_step(const char *at) {
    size_t length = dv_utf8_length(at);
    return length > 0 ? length : 1;
}

uint32_t dv_utf8_code(const char *at) {
    static const unsigned char first_bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    size_t length = dv_utf8_length(at);
    uint32_t code = length > 0 ? (unsigned char)at[0] & first_bits[length] : 0xfffd;
    for (size_t i = 1; i < length; i++)
        code = code << 6 | ((unsigned char)at[i] & 0x3f);
    return code;
}

size_t dv_text_characters(const char *text) {
    size_t count = 0;
    for (; *text != '\0'; text += dv_utf8_step(text))
        count++;
    return count;
}

char *dv_text_cut(char *text, size_t most) {
    static const char dots[] = "..";
    char *at = text;
    if (dv_text_characters(text) <= most)
        return text;
    for (size_t i = 0; i + strlen(dots) < most; i++)
        at += dv_utf8_step(at);
    memcpy(at, dots, sizeof dots); /* more characters than that follow */
    return text;
}

bool dv_is_printable(const char *text, size_t length) {
    unsigned char first = (unsigned char)text[0];
    if (length == 1)
        return first >= 0x20 && first != 0x7f;
    return length > 1 && !(first == 0xc2 && (unsigned char)text[1] < 0xa0);
}

/* Bytes of the character at `at` if it is printable, else 0. */
static size_t printable_length(const char *at) {
    size_t length = dv_utf8_length(at);
    return dv_is_printable(at, length) ? length : 0;
}

bool dv_all_printable(const char *text) {
    for (size_t length; *text != '\0'; text += length)
        if ((length = printable_length(text)) == 0)
            return false;
    return true;
}

char *dv_printable(char *text) {
    for (char *at = text; *at != '\0';) {
        size_t length = printable_length(at);
        if (length == 0)
            *at = '?';
        at += length > 0 ? length : 1;
    }
    return text;
}
