/* How images are varied, from text. */
#include "data/augmentation.h"

#include "base/option_text.h"
#include "base/status.h"

#include <stdio.h>
#include <string.h>

enum { MOST_PADDING = 64 };

#define FLIP                                                                   \
    {                                                                          \
        "flip", "N", "mirrored: 0 never, 1 by chance, 2 in every other epoch", \
            DV_COUNT_AT(dv_augmentation, flip, 0, DV_FLIP_COUNT - 1)           \
    }

static const dv_option moved[] = {
    {"padding", "N", "pixels that an image may be moved by", DV_COUNT_AT(dv_augmentation, padding, 0, MOST_PADDING)},
    FLIP,
};

static const dv_option resized[] = {
    {"least", "A", "of the area, at least", DV_NUMBER_AT(dv_augmentation, least_area, 1e-6, 1)},
    {"most", "A", "of the area, at most", DV_NUMBER_AT(dv_augmentation, most_area, 1e-6, 1)},
    {"narrow", "R", "width by height, at least", DV_NUMBER_AT(dv_augmentation, least_ratio, 0.01, 100)},
    {"wide", "R", "width by height, at most", DV_NUMBER_AT(dv_augmentation, most_ratio, 0.01, 100)},
    FLIP,
};

static const struct {
    const char *name, *usage, *help;
    const dv_option *options;
    size_t option_count;
} kinds[DV_CROP_COUNT] = {
    [DV_CROP_USUAL] = {"usual", "usual", "what is usual for the data: zero for CIFAR, resized for photographs", NULL,
                       0},
    [DV_CROP_NONE] = {"none", "none", "nothing is varied", NULL, 0},
    [DV_CROP_ZERO] = {"zero", "zero[:padding=4,flip=1]",
                      "moved either way, black comes in; mirrored: 0 never, 1 by chance, 2 in every other epoch", moved,
                      2},
    [DV_CROP_REFLECT] = {"reflect", "reflect[:padding=4,flip=1]", "the same, but its mirror image comes in", moved, 2},
    [DV_CROP_RESIZED] = {"resized", "resized[:least=0.08,most=1,narrow=0.75,wide=1.333,flip=1]",
                         "a part of random area and shape, resized; mirrored", resized, 5},
};

const char *dv_augmentation_usage_at(size_t index) {
    return index < DV_CROP_COUNT ? kinds[index].usage : NULL;
}

const char *dv_augmentation_help_at(size_t index) {
    return index < DV_CROP_COUNT ? kinds[index].help : NULL;
}

dv_augmentation dv_augmentation_default(dv_crop crop) {
    return (dv_augmentation){.crop = crop,
                             .padding = 4,
                             .flip = crop != DV_CROP_NONE ? DV_FLIP_CHANCE : DV_FLIP_NEVER,
                             .least_area = 0.08,
                             .most_area = 1,
                             .least_ratio = 3.0 / 4,
                             .most_ratio = 4.0 / 3};
}

static dv_status check_range(const char *name, double least, double most, double low, double high, dv_error *error) {
    if (least >= low && least <= most && most <= high)
        return DV_OK;
    return dv_fail(error, DV_ERROR_OPTION, "augmentation: %s from %g to %g: must be between %g and %g, least first",
                   name, least, most, low, high);
}

dv_status dv_augmentation_check(const dv_augmentation *augmentation, dv_error *error) {
    if (augmentation->crop < 0 || augmentation->crop >= DV_CROP_COUNT)
        return dv_fail(error, DV_ERROR_OPTION, "augmentation: crop %d is none", (int)augmentation->crop);
    if (augmentation->crop == DV_CROP_USUAL || augmentation->crop == DV_CROP_NONE)
        return DV_OK;
    if (augmentation->flip >= DV_FLIP_COUNT)
        return dv_fail(error, DV_ERROR_OPTION, "augmentation: flip: %zu: must be from 0 to %d", augmentation->flip,
                       DV_FLIP_COUNT - 1);
    if (augmentation->padding > MOST_PADDING)
        return dv_fail(error, DV_ERROR_OPTION, "augmentation: padding: %zu: must be from 0 to %d",
                       augmentation->padding, (int)MOST_PADDING);
    if (augmentation->crop != DV_CROP_RESIZED)
        return DV_OK;
    DV_TRY(check_range("area", augmentation->least_area, augmentation->most_area, 1e-6, 1, error));
    return check_range("ratio", augmentation->least_ratio, augmentation->most_ratio, 0.01, 100, error);
}

static dv_status fail_unknown(const char *text, dv_error *error) {
    char known[80] = "";
    for (size_t i = 0; i < DV_CROP_COUNT; i++) {
        strncat(known, i > 0 ? ", " : "", sizeof known - strlen(known) - 1);
        strncat(known, kinds[i].name, sizeof known - strlen(known) - 1);
    }
    return dv_fail(error, DV_ERROR_OPTION, "augmentation: \"%.40s\" is none: there is %s", text, known);
}

static dv_status parse_options(const char *rest, dv_augmentation *made, dv_error *error) {
    const dv_option_table table = {kinds[made->crop].options, kinds[made->crop].option_count, made};
    return dv_option_text_parse(kinds[made->crop].name, rest, &table, 1, error);
}

dv_status dv_augmentation_parse(const char *text, dv_augmentation *augmentation, dv_error *error) {
    const char *rest;
    if (text == NULL || augmentation == NULL)
        return dv_fail(error, DV_ERROR_ARGUMENT, "augmentation: text or augmentation is NULL");
    for (dv_crop crop = 0; crop < DV_CROP_COUNT; crop++) {
        if (!dv_option_text_names(text, kinds[crop].name, &rest))
            continue;
        dv_augmentation made = dv_augmentation_default(crop);
        DV_TRY(parse_options(rest, &made, error));
        DV_TRY(dv_augmentation_check(&made, error));
        *augmentation = made;
        return DV_OK;
    }
    return fail_unknown(text, error);
}
