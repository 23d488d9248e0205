/* The option `memory`, to the files of a training. */
#ifndef DV_TRAIN_MEMORY_H
#define DV_TRAIN_MEMORY_H

#include <division/status.h>
#include <stddef.h>

/* Bytes of a text: "600MB", "50%" of what is free, "auto". Whether there is so much is not asked. */
dv_status dv_memory_read(const char *text, size_t *bytes, dv_error *error);

#endif
