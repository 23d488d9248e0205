/* Trying the whole name, and what is before each of its dots. */
#include "base/glob.h"

#include <fnmatch.h>
#include <string.h>

bool dv_glob_names(const char *glob, char *name) {
    bool found = fnmatch(glob, name, 0) == 0;
    for (char *dot = name; !found && (dot = strchr(dot, '.')) != NULL; dot++) {
        *dot = '\0';
        found = fnmatch(glob, name, 0) == 0;
        *dot = '.';
    }
    return found;
}
