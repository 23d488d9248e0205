/* Data: labelled images behind one interface, and the loader that makes batches of them.
 *
 * A data set is named by text, "kind" or "kind:where it is": "synthetic:side=32,train=5000", "cifar10:DIR".
 *
 * - Threads: Any thread may read an open data set at any time. A loader is one thread's at a time; several loaders of
 *   one data set may be used by different threads at once. Calls come back in the thread that asked for the batch.
 * - Fork: A child may read an open data set. It must not use or free a loader with workers; without them a loader uses
 *   OpenMP's threads, and division/threads.h says what a child may do.
 * - Freeing: Loaders first, then their data set. */
#ifndef DIVISION_DATA_H
#define DIVISION_DATA_H

#include <division/codec.h>
#include <division/export.h>
#include <division/status.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- data sets ----------------------------------------------------------------------------- */

typedef struct dv_dataset dv_dataset;

typedef enum dv_split { DV_TRAIN, DV_TEST, DV_SPLIT_COUNT } dv_split;

enum { DV_DATA_CHANNELS = 3 };

/* What a data set has. */
typedef struct dv_dataset_shape {
    size_t images[DV_SPLIT_COUNT];
    size_t classes;  /* labels are 0 to classes - 1 */
    size_t side;     /* images are shown as side x side x DV_DATA_CHANNELS unless another side is asked for */
    size_t held_out; /* images of the test that were held out of those to learn from; 0: it has its own */
} dv_dataset_shape;

/* How folders without images to test with get some: this share of each class, at least one image, is held out. Which
 * ones depends on a hash of their paths and on the seed, so that whoever opens the same folder has the same. */
typedef struct dv_dataset_options {
    double hold_out; /* 0 to 0.9; 0: none, and such a folder is an error; 0.1 */
    uint64_t seed;   /* 1 */
} dv_dataset_options;

/* Opens a data set. It is the caller's to close. */
DV_API dv_status dv_dataset_open(const char *text, dv_dataset **dataset, dv_error *error);

/* The same with other options than those above; NULL: these. */
DV_API dv_status dv_dataset_open_with(const char *text, const dv_dataset_options *options, dv_dataset **dataset,
                                      dv_error *error);
DV_API dv_dataset_options dv_dataset_options_default(void);

/* Files in folders of classes that were not read, by kind: "3 .gif, 1 .txt". NULL: there are none. */
DV_API const char *dv_dataset_unread(const dv_dataset *dataset);
DV_API void dv_dataset_close(dv_dataset *dataset);

DV_API dv_dataset_shape dv_dataset_describe(const dv_dataset *dataset);

/* The name of a class, which lives as long as the data set. NULL: it has none, or there is no such class. */
DV_API const char *dv_dataset_class_name(const dv_dataset *dataset, size_t label);

/* The label of an image, without decoding it. */
DV_API dv_status dv_dataset_label(const dv_dataset *dataset, dv_split split, size_t index, int32_t *label,
                                  dv_error *error);

/* One image as a test shows it: bytes [side][side][3]. Any thread may call it. */
DV_API dv_status dv_dataset_load(const dv_dataset *dataset, dv_split split, size_t index, uint8_t *image,
                                 int32_t *label, dv_error *error);

/* What people call an image, as "val/cat/1.jpg", or its number where it has no name, into `name` [bytes], cut off where
 * it does not fit. */
DV_API dv_status dv_dataset_image_name(const dv_dataset *dataset, dv_split split, size_t index, char *name,
                                       size_t bytes, dv_error *error);

/* 1 if the name of a file ends as those of images do that can be read: data sets of folders take no others. */
DV_API int dv_image_is_named(const char *name);

/* The kinds there are: how to write one, and a line of help, of the index-th, or NULL past the last. */
DV_API const char *dv_dataset_usage_at(size_t index);
DV_API const char *dv_dataset_help_at(size_t index);

