/* The options of a training, by name: the table that the program's command line, recipes and the config.json of run
 * folders are made from.
 *
 *     dv_options options = dv_options_default();
 *     dv_options_set(&options, "model", "resnet18_cifar", &error);
 *     dv_options_set(&options, "lr", "0.05", &error);
 *     dv_options_read(&options, "recipes/resnet18_cifar10", &error);
 *
 * - Threads: Any thread may read the table. One set of options must not be changed by one thread while another uses it.
 * - Fork: A child may use what it inherited.
 * - Freeing: Options hold all their text: there is nothing to free, and a copy is a whole one. */
#ifndef DIVISION_OPTIONS_H
#define DIVISION_OPTIONS_H

#include <division/budget.h>
#include <division/data.h>
#include <division/export.h>
#include <division/graph.h>
#include <division/option.h>
#include <division/recipe.h>
#include <division/status.h>
#include <division/train.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The index-th option, for help and bounds; NULL past the last. Static. */
DV_API const dv_option *dv_options_at(size_t index);

/* Sets an option from text. An unknown name is DV_ERROR_OPTION with the nearest there is, a value that it does not take
 * one with what it does take; options are then as they were. A flag also takes NULL, which is yes. */
DV_API dv_status dv_options_set(dv_options *options, const char *name, const char *text, dv_error *error);

/* Writes the value of an option into text[bytes], as dv_options_set takes it; nothing where it was not given. */
DV_API dv_status dv_options_get(const dv_options *options, const char *name, char *text, size_t bytes, dv_error *error);

/* Reads a recipe, a config.json, or that of a run folder (division/folder.h) over the options. Options that belong to
 * one call, dv_option.this_call, are refused. Mistakes are told with file and line. */
DV_API dv_status dv_options_read(dv_options *options, const char *path, dv_error *error);

/* The same with a recipe that has been read; `name` is what messages call it. */
DV_API dv_status dv_options_apply(dv_options *options, const dv_recipe *recipe, const char *name, dv_error *error);

/* Writes all options, but those of one call, as one JSON object with a newline, which dv_options_read reads. */
enum { DV_OPTIONS_JSON_BYTES = 1 << 16 };
DV_API dv_status dv_options_json(const dv_options *options, char text[DV_OPTIONS_JSON_BYTES], dv_error *error);

/* The network and the plan of its training that the options ask for. `shape`, the data's, says how large images are and
 * how many classes there are where the options do not; NULL: as the model has them. The caller frees both; on failure
 * neither is there. */
DV_API dv_status dv_options_plan(const dv_options *options, const dv_dataset_shape *shape, dv_graph **graph,
                                 dv_plan **plan, dv_error *error);

/* Bytes that the option `memory` stands for: "600MB", "1.5GiB", "500000000"; "50%" of what is free, and "auto" for all
 * of it. More than is free is an error that says what would do. */
DV_API dv_status dv_options_memory(const dv_options *options, size_t *bytes, dv_error *error);

/* What budgets come to: probes the network that the options ask for with a few images of the data (NULL: made-up ones),
 * and draws the curve (division/budget.h). The probe takes at most what `memory` says, if it is given. Beside the plan
 * a process has `beside` bytes: program, libraries and loaders. */
DV_API dv_status dv_options_budget(const dv_options *options, const dv_dataset *data, dv_budget **budget,
                                   size_t *beside, dv_error *error);

/* What a process with a plan of so many bytes may take in all, `beside` included: the least `memory` with which that
 * plan can be chosen. There is a reserve in it, for buffers of files, stacks, and pages of libraries that are touched
 * late. */
DV_API size_t dv_memory_needed(size_t planned, size_t beside);

/* What was chosen, next to what it is compared with. */
typedef struct dv_chosen {
    size_t memory;          /* that was allowed */
    size_t planned, beside; /* bytes of the plan, and all other that the process takes */
    double noise, seconds;  /* predicted, as dv_budget_point has them */
    size_t none_planned;    /* of `none` */
    double none_seconds;    /* ... and the time of a step */
    double division_noise;  /* of published `division` */
} dv_chosen;

/* Chooses by `memory`: sets the method; with `batch_auto` also `batch` and `accumulate`, whose product stays.
 * DV_ERROR_OPTION with the least that would do, where it is too little. */
DV_API dv_status dv_options_choose(dv_options *options, const dv_dataset *data, dv_chosen *chosen, dv_error *error);

/* Makes the default batch smaller for data of fewer images, and the default rate by as much: that is for 128 images,
 * and a step of two goes astray with it. A batch that was set, and is larger than the data, is an error. Planning for
 * data begins with this, as dv_training_new does. */
DV_API dv_status dv_options_fit_batch(dv_options *options, const dv_dataset_shape *shape, dv_error *error);

/* For plans of a caller's own network: sets what the options ask of any plan of theirs, that is method, spilling,
 * freezing, optimizer, groups, clipping, averages, and gradients, which are transient unless batches are accumulated or
 * gradients clipped. The optimizer's text is written into `text`; it and the options must live until the plan is made.
 */
enum { DV_OPTIMIZER_TEXT_BYTES = 640 };
DV_API dv_status dv_options_for_plan(const dv_options *options, char text[DV_OPTIMIZER_TEXT_BYTES],
                                     dv_plan_options *plan, dv_error *error);

/* What loaders of the data are told of images: their side, how they are varied, normalised and tested
 * with. */
DV_API dv_loader_options dv_options_loader(const dv_options *options, const dv_dataset *data);

#ifdef __cplusplus
}
#endif

#endif
