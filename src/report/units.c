/* Numbers as text. */
#include "report/units.h"

#include <division/tools/json.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define DASH "\xe2\x80\x93"
#define TIMES "\xc3\x97"

static const char *const powers[] = {"B", "kB", "MB", "GB", "TB", "PB"};
enum { POWERS = sizeof powers / sizeof *powers, MOST_DECIMALS = 12 };

/* The number with exactly so many digits behind the point. */
static const char *fixed_text(double number, int decimals, char text[DV_UNIT_TEXT]) {
    uint64_t power = 1;
    for (int i = 0; i < decimals && i < MOST_DECIMALS; i++)
        power *= 10;
    double scaled = fabs(number) * (double)power;
    if (!(scaled < 9e18)) { /* no figure of ours; digits would be made up */
        snprintf(text, DV_UNIT_TEXT, "%s", isnan(number) ? DASH : number < 0 ? "-1e99" : "1e99");
        return text;
    }
    uint64_t whole = (uint64_t)llround(scaled);
    size_t used = (size_t)snprintf(text, DV_UNIT_TEXT, "%s%" PRIu64, number < 0 && whole > 0 ? "-" : "", whole / power);
    if (power > 1)
        text[used++] = '.';
    for (power /= 10; power > 0; power /= 10)
        text[used++] = (char)('0' + whole / power % 10);
    text[used] = '\0';
    return text;
}

const char *dv_decimal_text(double number, int decimals, char text[DV_UNIT_TEXT]) {
    fixed_text(number, decimals, text);
    if (strchr(text, '.') == NULL)
        return text;
    size_t length = strlen(text);
    while (text[length - 1] == '0')
        length--;
    text[text[length - 1] == '.' ? length - 1 : length] = '\0';
    return text;
}

/* Decimals that leave so many digits that count. */
static int decimals_for(double number, int digits) {
    if (number == 0 || !isfinite(number))
        return 0;
    int decimals = digits - 1 - (int)floor(log10(fabs(number)));
    return decimals < 0 ? 0 : decimals > MOST_DECIMALS ? MOST_DECIMALS : decimals;
}

const char *dv_digits_text(double number, int digits, char text[DV_UNIT_TEXT]) {
    char mantissa[DV_UNIT_TEXT];
    double size = fabs(number);
    if (number == 0 || !isfinite(number) || (size >= 1e-4 && size < 1e7))
        return fixed_text(number, decimals_for(number, digits), text);
    int power = (int)floor(log10(size));
    dv_decimal_text(number / pow(10, power), digits - 1, mantissa);
    snprintf(text, DV_UNIT_TEXT, "%.24se%d", mantissa, power);
    return text;
}

/* Appends a unit behind a space that does not break lines. */
static const char *with_unit(char text[DV_UNIT_TEXT], const char *unit) {
    size_t used = strlen(text);
    snprintf(text + used, DV_UNIT_TEXT - used, "\xc2\xa0%s", unit);
    return text;
}

static const char *bytes_text(double bytes, char text[DV_UNIT_TEXT]) {
    size_t power = 0;
    for (; bytes >= 999.5 && power + 1 < POWERS; power++)
        bytes /= 1000;
    fixed_text(bytes, power > 0 && bytes < 99.95 ? 1 : 0, text);
    return with_unit(text, powers[power]);
}

const char *dv_unit_text(dv_unit unit, double number, char text[DV_UNIT_TEXT]) {
    static const struct {
        int digits, decimals; /* digits that count, or if 0 those behind the point */
        const char *suffix;
    } forms[] = {
        [DV_UNIT_NONE] = {3, 0, NULL},  [DV_UNIT_COUNT] = {0, 0, NULL},  [DV_UNIT_PERCENT] = {0, 2, "%"},
        [DV_UNIT_BYTES] = {0, 0, NULL}, [DV_UNIT_TIMES] = {3, 0, TIMES}, [DV_UNIT_SPEED] = {3, 0, "images/s"},
    };
    if (unit == DV_UNIT_BYTES && !isnan(number))
        return bytes_text(number, text);
    if (forms[unit].digits > 0)
        dv_digits_text(number, forms[unit].digits, text);
    else
        fixed_text(number, forms[unit].decimals, text);
    return forms[unit].suffix != NULL && !isnan(number) ? with_unit(text, forms[unit].suffix) : text;
}

const char *dv_mark_text(dv_unit unit, double number, double step, double largest, char text[DV_UNIT_TEXT]) {
    size_t power = 0;
    double scale = 1;
    for (; unit == DV_UNIT_BYTES && largest >= 1000 * scale && power + 1 < POWERS; power++)
        scale *= 1000;
    int decimals = step > 0 ? (int)ceil(-log10(step / scale) - 1e-9) : 0;
    dv_decimal_text(number / scale, decimals < 0 ? 0 : decimals > MOST_DECIMALS ? MOST_DECIMALS : decimals, text);
    if (unit == DV_UNIT_PERCENT)
        with_unit(text, "%");
    if (unit == DV_UNIT_TIMES)
        with_unit(text, TIMES);
    if (unit == DV_UNIT_BYTES && number != 0)
        with_unit(text, powers[power]);
    return text;
}

const char *dv_exact_text(double number, char text[DV_UNIT_TEXT]) {
    dv_json json;
    text[0] = '\0';
    if (isnan(number))
        return text;
    dv_json_to_buffer(&json, text, DV_UNIT_TEXT);
    dv_json_number(&json, NULL, number);
    (void)dv_json_finish(&json, NULL); /* a number is shorter than that */
    return text;
}
