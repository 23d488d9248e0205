/* Options: every kind is a line of a table, with how it reads a text, what it takes, and how its value is told. */
#include "base/option.h"

#include "base/status.h"

#include <division/tools/json.h>

#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The longest number, and how much of a text a message shows. */
enum { NUMBER_BYTES = 64, SHOWN = 60, LONGEST_NAME = 32, MOST_NAMES = 128 };

/* A text that is not terminated. */
typedef struct span {
    const char *at;
    size_t length;
} span;

/* Where the value is. */
static void *place(const dv_option *option, const void *values) {
    return option->target != NULL ? option->target : (char *)(uintptr_t)values + option->offset;
}

static int equals(span text, const char *word) {
    return strlen(word) == text.length && memcmp(word, text.at, text.length) == 0;
}

void dv_join_words(const char *const *words, size_t count, const char *between, const char *last, char *text,
                   size_t bytes) {
    size_t used = strlen(text);
    for (size_t i = 0; i < count && used < bytes; i++) {
        const char *mark = i == 0 ? "" : i + 1 < count ? between : last;
        used += (size_t)snprintf(text + used, bytes - used, "%s%s", mark, words[i]);
    }
}

/* ---- reading numbers ----------------------------------------------------------------------- */

/* Copies a number for functions of the C library; its point becomes that of the locale. Returns 0 if it is none: these
 * functions themselves take " 1", "nan" and "-0". */
static int copy_number(span text, const char *signs, char number[NUMBER_BYTES]) {
    span digits = text;
    if (digits.length > 0 && *digits.at == '-' && strchr(signs, '-') != NULL)
        digits = (span){text.at + 1, text.length - 1};
    if (digits.length == 0 || text.length >= NUMBER_BYTES || strchr("0123456789.", *digits.at) == NULL)
        return 0;
    memcpy(number, text.at, text.length);
    number[text.length] = '\0';
    char *point = strchr(number, '.');
    if (point != NULL)
        *point = *localeconv()->decimal_point;
    return 1;
}

static int read_whole(const dv_option *option, span text, long long *whole) {
    char number[NUMBER_BYTES], *end;
    if (!copy_number(text, "-", number))
        return 0;
    errno = 0;
    *whole = strtoll(number, &end, 10);
    return end == number + text.length && errno == 0 && (double)*whole >= option->minimum &&
           (double)*whole <= option->maximum;
}

static int read_integer(const dv_option *option, span text, void *target) {
    long long whole;
    if (!read_whole(option, text, &whole))
        return 0;
    *(int *)target = (int)whole;
    return 1;
}

static int is_power(long long number) {
    return number > 0 && (number & (number - 1)) == 0;
}

static int read_power(const dv_option *option, span text, void *target) {
    long long whole;
    if (!read_whole(option, text, &whole) || !is_power(whole))
        return 0;
    *(int *)target = (int)whole;
    return 1;
}

static int read_count(const dv_option *option, span text, void *target) {
    long long whole;
    if (option->words != NULL && equals(text, option->words[0])) {
        *(size_t *)target = SIZE_MAX;
        return 1;
    }
    if (!read_whole(option, text, &whole) || whole < 0)
        return 0;
    *(size_t *)target = (size_t)whole;
    return 1;
}

static int read_counts(const dv_option *option, span text, void *target) {
    dv_counts made = {.count = 0};
    for (int more = 1; more; made.count++) {
        const char *plus = text.length > 0 ? memchr(text.at, '+', text.length) : NULL;
        size_t length = plus != NULL ? (size_t)(plus - text.at) : text.length;
        if (made.count == DV_MOST_COUNTS || !read_count(option, (span){text.at, length}, &made.at[made.count]))
            return 0;
        more = plus != NULL;
        text = (span){text.at + length + more, text.length - length - (size_t)more};
    }
    *(dv_counts *)target = made;
    return 1;
}

