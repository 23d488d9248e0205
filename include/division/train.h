/* Training: the optimizer, the schedule of its learning rate, the loop over epochs, and the folder that one
 * training writes.
 *
 *     dv_dataset_open("synthetic", &data, &error);
 *     dv_train_options options = dv_train_options_default();
 *     dv_schedule_parse("cosine", &options.schedule, &error);
 *     dv_train(run, plan, data, &options, &calls, &result, &error);
 *
 * The same seed, options and number of threads give the same bits. */
#ifndef DIVISION_TRAIN_H
#define DIVISION_TRAIN_H

#include <division/data.h>
#include <division/export.h>
#include <division/graph.h>
#include <division/status.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- optimizer ----------------------------------------------------------------------------- */

/* Stochastic gradient descent as PyTorch defines it, without dampening:
 *     g = gradient + weight_decay * parameter
 *     velocity = momentum * velocity + g           (starts at 0)
 *     parameter -= rate * velocity                 (nesterov: rate * (g + momentum * velocity))
 * Without momentum there is no velocity, and parameter -= rate * g. */
typedef struct dv_sgd_options {
    double momentum;     /* 0 to less than 1; 0.9 */
    double weight_decay; /* 0 to 1; 5e-4. All parameters decay, as they do in PyTorch. */
    int nesterov;        /* needs momentum */
} dv_sgd_options;

DV_API dv_sgd_options dv_sgd_options_default(void);
DV_API dv_status dv_sgd_check(const dv_sgd_options *options, dv_error *error);

/* Arrays per parameter that the optimizer keeps, for dv_plan_options.optimizer_slots: the velocity, or none. */
DV_API int dv_sgd_slots(const dv_sgd_options *options);

/* One step over `count` elements; the gradient is zero afterwards. `velocity` may be NULL without momentum. */
DV_API void dv_sgd_update(const dv_sgd_options *options, double rate, size_t count, float *parameter, float *gradient,
                          float *velocity);

/* One step over all parameters of a run. Running statistics, which have no gradient, are left alone. */
DV_API void dv_sgd_step(const dv_sgd_options *options, double rate, dv_run *run);

/* ---- schedule ------------------------------------------------------------------------------ */

enum { DV_SCHEDULE_MAX_MILESTONES = 16 };

typedef enum dv_schedule_kind {
    DV_SCHEDULE_CONSTANT,
    DV_SCHEDULE_COSINE,     /* half a cosine from the rate to 0, anew for each step */
    DV_SCHEDULE_STEP,       /* times `factor` after every `every` epochs */
    DV_SCHEDULE_MULTI_STEP, /* times `factor` at the beginning of each epoch of `milestones` */
    DV_SCHEDULE_KIND_COUNT
} dv_schedule_kind;

/* How the learning rate goes. In front of any kind there may be a warm-up, linear over its steps: the first
 * has rate / steps, the last the whole rate. The cosine begins where the warm-up ends; the epochs of the two step
 * kinds count from the start of training. */
typedef struct dv_schedule {
    dv_schedule_kind kind;
    double rate;   /* 0 to 1000; 0.1 */
    double warmup; /* in epochs, 0 to 10000; a part of one is fine */
    double factor; /* 0 to 1; 0.1 */
    size_t every;  /* 1 to 100000 */
    size_t milestones[DV_SCHEDULE_MAX_MILESTONES], milestone_count;
} dv_schedule;

/* Cosine from 0.1, no warm-up. */
DV_API dv_schedule dv_schedule_default(void);
DV_API dv_status dv_schedule_check(const dv_schedule *schedule, dv_error *error);

/* Reads "constant", "cosine", "step:every=30,factor=0.1" or "multistep:at=60+120+160,factor=0.2" into the
 * kind and its options; rate and warm-up stay as they are. */
DV_API dv_status dv_schedule_parse(const char *text, dv_schedule *schedule, dv_error *error);

/* The kinds there are: name with options, or NULL past the last. */
DV_API const char *dv_schedule_name_at(size_t index);

/* The learning rate of a step, counted from 0, of a training of `epochs` of `steps_per_epoch` steps. */
DV_API double dv_schedule_rate(const dv_schedule *schedule, uint64_t step, uint64_t steps_per_epoch, uint64_t epochs);

/* ---- the loop ------------------------------------------------------------------------------ */

