/* The form in which torch.save writes since version 1.6: a zip archive whose records are not compressed. */
#include "train/torch.h"
#include "train/zip.h"

#include "base/status.h"

#include <stdio.h>
#include <string.h>

enum { NAME_BYTES = 1024, ORDER_BYTES = 8 };

/* Byte 8 is the method of compression, where a safetensors file of a matching length has a brace. */
static bool recognise(const dv_array_head *head) {
    return head->count > 8 && memcmp(head->bytes, "PK\3\4", 4) == 0 && head->bytes[8] != '{';
}

typedef struct archive {
    dv_torch torch;
    dv_zip zip;
    char folder[NAME_BYTES]; /* of all records, with its slash */
} archive;

/* The record of this name in the archive's folder, or NULL. */
static const dv_zip_record *find_record(const archive *a, const char *part, const char *name) {
    char path[NAME_BYTES + DV_TORCH_KEY_BYTES + 16];
    snprintf(path, sizeof path, "%s%s%s", a->folder, part, name);
    return dv_zip_find(&a->zip, path);
}

/* The folder is that of the first record of this name. */
static bool find_folder(archive *a, const char *name) {
    for (size_t i = 0; i < a->zip.count; i++) {
        const char *path = a->zip.records[i].name, *slash = strchr(path, '/');
        size_t length = slash != NULL ? (size_t)(slash + 1 - path) : 0;
        if (strcmp(path + length, name) != 0 || length >= sizeof a->folder)
            continue;
        memcpy(a->folder, path, length);
        a->folder[length] = '\0';
        return true;
    }
    return false;
}

static dv_status locate(void *context, const dv_torch_storage *storage, uint64_t *begin) {
    const archive *a = context;
    dv_array_file *file = a->torch.file;
    const dv_zip_record *record = find_record(a, "data/", storage->key);
    uint64_t bytes = 0;
    if (record == NULL)
        return dv_array_file_refuse(file, a->torch.error, "a tensor's storage is not there");
    DV_TRY(dv_zip_locate(file, record, begin, a->torch.error));
    if (__builtin_mul_overflow(storage->count, dv_array_type_bytes(storage->type), &bytes) || bytes > record->bytes)
        return dv_array_file_refuse(file, a->torch.error, "a storage has fewer elements than its pickle says");
    return DV_OK;
}

/* Numbers must be little-endian, as on all machines that run this. */
static dv_status check_order(const archive *a) {
    const dv_zip_record *record = find_record(a, "", "byteorder");
    char order[ORDER_BYTES] = "";
    uint64_t begin = 0;
    if (record == NULL)
        return DV_OK;
    DV_TRY(dv_zip_locate(a->torch.file, record, &begin, a->torch.error));
    if (record->bytes < sizeof order)
        DV_TRY(dv_array_file_bytes(a->torch.file, order, (size_t)record->bytes, begin, a->torch.error));
    if (strcmp(order, "little") != 0)
        return dv_array_file_refuse(a->torch.file, a->torch.error, "its numbers are not little-endian");
    return DV_OK;
}

static dv_status read_pickle(archive *a, uint64_t begin, uint64_t bytes) {
    dv_pickle_rules rules = dv_torch_rules(&a->torch);
    dv_pickle_ref saved = 0;
    dv_pickle *pickle = dv_pickle_new(a->torch.file, begin, begin + bytes, &rules, a->torch.error);
    if (pickle == NULL)
        return dv_array_file_no_memory(a->torch.file, a->torch.error);
    dv_status status = dv_pickle_read(pickle, &saved);
    if (status == DV_OK)
        status = dv_torch_add_arrays(&a->torch, pickle, saved, locate, a);
    dv_pickle_free(pickle);
    return status;
}

static dv_status read_archive(archive *a) {
    const dv_torch *t = &a->torch;
    uint64_t begin = 0;
    if (!find_folder(a, "data.pkl"))
        return dv_array_file_refuse(t->file, t->error, "its archive has no data.pkl, as torch.save writes it");
    if (find_record(a, "", "constants.pkl") != NULL)
        return dv_array_file_decline(
            t->file, t->error, "is a TorchScript module",
            "save its weights alone, torch.save(torch.jit.load(...).state_dict(), \"new.pth\")");
    DV_TRY(check_order(a));
    const dv_zip_record *record = find_record(a, "", "data.pkl");
    DV_TRY(dv_zip_locate(t->file, record, &begin, t->error));
    return read_pickle(a, begin, record->bytes);
}

static dv_status read_file(dv_array_file *file, dv_error *error) {
    archive a = {.torch = {.file = file, .error = error}};
    dv_status status = dv_zip_read(file, &a.zip, error);
    if (status == DV_OK)
        status = read_archive(&a);
    dv_torch_free(&a.torch);
    dv_zip_free(&a.zip);
    return status;
}

const dv_array_kind dv_torch_zip_kind = {"PyTorch file", recognise, read_file};
