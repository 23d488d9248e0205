/* Options behind a name, against tables. */
#include "base/option_text.h"

#include "base/sizes.h"
#include "base/status.h"

#include <stdio.h>
#include <string.h>

/* How much of a text a message shows. */
enum { SHOWN = 40 };

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

static int shown(span text) {
    return (int)dv_smaller(text.length, SHOWN);
}

static const dv_option *find_option(span name, const dv_option_table *table) {
    for (size_t i = 0; i < table->count; i++)
        if (strlen(table->options[i].name) == name.length &&
            memcmp(table->options[i].name, name.start, name.length) == 0)
            return &table->options[i];
    return NULL;
}

static dv_status fail_unknown(const char *owner, span name, const dv_option_table *tables, size_t table_count,
                              dv_error *error) {
    char known[200] = "";
    for (size_t s = 0; s < table_count; s++)
        for (size_t i = 0; i < tables[s].count; i++)
            snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", *known ? ", " : "",
                     tables[s].options[i].name);
    return dv_fail(error, DV_ERROR_OPTION, "%s: unknown option \"%.*s\": %s%s", owner, shown(name), name.start,
                   *known ? "there are " : "it takes none", known);
}

static dv_status set_option(const char *owner, span name, span value, const dv_option_table *tables, size_t table_count,
                            dv_error *error) {
    for (size_t s = 0; s < table_count; s++) {
        const dv_option *option = find_option(name, &tables[s]);
        char takes[DV_OPTION_TAKES_BYTES];
        if (option == NULL)
            continue;
        if (dv_option_read(option, tables[s].values, value.start, value.length))
            return DV_OK;
        return dv_fail(error, DV_ERROR_OPTION, "%s: %s=%.*s: must be %s", owner, option->name, shown(value),
                       value.start, dv_option_takes(option, takes));
    }
    return fail_unknown(owner, name, tables, table_count, error);
}

int dv_option_text_names(const char *text, const char *name, const char **rest) {
    size_t length = strlen(name);
    if (strncmp(text, name, length) != 0 || (text[length] != '\0' && text[length] != ':'))
        return 0;
    *rest = text[length] == ':' ? text + length + 1 : NULL;
    return 1;
}

void dv_option_text_preset(const dv_option_table *table) {
    for (size_t i = 0; i < table->count; i++) {
        const char *preset = table->options[i].preset;
        if (preset != NULL)
            (void)dv_option_read(&table->options[i], table->values, preset, strlen(preset));
    }
}

dv_status dv_option_text_parse(const char *owner, const char *rest, const dv_option_table *tables, size_t table_count,
                               dv_error *error) {
    span left = {rest, rest != NULL ? strlen(rest) : 0};
    for (int more = rest != NULL; more;) {
        more = memchr(left.start, ',', left.length) != NULL;
        span value = cut(&left, ',');
        span name = cut(&value, '=');
        if (name.length == 0)
            return dv_fail(error, DV_ERROR_OPTION, "%s: no option after a colon or comma: name one or drop the mark",
                           owner);
        DV_TRY(set_option(owner, name, value, tables, table_count, error));
    }
    return DV_OK;
}

size_t dv_option_text_format(const dv_option_table *table, char mark, char *text, size_t length, size_t bytes) {
    for (size_t i = 0; i < table->count; i++, mark = ',') {
        size_t room = length < bytes ? bytes - length : 0;
        length += (size_t)snprintf(room ? text + length : NULL, room, "%c%s=", mark, table->options[i].name);
        room = length < bytes ? bytes - length : 0;
        length += dv_option_get(&table->options[i], table->values, room ? text + length : NULL, room);
    }
    return length;
}
