/* The form in which torch.save wrote until version 1.6, and writes with _use_new_zipfile_serialization=False. */
#include "train/torch.h"

#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROTOCOL = 1001, COUNT_BYTES = 8 };

/* 0x1950a86a20f9469cfc6c, little-endian, as the opcode LONG1 has it. */
static const unsigned char magic[] = {0x8a, 0x0a, 0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19, '.'};

/* Behind the opcodes PROTO and, in later protocols, FRAME. */
static bool recognise(const dv_array_head *head) {
    static const size_t places[] = {2, 11};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (head->bytes[0] == 0x80 && head->count > places[i] + sizeof magic &&
            memcmp(head->bytes + places[i], magic, sizeof magic) == 0)
            return true;
    return false;
}

/* A storage of the pickle with its elements in the file. */
typedef struct place {
    const dv_torch_storage *storage;
    uint64_t begin; /* 0: not found yet */
} place;

typedef struct legacy {
    dv_torch torch;
    dv_pickle *pickle;
    place *places; /* by key, each key once */
    size_t place_count;
} legacy;

static int by_key(const void *one, const void *other) {
    return strcmp(((const place *)one)->storage->key, ((const place *)other)->storage->key);
}

static place *find_place(const legacy *l, const dv_torch_storage *storage) {
    const place wanted = {.storage = storage};
    return l->place_count > 0 ? bsearch(&wanted, l->places, l->place_count, sizeof wanted, by_key) : NULL;
}

/* Sorts what the pickle says of storages; what it says twice of one must be the same. */
static dv_status list_storages(legacy *l) {
    const dv_torch *t = &l->torch;
    size_t kept = 0;
    l->places = calloc(t->storage_count + 1, sizeof *l->places);
    if (l->places == NULL)
        return dv_array_file_no_memory(t->file, t->error);
    for (size_t i = 0; i < t->storage_count; i++)
        l->places[i].storage = &t->storages[i];
    qsort(l->places, t->storage_count, sizeof *l->places, by_key);
    for (size_t i = 0; i < t->storage_count; i++) {
        const dv_torch_storage *one = l->places[i].storage, *last = kept > 0 ? l->places[kept - 1].storage : NULL;
        if (last == NULL || strcmp(last->key, one->key) != 0)
            l->places[kept++] = l->places[i];
        else if (last->type != one->type || last->count != one->count)
            return dv_array_file_refuse(t->file, t->error, "it says two things of one storage");
    }
    l->place_count = kept;
    return DV_OK;
}

/* Finds the elements of the storage that begins `at`, and where the next one does. */
static dv_status pass_storage(legacy *l, const char *key, uint64_t *at) {
    const dv_array_file *file = l->torch.file;
    dv_error *error = l->torch.error;
    dv_torch_storage wanted = {.type = 0};
    unsigned char count_bytes[COUNT_BYTES];
    uint64_t count = 0, bytes = 0;
    if (key == NULL || snprintf(wanted.key, sizeof wanted.key, "%s", key) >= DV_TORCH_KEY_BYTES)
        return dv_array_file_refuse(file, error, "the key of a storage is no short text");
    place *found = find_place(l, &wanted);
    if (found == NULL || found->begin != 0)
        return dv_array_file_refuse(file, error, "it has a storage that its pickle does not speak of, or has it twice");
    if (file->bytes - *at < COUNT_BYTES)
        return dv_array_file_refuse(file, error, "it ends among its storages");
    DV_TRY(dv_array_file_bytes(file, count_bytes, COUNT_BYTES, *at, error));
    for (int i = COUNT_BYTES; i-- > 0;)
        count = count << 8 | count_bytes[i];
    if (count != found->storage->count)
        return dv_array_file_refuse(file, error, "a storage has another number of elements than its pickle says");
    *at += COUNT_BYTES;
    if (__builtin_mul_overflow(count, dv_array_type_bytes(found->storage->type), &bytes) || bytes > file->bytes - *at)
        return dv_array_file_refuse(file, error, "it ends among its storages");
    found->begin = *at;
    *at += bytes;
    return DV_OK;
}

static dv_status locate(void *context, const dv_torch_storage *storage, uint64_t *begin) {
    const legacy *l = context;
    const place *found = find_place(l, storage);
    *begin = found != NULL ? found->begin : 0;
    if (*begin == 0)
        return dv_array_file_refuse(l->torch.file, l->torch.error, "a tensor's storage is not there");
    return DV_OK;
}

/* The machine that wrote it must have been little-endian, as all are that run this. */
static dv_status check_machine(const dv_pickle *p, dv_pickle_ref machine) {
    dv_pickle_ref key = 0, item = 0;
    for (uint32_t at = 0; dv_pickle_next(p, machine, &at, &key) && dv_pickle_next(p, machine, &at, &item);) {
        const char *text = dv_pickle_text(p, key);
        int64_t number = 0;
        if (text != NULL && strcmp(text, "little_endian") == 0 && dv_pickle_number(p, item, &number) && number == 0)
            return dv_pickle_refuse(p, "its numbers are big-endian");
    }
    return DV_OK;
}

/* The pickles before that of what was saved. */
static dv_status read_front(dv_pickle *p) {
    dv_pickle_ref value = 0;
    int64_t protocol = 0;
    DV_TRY(dv_pickle_read(p, &value));
    DV_TRY(dv_pickle_read(p, &value));
    if (!dv_pickle_number(p, value, &protocol) || protocol != PROTOCOL)
        return dv_pickle_refuse(p, "it has another protocol than 1001");
    DV_TRY(dv_pickle_read(p, &value));
    return check_machine(p, value);
}

static dv_status read_pickles(legacy *l) {
    dv_pickle_ref saved = 0, keys = 0, key = 0;
    DV_TRY(read_front(l->pickle));
    DV_TRY(dv_pickle_read(l->pickle, &saved));
    DV_TRY(dv_pickle_read(l->pickle, &keys));
    DV_TRY(list_storages(l));
    uint64_t at = dv_pickle_position(l->pickle);
    for (uint32_t item = 0; dv_pickle_next(l->pickle, keys, &item, &key);)
        DV_TRY(pass_storage(l, dv_pickle_text(l->pickle, key), &at));
    return dv_torch_add_arrays(&l->torch, l->pickle, saved, locate, l);
}

static dv_status read_file(dv_array_file *file, dv_error *error) {
    legacy l = {.torch = {.file = file, .error = error}};
    dv_pickle_rules rules = dv_torch_rules(&l.torch);
    l.pickle = dv_pickle_new(file, 0, file->bytes, &rules, error);
    dv_status status = l.pickle != NULL ? read_pickles(&l) : dv_array_file_no_memory(file, error);
    dv_pickle_free(l.pickle);
    dv_torch_free(&l.torch);
    free(l.places);
    return status;
}

const dv_array_kind dv_torch_legacy_kind = {"PyTorch file", recognise, read_file};
