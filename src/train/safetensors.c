/* Reading safetensors. A header is believed in nothing: every length, type, shape and offset is checked when the file
 * is opened, against each other and against the size of the file. */
#include "base/json_read.h"
#include "base/status.h"
#include "train/array_kind.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The longest header is the format's own limit. */
enum { LENGTH_BYTES = 8, LONGEST_HEADER = 100000000, SHOWN = 80, POOL_SPARE = 16 };

/* ---- the header ---------------------------------------------------------------------------- */

/* The header, while it is read. */
typedef struct header {
    dv_array_file *file;
    size_t pool_used, pool_bytes;    /* of the file's pool: names and notes are never longer than in the header */
    uint64_t data_start, data_bytes; /* the arrays, in the file */
} header;

/* Reads a string, or a key, into the pool. */
static const char *read_pooled(header *h, dv_json_cursor *json, bool key) {
    char *text = h->file->pool + h->pool_used;
    size_t room = h->pool_bytes - h->pool_used;
    if (key)
        dv_json_read_key(json, text, room);
    else
        dv_json_read_text(json, text, room);
    h->pool_used += strlen(text) + 1;
    return text;
}

static bool read_type(dv_json_cursor *json, dv_array *tensor) {
    char name[16];
    if (!dv_json_read_text(json, name, sizeof name))
        return false;
    tensor->type = dv_array_type_of(name);
    return tensor->type >= 0 || dv_json_refuse(json, "a dtype that is not known");
}

static bool read_shape(dv_json_cursor *json, dv_array *tensor) {
    tensor->count = 1;
    tensor->rank = 0;
    for (dv_json_enter(json, '['); dv_json_next(json, ']');) {
        uint64_t side = 0;
        if (tensor->rank == DV_ARRAY_MAX_RANK)
            return dv_json_refuse(json, "a shape of too many dimensions");
        if (!dv_json_read_unsigned(json, &side))
            return false;
        if (__builtin_mul_overflow(tensor->count, side, &tensor->count))
            return dv_json_refuse(json, "a shape that overflows");
        tensor->shape[tensor->rank++] = side;
    }
    dv_array_pack_strides(tensor);
    return json->problem == NULL;
}

static bool read_offsets(dv_json_cursor *json, dv_array *tensor) {
    uint64_t *const offsets[] = {&tensor->begin, &tensor->end};
    dv_json_enter(json, '[');
    for (int i = 0; i < 2; i++)
        if (!dv_json_next(json, ']') || !dv_json_read_unsigned(json, offsets[i]))
            return dv_json_refuse(json, "data_offsets are two numbers");
    return !dv_json_next(json, ']') || dv_json_refuse(json, "data_offsets are two numbers");
}

/* {"dtype": ..., "shape": ..., "data_offsets": ...}, each once, in any order. */
static bool read_tensor(dv_json_cursor *json, dv_array *tensor) {
    static const struct {
        const char *name;
        bool (*read)(dv_json_cursor *json, dv_array *tensor);
    } fields[] = {{"dtype", read_type}, {"shape", read_shape}, {"data_offsets", read_offsets}};
    unsigned seen = 0;
    char key[32];
    for (dv_json_enter(json, '{'); dv_json_next(json, '}');) {
        unsigned i = 0;
        if (!dv_json_read_key(json, key, sizeof key))
            return false;
        while (i < 3 && strcmp(fields[i].name, key) != 0)
            i++;
        if (i == 3 || (seen & 1u << i))
            return dv_json_refuse(json, "a tensor has dtype, shape and data_offsets, each once");
        seen |= 1u << i;
        fields[i].read(json, tensor);
    }
    if (seen != 7)
        return dv_json_refuse(json, "a tensor has dtype, shape and data_offsets, each once");
    return json->problem == NULL;
}

static dv_status read_notes(header *h, dv_json_cursor *json, dv_error *error) {
    for (dv_json_enter(json, '{'); dv_json_next(json, '}');) {
        dv_note *note = dv_array_file_add_note(h->file);
        if (note == NULL)
            return dv_array_file_no_memory(h->file, error);
        note->name = read_pooled(h, json, true);
        note->value = read_pooled(h, json, false);
    }
    return DV_OK;
}

static dv_status read_entry(header *h, dv_json_cursor *json, dv_error *error) {
    const char *name = read_pooled(h, json, true);
    if (strcmp(name, "__metadata__") == 0)
        return read_notes(h, json, error);
    dv_array *tensor = dv_array_file_add(h->file);
    if (tensor == NULL)
        return dv_array_file_no_memory(h->file, error);
    tensor->name = name;
    read_tensor(json, tensor);
    return DV_OK;
}

