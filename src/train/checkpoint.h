/* What writing and reading checkpoints share: the names of arrays and notes. */
#ifndef DV_TRAIN_CHECKPOINT_H
#define DV_TRAIN_CHECKPOINT_H

#include <division/checkpoint.h>

/* Arrays of a parameter, by what stands in front of its name: behind "optimizer." that is the slot. */
#define DV_PREFIX_OPTIMIZER "optimizer."
#define DV_PREFIX_AVERAGE "average."
#define DV_PREFIX_METHOD "method."

/* The note that says what was frozen; none: nothing. */
#define DV_NOTE_FREEZE "training.freeze"

/* The note that names the optimizer. */
#define DV_NOTE_OPTIMIZER "training.optimizer"

/* One array of each parameter. */
typedef struct dv_checkpoint_part {
    char prefix[64];
    float *(*array)(const dv_run_parameter *parameter, size_t slot); /* NULL: it has none */
    size_t slot;
} dv_checkpoint_part;

/* The parts of which a run's checkpoints are, the weights first. Returns how many. */
enum { DV_CHECKPOINT_MAX_PARTS = 2 + DV_OPTIMIZER_MAX_SLOTS };
size_t dv_checkpoint_parts(const dv_run *run, dv_checkpoint_part parts[DV_CHECKPOINT_MAX_PARTS]);

static inline float *dv_checkpoint_array(const dv_checkpoint_part *part, const dv_run_parameter *parameter) {
    return part->array(parameter, part->slot);
}

/* The notes that are a state, each a line of a table: name, kind, member. */
typedef struct dv_state_field {
    const char *name;
    size_t offset; /* in dv_train_state */
    int is_number; /* a double; else a uint64_t */
    int is_new;    /* earlier checkpoints do not have it */
} dv_state_field;

enum { DV_STATE_FIELDS = 14 };
extern const dv_state_field dv_state_fields[DV_STATE_FIELDS];

#endif
