/* The machine: a stack, a memory of values for later (the memo), and a table of opcodes. Nothing in a pickle is
 * believed: whatever is taken from the stack or the memo is checked to be there, and everything has an upper bound. */
#include "train/pickle.h"

#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A state dict of a thousand arrays has a tenth of a megabyte and some ten thousand values. */
enum { BUFFER_BYTES = 4096, MOST_VALUES = 1 << 20, MOST_BYTES = 1 << 26, NAME_BYTES = 128, REASON_BYTES = 400 };

static const dv_pickle_ref MARK = UINT32_MAX, UNSET = UINT32_MAX;

typedef struct value {
    dv_pickle_type type;
    union {
        int64_t number;
        size_t text; /* its place among the texts; of globals too */
        size_t index;
        struct {
            uint32_t first, last; /* cells, from 1; 0: none */
        } items;
    };
    uint32_t global; /* of a global: index in the table */
} value;

/* A link of a list of items. */
typedef struct cell {
    dv_pickle_ref item;
    uint32_t next;
} cell;

struct dv_pickle {
    const dv_array_file *file;
    const dv_pickle_rules *rules;
    dv_error *error;
    uint64_t begin, position, end; /* bytes of the file; position: behind what is in the buffer */
    unsigned char buffer[BUFFER_BYTES];
    size_t buffered, taken;
    value *values;
    cell *cells;
    dv_pickle_ref *stack, *memo;
    char *texts;
    size_t value_count, cell_count, stack_count, memo_count, text_bytes;
    size_t value_capacity, cell_capacity, stack_capacity, memo_capacity, text_capacity;
};

/* ---- making and freeing --------------------------------------------------------------------- */

dv_pickle *dv_pickle_new(const dv_array_file *file, uint64_t begin, uint64_t end, const dv_pickle_rules *rules,
                         dv_error *error) {
    dv_pickle *made = calloc(1, sizeof *made);
    if (made == NULL)
        return NULL;
    made->file = file;
    made->begin = made->position = begin;
    made->end = end;
    made->rules = rules;
    made->error = error;
    return made;
}

void dv_pickle_free(dv_pickle *pickle) {
    if (pickle == NULL)
        return;
    free(pickle->values);
    free(pickle->cells);
    free(pickle->stack);
    free(pickle->memo);
    free(pickle->texts);
    free(pickle);
}

char *dv_pickle_take_texts(dv_pickle *pickle) {
    char *texts = pickle->texts;
    pickle->texts = NULL;
    return texts;
}

uint64_t dv_pickle_position(const dv_pickle *pickle) {
    return pickle->position - (pickle->buffered - pickle->taken);
}

dv_status dv_pickle_refuse(const dv_pickle *pickle, const char *reason) {
    char text[REASON_BYTES];
    snprintf(text, sizeof text, "%.300s, at byte %llu", reason, (unsigned long long)dv_pickle_position(pickle));
    return dv_array_file_refuse(pickle->file, pickle->error, text);
}

dv_status dv_pickle_no_memory(const dv_pickle *pickle) {
    return dv_array_file_no_memory(pickle->file, pickle->error);
}

/* ---- bytes ---------------------------------------------------------------------------------- */

static dv_status fill(dv_pickle *p) {
    uint64_t left = p->end - p->position;
    if (left == 0)
        return dv_pickle_refuse(p, "its pickle has no end");
    if (p->position - p->begin > MOST_BYTES)
        return dv_pickle_refuse(p, "its pickle is longer than weights have");
    p->taken = 0;
    p->buffered = left < BUFFER_BYTES ? (size_t)left : BUFFER_BYTES;
    dv_status status = dv_array_file_bytes(p->file, p->buffer, p->buffered, p->position, p->error);
    p->position += p->buffered;
    return status;
}

static dv_status take(dv_pickle *p, void *dst, size_t bytes) {
    for (size_t done = 0; done < bytes;) {
        if (p->taken == p->buffered)
            DV_TRY(fill(p));
        size_t there = p->buffered - p->taken, some = bytes - done < there ? bytes - done : there;
        memcpy((char *)dst + done, p->buffer + p->taken, some);
        p->taken += some;
        done += some;
    }
    return DV_OK;
}

