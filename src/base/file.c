/* Reading and replacing files. POSIX only promises that rename() is atomic, so the contents are forced
 * to the disk before it and the folder after it. */
#include "base/file.h"

#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SHOWN_LENGTH = 120, READ_AT_ONCE = 1 << 16, MAX_TEMPORARY_NAMES = 100 };

const char *dv_file_shown(const char *path) {
    size_t length = strlen(path);
    return length > SHOWN_LENGTH ? path + length - SHOWN_LENGTH : path;
}

const char *dv_file_remedy(int code) {
    switch (code) {
    case ENOENT:
        return "check the name, and that the folder exists";
    case EACCES:
    case EPERM:
    case EROFS:
        return "check the permissions, or choose another place";
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return "make room, or choose another place";
    case EISDIR:
    case ENOTDIR:
        return "give the name of a file";
    default:
        return "check the path and the device";
    }
}

/* Fails with the reason in `code`, an errno. */
static dv_status fail_io(dv_error *error, const char *action, const char *path, int code) {
    return dv_fail(error, DV_ERROR_IO, "could not %s %s: %s: %s", action, dv_file_shown(path), strerror(code),
                   dv_file_remedy(code));
}

/* ---- replacing ----------------------------------------------------------------------------- */

/* Frees the names and forgets the stream. */
static void release(dv_file *file) {
    free(file->target);
    free(file->temporary);
    *file = (dv_file){0};
}

/* Creates a new file beside the target, under a name that no other process and no other thread uses.
 * Returns its descriptor, or -1 with errno set. */
static int create_temporary(dv_file *file, mode_t mode) {
    size_t bytes = strlen(file->target) + 48;
    file->temporary = malloc(bytes);
    if (file->temporary == NULL)
        return -1;
    for (int i = 0; i < MAX_TEMPORARY_NAMES; i++) {
        snprintf(file->temporary, bytes, "%s.%ld-%d.tmp", file->target, (long)getpid(), i);
        int descriptor = open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (descriptor >= 0 || errno != EEXIST)
            return descriptor;
    }
    return -1;
}

/* Opens what the contents are written to: the temporary, or the target if it is no regular file. */
static int open_for_writing(dv_file *file) {
    struct stat status;
    int exists = stat(file->target, &status) == 0;
    if (exists && !S_ISREG(status.st_mode))
        return open(file->target, O_WRONLY | O_CLOEXEC);
    int descriptor = create_temporary(file, 0666);
    if (descriptor >= 0 && exists)
        (void)!fchmod(descriptor, status.st_mode & 07777); /* not ours to change: then it is a new file's */
    return descriptor;
}

dv_status dv_file_begin(dv_file *file, const char *path, dv_error *error) {
    *file = (dv_file){0};
    if (path == NULL || path[0] == '\0')
        return dv_fail(error, DV_ERROR_ARGUMENT, "no file name: give one");
    file->target = realpath(path, NULL); /* through links; NULL if there is no such file yet */
    if (file->target == NULL)
        file->target = strdup(path);
    if (file->target == NULL)
        return dv_fail(error, DV_ERROR_MEMORY, "no memory to write %s: free some", dv_file_shown(path));
    int descriptor = open_for_writing(file);
    file->stream = descriptor >= 0 ? fdopen(descriptor, "wb") : NULL;
    if (file->stream != NULL)
        return DV_OK;
    int code = errno;
    if (descriptor >= 0) {
        close(descriptor);
        if (file->temporary != NULL)
            unlink(file->temporary);
    }
    release(file);
    return fail_io(error, "write", path, code);
}