/* ---- augmentation -------------------------------------------------------------------------- */

/* Which part of an image is shown when it is varied. */
typedef enum dv_crop {
    DV_CROP_USUAL,   /* what is usual for the data set, and all else with it */
    DV_CROP_NONE,    /* the middle, as in a test */
    DV_CROP_ZERO,    /* moved by up to `padding` pixels either way; what comes in from outside is black */
    DV_CROP_REFLECT, /* the same; what comes in is the image mirrored */
    DV_CROP_RESIZED, /* a part of random area and shape, resized: torchvision's RandomResizedCrop */
    DV_CROP_COUNT
} dv_crop;

/* Which images are mirrored. */
typedef enum dv_flip {
    DV_FLIP_NEVER,
    DV_FLIP_CHANCE,    /* each with probability one half, every time anew */
    DV_FLIP_ALTERNATE, /* each in every other epoch, so that any two show it from both sides */
    DV_FLIP_COUNT
} dv_flip;

/* How images are varied. All zeros are what is usual for the data set. */
typedef struct dv_augmentation {
    dv_crop crop;
    size_t padding;                 /* 0 to 64; 4 */
    size_t flip;                    /* a dv_flip; DV_FLIP_CHANCE */
    double least_area, most_area;   /* of the part, in shares of the image: above 0, to 1; 0.08 to 1 */
    double least_ratio, most_ratio; /* of its width to its height: 0.01 to 100; 3/4 to 4/3 */
} dv_augmentation;

/* Reads "usual", "none", "zero:padding=4,flip=1", "reflect:padding=4,flip=1" or
 * "resized:least=0.08,most=1,narrow=0.75,wide=1.3333,flip=1"; what is not named has the value shown here. */
DV_API dv_status dv_augmentation_parse(const char *text, dv_augmentation *augmentation, dv_error *error);

/* The augmentations there are: how to write one, and a line of help, or NULL past the last. */
DV_API const char *dv_augmentation_usage_at(size_t index);
DV_API const char *dv_augmentation_help_at(size_t index);

/* ---- normalisation ------------------------------------------------------------------------- */

/* How bytes of images become numbers: (byte / 255 - mean) / deviation, channel by channel. All zeros are the data set's
 * own, what "usual" stands for. */
typedef struct dv_image_normalisation {
    double mean[DV_DATA_CHANNELS];      /* 0 to 1 */
    double deviation[DV_DATA_CHANNELS]; /* 0.001 to 1000 */
} dv_image_normalisation;

/* Reads "usual", or means and deviations of red, green and blue: "0.485+0.456+0.406/0.229+0.224+0.225". */
DV_API dv_status dv_image_normalisation_parse(const char *text, dv_image_normalisation *normalisation, dv_error *error);

/* Writes it as such a text, with as many digits as it takes to read the same numbers again. Out of bounds:
 * DV_ERROR_OPTION. */
enum { DV_NORMALISATION_BYTES = 192 };
DV_API dv_status dv_image_normalisation_format(const dv_image_normalisation *normalisation,
                                               char text[DV_NORMALISATION_BYTES], dv_error *error);

/* ---- the loader ---------------------------------------------------------------------------- */

typedef struct dv_loader dv_loader;

