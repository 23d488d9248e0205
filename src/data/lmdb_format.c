/* Records are binary, little-endian; the description is lines of text, "name value". */
#include "data/lmdb_format.h"

#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { VERSION = 1, MOST_CLASSES = 1 << 24 };

/* ---- records ------------------------------------------------------------------------------- */

static void put(uint64_t number, size_t bytes, uint8_t *to) {
    for (size_t i = 0; i < bytes; i++)
        to[i] = (uint8_t)(number >> 8 * i);
}

static uint32_t get(const uint8_t *from, size_t bytes) {
    uint32_t number = 0;
    for (size_t i = 0; i < bytes; i++)
        number |= (uint32_t)from[i] << 8 * i;
    return number;
}

/* Of all but the checksum itself. */
static uint32_t checksum(const uint8_t *value, size_t bytes) {
    return (uint32_t)crc32_z(0, value + 4, bytes - 4);
}

void dv_lmdb_key(uint64_t place, uint8_t key[DV_LMDB_KEY_BYTES]) {
    for (size_t i = 0; i < DV_LMDB_KEY_BYTES; i++)
        key[i] = (uint8_t)(place >> 8 * (DV_LMDB_KEY_BYTES - 1 - i));
}

size_t dv_lmdb_record_bytes(const dv_lmdb_record *record) {
    return DV_LMDB_HEADER_BYTES + record->name_bytes + record->image_bytes;
}

void dv_lmdb_record_write(const dv_lmdb_record *record, uint8_t *value) {
    put(record->label, 4, value + 4);
    put(record->name_bytes, 4, value + 8);
    memcpy(value + DV_LMDB_HEADER_BYTES, record->name, record->name_bytes);
    memcpy(value + DV_LMDB_HEADER_BYTES + record->name_bytes, record->image, record->image_bytes);
    put(checksum(value, dv_lmdb_record_bytes(record)), 4, value);
}

dv_status dv_lmdb_record_read(const uint8_t *value, size_t bytes, size_t classes, dv_lmdb_record *record,
                              dv_error *error) {
    if (bytes < DV_LMDB_HEADER_BYTES)
        return dv_fail(error, DV_ERROR_FORMAT, "a record of %zu bytes is no record", bytes);
    size_t name = get(value + 8, 4);
    if (name > DV_LMDB_MAX_NAME || name > bytes - DV_LMDB_HEADER_BYTES)
        return dv_fail(error, DV_ERROR_FORMAT, "a name of %zu bytes in a record of %zu", name, bytes);
    if (get(value, 4) != checksum(value, bytes))
        return dv_fail(error, DV_ERROR_FORMAT, "the checksum is wrong: the record was damaged");
    *record = (dv_lmdb_record){.label = get(value + 4, 4),
                               .name = (const char *)value + DV_LMDB_HEADER_BYTES,
                               .name_bytes = name,
                               .image = value + DV_LMDB_HEADER_BYTES + name,
                               .image_bytes = bytes - DV_LMDB_HEADER_BYTES - name};
    if (record->label >= classes)
        return dv_fail(error, DV_ERROR_FORMAT, "label %u of %zu classes", record->label, classes);
    return DV_OK;
}

dv_status dv_lmdb_record_label(const uint8_t *value, size_t bytes, size_t classes, int32_t *label, dv_error *error) {
    if (bytes < DV_LMDB_HEADER_BYTES)
        return dv_fail(error, DV_ERROR_FORMAT, "a record of %zu bytes is no record", bytes);
    uint32_t found = get(value + 4, 4);
    if (found >= classes)
        return dv_fail(error, DV_ERROR_FORMAT, "label %u of %zu classes", found, classes);
    *label = (int32_t)found;
    return DV_OK;
}

/* ---- the description ----------------------------------------------------------------------- */

char *dv_lmdb_describe(const dv_lmdb_description *description) {
    char *text = NULL;
    size_t bytes;
    FILE *stream = open_memstream(&text, &bytes);
    if (stream == NULL)
        return NULL;
    fprintf(stream, "division-lmdb %d\nimages %zu\nclasses %zu\nresize %zu\nquality %zu\nsource %u\ncomplete %d\n",
            VERSION, description->images, description->classes, description->resize, description->quality,
            description->source, description->complete);
    for (size_t i = 0; i < description->classes; i++)
        fprintf(stream, "class %s\n", description->class_names[i]);
    int failed = ferror(stream);
    if (fclose(stream) == 0 && !failed)
        return text;
    free(text);
    return NULL;
}