static int read_unsigned(const dv_option *option, span text, void *target) {
    char number[NUMBER_BYTES], *end;
    (void)option;
    if (!copy_number(text, "", number))
        return 0;
    errno = 0;
    unsigned long long whole = strtoull(number, &end, strncmp(number, "0x", 2) == 0 ? 16 : 10);
    if (end != number + text.length || errno != 0)
        return 0;
    *(uint64_t *)target = whole;
    return 1;
}

static int read_number(const dv_option *option, span text, void *target) {
    char copy[NUMBER_BYTES], *end;
    if (!copy_number(text, "-", copy))
        return 0;
    double number = strtod(copy, &end);
    if (end != copy + text.length || !(number >= option->minimum && number <= option->maximum))
        return 0;
    *(double *)target = number;
    return 1;
}

/* ---- reading the rest ---------------------------------------------------------------------- */

static int read_flag(const dv_option *option, span text, void *target) {
    static const char *const words[] = {"no", "yes", "false", "true", "0", "1"};
    (void)option;
    for (int i = 0; i < 6; i++) {
        if (!equals(text, words[i]))
            continue;
        *(int *)target = i & 1;
        return 1;
    }
    return 0;
}

static int read_word(const dv_option *option, span text, void *target) {
    for (int i = 0; option->words[i] != NULL; i++) {
        if (!equals(text, option->words[i]))
            continue;
        *(int *)target = i;
        return 1;
    }
    return 0;
}

static int read_copy(const dv_option *option, span text, void *target) {
    if ((text.length == 0 && !option->clears) || text.length >= option->room)
        return 0;
    memcpy(target, text.at, text.length);
    ((char *)target)[text.length] = '\0';
    return 1;
}

static int read_text(const dv_option *option, span text, void *target) {
    (void)option;
    *(const char **)target = text.at;
    return 1;
}

/* ---- what an option takes ------------------------------------------------------------------ */

static void flag_takes(const dv_option *option, char *text, size_t bytes) {
    (void)option;
    snprintf(text, bytes, "yes, no, or no value at all");
}

static void whole_takes(const dv_option *option, char *text, size_t bytes) {
    snprintf(text, bytes, "a whole number from %.0f to %.0f", option->minimum, option->maximum);
}

static void count_takes(const dv_option *option, char *text, size_t bytes) {
    whole_takes(option, text, bytes);
    size_t used = strlen(text);
    if (option->words != NULL)
        snprintf(text + used, bytes - used, ", or %s", option->words[0]);
}

static void power_takes(const dv_option *option, char *text, size_t bytes) {
    size_t used = 0;
    for (double power = 1; power <= option->maximum && used < bytes; power *= 2) {
        const char *before = used == 0 ? "" : power * 2 > option->maximum ? " or " : ", ";
        if (power >= option->minimum)
            used += (size_t)snprintf(text + used, bytes - used, "%s%.0f", before, power);
    }
}

static void counts_takes(const dv_option *option, char *text, size_t bytes) {
    snprintf(text, bytes, "up to %d whole numbers from %.0f to %.0f with '+' between them", DV_MOST_COUNTS,
             option->minimum, option->maximum);
}

static void unsigned_takes(const dv_option *option, char *text, size_t bytes) {
    (void)option;
    snprintf(text, bytes, "a whole number from 0 to %" PRIu64, UINT64_MAX);
}

static void number_takes(const dv_option *option, char *text, size_t bytes) {
    snprintf(text, bytes, "a number from %g to %g", option->minimum, option->maximum);
}

static size_t count_words(const dv_option *option) {
    size_t count = 0;
    while (option->words[count] != NULL)
        count++;
    return count;
}

static void word_takes(const dv_option *option, char *text, size_t bytes) {
    *text = '\0';
    dv_join_words(option->words, count_words(option), ", ", " or ", text, bytes);
}

static void copy_takes(const dv_option *option, char *text, size_t bytes) {
    snprintf(text, bytes, "a text of up to %zu characters", option->room - 1);
}

static void text_takes(const dv_option *option, char *text, size_t bytes) {
    (void)option;
    snprintf(text, bytes, "any text");
}

