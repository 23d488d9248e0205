/* What an optimizer is, for those who implement one: a table of options, the arrays that it keeps for each parameter,
 * and an update. A new one is a file that defines a dv_optimizer_kind, and a line in the table of optimizer.c. */
#ifndef DV_OPTIMIZER_KIND_H
#define DV_OPTIMIZER_KIND_H

#include <division/optimizer.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An update of some elements of a parameter. Every element is updated on its own, so that the bits depend neither on
 * the range that is updated at once nor on the number of threads. */
typedef struct dv_update {
    const dv_optimizer_value *options; /* in the order of the kind's table */
    double rate, decay;                /* those of the parameter's group */
    uint64_t number;                   /* of the optimizer's step, from 1 */
    float scale;                       /* of the gradient: less than 1 where it is clipped */
    size_t count;
    float *parameter;                     /* [count] */
    float *gradient;                      /* [count], zero afterwards: backward adds */
    float *slots[DV_OPTIMIZER_MAX_SLOTS]; /* [count] each, in the order of the kind's table; NULL: not in use */
} dv_update;

/* The part of an option's row that says what it may be, and where its value is: at `index` of dv_optimizer.options. */
#define DV_NUMBER_IN(index, low, high)                             \
    .kind = DV_OPTION_NUMBER, .minimum = (low), .maximum = (high), \
    .offset = (index) * sizeof(dv_optimizer_value) + offsetof(dv_optimizer_value, number)
#define DV_FLAG_IN(index) \
    .kind = DV_OPTION_FLAG, .offset = (index) * sizeof(dv_optimizer_value) + offsetof(dv_optimizer_value, flag)

enum { DV_SLOT_ALWAYS = -1 };

typedef struct dv_optimizer_slot {
    const char *name; /* of checkpoints: no other kind's slot has it */
    int option;       /* the slot is in use if this option is not 0; or DV_SLOT_ALWAYS */
} dv_optimizer_slot;

typedef struct dv_optimizer_kind {
    const char *name, *help;
    double decay;             /* unless the text says otherwise */
    const dv_option *options; /* at most DV_OPTIMIZER_MAX_OPTIONS */
    size_t option_count;
    const dv_optimizer_slot *slots; /* at most DV_OPTIMIZER_MAX_SLOTS; they start at 0 */
    size_t slot_count;
    dv_status (*check)(const dv_optimizer_value *options, dv_error *error); /* what bounds cannot say; NULL: nothing */
    void (*update)(const dv_update *update); /* one pass over memory, by one thread: `#pragma omp simd` */
} dv_optimizer_kind;

/* One more optimizer, for tests and examples; NULL: none. */
extern const dv_optimizer_kind *dv_optimizer_added;

/* Whether both are of one kind, with the same options. */
bool dv_optimizer_same(const dv_optimizer *a, const dv_optimizer *b);

/* How many slots are in use. */
size_t dv_optimizer_slot_count(const dv_optimizer *optimizer);

/* Updates a whole parameter with all threads. `options` and `slots` of the update are filled in here: `state` has the
 * slots in use, one behind the other. */
void dv_optimizer_update(const dv_optimizer *optimizer, dv_update *update, float *state);

#endif
