/* Status codes in words, and the one place where messages are formatted. */
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const meanings[] = {
    [DV_OK] = "success",
    [DV_ERROR_ARGUMENT] = "wrong argument",
    [DV_ERROR_OPTION] = "unknown option or value out of bounds",
    [DV_ERROR_BUFFER] = "buffer too small or not aligned",
    [DV_ERROR_UNSUPPORTED] = "not supported",
    [DV_ERROR_NONFINITE] = "NaN, infinity or overflow",
    [DV_ERROR_FORMAT] = "malformed file or record",
    [DV_ERROR_IO] = "input or output failed",
    [DV_ERROR_MEMORY] = "out of memory",
};

const char *dv_strerror(dv_status status) {
    size_t index = (size_t)status;
    return index < sizeof meanings / sizeof *meanings ? meanings[index] : "unknown status";
}

void dv_set_error(dv_error *error, dv_status status, const char *format, ...) {
    if (!error)
        return;
    /* Formatted beside the error, because its old text may be among the arguments. */
    char text[DV_ERROR_TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (length < 0)
        snprintf(text, sizeof text, "%s", dv_strerror(status));
    if (length >= (int)sizeof text)
        memcpy(text + sizeof text - 4, "...", 4);
    error->status = status;
    memcpy(error->text, dv_printable(text), sizeof text); /* names of files and options may hold anything */
}

dv_status dv_check_count(const char *name, size_t value, size_t low, size_t high, dv_error *error) {
    if (value >= low && value <= high)
        return DV_OK;
    return dv_fail(error, DV_ERROR_OPTION, "%s: %zu: must be from %zu to %zu", name, value, low, high);
}