/* What is left of the text. */
typedef struct lines {
    const char *at, *end;
} lines;

/* Takes a line "name value" off; the value is not terminated. Returns 0 if the next is none with this name. */
static int take(lines *from, const char *name, const char **value, size_t *bytes) {
    size_t length = strlen(name), left = (size_t)(from->end - from->at);
    const char *newline = memchr(from->at, '\n', left);
    if (newline == NULL || (size_t)(newline - from->at) < length + 1 || memcmp(from->at, name, length) != 0 ||
        from->at[length] != ' ')
        return 0;
    *value = from->at + length + 1;
    *bytes = (size_t)(newline - *value);
    from->at = newline + 1;
    return 1;
}

static int take_number(lines *from, const char *name, size_t most, size_t *number) {
    const char *value;
    size_t bytes;
    if (!take(from, name, &value, &bytes) || bytes == 0 || bytes > 18)
        return 0;
    *number = 0;
    for (size_t i = 0; i < bytes; i++) {
        if (value[i] < '0' || value[i] > '9')
            return 0;
        *number = *number * 10 + (size_t)(value[i] - '0');
    }
    return *number <= most;
}

/* Text that is not terminated, terminated; NULL if memory ran out. */
static char *copy_of(const char *text, size_t bytes) {
    char *copy = malloc(bytes + 1);
    if (copy != NULL) {
        memcpy(copy, text, bytes);
        copy[bytes] = '\0';
    }
    return copy;
}

static dv_status read_classes(lines *from, dv_lmdb_description *to, size_t classes, dv_error *error) {
    const char *value;
    size_t bytes;
    if (classes > (size_t)(from->end - from->at) / 7) /* "class " and the end of the line, at least */
        return dv_fail(error, DV_ERROR_FORMAT, "the description has fewer than the %zu classes it tells of", classes);
    to->class_names = calloc(classes + 1, sizeof *to->class_names);
    if (to->class_names == NULL)
        return dv_fail(error, DV_ERROR_MEMORY, "no memory for the names of %zu classes: free some", classes);
    for (; to->classes < classes; to->classes++) {
        if (!take(from, "class", &value, &bytes))
            return dv_fail(error, DV_ERROR_FORMAT, "the description has %zu of %zu classes", to->classes, classes);
        to->class_names[to->classes] = copy_of(value, bytes);
        if (to->class_names[to->classes] == NULL)
            return dv_fail(error, DV_ERROR_MEMORY, "no memory for the names of %zu classes: free some", classes);
    }
    return DV_OK;
}

dv_status dv_lmdb_description_read(const char *text, size_t bytes, dv_lmdb_description *description, dv_error *error) {
    lines from = {text, text + bytes};
    size_t version = 0, classes = 0, source = 0, complete = 0;
    *description = (dv_lmdb_description){0};
    if (!take_number(&from, "division-lmdb", SIZE_MAX, &version))
        return dv_fail(error, DV_ERROR_FORMAT, "the description is none of 'division data lmdb'");
    if (version != VERSION)
        return dv_fail(error, DV_ERROR_FORMAT, "it has version %zu of the layout, this program reads %d", version,
                       (int)VERSION);
    if (!take_number(&from, "images", SIZE_MAX, &description->images) ||
        !take_number(&from, "classes", MOST_CLASSES, &classes) ||
        !take_number(&from, "resize", SIZE_MAX, &description->resize) ||
        !take_number(&from, "quality", 100, &description->quality) ||
        !take_number(&from, "source", UINT32_MAX, &source) || !take_number(&from, "complete", 1, &complete))
        return dv_fail(error, DV_ERROR_FORMAT, "the description is damaged");
    description->source = (uint32_t)source;
    description->complete = (int)complete;
    return read_classes(&from, description, classes, error);
}

void dv_lmdb_description_free(dv_lmdb_description *description) {
    for (size_t i = 0; i < description->classes; i++)
        free(description->class_names[i]);
    free(description->class_names);
    *description = (dv_lmdb_description){0};
}
