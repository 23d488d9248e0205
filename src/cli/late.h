/* Libraries that are opened when they are needed. libcurl and libcrypto bring some thirty others, which would be in the
 * memory of every training for the sake of `division data fetch`. */
#ifndef DV_CLI_LATE_H
#define DV_CLI_LATE_H

#include <division/status.h>
#include <stddef.h>

/* A function of a library, and the pointer to a function that gets its address. */
typedef struct late_function {
    const char *name;
    void *pointer;
} late_function;

/* Opens a library, for as long as the process lives, and finds `count` functions in it. */
dv_status late_open(const char *library, const late_function *functions, size_t count, dv_error *error);

#endif
