/* Walks the trees of an LMDB file as LMDB would, and believes nothing.
 *
 * The layout is that of LMDB's data version 1 on machines with 64 bits, least significant byte first. Pages 0 and 1
 * describe the file, each as one transaction left it; the later one counts. A table is a tree: nodes of a branch lead
 * to pages below, those of a leaf hold a key and a value, or say which pages hold the value. */
#include "data/lmdb_pages.h"

#include "base/file.h"
#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
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

/* One tree. */
typedef struct walk {
    const uint8_t *file;
    size_t page_bytes;
    uint64_t pages;   /* of the file */
    uint64_t left;    /* that the tree may still have: a damaged one may lead round and round */
    bool of_free;     /* its values are lists of pages */
    uint64_t suspect; /* the page that is looked at */
} walk;

static const uint8_t *page_at(const walk *in, uint64_t number) {
    return in->file + number * in->page_bytes;
}

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
        if (number <= 1 || number >= in->pages)
            return false;
    }
    return true;
}

/* The value of a leaf's node; `at` is behind its key, `room` what the page has from there on. */
static bool check_value(const walk *in, const node *of, const uint8_t *at, size_t room) {
    size_t bytes = of->low | (size_t)of->high << 16;
    if (of->flags == IS_FAR) {
        uint64_t first, pages = (sizeof(page) + bytes + in->page_bytes - 1) / in->page_bytes;
        if (room < sizeof first)
            return false;
        memcpy(&first, at, sizeof first);
        if (first <= 1 || first >= in->pages || pages > in->pages - first)
            return false;
        at = page_at(in, first) + sizeof(page);
    } else if (of->flags != 0 || bytes > room) {
        return false;
    }
    return !in->of_free || (of->key_bytes == sizeof(uint64_t) && check_list(in, at, bytes));
}

static bool check_page(walk *in, uint64_t number, unsigned depth);

static bool check_node(walk *in, const uint8_t *bytes, size_t place, size_t upper, unsigned depth) {
    node found;
    if (place < upper || place % 2 != 0 || place > in->page_bytes - sizeof found)
        return false;
    memcpy(&found, bytes + place, sizeof found);
    size_t key_end = place + sizeof found + found.key_bytes;
    if (key_end > in->page_bytes)
        return false;
    if (depth == 1)
        return check_value(in, &found, bytes + key_end, in->page_bytes - key_end);
    return check_page(in, found.low | (uint64_t)found.high << 16 | (uint64_t)found.flags << 32, depth - 1);
}

/* A page and all below it; `depth` is 1 for a leaf. */
static bool check_page(walk *in, uint64_t number, unsigned depth) {
    in->suspect = number;
    if (number <= 1 || number >= in->pages || in->left-- == 0)
        return false;
    const uint8_t *bytes = page_at(in, number);
    page head;
    memcpy(&head, bytes, sizeof head);
    if (head.number != number || head.flags != (depth == 1 ? IS_LEAF : IS_BRANCH) || head.lower < sizeof head ||
        head.lower % 2 != 0 || head.lower > head.upper || head.upper > in->page_bytes)
        return false;
    size_t nodes = (head.lower - sizeof head) / sizeof(uint16_t);
    if (nodes < (depth > 1 && !in->of_free ? 2 : 1))
        return false;
    for (size_t i = 0; i < nodes; i++) {
        uint16_t place;
        memcpy(&place, bytes + sizeof head + i * sizeof place, sizeof place);
        if (!check_node(in, bytes, place, head.upper, depth))
            return false;
        in->suspect = number;
    }
    return true;
}

static dv_status check_table(const uint8_t *file, const meta *of, int which, dv_error *error) {
    const table *t = &of->tables[which];
    walk in = {.file = file,
               .page_bytes = of->tables[0].page_bytes,
               .pages = of->last_page + 1,
               .left = of->last_page + 1,
               .of_free = which == FREE_PAGES};
    bool sound = (t->flags & OF_ORDER) == (which == FREE_PAGES ? NUMBERS_ARE_KEYS : 0) && t->depth <= MOST_DEPTH;
    if (sound && t->root != NO_PAGE)
        sound = t->depth > 0 && check_page(&in, t->root, t->depth);
    else if (sound)
        sound = t->depth == 0 && t->entries == 0;
    if (sound)
        return DV_OK;
    return dv_fail(error, DV_ERROR_FORMAT, "page %llu is damaged: copy or convert it again",
                   (unsigned long long)in.suspect);
}

/* One of the first two pages: the same sizes of pages in both. LMDB looks for the second where the first says. */
static bool read_meta(const uint8_t *file, size_t bytes, int number, size_t page_bytes, meta *found) {
    if (bytes < number * page_bytes + sizeof *found)
        return false;
    memcpy(found, file + number * page_bytes, sizeof *found);
    size_t size = found->tables[0].page_bytes;
    return found->magic == MAGIC && found->version == 1 && (found->head.flags & IS_META) != 0 && size >= LEAST_PAGE &&
           size <= MOST_PAGE && (size & (size - 1)) == 0 && (number == 0 || size == page_bytes);
}

/* All of a file that is in memory. */
static dv_status check_file(const uint8_t *file, size_t bytes, dv_error *error) {
    meta metas[2];
    if (!read_meta(file, bytes, 0, 0, &metas[0]) ||
        !read_meta(file, bytes, 1, metas[0].tables[0].page_bytes, &metas[1]))
        return dv_fail(error, DV_ERROR_FORMAT,
                       "its first pages are damaged, or not LMDB's: is it a file of 'division data lmdb'? "
                       "Copy or convert it again");
    const meta *last = &metas[metas[0].transaction < metas[1].transaction];
    size_t pages = bytes / last->tables[0].page_bytes;
    if (last->last_page >= pages)
        return dv_fail(error, DV_ERROR_FORMAT, "it has %zu of %llu pages: it was cut short: copy or convert it again",
                       pages, (unsigned long long)last->last_page + 1);
    for (int which = 0; which < TABLES; which++)
        DV_TRY(check_table(file, last, which, error));
    return DV_OK;
}

dv_status dv_lmdb_file_check(const char *path, dv_error *error) {
    struct stat status;
    dv_error inner;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    void *mapped = MAP_FAILED;
    if (file >= 0 && fstat(file, &status) == 0)
        mapped = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, file, 0);
    int code = errno;
    if (file >= 0)
        (void)close(file);
    if (mapped == MAP_FAILED)
        return dv_fail(error, DV_ERROR_IO, "could not read %s: %s: check the path and the device", dv_file_shown(path),
                       strerror(code));
    (void)madvise(mapped, (size_t)status.st_size, MADV_RANDOM); /* records lie between the pages that are read */
    dv_status result = check_file(mapped, (size_t)status.st_size, &inner);
    (void)munmap(mapped, (size_t)status.st_size);
    return result == DV_OK ? DV_OK : dv_fail(error, result, "%s: %.150s", dv_file_shown(path), inner.text);
}
