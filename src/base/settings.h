/* Settings from text: "name=value,name=value", the part after the colon of "synthetic:side=32,train=5000".
 * Each is one line of a table that says where the value goes and what it may be. */
#ifndef DV_BASE_SETTINGS_H
#define DV_BASE_SETTINGS_H

#include <division/status.h>
#include <stddef.h>

typedef enum dv_setting_kind {
    DV_SETTING_COUNT,  /* a size_t within bounds */
    DV_SETTING_NUMBER, /* a double within bounds */
    DV_SETTING_COUNTS, /* several size_t with '+' between them: "60+120+160", each within bounds */
} dv_setting_kind;

typedef struct dv_setting {
    const char *name;
    dv_setting_kind kind;
    void *target; /* size_t *, double *, or size_t [room] */
    double minimum, maximum;
    size_t room, *used; /* of several: how many fit, and where to say how many there were */
} dv_setting;

/* The part of a setting's line that says its kind, target and bounds. */
#define DV_COUNT_SETTING(pointer, low, high) \
    .kind = DV_SETTING_COUNT, .target = (pointer), .minimum = (low), .maximum = (high)
#define DV_NUMBER_SETTING(pointer, low, high) \
    .kind = DV_SETTING_NUMBER, .target = (pointer), .minimum = (low), .maximum = (high)
#define DV_COUNTS_SETTING(array, capacity, count, low, high)                                             \
    .kind = DV_SETTING_COUNTS, .target = (array), .room = (capacity), .used = (count), .minimum = (low), \
    .maximum = (high)

/* Ends a table. */
#define DV_SETTINGS_END \
    { .name = NULL }

/* Reads `text` into the targets of the table, which ends with a NULL name; what the text does not name stays as
 * it is. A NULL text sets nothing. Failures are DV_ERROR_OPTION and begin with `owner`. */
dv_status dv_settings_parse(const char *owner, const char *text, const dv_setting *table, dv_error *error);

/* If `text` is `name` alone or `name` and a colon, 1, with what follows the colon (or NULL) in *rest; else 0. */
int dv_settings_name(const char *text, const char *name, const char **rest);

#endif
