/* Python's pickles, read without executing anything.
 *
 * A pickle is a program for a machine with a stack, which can be told to call any function of any module. This reader
 * has the opcodes that weights need, and its values are numbers, texts, tuples, lists, dictionaries, and names of
 * globals of the caller's table. To call a global is to ask the caller's function what would come of it. Every other
 * opcode and every other global is refused by name. */
#ifndef DV_TRAIN_PICKLE_H
#define DV_TRAIN_PICKLE_H

#include "train/array_kind.h"

typedef uint32_t dv_pickle_ref; /* of a value, until the pickle is freed */

typedef enum dv_pickle_type {
    DV_PICKLE_OTHER,    /* None, a float, a large integer: nothing that weights are made of */
    DV_PICKLE_NUMBER,   /* a whole number, or a truth value */
    DV_PICKLE_TEXT,     /* without zero bytes */
    DV_PICKLE_SEQUENCE, /* a tuple or a list */
    DV_PICKLE_DICTIONARY,
    DV_PICKLE_GLOBAL, /* `index` in the table of globals */
    DV_PICKLE_MADE,   /* by the caller: `index` is its own */
    DV_PICKLE_EMPTY,  /* an object without its state, which BUILD brings */
} dv_pickle_type;

/* A global that may be named, "torch._utils" "_rebuild_tensor_v2". A name that begins with * stands for all that end
 * like it. */
typedef struct dv_pickle_global {
    const char *module, *name;
} dv_pickle_global;

typedef struct dv_pickle dv_pickle;

/* What the caller knows that the machine does not. Both return DV_OK, or fail through dv_pickle_refuse. */
typedef struct dv_pickle_rules {
    const dv_pickle_global *globals;
    size_t global_count;
    /* A global of the table called with arguments, a sequence. */
    dv_status (*call)(void *context, dv_pickle *pickle, dv_pickle_ref global, dv_pickle_ref arguments,
                      dv_pickle_ref *result);
    /* Something that lies outside of the pickle, known by `id`. */
    dv_status (*find)(void *context, dv_pickle *pickle, dv_pickle_ref id, dv_pickle_ref *result);
    void *context;
} dv_pickle_rules;

/* Begins to read pickles between two bytes of a file, which stays the caller's, as does `error`. NULL: no memory. */
dv_pickle *dv_pickle_new(const dv_array_file *file, uint64_t begin, uint64_t end, const dv_pickle_rules *rules,
                         dv_error *error);
void dv_pickle_free(dv_pickle *pickle);

/* Reads one pickle, up to its end; the next one follows. */
dv_status dv_pickle_read(dv_pickle *pickle, dv_pickle_ref *result);

/* The byte of the file behind what was read. */
uint64_t dv_pickle_position(const dv_pickle *pickle);

/* Values. Whatever is asked of a value of another type is answered with 0, NULL or false. */
dv_pickle_type dv_pickle_type_of(const dv_pickle *pickle, dv_pickle_ref value);
bool dv_pickle_number(const dv_pickle *pickle, dv_pickle_ref value, int64_t *number);
const char *dv_pickle_text(const dv_pickle *pickle, dv_pickle_ref value);        /* until the next value is made */
size_t dv_pickle_index(const dv_pickle *pickle, dv_pickle_ref value);            /* of a global, or of what was made */
const char *dv_pickle_global_name(const dv_pickle *pickle, dv_pickle_ref value); /* likewise until then */

/* Items of a sequence; of a dictionary keys and values take turns. `items` gets up to `most` of them; how many there
 * are is returned, or most + 1 if there are more. */
size_t dv_pickle_items(const dv_pickle *pickle, dv_pickle_ref container, dv_pickle_ref *items, size_t most);

/* Goes through the items of a container: begins with *place = 0, false: there is none left. */
bool dv_pickle_next(const dv_pickle *pickle, dv_pickle_ref container, uint32_t *place, dv_pickle_ref *item);

/* Makes a value: `index` is of one that the caller made. */
dv_status dv_pickle_make(dv_pickle *pickle, dv_pickle_type type, size_t index, dv_pickle_ref *result);
dv_status dv_pickle_append(dv_pickle *pickle, dv_pickle_ref container, dv_pickle_ref item);

/* Fails with what is wrong with the file. */
dv_status dv_pickle_refuse(const dv_pickle *pickle, const char *reason);
dv_status dv_pickle_no_memory(const dv_pickle *pickle);

/* All texts, which belong to the caller from then on; the pickle is of no use any more, but for its pointers to texts.
 */
char *dv_pickle_take_texts(dv_pickle *pickle);

#endif
