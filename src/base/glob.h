/* Globs of names with dots.
 *
 * A glob (fnmatch) names a parameter if it matches its whole name or a beginning of it that ends at a dot, so that the
 * name of a layer, or of a part of the network, stands for everything in it. Of layer1.0.conv1.weight:
 *
 *     layer1   layer1.0   layer1.0.conv1   layer1.0.conv1.weight   layer1*   layer1.*   *.conv1   *.weight */
#ifndef DV_BASE_GLOB_H
#define DV_BASE_GLOB_H

#include <stdbool.h>

/* Writes to `name` meanwhile; afterwards it is as it was. */
bool dv_glob_names(const char *glob, char *name);

#endif