/* A little-endian number of some bytes. */
static dv_status take_number(dv_pickle *p, size_t bytes, uint64_t *number) {
    unsigned char read[8];
    DV_TRY(take(p, read, bytes));
    *number = 0;
    for (size_t i = bytes; i-- > 0;)
        *number = *number << 8 | read[i];
    return DV_OK;
}

/* ---- values --------------------------------------------------------------------------------- */

static value *value_at(const dv_pickle *p, dv_pickle_ref ref) {
    return &p->values[ref];
}

dv_pickle_type dv_pickle_type_of(const dv_pickle *pickle, dv_pickle_ref ref) {
    return value_at(pickle, ref)->type;
}

bool dv_pickle_number(const dv_pickle *pickle, dv_pickle_ref ref, int64_t *number) {
    const value *v = value_at(pickle, ref);
    *number = v->type == DV_PICKLE_NUMBER ? v->number : 0;
    return v->type == DV_PICKLE_NUMBER;
}

const char *dv_pickle_text(const dv_pickle *pickle, dv_pickle_ref ref) {
    const value *v = value_at(pickle, ref);
    return v->type == DV_PICKLE_TEXT ? pickle->texts + v->text : NULL;
}

const char *dv_pickle_global_name(const dv_pickle *pickle, dv_pickle_ref ref) {
    const value *v = value_at(pickle, ref);
    return v->type == DV_PICKLE_GLOBAL ? pickle->texts + v->text : NULL;
}

size_t dv_pickle_index(const dv_pickle *pickle, dv_pickle_ref ref) {
    const value *v = value_at(pickle, ref);
    if (v->type == DV_PICKLE_GLOBAL)
        return v->global;
    return v->type == DV_PICKLE_MADE ? v->index : 0;
}

static bool is_container(const value *v) {
    return v->type == DV_PICKLE_SEQUENCE || v->type == DV_PICKLE_DICTIONARY;
}

bool dv_pickle_next(const dv_pickle *pickle, dv_pickle_ref container, uint32_t *place, dv_pickle_ref *item) {
    const value *v = value_at(pickle, container);
    if (!is_container(v))
        return false;
    uint32_t at = *place == 0 ? v->items.first : pickle->cells[*place - 1].next;
    if (at == 0)
        return false;
    *place = at;
    *item = pickle->cells[at - 1].item;
    return true;
}

size_t dv_pickle_items(const dv_pickle *pickle, dv_pickle_ref container, dv_pickle_ref *items, size_t most) {
    size_t count = 0;
    dv_pickle_ref item = 0;
    for (uint32_t place = 0; count <= most && dv_pickle_next(pickle, container, &place, &item); count++)
        if (count < most)
            items[count] = item;
    return count;
}

static dv_status make(dv_pickle *p, value made, dv_pickle_ref *result) {
    if (p->value_count == MOST_VALUES)
        return dv_pickle_refuse(p, "its pickle has more values than weights have");
    if (!dv_array_grow((void **)&p->values, &p->value_capacity, p->value_count, sizeof *p->values))
        return dv_pickle_no_memory(p);
    p->values[p->value_count] = made;
    *result = (dv_pickle_ref)p->value_count++;
    return DV_OK;
}

dv_status dv_pickle_make(dv_pickle *pickle, dv_pickle_type type, size_t index, dv_pickle_ref *result) {
    value made = {.type = type};
    if (type == DV_PICKLE_MADE)
        made.index = index;
    return make(pickle, made, result);
}

dv_status dv_pickle_append(dv_pickle *p, dv_pickle_ref container, dv_pickle_ref item) {
    value *v = value_at(p, container);
    if (p->cell_count == 2 * (size_t)MOST_VALUES)
        return dv_pickle_refuse(p, "its pickle has more values than weights have");
    if (!dv_array_grow((void **)&p->cells, &p->cell_capacity, p->cell_count, sizeof *p->cells))
        return dv_pickle_no_memory(p);
    p->cells[p->cell_count++] = (cell){.item = item};
    if (v->items.last != 0)
        p->cells[v->items.last - 1].next = (uint32_t)p->cell_count;
    else
        v->items.first = (uint32_t)p->cell_count;
    v->items.last = (uint32_t)p->cell_count;
    return DV_OK;
}

