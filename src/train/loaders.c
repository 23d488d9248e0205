/* The loaders of a training: one of images that are varied and shuffled, to be learnt from, and one of images as they
 * are, to be tested with. */
#include "train/loaders.h"

#include "base/sizes.h"
#include "base/status.h"
#include "data/loader.h"
#include "train/ranks.h"

#include <division/options.h>
#include <stdbool.h>

dv_status dv_check_input(dv_run *run, dv_error *error) {
    const dv_map *map = dv_run_input_map(run);
    if (map->rank != 2 || map->channels != DV_DATA_CHANNELS || map->sides[0] != map->sides[1])
        return dv_fail(error, DV_ERROR_ARGUMENT,
                       "train: the network takes %zu channels of rank %d: build it for square images of %d",
                       map->channels, map->rank, DV_DATA_CHANNELS);
    if (dv_run_logits_map(run)->rank != 0 || !dv_run_second_labels(run))
        return dv_fail(error, DV_ERROR_ARGUMENT,
                       "train: data sets have a label per image, and the network's loss takes something else: train it "
                       "by dv_run_forward, dv_run_loss and dv_run_backward");
    return DV_OK;
}

static dv_loader_options loader_options(const dv_map *input, dv_split split, bool learning, const dv_loading *loading) {
    dv_loader_options options = {.split = split,
                                 .type = input->type,
                                 .batch = input->images,
                                 .shuffle = learning,
                                 .augment = learning,
                                 .side = input->sides[0]};
    if (loading != NULL) {
        options.augmentation = loading->augmentation;
        options.normalisation = loading->normalisation;
        options.resize = loading->resize;
        options.workers = loading->workers != DV_WORKERS_AUTO ? loading->workers : 0; /* at first */
        options.prefetch = loading->prefetch;
        options.corrupt = loading->corrupt;
        options.context = loading->context;
    }
    return options;
}

/* Images in the last batch of an epoch, on all ranks, if it is not full, else 0. */
static size_t last_images(const dv_run *run, const dv_dataset *data, size_t ranks) {
    return dv_dataset_describe(data).images[DV_TRAIN] % (dv_run_input_map(run)->images * ranks);
}

static bool last_is_too_small(const dv_run *run, const dv_dataset *data, size_t ranks) {
    return last_images(run, data, ranks) < dv_run_fewest_images(run) * ranks;
}

size_t dv_train_left_out(const dv_run *run, const dv_dataset *data, const dv_options *options) {
    if (options->drop_last)
        return dv_dataset_describe(data).images[DV_TRAIN] % (dv_run_input_map(run)->images * options->accumulate);
    size_t ranks = dv_options_ranks(options);
    return last_is_too_small(run, data, ranks) ? last_images(run, data, ranks) : 0;
}

dv_status dv_learning_loader(dv_run *run, const dv_dataset *data, const dv_options *options, dv_loader **loader,
                             dv_error *error) {
    dv_loader_options how = loader_options(dv_run_input_map(run), DV_TRAIN, true, &options->loading);
    how.seed = options->seed;
    how.drop_last = options->drop_last || last_is_too_small(run, data, dv_options_ranks(options));
    how.ranks = dv_world_ranks(options->world);
    how.rank = dv_world_rank(options->world);
    return dv_loader_new(data, &how, loader, error);
}

dv_status dv_testing_loader(dv_run *run, const dv_dataset *data, dv_split split, const dv_loading *loading,
                            const dv_world *world, dv_loader **loader, dv_error *error) {
    dv_loader_options how = loader_options(dv_run_input_map(run), split, false, loading);
    how.ranks = dv_world_ranks(world);
    how.rank = dv_world_rank(world);
    return dv_loader_new(data, &how, loader, error);
}

size_t dv_loading_bytes(const dv_loading *loading, const dv_map *input, const dv_dataset *data) {
    dv_loader_options learning = loader_options(input, DV_TRAIN, true, loading);
    dv_loader_options testing = loader_options(input, DV_TEST, false, loading);
    size_t bytes = dv_loader_bytes(data, &learning) + dv_loader_bytes(data, &testing);
    if (loading == NULL || loading->workers != DV_WORKERS_AUTO)
        return bytes;
    learning.workers = testing.workers = dv_loader_most_workers(data);
    return dv_larger(bytes, dv_loader_bytes(data, &learning) + dv_loader_bytes(data, &testing));
}

dv_loader_options dv_options_loader(const dv_options *options, const dv_dataset *data) {
    size_t side = options->side > 0 ? options->side : dv_dataset_describe(data).side;
    return (dv_loader_options){.side = side,
                               .resize = options->loading.resize,
                               .augmentation = options->loading.augmentation,
                               .normalisation = options->loading.normalisation};
}
