/* Training: the schedule of the learning rate, averages, mixed images, and the loop over epochs.
 *
 *     dv_dataset_open("synthetic", &data, &error);
 *     dv_options options = dv_options_default();
 *     dv_schedule_parse("cosine", &options.schedule, &error);
 *     dv_train_state state = dv_train_state_default();
 *     dv_train(run, plan, data, &options, &callbacks, &state, &result, &error);
 *
 * The same seed, options, number of threads and instruction set give the same bits with the same oneDNN on the same
 * kind of processor. Another number of threads gives other sums in oneDNN's convolutions, and so other weights.
 *
 * - Threads: Different runs may be trained by different threads at once, also on one data set. Callbacks are called in
 *   the thread that called dv_train. `stop` may be set by a signal handler.
 * - Fork: Training uses OpenMP's threads: division/threads.h says what a child may do.
 * - Freeing: Run, plan, data set and all that options point to must outlive the call that is given them; nothing else.
 */
#ifndef DIVISION_TRAIN_H
#define DIVISION_TRAIN_H

#include <division/budget.h>
#include <division/data.h>
#include <division/export.h>
#include <division/graph.h>
#include <division/option.h>
#include <division/parallel.h>
#include <division/status.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- schedule ------------------------------------------------------------------------------ */

typedef enum dv_schedule_kind {
    DV_SCHEDULE_CONSTANT,
    DV_SCHEDULE_COSINE,      /* half a cosine from the rate to `minimum`, anew for each step */
    DV_SCHEDULE_LINEAR,      /* the same along a line */
    DV_SCHEDULE_STEP,        /* times `factor` after every `every` epochs */
    DV_SCHEDULE_MULTI_STEP,  /* times `factor` at the beginning of each epoch of `milestones` */
    DV_SCHEDULE_EXPONENTIAL, /* times `factor` after every epoch, but not below `minimum` */
    DV_SCHEDULE_KIND_COUNT
} dv_schedule_kind;

/* How the learning rate goes. In front of any kind there may be a warm-up, linear over its steps: from `warmup_from` of
 * the rate, which the step before the first would have, to the whole rate, which the last has; or constant at that
 * share. Cosine, line and exponential begin where the warm-up ends; the epochs of the two step kinds count from the
 * start of training. */
typedef struct dv_schedule {
    dv_schedule_kind kind;
    double rate;         /* 0 to 1000; 0.1 */
    double warmup;       /* in epochs, 0 to 10000; a part of one is fine */
    double warmup_from;  /* share of the rate, 0 to 1; 0 */
    int warmup_constant; /* the share stays what it is, and must not be 0; 0 */
    double minimum;      /* 0 to the rate; 0 */
    int per_epoch;       /* cosine and line: each epoch has the rate of its first step; 0 */
    double factor;       /* 0 to 1; 0.1 */
    size_t every;        /* 1 to 100000 */
    dv_counts milestones;
} dv_schedule;

/* Cosine from 0.1, no warm-up. */
DV_API dv_schedule dv_schedule_default(void);
DV_API dv_status dv_schedule_check(const dv_schedule *schedule, dv_error *error);

/* Reads "constant", "cosine:per=epoch", "step:every=30,factor=0.1", "multistep:at=60+120+160,factor=0.2" or
 * "exponential:factor=0.97" into the kind and its options; rate, minimum and warm-up stay as they are. */
DV_API dv_status dv_schedule_parse(const char *text, dv_schedule *schedule, dv_error *error);

/* The kinds there are: name with options, or NULL past the last. */
DV_API const char *dv_schedule_name_at(size_t index);

/* The learning rate of a step, counted from 0, of a training of `epochs` of `steps_per_epoch` steps. */
DV_API double dv_schedule_rate(const dv_schedule *schedule, uint64_t step, uint64_t steps_per_epoch, uint64_t epochs);

/* ---- averages of the weights --------------------------------------------------------------- */

/* An exponential moving average of parameters and running statistics: after each step
 *     average = d * average + (1 - d) * parameter,  d = min(decay, (1 + step) / (10 + step)) for steps from 0,
 * so that the first steps, which know little, are soon forgotten. It begins as what the weights begin as. */

/* Begins: the averages become copies. All three leave alone a run that was planned without averages. */
DV_API void dv_average_begin(dv_run *run);

/* After a step, the `step`-th from 0. */
DV_API void dv_average_step(double decay, uint64_t step, dv_run *run);

/* Exchanges parameters and statistics with their averages: once to test with the averages, once more to go on. */
DV_API void dv_average_exchange(dv_run *run);

