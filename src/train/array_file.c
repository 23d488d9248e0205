/* Opening array files: the kind is found in a table, reads what the file says of its arrays, and names are put in
 * order. Reading follows the strides of an array in the order in which its elements lie in the file. */
#include "train/array_kind.h"

#include "base/file.h"
#include "base/float16.h"
#include "base/status.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECE_BYTES = 1 << 16, SHOWN = 80 };

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

/* Names as safetensors has them, the class in which torch stores them, and how one element becomes f32; NULL for those
 * that are no such numbers. */
static const struct {
    const char *name, *torch;
    size_t bytes;
    float (*convert)(const unsigned char *src);
} types[] = {
    {"F32", "FloatStorage", 4, from_f32},
    {"BF16", "BFloat16Storage", 2, from_bf16},
    {"F16", "HalfStorage", 2, from_f16},
    {"F64", "DoubleStorage", 8, from_f64},
    {"I64", "LongStorage", 8, NULL},
    {"I32", "IntStorage", 4, NULL},
    {"I16", "ShortStorage", 2, NULL},
    {"I8", "CharStorage", 1, NULL},
    {"U64", NULL, 8, NULL},
    {"U32", NULL, 4, NULL},
    {"U16", NULL, 2, NULL},
    {"U8", "ByteStorage", 1, NULL},
    {"BOOL", "BoolStorage", 1, NULL},
    {"F8_E4M3", NULL, 1, NULL},
    {"F8_E5M2", NULL, 1, NULL},
};

enum { TYPE_COUNT = sizeof types / sizeof *types };

const char *dv_array_type_name(int type) {
    return types[type].name;
}

size_t dv_array_type_bytes(int type) {
    return types[type].bytes;
}

int dv_array_type_of(const char *name) {
    for (int i = 0; i < TYPE_COUNT; i++)
        if (strcmp(types[i].name, name) == 0)
            return i;
    return -1;
}

int dv_array_type_of_torch(const char *storage_class) {
    for (int i = 0; i < TYPE_COUNT; i++)
        if (types[i].torch != NULL && strcmp(types[i].torch, storage_class) == 0)
            return i;
    return -1;
}

/* ---- what kinds call ------------------------------------------------------------------------ */

dv_status dv_array_file_refuse(const dv_array_file *file, dv_error *error, const char *reason) {
    return dv_fail(error, DV_ERROR_FORMAT, "%s is no good %s: %s: check that it is the right file",
                   dv_file_shown(file->path), file->kind->name, reason);
}

dv_status dv_array_file_decline(const dv_array_file *file, dv_error *error, const char *reason, const char *advice) {
    return dv_fail(error, DV_ERROR_UNSUPPORTED, "%.60s %s: %s", dv_file_shown(file->path), reason, advice);
}

dv_status dv_array_file_no_memory(const dv_array_file *file, dv_error *error) {
    return dv_fail(error, DV_ERROR_MEMORY, "no memory to read %s: free some", dv_file_shown(file->path));
}

dv_status dv_array_file_bytes(const dv_array_file *file, void *dst, size_t bytes, uint64_t offset, dv_error *error) {
    int code = dv_file_read_at(file->descriptor, dst, bytes, offset);
    if (code == ENODATA)
        return dv_array_file_refuse(file, error, "it became shorter while it was read");
    if (code != 0)
        return dv_fail(error, DV_ERROR_IO, "could not read %s: %s: check the device", dv_file_shown(file->path),
                       strerror(code));
    return DV_OK;
}

bool dv_array_grow(void **elements, size_t *capacity, size_t count, size_t size) {
    if (count < *capacity)
        return true;
    size_t larger = *capacity > 0 ? *capacity * 2 : 64;
    void *moved = realloc(*elements, larger * size);
    if (moved == NULL)
        return false;
    *elements = moved;
    *capacity = larger;
    return true;
}

dv_array *dv_array_file_add(dv_array_file *file) {
    if (!dv_array_grow((void **)&file->arrays, &file->array_capacity, file->array_count, sizeof *file->arrays))
        return NULL;
    dv_array *array = &file->arrays[file->array_count++];
    *array = (dv_array){0};
    return array;
}

dv_note *dv_array_file_add_note(dv_array_file *file) {
    if (!dv_array_grow((void **)&file->notes, &file->note_capacity, file->note_count, sizeof *file->notes))
        return NULL;
    dv_note *note = &file->notes[file->note_count++];
    *note = (dv_note){0};
    return note;
}

