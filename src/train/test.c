/* Testing: all images of a split once, with running statistics. */
#include "base/status.h"
#include "train/loaders.h"
#include "train/loop.h"

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
