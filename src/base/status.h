/* How library code reports a failure: fill the caller's error, return the status. */
#ifndef DV_BASE_STATUS_H
#define DV_BASE_STATUS_H

#include <division/status.h>
#include <stddef.h>

/* Writes status and message into `error`, unless it is NULL, and is `status`:
 *     return dv_fail(error, DV_ERROR_IO, "%s: %s", path, strerror(errno));
 * The error's own text may be among the arguments, for words before or behind it.
 * A macro, so that compilers see which status is returned. */
#define dv_fail(error, status, ...) (dv_set_error(error, status, __VA_ARGS__), (status))
void dv_set_error(dv_error *error, dv_status status, const char *format, ...) DV_PRINTF(3, 4);

/* Fails with DV_ERROR_OPTION unless low <= value <= high. */
dv_status dv_check_count(const char *name, size_t value, size_t low, size_t high, dv_error *error);

/* Fails if a pointer that the caller owes is NULL: "dv_graph_finish: graph is NULL". */
#define DV_NEED(pointer)                                                                    \
    do {                                                                                    \
        if ((pointer) == NULL)                                                              \
            return dv_fail(error, DV_ERROR_ARGUMENT, "%s: %s is NULL", __func__, #pointer); \
    } while (0)

/* Returns from the calling function if `expression` did not succeed. */
#define DV_TRY(expression)                       \
    do {                                         \
        dv_status dv_try_status_ = (expression); \
        if (dv_try_status_ != DV_OK)             \
            return dv_try_status_;               \
    } while (0)

#endif