/* ---- what its value is --------------------------------------------------------------------- */

static size_t get_flag(const dv_option *option, const void *value, char *text, size_t bytes) {
    (void)option;
    return (size_t)snprintf(text, bytes, "%s", *(const int *)value ? "yes" : "no");
}

static size_t get_integer(const dv_option *option, const void *value, char *text, size_t bytes) {
    (void)option;
    return (size_t)snprintf(text, bytes, "%d", *(const int *)value);
}

/* Whether it is the word and no number. */
static int is_word(const dv_option *option, const void *value) {
    return option->words != NULL && *(const size_t *)value == SIZE_MAX;
}

static size_t get_count(const dv_option *option, const void *value, char *text, size_t bytes) {
    if (is_word(option, value))
        return (size_t)snprintf(text, bytes, "%s", option->words[0]);
    return (size_t)snprintf(text, bytes, "%zu", *(const size_t *)value);
}

static size_t get_counts(const dv_option *option, const void *value, char *text, size_t bytes) {
    const dv_counts *counts = value;
    size_t length = 0;
    (void)option;
    for (size_t i = 0; i < counts->count && i < DV_MOST_COUNTS; i++) {
        size_t room = length < bytes ? bytes - length : 0;
        length += (size_t)snprintf(room > 0 ? text + length : NULL, room, i > 0 ? "+%zu" : "%zu", counts->at[i]);
    }
    return length;
}

static size_t get_unsigned(const dv_option *option, const void *value, char *text, size_t bytes) {
    (void)option;
    return (size_t)snprintf(text, bytes, "%" PRIu64, *(const uint64_t *)value);
}

/* With as many digits as it takes to read the same number again; without a key JSON has no more than that. */
static size_t get_number(const dv_option *option, const void *value, char *text, size_t bytes) {
    char number[NUMBER_BYTES];
    dv_json json;
    (void)option;
    dv_json_to_buffer(&json, number, sizeof number);
    dv_json_number(&json, NULL, *(const double *)value);
    (void)dv_json_finish(&json, NULL);
    return (size_t)snprintf(text, bytes, "%s", isfinite(*(const double *)value) ? number : "nan");
}

static int holds_word(const dv_option *option, const void *value) {
    int index = *(const int *)value;
    return index >= 0 && (size_t)index < count_words(option);
}

static size_t get_word(const dv_option *option, const void *value, char *text, size_t bytes) {
    if (!holds_word(option, value))
        return get_integer(option, value, text, bytes);
    return (size_t)snprintf(text, bytes, "%s", option->words[*(const int *)value]);
}

static size_t get_copy(const dv_option *option, const void *value, char *text, size_t bytes) {
    (void)option;
    return (size_t)snprintf(text, bytes, "%s", (const char *)value);
}

static size_t get_text(const dv_option *option, const void *value, char *text, size_t bytes) {
    const char *given = *(const char *const *)value;
    (void)option;
    return (size_t)snprintf(text, bytes, "%s", given != NULL ? given : "");
}

/* ---- ... as JSON --------------------------------------------------------------------------- */

static void write_flag(const dv_option *option, const void *value, dv_json *json) {
    dv_json_boolean(json, option->name, *(const int *)value);
}

static void write_integer(const dv_option *option, const void *value, dv_json *json) {
    dv_json_integer(json, option->name, *(const int *)value);
}

static void write_count(const dv_option *option, const void *value, dv_json *json) {
    if (is_word(option, value))
        dv_json_text(json, option->name, option->words[0]);
    else
        dv_json_unsigned(json, option->name, *(const size_t *)value);
}

static void write_unsigned(const dv_option *option, const void *value, dv_json *json) {
    dv_json_unsigned(json, option->name, *(const uint64_t *)value);
}

static void write_number(const dv_option *option, const void *value, dv_json *json) {
    dv_json_number(json, option->name, *(const double *)value);
}

/* Words and lists, which are short. */
static void write_as_text(const dv_option *option, const void *value, dv_json *json);