void dv_array_pack_strides(dv_array *array) {
    size_t stride = 1;
    for (int d = array->rank; d-- > 0; stride *= array->shape[d])
        array->stride[d] = stride;
}

/* ---- kinds ---------------------------------------------------------------------------------- */

static bool begins_with(const dv_array_head *head, size_t at, const char *text, size_t bytes) {
    return head->count >= at + bytes && memcmp(head->bytes + at, text, bytes) == 0;
}

/* Archives of Python's tarfile, which torch.save made until version 0.1.1. */
static bool is_tar(const dv_array_head *head) {
    return begins_with(head, 257, "ustar", 5);
}

static dv_status refuse_tar(dv_array_file *file, dv_error *error) {
    return dv_array_file_decline(file, error, "is a tar archive, as PyTorch wrote them until version 0.1.1",
                                 "load it with PyTorch and save it again, torch.save(torch.load(...), \"new.pth\")");
}

/* The opcode PROTO and a known protocol. */
static bool is_pickle(const dv_array_head *head) {
    return begins_with(head, 0, "\x80", 1) && head->count > 1 && head->bytes[1] >= 2 && head->bytes[1] <= 5 &&
           !begins_with(head, 8, "{", 1);
}

static dv_status refuse_pickle(dv_array_file *file, dv_error *error) {
    return dv_array_file_decline(file, error, "is a pickle that torch.save did not write", DV_SAVE_WEIGHTS);
}

static const dv_array_kind tar_kind = {"tar archive", is_tar, refuse_tar};
static const dv_array_kind pickle_kind = {"pickle", is_pickle, refuse_pickle};

/* The first that recognises a file reads it; the last one takes all that is left, and says what is wrong with it. */
static const dv_array_kind *const kinds[] = {&dv_torch_zip_kind, &dv_torch_legacy_kind, &tar_kind, &pickle_kind,
                                             &dv_safetensors_kind};

static const dv_array_kind *kind_of(const dv_array_head *head) {
    size_t i = 0;
    while (!kinds[i]->recognise(head))
        i++;
    return kinds[i];
}

/* ---- the file ------------------------------------------------------------------------------ */

static int by_name(const void *one, const void *other) {
    return strcmp(((const dv_array *)one)->name, ((const dv_array *)other)->name);
}

static dv_status check_names(dv_array_file *file, dv_error *error) {
    if (file->array_count > 0)
        qsort(file->arrays, file->array_count, sizeof *file->arrays, by_name);
    for (size_t i = 1; i < file->array_count; i++) {
        char reason[SHOWN + 64];
        if (strcmp(file->arrays[i - 1].name, file->arrays[i].name) != 0)
            continue;
        snprintf(reason, sizeof reason, "it has two tensors %.*s", SHOWN, file->arrays[i].name);
        return dv_array_file_refuse(file, error, reason);
    }
    return DV_OK;
}

static dv_status open_file(dv_array_file *file, const char *path, dv_error *error) {
    dv_array_head head = {.count = 0};
    size_t bytes = 0;
    file->path = strdup(path);
    if (file->path == NULL)
        return dv_fail(error, DV_ERROR_MEMORY, "no memory to read %s: free some", dv_file_shown(path));
    DV_TRY(dv_file_open(path, &file->descriptor, &bytes, error));
    file->bytes = bytes;
    head.count = bytes < sizeof head.bytes ? bytes : sizeof head.bytes;
    DV_TRY(dv_array_file_bytes(file, head.bytes, head.count, 0, error));
    file->kind = kind_of(&head);
    DV_TRY(file->kind->read(file, error));
    return check_names(file, error);
}

dv_status dv_array_file_open(const char *path, dv_array_file **file, dv_error *error) {
    dv_array_file *made = calloc(1, sizeof *made);
    if (made == NULL)
        return dv_fail(error, DV_ERROR_MEMORY, "no memory to read %s: free some", dv_file_shown(path));
    made->descriptor = -1;
    made->kind = &dv_safetensors_kind;
    dv_status status = open_file(made, path, error);
    if (status == DV_OK)
        *file = made;
    else
        dv_array_file_close(made);
    return status;
}

void dv_array_file_close(dv_array_file *file) {
    if (file == NULL)
        return;
    if (file->descriptor >= 0)
        close(file->descriptor);
    free(file->path);
    free(file->pool);
    free(file->arrays);
    free(file->notes);
    free(file);
}

const dv_array *dv_array_file_at(const dv_array_file *file, size_t index) {
    return index < file->array_count ? &file->arrays[index] : NULL;
}

