/* What a kind of array file is made of: how it is recognised, and the function that reads what it says of its arrays.
 * src/train/array_file.c has the table of kinds. */
#ifndef DV_TRAIN_ARRAY_KIND_H
#define DV_TRAIN_ARRAY_KIND_H

#include "train/array_file.h"

#include <division/checkpoint.h>

#include <stdbool.h>

/* The first bytes of a file, and all that kinds are recognised by. */
typedef struct dv_array_head {
    unsigned char bytes[512];
    size_t count;
} dv_array_head;

typedef struct dv_array_kind {
    const char *name; /* "safetensors file" */
    bool (*recognise)(const dv_array_head *head);
    dv_status (*read)(dv_array_file *file, dv_error *error); /* adds arrays and notes */
} dv_array_kind;

extern const dv_array_kind dv_safetensors_kind, dv_torch_zip_kind, dv_torch_legacy_kind;

struct dv_array_file {
    char *path;
    int descriptor;
    uint64_t bytes; /* of the file */
    const dv_array_kind *kind;
    char *pool; /* all names and notes: the kind's, freed with the file */
    dv_array *arrays;
    size_t array_count, array_capacity;
    dv_note *notes;
    size_t note_count, note_capacity;
};

/* Fails with what is wrong with the file. */
dv_status dv_array_file_refuse(const dv_array_file *file, dv_error *error, const char *reason);
/* Fails for a file that is good of its kind but not what is wanted, with what to do. */
dv_status dv_array_file_decline(const dv_array_file *file, dv_error *error, const char *reason, const char *advice);
#define DV_SAVE_WEIGHTS "save weights alone with torch.save(model.state_dict(), \"weights.pth\")"

dv_status dv_array_file_no_memory(const dv_array_file *file, dv_error *error);

/* Reads all of `bytes` at `offset`. */
dv_status dv_array_file_bytes(const dv_array_file *file, void *dst, size_t bytes, uint64_t offset, dv_error *error);

/* One more of each, empty; NULL: no memory. */
dv_array *dv_array_file_add(dv_array_file *file);
dv_note *dv_array_file_add_note(dv_array_file *file);

/* The type of this name, and that which torch stores in a class of this name; -1: none. */
int dv_array_type_of(const char *name);
int dv_array_type_of_torch(const char *storage_class);
size_t dv_array_type_bytes(int type);

/* Strides of an array whose rows follow each other. */
void dv_array_pack_strides(dv_array *array);

/* Room for one more element of `size` bytes behind `count`. */
bool dv_array_grow(void **elements, size_t *capacity, size_t count, size_t size);

#endif