static void write_copy(const dv_option *option, const void *value, dv_json *json) {
    const char *text = value;
    dv_json_text(json, option->name, *text != '\0' ? text : NULL);
}

static void write_text(const dv_option *option, const void *value, dv_json *json) {
    dv_json_text(json, option->name, *(const char *const *)value);
}

/* ---- ... and whether it is within bounds --------------------------------------------------- */

static int within(const dv_option *option, double number) {
    return number >= option->minimum && number <= option->maximum;
}

static int holds_any(const dv_option *option, const void *value) {
    (void)option;
    (void)value;
    return 1;
}

static int holds_integer(const dv_option *option, const void *value) {
    return within(option, *(const int *)value);
}

static int holds_power(const dv_option *option, const void *value) {
    return holds_integer(option, value) && is_power(*(const int *)value);
}

static int holds_count(const dv_option *option, const void *value) {
    return is_word(option, value) || within(option, (double)*(const size_t *)value);
}

static int holds_counts(const dv_option *option, const void *value) {
    const dv_counts *counts = value;
    for (size_t i = 0; i < counts->count && i < DV_MOST_COUNTS; i++)
        if (!within(option, (double)counts->at[i]))
            return 0;
    return counts->count <= DV_MOST_COUNTS;
}

static int holds_number(const dv_option *option, const void *value) {
    return within(option, *(const double *)value);
}

/* ---- kinds --------------------------------------------------------------------------------- */

static const struct {
    int (*read)(const dv_option *option, span text, void *target);
    void (*takes)(const dv_option *option, char *text, size_t bytes);
    size_t (*get)(const dv_option *option, const void *value, char *text, size_t bytes);
    void (*write)(const dv_option *option, const void *value, dv_json *json);
    int (*holds)(const dv_option *option, const void *value);
} kinds[DV_OPTION_KIND_COUNT] = {
    [DV_OPTION_FLAG] = {read_flag, flag_takes, get_flag, write_flag, holds_any},
    [DV_OPTION_INTEGER] = {read_integer, whole_takes, get_integer, write_integer, holds_integer},
    [DV_OPTION_POWER] = {read_power, power_takes, get_integer, write_integer, holds_power},
    [DV_OPTION_COUNT] = {read_count, count_takes, get_count, write_count, holds_count},
    [DV_OPTION_COUNTS] = {read_counts, counts_takes, get_counts, write_as_text, holds_counts},
    [DV_OPTION_UNSIGNED] = {read_unsigned, unsigned_takes, get_unsigned, write_unsigned, holds_any},
    [DV_OPTION_NUMBER] = {read_number, number_takes, get_number, write_number, holds_number},
    [DV_OPTION_WORD] = {read_word, word_takes, get_word, write_as_text, holds_word},
    [DV_OPTION_COPY] = {read_copy, copy_takes, get_copy, write_copy, holds_any},
    [DV_OPTION_TEXT] = {read_text, text_takes, get_text, write_text, holds_any},
};

static void write_as_text(const dv_option *option, const void *value, dv_json *json) {
    char text[NUMBER_BYTES * DV_MOST_COUNTS];
    kinds[option->kind].get(option, value, text, sizeof text);
    dv_json_text(json, option->name, text);
}

int dv_option_read(const dv_option *option, void *values, const char *text, size_t length) {
    static const char yes[] = "yes";
    if (text == NULL && option->kind != DV_OPTION_FLAG)
        return 0;
    span whole = text != NULL ? (span){text, length} : (span){yes, strlen(yes)};
    return kinds[option->kind].read(option, whole, place(option, values));
}

char *dv_option_takes(const dv_option *option, char text[DV_OPTION_TAKES_BYTES]) {
    kinds[option->kind].takes(option, text, DV_OPTION_TAKES_BYTES);
    return text;
}

