/* The dynamic linker, asked by the program itself. */
#include "late.h"

#include "cli.h"

#include <dlfcn.h>
#include <string.h>

dv_status late_open(const char *library, const late_function *functions, size_t count, dv_error *error) {
    void *opened = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (opened == NULL)
        return cli_error(error, DV_ERROR_UNSUPPORTED,
                         "%.60s is not on this machine: install it, or download the data set yourself", library);
    for (size_t i = 0; i < count; i++) {
        void *found = dlsym(opened, functions[i].name);
        if (found == NULL)
            return cli_error(error, DV_ERROR_UNSUPPORTED,
                             "%.60s has no %.60s: install the version that this was built with", library,
                             functions[i].name);
        memcpy(functions[i].pointer, &found, sizeof found); /* no cast leads from an object to a function */
    }
    return DV_OK;
}
