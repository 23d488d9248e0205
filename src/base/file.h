/* Files: read whole, and replace at once or not at all.
 *
 * A file is written beside its target and takes the target's name when it is complete and on the disk.
 * Whoever reads the target meanwhile, or after a crash, finds the old contents or the new, never a part. */
#ifndef DV_BASE_FILE_H
#define DV_BASE_FILE_H

#include <division/status.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* A replacement under way. */
typedef struct dv_file {
    FILE *stream;    /* write the contents here */
    char *target;    /* the file to replace; owned */
    char *temporary; /* where the contents go meanwhile; owned, NULL if they go straight to the target */
} dv_file;

/* Begins to replace `path`. An existing file keeps its permissions, and a link stays a link. What is no
 * regular file (a device, a pipe) is written directly. After success, one of the next two must follow. */
dv_status dv_file_begin(dv_file *file, const char *path, dv_error *error);

/* Makes what was written to the stream the contents of the file. On failure the old file stays and the
 * temporary is gone. Either way the stream is closed. */
dv_status dv_file_commit(dv_file *file, dv_error *error);

/* Gives up: the old file stays, the temporary is gone, the stream closed. */
void dv_file_abandon(dv_file *file);

/* Replaces the contents of `path` by `bytes` of `data`. */
dv_status dv_file_replace(const char *path, const void *data, size_t bytes, dv_error *error);

/* Opens a regular file for reading; `descriptor` is the caller's to close. What is none, as a pipe or a device, is
 * refused at once: there may never be anything to read. */
dv_status dv_file_open(const char *path, int *descriptor, size_t *bytes, dv_error *error);

/* Reads `bytes` of an open file from `offset` on. Returns 0, or an errno: ENODATA where the file ends before. */
int dv_file_read_at(int descriptor, void *data, size_t bytes, uint64_t offset);

/* Reads all of a regular file of at most `limit` bytes. `data` is the caller's to free(), and is followed by a
 * zero byte that `bytes` does not count. */
dv_status dv_file_read(const char *path, size_t limit, void **data, size_t *bytes, dv_error *error);

/* The last part of a path, short enough that a message has room for the rest. */
const char *dv_file_shown(const char *path);

/* What someone can do about an errno of the operating system. The text is static. */
const char *dv_file_remedy(int code);

#endif
