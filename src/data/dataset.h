/* What a kind of data set implements. One file per kind; dataset.c has the table of them. */
#ifndef DV_DATA_DATASET_H
#define DV_DATA_DATASET_H

#include <division/data.h>

/* A compressed image and its label. */
typedef struct dv_record {
    const uint8_t *bytes;
    size_t count;
    int32_t label;
    void *held; /* the kind's own, until the record is released */
} dv_record;

enum { DV_IMAGE_NAME_BYTES = 192, DV_UNREAD_BYTES = 256 };

typedef struct dv_dataset_kind {
    const char *name;
    const char *usage, *help; /* how to write one, and one line about it */

    /* Opens what `text`, that which follows the colon, or NULL, stands for. */
    dv_status (*open)(const char *text, const dv_dataset_options *options, dv_dataset **dataset, dv_error *error);
    void (*close)(dv_dataset *dataset);

    /* Either: makes one image [side][side][3], as it is, and its label. Many threads call it at once. */
    dv_status (*load)(const dv_dataset *dataset, dv_split split, size_t index, uint8_t *image, int32_t *label,
                      dv_error *error);

    /* Or: finds a compressed image; then lets go of it. Many threads call them at once. */
    dv_status (*fetch)(const dv_dataset *dataset, dv_split split, size_t index, dv_record *record, dv_error *error);
    void (*release)(const dv_dataset *dataset, dv_record *record);

    /* What people call an image; NULL: its number. */
    void (*name_image)(const dv_dataset *dataset, dv_split split, size_t index, char name[DV_IMAGE_NAME_BYTES]);

    /* The label alone. */
    dv_status (*label)(const dv_dataset *dataset, dv_split split, size_t index, int32_t *label, dv_error *error);
} dv_dataset_kind;

/* A kind's own struct begins with this. */
struct dv_dataset {
    const dv_dataset_kind *kind;
    dv_dataset_shape shape;
    dv_image_normalisation normalisation; /* the data's own */
    dv_augmentation usual;                /* how images are varied; not DV_CROP_USUAL */
    char **class_names;                   /* [classes]; NULL: there are none. The kind's own. */
    char unread[DV_UNREAD_BYTES];         /* files that were not read, by kind; empty: none */
};

/* What people call an image, its number if its kind has no names. */
void dv_dataset_name_image(const dv_dataset *dataset, dv_split split, size_t index, char name[DV_IMAGE_NAME_BYTES]);

/* The mean and deviation of ImageNet's training images, for photographs of any kind. */
#define DV_PHOTOGRAPHS                                                      \
    {                                                                       \
        .mean = {0.485, 0.456, 0.406}, .deviation = { 0.229, 0.224, 0.225 } \
    }

enum { DV_PHOTOGRAPH_SIDE = 224 };

extern const dv_dataset_kind dv_synthetic_images, dv_cifar10, dv_cifar100, dv_folder_images, dv_lmdb_images;

#endif
