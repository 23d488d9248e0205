/* Walks and searches the trees of an LMDB file as LMDB would, and believes nothing.
 *
 * The layout is that of LMDB's data version 1 on machines with 64 bits, least significant byte first. Pages 0 and 1
 * describe the file, each as one transaction left it; the later one counts. A table is a tree: nodes of a branch lead
 * to pages below, those of a leaf hold a key and a value, or say which pages hold the value. */
#include "data/lmdb_pages.h"

#include "base/file.h"
#include "base/status.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FREE_PAGES, RECORDS, TABLES };
enum { LEAST_PAGE = 256, MOST_PAGE = 1 << 15, MOST_DEPTH = 32 };
enum { IS_BRANCH = 1, IS_LEAF = 2, IS_META = 8 }; /* flags of a page */
enum { IS_FAR = 1 };                              /* of a node: its value has pages of its own */
enum { NUMBERS_ARE_KEYS = 8, OF_ORDER = 0x7f };   /* of a table: those that say how keys are compared */

#define MAGIC 0xBEEFC0DEu
#define NO_PAGE UINT64_MAX

typedef struct page {
    uint64_t number;
    uint16_t pad, flags;
    uint16_t lower, upper; /* the ends of what is free between places of nodes and nodes */
} page;

typedef struct table {
    uint32_t page_bytes; /* in the first one */
    uint16_t flags, depth;
    uint64_t branches, leaves, far, entries, root;
} table;

typedef struct meta {
    page head;
    uint32_t magic, version;
    uint64_t address, map_bytes;
    table tables[TABLES];
    uint64_t last_page, transaction;
} meta;

typedef struct node {
    uint16_t low, high, flags; /* bytes of the value; or all three, the page below */
    uint16_t key_bytes;
} node;

_Static_assert(sizeof(page) == 16 && sizeof(table) == 48 && sizeof(meta) == 152 && sizeof(node) == 8, "LMDB's layout");

/* A node of a page, taken apart. */
typedef struct entry {
    const uint8_t *key;
    size_t key_bytes;
    const uint8_t *rest; /* behind the key: of a leaf the value, or the page where it begins */
    size_t room;         /* that the page has there */
    size_t bytes;        /* of the value */
    uint64_t below;      /* of a branch: the page */
    bool is_far;         /* the value has pages of its own */
} entry;

static dv_status fail_damaged(uint64_t number, dv_error *error) {
    return dv_fail(error, DV_ERROR_FORMAT, "page %llu is damaged: copy or convert it again",
                   (unsigned long long)number);
}

static dv_status read_bytes(const dv_lmdb_pages *file, uint64_t offset, void *data, size_t bytes, dv_error *error) {
    int code = dv_file_read_at(file->descriptor, data, bytes, offset);
    if (code == ENODATA)
        return dv_fail(error, DV_ERROR_FORMAT, "it became shorter: copy or convert it again");
    if (code != 0)
        return dv_fail(error, DV_ERROR_IO, "could not read it: %s: check the device", strerror(code));
    return DV_OK;
}

/* ---- pages --------------------------------------------------------------------------------- */

static size_t count_nodes(const uint8_t *bytes) {
    page head;
    memcpy(&head, bytes, sizeof head);
    return (head.lower - sizeof head) / sizeof(uint16_t);
}

/* Reads a page of a tree; `depth` is 1 for a leaf. Its head is sound then. */
static dv_status read_page(const dv_lmdb_pages *file, uint64_t number, unsigned depth, uint8_t *bytes,
                           dv_error *error) {
    page head;
    if (number <= 1 || number >= file->pages)
        return fail_damaged(number, error);
    DV_TRY(read_bytes(file, number * file->page_bytes, bytes, file->page_bytes, error));
    memcpy(&head, bytes, sizeof head);
    if (head.number == number && head.flags == (depth == 1 ? IS_LEAF : IS_BRANCH) && head.lower >= sizeof head &&
        head.lower % 2 == 0 && head.lower <= head.upper && head.upper <= file->page_bytes && count_nodes(bytes) > 0)
        return DV_OK;
    return fail_damaged(number, error);
}

/* Takes apart a node of a page whose head is sound. */
static bool read_node(const dv_lmdb_pages *file, const uint8_t *bytes, size_t index, entry *found) {
    page head;
    node at;
    uint16_t place;
    memcpy(&head, bytes, sizeof head);
    memcpy(&place, bytes + sizeof head + index * sizeof place, sizeof place);
    if (place < head.upper || place % 2 != 0 || place > file->page_bytes - sizeof at)
        return false;
    memcpy(&at, bytes + place, sizeof at);
    size_t end = place + sizeof at + at.key_bytes;
    if (end > file->page_bytes || (head.flags == IS_LEAF && at.flags != 0 && at.flags != IS_FAR))
        return false;
    *found = (entry){.key = bytes + place + sizeof at,
                     .key_bytes = at.key_bytes,
                     .rest = bytes + end,
                     .room = file->page_bytes - end,
                     .bytes = at.low | (size_t)at.high << 16,
                     .below = at.low | (uint64_t)at.high << 16 | (uint64_t)at.flags << 32,
                     .is_far = at.flags == IS_FAR};
    return true;
}

