/* Batches of images: which ones, in which order, normalised, in the type of the graph.
 *
 * Images are made as bytes, by workers ahead of the trainer or by its own threads (prefetch.c); what they are depends
 * on seed, epoch and index alone. Normalising is left for when a batch is asked for: bytes take a quarter of the memory
 * that numbers do. */
#include "data/loader.h"
#include "base/sizes.h"
#include "base/status.h"
#include "data/augmentation.h"
#include "data/normalisation.h"
#include "data/normaliser.h"
#include "data/prefetch.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_SIDE = 1024,
    MOST_RESIZE = 2048,
    MOST_WORKERS = 256,
    MOST_CHOSEN = 16,
    MOST_PREFETCH = 64,
    FEW_CORRUPT = 3
};

struct dv_loader {
    dv_prefetch_options options;
    dv_prefetch *prefetch;
    size_t elements; /* of an image */
    uint8_t *known;  /* a bit for each image that is known to be corrupt */
    size_t corrupt;  /* how many those are */
    size_t *shown;   /* [batch]: the images of the last batch */
    dv_normaliser normaliser;
};

/* ---- options ------------------------------------------------------------------------------- */

static dv_status check_batch(const dv_dataset *data, const dv_loader_options *options, dv_error *error) {
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
    if (options->rank > 0 && options->rank >= options->ranks)
        return dv_fail(error, DV_ERROR_ARGUMENT, "loader: rank %zu of %zu", options->rank, options->ranks);
    return DV_OK;
}

static dv_status check_views(const dv_loader_options *options, dv_error *error) {
    DV_TRY(dv_check_count("side", options->side, 1, MOST_SIDE, error));
    DV_TRY(dv_check_count("resize", options->resize, options->side, MOST_RESIZE, error));
    DV_TRY(dv_check_count("workers", options->workers, 0, MOST_WORKERS, error));
    DV_TRY(dv_check_count("prefetch", options->prefetch, 1, MOST_PREFETCH, error));
    DV_TRY(dv_augmentation_check(&options->augmentation, error));
    DV_TRY(dv_normalisation_check(&options->normalisation, error));
    if (options->augmentation.crop == DV_CROP_REFLECT && options->augmentation.padding >= options->side)
        return dv_fail(error, DV_ERROR_OPTION, "augmentation: padding: %zu: must be less than the side, %zu",
                       options->augmentation.padding, options->side);
    return DV_OK;
}

/* The `resize` nearest to a given one at which varied images are shown too. A part of an image that fills the side
 * shows it as large as one that was resized to more than the side. */
static size_t nearest_trained(const dv_loader_options *options, size_t resize) {
    const dv_augmentation *how = &options->augmentation;
    double side = (double)options->side;
    if (how->crop == DV_CROP_NONE)
        return resize;
    if (how->crop != DV_CROP_RESIZED)
        return options->side;
    double least = ceil(side / sqrt(how->most_area)), most = floor(side / sqrt(how->least_area));
    return (size_t)fmax(least, fmin(most, (double)resize));
}

/* Parts of photographs show things larger than the whole does: a test makes up for some of that. Other variations show
 * images as large as they are, and so does their test. */
static size_t usual_resize(const dv_dataset *data, const dv_loader_options *options) {
    bool parts = data->kind->fetch != NULL && options->augmentation.crop == DV_CROP_RESIZED;
    return nearest_trained(options, parts ? options->side * 8 / 7 : options->side);
}

/* Puts in what the zeros of the options stand for. */
static dv_prefetch_options resolve(const dv_dataset *data, const dv_loader_options *options) {
    dv_prefetch_options made = {.data = data, .loader = *options};
    dv_loader_options *loader = &made.loader;
    if (loader->side == 0)
        loader->side = data->shape.side;
    if (loader->prefetch == 0)
        loader->prefetch = 2;
    if (loader->ranks == 0)
        loader->ranks = 1;
    if (loader->augmentation.crop == DV_CROP_USUAL)
        loader->augmentation = data->usual;
    if (dv_normalisation_is_usual(&loader->normalisation))
        loader->normalisation = data->normalisation;
    if (loader->resize == 0)
        loader->resize = usual_resize(data, loader);
    if (options->batch == 0 || options->split < 0 || options->split >= DV_SPLIT_COUNT)
        return made;
    made.images = data->shape.images[options->split];
    size_t whole = options->batch * loader->ranks;
    made.batches = (made.images + (options->drop_last ? 0 : whole - 1)) / whole;
    return made;
}