const dv_array *dv_array_file_find(const dv_array_file *file, const char *name) {
    dv_array wanted = {.name = name};
    if (file->array_count == 0)
        return NULL;
    return bsearch(&wanted, file->arrays, file->array_count, sizeof wanted, by_name);
}

const char *dv_array_file_note(const dv_array_file *file, const char *name) {
    for (size_t i = 0; i < file->note_count; i++)
        if (strcmp(file->notes[i].name, name) == 0)
            return file->notes[i].value;
    return NULL;
}

/* ---- reading -------------------------------------------------------------------------------- */

/* A walk over the elements of an array in the order in which they lie in the file. A weight of channels last,
 * [out, in, 3, 3] with strides [9 in, 1, 3 in, in], is walked out, row, column, in:
 *
 *     dimension      0     1     2          size, stride in the file, stride in dst; the stride in the file falls
 *                   out  row  column  in */
typedef struct walk {
    int rank;
    struct {
        size_t size, file, dst;
    } dimensions[DV_ARRAY_MAX_RANK];
    size_t index[DV_ARRAY_MAX_RANK];
    size_t file, dst; /* elements from the first */
    const dv_array_file *source;
    const dv_array *array;
    unsigned char piece[PIECE_BYTES]; /* some of its elements */
    size_t first, count;              /* which */
} walk;

static bool is_packed(const dv_array *array) {
    size_t stride = 1;
    for (int d = array->rank; d-- > 0; stride *= array->shape[d])
        if (array->shape[d] != 1 && array->stride[d] != stride)
            return false;
    return true;
}

/* Adds a dimension behind those of larger strides. */
static void add_dimension(walk *w, size_t size, size_t file, size_t dst) {
    int at = w->rank++;
    for (; at > 0 && w->dimensions[at - 1].file < file; at--)
        w->dimensions[at] = w->dimensions[at - 1];
    w->dimensions[at].size = size;
    w->dimensions[at].file = file;
    w->dimensions[at].dst = dst;
}

/* Rows that follow each other are one. */
static void lay_out(walk *w) {
    size_t dst = 1;
    if (is_packed(w->array)) {
        add_dimension(w, w->array->count, 1, 1);
        return;
    }
    for (int d = w->array->rank; d-- > 0; dst *= w->array->shape[d])
        add_dimension(w, w->array->shape[d], w->array->stride[d], dst);
}

/* Reads an element and those behind it, unless it is there. */
static dv_status fetch(walk *w, size_t index, dv_error *error) {
    size_t size = types[w->array->type].bytes, at_once = PIECE_BYTES / size;
    size_t left = (size_t)(w->array->end - w->array->begin) / size - index;
    if (index - w->first < w->count)
        return DV_OK;
    w->first = index;
    w->count = left < at_once ? left : at_once;
    return dv_array_file_bytes(w->source, w->piece, w->count * size, w->array->begin + index * size, error);
}

static dv_status read_row(walk *w, float *dst, dv_error *error) {
    const size_t count = w->dimensions[w->rank - 1].size, step = w->dimensions[w->rank - 1].file;
    const size_t dst_step = w->dimensions[w->rank - 1].dst, size = types[w->array->type].bytes;
    for (size_t i = 0; i < count; i++) {
        size_t index = w->file + i * step;
        DV_TRY(fetch(w, index, error));
        dst[w->dst + i * dst_step] = types[w->array->type].convert(w->piece + (index - w->first) * size);
    }
    return DV_OK;
}

/* Goes on to the next row; false: that was the last. */
static bool next_row(walk *w) {
    for (int d = w->rank - 1; d-- > 0;) {
        w->file += w->dimensions[d].file;
        w->dst += w->dimensions[d].dst;
        if (++w->index[d] < w->dimensions[d].size)
            return true;
        w->file -= w->dimensions[d].file * w->dimensions[d].size;
        w->dst -= w->dimensions[d].dst * w->dimensions[d].size;
        w->index[d] = 0;
    }
    return false;
}

dv_status dv_array_file_read(const dv_array_file *file, const dv_array *array, float *dst, dv_error *error) {
    walk w = {.source = file, .array = array};
    if (types[array->type].convert == NULL)
        return dv_fail(error, DV_ERROR_UNSUPPORTED, "%s: %.*s is %s: it must be F32, BF16, F16 or F64",
                       dv_file_shown(file->path), SHOWN, array->name, types[array->type].name);
    if (array->count == 0)
        return DV_OK;
    lay_out(&w);
    do
        DV_TRY(read_row(&w, dst, error));
    while (next_row(&w));
    return DV_OK;
}