static dv_status read_header(header *h, const char *text, size_t bytes, dv_error *error) {
    dv_json_cursor json = dv_json_cursor_at(text, bytes);
    if (bytes == 0 || text[0] != '{')
        return dv_array_file_refuse(h->file, error, "its header does not begin with {");
    for (dv_json_enter(&json, '{'); dv_json_next(&json, '}');)
        DV_TRY(read_entry(h, &json, error));
    if (dv_json_ended(&json))
        return DV_OK;
    char reason[128];
    snprintf(reason, sizeof reason, "%.80s, at byte %zu of its header", json.problem, dv_json_position(&json));
    return dv_array_file_refuse(h->file, error, reason);
}

/* ---- checks -------------------------------------------------------------------------------- */

static int by_begin(const void *one, const void *other) {
    const dv_array *a = one, *b = other;
    if (a->begin != b->begin)
        return a->begin < b->begin ? -1 : 1;
    return (a->end > b->end) - (a->end < b->end);
}

/* What is wrong with a tensor that should begin `at`, or NULL. */
static const char *fault_of(const header *h, const dv_array *tensor, uint64_t at) {
    size_t bytes;
    if (tensor->begin != at || tensor->end < tensor->begin)
        return "overlaps another tensor or leaves a hole";
    if (tensor->end > h->data_bytes)
        return "ends behind the end of the file";
    if (__builtin_mul_overflow(tensor->count, dv_array_type_bytes(tensor->type), &bytes) || bytes != tensor->end - at)
        return "has other bytes than its shape takes";
    return NULL;
}

/* Arrays follow each other from the first byte to the last, and each has the bytes that its shape takes. */
static dv_status check_places(const header *h, dv_error *error) {
    dv_array_file *file = h->file;
    uint64_t at = 0;
    if (file->array_count > 0)
        qsort(file->arrays, file->array_count, sizeof *file->arrays, by_begin);
    for (size_t i = 0; i < file->array_count; at = file->arrays[i++].end) {
        const char *fault = fault_of(h, &file->arrays[i], at);
        char reason[SHOWN + 64];
        if (fault == NULL)
            continue;
        snprintf(reason, sizeof reason, "%.*s %s", SHOWN, file->arrays[i].name, fault);
        return dv_array_file_refuse(file, error, reason);
    }
    if (at != h->data_bytes)
        return dv_array_file_refuse(file, error, "bytes at its end belong to no tensor");
    return DV_OK;
}

/* Offsets of the header count from its end, those of arrays from the start of the file. */
static void shift(const header *h) {
    for (size_t i = 0; i < h->file->array_count; i++) {
        h->file->arrays[i].begin += h->data_start;
        h->file->arrays[i].end += h->data_start;
    }
}

/* ---- the file ------------------------------------------------------------------------------ */

/* The header's length, from the first bytes, within the file and the limit. */
static dv_status read_length(header *h, size_t *length, dv_error *error) {
    const dv_array_file *file = h->file;
    unsigned char bytes[LENGTH_BYTES];
    uint64_t value = 0;
    if (file->bytes == 0)
        return dv_array_file_refuse(file, error, "it is empty");
    if (file->bytes < LENGTH_BYTES)
        return dv_array_file_refuse(file, error, "it is too short for a header");
    DV_TRY(dv_array_file_bytes(file, bytes, sizeof bytes, 0, error));
    for (int i = LENGTH_BYTES; i-- > 0;)
        value = value << 8 | bytes[i];
    if (value > LONGEST_HEADER)
        return dv_array_file_refuse(file, error, "its first 8 bytes are no length of a header");
    if (value > file->bytes - LENGTH_BYTES)
        return dv_array_file_refuse(file, error, "it ends inside its header");
    *length = (size_t)value;
    h->data_start = LENGTH_BYTES + value;
    h->data_bytes = file->bytes - h->data_start;
    return DV_OK;
}

static dv_status read_file(dv_array_file *file, dv_error *error) {
    header h = {.file = file};
    size_t length = 0;
    DV_TRY(read_length(&h, &length, error));
    char *text = malloc(length + 1);
    h.pool_bytes = length + POOL_SPARE;
    file->pool = malloc(h.pool_bytes);
    if (text == NULL || file->pool == NULL) {
        free(text);
        return dv_array_file_no_memory(file, error);
    }
    text[0] = '\0';
    dv_status status = dv_array_file_bytes(file, text, length, LENGTH_BYTES, error);
    if (status == DV_OK)
        status = read_header(&h, text, length, error);
    free(text);
    DV_TRY(status);
    DV_TRY(check_places(&h, error));
    shift(&h);
    return DV_OK;
}

/* It has no mark of its own: whatever no other kind recognises. */
static bool recognise(const dv_array_head *head) {
    (void)head;
    return true;
}

const dv_array_kind dv_safetensors_kind = {"safetensors file", recognise, read_file};
