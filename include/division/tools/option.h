/* Tables of options: one parser for the texts behind a name ("division:block=8,bits=2", "step:every=30"), the options
 * of a training and the command line. A table of a struct:
 *
 *     typedef struct thing { size_t side; double rate; } thing;
 *     static const dv_option rows[] = {
 *         {"side", "N", "of the images", DV_COUNT_AT(thing, side, 1, 1024), .preset = "32"},
 *         {"rate", "R", "of learning", DV_NUMBER_AT(thing, rate, 0, 1), .preset = "0.1"},
 *     };
 *     dv_option_set(&rows[0], &made, "64", &error); */
#ifndef DIVISION_TOOLS_OPTION_H
#define DIVISION_TOOLS_OPTION_H

#include <division/option.h>
#include <division/status.h>
#include <division/tools/json.h>
#include <division/tools/tool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The part of a row that says where in a struct the value is, and what it may be. A member of another type than the
 * kind's is a warning of the compiler. */
#define DV_OFFSET(type, member, expected) \
    .offset = (offsetof(type, member) + 0 * sizeof(1 ? &((type *)0)->member : (expected *)0))
#define DV_FLAG_AT(type, member) .kind = DV_OPTION_FLAG, DV_OFFSET(type, member, int)
#define DV_COUNT_AT(type, member, low, high) \
    .kind = DV_OPTION_COUNT, .minimum = (low), .maximum = (high), DV_OFFSET(type, member, size_t)
#define DV_COUNTS_AT(type, member, low, high) \
    .kind = DV_OPTION_COUNTS, .minimum = (low), .maximum = (high), DV_OFFSET(type, member, dv_counts)
#define DV_UNSIGNED_AT(type, member) .kind = DV_OPTION_UNSIGNED, DV_OFFSET(type, member, uint64_t)
#define DV_NUMBER_AT(type, member, low, high) \
    .kind = DV_OPTION_NUMBER, .minimum = (low), .maximum = (high), DV_OFFSET(type, member, double)
#define DV_WORD_AT(type, member, list) .kind = DV_OPTION_WORD, .words = (list), DV_OFFSET(type, member, int)
#define DV_COPY_AT(type, member) \
    .kind = DV_OPTION_COPY, .room = sizeof((type *)0)->member, .offset = offsetof(type, member)

/* The same for the options of codecs and methods, whose values are the elements of an array of int32_t. */
#define DV_INTEGER_IN(index, low, high) \
    .kind = DV_OPTION_INTEGER, .minimum = (low), .maximum = (high), .offset = (index) * sizeof(int32_t)
#define DV_POWER_IN(index, low, high) \
    .kind = DV_OPTION_POWER, .minimum = (low), .maximum = (high), .offset = (index) * sizeof(int32_t)
#define DV_WORD_IN(index, list) .kind = DV_OPTION_WORD, .words = (list), .offset = (index) * sizeof(int32_t)

/* Sets the option in `values`, the struct of its table (not looked at where the row has a target), from text; NULL is
 * no text. An error names the option, the text and what it takes, and leaves the value as it was. */
DV_TOOL dv_status dv_option_set(const dv_option *option, void *values, const char *text, dv_error *error);

/* Writes the value that the option has, as text that dv_option_set takes, into text[bytes], cut and terminated; nothing
 * where it was not given. Returns the length of the whole. */
DV_TOOL size_t dv_option_get(const dv_option *option, const void *values, char *text, size_t bytes);

/* Writes the value under the option's name into the object that is open; null where it was not given. */
DV_TOOL void dv_option_write(const dv_option *option, const void *values, dv_json *json);

/* True if the value is one that the option takes. */
DV_TOOL int dv_option_holds(const dv_option *option, const void *values);

/* What the option takes, in words: "a number from 0 to 1". The text is cut and terminated. Returns `text`. */
enum { DV_OPTION_TAKES_BYTES = 160 };
DV_TOOL char *dv_option_takes(const dv_option *option, char text[DV_OPTION_TAKES_BYTES]);

/* The option of that name, or NULL; and the error that says so, with the nearest name there is. */
DV_TOOL const dv_option *dv_option_find(const dv_option *options, size_t count, const char *name, size_t length);
DV_TOOL dv_status dv_option_unknown(const dv_option *options, size_t count, const char *name, dv_error *error);

/* Of the `count` names, the one that differs from `name` by the fewest letters, or NULL if none is near. */
DV_TOOL const char *dv_nearest(const char *name, const char *const *names, size_t count);

#ifdef __cplusplus
}
#endif

#endif
