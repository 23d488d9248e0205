/* Reading safetensors. A header is believed in nothing: every length, type, shape and offset is checked when the file
 * is opened, against each other and against the size of the file. */
#include "train/safetensors.h"

#include "base/file.h"
#include "base/float16.h"
#include "base/json_read.h"
#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The longest header is the format's own limit. */
enum { LENGTH_BYTES = 8, LONGEST_HEADER = 100000000, PIECE_BYTES = 1 << 16, SHOWN = 80, POOL_SPARE = 16 };

/* ---- types --------------------------------------------------------------------------------- */

static float from_f32(const unsigned char *src) {
    float value;
    memcpy(&value, src, sizeof value);
    return value;
}

static float from_f64(const unsigned char *src) {
    double value;
    memcpy(&value, src, sizeof value);
    return (float)value;
}

static float from_f16(const unsigned char *src) {
    return dv_f16_to_f32((uint16_t)(src[0] | src[1] << 8));
}

static float from_bf16(const unsigned char *src) {
    return dv_bf16_to_f32((uint16_t)(src[0] | src[1] << 8));
}

/* Those of the format, and how one element becomes f32; NULL for those that are no such numbers. */
static const struct {
    const char *name;
    size_t bytes;
    float (*convert)(const unsigned char *src);
} types[] = {
    {"F32", 4, from_f32}, {"BF16", 2, from_bf16}, {"F16", 2, from_f16}, {"F64", 8, from_f64}, {"I64", 8, NULL},
    {"I32", 4, NULL},     {"I16", 2, NULL},       {"I8", 1, NULL},      {"U64", 8, NULL},     {"U32", 4, NULL},
    {"U16", 2, NULL},     {"U8", 1, NULL},        {"BOOL", 1, NULL},    {"F8_E4M3", 1, NULL}, {"F8_E5M2", 1, NULL},
};

enum { TYPE_COUNT = sizeof types / sizeof *types };

const char *dv_safetensors_type_name(int type) {
    return types[type].name;
}

/* ---- the header ---------------------------------------------------------------------------- */

struct dv_safetensors {
    char *path;
    int descriptor;
    uint64_t data_start, data_bytes; /* the arrays, in the file */
    char *pool;                      /* all names and notes; they are never longer than in the header */
    size_t pool_used, pool_bytes;
    dv_safetensor *tensors;
    size_t tensor_count, tensor_capacity;
    dv_note *notes;
    size_t note_count, note_capacity;
};

static dv_status fail_format(const dv_safetensors *file, dv_error *error, const char *reason) {
    return dv_fail(error, DV_ERROR_FORMAT, "%s is no good safetensors file: %s: check that it is the right file",
                   dv_file_shown(file->path), reason);
}

static dv_status fail_memory(const dv_safetensors *file, dv_error *error) {
    return dv_fail(error, DV_ERROR_MEMORY, "no memory to read %s: free some", dv_file_shown(file->path));
}

/* Room for one more of `size` bytes each. */
static bool grow(void **array, size_t *capacity, size_t count, size_t size) {
    if (count < *capacity)
        return true;
    size_t larger = *capacity > 0 ? *capacity * 2 : 64;
    void *moved = realloc(*array, larger * size);
    if (moved == NULL)
        return false;
    *array = moved;
    *capacity = larger;
    return true;
}

/* Reads a string, or a key, into the pool. */
static const char *read_pooled(dv_safetensors *file, dv_json_cursor *json, bool key) {
    char *text = file->pool + file->pool_used;
    size_t room = file->pool_bytes - file->pool_used;
    if (key)
        dv_json_read_key(json, text, room);
    else
        dv_json_read_text(json, text, room);
    file->pool_used += strlen(text) + 1;
    return text;
}

static bool read_type(dv_json_cursor *json, dv_safetensor *tensor) {
    char name[16];
    if (!dv_json_read_text(json, name, sizeof name))
        return false;
    for (int i = 0; i < TYPE_COUNT; i++) {
        tensor->type = i;
        if (strcmp(types[i].name, name) == 0)
            return true;
    }
    return dv_json_refuse(json, "a dtype that is not known");
}

static bool read_shape(dv_json_cursor *json, dv_safetensor *tensor) {
    tensor->count = 1;
    tensor->rank = 0;
    for (dv_json_enter(json, '['); dv_json_next(json, ']');) {
        uint64_t side = 0;
        if (tensor->rank == DV_SAFETENSORS_MAX_RANK)
            return dv_json_refuse(json, "a shape of too many dimensions");
        if (!dv_json_read_unsigned(json, &side))
            return false;
        if (__builtin_mul_overflow(tensor->count, side, &tensor->count))
            return dv_json_refuse(json, "a shape that overflows");
        tensor->shape[tensor->rank++] = side;
    }
    return json->problem == NULL;
}

static bool read_offsets(dv_json_cursor *json, dv_safetensor *tensor) {
    uint64_t *const offsets[] = {&tensor->begin, &tensor->end};
    dv_json_enter(json, '[');
    for (int i = 0; i < 2; i++)
        if (!dv_json_next(json, ']') || !dv_json_read_unsigned(json, offsets[i]))
            return dv_json_refuse(json, "data_offsets are two numbers");
    return !dv_json_next(json, ']') || dv_json_refuse(json, "data_offsets are two numbers");
}

