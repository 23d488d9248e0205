/* Testing: all images of a split once, with running statistics. */
#include "base/status.h"
#include "train/loop.h"

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
        options.resize = loading->resize;
        options.workers = loading->workers;
        options.prefetch = loading->prefetch;
        options.corrupt = loading->corrupt;
        options.context = loading->context;
    }
    return options;
}

/* Images in the last batch of an epoch if it is not full, else 0. */
static size_t last_images(const dv_run *run, const dv_dataset *data) {
    return dv_dataset_describe(data).images[DV_TRAIN] % dv_run_input_map(run)->images;
}

static bool last_is_too_small(const dv_run *run, const dv_dataset *data) {
    return last_images(run, data) < dv_run_fewest_images(run);
}

size_t dv_train_left_out(const dv_run *run, const dv_dataset *data, const dv_options *options) {
    if (options->drop_last)
        return dv_dataset_describe(data).images[DV_TRAIN] % (dv_run_input_map(run)->images * options->accumulate);
    return last_is_too_small(run, data) ? last_images(run, data) : 0;
}

dv_status dv_learning_loader(dv_run *run, const dv_dataset *data, const dv_options *options, dv_loader **loader,
                             dv_error *error) {
    dv_loader_options how = loader_options(dv_run_input_map(run), DV_TRAIN, true, &options->loading);
    how.seed = options->seed;
    how.drop_last = options->drop_last || last_is_too_small(run, data);
    return dv_loader_new(data, &how, loader, error);
}

dv_status dv_testing_loader(dv_run *run, const dv_dataset *data, dv_split split, const dv_loading *loading,
                            dv_loader **loader, dv_error *error) {
    dv_loader_options how = loader_options(dv_run_input_map(run), split, false, loading);
    return dv_loader_new(data, &how, loader, error);
}

size_t dv_loading_bytes(const dv_loading *loading, const dv_map *input, const dv_dataset *data) {
    dv_loader_options learning = loader_options(input, DV_TRAIN, true, loading);
    dv_loader_options testing = loader_options(input, DV_TEST, false, loading);
    return dv_loader_bytes(data, &learning) + dv_loader_bytes(data, &testing);
}

static void tell(const dv_train_callbacks *callbacks, size_t epoch, size_t epochs, size_t done, size_t batches,
                 const dv_tally *sum, double seconds) {
    if (callbacks == NULL || callbacks->progress == NULL)
        return;
    dv_train_progress progress = {.epoch = epoch,
                                  .epochs = epochs,
                                  .step = done,
                                  .steps = batches,
                                  .testing = 1,
                                  .loss = dv_mean(sum->loss, sum->images),
                                  .top1 = dv_percent(sum->correct, sum->images),
                                  .images_per_second = (double)sum->images / seconds,
                                  .seconds_left = NAN,
                                  .learning_rate = NAN,
                                  .peak_bytes = dv_memory_peak()};
    callbacks->progress(callbacks->context, &progress);
}

/* Adds the batch, from 1, to what it says when it failed. */
static dv_status explain(dv_error *error, dv_status status, size_t batch) {
    return error == NULL ? status : dv_fail(error, status, "test, batch %zu: %.200s", batch, error->text);
}

/* Tests with one batch, which may be the last and smaller than the others. */
static dv_status test_batch(dv_run *run, dv_loader *loader, size_t index, dv_tally *sum, dv_error *error) {
    dv_step_result result;
    size_t count;
    DV_TRY(dv_loader_fill(loader, 0, index, dv_run_input(run), dv_run_labels(run), &count, error));
    DV_TRY(dv_run_set_images(run, count, error));
    dv_status status = dv_run_evaluate(run, &result, error);
    if (status != DV_OK)
        return explain(error, status, index + 1);
    dv_tally_add(sum, &result, count);
    return DV_OK;
}

dv_status dv_test_epoch(dv_run *run, dv_loader *loader, size_t epoch, size_t epochs,
                        const dv_train_callbacks *callbacks, dv_tally *sum, dv_error *error) {
    double start = dv_now();
    size_t batches = dv_loader_batches(loader), images = dv_run_images(run);
    dv_status status = DV_OK;
    for (size_t i = 0; i < batches && status == DV_OK && !dv_stop_asked(callbacks); i++) {
        status = test_batch(run, loader, i, sum, error);
        if (status == DV_OK)
            tell(callbacks, epoch, epochs, i + 1, batches, sum, dv_now() - start);
    }
    (void)dv_run_set_images(run, images, NULL);
    return status;
}

dv_status dv_test(dv_run *run, const dv_dataset *data, dv_split split, const dv_loading *loading,
                  const dv_train_callbacks *callbacks, dv_test_result *result, dv_error *error) {
    dv_tally sum = {0};
    dv_loader *loader;
    if (run == NULL || data == NULL || result == NULL)
        return dv_fail(error, DV_ERROR_ARGUMENT, "test: run, data or result is NULL");
    DV_TRY(dv_check_input(run, error));
    DV_TRY(dv_testing_loader(run, data, split, loading, &loader, error));
    dv_status status = dv_test_epoch(run, loader, 1, 1, callbacks, &sum, error);
    dv_loader_free(loader);
    if (status == DV_ERROR_NONFINITE && error != NULL)
        return dv_fail(error, status, "%.200s: check the data and the training of these weights", error->text);
    DV_TRY(status);
    *result = (dv_test_result){.loss = dv_mean(sum.loss, sum.images),
                               .top1 = dv_percent(sum.correct, sum.images),
                               .top5 = dv_percent(sum.correct5, sum.images),
                               .images = sum.images};
    return DV_OK;
}
