/* What a pickle of torch's says: which of its globals mean what, where the weights are in what was saved, and which
 * elements of which storage are theirs. */
#include "train/torch.h"

#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 80, REASON_BYTES = 256, DEEPEST = 4 };

/* ---- globals -------------------------------------------------------------------------------- */

enum { STORAGE_ITEMS = 6, TENSOR_ITEMS = 4 };

typedef dv_status call_function(dv_torch *t, dv_pickle *p, dv_pickle_ref arguments, dv_pickle_ref *result);

/* collections.OrderedDict(), or of a list of pairs, as Python 2 has it. */
static dv_status make_dictionary(dv_torch *t, dv_pickle *p, dv_pickle_ref arguments, dv_pickle_ref *result) {
    dv_pickle_ref list, pair, items[2];
    (void)t;
    DV_TRY(dv_pickle_make(p, DV_PICKLE_DICTIONARY, 0, result));
    if (dv_pickle_items(p, arguments, &list, 1) == 0)
        return DV_OK;
    for (uint32_t place = 0; dv_pickle_next(p, list, &place, &pair);) {
        if (dv_pickle_items(p, pair, items, 2) != 2)
            return dv_pickle_refuse(p, "a dictionary is made of what are no pairs");
        for (int i = 0; i < 2; i++)
            DV_TRY(dv_pickle_append(p, *result, items[i]));
    }
    return DV_OK;
}

/* Whole numbers from 0 on, at most as many as an array has dimensions; -1: they are not. */
static int read_sizes(const dv_pickle *p, dv_pickle_ref tuple, size_t sizes[DV_ARRAY_MAX_RANK]) {
    dv_pickle_ref items[DV_ARRAY_MAX_RANK];
    size_t count = dv_pickle_items(p, tuple, items, DV_ARRAY_MAX_RANK);
    if (dv_pickle_type_of(p, tuple) != DV_PICKLE_SEQUENCE || count > DV_ARRAY_MAX_RANK)
        return -1;
    for (size_t d = 0; d < count; d++) {
        int64_t number = 0;
        if (!dv_pickle_number(p, items[d], &number) || number < 0)
            return -1;
        sizes[d] = (size_t)number;
    }
    return (int)count;
}

/* _rebuild_tensor_v2(storage, offset, shape, stride, ...) */
static dv_status make_tensor(dv_torch *t, dv_pickle *p, dv_pickle_ref arguments, dv_pickle_ref *result) {
    dv_pickle_ref items[TENSOR_ITEMS];
    dv_torch_tensor tensor;
    int64_t offset = 0;
    if (dv_pickle_items(p, arguments, items, TENSOR_ITEMS) < TENSOR_ITEMS ||
        dv_pickle_type_of(p, items[0]) != DV_PICKLE_MADE || dv_pickle_index(p, items[0]) % 2 != 0 ||
        !dv_pickle_number(p, items[1], &offset) || offset < 0)
        return dv_pickle_refuse(p, "a tensor is made of something else than a storage, an offset, a shape and strides");
    tensor.storage = dv_pickle_index(p, items[0]) / 2;
    tensor.offset = (uint64_t)offset;
    tensor.rank = read_sizes(p, items[2], tensor.shape);
    if (tensor.rank < 0 || read_sizes(p, items[3], tensor.stride) != tensor.rank)
        return dv_pickle_refuse(p, "a tensor has more than 8 dimensions, or no whole numbers for shape and strides");
    if (!dv_array_grow((void **)&t->tensors, &t->tensor_capacity, t->tensor_count, sizeof tensor))
        return dv_pickle_no_memory(p);
    t->tensors[t->tensor_count] = tensor;
    return dv_pickle_make(p, DV_PICKLE_MADE, 2 * t->tensor_count++ + 1, result);
}

/* _rebuild_parameter(data, ...), Parameter(data, ...): the data. Without any, it comes by BUILD. */
static dv_status make_parameter(dv_torch *t, dv_pickle *p, dv_pickle_ref arguments, dv_pickle_ref *result) {
    (void)t;
    if (dv_pickle_items(p, arguments, result, 1) > 0)
        return DV_OK;
    return dv_pickle_make(p, DV_PICKLE_EMPTY, 0, result);
}

static dv_status refuse_call(dv_torch *t, dv_pickle *p, dv_pickle_ref arguments, dv_pickle_ref *result) {
    (void)t, (void)arguments, (void)result;
    return dv_pickle_refuse(p, "a class of storages is called");
}