size_t dv_loader_resize(const dv_dataset *dataset, const dv_loader_options *options) {
    return resolve(dataset, options).loader.resize;
}

dv_image_normalisation dv_loader_normalisation(const dv_dataset *dataset, const dv_loader_options *options) {
    return resolve(dataset, options).loader.normalisation;
}

int dv_loader_scales_differ(const dv_dataset *dataset, const dv_loader_options *options) {
    dv_loader_options made = resolve(dataset, options).loader;
    return nearest_trained(&made, made.resize) != made.resize;
}

/* ---- beginning and end --------------------------------------------------------------------- */

size_t dv_loader_bytes(const dv_dataset *dataset, const dv_loader_options *options) {
    dv_prefetch_options resolved = resolve(dataset, options);
    return sizeof(dv_loader) + resolved.images / 8 + 1 + resolved.loader.batch * sizeof(size_t) +
           dv_prefetch_bytes(&resolved);
}

dv_status dv_loader_new(const dv_dataset *dataset, const dv_loader_options *options, dv_loader **loader,
                        dv_error *error) {
    if (dataset == NULL || options == NULL || loader == NULL)
        return dv_fail(error, DV_ERROR_ARGUMENT, "loader: dataset, options or loader is NULL");
    DV_TRY(check_batch(dataset, options, error));
    dv_prefetch_options resolved = resolve(dataset, options);
    DV_TRY(check_views(&resolved.loader, error));
    dv_loader *made = calloc(1, sizeof *made);
    uint8_t *known = calloc(resolved.images / 8 + 1, 1);
    size_t *shown = calloc(resolved.loader.batch, sizeof *shown);
    dv_status status = DV_ERROR_MEMORY;
    if (made != NULL && known != NULL && shown != NULL)
        status = dv_prefetch_new(&resolved, &made->prefetch, error);
    else
        dv_set_error(error, status, "no memory for a loader: free some");
    if (status != DV_OK) {
        free(known);
        free(shown);
        free(made);
        return status;
    }
    made->options = resolved;
    made->known = known;
    made->shown = shown;
    made->elements = resolved.loader.side * resolved.loader.side * DV_DATA_CHANNELS;
    dv_normaliser_init(&made->normaliser, &resolved.loader.normalisation);
    *loader = made;
    return DV_OK;
}

size_t dv_loader_most_workers(const dv_dataset *dataset) {
    size_t cores = (size_t)omp_get_num_procs();
    return dataset->kind->fetch != NULL && cores > 1 ? dv_smaller(cores, MOST_CHOSEN) : 0;
}

dv_status dv_loader_set_workers(dv_loader *loader, size_t workers, dv_error *error) {
    dv_prefetch_free(loader->prefetch);
    loader->prefetch = NULL;
    loader->options.loader.workers = workers;
    return dv_prefetch_new(&loader->options, &loader->prefetch, error);
}

void dv_loader_free(dv_loader *loader) {
    if (loader == NULL)
        return;
    dv_prefetch_free(loader->prefetch);
    free(loader->known);
    free(loader->shown);
    free(loader);
}

size_t dv_loader_batches(const dv_loader *loader) {
    return loader->options.batches;
}

size_t dv_loader_place(const dv_loader *loader, size_t batch) {
    return dv_prefetch_share(&loader->options, batch).first;
}

size_t dv_loader_shown(const dv_loader *loader, size_t place) {
    return loader->shown[place];
}

size_t dv_loader_corrupt(const dv_loader *loader) {
    return loader->corrupt;
}

/* ---- batches ------------------------------------------------------------------------------- */

/* Images that may be corrupt: a hundredth; where that is less than a few, a few, as long as it is no more than a tenth.
 */
static size_t most_corrupt_of(size_t images) {
    return dv_larger(images / 100, dv_smaller(FEW_CORRUPT, images / 10));
}

