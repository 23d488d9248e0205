/* What a kind of data set implements. One file per kind; dataset.c has the table of them. */
#ifndef DV_DATA_DATASET_H
#define DV_DATA_DATASET_H

#include <division/data.h>

typedef struct dv_dataset_kind {
    const char *name;
    const char *usage, *help; /* how to write one, and one line about it */

    /* Opens what `text`, that which follows the colon, or NULL, stands for. */
    dv_status (*open)(const char *text, dv_dataset **dataset, dv_error *error);
    void (*close)(dv_dataset *dataset);

    /* Makes one image [side][side][3], as it is, and its label. Many threads call it at once. */
    dv_status (*load)(const dv_dataset *dataset, dv_split split, size_t index, uint8_t *image, int32_t *label,
                      dv_error *error);
} dv_dataset_kind;

/* A kind's own struct begins with this. */
struct dv_dataset {
    const dv_dataset_kind *kind;
    dv_dataset_shape shape;
    float mean[DV_DATA_CHANNELS], deviation[DV_DATA_CHANNELS]; /* of the bytes, to normalise by */
    size_t padding;                                            /* how far a varied image is moved either way */
    int flip;                                                  /* half of the varied images are mirrored */
};

extern const dv_dataset_kind dv_synthetic_images, dv_cifar10, dv_cifar100;

#endif
