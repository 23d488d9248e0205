/* The parser of settings: one pass over the text, one function per kind of value. */
#include "base/settings.h"

#include "base/status.h"

#include <stdlib.h>
#include <string.h>

/* The longest value, and how much of one a message shows. */
enum { VALUE_BYTES = 256, SHOWN = 40 };

/* Reads a number within the setting's bounds that ends at `end`. Returns 0 if it is none. */
static int read_number(const dv_setting *setting, const char *text, const char *end, double *number) {
    char *stopped;
    if (text == end || strchr("0123456789.", *text) == NULL) /* strtod itself takes " 1", "nan" and "-0" */
        return 0;
    *number = strtod(text, &stopped);
    return stopped == end && *number >= setting->minimum && *number <= setting->maximum;
}

/* The same for whole numbers, digits alone. */
static int read_count(const dv_setting *setting, const char *text, const char *end, size_t *count) {
    double number;
    for (const char *at = text; at < end; at++)
        if (*at < '0' || *at > '9')
            return 0;
    if (!read_number(setting, text, end, &number))
        return 0;
    *count = (size_t)number;
    return 1;
}

static int read_counts(const dv_setting *setting, const char *text) {
    size_t *counts = setting->target, used = 0;
    for (int more = 1; more; used++) {
        const char *end = text + strcspn(text, "+");
        if (used == setting->room || !read_count(setting, text, end, &counts[used]))
            return 0;
        more = *end == '+';
        text = end + 1;
    }
    *setting->used = used;
    return 1;
}

static int read_value(const dv_setting *setting, const char *text) {
    const char *end = text + strlen(text);
    switch (setting->kind) {
    case DV_SETTING_COUNT:
        return read_count(setting, text, end, setting->target);
    case DV_SETTING_NUMBER:
        return read_number(setting, text, end, setting->target);
    case DV_SETTING_COUNTS:
        return read_counts(setting, text);
    }
    return 0;
}

static dv_status fail_value(const char *owner, const dv_setting *setting, const char *value, dv_error *error) {
    if (setting->kind == DV_SETTING_NUMBER)
        return dv_fail(error, DV_ERROR_OPTION, "%s: %s=%.*s: must be a number from %g to %g", owner, setting->name,
                       SHOWN, value, setting->minimum, setting->maximum);
    if (setting->kind == DV_SETTING_COUNT)
        return dv_fail(error, DV_ERROR_OPTION, "%s: %s=%.*s: must be a whole number from %.0f to %.0f", owner,
                       setting->name, SHOWN, value, setting->minimum, setting->maximum);
    return dv_fail(error, DV_ERROR_OPTION,
                   "%s: %s=%.*s: must be up to %zu whole numbers from %.0f to %.0f with '+' between them", owner,
                   setting->name, SHOWN, value, setting->room, setting->minimum, setting->maximum);
}

static dv_status fail_name(const char *owner, const char *name, const dv_setting *table, dv_error *error) {
    char known[160] = "";
    for (const dv_setting *at = table; at->name != NULL; at++) {
        strncat(known, at == table ? "" : ", ", sizeof known - strlen(known) - 1);
        strncat(known, at->name, sizeof known - strlen(known) - 1);
    }
    return dv_fail(error, DV_ERROR_OPTION, "%s: unknown option \"%.*s\": %s%s", owner, SHOWN, name,
                   known[0] != '\0' ? "there are " : "it takes none", known);
}

/* Sets one, given as "name=value". */
static dv_status set(const char *owner, char *text, const dv_setting *table, dv_error *error) {
    char *equals = strchr(text, '=');
    if (equals != NULL)
        *equals = '\0';
    for (const dv_setting *at = table; at->name != NULL; at++) {
        if (strcmp(at->name, text) != 0)
            continue;
        const char *value = equals != NULL ? equals + 1 : "";
        return read_value(at, value) ? DV_OK : fail_value(owner, at, value, error);
    }
    return fail_name(owner, text, table, error);
}

dv_status dv_settings_parse(const char *owner, const char *text, const dv_setting *table, dv_error *error) {
    while (text != NULL) {
        char one[VALUE_BYTES];
        size_t length = strcspn(text, ",");
        if (length >= sizeof one)
            return dv_fail(error, DV_ERROR_OPTION, "%s: an option of %zu characters: give a shorter one", owner,
                           length);
        memcpy(one, text, length);
        one[length] = '\0';
        DV_TRY(set(owner, one, table, error));
        text = text[length] == ',' ? text + length + 1 : NULL;
    }
    return DV_OK;
}

int dv_settings_name(const char *text, const char *name, const char **rest) {
    size_t length = strlen(name);
    if (strncmp(text, name, length) != 0 || (text[length] != '\0' && text[length] != ':'))
        return 0;
    *rest = text[length] == ':' ? text + length + 1 : NULL;
    return 1;
}
