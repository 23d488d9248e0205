/* The cursor. Values are read where they stand; only strings are copied, because of their escapes. */
#include "base/json_read.h"

#include <string.h>

/* How deep a value may be that is passed over. */
enum { MAX_DEPTH = 64 };

dv_json_cursor dv_json_cursor_at(const char *text, size_t bytes) {
    return (dv_json_cursor){.begin = text, .at = text, .end = text + bytes};
}

size_t dv_json_position(const dv_json_cursor *json) {
    return (size_t)(json->at - json->begin);
}

bool dv_json_refuse(dv_json_cursor *json, const char *problem) {
    if (json->problem == NULL)
        json->problem = problem;
    return false;
}

/* Passes over space. Returns the next character, or a zero at the end and after a problem. */
static char peek(dv_json_cursor *json) {
    while (json->at < json->end && (*json->at == ' ' || *json->at == '\t' || *json->at == '\n' || *json->at == '\r'))
        json->at++;
    return json->at < json->end && json->problem == NULL ? *json->at : '\0';
}

static bool take(dv_json_cursor *json, char wanted, const char *problem) {
    if (peek(json) != wanted)
        return dv_json_refuse(json, problem);
    json->at++;
    return true;
}

/* ---- objects and arrays -------------------------------------------------------------------- */

bool dv_json_enter(dv_json_cursor *json, char opening) {
    json->fresh = true;
    return take(json, opening, opening == '{' ? "an object should begin here" : "an array should begin here");
}

bool dv_json_next(dv_json_cursor *json, char closing) {
    if (peek(json) == closing) {
        json->at++;
        json->fresh = false;
        return false;
    }
    if (!json->fresh && !take(json, ',', "a comma is missing"))
        return false;
    json->fresh = false;
    return json->problem == NULL;
}

bool dv_json_ended(dv_json_cursor *json) {
    peek(json);
    if (json->problem == NULL && json->at < json->end)
        return dv_json_refuse(json, "something follows the end");
    return json->problem == NULL;
}

/* ---- strings ------------------------------------------------------------------------------- */

/* A string that is being copied. */
typedef struct copy {
    char *text; /* NULL: it is only passed over */
    size_t bytes, used;
} copy;

static bool put(dv_json_cursor *json, copy *to, uint32_t byte) {
    if (to->text == NULL)
        return true;
    if (to->used + 1 >= to->bytes)
        return dv_json_refuse(json, "the string is too long");
    to->text[to->used++] = (char)(unsigned char)byte;
    return true;
}

static bool put_code_point(dv_json_cursor *json, copy *to, uint32_t code) {
    if (code == 0)
        return dv_json_refuse(json, "the string has a zero in it");
    if (code < 0x80)
        return put(json, to, code);
    if (code < 0x800)
        return put(json, to, 0xc0 | code >> 6) && put(json, to, 0x80 | (code & 0x3f));
    if (code < 0x10000)
        return put(json, to, 0xe0 | code >> 12) && put(json, to, 0x80 | (code >> 6 & 0x3f)) &&
               put(json, to, 0x80 | (code & 0x3f));
    return put(json, to, 0xf0 | code >> 18) && put(json, to, 0x80 | (code >> 12 & 0x3f)) &&
           put(json, to, 0x80 | (code >> 6 & 0x3f)) && put(json, to, 0x80 | (code & 0x3f));
}

/* The value of a hexadecimal digit, or -1. */
static int digit_of(char letter) {
    static const char digits[] = "0123456789abcdefABCDEF";
    const char *found = letter != '\0' ? strchr(digits, letter) : NULL;
    if (found == NULL)
        return -1;
    return found - digits < 16 ? (int)(found - digits) : (int)(found - digits) - 6;
}

/* The four hexadecimal digits of an escape. */
static bool read_four(dv_json_cursor *json, uint32_t *code) {
    *code = 0;
    for (int i = 0; i < 4; i++, json->at++) {
        int digit = json->at < json->end ? digit_of(*json->at) : -1;
        if (digit < 0)
            return dv_json_refuse(json, "\\u needs four hexadecimal digits");
        *code = *code << 4 | (uint32_t)digit;
    }
    return true;
}

