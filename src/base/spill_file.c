/* Opening, reserving, reading and writing a file without a name. Everything here is Linux's own: O_TMPFILE, O_DIRECT,
 * fallocate, statx. What a file system lacks of it has a second way, said where it is taken. */
#define _GNU_SOURCE /* NOLINT(bugprone-reserved-identifier) */
#include "base/spill_file.h"

#include "base/file.h"
#include "base/sizes.h"
#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

/* ---- the system's calls -------------------------------------------------------------------- */

static int system_open_unnamed(void *context, const char *folder) {
    (void)context;
    return open(folder, O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, 0600); /* O_EXCL: it can't be given a name later */
}

static int system_reserve(void *context, int descriptor, off_t bytes) {
    (void)context;
    return fallocate(descriptor, 0, 0, bytes);
}

static ssize_t system_read(void *context, int descriptor, void *memory, size_t bytes, off_t offset) {
    (void)context;
    return pread(descriptor, memory, bytes, offset);
}

static ssize_t system_write(void *context, int descriptor, const void *memory, size_t bytes, off_t offset) {
    (void)context;
    return pwrite(descriptor, memory, bytes, offset);
}

const dv_spill_disk dv_spill_system = {
    .open_unnamed = system_open_unnamed,
    .reserve = system_reserve,
    .read = system_read,
    .write = system_write,
};

size_t dv_spill_room(size_t bytes) {
    return dv_divide_up(bytes, DV_SPILL_BLOCK) * DV_SPILL_BLOCK;
}

/* ---- reading and writing ------------------------------------------------------------------- */

static dv_status fail_transfer(const dv_spill_file *file, const char *action, size_t bytes, size_t offset, int code,
                               dv_error *error) {
    return dv_fail(error, DV_ERROR_IO, "could not %s %zu bytes at offset %zu of the spill file in %s: %s: %s", action,
                   bytes, offset, file->folder, strerror(code), dv_file_remedy(code));
}

/* Takes the pages of a part of the file out of the page cache. Also with O_DIRECT, when it costs nothing: some file
 * systems accept it and use the cache all the same. */
static void drop_pages(const dv_spill_file *file, size_t offset, size_t bytes) {
    (void)posix_fadvise(file->descriptor, (off_t)offset, (off_t)bytes, POSIX_FADV_DONTNEED);
}

/* Forces a part of the file to the disk: pages can be dropped only when they are clean. Returns 0 or an errno. */
static int force_pages(const dv_spill_file *file, size_t offset, size_t bytes) {
    const unsigned whole = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
    if (file->direct || sync_file_range(file->descriptor, (off_t)offset, (off_t)bytes, whole) == 0 ||
        fdatasync(file->descriptor) == 0)
        return 0;
    return errno;
}

dv_status dv_spill_file_read(const dv_spill_file *file, size_t offset, void *memory, size_t bytes, dv_error *error) {
    for (size_t done = 0; done < bytes;) {
        ssize_t count = file->disk.read(file->disk.context, file->descriptor, (char *)memory + done, bytes - done,
                                        (off_t)(offset + done));
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0) /* 0: the file ends before its time */
            return fail_transfer(file, "read", bytes - done, offset + done, count < 0 ? errno : EIO, error);
        done += (size_t)count;
    }
    drop_pages(file, offset, bytes);
    return DV_OK;
}

/* Writes all of it. Returns 0, or an errno with what was written in *done. */
static int write_all(const dv_spill_file *file, size_t offset, const void *memory, size_t bytes, size_t *done) {
    for (*done = 0; *done < bytes;) {
        ssize_t count = file->disk.write(file->disk.context, file->descriptor, (const char *)memory + *done,
                                         bytes - *done, (off_t)(offset + *done));
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return count < 0 ? errno : EIO;
        *done += (size_t)count;
    }
    return force_pages(file, offset, bytes);
}

dv_status dv_spill_file_write(const dv_spill_file *file, size_t offset, const void *memory, size_t bytes,
                              dv_error *error) {
    size_t done;
    int code = write_all(file, offset, memory, bytes, &done);
    drop_pages(file, offset, bytes);
    return code == 0 ? DV_OK : fail_transfer(file, "write", bytes - done, offset + done, code, error);
}

/* ---- opening ------------------------------------------------------------------------------- */

/* Fails with the reason in `code`, an errno. */
static dv_status fail_folder(const char *folder, const char *action, int code, dv_error *error) {
    return dv_fail(error, DV_ERROR_IO, "could not %s %s: %s: %s", action, dv_file_shown(folder), strerror(code),
                   dv_file_remedy(code));
}

