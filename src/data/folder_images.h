/* What the converter asks of a data set of folders. */
#ifndef DV_DATA_FOLDER_IMAGES_H
#define DV_DATA_FOLDER_IMAGES_H

#include "data/dataset.h"

/* Where an image is within its split's folder, "class/file", in `name`, and the name of a split's folder. */
void dv_folder_image_path(const dv_dataset *dataset, dv_split split, size_t index, char *name, size_t bytes);
const char *dv_folder_split_name(dv_split split);

#endif
