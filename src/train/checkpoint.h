/* What writing and reading checkpoints share: the names of arrays and notes. */
#ifndef DV_TRAIN_CHECKPOINT_H
#define DV_TRAIN_CHECKPOINT_H

#include <division/checkpoint.h>

/* Arrays of a parameter, by what stands in front of its name. */
#define DV_PREFIX_VELOCITY "optimizer.velocity."
#define DV_PREFIX_AVERAGE "average."
#define DV_PREFIX_METHOD "method."

/* The note that says what was frozen; none: nothing. */
#define DV_NOTE_FREEZE "training.freeze"

/* The notes that are a state, each a line of a table: name, kind, member. */
typedef struct dv_state_field {
    const char *name;
    size_t offset; /* in dv_train_state */
    int is_number; /* a double; else a uint64_t */
    int is_new;    /* earlier checkpoints do not have it */
} dv_state_field;

enum { DV_STATE_FIELDS = 13 };
extern const dv_state_field dv_state_fields[DV_STATE_FIELDS];

#endif
