/* What the system says about memory. `root` stands before every path that is read, "" outside of tests. */
#ifndef DV_BASE_SYSTEM_MEMORY_H
#define DV_BASE_SYSTEM_MEMORY_H

#include <stddef.h>

/* Bytes that this process can still take: what is free on the machine, or what the control groups it is in leave,
 * whichever is least. Pages of files that the system would give up count as free in both. */
size_t dv_system_memory_available(const char *root);

/* The most bytes that this process has had resident so far. */
size_t dv_system_memory_peak(const char *root);

/* The bytes that it has resident now. */
size_t dv_system_memory_resident(const char *root);

/* Those of them that are pages of files: code of the program and of libraries, and data that is mapped. 0 where the
 * system does not tell. */
size_t dv_system_memory_of_files(const char *root);

#endif
