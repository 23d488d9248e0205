/* Downloads a file, going on where an earlier download ended. */
#ifndef DV_CLI_DOWNLOAD_H
#define DV_CLI_DOWNLOAD_H

#include "live.h"

#include <division/status.h>

/* Downloads what `url` names to `path`. What is at `path` already is taken as its beginning. The line shows how far
 * it is. */
dv_status download(const char *url, const char *path, cli_live *line, dv_error *error);

#endif