/* All that may be named. Numbers of one scale (torch.Size) are the tuple that they are made of. */
static const dv_pickle_global globals[] = {
    {"collections", "OrderedDict"},
    {"torch._utils", "_rebuild_tensor_v2"},
    {"torch._utils", "_rebuild_tensor"},
    {"torch._utils", "_rebuild_parameter"},
    {"torch.nn.parameter", "Parameter"},
    {"torch", "Size"},
    {"torch", "*Storage"},
};

static call_function *const calls[] = {make_dictionary, make_tensor,    make_tensor, make_parameter,
                                       make_parameter,  make_parameter, refuse_call};

_Static_assert(sizeof globals / sizeof *globals == sizeof calls / sizeof *calls, "every global has its function");

static dv_status call(void *context, dv_pickle *p, dv_pickle_ref global, dv_pickle_ref arguments,
                      dv_pickle_ref *result) {
    return calls[dv_pickle_index(p, global)](context, p, arguments, result);
}

/* ---- storages ------------------------------------------------------------------------------- */

static dv_status refuse_type(const dv_pickle *p, const char *name) {
    char reason[REASON_BYTES];
    snprintf(reason, sizeof reason, "it has a torch.%.*s, and weights are of floating point", SHOWN, name);
    return dv_pickle_refuse(p, reason);
}

/* ("storage", class, key, device, elements), in the legacy form with a view of another storage, which is None. */
static dv_status find_storage(void *context, dv_pickle *p, dv_pickle_ref id, dv_pickle_ref *result) {
    dv_torch *t = context;
    dv_pickle_ref items[STORAGE_ITEMS] = {0};
    dv_torch_storage storage;
    int64_t count = 0;
    size_t given = dv_pickle_items(p, id, items, STORAGE_ITEMS);
    const char *what = given >= 5 ? dv_pickle_text(p, items[0]) : NULL;
    const char *name = given >= 5 ? dv_pickle_global_name(p, items[1]) : NULL;
    const char *key = given >= 5 ? dv_pickle_text(p, items[2]) : NULL;
    if (what == NULL || strcmp(what, "storage") != 0 || name == NULL || key == NULL ||
        !dv_pickle_number(p, items[4], &count) || count < 0 ||
        snprintf(storage.key, sizeof storage.key, "%s", key) >= DV_TORCH_KEY_BYTES)
        return dv_pickle_refuse(p, "what it has outside of its pickle is no storage");
    if (given > STORAGE_ITEMS || (given == STORAGE_ITEMS && dv_pickle_type_of(p, items[5]) != DV_PICKLE_OTHER))
        return dv_pickle_refuse(p, "a storage is a view of another");
    storage.count = (uint64_t)count;
    storage.type = dv_array_type_of_torch(name);
    if (storage.type < 0)
        return refuse_type(p, name);
    if (!dv_array_grow((void **)&t->storages, &t->storage_capacity, t->storage_count, sizeof storage))
        return dv_pickle_no_memory(p);
    t->storages[t->storage_count] = storage;
    return dv_pickle_make(p, DV_PICKLE_MADE, 2 * t->storage_count++, result);
}

dv_pickle_rules dv_torch_rules(dv_torch *torch) {
    return (dv_pickle_rules){.globals = globals,
                             .global_count = sizeof globals / sizeof *globals,
                             .call = call,
                             .find = find_storage,
                             .context = torch};
}

void dv_torch_free(dv_torch *torch) {
    free(torch->storages);
    free(torch->tensors);
}

/* ---- arrays --------------------------------------------------------------------------------- */

static dv_status refuse_array(const dv_torch *t, const char *name, const char *fault) {
    char reason[REASON_BYTES];
    snprintf(reason, sizeof reason, "%.*s %s", SHOWN, name, fault);
    return dv_array_file_refuse(t->file, t->error, reason);
}

/* Elements from the first to behind the last in memory; false: more than there can be. */
static bool span_of(const dv_torch_tensor *tensor, size_t *count, uint64_t *span) {
    uint64_t last = 0, reach = 0;
    *count = 1;
    for (int d = 0; d < tensor->rank; d++)
        if (__builtin_mul_overflow(*count, tensor->shape[d], count))
            return false;
    for (int d = 0; *count > 0 && d < tensor->rank; d++)
        if (__builtin_mul_overflow(tensor->shape[d] - 1, tensor->stride[d], &reach) ||
            __builtin_add_overflow(last, reach, &last))
            return false;
    *span = *count > 0 ? last + 1 : 0;
    return *span > 0 || *count == 0;
}

