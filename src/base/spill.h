/* Spilling memory to a file and reading it back, while the caller computes.
 *
 *     dv_spill_options options = dv_spill_options_default();
 *     void *memory = ...;                                          dv_spill_memory_bytes(&options) of the caller's
 *     dv_spill_new("/var/tmp", file_bytes, &options, memory, &spill, error);
 *     dv_spill_write(spill, 0, value, bytes, &written, error);     returns at once
 *     ...                                                          the value must not change yet
 *     dv_spill_wait(spill, written, error);                        its memory is free for other things
 *     dv_spill_read(spill, 0, value, bytes, &read, error);         returns at once
 *     ...                                                          the value must not be touched yet
 *     dv_spill_wait(spill, read, error);                           the value is there again
 *     dv_spill_free(spill);
 *
 * Rules
 * - The memory of a transfer belongs to it from the call until a wait for its ticket has returned. Two transfers that
 *   are under way must not share memory.
 * - Transfers reach the file in the order of the calls: a read sees what writes before it wrote.
 * - The first failure ends it: that transfer and all later ones have failed, for good, with the message of the first.
 *   Nothing more reaches the disk. What memory a failed read left is undefined.
 * - One thread at a time submits. Any thread may wait.
 * - Nothing is allocated after dv_spill_new, and by it only the stacks of two threads.
 *
 * spill_file.h says what the file is: without a name, reserved, past the page cache. */
#ifndef DV_BASE_SPILL_H
#define DV_BASE_SPILL_H

#include "base/spill_file.h"

#include <stdint.h>

typedef struct dv_spill dv_spill;

/* The number of a transfer. Never 0. */
typedef uint64_t dv_spill_ticket;

typedef struct dv_spill_options {
    size_t buffer_bytes; /* of each of two buffers for what must be copied: a multiple of DV_SPILL_BLOCK, up to 1 GiB.
                          * Where the page cache is used, the most that is in it at a time */
    size_t queue;        /* transfers that can be under way, 1 to 65,536: one more waits for the oldest */
    dv_spill_file_options file;
} dv_spill_options;

/* 4 MiB, 64, on a disk. */
dv_spill_options dv_spill_options_default(void);

/* The bytes of memory that a spill with these options takes; 0 where they are out of bounds. */
size_t dv_spill_memory_bytes(const dv_spill_options *options);

/* Opens a file of `bytes` in `folder`, reserves its space, and starts the threads. `memory` is
 * dv_spill_memory_bytes(options), aligned to DV_SPILL_BLOCK; it is the caller's, must outlive the spill, and all of its
 * pages are touched here. Fails as dv_spill_file_open does, and with DV_ERROR_OPTION for options out of bounds.
 * After success dv_spill_free must follow. */
dv_status dv_spill_new(const char *folder, size_t bytes, const dv_spill_options *options, void *memory,
                       dv_spill **spill, dv_error *error);

/* Submit a transfer of `bytes` (of any number, also 0) between `memory` (of any alignment) and the file at `offset`, a
 * multiple of DV_SPILL_BLOCK. A write leaves bytes up to the next multiple undefined. They return at once, unless the
 * queue is full. Memory that is aligned to dv_spill_alignment is transferred without a copy, but for the last bytes
 * that do not fill a block. DV_ERROR_ARGUMENT is all that they fail with: what happens
 * on the disk, dv_spill_wait tells. */
dv_status dv_spill_write(dv_spill *spill, size_t offset, const void *memory, size_t bytes, dv_spill_ticket *ticket,
                         dv_error *error);
dv_status dv_spill_read(dv_spill *spill, size_t offset, void *memory, size_t bytes, dv_spill_ticket *ticket,
                        dv_error *error);

/* Waits until a transfer is finished, and returns its status: DV_ERROR_IO with the folder, the offset and the reason if
 * it or one before it failed. Any ticket may be waited for at any time, any number of times. */
dv_status dv_spill_wait(dv_spill *spill, dv_spill_ticket ticket, dv_error *error);

/* The time that calls of the functions above have waited for the disk so far, summed over threads. */
double dv_spill_waited_seconds(dv_spill *spill);

/* The alignment that spares a copy, at most DV_SPILL_BLOCK; and whether the file is used past the page cache. */
size_t dv_spill_alignment(const dv_spill *spill);
bool dv_spill_direct(const dv_spill *spill);

/* Waits for the pieces that are on their way to or from the disk, leaves out what has not begun, and closes the file.
 * NULL is allowed. The memory is the caller's again. */
void dv_spill_free(dv_spill *spill);

#endif
