/* The file behind values that are spilled to a disk: without a name, its space reserved, past the page cache.
 *
 *   no name   Nothing is left behind, also after SIGKILL: the kernel frees the file with its last descriptor.
 *   reserved  A full disk is an error when the file is opened, before any work was done.
 *   no cache  Spilling is to save memory, and pages of the file in the page cache would be memory again. The file is
 *             read and written directly (O_DIRECT) where the file system can do so. Elsewhere each piece is forced to
 *             the disk, and its pages are given back, before the call returns.
 *
 * Nothing here allocates. Reading and writing may be done by several threads at once. */
#ifndef DV_BASE_SPILL_FILE_H
#define DV_BASE_SPILL_FILE_H

#include <division/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Offsets in the file are multiples of it, and so are the file's bytes. */
enum { DV_SPILL_BLOCK = 4096 };

/* The bytes of the file that `bytes` of memory take: rounded up to where the next transfer can begin. */
size_t dv_spill_room(size_t bytes);

/* The calls that reach the disk, each as its namesake of the system: -1 with errno, short counts and EINTR included.
 * A test puts its own in their place to make a disk slow, full or broken. */
typedef struct dv_spill_disk {
    int (*open_unnamed)(void *context, const char *folder);                                   /* open with O_TMPFILE */
    int (*reserve)(void *context, int descriptor, off_t bytes);                               /* fallocate */
    ssize_t (*read)(void *context, int descriptor, void *memory, size_t bytes, off_t offset); /* pread */
    ssize_t (*write)(void *context, int descriptor, const void *memory, size_t bytes, off_t offset); /* pwrite */
    void *context; /* the first argument of each; the caller's */
} dv_spill_disk;

/* The calls of the system itself. */
extern const dv_spill_disk dv_spill_system;

typedef struct dv_spill_file {
    int descriptor;
    size_t bytes;     /* a multiple of DV_SPILL_BLOCK, all reserved */
    bool direct;      /* past the page cache */
    size_t alignment; /* what dv_spill_file_read and _write want of an address; 1 unless direct */
    dv_spill_disk disk;
    char folder[128]; /* for messages: the last part of its path */
} dv_spill_file;

typedef struct dv_spill_file_options {
    bool in_memory;            /* allow a folder that is itself memory (tmpfs, ramfs): only sensible in tests */
    bool page_cache;           /* do without O_DIRECT also where the file system has it */
    const dv_spill_disk *disk; /* only read by the call; NULL: dv_spill_system */
} dv_spill_file_options;

/* Opens a file of `bytes`, rounded up to whole blocks, in `folder` and reserves them. `buffer` is written to the file
 * where that is needed: buffer_bytes of zeros, a multiple of DV_SPILL_BLOCK, aligned to it, the caller's.
 * Fails with DV_ERROR_IO where the folder can't be used or the disk is too full, with how much is missing, and with
 * DV_ERROR_OPTION where the folder is memory. After success dv_spill_file_close must follow. */
dv_status dv_spill_file_open(dv_spill_file *file, const char *folder, size_t bytes,
                             const dv_spill_file_options *options, const void *buffer, size_t buffer_bytes,
                             dv_error *error);

/* Reads or writes exactly `bytes` at `offset`, which must lie within the file. With `direct`, `memory` is a multiple of
 * file->alignment and `bytes` one of DV_SPILL_BLOCK. Failures are DV_ERROR_IO, with the offset. */
dv_status dv_spill_file_read(const dv_spill_file *file, size_t offset, void *memory, size_t bytes, dv_error *error);
dv_status dv_spill_file_write(const dv_spill_file *file, size_t offset, const void *memory, size_t bytes,
                              dv_error *error);

/* Closes the file, which frees its space. */
void dv_spill_file_close(dv_spill_file *file);

#endif