/* ---- mixed images -------------------------------------------------------------------------- */

/* Images of a batch are mixed in pairs, the first with the last, the second with the second last, and so on; each pair
 * has its own share, drawn from a beta distribution with both parameters `alpha`:
 *     mixup   each becomes share x itself + (1 - share) x the other
 *     cutmix  both exchange a rectangle of (1 - share) of their area, at a random place, cut off at the edges
 * The label of the other gets the weight of its part. Where both are on, a coin decides for each batch. */
typedef struct dv_mix_options {
    double mixup;  /* alpha, 0 to 100; 0: off */
    double cutmix; /* likewise */
} dv_mix_options;

DV_API dv_status dv_mix_check(const dv_mix_options *options, dv_error *error);

/* Mixes the batch in the run's input, and sets second labels and weights. What comes of it depends on seed and
 * `batch`, a number of the batch among all of the training, alone. */
DV_API void dv_mix_batch(const dv_mix_options *options, uint64_t seed, uint64_t batch, dv_run *run);

/* ---- the loop ------------------------------------------------------------------------------ */

/* As many workers as make steps fastest, found out in the first ones. */
#define DV_WORKERS_AUTO SIZE_MAX

/* How images come to a run, as dv_loader_options has it; zeros are good. `workers` of dv_train may be DV_WORKERS_AUTO.
 */
typedef struct dv_loading {
    dv_augmentation augmentation; /* of images that are learnt from */
    size_t resize;                /* of images that are tested with */
    dv_image_normalisation normalisation;
    size_t workers, prefetch;
    void (*corrupt)(void *context, const char *text);
    void *context;
} dv_loading;

/* What the loaders of a training, one to learn and one to test, take beside the plan, at most. `input` is the run's. */
DV_API size_t dv_loading_bytes(const dv_loading *loading, const dv_map *input, const dv_dataset *data);

enum { DV_NAME_BYTES = 64, DV_TEXT_BYTES = 512, DV_PATH_BYTES = 4096 };

/* Everything that a training is told. division/options.h has the table of these options: their names, bounds, defaults
 * and help, and functions that set, read and write them as text. A text that is empty was not given.
 *
 * dv_train looks at those of the loop; what the network, its plan and the data are is told by those that it is given.
 * Texts that stand for more than themselves, `schedule_text`, `augment_text` and `normalise_text`, are set through
 * dv_options_set, which sets what they stand for too. */