typedef struct dv_train_options {
    uint64_t seed;          /* of the order of images; 1 */
    size_t epochs;          /* 1 to 100000; 10 */
    size_t first_epoch;     /* where to begin: epochs before it were trained already; 0 */
    uint64_t steps;         /* stop after so many steps of the optimizer in all; 0: never */
    size_t accumulate;      /* batches whose gradients are averaged before a step, 1 to 65536; 1 */
    double label_smoothing; /* 0 to less than 1; 0 */
    dv_sgd_options sgd;
    dv_schedule schedule;
} dv_train_options;

DV_API dv_train_options dv_train_options_default(void);
DV_API dv_status dv_train_check(const dv_train_options *options, dv_error *error);

/* What came of an epoch. */
typedef struct dv_epoch_record {
    size_t epoch;                 /* from 1 */
    uint64_t steps;               /* of the optimizer, since the start of training */
    int complete;                 /* 0: stopped in the middle */
    int tested;                   /* 0: stopped before the test; then its two figures are NaN */
    double train_loss, test_loss; /* means over images */
    double train_top1, test_top1; /* in percent */
    double images_per_second;     /* while training */
    double seconds;               /* of the epoch, with its test */
    double learning_rate;         /* of its last step */
    size_t peak_bytes;            /* most memory resident so far */
    size_t activation_bytes;      /* kept from forward to backward, as planned */
} dv_epoch_record;

/* How far it is, after a step. */
typedef struct dv_train_progress {
    size_t epoch, epochs;     /* from 1 */
    size_t step, steps;       /* of this epoch, from 1; while testing: batches */
    int testing;              /* else training */
    double loss, top1;        /* means of this epoch so far, percent */
    double images_per_second; /* of this epoch so far */
    double seconds_left;      /* of all epochs; NaN while it can't be known */
    double learning_rate;
    size_t peak_bytes;
} dv_train_progress;

/* Who is told. Any may be NULL. */
typedef struct dv_train_calls {
    void (*progress)(void *context, const dv_train_progress *progress);
    dv_status (*epoch)(void *context, const dv_epoch_record *record, dv_error *error); /* a failure ends training */
    void *context;
    const volatile sig_atomic_t *stop; /* asked for before every step: not 0 ends training, which is no failure */
} dv_train_calls;

typedef struct dv_train_result {
    dv_epoch_record last; /* epoch 0: there was none */
    double best_top1;     /* NaN: nothing was tested */
    int stopped;          /* because of `stop` */
} dv_train_result;

/* Trains the run on the data, tests it after each epoch with running statistics, and tells the callbacks. The
 * plan is the run's. The run's input must be of the data's shape, and its classes at least the data's. A loss
 * that is not finite is DV_ERROR_NONFINITE with step and learning rate. */
DV_API dv_status dv_train(dv_run *run, const dv_plan *plan, const dv_dataset *data, const dv_train_options *options,
                          const dv_train_calls *calls, dv_train_result *result, dv_error *error);

/* Mean loss and top-1 in percent over a split, with running statistics. */
DV_API dv_status dv_test(dv_run *run, const dv_dataset *data, dv_split split, double *loss, double *top1,
                         dv_error *error);

/* ---- the folder of a run ------------------------------------------------------------------- */

/* A folder with what one training wrote: config.json, log.jsonl (one line per epoch), summary.json. */
typedef struct dv_folder dv_folder;

/* Makes the folder, and those above it, and begins the log. If it holds a log already: DV_ERROR_IO, or with
 * `replace` the log begins anew. */
DV_API dv_status dv_folder_open(const char *path, int replace, dv_folder **folder, dv_error *error);
DV_API void dv_folder_close(dv_folder *folder);

/* Replaces a file of the folder by `text`, at once or not at all. */
DV_API dv_status dv_folder_write(dv_folder *folder, const char *name, const char *text, dv_error *error);

/* Adds a line to the log; it is handed to the system before this returns. */
DV_API dv_status dv_folder_log(dv_folder *folder, const dv_epoch_record *record, dv_error *error);

/* The same line, without its end, into a buffer. */
enum { DV_EPOCH_JSON_BYTES = 1024 };
DV_API dv_status dv_epoch_json(const dv_epoch_record *record, char text[DV_EPOCH_JSON_BYTES], dv_error *error);

#ifdef __cplusplus
}
#endif

#endif