/* Room for a text of so many bytes and its end, whose place is left in `place`. */
static dv_status reserve_text(dv_pickle *p, size_t bytes, size_t *place) {
    *place = p->text_bytes;
    if (bytes > MOST_BYTES || p->text_bytes + bytes > MOST_BYTES || bytes > p->end - p->begin)
        return dv_pickle_refuse(p, "a text is longer than its pickle");
    while (p->text_bytes + bytes + 1 > p->text_capacity)
        if (!dv_array_grow((void **)&p->texts, &p->text_capacity, p->text_capacity, 1))
            return dv_pickle_no_memory(p);
    p->text_bytes += bytes + 1;
    p->texts[*place + bytes] = '\0';
    return DV_OK;
}

/* ---- the stack ------------------------------------------------------------------------------ */

static dv_status push(dv_pickle *p, dv_pickle_ref ref) {
    if (p->stack_count == MOST_VALUES)
        return dv_pickle_refuse(p, "its pickle has more values than weights have");
    if (!dv_array_grow((void **)&p->stack, &p->stack_capacity, p->stack_count, sizeof *p->stack))
        return dv_pickle_no_memory(p);
    p->stack[p->stack_count++] = ref;
    return DV_OK;
}

static dv_status push_value(dv_pickle *p, value made) {
    dv_pickle_ref ref = 0;
    DV_TRY(make(p, made, &ref));
    return push(p, ref);
}

/* The value on top, which stays there; a mark is none. */
static dv_status top(const dv_pickle *p, dv_pickle_ref *ref) {
    if (p->stack_count == 0 || p->stack[p->stack_count - 1] == MARK)
        return dv_pickle_refuse(p, "its pickle takes a value that is not there");
    *ref = p->stack[p->stack_count - 1];
    return DV_OK;
}

static dv_status pop(dv_pickle *p, dv_pickle_ref *ref) {
    DV_TRY(top(p, ref));
    p->stack_count--;
    return DV_OK;
}

/* The place of the last mark. */
static dv_status find_mark(const dv_pickle *p, size_t *mark) {
    for (size_t i = p->stack_count; i-- > 0;) {
        *mark = i;
        if (p->stack[i] == MARK)
            return DV_OK;
    }
    return dv_pickle_refuse(p, "its pickle takes values that are not there");
}

/* ---- opcodes -------------------------------------------------------------------------------- */

static dv_status pass_over(dv_pickle *p, size_t bytes) {
    unsigned char passed[256];
    return take(p, passed, bytes);
}

static dv_status on_protocol(dv_pickle *p) {
    return pass_over(p, 1);
}

static dv_status on_frame(dv_pickle *p) {
    return pass_over(p, 8);
}

static dv_status on_other(dv_pickle *p) {
    return push_value(p, (value){.type = DV_PICKLE_OTHER});
}

static dv_status on_float(dv_pickle *p) {
    DV_TRY(pass_over(p, 8));
    return on_other(p);
}

static dv_status push_number(dv_pickle *p, int64_t number) {
    return push_value(p, (value){.type = DV_PICKLE_NUMBER, .number = number});
}

static dv_status on_true(dv_pickle *p) {
    return push_number(p, 1);
}

static dv_status on_false(dv_pickle *p) {
    return push_number(p, 0);
}

static dv_status push_unsigned(dv_pickle *p, size_t bytes) {
    uint64_t number = 0;
    DV_TRY(take_number(p, bytes, &number));
    return push_number(p, (int64_t)number);
}

static dv_status on_byte(dv_pickle *p) {
    return push_unsigned(p, 1);
}

static dv_status on_two_bytes(dv_pickle *p) {
    return push_unsigned(p, 2);
}

static dv_status on_integer(dv_pickle *p) {
    uint64_t number = 0;
    DV_TRY(take_number(p, 4, &number));
    return push_number(p, (int32_t)(uint32_t)number);
}