/* {"dtype": ..., "shape": ..., "data_offsets": ...}, each once, in any order. */
static bool read_tensor(dv_json_cursor *json, dv_safetensor *tensor) {
    static const struct {
        const char *name;
        bool (*read)(dv_json_cursor *json, dv_safetensor *tensor);
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

static dv_status read_notes(dv_safetensors *file, dv_json_cursor *json, dv_error *error) {
    for (dv_json_enter(json, '{'); dv_json_next(json, '}');) {
        if (!grow((void **)&file->notes, &file->note_capacity, file->note_count, sizeof *file->notes))
            return fail_memory(file, error);
        dv_note *note = &file->notes[file->note_count++];
        note->name = read_pooled(file, json, true);
        note->value = read_pooled(file, json, false);
    }
    return DV_OK;
}

static dv_status read_entry(dv_safetensors *file, dv_json_cursor *json, dv_error *error) {
    const char *name = read_pooled(file, json, true);
    if (strcmp(name, "__metadata__") == 0)
        return read_notes(file, json, error);
    if (!grow((void **)&file->tensors, &file->tensor_capacity, file->tensor_count, sizeof *file->tensors))
        return fail_memory(file, error);
    dv_safetensor *tensor = &file->tensors[file->tensor_count++];
    *tensor = (dv_safetensor){.name = name};
    read_tensor(json, tensor);
    return DV_OK;
}

static dv_status read_header(dv_safetensors *file, const char *text, size_t bytes, dv_error *error) {
    dv_json_cursor json = dv_json_cursor_at(text, bytes);
    if (bytes == 0 || text[0] != '{')
        return fail_format(file, error, "its header does not begin with {");
    for (dv_json_enter(&json, '{'); dv_json_next(&json, '}');)
        DV_TRY(read_entry(file, &json, error));
    if (dv_json_ended(&json))
        return DV_OK;
    char reason[128];
    snprintf(reason, sizeof reason, "%.80s, at byte %zu of its header", json.problem, dv_json_position(&json));
    return fail_format(file, error, reason);
}

/* ---- checks -------------------------------------------------------------------------------- */

static int by_begin(const void *one, const void *other) {
    const dv_safetensor *a = one, *b = other;
    if (a->begin != b->begin)
        return a->begin < b->begin ? -1 : 1;
    return (a->end > b->end) - (a->end < b->end);
}

static int by_name(const void *one, const void *other) {
    return strcmp(((const dv_safetensor *)one)->name, ((const dv_safetensor *)other)->name);
}

/* What is wrong with a tensor that should begin `at`, or NULL. */
static const char *fault_of(const dv_safetensors *file, const dv_safetensor *tensor, uint64_t at) {
    size_t bytes;
    if (tensor->begin != at || tensor->end < tensor->begin)
        return "overlaps another tensor or leaves a hole";
    if (tensor->end > file->data_bytes)
        return "ends behind the end of the file";
    if (__builtin_mul_overflow(tensor->count, types[tensor->type].bytes, &bytes) || bytes != tensor->end - at)
        return "has other bytes than its shape takes";
    return NULL;
}

/* Arrays follow each other from the first byte to the last, and each has the bytes that its shape takes. */
static dv_status check_places(dv_safetensors *file, dv_error *error) {
    uint64_t at = 0;
    if (file->tensor_count > 0)
        qsort(file->tensors, file->tensor_count, sizeof *file->tensors, by_begin);
    for (size_t i = 0; i < file->tensor_count; at = file->tensors[i++].end) {
        const char *fault = fault_of(file, &file->tensors[i], at);
        char reason[SHOWN + 64];
        if (fault == NULL)
            continue;
        snprintf(reason, sizeof reason, "%.*s %s", SHOWN, file->tensors[i].name, fault);
        return fail_format(file, error, reason);
    }
    if (at != file->data_bytes)
        return fail_format(file, error, "bytes at its end belong to no tensor");
    return DV_OK;
}

static dv_status check_names(dv_safetensors *file, dv_error *error) {
    if (file->tensor_count > 0)
        qsort(file->tensors, file->tensor_count, sizeof *file->tensors, by_name);
    for (size_t i = 1; i < file->tensor_count; i++) {
        char reason[SHOWN + 64];
        if (strcmp(file->tensors[i - 1].name, file->tensors[i].name) != 0)
            continue;
        snprintf(reason, sizeof reason, "it has two tensors %.*s", SHOWN, file->tensors[i].name);
        return fail_format(file, error, reason);
    }
    return DV_OK;
}

/* ---- the file ------------------------------------------------------------------------------ */

/* Reads all of `bytes` at `offset`. */
static dv_status read_at(const dv_safetensors *file, void *dst, size_t bytes, uint64_t offset, dv_error *error) {
    int code = dv_file_read_at(file->descriptor, dst, bytes, offset);
    if (code == ENODATA)
        return fail_format(file, error, "it became shorter while it was read");
    if (code != 0)
        return dv_fail(error, DV_ERROR_IO, "could not read %s: %s: check the device", dv_file_shown(file->path),
                       strerror(code));
    return DV_OK;
}

/* The header's length, from the first bytes, within the file and the limit. */
static dv_status read_length(dv_safetensors *file, uint64_t file_bytes, size_t *length, dv_error *error) {
    unsigned char bytes[LENGTH_BYTES];
    uint64_t value = 0;
    if (file_bytes == 0)
        return fail_format(file, error, "it is empty");
    if (file_bytes < LENGTH_BYTES)
        return fail_format(file, error, "it is too short for a header");
    DV_TRY(read_at(file, bytes, sizeof bytes, 0, error));
    for (int i = LENGTH_BYTES; i-- > 0;)
        value = value << 8 | bytes[i];
    if (value > LONGEST_HEADER)
        return fail_format(file, error, "its first 8 bytes are no length of a header");
    if (value > file_bytes - LENGTH_BYTES)
        return fail_format(file, error, "it ends inside its header");
    *length = (size_t)value;
    file->data_start = LENGTH_BYTES + value;
    file->data_bytes = file_bytes - file->data_start;
    return DV_OK;
}

static dv_status read_all(dv_safetensors *file, uint64_t file_bytes, dv_error *error) {
    size_t length = 0;
    DV_TRY(read_length(file, file_bytes, &length, error));
    char *text = malloc(length + 1);
    file->pool_bytes = length + POOL_SPARE;
    file->pool = malloc(file->pool_bytes);
    dv_status status = text != NULL && file->pool != NULL ? read_at(file, text, length, LENGTH_BYTES, error)
                                                          : fail_memory(file, error);
    if (status == DV_OK)
        status = read_header(file, text, length, error);
    free(text);
    DV_TRY(status);
    DV_TRY(check_places(file, error));
    return check_names(file, error);
}

static dv_status open_file(dv_safetensors *file, const char *path, dv_error *error) {
    struct stat status;
    file->path = strdup(path);
    if (file->path == NULL)
        return dv_fail(error, DV_ERROR_MEMORY, "no memory to read %s: free some", dv_file_shown(path));
    file->descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not make us wait */
    if (file->descriptor < 0 || fstat(file->descriptor, &status) != 0)
        return dv_fail(error, DV_ERROR_IO, "could not read %s: %s: check the name", dv_file_shown(path),
                       strerror(errno));
    if (!S_ISREG(status.st_mode))
        return fail_format(file, error, S_ISDIR(status.st_mode) ? "it is a folder" : "it is no regular file");
    return read_all(file, (uint64_t)status.st_size, error);
}

dv_status dv_safetensors_open(const char *path, dv_safetensors **file, dv_error *error) {
    dv_safetensors *made = calloc(1, sizeof *made);
    if (made == NULL)
        return dv_fail(error, DV_ERROR_MEMORY, "no memory to read %s: free some", dv_file_shown(path));
    made->descriptor = -1;
    dv_status status = open_file(made, path, error);
    if (status == DV_OK)
        *file = made;
    else
        dv_safetensors_close(made);
    return status;
}

void dv_safetensors_close(dv_safetensors *file) {
    if (file == NULL)
        return;
    if (file->descriptor >= 0)
        close(file->descriptor);
    free(file->path);
    free(file->pool);
    free(file->tensors);
    free(file->notes);
    free(file);
}

const dv_safetensor *dv_safetensors_at(const dv_safetensors *file, size_t index) {
    return index < file->tensor_count ? &file->tensors[index] : NULL;
}

const dv_safetensor *dv_safetensors_find(const dv_safetensors *file, const char *name) {
    dv_safetensor wanted = {.name = name};
    if (file->tensor_count == 0)
        return NULL;
    return bsearch(&wanted, file->tensors, file->tensor_count, sizeof wanted, by_name);
}

const char *dv_safetensors_note(const dv_safetensors *file, const char *name) {
    for (size_t i = 0; i < file->note_count; i++)
        if (strcmp(file->notes[i].name, name) == 0)
            return file->notes[i].value;
    return NULL;
}

dv_status dv_safetensors_read(const dv_safetensors *file, const dv_safetensor *tensor, float *dst, dv_error *error) {
    unsigned char piece[PIECE_BYTES];
    size_t size = types[tensor->type].bytes, at_once = PIECE_BYTES / size;
    if (types[tensor->type].convert == NULL)
        return dv_fail(error, DV_ERROR_UNSUPPORTED, "%s: %.*s is %s: it must be F32, BF16, F16 or F64",
                       dv_file_shown(file->path), SHOWN, tensor->name, types[tensor->type].name);
    for (size_t done = 0; done < tensor->count; done += at_once) {
        size_t count = tensor->count - done < at_once ? tensor->count - done : at_once;
        DV_TRY(read_at(file, piece, count * size, file->data_start + tensor->begin + done * size, error));
        for (size_t i = 0; i < count; i++)
            dst[done + i] = types[tensor->type].convert(piece + i * size);
    }
    return DV_OK;
}
