/* A training, to the files that make it up: preparing it, its weights, and what it writes. */
#ifndef DV_TRAIN_TRAINING_H
#define DV_TRAIN_TRAINING_H

#include "train/ranks.h"

#include <division/training.h>
#include <stdbool.h>

struct dv_training {
    dv_options options;
    dv_training_callbacks callbacks;
    char *path; /* of its folder; NULL: nothing is written */
    dv_folder_mode mode;
    char passes[DV_RANKS_COPY_BYTES]; /* a copy of rank 0's file of passes, while the network is made; "": none */
    dv_dataset *data;
    dv_dataset_shape shape;
    dv_graph *graph;
    dv_plan *plan;
    dv_run *run;
    dv_folder *folder; /* NULL: not opened yet, or none */
    dv_train_state state;
    dv_train_result result;
    dv_tune_result tuned;
    size_t loading_bytes;
    size_t program_bytes; /* resident before the plan's memory was mapped */
    size_t file_bytes;    /* those of them that are pages of files */
    dv_chosen chosen;     /* by memory; zeros: nothing was */
    bool resumed;         /* from a checkpoint */
    bool configured;      /* config.json is written */
};

/* Reads the checkpoint to go on from, or the weights to begin with. A folder that is there is locked first, so that
 * what is read is the last word. */
dv_status dv_training_read_weights(dv_training *t, dv_error *error);

/* What is written: the options; a checkpoint to go on from (with a state) or the weights of the best test (without);
 * the last figures. Without a folder nothing is. */
dv_status dv_training_write_config(dv_training *t, dv_error *error);
dv_status dv_training_save(dv_training *t, const char *name, const dv_train_state *state, dv_error *error);
dv_status dv_training_write_summary(dv_training *t, dv_error *error);

/* How its images are normalised, as text: the data's own where the options leave it open. */
dv_status dv_training_normalisation(const dv_training *t, char text[DV_NORMALISATION_BYTES], dv_error *error);

#endif