/* Where in the file a far value begins; 0 if it is not within it. */
static uint64_t find_far(const dv_lmdb_pages *file, const entry *of) {
    uint64_t first, pages = (sizeof(page) + of->bytes + file->page_bytes - 1) / file->page_bytes;
    if (of->room < sizeof first)
        return 0;
    memcpy(&first, of->rest, sizeof first);
    if (first <= 1 || first >= file->pages || pages > file->pages - first)
        return 0;
    return first * file->page_bytes + sizeof(page);
}

/* Whether the value of a leaf's node is within the page, or within the file. */
static bool has_value(const dv_lmdb_pages *file, const entry *of) {
    return of->is_far ? find_far(file, of) != 0 : of->bytes <= of->room;
}

/* A copy of the value of a leaf's node, or of its first `most` bytes. */
static dv_status copy_value(const dv_lmdb_pages *file, const entry *of, size_t most, uint8_t **value, size_t *bytes,
                            dv_error *error) {
    dv_status status = DV_OK;
    *bytes = of->bytes < most ? of->bytes : most;
    *value = malloc(*bytes > 0 ? *bytes : 1);
    if (*value == NULL)
        return dv_fail(error, DV_ERROR_MEMORY, "no memory for a record of %zu bytes: free some", *bytes);
    if (of->is_far)
        status = read_bytes(file, find_far(file, of), *value, *bytes, error);
    else
        memcpy(*value, of->rest, *bytes);
    if (status != DV_OK) {
        free(*value);
        *value = NULL;
    }
    return status;
}

/* ---- looking at all of a tree -------------------------------------------------------------- */

/* One tree. */
typedef struct walk {
    const dv_lmdb_pages *file;
    uint8_t *levels; /* [depth][page_bytes]: the pages from the leaf up to the root */
    uint64_t left;   /* pages that the tree may still have: a damaged one may lead round and round */
    bool of_free;    /* its values are lists of pages */
} walk;

/* A list of free pages: how many, and their numbers. */
static bool check_list(const walk *in, const uint8_t *value, size_t bytes) {
    uint64_t count, number;
    if (bytes < sizeof count)
        return false;
    memcpy(&count, value, sizeof count);
    if (count > bytes / sizeof number - 1)
        return false;
    for (uint64_t i = 1; i <= count; i++) {
        memcpy(&number, value + i * sizeof number, sizeof number);
        if (number <= 1 || number >= in->file->pages)
            return false;
    }
    return true;
}

/* The value of a node of the leaf `number`. */
static dv_status check_value(const walk *in, uint64_t number, const entry *of, dv_error *error) {
    uint8_t *value;
    size_t bytes;
    if (!has_value(in->file, of) || (in->of_free && of->key_bytes != sizeof(uint64_t)))
        return fail_damaged(number, error);
    if (!in->of_free)
        return DV_OK;
    DV_TRY(copy_value(in->file, of, SIZE_MAX, &value, &bytes, error));
    bool sound = check_list(in, value, bytes);
    free(value);
    return sound ? DV_OK : fail_damaged(number, error);
}

/* A page and all below it. */
static dv_status check_page(walk *in, uint64_t number, unsigned depth, dv_error *error) {
    uint8_t *bytes = in->levels + (depth - 1) * in->file->page_bytes;
    if (in->left-- == 0)
        return fail_damaged(number, error);
    DV_TRY(read_page(in->file, number, depth, bytes, error));
    size_t nodes = count_nodes(bytes);
    if (nodes < 2 && depth > 1 && !in->of_free)
        return fail_damaged(number, error);
    for (size_t i = 0; i < nodes; i++) {
        entry found;
        if (!read_node(in->file, bytes, i, &found))
            return fail_damaged(number, error);
        DV_TRY(depth == 1 ? check_value(in, number, &found, error) : check_page(in, found.below, depth - 1, error));
    }
    return DV_OK;
}

static dv_status check_table(const dv_lmdb_pages *file, const table *t, int which, dv_error *error) {
    bool empty = t->root == NO_PAGE;
    if ((t->flags & OF_ORDER) != (which == FREE_PAGES ? NUMBERS_ARE_KEYS : 0) || t->depth > MOST_DEPTH ||
        (t->depth == 0) != empty || (empty && t->entries != 0))
        return fail_damaged(0, error);
    if (empty)
        return DV_OK;
    walk in = {.file = file,
               .levels = malloc(t->depth * file->page_bytes),
               .left = file->pages,
               .of_free = which == FREE_PAGES};
    if (in.levels == NULL)
        return dv_fail(error, DV_ERROR_MEMORY, "no memory to look at its pages: free some");
    dv_status status = check_page(&in, t->root, t->depth, error);
    free(in.levels);
    return status;
}

