/* Loaders, as training and testing need them. */
#ifndef DV_TRAIN_LOADERS_H
#define DV_TRAIN_LOADERS_H

#include <division/train.h>

/* The run must take images as the data has them. */
dv_status dv_check_input(dv_run *run, dv_error *error);

/* Loaders of batches for the run: varied and shuffled, to be learnt from, and those of a split as they are. Of several
 * ranks each has its share. */
dv_status dv_learning_loader(dv_run *run, const dv_dataset *data, const dv_options *options, dv_loader **loader,
                             dv_error *error);
dv_status dv_testing_loader(dv_run *run, const dv_dataset *data, dv_split split, const dv_loading *loading,
                            const dv_world *world, dv_loader **loader, dv_error *error);

#endif
