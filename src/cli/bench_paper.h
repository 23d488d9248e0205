/* The evaluation of the paper: rows of a table say what is measured, and every preset is some of these rows. */
#ifndef DV_CLI_BENCH_PAPER_H
#define DV_CLI_BENCH_PAPER_H

#include "bench_session.h"

/* A row: every combination of its lists is a job. */
typedef struct paper_row {
    const char *preset; /* the command that it belongs to */
    const bench_kind *kind;
    const char *name;              /* the network; of a training the recipe's file */
    const char *batches, *methods; /* of a training one method; batches NULL: the recipe's */
    const char *folder, *run;      /* of a training, and of what needs its weights: OUT/FOLDER/RUN-SEED */
    int precision;                 /* of benchmarks: 0 for f32, 1 for bf16 */
    int seeds, epochs;             /* of a training; 0 for epochs: the recipe's */
    int full;                      /* 1: with --full alone, -1: never with it, 0: always */
} paper_row;

/* The sizes of an evaluation, which --trial makes small. NULL and 0: as the rows say. */
typedef struct paper_scale {
    const char *batch, *data, *draws; /* draws: batches of trainings and gradients too */
    int side, training_side, epochs, steps, rounds;
} paper_scale;

/* What the command line says. */
typedef struct paper_settings {
    const char *out, *data, *recipes, *precision;
    int full, trial, estimate, threads, rounds;
    const paper_scale *scale;
} paper_settings;

/* The one that is under way: kinds of jobs have no other way to it. */
extern paper_settings paper;

enum { PAPER_PATH_BYTES = 1024 };

extern const bench_kind paper_training_kind, paper_gradient_kind;

/* The network, batch, precision and epochs (as steps) of a training's recipe -> job. Exit codes. */
int paper_read_recipe(const paper_row *row, bench_job *job);

/* Folder of a training: of the job, or of another seed of its row. */
void paper_run_path(const paper_row *row, int seed, char path[PAPER_PATH_BYTES]);

/* Calls this program again and waits. What it prints is added to the file `log`, or, if that is NULL, its last line
 * goes to `line`. It is ended if this process is. Returns its exit code. */
int bench_call(char *const *arguments, const char *log, char line[BENCH_LINE_BYTES]);

#endif
