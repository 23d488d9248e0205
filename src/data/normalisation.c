/* How bytes of images become numbers, from text and as text: "0.485+0.456+0.406/0.229+0.224+0.225" is
 * (byte / 255 - mean) / deviation, channel by channel. */
#include "data/normalisation.h"

#include "base/option.h"
#include "base/status.h"

#include <string.h>

#define USUAL "usual"

/* The numbers of a text in their order, and what stands behind each of them. */
enum { NUMBERS = 2 * DV_DATA_CHANNELS, SHOWN = 40 };
static const char marks[] = "++/++";

/* A deviation of 1/255 leaves bytes as large as they are. */
static const dv_option mean = {.name = "mean", .kind = DV_OPTION_NUMBER, .minimum = 0, .maximum = 1};
static const dv_option deviation = {.name = "deviation", .kind = DV_OPTION_NUMBER, .minimum = 0.001, .maximum = 1000};

static const dv_option *row_of(size_t number) {
    return number < DV_DATA_CHANNELS ? &mean : &deviation;
}

bool dv_normalisation_is_usual(const dv_image_normalisation *normalisation) {
    for (size_t channel = 0; channel < DV_DATA_CHANNELS; channel++)
        if (normalisation->deviation[channel] != 0)
            return false;
    return true;
}

/* ---- checking ------------------------------------------------------------------------------ */

static dv_status fail_number(const dv_option *row, const char *shown, size_t length, dv_error *error) {
    char takes[DV_OPTION_TAKES_BYTES];
    return dv_fail(error, DV_ERROR_OPTION, "normalisation: %s: \"%.*s\": must be %s, where 1 is white", row->name,
                   (int)(length < SHOWN ? length : SHOWN), shown, dv_option_takes(row, takes));
}

static dv_status check_number(const dv_option *row, const double *number, dv_error *error) {
    char text[DV_NORMALISATION_BYTES];
    if (dv_option_holds(row, number))
        return DV_OK;
    dv_option_get(row, number, text, sizeof text);
    return fail_number(row, text, strlen(text), error);
}

dv_status dv_normalisation_check(const dv_image_normalisation *normalisation, dv_error *error) {
    if (dv_normalisation_is_usual(normalisation))
        return DV_OK;
    for (size_t channel = 0; channel < DV_DATA_CHANNELS; channel++) {
        DV_TRY(check_number(&mean, &normalisation->mean[channel], error));
        DV_TRY(check_number(&deviation, &normalisation->deviation[channel], error));
    }
    return DV_OK;
}

/* ---- from text and as text ----------------------------------------------------------------- */

static bool has_form(const char *text) {
    for (size_t i = 0; i < NUMBERS; i++) {
        text += strcspn(text, "+/");
        if (*text != marks[i])
            return false;
        text++;
    }
    return true;
}

static dv_status read_numbers(const char *text, double numbers[NUMBERS], dv_error *error) {
    for (size_t i = 0; i < NUMBERS; i++) {
        size_t length = strcspn(text, "+/");
        if (!dv_option_read(row_of(i), &numbers[i], text, length))
            return fail_number(row_of(i), text, length, error);
        text += length + 1;
    }
    return DV_OK;
}

dv_status dv_image_normalisation_parse(const char *text, dv_image_normalisation *normalisation, dv_error *error) {
    double numbers[NUMBERS] = {0};
    DV_NEED(text);
    DV_NEED(normalisation);
    if (strcmp(text, USUAL) != 0) {
        if (!has_form(text))
            return dv_fail(error, DV_ERROR_OPTION,
                           "normalisation: \"%.60s\": must be " USUAL ", or three means and three deviations, as "
                           "0.485+0.456+0.406/0.229+0.224+0.225",
                           text);
        DV_TRY(read_numbers(text, numbers, error));
    }
    memcpy(normalisation->mean, numbers, sizeof normalisation->mean);
    memcpy(normalisation->deviation, numbers + DV_DATA_CHANNELS, sizeof normalisation->deviation);
    return DV_OK;
}

dv_status dv_image_normalisation_format(const dv_image_normalisation *normalisation, char text[DV_NORMALISATION_BYTES],
                                        dv_error *error) {
    size_t length = 0;
    DV_NEED(normalisation);
    DV_NEED(text);
    DV_TRY(dv_normalisation_check(normalisation, error));
    strcpy(text, USUAL);
    for (size_t i = 0; i < NUMBERS && !dv_normalisation_is_usual(normalisation); i++) {
        const double *numbers = i < DV_DATA_CHANNELS ? normalisation->mean : normalisation->deviation;
        length +=
            dv_option_get(row_of(i), &numbers[i % DV_DATA_CHANNELS], text + length, DV_NORMALISATION_BYTES - length);
        text[length++] = marks[i];
    }
    return DV_OK;
}