static dv_status check_folder(const char *folder, const dv_spill_file_options *options, dv_error *error) {
    struct stat status;
    struct statfs system;
    if (stat(folder, &status) != 0 || statfs(folder, &system) != 0)
        return fail_folder(folder, "use the folder to spill to,", errno, error);
    if (!S_ISDIR(status.st_mode))
        return dv_fail(error, DV_ERROR_IO, "folder to spill to: %s is no folder: give one that is on a disk",
                       dv_file_shown(folder));
    if (!options->in_memory && (system.f_type == TMPFS_MAGIC || (unsigned)system.f_type == RAMFS_MAGIC))
        return dv_fail(
            error, DV_ERROR_OPTION,
            "folder to spill to: %s is in memory (%s), where spilling saves none: give one that is on a disk",
            dv_file_shown(folder), system.f_type == TMPFS_MAGIC ? "tmpfs" : "ramfs");
    return DV_OK;
}

/* A file that has a name for as long as it takes to remove it, where the file system has none without (NFS, FAT, FUSE):
 * only a kill between the two calls leaves it, empty. Returns a descriptor, or -1 with errno set. */
static int open_named(const char *folder) {
    char path[4096];
    int length = snprintf(path, sizeof path, "%s/division-spill-XXXXXX", folder);
    if (length < 0 || (size_t)length >= sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    int descriptor = mkostemp(path, O_CLOEXEC);
    if (descriptor >= 0)
        unlink(path);
    return descriptor;
}

/* On Btrfs a block that is written again goes to a new place, for which nothing is reserved, unless the file is told
 * to stay in place while it is empty. Elsewhere the flag is unknown, and not needed. */
static void stay_in_place(int descriptor) {
    int flags;
    if (ioctl(descriptor, FS_IOC_GETFLAGS, &flags) != 0)
        return;
    flags |= FS_NOCOW_FL;
    (void)ioctl(descriptor, FS_IOC_SETFLAGS, &flags);
}

static dv_status open_file(dv_spill_file *file, const char *folder, dv_error *error) {
    file->descriptor = file->disk.open_unnamed(file->disk.context, folder);
    if (file->descriptor < 0)
        file->descriptor = open_named(folder); /* whose errno is the reason, if that fails too */
    if (file->descriptor < 0)
        return fail_folder(folder, "make a spill file in", errno, error);
    stay_in_place(file->descriptor);
    return DV_OK;
}

/* ---- past the page cache ------------------------------------------------------------------- */

/* Alignments that O_DIRECT asks for on this file, as far as the kernel tells: DV_SPILL_BLOCK else, which is enough for
 * every disk. Returns whether blocks are large enough for it. */
static bool find_alignment(dv_spill_file *file) {
    file->alignment = DV_SPILL_BLOCK;
#ifdef STATX_DIOALIGN
    struct statx status;
    if (statx(file->descriptor, "", AT_EMPTY_PATH, STATX_DIOALIGN, &status) == 0 &&
        (status.stx_mask & STATX_DIOALIGN) != 0) {
        if (status.stx_dio_mem_align == 0 || status.stx_dio_mem_align > DV_SPILL_BLOCK ||
            status.stx_dio_offset_align > DV_SPILL_BLOCK)
            return false;
        file->alignment = status.stx_dio_mem_align;
    }
#endif
    return true;
}

/* Turns O_DIRECT on or off. Returns whether the file system took it. */
static bool set_direct(dv_spill_file *file, bool direct) {
    int flags = fcntl(file->descriptor, F_GETFL);
    flags = direct ? flags | O_DIRECT : flags & ~O_DIRECT;
    file->direct = fcntl(file->descriptor, F_SETFL, flags) == 0 && direct;
    return file->direct == direct;
}

/* Leaves reading ahead off as well: pages that were not asked for would stay in memory. */
static void use_page_cache(dv_spill_file *file) {
    set_direct(file, false);
    file->alignment = 1;
    (void)posix_fadvise(file->descriptor, 0, 0, POSIX_FADV_RANDOM);
}

/* Finds out by a first block, because some file systems accept the flag and refuse the call. Returns 0 or an errno. */
static int choose_cache(dv_spill_file *file, bool page_cache, const void *zeros) {
    size_t done;
    if (!page_cache && find_alignment(file) && set_direct(file, true)) {
        int code = write_all(file, 0, zeros, dv_smaller(DV_SPILL_BLOCK, file->bytes), &done);
        if (code != EINVAL)
            return code;
    }
    use_page_cache(file);
    return 0;
}

/* ---- reserving ----------------------------------------------------------------------------- */

/* Free bytes of the file system, or SIZE_MAX where it does not say. */
static size_t free_bytes(const dv_spill_file *file) {
    struct statvfs status;
    if (fstatvfs(file->descriptor, &status) != 0 || status.f_blocks == 0)
        return SIZE_MAX;
    return (size_t)status.f_bavail * status.f_frsize;
}

/* `available` is what was free before. */
static dv_status fail_reserve(const dv_spill_file *file, size_t available, int code, dv_error *error) {
    if (code != ENOSPC || available >= file->bytes)
        return dv_fail(error, DV_ERROR_IO, "could not reserve %.1f MB to spill to in %s: %s: %s",
                       (double)file->bytes / 1e6, file->folder, strerror(code), dv_file_remedy(code));
    return dv_fail(error, DV_ERROR_IO,
                   "could not reserve %.1f MB to spill to in %s: %.1f MB are free, %.1f MB are missing: make room, or "
                   "choose another folder",
                   (double)file->bytes / 1e6, file->folder, (double)available / 1e6,
                   (double)(file->bytes - available) / 1e6);
}

/* Asked before, because going past it is a signal that ends the program. */
static dv_status check_limit(const dv_spill_file *file, dv_error *error) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= file->bytes)
        return DV_OK;
    return dv_fail(
        error, DV_ERROR_IO,
        "could not reserve %.1f MB to spill to in %s: this process may not write files of more than %.1f MB: "
        "raise its limit (ulimit -f)",
        (double)file->bytes / 1e6, file->folder, (double)limit.rlim_cur / 1e6);
}

