/* Writing safetensors: the header is made in memory, the arrays go from where they are to the file. */
#include "train/safetensors.h"

#include "base/file.h"
#include "base/status.h"

#include <division/tools/json.h>

#include <stdlib.h>
#include <string.h>

/* What the arrays' beginning in the file is a multiple of. */
enum { LENGTH_BYTES = 8, ALIGNMENT = 64 };

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "arrays are written as they are in memory");

static size_t count_of(const dv_safetensors_source *source) {
    size_t count = 1;
    for (int d = 0; d < source->rank; d++)
        count *= source->shape[d];
    return count;
}

static void describe(dv_json *json, const dv_safetensors_source *source, uint64_t begin) {
    dv_json_object(json, source->name);
    dv_json_text(json, "dtype", "F32");
    dv_json_array(json, "shape");
    for (int d = 0; d < source->rank; d++)
        dv_json_unsigned(json, NULL, source->shape[d]);
    dv_json_end(json);
    dv_json_array(json, "data_offsets");
    dv_json_unsigned(json, NULL, begin);
    dv_json_unsigned(json, NULL, begin + count_of(source) * sizeof(float));
    dv_json_end(json);
    dv_json_end(json);
}

static void describe_all(dv_json *json, const dv_safetensors_source *sources, size_t source_count, const dv_note *notes,
                         size_t note_count) {
    uint64_t begin = 0;
    dv_json_object(json, NULL);
    dv_json_object(json, "__metadata__");
    for (size_t i = 0; i < note_count; i++)
        dv_json_text(json, notes[i].name, notes[i].value);
    dv_json_end(json);
    for (size_t i = 0; i < source_count; i++) {
        describe(json, &sources[i], begin);
        begin += count_of(&sources[i]) * sizeof(float);
    }
    dv_json_end(json);
}

/* Writes length and header; the header's length is first measured by writing it to nowhere. */
static dv_status write_header(FILE *stream, const dv_safetensors_source *sources, size_t source_count,
                              const dv_note *notes, size_t note_count, dv_error *error) {
    dv_json json;
    char nowhere[1];
    dv_json_to_buffer(&json, nowhere, sizeof nowhere);
    describe_all(&json, sources, source_count, notes, note_count);
    size_t used = LENGTH_BYTES + json.length, whole = (used + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    char *text = malloc(whole + 1);
    if (text == NULL)
        return dv_fail(error, DV_ERROR_MEMORY, "no memory to write a checkpoint: free some");
    for (int i = 0; i < LENGTH_BYTES; i++)
        text[i] = (char)(unsigned char)((uint64_t)(whole - LENGTH_BYTES) >> 8 * i & 0xff);
    dv_json_to_buffer(&json, text + LENGTH_BYTES, whole + 1 - LENGTH_BYTES);
    describe_all(&json, sources, source_count, notes, note_count);
    dv_status status = dv_json_finish(&json, error);
    if (status == DV_OK) {
        memset(text + used, ' ', whole - used);
        fwrite(text, 1, whole, stream); /* the commit asks ferror */
    }
    free(text);
    return status;
}

dv_status dv_safetensors_write(const char *path, const dv_safetensors_source *sources, size_t source_count,
                               const dv_note *notes, size_t note_count, dv_error *error) {
    dv_file file;
    DV_TRY(dv_file_begin(&file, path, error));
    dv_status status = write_header(file.stream, sources, source_count, notes, note_count, error);
    if (status != DV_OK) {
        dv_file_abandon(&file);
        return status;
    }
    for (size_t i = 0; i < source_count && !ferror(file.stream); i++)
        fwrite(sources[i].data, sizeof(float), count_of(&sources[i]), file.stream);
    return dv_file_commit(&file, error);
}
