/* Augmentations: their defaults, reading and checking. */
#ifndef DV_DATA_AUGMENTATION_H
#define DV_DATA_AUGMENTATION_H

#include <division/data.h>

/* What "none", "zero", "reflect" or "resized" is by default. */
dv_augmentation dv_augmentation_default(dv_crop crop);

dv_status dv_augmentation_check(const dv_augmentation *augmentation, dv_error *error);

#endif
