/* The kinds of data sets, and finding the one that a text names. */
#include "data/maker.h"

#include "base/option_text.h"
#include "base/status.h"

#include <stdio.h>
#include <string.h>

static const dv_dataset_kind *const kinds[] = {
    &dv_synthetic_images, &dv_cifar10, &dv_cifar100, &dv_folder_images, &dv_lmdb_images,
};

enum { KIND_COUNT = sizeof kinds / sizeof *kinds };

const char *dv_dataset_usage_at(size_t index) {
    return index < KIND_COUNT ? kinds[index]->usage : NULL;
}

const char *dv_dataset_help_at(size_t index) {
    return index < KIND_COUNT ? kinds[index]->help : NULL;
}

static dv_status fail_unknown(const char *text, dv_error *error) {
    char known[200] = "";
    for (size_t i = 0; i < KIND_COUNT; i++) {
        strncat(known, i > 0 ? ", " : "", sizeof known - strlen(known) - 1);
        strncat(known, kinds[i]->usage, sizeof known - strlen(known) - 1);
    }
    return dv_fail(error, DV_ERROR_OPTION, "data: \"%.40s\" is no data set: there is %s", text, known);
}

dv_dataset_options dv_dataset_options_default(void) {
    return (dv_dataset_options){.hold_out = 0.1, .seed = 1};
}

dv_status dv_dataset_open(const char *text, dv_dataset **dataset, dv_error *error) {
    return dv_dataset_open_with(text, NULL, dataset, error);
}

dv_status dv_dataset_open_with(const char *text, const dv_dataset_options *options, dv_dataset **dataset,
                               dv_error *error) {
    const dv_dataset_options usual = dv_dataset_options_default();
    const char *rest;
    if (text == NULL || dataset == NULL)
        return dv_fail(error, DV_ERROR_ARGUMENT, "data: text or dataset is NULL");
    for (size_t i = 0; i < KIND_COUNT; i++)
        if (dv_option_text_names(text, kinds[i]->name, &rest))
            return kinds[i]->open(rest, options != NULL ? options : &usual, dataset, error);
    return fail_unknown(text, error);
}

void dv_dataset_close(dv_dataset *dataset) {
    if (dataset != NULL)
        dataset->kind->close(dataset);
}

dv_dataset_shape dv_dataset_describe(const dv_dataset *dataset) {
    return dataset->shape;
}

const char *dv_dataset_unread(const dv_dataset *dataset) {
    return dataset != NULL && dataset->unread[0] != '\0' ? dataset->unread : NULL;
}

const char *dv_dataset_class_name(const dv_dataset *dataset, size_t label) {
    return dataset->class_names != NULL && label < dataset->shape.classes ? dataset->class_names[label] : NULL;
}

/* One image as a loader shows it that does not vary them. */
static dv_status show(const dv_dataset *dataset, dv_split split, size_t index, uint8_t *image, int32_t *label,
                      dv_error *error) {
    dv_maker maker;
    size_t side = dataset->shape.side;
    dv_view_options view = {.side = side, .resize = dataset->kind->fetch != NULL ? side * 8 / 7 : side};
    dv_status status = dv_maker_init(&maker, dataset, split, &view, 0, error);
    if (status == DV_OK)
        status = dv_maker_make_only(&maker, (dv_showing){0, 0, 0}, index, image, label, error);
    dv_maker_destroy(&maker);
    return status;
}

void dv_dataset_name_image(const dv_dataset *dataset, dv_split split, size_t index, char name[DV_IMAGE_NAME_BYTES]) {
    if (dataset->kind->name_image != NULL)
        dataset->kind->name_image(dataset, split, index, name);
    else
        snprintf(name, DV_IMAGE_NAME_BYTES, "image %zu", index);
}

static dv_status check_index(const dv_dataset *dataset, dv_split split, size_t index, dv_error *error) {
    size_t count = split == DV_TRAIN || split == DV_TEST ? dataset->shape.images[split] : 0;
    if (index < count)
        return DV_OK;
    return dv_fail(error, DV_ERROR_ARGUMENT, "data: image %zu of %zu", index, count);
}

dv_status dv_dataset_label(const dv_dataset *dataset, dv_split split, size_t index, int32_t *label, dv_error *error) {
    DV_NEED(dataset);
    DV_NEED(label);
    DV_TRY(check_index(dataset, split, index, error));
    return dataset->kind->label(dataset, split, index, label, error);
}

dv_status dv_dataset_image_name(const dv_dataset *dataset, dv_split split, size_t index, char *name, size_t bytes,
                                dv_error *error) {
    char text[DV_IMAGE_NAME_BYTES];
    DV_NEED(dataset);
    DV_NEED(name);
    DV_TRY(check_index(dataset, split, index, error));
    dv_dataset_name_image(dataset, split, index, text);
    snprintf(name, bytes, "%s", text);
    return DV_OK;
}

dv_status dv_dataset_load(const dv_dataset *dataset, dv_split split, size_t index, uint8_t *image, int32_t *label,
                          dv_error *error) {
    DV_NEED(dataset);
    DV_NEED(image);
    DV_NEED(label);
    DV_TRY(check_index(dataset, split, index, error));
    return show(dataset, split, index, image, label, error);
}
