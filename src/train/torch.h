/* What torch.save leaves, in both of its forms: a pickle of dictionaries whose tensors are views of storages, and the
 * bytes of the storages beside it. torch_zip.c and torch_legacy.c know where these lie, torch.c what they say.
 *
 *     zip (since 1.6)     NAME/data.pkl            the pickle
 *                         NAME/data/0, 1, ...      storages, not compressed
 *                         NAME/byteorder           "little"; not in all files
 *     legacy              pickles: a magic number, the protocol 1001, a dictionary on the machine that wrote it, what
 * was saved, a list of the storages' keys for each key: 8 bytes, the number of elements, then the elements */
#ifndef DV_TRAIN_TORCH_H
#define DV_TRAIN_TORCH_H

#include "train/pickle.h"

enum { DV_TORCH_KEY_BYTES = 64 };

/* A storage that the pickle speaks of. Several tensors may share one: each has an entry of its own. */
typedef struct dv_torch_storage {
    char key[DV_TORCH_KEY_BYTES];
    int type;       /* of its elements */
    uint64_t count; /* of elements, as the pickle says */
} dv_torch_storage;

/* A tensor: a view of a storage. */
typedef struct dv_torch_tensor {
    size_t storage;
    uint64_t offset; /* in elements */
    int rank;
    size_t shape[DV_ARRAY_MAX_RANK], stride[DV_ARRAY_MAX_RANK];
} dv_torch_tensor;

typedef struct dv_torch {
    dv_array_file *file;
    dv_error *error;
    dv_torch_storage *storages;
    size_t storage_count, storage_capacity;
    dv_torch_tensor *tensors;
    size_t tensor_count, tensor_capacity;
} dv_torch;

/* Finds where the elements of a storage lie in the file; fails if they do not, or if they are not as many. */
typedef dv_status (*dv_torch_locate)(void *context, const dv_torch_storage *storage, uint64_t *begin);

/* The rules by which torch's pickles are read; the context is a dv_torch. */
dv_pickle_rules dv_torch_rules(dv_torch *torch);

/* Adds the arrays of what was saved, a state dict or a dictionary that has one, to the file. */
dv_status dv_torch_add_arrays(dv_torch *torch, dv_pickle *pickle, dv_pickle_ref saved, dv_torch_locate locate,
                              void *context);

void dv_torch_free(dv_torch *torch);

/* Names as this library has them: without a prefix that all of them have and that wrappers of networks bring, and with
 * those of old DenseNets as torchvision has them today. `names` point into the file's pool, and may be changed there.
 */
void dv_torch_mend_names(dv_array_file *file);

#endif