/* Zeros are good for all but the batch. */
typedef struct dv_loader_options {
    dv_split split;
    dv_type type; /* of the elements: f32 or bf16 */
    size_t batch; /* images */
    uint64_t seed;
    int shuffle;   /* the order is another one in each epoch, given by seed and epoch alone; else that of the data */
    int augment;   /* images are varied, given by seed, epoch and index alone */
    int drop_last; /* leave out the last batch if it is not full */

    size_t ranks, rank; /* of several loaders that share each batch, this is the `rank`-th of `ranks`, from 0; `batch`
                           is then what each has of it, and a last batch that is not full is shared evenly; 0: alone */

    dv_augmentation augmentation;         /* how images are varied */
    dv_image_normalisation normalisation; /* how they become numbers */
    size_t side;                          /* of the images made, up to 1024; 0: the data's */
    size_t resize;   /* the shorter side before the middle is taken of an image that is not varied, `side` to 2048;
                        0: the scale that variation shows images at: 8/7 of the side for photographs of which parts
                        are resized, else the side itself */
    size_t workers;  /* threads that make batches ahead, up to 256; 0: the calling thread and its OpenMP team make
                        them when they are asked for */
    size_t prefetch; /* batches that they make ahead, up to 64; 0: 2 */

    /* Told, in the thread that calls dv_loader_fill, of each corrupt image: what it is and what is wrong. May be
     * NULL. */
    void (*corrupt)(void *context, const char *text);
    void *context;
} dv_loader_options;

/* A loader of a split. The data set must outlive it. */
DV_API dv_status dv_loader_new(const dv_dataset *dataset, const dv_loader_options *options, dv_loader **loader,
                               dv_error *error);
DV_API void dv_loader_free(dv_loader *loader);

/* What a loader with these options takes, for the plan. It is taken at once by dv_loader_new. */
DV_API size_t dv_loader_bytes(const dv_dataset *dataset, const dv_loader_options *options);

/* What `resize` is with these options, where they leave it open too. */
DV_API size_t dv_loader_resize(const dv_dataset *dataset, const dv_loader_options *options);

/* What `normalisation` is with these options, where they leave it open too: the data set's own. */
DV_API dv_image_normalisation dv_loader_normalisation(const dv_dataset *dataset, const dv_loader_options *options);

/* 1 if images that are not varied are shown at a scale at which these options never show varied ones, so that a test
 * sees things smaller or larger than training did; else 0. */
DV_API int dv_loader_scales_differ(const dv_dataset *dataset, const dv_loader_options *options);

/* Batches in an epoch. */
DV_API size_t dv_loader_batches(const dv_loader *loader);

/* The place of a batch's first image in the order of the epoch; of several ranks', of the first that this one has. */
DV_API size_t dv_loader_place(const dv_loader *loader, size_t batch);

/* Different images found corrupt so far. */
DV_API size_t dv_loader_corrupt(const dv_loader *loader);

/* Makes a batch of an epoch: images [batch][side][side][3], normalised, and labels [batch]. `count` is how many
 * there are; in the last batch that may be fewer, and the memory behind them is left alone. Not from two threads at
 * once.
 *
 * Workers guess that the next batch, and after the last the first of the next epoch, is asked for then; any other
 * may be, at the cost of making it while the caller waits.
 *
 * In place of a corrupt image there is the next one of the data that is good, varied as the corrupt one would have
 * been. If more than one of a hundred images is corrupt, that is DV_ERROR_FORMAT. */
DV_API dv_status dv_loader_fill(dv_loader *loader, uint64_t epoch, size_t batch, void *images, int32_t *labels,
                                size_t *count, dv_error *error);

/* The same as bytes, not normalised: images [batch][side][side][3]. */
DV_API dv_status dv_loader_fill_bytes(dv_loader *loader, uint64_t epoch, size_t batch, uint8_t *images, int32_t *labels,
                                      size_t *count, dv_error *error);

/* How fast batches come. */
typedef struct dv_loader_speed {
    double loader;  /* images per second of dv_loader_fill */
    double decoder; /* images per second of as many threads that decode whole images and do nothing else; NaN for data
                       that is not compressed */
    double ratio;   /* the median of loader / decoder over rounds that are run in turns */
} dv_loader_speed;

/* Measures for about so many seconds, from the batches of epoch 0 on. */
DV_API dv_status dv_loader_measure(const dv_dataset *dataset, const dv_loader_options *options, double seconds,
                                   dv_loader_speed *speed, dv_error *error);

#ifdef __cplusplus
}
#endif

#endif