/* ---- the file ------------------------------------------------------------------------------ */

/* One of the first two pages: the same sizes of pages in both. LMDB looks for the second where the first says. */
static bool read_meta(const dv_lmdb_pages *file, int number, size_t page_bytes, meta *found) {
    if (dv_file_read_at(file->descriptor, found, sizeof *found, (size_t)number * page_bytes) != 0)
        return false;
    size_t size = found->tables[0].page_bytes;
    return found->magic == MAGIC && found->version == 1 && (found->head.flags & IS_META) != 0 && size >= LEAST_PAGE &&
           size <= MOST_PAGE && (size & (size - 1)) == 0 && (number == 0 || size == page_bytes);
}

/* All of an open file. */
static dv_status check_file(dv_lmdb_pages *file, size_t bytes, dv_error *error) {
    meta metas[2];
    if (bytes == 0)
        return dv_fail(error, DV_ERROR_FORMAT, "it is empty: convert it again");
    if (!read_meta(file, 0, 0, &metas[0]) || !read_meta(file, 1, metas[0].tables[0].page_bytes, &metas[1]))
        return dv_fail(error, DV_ERROR_FORMAT,
                       "its first pages are damaged, or not LMDB's: is it a file of 'division data lmdb'? "
                       "Copy or convert it again");
    const meta *last = &metas[metas[0].transaction < metas[1].transaction];
    const table *records = &last->tables[RECORDS];
    file->page_bytes = last->tables[0].page_bytes;
    if (last->last_page >= bytes / file->page_bytes)
        return dv_fail(error, DV_ERROR_FORMAT, "it has %zu of %llu pages: it was cut short: copy or convert it again",
                       bytes / file->page_bytes, (unsigned long long)last->last_page + 1);
    file->pages = last->last_page + 1;
    file->root = records->root;
    file->depth = records->depth;
    file->entries = records->entries;
    for (int which = 0; which < TABLES; which++)
        DV_TRY(check_table(file, &last->tables[which], which, error));
    return DV_OK;
}

dv_status dv_lmdb_pages_open(dv_lmdb_pages *file, const char *path, dv_error *error) {
    size_t bytes;
    dv_error inner;
    *file = (dv_lmdb_pages){.descriptor = -1};
    DV_TRY(dv_file_open(path, &file->descriptor, &bytes, error));
    dv_status status = check_file(file, bytes, &inner);
    if (status == DV_OK)
        return DV_OK;
    dv_lmdb_pages_close(file);
    return dv_fail(error, status, "%s: %.150s", dv_file_shown(path), inner.text);
}

void dv_lmdb_pages_close(dv_lmdb_pages *file) {
    if (file->descriptor >= 0)
        (void)close(file->descriptor);
    *file = (dv_lmdb_pages){.descriptor = -1};
}

dv_status dv_lmdb_pages_check(const char *path, dv_error *error) {
    dv_lmdb_pages file;
    DV_TRY(dv_lmdb_pages_open(&file, path, error));
    dv_lmdb_pages_close(&file);
    return DV_OK;
}

/* ---- searching ----------------------------------------------------------------------------- */

/* How a key compares with a node's: byte by byte, the shorter one first. */
static int compare(const void *key, size_t key_bytes, const entry *with) {
    size_t shorter = key_bytes < with->key_bytes ? key_bytes : with->key_bytes;
    int order = memcmp(key, with->key, shorter);
    return order != 0 ? order : (key_bytes > with->key_bytes) - (key_bytes < with->key_bytes);
}

/* Finds the last node of a page whose key is not behind the wanted one; the first of all if there is none. The key of a
 * branch's first node counts as the least there is. */
static bool search(const dv_lmdb_pages *file, const uint8_t *bytes, const void *key, size_t key_bytes, entry *found) {
    size_t low = 0, high = count_nodes(bytes);
    while (high - low > 1) {
        size_t between = low + (high - low) / 2;
        if (!read_node(file, bytes, between, found))
            return false;
        if (compare(key, key_bytes, found) >= 0)
            low = between;
        else
            high = between;
    }
    return read_node(file, bytes, low, found);
}

dv_status dv_lmdb_pages_find(const dv_lmdb_pages *file, const void *key, size_t key_bytes, size_t most, uint8_t **value,
                             size_t *bytes, dv_error *error) {
    uint8_t page_of_tree[MOST_PAGE];
    uint64_t number = file->root;
    entry found = {0};
    *value = NULL;
    for (unsigned depth = file->depth; depth > 0; depth--) {
        DV_TRY(read_page(file, number, depth, page_of_tree, error));
        if (!search(file, page_of_tree, key, key_bytes, &found))
            return fail_damaged(number, error);
        if (depth > 1)
            number = found.below;
    }
    if (file->depth == 0 || compare(key, key_bytes, &found) != 0)
        return DV_OK;
    if (!has_value(file, &found))
        return fail_damaged(number, error);
    return copy_value(file, &found, most, value, bytes, error);
}