/* Zeros all over the file, for a file system that can't reserve: then its blocks are there. One that compresses (ZFS)
 * has nothing to keep of zeros; there, free space when the file was opened is all that is known. */
static int write_zeros(const dv_spill_file *file, const void *zeros, size_t zeros_bytes) {
    int code = 0;
    for (size_t offset = 0, done; code == 0 && offset < file->bytes; offset += zeros_bytes) {
        size_t bytes = dv_smaller(zeros_bytes, file->bytes - offset);
        code = write_all(file, offset, zeros, bytes, &done);
        drop_pages(file, offset, bytes);
    }
    return code;
}

/* Not tried if it can't succeed: some file systems find that out by filling the disk, on which others write too. Not by
 * posix_fallocate: where a file system can't, that one writes to every block through the page cache. */
static int reserve(const dv_spill_file *file, size_t available) {
    if (available < file->bytes)
        return ENOSPC;
    while (file->bytes > 0 && file->disk.reserve(file->disk.context, file->descriptor, (off_t)file->bytes) != 0)
        if (errno != EINTR)
            return errno;
    return 0;
}

static dv_status make_room(dv_spill_file *file, bool page_cache, const void *zeros, size_t zeros_bytes,
                           dv_error *error) {
    DV_TRY(check_limit(file, error));
    size_t available = free_bytes(file);
    int code = reserve(file, available);
    bool unable = code == EOPNOTSUPP || code == ENOSYS;
    if (code == 0 || unable)
        code = choose_cache(file, page_cache, zeros);
    if (code == 0 && unable)
        code = write_zeros(file, zeros, zeros_bytes);
    return code == 0 ? DV_OK : fail_reserve(file, available, code, error);
}

dv_status dv_spill_file_open(dv_spill_file *file, const char *folder, size_t bytes,
                             const dv_spill_file_options *options, const void *buffer, size_t buffer_bytes,
                             dv_error *error) {
    *file = (dv_spill_file){.descriptor = -1, .disk = options->disk != NULL ? *options->disk : dv_spill_system};
    if (folder == NULL || folder[0] == '\0')
        return dv_fail(error, DV_ERROR_ARGUMENT, "no folder to spill to: give one that is on a disk");
    if (bytes > (size_t)INT64_MAX - DV_SPILL_BLOCK)
        return dv_fail(error, DV_ERROR_ARGUMENT, "a spill file of %zu bytes: no file is so large", bytes);
    file->bytes = dv_spill_room(bytes);
    snprintf(file->folder, sizeof file->folder, "%s", dv_file_shown(folder));
    DV_TRY(check_folder(folder, options, error));
    DV_TRY(open_file(file, folder, error));
    dv_status status = make_room(file, options->page_cache, buffer, buffer_bytes, error);
    if (status != DV_OK)
        dv_spill_file_close(file);
    return status;
}

void dv_spill_file_close(dv_spill_file *file) {
    if (file->descriptor >= 0)
        close(file->descriptor);
    file->descriptor = -1;
}