typedef struct dv_options {
    /* what is trained, with what, and how activations are kept */
    char model[DV_NAME_BYTES];  /* "resnet20" */
    char data[DV_PATH_BYTES];   /* "synthetic" */
    char method[DV_PATH_BYTES]; /* "division" */
    char memory[DV_NAME_BYTES]; /* all that the process may take, as dv_options_memory reads it: the method is chosen
                                   by it (division/budget.h). None: the method is what `method` says */
    double noise; /* most noise that may come of it, by that of the batch; 0: that of published `division`; 0 */
    int prefer;   /* what counts beside, a dv_prefer */
    char profile[DV_PATH_BYTES]; /* file of what values cost, read if it is there, else written; none: it is measured */
    char spill[DV_PATH_BYTES];   /* folder of the file of methods that use one; none: /var/tmp */
    char freeze[DV_TEXT_BYTES];  /* what is not trained, as dv_plan_options has it; none: everything is */
    int precision;               /* of activations: DV_F32 or DV_BF16, a dv_type */
    size_t batch;                /* images, 1 to 2^20; 128 */
    int batch_given;          /* it was set as text, and is not the default: dv_options_fit_batch. Not in the table */
    int batch_auto;           /* with `memory`: it may be made smaller, and `accumulate` larger. Not in the table */
    size_t batch_said;        /* the last number that `batch` was set to as text. Not in the table */
    int rate_given;           /* the rate of `schedule` was set as text. Not in the table */
    size_t side, classes;     /* of the images made, up to 1024, and of the network; 0: the data's */
    size_t threads;           /* 0: as many as OpenMP uses */
    dv_dataset_options split; /* of data without images to test with: 0.1 of it, chosen with seed 1 */
    char tune[DV_NAME_BYTES]; /* how passes of convolutions are chosen, as dv_tune_parse takes it; none: its default */

    /* the loop */
    size_t accumulate;      /* batches whose gradients are averaged before a step, 1 to 65536, those of all ranks
                               counted; 1: one of each rank; 1 */
    int drop_last;          /* leave out the images of an epoch that do not make a whole step; else the last step is of
                               those there are, and each of its images has the same weight; 0 */
    size_t epochs;          /* 1 to 100000; 10 */
    size_t test_every;      /* test after every so many epochs, and after the last; 1 */
    size_t patience;        /* stop after so many epochs without a better test; 0: never; 0 */
    uint64_t steps;         /* stop after so many steps of the optimizer in all; 0: never */
    double save_minutes;    /* save at least so often, not only after each epoch; 0: after epochs alone; 10 */
    uint64_t seed;          /* of weights, order and rounding; 1 */
    double label_smoothing; /* 0 to less than 1; 0 */
    double average;         /* decay of the average of weights, 0 to less than 1; 0: none. The plan must have it too */
    dv_mix_options mix;
    char optimizer[DV_TEXT_BYTES]; /* "sgd", "adamw:beta2=0.95" (division/optimizer.h); "sgd" */
    double weight_decay;           /* of the optimizer, unless its text has a decay, 0 to 1; 5e-4 */
    double momentum;               /* of sgd, unless its text has one, 0 to less than 1; 0.9 */
    int nesterov;                  /* likewise; needs momentum */
    char groups[DV_TEXT_BYTES];    /* of weights with another decay or rate; none */
    double clip;                   /* gradients are scaled down to this norm; 0: never */
    dv_schedule schedule;
    char schedule_text[DV_TEXT_BYTES]; /* "cosine" */
    dv_loading loading;
    char augment_text[DV_TEXT_BYTES];   /* "usual" */
    char normalise_text[DV_TEXT_BYTES]; /* "usual" */

    /* several machines (division/parallel.h) */
    dv_world *world; /* whose ranks train together, each with a batch of its own; NULL: alone. Not in the table */
    size_t ranks;    /* for a plan without a world: how many there will be; 0: one. Not in the table */
    int reduce;      /* what gradients are on their way: DV_REDUCE_F32 or DV_REDUCE_BF16, a dv_reduce */
    int sync_norm;   /* batch norms take their statistics over the images of all ranks; 0 */
    double timeout;  /* seconds that a rank waits for others, 1 to 86400; 60 */

    /* weights to begin with */
    int init_weights;                /* how they are made: a dv_model_initialisation (division/models.h) */
    char init[DV_PATH_BYTES];        /* a file of them; none: made from the seed */
    char init_except[DV_TEXT_BYTES]; /* those whose names begin like this are not taken from it */
} dv_options;

/* The defaults, which the comments above say. */
DV_API dv_options dv_options_default(void);

/* Fails where an option is out of its bounds, or contradicts another. */
DV_API dv_status dv_options_check(const dv_options *options, dv_error *error);

/* Images of each epoch that are not trained on: with drop_last those that do not make a whole step, else those of a
 * last batch that is too small for the run (dv_run_fewest_images). */
DV_API size_t dv_train_left_out(const dv_run *run, const dv_dataset *data, const dv_options *options);

/* How far a training is: all of it that is not in the run. With both, a training goes on to the same bits as if it
 * had never stopped. */
typedef struct dv_train_state {
    uint64_t step;                        /* of the optimizer, those done */
    uint64_t steps_per_epoch;             /* 0: not known yet */
    uint64_t seed;                        /* what the steps were done with */
    uint64_t step_images, data_images;    /* likewise: images of a step, and in all; 0: not known */
    double loss;                          /* sums over the images of the epoch under way */
    uint64_t correct, images;             /* images 0: none is under way */
    double seconds;                       /* of training, in the epoch under way */
    uint64_t all_images;                  /* since the start of training */
    double all_seconds, training_seconds; /* likewise, with tests and without */
    double best_top1;                     /* of the tests so far; NaN: there was none */
    uint64_t best_epoch;                  /* of that test, from 1; 0: there was none, or it is not known */
} dv_train_state;

/* The state before the first step. */
DV_API dv_train_state dv_train_state_default(void);

