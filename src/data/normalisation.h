/* Normalisation: checking, and what is the data's own. */
#ifndef DV_DATA_NORMALISATION_H
#define DV_DATA_NORMALISATION_H

#include <division/data.h>

#include <stdbool.h>

/* Fails where a number is out of its bounds; what stands for the data's own is within them. */
dv_status dv_normalisation_check(const dv_image_normalisation *normalisation, dv_error *error);

/* True for what stands for the data's own: deviations that are all 0. */
bool dv_normalisation_is_usual(const dv_image_normalisation *normalisation);

#endif