/* Up to 255 bytes, of which more than 8 are no number that weights have. */
static dv_status on_long(dv_pickle *p) {
    uint64_t bytes = 0, number = 0;
    DV_TRY(take_number(p, 1, &bytes));
    if (bytes > 8) {
        DV_TRY(pass_over(p, (size_t)bytes));
        return on_other(p);
    }
    DV_TRY(take_number(p, (size_t)bytes, &number));
    if (bytes > 0 && bytes < 8 && (number >> (8 * bytes - 1) & 1) != 0)
        number |= UINT64_MAX << 8 * bytes;
    return push_number(p, (int64_t)number);
}

static dv_status push_text(dv_pickle *p, size_t length_bytes) {
    uint64_t bytes = 0;
    size_t place = 0;
    DV_TRY(take_number(p, length_bytes, &bytes));
    DV_TRY(reserve_text(p, (size_t)bytes, &place));
    DV_TRY(take(p, p->texts + place, (size_t)bytes));
    if (memchr(p->texts + place, '\0', (size_t)bytes) != NULL)
        return dv_pickle_refuse(p, "a text has a zero byte");
    return push_value(p, (value){.type = DV_PICKLE_TEXT, .text = place});
}

static dv_status on_short_text(dv_pickle *p) {
    return push_text(p, 1);
}

static dv_status on_text(dv_pickle *p) {
    return push_text(p, 4);
}

static dv_status on_mark(dv_pickle *p) {
    return push(p, MARK);
}

static dv_status on_empty_dictionary(dv_pickle *p) {
    return push_value(p, (value){.type = DV_PICKLE_DICTIONARY});
}

static dv_status on_empty_sequence(dv_pickle *p) {
    return push_value(p, (value){.type = DV_PICKLE_SEQUENCE});
}

/* Appends what lies on the stack from `first` on to a container, and takes it from there. */
static dv_status append_from(dv_pickle *p, dv_pickle_ref container, size_t first) {
    for (size_t i = first; i < p->stack_count; i++) {
        if (p->stack[i] == MARK)
            return dv_pickle_refuse(p, "its pickle takes a value that is not there");
        DV_TRY(dv_pickle_append(p, container, p->stack[i]));
    }
    p->stack_count = first;
    return DV_OK;
}

static dv_status push_tuple(dv_pickle *p, size_t count) {
    dv_pickle_ref tuple = 0;
    if (p->stack_count < count)
        return dv_pickle_refuse(p, "its pickle takes values that are not there");
    DV_TRY(dv_pickle_make(p, DV_PICKLE_SEQUENCE, 0, &tuple));
    DV_TRY(append_from(p, tuple, p->stack_count - count));
    return push(p, tuple);
}

static dv_status on_tuple1(dv_pickle *p) {
    return push_tuple(p, 1);
}

static dv_status on_tuple2(dv_pickle *p) {
    return push_tuple(p, 2);
}

static dv_status on_tuple3(dv_pickle *p) {
    return push_tuple(p, 3);
}

static dv_status on_tuple(dv_pickle *p) {
    size_t mark = 0;
    dv_pickle_ref tuple = 0;
    DV_TRY(find_mark(p, &mark));
    DV_TRY(dv_pickle_make(p, DV_PICKLE_SEQUENCE, 0, &tuple));
    DV_TRY(append_from(p, tuple, mark + 1));
    p->stack_count = mark;
    return push(p, tuple);
}

/* Adds what lies from `first` on to the container of this type below `below`. */
static dv_status add_to(dv_pickle *p, dv_pickle_type type, size_t below, size_t first) {
    if (below == 0 || p->stack[below - 1] == MARK || value_at(p, p->stack[below - 1])->type != type)
        return dv_pickle_refuse(p, "its pickle adds to what is no list and no dictionary");
    if (type == DV_PICKLE_DICTIONARY && (p->stack_count - first) % 2 != 0)
        return dv_pickle_refuse(p, "its pickle adds a key without its value");
    DV_TRY(append_from(p, p->stack[below - 1], first));
    p->stack_count = below;
    return DV_OK;
}

static dv_status add_last(dv_pickle *p, dv_pickle_type type, size_t count) {
    if (p->stack_count < count)
        return dv_pickle_refuse(p, "its pickle takes values that are not there");
    return add_to(p, type, p->stack_count - count, p->stack_count - count);
}

static dv_status add_marked(dv_pickle *p, dv_pickle_type type) {
    size_t mark = 0;
    DV_TRY(find_mark(p, &mark));
    return add_to(p, type, mark, mark + 1);
}

