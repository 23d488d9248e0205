/* Checkpoints: the weights of a run in a file, and what it takes to go on training.
 *
 * A file in the format safetensors, with the names, shapes and order of elements of torchvision's networks, so that
 * weights travel both ways:
 *
 *     layer1.0.conv1.weight ...            parameters and running statistics
 *     optimizer.SLOT.NAME                  the optimizer's arrays, as optimizer.velocity.fc.bias; only where training
 * can go on average.NAME                         averages of the weights; likewise, and only if there are any
 *     __metadata__                         notes: where training is, and whatever the caller adds
 *
 * A file is replaced at once or not at all: after a crash there is the old one or the new one.
 *
 * - Threads: Any thread may read an open checkpoint at any time, each into a run of its own. A file is written by one
 *   call at a time, and its run must not be trained meanwhile.
 * - Fork: A child may read an open checkpoint.
 * - Freeing: Checkpoint and run can be freed in any order. Notes live as long as their checkpoint is open. */
#ifndef DIVISION_CHECKPOINT_H
#define DIVISION_CHECKPOINT_H

#include <division/export.h>
#include <division/graph.h>
#include <division/status.h>
#include <division/train.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A line about a checkpoint. Both are the caller's. */
typedef struct dv_note {
    const char *name, *value;
} dv_note;

/* What to write. */
typedef struct dv_checkpoint_content {
    const dv_run *run;
    const dv_train_state *state; /* to go on training; NULL: the weights alone */
    int averages;                /* without a state: the averages are written as the weights */
    const dv_note *notes;        /* [note_count] */
    size_t note_count;
} dv_checkpoint_content;

/* Writes a checkpoint to a file, or replaces the one that is there. */
DV_API dv_status dv_checkpoint_write(const char *path, const dv_checkpoint_content *content, dv_error *error);

/* A checkpoint, open for reading. */
typedef struct dv_checkpoint dv_checkpoint;

/* Opens and checks a file: safetensors of any program, or what torch.save wrote, a state dict or a checkpoint that has
 * one. The format is told by the contents. Nothing in a file is executed. */
DV_API dv_status dv_checkpoint_open(const char *path, dv_checkpoint **checkpoint, dv_error *error);
DV_API void dv_checkpoint_close(dv_checkpoint *checkpoint);

/* The same of a file or of the folder of a training: its best weights, or the last ones where there are no best. */
DV_API dv_status dv_checkpoint_open_weights(const char *path, dv_checkpoint **checkpoint, dv_error *error);

/* The file that it was opened from; lives as long as the checkpoint is open. */
DV_API const char *dv_checkpoint_path(const dv_checkpoint *checkpoint);

/* A note of a checkpoint, or NULL; it lives as long as the checkpoint is open. */
DV_API const char *dv_checkpoint_note(const dv_checkpoint *checkpoint, const char *name);

/* The note of trainings that says how images were normalised, as dv_image_normalisation_parse reads it. */
#define DV_NOTE_NORMALISE "normalise"

/* True if there are averages of the weights. */
DV_API int dv_checkpoint_has_averages(const dv_checkpoint *checkpoint);

/* Which weights to take. */
typedef struct dv_checkpoint_choice {
    int averages;       /* the averages instead of the weights */
    const char *except; /* names that begin with this stay as they are in the run; NULL: none */
} dv_checkpoint_choice;

/* Is told a difference between a checkpoint and a run: `text`, which lives during the call, says what is wrong where.
 */
typedef void (*dv_difference_callback)(void *context, const char *text);

/* Reads parameters and running statistics into a run. Every one must be there with its shape, and nothing else, but
 * for what belongs to training and for PyTorch's num_batches_tracked: otherwise DV_ERROR_FORMAT, the run is as it was,
 * and `tell`, which may be NULL, gets each difference. */
DV_API dv_status dv_checkpoint_load(const dv_checkpoint *checkpoint, const dv_checkpoint_choice *choice, dv_run *run,
                                    dv_difference_callback tell, void *context, dv_error *error);

/* Reads all that it takes to go on: weights, the optimizer's arrays, averages if the run has them, the state. Another
 * optimizer than the one that left them is DV_ERROR_OPTION. */
DV_API dv_status dv_checkpoint_resume(const dv_checkpoint *checkpoint, dv_run *run, dv_train_state *state,
                                      dv_difference_callback tell, void *context, dv_error *error);

#ifdef __cplusplus
}
#endif

#endif
