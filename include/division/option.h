/* Options: what they are called, what they take, and what they are unless given. Codecs ("division:block=8,bits=2") and
 * trainings have tables of them, which can be asked for.
 *
 * - Threads, fork, freeing: Tables are static and never change: any thread may read them, and nothing is freed. */
#ifndef DIVISION_OPTION_H
#define DIVISION_OPTION_H

#include <division/status.h>
#include <stddef.h>
#include <stdint.h>

/* What an option takes, and the type of its value. */
typedef enum dv_option_kind {
    DV_OPTION_FLAG,     /* int, 0 or 1: yes, no, true, false, 1, 0; no text at all is yes */
    DV_OPTION_INTEGER,  /* int, within bounds */
    DV_OPTION_POWER,    /* int, a power of two within bounds */
    DV_OPTION_COUNT,    /* size_t, within bounds; or the first of the words, if it has some, which is SIZE_MAX */
    DV_OPTION_COUNTS,   /* dv_counts, each within bounds: 60+120+160 */
    DV_OPTION_UNSIGNED, /* uint64_t, decimal or hexadecimal (0x) */
    DV_OPTION_NUMBER,   /* double, within bounds */
    DV_OPTION_WORD,     /* int, the index of one of the words */
    DV_OPTION_COPY,     /* char [room], of which the text takes at least one and at most room - 1; empty: not given */
    DV_OPTION_TEXT,     /* const char *, the very text that was given, which must outlive it; NULL: not given */
    DV_OPTION_KIND_COUNT
} dv_option_kind;

enum { DV_MOST_COUNTS = 16 };

typedef struct dv_counts {
    size_t at[DV_MOST_COUNTS], count;
} dv_counts;

/* One option. All text is static. */
typedef struct dv_option {
    const char *name;
    const char *argument; /* what help calls the value, or NULL */
    const char *help;     /* one line */
    dv_option_kind kind;
    int this_call;            /* belongs to one call: files of options do not have it */
    int clears;               /* of a copy: an empty text is taken too, and takes back what was given before */
    double minimum, maximum;  /* of integers, powers, counts and numbers */
    const char *const *words; /* NULL after the last */
    size_t room;              /* of a copy */
    const char *preset;       /* the value where none is given; NULL: none */
    size_t offset;            /* of the value in the struct that the table is of */
    void *target;             /* the value itself, where it is not in a struct; else NULL */
    dv_status (*accept)(const char *text, void *values,
                        dv_error *error); /* reads what a text stands for; NULL: itself */
} dv_option;

#endif