static dv_status on_append(dv_pickle *p) {
    return add_last(p, DV_PICKLE_SEQUENCE, 1);
}

static dv_status on_appends(dv_pickle *p) {
    return add_marked(p, DV_PICKLE_SEQUENCE);
}

static dv_status on_set_item(dv_pickle *p) {
    return add_last(p, DV_PICKLE_DICTIONARY, 2);
}

static dv_status on_set_items(dv_pickle *p) {
    return add_marked(p, DV_PICKLE_DICTIONARY);
}

static dv_status remember(dv_pickle *p, uint64_t index) {
    dv_pickle_ref ref = 0;
    DV_TRY(top(p, &ref));
    if (index >= MOST_VALUES)
        return dv_pickle_refuse(p, "its pickle has more values than weights have");
    for (; p->memo_count <= index; p->memo[p->memo_count++] = UNSET)
        if (!dv_array_grow((void **)&p->memo, &p->memo_capacity, p->memo_count, sizeof *p->memo))
            return dv_pickle_no_memory(p);
    p->memo[index] = ref;
    return DV_OK;
}

static dv_status put(dv_pickle *p, size_t bytes) {
    uint64_t index = 0;
    DV_TRY(take_number(p, bytes, &index));
    return remember(p, index);
}

static dv_status on_put(dv_pickle *p) {
    return put(p, 1);
}

static dv_status on_long_put(dv_pickle *p) {
    return put(p, 4);
}

static dv_status on_memoize(dv_pickle *p) {
    return remember(p, p->memo_count);
}

static dv_status get(dv_pickle *p, size_t bytes) {
    uint64_t index = 0;
    DV_TRY(take_number(p, bytes, &index));
    if (index >= p->memo_count || p->memo[index] == UNSET)
        return dv_pickle_refuse(p, "its pickle takes a value that it did not keep");
    return push(p, p->memo[index]);
}

static dv_status on_get(dv_pickle *p) {
    return get(p, 1);
}

static dv_status on_long_get(dv_pickle *p) {
    return get(p, 4);
}

/* ---- globals -------------------------------------------------------------------------------- */

static bool is_called(const char *pattern, const char *name) {
    size_t length = strlen(name), end = strlen(pattern + 1);
    if (pattern[0] != '*')
        return strcmp(pattern, name) == 0;
    return length >= end && strcmp(name + length - end, pattern + 1) == 0;
}

static dv_status refuse_global(const dv_pickle *p, const char *module, const char *name) {
    char reason[NAME_BYTES + 64];
    snprintf(reason, sizeof reason, "asks for %.60s.%.60s, which is not executed", module, name);
    return dv_array_file_decline(p->file, p->error, reason, DV_SAVE_WEIGHTS);
}

static dv_status push_global(dv_pickle *p, const char *module, const char *name) {
    const dv_pickle_rules *rules = p->rules;
    size_t place, length = strlen(name);
    for (size_t i = 0; i < rules->global_count; i++) {
        if (strcmp(rules->globals[i].module, module) != 0 || !is_called(rules->globals[i].name, name))
            continue;
        DV_TRY(reserve_text(p, length, &place));
        memcpy(p->texts + place, name, length);
        return push_value(p, (value){.type = DV_PICKLE_GLOBAL, .text = place, .global = (uint32_t)i});
    }
    return refuse_global(p, module, name);
}

/* A line, without its end. */
static dv_status take_line(dv_pickle *p, char line[NAME_BYTES]) {
    for (size_t i = 0; i < NAME_BYTES; i++) {
        DV_TRY(take(p, &line[i], 1));
        if (line[i] != '\n')
            continue;
        line[i] = '\0';
        return DV_OK;
    }
    return dv_pickle_refuse(p, "the name of a global is too long");
}

static dv_status on_global(dv_pickle *p) {
    char module[NAME_BYTES], name[NAME_BYTES];
    DV_TRY(take_line(p, module));
    DV_TRY(take_line(p, name));
    return push_global(p, module, name);
}