/* What came of an epoch. */
typedef struct dv_epoch_record {
    size_t epoch;                 /* from 1 */
    uint64_t steps;               /* of the optimizer, since the start of training */
    int complete;                 /* 0: stopped in the middle */
    int tested;                   /* 0: no test was due, or it was stopped; then its two figures are NaN */
    int improved;                 /* test_top1 is the best so far */
    double train_loss, test_loss; /* means over images */
    double train_top1, test_top1; /* in percent */
    double images_per_second;     /* while training */
    double seconds;               /* of the epoch, with its test */
    double learning_rate;         /* of its last step */
    size_t peak_bytes;            /* most memory resident so far */
    size_t activation_bytes;      /* kept from forward to backward, as planned */
    size_t spilled_bytes;         /* of the file that values lie in meanwhile; 0 without one */
    double waited_seconds;        /* of its steps, for that file */
    size_t ranks;                 /* that trained together; images are those of all */
    double network_seconds;       /* that a rank waited for messages, and */
    double others_seconds;        /* ... for ranks that were slower, on average */
    size_t workers;               /* that made batches ahead in the end */
} dv_epoch_record;

/* How far it is, after a step. */
typedef struct dv_train_progress {
    size_t epoch, epochs;     /* from 1 */
    size_t step, steps;       /* of this epoch, from 1; while testing: batches */
    int testing;              /* else training */
    double loss, top1;        /* means of this epoch so far, percent */
    double images_per_second; /* of this epoch so far, since this call */
    double seconds_left;      /* of all epochs; NaN while it can't be known */
    double learning_rate;
    size_t peak_bytes;
} dv_train_progress;

/* Callbacks of a training. Any may be NULL. If one that can fail fails, training ends. */
typedef struct dv_train_callbacks {
    dv_status (*begin)(void *context, dv_error *error); /* before the first step: nothing is wrong with the call */
    void (*progress)(void *context, const dv_train_progress *progress);
    dv_status (*epoch)(void *context, const dv_epoch_record *record, dv_error *error);
    dv_status (*save)(void *context, const dv_train_state *state,
                      dv_error *error);           /* after `epoch`, and when stopped */
    double (*rate)(void *context, uint64_t step); /* the learning rate of a step from 0 on, instead of the schedule's */
    void *context;
    const volatile sig_atomic_t *stop; /* asked for before every step: not 0 ends training, which is no failure */
    void (*workers)(void *context, size_t workers); /* once, where DV_WORKERS_AUTO had a choice: what it chose */
} dv_train_callbacks;

typedef struct dv_train_result {
    dv_epoch_record last; /* epoch 0: there was none */
    int stopped;          /* because of `stop` */
} dv_train_result;

/* Trains the run on the data, tests it after each epoch with running statistics (with averages, where there are), and
 * tells the callbacks. Begins where `state` says and leaves there how far it came. The plan is the run's, and was made
 * with what dv_options_for_plan says. Images are made with the side of the run's input, which must be a square of three
 * channels; its classes must be at least the data's. A loss that is not finite, or more than a million, is
 * DV_ERROR_NONFINITE with step and learning rate. */
DV_API dv_status dv_train(dv_run *run, const dv_plan *plan, const dv_dataset *data, const dv_options *options,
                          const dv_train_callbacks *callbacks, dv_train_state *state, dv_train_result *result,
                          dv_error *error);

/* What a test found. */
typedef struct dv_test_result {
    double loss;       /* mean over the images */
    double top1, top5; /* in percent */
    size_t images;
} dv_test_result;

/* Tests the run on a split, with running statistics. `loading` and `callbacks` may be NULL; of the callbacks `progress`
 * and `stop` count. */
DV_API dv_status dv_test(dv_run *run, const dv_dataset *data, dv_split split, const dv_loading *loading,
                         const dv_train_callbacks *callbacks, dv_test_result *result, dv_error *error);

/* An image of a test, as long as the callback that is told of it. In place of a corrupt image there is another one, as
 * in all that loaders make, with its own index and label. */
typedef struct dv_test_image {
    size_t index; /* in the split */
    int32_t label;
    size_t classes;
    const float *logits; /* [classes] */
} dv_test_image;

typedef void (*dv_test_image_callback)(void *context, const dv_test_image *image);

/* The same, and `image` is told of each image in the order of the split. */
DV_API dv_status dv_test_each(dv_run *run, const dv_dataset *data, dv_split split, const dv_loading *loading,
                              dv_test_image_callback image, void *context, dv_test_result *result, dv_error *error);

/* Epochs that are complete, with their tests. */
DV_API uint64_t dv_train_state_epochs(const dv_train_state *state);

/* True if a training with these options has nothing left to do, neither a step nor a test. False for a state that was
 * not trained yet. */
DV_API int dv_train_is_finished(const dv_train_state *state, const dv_options *options);

/* True if that is because so many epochs were without a better test as `patience` says. */
DV_API int dv_train_lost_patience(const dv_train_state *state, const dv_options *options);

#ifdef __cplusplus
}
#endif

#endif
