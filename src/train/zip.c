/* The end of a zip archive, from the last byte to the first:
 *
 *     end       22 bytes and a comment      where the directory is, if 32 bits are enough
 *     locator   20 bytes, before it         where the 64-bit end is, if there is one
 *     end64     56 bytes                    the same as the end, in 64 bits
 *     directory entries of 46 bytes, each with a name, extra fields and a comment
 *
 * All numbers are little-endian. */
#include "train/zip.h"

#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    END_BYTES = 22,
    LOCATOR_BYTES = 20,
    END64_BYTES = 56,
    ENTRY_BYTES = 46,
    HEADER_BYTES = 30,
    LONGEST_COMMENT = 65535,
    LONGEST_DIRECTORY = 1 << 26,
    MOST_RECORDS = 1 << 20,
    EXTRA_64 = 1,
    SHOWN = 80
};

static uint64_t number(const unsigned char *at, size_t bytes) {
    uint64_t value = 0;
    for (size_t i = bytes; i-- > 0;)
        value = value << 8 | at[i];
    return value;
}

static bool is_signed(const unsigned char *at, const char *signature) {
    return memcmp(at, signature, 4) == 0;
}

/* ---- the end -------------------------------------------------------------------------------- */

typedef struct directory {
    uint64_t begin, bytes, count;
} directory;

/* Searches the last bytes of the file for the end, from behind. Its offset in `tail`, or -1. */
static long find_end(const unsigned char *tail, size_t bytes) {
    for (size_t at = bytes < END_BYTES ? 0 : bytes - END_BYTES + 1; at-- > 0;)
        if (is_signed(tail + at, "PK\5\6") && at + END_BYTES + number(tail + at + 20, 2) <= bytes)
            return (long)at;
    return -1;
}

static dv_status read_end64(const dv_array_file *file, uint64_t end, directory *found, dv_error *error) {
    unsigned char locator[LOCATOR_BYTES], end64[END64_BYTES];
    if (end < LOCATOR_BYTES)
        return DV_OK;
    DV_TRY(dv_array_file_bytes(file, locator, LOCATOR_BYTES, end - LOCATOR_BYTES, error));
    uint64_t at = number(locator + 8, 8);
    if (!is_signed(locator, "PK\6\7"))
        return DV_OK;
    if (file->bytes < END64_BYTES || at > file->bytes - END64_BYTES)
        return dv_array_file_refuse(file, error, "the end of its archive lies outside of it");
    DV_TRY(dv_array_file_bytes(file, end64, END64_BYTES, at, error));
    if (!is_signed(end64, "PK\6\6"))
        return dv_array_file_refuse(file, error, "its archive has no 64-bit end where it should be");
    *found =
        (directory){.count = number(end64 + 32, 8), .bytes = number(end64 + 40, 8), .begin = number(end64 + 48, 8)};
    return DV_OK;
}

static dv_status read_end(const dv_array_file *file, directory *found, dv_error *error) {
    const size_t most = END_BYTES + LONGEST_COMMENT;
    const size_t bytes = file->bytes < most ? (size_t)file->bytes : most;
    unsigned char *tail = malloc(bytes + 1);
    if (tail == NULL)
        return dv_array_file_no_memory(file, error);
    dv_status status = dv_array_file_bytes(file, tail, bytes, file->bytes - bytes, error);
    long at = status == DV_OK ? find_end(tail, bytes) : -1;
    if (at >= 0)
        *found = (directory){
            .count = number(tail + at + 10, 2), .bytes = number(tail + at + 12, 4), .begin = number(tail + at + 16, 4)};
    free(tail);
    DV_TRY(status);
    if (at < 0)
        return dv_array_file_refuse(file, error, "its archive has no end: it was cut off");
    return read_end64(file, file->bytes - bytes + (uint64_t)at, found, error);
}

static dv_status check_end(const dv_array_file *file, const directory *found, dv_error *error) {
    if (found->begin > file->bytes || found->bytes > file->bytes - found->begin)
        return dv_array_file_refuse(file, error, "the directory of its archive lies outside of it");
    if (found->bytes > LONGEST_DIRECTORY || found->count > MOST_RECORDS || found->count > found->bytes / ENTRY_BYTES)
        return dv_array_file_refuse(file, error, "the directory of its archive has more records than weights have");
    return DV_OK;
}

/* ---- the directory -------------------------------------------------------------------------- */

/* Sizes and offsets that 32 bits can't hold stand in an extra field, in this order, those alone. */
static void read_extra(const unsigned char *extra, size_t bytes, uint64_t *const wide[], size_t wide_count) {
    size_t length = 0;
    for (; bytes >= 4; extra += 4 + length, bytes -= 4 + length) {
        length = (size_t)number(extra + 2, 2);
        if (length > bytes - 4)
            return;
        if (number(extra, 2) != EXTRA_64)
            continue;
        for (size_t i = 0, at = 0; i < wide_count; i++)
            if (*wide[i] == UINT32_MAX && at + 8 <= length) {
                *wide[i] = number(extra + 4 + at, 8);
                at += 8;
            }
        return;
    }
}

