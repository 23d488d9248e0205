/* Options from text, against tables. */
#include "base/option_text.h"

#include "base/status.h"

#include <stdio.h>
#include <string.h>

/* A piece of text that is not terminated. */
typedef struct span {
    const char *start;
    size_t length;
} span;

/* Cuts `text` at the first `mark`: returns what is before, leaves what is after in *text (empty where
 * there is no mark). */
static span cut(span *text, char mark) {
    const char *found = memchr(text->start, mark, text->length);
    span head = {text->start, found ? (size_t)(found - text->start) : text->length};
    size_t used = head.length + (found ? 1 : 0);
    *text = (span){text->start + used, text->length - used};
    return head;
}

static int span_equals(span text, const char *word) {
    return strlen(word) == text.length && memcmp(word, text.start, text.length) == 0;
}

/* For messages: at most so many characters of a span. */
static int shown(span text) {
    return text.length < 40 ? (int)text.length : 40;
}

/* Reads a number of at most nine digits; -1 if the text is anything else. */
static int32_t read_number(span text) {
    int32_t number = 0;
    if (text.length == 0 || text.length > 9)
        return -1;
    for (size_t i = 0; i < text.length; i++) {
        if (text.start[i] < '0' || text.start[i] > '9')
            return -1;
        number = number * 10 + (text.start[i] - '0');
    }
    return number;
}

static int32_t read_value(const dv_option *option, span text) {
    if (!option->words)
        return read_number(text);
    for (int32_t i = option->minimum; i <= option->maximum; i++)
        if (span_equals(text, option->words[i]))
            return i;
    return -1;
}

int dv_option_allows(const dv_option *option, int32_t value) {
    int power = (value & (value - 1)) == 0;
    return value >= option->minimum && value <= option->maximum && (power || !option->power_of_two);
}

/* "2 to 64", "1, 2, 4 or 8", "stochastic or subtractive". */
static void describe_bounds(const dv_option *option, char *text, size_t bytes) {
    if (!option->words && !option->power_of_two) {
        snprintf(text, bytes, "%d to %d", option->minimum, option->maximum);
        return;
    }
    size_t length = 0;
    int32_t next;
    for (int32_t i = option->minimum; i <= option->maximum && length < bytes; i = next) {
        next = option->power_of_two ? 2 * i : i + 1;
        const char *before = length == 0 ? "" : next > option->maximum ? " or " : ", ";
        int wrote = option->words ? snprintf(text + length, bytes - length, "%s%s", before, option->words[i])
                                  : snprintf(text + length, bytes - length, "%s%d", before, i);
        length += (size_t)wrote;
    }
}

static const dv_option *find_option(span name, const dv_option_set *sets, size_t set_count, int32_t **value) {
    for (size_t s = 0; s < set_count; s++)
        for (size_t i = 0; i < sets[s].count; i++)
            if (span_equals(name, sets[s].options[i].name)) {
                *value = &sets[s].values[i];
                return &sets[s].options[i];
            }
    return NULL;
}

static dv_status fail_unknown(span owner, span name, const dv_option_set *sets, size_t set_count, dv_error *error) {
    char known[200] = "";
    for (size_t s = 0; s < set_count; s++)
        for (size_t i = 0; i < sets[s].count; i++)
            snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", *known ? ", " : "",
                     sets[s].options[i].name);
    return dv_fail(error, DV_ERROR_OPTION, "%.*s: unknown option \"%.*s\": %s%s", shown(owner), owner.start,
                   shown(name), name.start, *known ? "there are " : "it takes none", known);
}

static dv_status set_option(span owner, span name, span value, const dv_option_set *sets, size_t set_count,
                            dv_error *error) {
    int32_t *target = NULL;
    const dv_option *option = find_option(name, sets, set_count, &target);
    if (!option)
        return fail_unknown(owner, name, sets, set_count, error);
    int32_t number = read_value(option, value);
    if (!dv_option_allows(option, number)) {
        char bounds[80];
        describe_bounds(option, bounds, sizeof bounds);
        return dv_fail(error, DV_ERROR_OPTION, "%.*s: %s=%.*s: must be %s", shown(owner), owner.start, option->name,
                       shown(value), value.start, bounds);
    }
    *target = number;
    return DV_OK;
}

int dv_option_text_names(const char *text, const char *name) {
    span rest = {text, strlen(text)};
    return span_equals(cut(&rest, ':'), name);
}

dv_status dv_option_text_parse(const char *text, const dv_option_set *sets, size_t set_count, dv_error *error) {
    span rest = {text, strlen(text)};
    span owner = cut(&rest, ':');
    for (size_t s = 0; s < set_count; s++)
        for (size_t i = 0; i < sets[s].count; i++)
            sets[s].values[i] = sets[s].options[i].preset;
    for (int more = text[owner.length] == ':'; more;) {
        more = memchr(rest.start, ',', rest.length) != NULL;
        span value = cut(&rest, ',');
        span name = cut(&value, '=');
        if (name.length == 0)
            return dv_fail(error, DV_ERROR_OPTION, "%.*s: no option after a colon or comma: name one or drop the mark",
                           shown(owner), owner.start);
        DV_TRY(set_option(owner, name, value, sets, set_count, error));
    }
    return DV_OK;
}

size_t dv_option_text_format(const dv_option_set *set, char mark, char *text, size_t length, size_t bytes) {
    for (size_t i = 0; i < set->count; i++, mark = ',') {
        const dv_option *option = &set->options[i];
        int32_t value = set->values[i];
        size_t room = length < bytes ? bytes - length : 0;
        char *end = room ? text + length : NULL;
        int word = option->words && dv_option_allows(option, value);
        length += word ? (size_t)snprintf(end, room, "%c%s=%s", mark, option->name, option->words[value])
                       : (size_t)snprintf(end, room, "%c%s=%d", mark, option->name, value);
    }
    return length;
}