/* Forces the folder of `path` to the disk. A file system that can't is no reason to fail. */
static void sync_folder(char *path) {
    char *slash = strrchr(path, '/');
    if (slash != NULL)
        slash[slash == path] = '\0';
    int descriptor = open(slash != NULL ? path : ".", O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return;
    (void)!fsync(descriptor);
    close(descriptor);
}

/* Writes out and closes the stream. Returns 0, or the errno of the first thing that failed. Of a write that
 * failed earlier, errno is what the caller's last failing call left: most often the reason. */
static int close_stream(dv_file *file) {
    int code = 0;
    if (ferror(file->stream))
        code = errno != 0 ? errno : EIO;
    if (fflush(file->stream) != 0 && code == 0)
        code = errno;
    if (code == 0 && file->temporary != NULL && fsync(fileno(file->stream)) != 0)
        code = errno;
    if (fclose(file->stream) != 0 && code == 0)
        code = errno;
    file->stream = NULL;
    return code;
}

dv_status dv_file_commit(dv_file *file, dv_error *error) {
    dv_status status = DV_OK;
    int code = close_stream(file);
    if (code == 0 && file->temporary != NULL && rename(file->temporary, file->target) != 0)
        code = errno;
    if (code != 0) {
        status = fail_io(error, "write", file->target, code);
        if (file->temporary != NULL)
            unlink(file->temporary);
    } else if (file->temporary != NULL) {
        sync_folder(file->target);
    }
    release(file);
    return status;
}

void dv_file_abandon(dv_file *file) {
    if (file->stream != NULL)
        fclose(file->stream);
    if (file->temporary != NULL)
        unlink(file->temporary);
    release(file);
}

dv_status dv_file_replace(const char *path, const void *data, size_t bytes, dv_error *error) {
    dv_file file;
    DV_TRY(dv_file_begin(&file, path, error));
    fwrite(data, 1, bytes, file.stream); /* the commit asks ferror */
    return dv_file_commit(&file, error);
}

/* ---- reading ------------------------------------------------------------------------------- */

/* Reads to the end of the stream into memory that grows, as long as no more than `limit` bytes come.
 * Returns 0 or an errno; `data` is the caller's to free either way. */
static int read_stream(FILE *stream, size_t limit, char **data, size_t *bytes) {
    size_t room = 0;
    for (;;) {
        if (*bytes + 1 >= room) { /* one byte for the final zero */
            room = room < READ_AT_ONCE ? READ_AT_ONCE : room * 2;
            char *larger = realloc(*data, room);
            if (larger == NULL)
                return ENOMEM;
            *data = larger;
        }
        *bytes += fread(*data + *bytes, 1, room - *bytes - 1, stream);
        (*data)[*bytes] = '\0';
        if (*bytes > limit)
            return EFBIG;
        if (ferror(stream))
            return errno != 0 ? errno : EIO;
        if (feof(stream))
            return 0;
    }
}

dv_status dv_file_open(const char *path, int *descriptor, size_t *bytes, dv_error *error) {
    struct stat status = {0};
    *descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* which a pipe that nobody writes to does not delay */
    int code = *descriptor < 0 || fstat(*descriptor, &status) != 0 ? errno : 0;
    if (code == 0 && S_ISREG(status.st_mode)) {
        *bytes = (size_t)status.st_size;
        return DV_OK;
    }
    if (*descriptor >= 0)
        close(*descriptor);
    *descriptor = -1;
    if (code == 0 && !S_ISDIR(status.st_mode))
        return dv_fail(error, DV_ERROR_IO, "could not read %s: it is no regular file: give the name of one",
                       dv_file_shown(path));
    return fail_io(error, "read", path, code != 0 ? code : EISDIR);
}

int dv_file_read_at(int descriptor, void *data, size_t bytes, uint64_t offset) {
    for (size_t done = 0; done < bytes;) {
        ssize_t got = pread(descriptor, (char *)data + done, bytes - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? errno : ENODATA;
        done += (size_t)got;
    }
    return 0;
}

dv_status dv_file_read(const char *path, size_t limit, void **data, size_t *bytes, dv_error *error) {
    char *contents = NULL;
    size_t length = 0, expected;
    int descriptor;
    DV_TRY(dv_file_open(path, &descriptor, &expected, error));
    FILE *stream = fdopen(descriptor, "rb");
    if (stream == NULL) {
        int reason = errno;
        close(descriptor);
        return fail_io(error, "read", path, reason);
    }
    int code = read_stream(stream, limit, &contents, &length);
    fclose(stream);
    if (code == 0) {
        *data = contents;
        *bytes = length;
        return DV_OK;
    }
    free(contents);
    if (code == EFBIG)
        return dv_fail(error, DV_ERROR_FORMAT,
                       "%s has more than the %zu bytes expected: check that it is the right file", dv_file_shown(path),
                       limit);
    if (code == ENOMEM)
        return dv_fail(error, DV_ERROR_MEMORY, "no memory to read %s: free some", dv_file_shown(path));
    return fail_io(error, "read", path, code);
}
