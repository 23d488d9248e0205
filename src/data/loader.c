/* Batches of images: which ones, in which order, normalised, in the type of the graph.
 *
 * The images of a batch are made in parallel, each by whichever thread comes first; what they are depends on
 * seed, epoch and index alone. Made-up images are made as fast as they are used, so a batch is made when it is
 * asked for. For data that has to be read, a thread that works ahead goes between dv_loader_fill, which
 * would take the next batch off a ring of finished ones, and make_batch, which the thread would call. */
#include "base/float16.h"
#include "base/status.h"
#include "data/augment.h"
#include "data/dataset.h"
#include "data/order.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

enum { LEVELS = 256 };

struct dv_loader {
    const dv_dataset *data; /* not owned */
    dv_loader_options options;
    size_t images, elements; /* in an epoch; of an image */
    size_t threads;
    uint8_t *bytes; /* [threads][2][elements]: an image as it is, and varied */
    union {
        float f32[LEVELS];
        uint16_t bf16[LEVELS];
    } normal[DV_DATA_CHANNELS]; /* what each byte becomes */
};

static void fill_table(dv_loader *loader, size_t channel) {
    float mean = loader->data->mean[channel], scale = 1 / loader->data->deviation[channel];
    for (int level = 0; level < LEVELS; level++) {
        float normal = ((float)level - mean) * scale;
        if (loader->options.type == DV_F32)
            loader->normal[channel].f32[level] = normal;
        else
            loader->normal[channel].bf16[level] = dv_bf16_nearest(normal);
    }
}

static dv_status check(const dv_dataset *data, const dv_loader_options *options, dv_error *error) {
    if (options->split != DV_TRAIN && options->split != DV_TEST)
        return dv_fail(error, DV_ERROR_ARGUMENT, "loader: split %d is none", (int)options->split);
    if (options->type != DV_F32 && options->type != DV_BF16)
        return dv_fail(error, DV_ERROR_UNSUPPORTED, "loader: batches of %s: give f32 or bf16",
                       dv_type_name(options->type));
    if (options->batch == 0)
        return dv_fail(error, DV_ERROR_OPTION, "batch: 0: must be at least 1");
    size_t images = data->shape.images[options->split];
    if (images < (options->drop_last ? options->batch : 1))
        return dv_fail(error, DV_ERROR_OPTION, "batch: %zu: the data has %zu images: use a smaller batch or more data",
                       options->batch, images);
    return DV_OK;
}

dv_status dv_loader_new(const dv_dataset *dataset, const dv_loader_options *options, dv_loader **loader,
                        dv_error *error) {
    if (dataset == NULL || options == NULL || loader == NULL)
        return dv_fail(error, DV_ERROR_ARGUMENT, "loader: dataset, options or loader is NULL");
    DV_TRY(check(dataset, options, error));
    dv_loader *made = calloc(1, sizeof *made);
    if (made == NULL)
        return dv_fail(error, DV_ERROR_MEMORY, "no memory for a loader: free some");
    made->data = dataset;
    made->options = *options;
    made->images = dataset->shape.images[options->split];
    made->elements = dataset->shape.side * dataset->shape.side * DV_DATA_CHANNELS;
    made->threads = (size_t)omp_get_max_threads();
    made->bytes = malloc(2 * made->threads * made->elements);
    for (size_t channel = 0; channel < DV_DATA_CHANNELS; channel++)
        fill_table(made, channel);
    *loader = made;
    if (made->bytes != NULL)
        return DV_OK;
    dv_loader_free(made);
    return dv_fail(error, DV_ERROR_MEMORY, "no memory for a loader: free some");
}

void dv_loader_free(dv_loader *loader) {
    if (loader == NULL)
        return;
    free(loader->bytes);
    free(loader);
}

size_t dv_loader_batches(const dv_loader *loader) {
    size_t batch = loader->options.batch;
    return (loader->images + (loader->options.drop_last ? 0 : batch - 1)) / batch;
}

/* Writes an image's bytes [elements] as numbers, at its place of the batch. */
static void normalise(const dv_loader *loader, const uint8_t *bytes, size_t place, void *images) {
    if (loader->options.type == DV_F32) {
        float *dst = (float *)images + place * loader->elements;
        for (size_t i = 0; i < loader->elements; i += DV_DATA_CHANNELS)
            for (size_t channel = 0; channel < DV_DATA_CHANNELS; channel++)
                dst[i + channel] = loader->normal[channel].f32[bytes[i + channel]];
    } else {
        uint16_t *dst = (uint16_t *)images + place * loader->elements;
        for (size_t i = 0; i < loader->elements; i += DV_DATA_CHANNELS)
            for (size_t channel = 0; channel < DV_DATA_CHANNELS; channel++)
                dst[i + channel] = loader->normal[channel].bf16[bytes[i + channel]];
    }
}

/* Makes one image of a batch. */
static dv_status make_image(const dv_loader *loader, uint64_t epoch, size_t index, size_t place, uint8_t *bytes,
                            void *images, int32_t *labels, dv_error *error) {
    const dv_dataset *data = loader->data;
    DV_TRY(data->kind->load(data, loader->options.split, index, bytes, &labels[place], error));
    if (loader->options.augment && (data->padding > 0 || data->flip)) {
        dv_random key = dv_random_key((uint64_t[]){loader->options.seed, epoch, index}, 3);
        dv_window window = dv_window_draw(key, data->padding, data->flip);
        dv_window_cut(&window, bytes, data->shape.side, bytes + loader->elements);
        bytes += loader->elements;
    }
    normalise(loader, bytes, place, images);
    return DV_OK;
}

/* Makes the first `count` images of a batch. Of several failures the one of the first image is told. */
static dv_status make_batch(dv_loader *loader, uint64_t epoch, size_t batch, size_t count, void *images,
                            int32_t *labels, dv_error *error) {
    dv_order order = dv_order_new(loader->options.seed, epoch, loader->images);
    size_t first = batch * loader->options.batch, failed = count;
    dv_status status = DV_OK;
#pragma omp parallel for num_threads(loader->threads) schedule(dynamic, 1)
    for (size_t place = 0; place < count; place++) {
        dv_error inner;
        uint8_t *bytes = loader->bytes + (size_t)omp_get_thread_num() * 2 * loader->elements;
        size_t index = loader->options.shuffle ? (size_t)dv_order_at(&order, first + place) : first + place;
        dv_status one = make_image(loader, epoch, index, place, bytes, images, labels, &inner);
        if (one == DV_OK)
            continue;
#pragma omp critical(dv_loader_failure)
        if (place < failed) {
            failed = place;
            status = one;
            if (error != NULL)
                *error = inner;
        }
    }
    return status;
}

dv_status dv_loader_fill(dv_loader *loader, uint64_t epoch, size_t batch, void *images, int32_t *labels, size_t *count,
                         dv_error *error) {
    size_t size = loader->options.batch, bytes = loader->options.type == DV_F32 ? sizeof(float) : sizeof(uint16_t);
    if (batch >= dv_loader_batches(loader))
        return dv_fail(error, DV_ERROR_ARGUMENT, "loader: batch %zu of %zu", batch, dv_loader_batches(loader));
    size_t left = loader->images - batch * size;
    *count = left < size ? left : size;
    DV_TRY(make_batch(loader, epoch, batch, *count, images, labels, error));
    memset((char *)images + *count * loader->elements * bytes, 0, (size - *count) * loader->elements * bytes);
    for (size_t place = *count; place < size; place++)
        labels[place] = DV_NO_LABEL;
    return DV_OK;
}