/* Those that are held out are a few of one folder: of them as many may be corrupt as of the folder, but no more than
 * half. */
static size_t most_corrupt(const dv_prefetch_options *options) {
    const dv_dataset_shape *shape = &options->data->shape;
    if (options->loader.split != DV_TEST || shape->held_out == 0)
        return most_corrupt_of(options->images);
    return dv_smaller(most_corrupt_of(shape->images[DV_TRAIN] + shape->held_out), options->images / 2);
}

/* Notes a corrupt image the first time that it is met, and tells of it. */
static dv_status note_corrupt(dv_loader *loader, size_t index, const dv_error *damage, dv_error *error) {
    uint8_t bit = (uint8_t)(1 << index % 8);
    if (loader->known[index / 8] & bit)
        return DV_OK;
    loader->known[index / 8] |= bit;
    loader->corrupt++;
    if (loader->options.loader.corrupt != NULL)
        loader->options.loader.corrupt(loader->options.loader.context, damage->text);
    if (loader->corrupt <= most_corrupt(&loader->options))
        return DV_OK;
    return dv_fail(error, DV_ERROR_FORMAT,
                   "%.140s; with this, %zu of %zu images are corrupt, too many: repair or remove them", damage->text,
                   loader->corrupt, loader->options.images);
}

/* What was wrong with a batch. In the order of its images, so that it is the same whoever made them. */
static dv_status inspect(dv_loader *loader, const dv_slot *slot, dv_error *error) {
    if (slot->error.status != DV_OK) {
        if (error != NULL)
            *error = slot->error;
        return slot->error.status;
    }
    for (size_t place = 0; place < slot->count; place++)
        if (slot->damage[place].status != DV_OK)
            DV_TRY(note_corrupt(loader, dv_prefetch_index(&loader->options, slot->epoch, slot->batch, place),
                                &slot->damage[place], error));
    return DV_OK;
}

/* Writes a batch as numbers. */
static void write_batch(const dv_loader *loader, const dv_slot *slot, void *images, int32_t *labels) {
    dv_type type = loader->options.loader.type;
#pragma omp parallel for schedule(static) if (loader->options.loader.workers == 0)
    for (size_t place = 0; place < slot->count; place++) {
        labels[place] = slot->labels[place];
        dv_normaliser_write(&loader->normaliser, type, slot->bytes + place * loader->elements, loader->elements,
                            (char *)images + place * loader->elements * dv_type_bytes(type));
    }
}

/* Copies a batch as it is. */
static void copy_batch(const dv_loader *loader, const dv_slot *slot, void *images, int32_t *labels) {
    memcpy(images, slot->bytes, slot->count * loader->elements);
    memcpy(labels, slot->labels, slot->count * sizeof *labels);
}

/* Waits for a batch, and has it written. */
static dv_status fill(dv_loader *loader, uint64_t epoch, size_t batch,
                      void (*write)(const dv_loader *, const dv_slot *, void *, int32_t *), void *images,
                      int32_t *labels, size_t *count, dv_error *error) {
    DV_NEED(loader);
    DV_NEED(images);
    DV_NEED(labels);
    DV_NEED(count);
    if (batch >= loader->options.batches)
        return dv_fail(error, DV_ERROR_ARGUMENT, "loader: batch %zu of %zu", batch, loader->options.batches);
    const dv_slot *slot = dv_prefetch_take(loader->prefetch, epoch, batch);
    dv_status status = inspect(loader, slot, error);
    if (status == DV_OK)
        write(loader, slot, images, labels);
    memcpy(loader->shown, slot->shown, slot->count * sizeof *loader->shown);
    *count = slot->count;
    dv_prefetch_done(loader->prefetch);
    return status;
}

dv_status dv_loader_fill(dv_loader *loader, uint64_t epoch, size_t batch, void *images, int32_t *labels, size_t *count,
                         dv_error *error) {
    return fill(loader, epoch, batch, write_batch, images, labels, count, error);
}

dv_status dv_loader_fill_bytes(dv_loader *loader, uint64_t epoch, size_t batch, uint8_t *images, int32_t *labels,
                               size_t *count, dv_error *error) {
    return fill(loader, epoch, batch, copy_batch, images, labels, count, error);
}