/* Reads one entry; its bytes are returned, 0 if there are not as many. `name` has room for it. */
static size_t read_entry(const unsigned char *at, size_t left, char *name, dv_zip_record *record) {
    if (left < ENTRY_BYTES || !is_signed(at, "PK\1\2"))
        return 0;
    size_t name_bytes = (size_t)number(at + 28, 2), extra_bytes = (size_t)number(at + 30, 2);
    size_t bytes = ENTRY_BYTES + name_bytes + extra_bytes + (size_t)number(at + 32, 2);
    uint64_t unpacked = number(at + 24, 4);
    if (bytes > left)
        return 0;
    *record = (dv_zip_record){.name = name,
                              .method = (unsigned)number(at + 10, 2),
                              .encrypted = (number(at + 8, 2) & 1) != 0,
                              .bytes = number(at + 20, 4),
                              .header = number(at + 42, 4)};
    uint64_t *const wide[] = {&unpacked, &record->bytes, &record->header};
    read_extra(at + ENTRY_BYTES + name_bytes, extra_bytes, wide, 3);
    memcpy(name, at + ENTRY_BYTES, name_bytes);
    name[name_bytes] = '\0';
    return bytes;
}

static int by_name(const void *one, const void *other) {
    return strcmp(((const dv_zip_record *)one)->name, ((const dv_zip_record *)other)->name);
}

static dv_status check_records(const dv_array_file *file, dv_zip *zip, dv_error *error) {
    if (zip->count > 0)
        qsort(zip->records, zip->count, sizeof *zip->records, by_name);
    for (size_t i = 1; i < zip->count; i++)
        if (strcmp(zip->records[i - 1].name, zip->records[i].name) == 0)
            return dv_array_file_refuse(file, error, "its archive has two records of one name");
    return DV_OK;
}

static dv_status read_entries(const dv_array_file *file, const directory *found, const unsigned char *entries,
                              dv_zip *zip, dv_error *error) {
    char *name = zip->names;
    for (size_t at = 0; zip->count < found->count; name += strlen(name) + 1) {
        size_t bytes = read_entry(entries + at, (size_t)found->bytes - at, name, &zip->records[zip->count]);
        if (bytes == 0)
            return dv_array_file_refuse(file, error, "the directory of its archive is damaged");
        at += bytes;
        zip->count++;
    }
    return check_records(file, zip, error);
}

dv_status dv_zip_read(const dv_array_file *file, dv_zip *zip, dv_error *error) {
    directory found = {0};
    *zip = (dv_zip){0};
    DV_TRY(read_end(file, &found, error));
    DV_TRY(check_end(file, &found, error));
    unsigned char *entries = malloc((size_t)found.bytes + 1);
    zip->records = calloc((size_t)found.count + 1, sizeof *zip->records);
    zip->names = malloc((size_t)found.bytes + 1); /* each name is shorter than its entry */
    if (entries == NULL || zip->records == NULL || zip->names == NULL) {
        free(entries);
        return dv_array_file_no_memory(file, error);
    }
    dv_status status = dv_array_file_bytes(file, entries, (size_t)found.bytes, found.begin, error);
    if (status == DV_OK)
        status = read_entries(file, &found, entries, zip, error);
    free(entries);
    return status;
}

void dv_zip_free(dv_zip *zip) {
    free(zip->records);
    free(zip->names);
}

const dv_zip_record *dv_zip_find(const dv_zip *zip, const char *name) {
    const dv_zip_record wanted = {.name = name};
    return zip->count > 0 ? bsearch(&wanted, zip->records, zip->count, sizeof wanted, by_name) : NULL;
}

/* ---- records -------------------------------------------------------------------------------- */

static dv_status refuse_record(const dv_array_file *file, const dv_zip_record *record, const char *fault,
                               dv_error *error) {
    char reason[SHOWN + 128];
    snprintf(reason, sizeof reason, "its record %.*s %s", SHOWN, record->name, fault);
    return dv_array_file_refuse(file, error, reason);
}

dv_status dv_zip_locate(const dv_array_file *file, const dv_zip_record *record, uint64_t *begin, dv_error *error) {
    unsigned char header[HEADER_BYTES];
    if (record->encrypted)
        return refuse_record(file, record, "is encrypted, which torch.save never does", error);
    if (record->method != 0)
        return refuse_record(file, record, "is compressed, which torch.save never does: save it again with PyTorch",
                             error);
    if (file->bytes < HEADER_BYTES || record->header > file->bytes - HEADER_BYTES)
        return refuse_record(file, record, "lies outside of the file", error);
    DV_TRY(dv_array_file_bytes(file, header, HEADER_BYTES, record->header, error));
    if (!is_signed(header, "PK\3\4"))
        return refuse_record(file, record, "has no header", error);
    *begin = record->header + HEADER_BYTES + number(header + 26, 2) + number(header + 28, 2);
    if (*begin > file->bytes || record->bytes > file->bytes - *begin)
        return refuse_record(file, record, "lies outside of the file", error);
    return DV_OK;
}
