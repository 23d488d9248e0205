/* Reads blocks of 512 bytes through zlib: a header, then the file's contents filled up to whole blocks. Two blocks of
 * zeros are the end. */
#include "untar.h"

#include "cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { BLOCK = 512, PATH_BYTES = 4096 };

/* Where the fields of a header are. */
enum {
    NAME = 0,
    NAME_BYTES = 100,
    SIZE = 124,
    SIZE_BYTES = 12,
    CHECKSUM = 148,
    CHECKSUM_BYTES = 8,
    KIND = 156,
    PREFIX = 345,
    PREFIX_BYTES = 155
};

typedef struct reader {
    gzFile stream;
    const char *archive, *folder;
    size_t files;
} reader;

static dv_status read_block(reader *from, char block[BLOCK], dv_error *error) {
    int code = 0, got = gzread(from->stream, block, BLOCK);
    if (got == BLOCK)
        return DV_OK;
    const char *reason = gzerror(from->stream, &code);
    return cli_error(error, DV_ERROR_FORMAT, "%.120s: %s: the archive is damaged", from->archive,
                     got < 0 && code != Z_OK ? reason : "it ends too early");
}

/* An octal number, or -1. */
static long long read_number(const char *field, size_t bytes) {
    long long number = 0;
    size_t i = 0;
    while (i < bytes && field[i] == ' ')
        i++;
    for (; i < bytes && field[i] >= '0' && field[i] <= '7'; i++)
        number = number * 8 + (field[i] - '0');
    return i < bytes && field[i] != '\0' && field[i] != ' ' ? -1 : number;
}

/* The sum of a header's bytes, with blanks for the sum itself. */
static long long sum_up(const char block[BLOCK]) {
    long long sum = 0;
    for (int i = 0; i < BLOCK; i++)
        sum += i >= CHECKSUM && i < CHECKSUM + CHECKSUM_BYTES ? ' ' : (unsigned char)block[i];
    return sum;
}

static int is_safe(const char *name) {
    if (name[0] == '/' || name[0] == '\0')
        return 0;
    for (const char *part = name; part != NULL; part = strchr(part, '/')) {
        part += *part == '/';
        if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || part[2] == '\0'))
            return 0;
    }
    return 1;
}

/* Makes the folders above a path. */
static void make_folders(char *path) {
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(path, 0777); /* opening the file tells of failure */
        *slash = '/';
    }
}

/* Copies the contents of a file, `size` bytes; or, with no stream, skips them. */
static dv_status copy(reader *from, long long size, FILE *to, dv_error *error) {
    char block[BLOCK];
    for (; size > 0; size -= BLOCK) {
        size_t part = size < BLOCK ? (size_t)size : BLOCK;
        dv_status status = read_block(from, block, error);
        if (status != DV_OK)
            return status;
        if (to != NULL && fwrite(block, 1, part, to) != part)
            return cli_error(error, DV_ERROR_IO, "could not unpack into %.120s: %s: make room, or choose another place",
                             from->folder, strerror(errno));
    }
    return DV_OK;
}

/* Writes beside the target, which takes its name when it is complete and on the disk. */
static dv_status unpack(reader *from, const char *name, long long size, dv_error *error) {
    char path[PATH_BYTES], temporary[PATH_BYTES + 8];
    snprintf(path, sizeof path, "%s/%s", from->folder, name);
    snprintf(temporary, sizeof temporary, "%s.tmp", path);
    make_folders(temporary);
    FILE *stream = fopen(temporary, "wb");
    if (stream == NULL)
        return cli_error(error, DV_ERROR_IO, "could not write %.150s: %s: check the folder", temporary,
                         strerror(errno));
    dv_status status = copy(from, size, stream, error);
    int failed = fflush(stream) != 0 || fsync(fileno(stream)) != 0;
    failed |= fclose(stream) != 0;
    if (status == DV_OK && (failed || rename(temporary, path) != 0))
        status = cli_error(error, DV_ERROR_IO, "could not write %.150s: %s: make room, or choose another place", path,
                           strerror(errno));
    if (status != DV_OK)
        unlink(temporary);
    else
        from->files++;
    return status;
}

static dv_status read_entry(reader *from, const char block[BLOCK], dv_error *error) {
    char name[NAME_BYTES + PREFIX_BYTES + 2];
    long long size = read_number(block + SIZE, SIZE_BYTES);
    if (size < 0 || read_number(block + CHECKSUM, CHECKSUM_BYTES) != sum_up(block))
        return cli_error(error, DV_ERROR_FORMAT, "%.120s: it is no tar archive, or damaged", from->archive);
    snprintf(name, sizeof name, "%.*s%s%.*s", PREFIX_BYTES, block + PREFIX, block[PREFIX] != '\0' ? "/" : "",
             NAME_BYTES, block + NAME);
    if (block[KIND] != '0' && block[KIND] != '\0')
        return copy(from, size, NULL, error);
    if (!is_safe(name))
        return cli_error(error, DV_ERROR_FORMAT, "%.120s: the name %.80s leads out of the folder", from->archive, name);
    return unpack(from, name, size, error);
}

static dv_status read_all(reader *from, dv_error *error) {
    static const char zeros[BLOCK];
    char block[BLOCK];
    for (;;) {
        dv_status status = read_block(from, block, error);
        if (status != DV_OK || memcmp(block, zeros, BLOCK) == 0)
            return status;
        status = read_entry(from, block, error);
        if (status != DV_OK)
            return status;
    }
}

dv_status untar(const char *archive, const char *folder, size_t *files, dv_error *error) {
    reader from = {gzopen(archive, "rb"), archive, folder, 0};
    if (from.stream == NULL)
        return cli_error(error, DV_ERROR_IO, "could not read %.150s: %s: check the path", archive, strerror(errno));
    if (strlen(folder) > PATH_BYTES / 2) {
        gzclose(from.stream);
        return cli_error(error, DV_ERROR_ARGUMENT, "the name of the folder is too long");
    }
    dv_status status = read_all(&from, error);
    gzclose(from.stream);
    *files = from.files;
    return status;
}