/* What follows \u; two of them if the first is half of a pair. */
static bool read_unicode(dv_json_cursor *json, copy *to) {
    uint32_t code, low;
    if (!read_four(json, &code))
        return false;
    if (code >= 0xdc00 && code < 0xe000)
        return dv_json_refuse(json, "half a surrogate pair");
    if (code >= 0xd800 && code < 0xdc00) {
        if (json->end - json->at < 2 || json->at[0] != '\\' || json->at[1] != 'u')
            return dv_json_refuse(json, "half a surrogate pair");
        json->at += 2;
        if (!read_four(json, &low))
            return false;
        if (low < 0xdc00 || low >= 0xe000)
            return dv_json_refuse(json, "half a surrogate pair");
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    return put_code_point(json, to, code);
}

static bool read_escape(dv_json_cursor *json, copy *to) {
    static const char letters[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    if (json->at == json->end)
        return dv_json_refuse(json, "the string has no end");
    char letter = *json->at++;
    if (letter == 'u')
        return read_unicode(json, to);
    const char *found = letter != '\0' ? strchr(letters, letter) : NULL;
    if (found == NULL)
        return dv_json_refuse(json, "an escape that JSON does not have");
    return put(json, to, (unsigned char)meant[found - letters]);
}

static bool read_string(dv_json_cursor *json, copy *to) {
    if (!take(json, '"', "a string should begin here"))
        return false;
    while (json->at < json->end && *json->at != '"') {
        unsigned char byte = (unsigned char)*json->at++;
        if (byte < 0x20)
            return dv_json_refuse(json, "a control character in a string");
        if (!(byte == '\\' ? read_escape(json, to) : put(json, to, byte)))
            return false;
    }
    return take(json, '"', "the string has no end");
}

bool dv_json_read_text(dv_json_cursor *json, char *text, size_t bytes) {
    copy to = {.text = text, .bytes = bytes};
    bool read = read_string(json, &to);
    text[to.used] = '\0';
    return read;
}

bool dv_json_read_key(dv_json_cursor *json, char *text, size_t bytes) {
    return dv_json_read_text(json, text, bytes) && take(json, ':', "a colon is missing");
}

/* ---- numbers and words --------------------------------------------------------------------- */

static bool is_digit(char letter) {
    return letter >= '0' && letter <= '9';
}

bool dv_json_read_unsigned(dv_json_cursor *json, uint64_t *number) {
    *number = 0;
    if (!is_digit(peek(json)))
        return dv_json_refuse(json, "a whole number should begin here");
    if (*json->at == '0' && json->end - json->at > 1 && is_digit(json->at[1]))
        return dv_json_refuse(json, "a number with a zero in front");
    for (; json->at < json->end && is_digit(*json->at); json->at++) {
        uint64_t digit = (uint64_t)(*json->at - '0');
        if (*number > (UINT64_MAX - digit) / 10)
            return dv_json_refuse(json, "the number is too large");
        *number = *number * 10 + digit;
    }
    if (json->at < json->end && (*json->at == '.' || *json->at == 'e' || *json->at == 'E'))
        return dv_json_refuse(json, "the number is not whole");
    return true;
}

/* Passes over digits. Returns false if there is none. */
static bool pass_digits(dv_json_cursor *json) {
    const char *first = json->at;
    while (json->at < json->end && is_digit(*json->at))
        json->at++;
    return json->at > first;
}

static bool pass_one_of(dv_json_cursor *json, const char *letters) {
    if (json->at == json->end || *json->at == '\0' || strchr(letters, *json->at) == NULL)
        return false;
    json->at++;
    return true;
}

static bool pass_number(dv_json_cursor *json) {
    static const char problem[] = "a number that JSON does not have";
    pass_one_of(json, "-");
    const char *first = json->at;
    if (!pass_digits(json) || (*first == '0' && json->at - first > 1))
        return dv_json_refuse(json, problem);
    if (pass_one_of(json, ".") && !pass_digits(json))
        return dv_json_refuse(json, problem);
    if (pass_one_of(json, "eE")) {
        pass_one_of(json, "+-");
        if (!pass_digits(json))
            return dv_json_refuse(json, problem);
    }
    return true;
}

static bool pass_word(dv_json_cursor *json) {
    static const char *const words[] = {"true", "false", "null"};
    for (int i = 0; i < 3; i++) {
        size_t length = strlen(words[i]);
        if ((size_t)(json->end - json->at) < length || memcmp(json->at, words[i], length) != 0)
            continue;
        json->at += length;
        return true;
    }
    return dv_json_refuse(json, "a value should begin here");
}

/* A number or a word. */
static bool pass_plain(dv_json_cursor *json) {
    char first = peek(json);
    return first == '-' || is_digit(first) ? pass_number(json) : pass_word(json);
}

bool dv_json_read_scalar(dv_json_cursor *json, char *text, size_t bytes, bool *is_null) {
    text[0] = '\0';
    *is_null = false;
    if (peek(json) == '"')
        return dv_json_read_text(json, text, bytes);
    const char *first = json->at;
    if (!pass_plain(json))
        return false;
    size_t length = (size_t)(json->at - first);
    if (length >= bytes)
        return dv_json_refuse(json, "the number is too long");
    memcpy(text, first, length);
    text[length] = '\0';
    *is_null = *first == 'n';
    return true;
}

/* ---- passing over -------------------------------------------------------------------------- */

/* The objects and arrays that are open: what closes each. */
typedef struct nest {
    char closing[MAX_DEPTH];
    int depth;
} nest;

/* Passes over a scalar, or enters an object or array. */
static bool pass_or_enter(dv_json_cursor *json, nest *open) {
    char first = peek(json);
    if (first == '"')
        return read_string(json, &(copy){0});
    if (first != '{' && first != '[')
        return pass_plain(json);
    if (open->depth == MAX_DEPTH)
        return dv_json_refuse(json, "too deep");
    open->closing[open->depth++] = first == '{' ? '}' : ']';
    return dv_json_enter(json, first);
}

bool dv_json_skip(dv_json_cursor *json) {
    nest open = {.depth = 0};
    pass_or_enter(json, &open);
    while (open.depth > 0 && json->problem == NULL) {
        char closing = open.closing[open.depth - 1];
        if (!dv_json_next(json, closing)) {
            open.depth--;
            continue;
        }
        if (closing == '}' && !(read_string(json, &(copy){0}) && take(json, ':', "a colon is missing")))
            return false;
        pass_or_enter(json, &open);
    }
    return json->problem == NULL;
}
