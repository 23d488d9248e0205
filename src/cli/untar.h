/* Unpacks .tar.gz archives. */
#ifndef DV_CLI_UNTAR_H
#define DV_CLI_UNTAR_H

#include <division/status.h>
#include <stddef.h>

/* Unpacks the regular files of an archive into a folder, each at once or not at all, and says how many. Folders are
 * made as needed. A name that leads out of the folder is an error; links and devices are left out. */
dv_status untar(const char *archive, const char *folder, size_t *files, dv_error *error);

#endif
