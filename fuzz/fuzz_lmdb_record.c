/* Fuzzes records and descriptions of LMDB files. What is accepted must lie within what was given, and come out the same
 * when it is written again. */
#include "data/lmdb_format.h"

#include <stdlib.h>
#include <string.h>

enum { CLASSES = 1000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_record(const uint8_t *data, size_t size) {
    dv_lmdb_record record;
    dv_error error;
    if (dv_lmdb_record_read(data, size, CLASSES, &record, &error) != DV_OK)
        return;
    uint8_t *again = malloc(size);
    if (again == NULL)
        return;
    if (dv_lmdb_record_bytes(&record) != size || record.image + record.image_bytes != data + size)
        abort();
    dv_lmdb_record_write(&record, again);
    if (memcmp(again, data, size) != 0)
        abort();
    free(again);
}

/* A checksum is hard to guess: puts the right one in front of the bytes. */
static void read_repaired(const uint8_t *data, size_t size) {
    size_t name = data[4] % 16;
    if (size < DV_LMDB_HEADER_BYTES + name)
        return;
    dv_lmdb_record record = {data[5], (const char *)data + DV_LMDB_HEADER_BYTES, name,
                             data + DV_LMDB_HEADER_BYTES + name, size - DV_LMDB_HEADER_BYTES - name};
    uint8_t *repaired = malloc(size);
    if (repaired == NULL)
        return;
    dv_lmdb_record_write(&record, repaired);
    read_record(repaired, size);
    free(repaired);
}

static void read_description(const uint8_t *data, size_t size) {
    dv_lmdb_description first, again;
    dv_error error;
    if (dv_lmdb_description_read((const char *)data, size, &first, &error) == DV_OK) {
        char *text = dv_lmdb_describe(&first);
        if (text != NULL && (dv_lmdb_description_read(text, strlen(text), &again, &error) != DV_OK ||
                             again.images != first.images || again.classes != first.classes))
            abort();
        if (text != NULL)
            dv_lmdb_description_free(&again);
        free(text);
    }
    dv_lmdb_description_free(&first);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    read_record(data, size);
    if (size >= DV_LMDB_HEADER_BYTES)
        read_repaired(data, size);
    read_description(data, size);
    return 0;
}
