/* Status codes and messages.
 *
 * Everything that can fail returns a dv_status and takes, last, a dv_error that the caller owns and
 * that may be NULL. On failure the error holds the status and one line that says what went wrong,
 * where, and what to do about it; on success it is left alone. The library never prints.
 *
 * Pointers. Which may be NULL stands at the function. For the others:
 * - a function that returns a status fails with DV_ERROR_ARGUMENT where it is given NULL;
 * - `_free` and `_close` do nothing with NULL;
 * - the rest, which have no way to say so, must be given what they ask for.
 *
 * - Threads: Any thread may call any function here at any time; an error or a text is one thread's at a time.
 * - Fork: A child may call them too.
 * - Freeing: An error is a plain value: there is nothing to free. */
#ifndef DIVISION_STATUS_H
#define DIVISION_STATUS_H

#include <division/export.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dv_status {
    DV_OK = 0,
    DV_ERROR_ARGUMENT,    /* a null pointer, an impossible size: a mistake in the calling program */
    DV_ERROR_OPTION,      /* an option unknown or out of its bounds */
    DV_ERROR_BUFFER,      /* a buffer too small or not aligned */
    DV_ERROR_UNSUPPORTED, /* a shape or type that this operation does not take */
    DV_ERROR_NONFINITE,   /* NaN, infinity, or numbers so large that arithmetic overflows */
    DV_ERROR_FORMAT,      /* a file or record that is not what it should be */
    DV_ERROR_IO,          /* the operating system refused to read or write */
    DV_ERROR_MEMORY       /* no memory */
} dv_status;

enum { DV_ERROR_TEXT_BYTES = 256 };

typedef struct dv_error {
    dv_status status;
    char text[DV_ERROR_TEXT_BYTES]; /* one line, always terminated, cut with "..." if too long */
} dv_error;

/* Replaces what must not reach a terminal, control characters and bytes that are no UTF-8, by question marks, in place.
 * Names of files, classes and tensors may hold anything; errors have been through it. Returns `text`. */
DV_API char *dv_printable(char *text);

/* What a status means in a few words. Never NULL; the text is static. */
DV_API const char *dv_strerror(dv_status status);

#ifdef __cplusplus
}
#endif

#endif