/* What a text stands for; a failure names the option. */
static dv_status accept(const dv_option *option, void *values, const char *text, dv_error *error) {
    dv_error wrong;
    size_t length = strlen(option->name);
    dv_status status = option->accept(text, (char *)place(option, values) - option->offset, &wrong);
    if (status == DV_OK)
        return DV_OK;
    if (strncmp(wrong.text, option->name, length) == 0 && wrong.text[length] == ':')
        return dv_fail(error, status, "%s", wrong.text);
    return dv_fail(error, status, "%s: %s", option->name, wrong.text);
}

dv_status dv_option_set(const dv_option *option, void *values, const char *text, dv_error *error) {
    char takes[DV_OPTION_TAKES_BYTES];
    DV_NEED(option);
    if (option->target == NULL)
        DV_NEED(values);
    bool first = option->kind == DV_OPTION_COPY; /* a text that stands for nothing is not kept */
    bool accepts = option->accept != NULL && text != NULL && *text != '\0';
    if (accepts && first)
        DV_TRY(accept(option, values, text, error));
    if (dv_option_read(option, values, text, text != NULL ? strlen(text) : 0))
        return accepts && !first ? accept(option, values, text, error) : DV_OK;
    dv_option_takes(option, takes);
    if (text == NULL)
        return dv_fail(error, DV_ERROR_OPTION, "%s: its value is missing: give %s", option->name, takes);
    return dv_fail(error, DV_ERROR_OPTION, "%s: '%.*s' is not what it takes: give %s", option->name, SHOWN, text,
                   takes);
}

size_t dv_option_get(const dv_option *option, const void *values, char *text, size_t bytes) {
    return kinds[option->kind].get(option, place(option, values), text, bytes);
}

void dv_option_write(const dv_option *option, const void *values, dv_json *json) {
    kinds[option->kind].write(option, place(option, values), json);
}

int dv_option_holds(const dv_option *option, const void *values) {
    return kinds[option->kind].holds(option, place(option, values));
}

/* ---- by name -------------------------------------------------------------------------------- */

const dv_option *dv_option_find(const dv_option *options, size_t count, const char *name, size_t length) {
    for (size_t i = 0; i < count; i++)
        if (equals((span){name, length}, options[i].name))
            return &options[i];
    return NULL;
}

dv_status dv_option_unknown(const dv_option *options, size_t count, const char *name, dv_error *error) {
    const char *names[MOST_NAMES];
    DV_NEED(options);
    DV_NEED(name);
    for (size_t i = 0; i < count && i < MOST_NAMES; i++)
        names[i] = options[i].name;
    const char *nearest = dv_nearest(name, names, count < MOST_NAMES ? count : MOST_NAMES);
    if (nearest != NULL)
        return dv_fail(error, DV_ERROR_OPTION, "%.*s: no such option: did you mean %s?", SHOWN, name, nearest);
    return dv_fail(error, DV_ERROR_OPTION, "%.*s: no such option: see --help for those there are", SHOWN, name);
}

/* ---- nearest names ------------------------------------------------------------------------- */

static size_t least(size_t a, size_t b, size_t c) {
    size_t lower = a < b ? a : b;
    return lower < c ? lower : c;
}

/* Letters to insert, drop or exchange to make one name of the other (Levenshtein), one row at a time. */
static size_t name_distance(const char *from, const char *to) {
    size_t row[LONGEST_NAME + 1], length = strlen(to);
    if (length > LONGEST_NAME)
        return SIZE_MAX;
    for (size_t j = 0; j <= length; j++)
        row[j] = j;
    for (size_t i = 1; from[i - 1] != '\0'; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= length; j++) {
            size_t above = row[j];
            row[j] = least(above + 1, row[j - 1] + 1, diagonal + (from[i - 1] != to[j - 1]));
            diagonal = above;
        }
    }
    return row[length];
}

const char *dv_nearest(const char *name, const char *const *names, size_t count) {
    const char *nearest = NULL;
    size_t best = strlen(name) / 3 + 2; /* about one letter in three may be wrong */
    for (size_t i = 0; i < count; i++) {
        size_t distance = name_distance(name, names[i]);
        if (distance >= best || distance >= strlen(names[i]))
            continue;
        best = distance;
        nearest = names[i];
    }
    return nearest;
}
