/* A disk that is slow, full or broken when a test says so; else the one below the test's folder. What it did is
 * counted. Calls come from the threads of a spill, one at a time.
 * Needs _GNU_SOURCE. */
#ifndef DV_TESTS_DISK_H
#define DV_TESTS_DISK_H

#include "base/spill_file.h"

#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>

enum { DISK_LOG = 4096 };

typedef struct disk {
    bool no_unnamed, no_reserve;  /* the file system has no O_TMPFILE, no fallocate */
    int reserve_code;             /* fallocate fails with it */
    int fail_at, code;            /* the transfer of this number (from 1) fails, with this errno */
    bool refuses_direct;          /* writes fail with EINVAL while O_DIRECT is on */
    bool short_counts;            /* moves one block at a time, and is interrupted in between */
    long delay;                   /* of each transfer, in ns */
    sem_t *gate;                  /* each transfer waits for it */
    atomic_int transfers, writes; /* begun */
    off_t log[DISK_LOG];          /* offsets of transfers, in order; those of writes negative and less 1 */
} disk;

static inline int disk_open_unnamed(void *context, const char *folder) {
    const disk *self = context;
    errno = EOPNOTSUPP;
    return self->no_unnamed ? -1 : dv_spill_system.open_unnamed(NULL, folder);
}

static inline int disk_reserve(void *context, int descriptor, off_t bytes) {
    const disk *self = context;
    errno = self->reserve_code != 0 ? self->reserve_code : EOPNOTSUPP;
    return self->no_reserve || self->reserve_code != 0 ? -1 : dv_spill_system.reserve(NULL, descriptor, bytes);
}

/* What happens before a transfer. Returns how many bytes it may move, or 0 with errno set. */
static inline size_t disk_begin(disk *self, off_t note, size_t bytes) {
    int number = ++self->transfers;
    self->log[number % DISK_LOG] = note;
    if (self->gate != NULL)
        sem_wait(self->gate);
    if (self->delay > 0)
        nanosleep(&(struct timespec){.tv_nsec = self->delay}, NULL);
    errno = self->code;
    if (number == self->fail_at)
        return 0;
    errno = EINTR;
    if (self->short_counts && number % 2 == 0)
        return 0;
    return self->short_counts && bytes > DV_SPILL_BLOCK ? DV_SPILL_BLOCK : bytes;
}

static inline ssize_t disk_read(void *context, int descriptor, void *memory, size_t bytes, off_t offset) {
    size_t allowed = disk_begin(context, offset, bytes);
    return allowed > 0 ? dv_spill_system.read(NULL, descriptor, memory, allowed, offset) : -1;
}

static inline ssize_t disk_write(void *context, int descriptor, const void *memory, size_t bytes, off_t offset) {
    disk *self = context;
    size_t allowed = disk_begin(self, -1 - offset, bytes);
    self->writes++;
    if (self->refuses_direct && (fcntl(descriptor, F_GETFL) & O_DIRECT) != 0) {
        errno = EINVAL;
        return -1;
    }
    return allowed > 0 ? dv_spill_system.write(NULL, descriptor, memory, allowed, offset) : -1;
}

/* The calls that reach `self`, which must outlive the file. */
static inline dv_spill_disk disk_calls(disk *self) {
    return (dv_spill_disk){.open_unnamed = disk_open_unnamed,
                           .reserve = disk_reserve,
                           .read = disk_read,
                           .write = disk_write,
                           .context = self};
}

#endif
