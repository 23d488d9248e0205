/* Testing: all images of a split once, with running statistics. */
#include "base/float16.h"
#include "base/status.h"
#include "data/loader.h"
#include "train/loaders.h"
#include "train/loop.h"

#include <stdlib.h>

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

/* Tells of the images of a batch, the last that the loader filled. */
static void tell_images(dv_run *run, const dv_loader *loader, size_t count, const dv_test_listener *listener) {
    const dv_map *map = dv_run_logits_map(run);
    const char *logits = dv_run_logits(run);
    const int32_t *labels = dv_run_labels(run);
    size_t bytes = map->channels * dv_type_bytes(map->type);
    dv_test_image image = {.classes = map->channels, .logits = listener->logits};
    for (size_t i = 0; i < count; i++) {
        image.index = dv_loader_shown(loader, i);
        image.label = labels[i];
        dv_numbers_to_f32(map->type, logits + i * bytes, map->channels, listener->logits);
        listener->image(listener->context, &image);
    }
}

/* Tests with one batch, which may be the last and smaller than the others. */
static dv_status test_batch(dv_run *run, dv_loader *loader, size_t index, const dv_test_listener *listener,
                            dv_tally *sum, dv_error *error) {
    dv_step_result result;
    size_t count;
    DV_TRY(dv_loader_fill(loader, 0, index, dv_run_input(run), dv_run_labels(run), &count, error));
    if (count == 0) /* the other ranks have all of it */
        return DV_OK;
    DV_TRY(dv_run_set_images(run, count, error));
    dv_status status = dv_run_evaluate(run, &result, error);
    if (status != DV_OK)
        return explain(error, status, index + 1);
    dv_tally_add(sum, &result, count);
    if (listener != NULL)
        tell_images(run, loader, count, listener);
    return DV_OK;
}

dv_status dv_test_epoch(dv_run *run, dv_loader *loader, size_t epoch, size_t epochs,
                        const dv_train_callbacks *callbacks, const dv_test_listener *listener, dv_tally *sum,
                        dv_error *error) {
    double start = dv_now();
    size_t batches = dv_loader_batches(loader), images = dv_run_images(run);
    dv_status status = DV_OK;
    for (size_t i = 0; i < batches && status == DV_OK && !dv_stop_asked(callbacks); i++) {
        status = test_batch(run, loader, i, listener, sum, error);
        if (status == DV_OK)
            tell(callbacks, epoch, epochs, i + 1, batches, sum, dv_now() - start);
    }
    (void)dv_run_set_images(run, images, NULL);
    return status;
}

/* What both tests do; `listener` may be NULL. */
static dv_status test(dv_run *run, const dv_dataset *data, dv_split split, const dv_loading *loading,
                      const dv_train_callbacks *callbacks, const dv_test_listener *listener, dv_test_result *result,
                      dv_error *error) {
    dv_tally sum = {0};
    dv_loader *loader;
    DV_TRY(dv_check_input(run, error));
    DV_TRY(dv_testing_loader(run, data, split, loading, NULL, &loader, error));
    dv_status status = dv_test_epoch(run, loader, 1, 1, callbacks, listener, &sum, error);
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

dv_status dv_test(dv_run *run, const dv_dataset *data, dv_split split, const dv_loading *loading,
                  const dv_train_callbacks *callbacks, dv_test_result *result, dv_error *error) {
    if (run == NULL || data == NULL || result == NULL)
        return dv_fail(error, DV_ERROR_ARGUMENT, "test: run, data or result is NULL");
    return test(run, data, split, loading, callbacks, NULL, result, error);
}

dv_status dv_test_each(dv_run *run, const dv_dataset *data, dv_split split, const dv_loading *loading,
                       dv_test_image_callback image, void *context, dv_test_result *result, dv_error *error) {
    if (run == NULL || data == NULL || image == NULL || result == NULL)
        return dv_fail(error, DV_ERROR_ARGUMENT, "test: run, data, image or result is NULL");
    dv_test_listener listener = {.image = image, .context = context};
    listener.logits = malloc(dv_run_logits_map(run)->channels * sizeof *listener.logits);
    if (listener.logits == NULL)
        return dv_fail(error, DV_ERROR_MEMORY, "no memory for a test: free some");
    dv_status status = test(run, data, split, loading, NULL, &listener, result, error);
    free(listener.logits);
    return status;
}