/* Elements must lie in the storage. Those that repeat, as of an expanded tensor, could be any number of them. */
static const char *fault_of(const dv_torch_tensor *tensor, const dv_torch_storage *storage, size_t *count,
                            uint64_t *span) {
    if (!span_of(tensor, count, span))
        return "has a shape that overflows";
    if (tensor->offset > storage->count || *span > storage->count - tensor->offset)
        return "reaches beyond its storage";
    return *count > *span ? "has elements that share their memory, as an expanded tensor" : NULL;
}

static dv_status add_array(dv_torch *t, const char *name, const dv_torch_tensor *tensor, dv_torch_locate locate,
                           void *context) {
    const dv_torch_storage *storage = &t->storages[tensor->storage];
    const size_t size = dv_array_type_bytes(storage->type);
    uint64_t begin = 0, span = 0;
    size_t count = 0;
    const char *fault = fault_of(tensor, storage, &count, &span);
    if (fault != NULL)
        return refuse_array(t, name, fault);
    DV_TRY(locate(context, storage, &begin));
    dv_array *array = dv_array_file_add(t->file);
    if (array == NULL)
        return dv_array_file_no_memory(t->file, t->error);
    *array = (dv_array){.name = name, .type = storage->type, .rank = tensor->rank, .count = count};
    memcpy(array->shape, tensor->shape, sizeof array->shape);
    memcpy(array->stride, tensor->stride, sizeof array->stride);
    array->begin = begin + tensor->offset * size;
    array->end = array->begin + span * size;
    return DV_OK;
}

/* ---- what was saved ------------------------------------------------------------------------- */

/* Keys under which programs save the weights, among other things. */
static const char *const wrappers[] = {"state_dict", "model_state_dict", "model", "net", "network", "weights"};

/* The value of a key, if it is a dictionary. */
static bool find_dictionary(const dv_pickle *p, dv_pickle_ref dictionary, const char *wanted, dv_pickle_ref *found) {
    dv_pickle_ref key = 0, item = 0;
    for (uint32_t place = 0;
         dv_pickle_next(p, dictionary, &place, &key) && dv_pickle_next(p, dictionary, &place, &item);) {
        const char *text = dv_pickle_text(p, key);
        *found = item;
        if (text != NULL && strcmp(text, wanted) == 0 && dv_pickle_type_of(p, item) == DV_PICKLE_DICTIONARY)
            return true;
    }
    return false;
}

/* Goes from a dictionary to that of the weights inside of it; false: it is that already. */
static bool unwrap(const dv_pickle *p, dv_pickle_ref *dictionary) {
    dv_pickle_ref found = 0;
    for (size_t i = 0; i < sizeof wrappers / sizeof *wrappers; i++)
        if (find_dictionary(p, *dictionary, wrappers[i], &found)) {
            *dictionary = found;
            return true;
        }
    return false;
}

static bool is_tensor(const dv_pickle *p, dv_pickle_ref item) {
    return dv_pickle_type_of(p, item) == DV_PICKLE_MADE && dv_pickle_index(p, item) % 2 == 1;
}

dv_status dv_torch_add_arrays(dv_torch *torch, dv_pickle *pickle, dv_pickle_ref saved, dv_torch_locate locate,
                              void *context) {
    dv_pickle_ref key = 0, item = 0;
    for (int depth = 0; depth < DEEPEST && unwrap(pickle, &saved);)
        depth++;
    for (uint32_t place = 0;
         dv_pickle_next(pickle, saved, &place, &key) && dv_pickle_next(pickle, saved, &place, &item);) {
        const char *name = dv_pickle_text(pickle, key);
        if (name != NULL && is_tensor(pickle, item))
            DV_TRY(add_array(torch, name, &torch->tensors[dv_pickle_index(pickle, item) / 2], locate, context));
    }
    if (torch->file->array_count == 0)
        return dv_array_file_decline(torch->file, torch->error, "has no dictionary of tensors", DV_SAVE_WEIGHTS);
    torch->file->pool = dv_pickle_take_texts(pickle);
    dv_torch_mend_names(torch->file);
    return DV_OK;
}
