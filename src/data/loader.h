/* Loaders, as trainings and tests know more of them than others: their workers can change, and they tell which images
 * stand in for corrupt ones. */
#ifndef DV_DATA_LOADER_H
#define DV_DATA_LOADER_H

#include <division/data.h>

/* Workers that are worth having for the data on this machine, at most: none for data that is not compressed, whose
 * batches take next to no time; else as many as there are cores, up to 16. */
size_t dv_loader_most_workers(const dv_dataset *dataset);

/* Goes on with so many. What was made ahead is made again; the batches are the same. */
dv_status dv_loader_set_workers(dv_loader *loader, size_t workers, dv_error *error);

/* Which image of the split is at a place of the batch that was filled last: in place of a corrupt one another. */
size_t dv_loader_shown(const dv_loader *loader, size_t place);

#endif