/* The same with both names on the stack. */
static dv_status on_stack_global(dv_pickle *p) {
    char texts[2][NAME_BYTES];
    for (int i = 2; i-- > 0;) {
        dv_pickle_ref ref = 0;
        DV_TRY(pop(p, &ref));
        const char *text = dv_pickle_text(p, ref);
        if (text == NULL || snprintf(texts[i], NAME_BYTES, "%s", text) >= NAME_BYTES)
            return dv_pickle_refuse(p, "the name of a global is too long, or is no text");
    }
    return push_global(p, texts[0], texts[1]);
}

/* A call, which the caller says the result of. */
static dv_status on_call(dv_pickle *p) {
    dv_pickle_ref arguments = 0, global = 0, result = 0;
    DV_TRY(pop(p, &arguments));
    DV_TRY(pop(p, &global));
    if (dv_pickle_type_of(p, global) != DV_PICKLE_GLOBAL || dv_pickle_type_of(p, arguments) != DV_PICKLE_SEQUENCE)
        return dv_pickle_refuse(p, "its pickle calls what is no function");
    DV_TRY(p->rules->call(p->rules->context, p, global, arguments, &result));
    return push(p, result);
}

/* The state of an object. An empty one becomes the first of what it is given, as a parameter does; attributes of a
 * dictionary are nothing that weights need. */
static dv_status on_build(dv_pickle *p) {
    dv_pickle_ref state = 0, object = 0, first = 0;
    DV_TRY(pop(p, &state));
    DV_TRY(top(p, &object));
    if (dv_pickle_type_of(p, object) == DV_PICKLE_DICTIONARY)
        return DV_OK;
    if (dv_pickle_type_of(p, object) != DV_PICKLE_EMPTY || dv_pickle_items(p, state, &first, 1) == 0 ||
        dv_pickle_type_of(p, first) != DV_PICKLE_MADE)
        return dv_pickle_refuse(p, "its pickle gives a state to what has none");
    *value_at(p, object) = *value_at(p, first);
    return DV_OK;
}

static dv_status on_persistent(dv_pickle *p) {
    dv_pickle_ref id = 0, result = 0;
    DV_TRY(pop(p, &id));
    DV_TRY(p->rules->find(p->rules->context, p, id, &result));
    return push(p, result);
}

static dv_status (*const opcodes[256])(dv_pickle *p) = {
    [0x80] = on_protocol,
    [0x95] = on_frame,
    ['N'] = on_other,
    [0x88] = on_true,
    [0x89] = on_false,
    ['K'] = on_byte,
    ['M'] = on_two_bytes,
    ['J'] = on_integer,
    [0x8a] = on_long,
    ['G'] = on_float,
    ['X'] = on_text,
    ['T'] = on_text,
    ['U'] = on_short_text,
    [0x8c] = on_short_text,
    ['('] = on_mark,
    ['}'] = on_empty_dictionary,
    [']'] = on_empty_sequence,
    [')'] = on_empty_sequence,
    [0x85] = on_tuple1,
    [0x86] = on_tuple2,
    [0x87] = on_tuple3,
    ['t'] = on_tuple,
    ['a'] = on_append,
    ['e'] = on_appends,
    ['s'] = on_set_item,
    ['u'] = on_set_items,
    ['q'] = on_put,
    ['r'] = on_long_put,
    [0x94] = on_memoize,
    ['h'] = on_get,
    ['j'] = on_long_get,
    ['c'] = on_global,
    [0x93] = on_stack_global,
    ['R'] = on_call,
    [0x81] = on_call, /* an object made by its class's __new__ */
    ['b'] = on_build,
    ['Q'] = on_persistent,
};

static dv_status refuse_opcode(const dv_pickle *p, unsigned char opcode) {
    char reason[64];
    snprintf(reason, sizeof reason, "its pickle has the opcode 0x%02x, which weights do not need", opcode);
    return dv_pickle_refuse(p, reason);
}

dv_status dv_pickle_read(dv_pickle *pickle, dv_pickle_ref *result) {
    unsigned char opcode = 0;
    pickle->stack_count = pickle->memo_count = 0;
    for (;;) {
        DV_TRY(take(pickle, &opcode, 1));
        if (opcode == '.')
            return pop(pickle, result);
        if (opcodes[opcode] == NULL)
            return refuse_opcode(pickle, opcode);
        DV_TRY(opcodes[opcode](pickle));
    }
}
