/* Data: labelled images behind one interface, and the loader that makes batches of them.
 *
 * A data set is named by text, "kind" or "kind:where it is": "synthetic:side=32,train=5000", "cifar10:DIR". */
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
    size_t classes; /* labels are 0 to classes - 1 */
    size_t side;    /* images are side x side x DV_DATA_CHANNELS */
} dv_dataset_shape;

/* Opens a data set. It is the caller's to close. */
DV_API dv_status dv_dataset_open(const char *text, dv_dataset **dataset, dv_error *error);
DV_API void dv_dataset_close(dv_dataset *dataset);

DV_API dv_dataset_shape dv_dataset_describe(const dv_dataset *dataset);

/* One image as it is, not augmented: bytes [side][side][3]. Any thread may call it. */
DV_API dv_status dv_dataset_load(const dv_dataset *dataset, dv_split split, size_t index, uint8_t *image,
                                 int32_t *label, dv_error *error);

/* The kinds there are: how to write one, and a line of help, of the index-th, or NULL past the last. */
DV_API const char *dv_dataset_usage_at(size_t index);
DV_API const char *dv_dataset_help_at(size_t index);

/* ---- the loader ---------------------------------------------------------------------------- */

/* The label of what fills up a batch: it counts for nothing. */
enum { DV_NO_LABEL = -1 };

typedef struct dv_loader dv_loader;

typedef struct dv_loader_options {
    dv_split split;
    dv_type type; /* of the elements: f32 or bf16 */
    size_t batch; /* images */
    uint64_t seed;
    int shuffle;   /* the order is another one in each epoch, given by seed and epoch alone; else that of the data */
    int augment;   /* images are varied as is usual for the data, given by seed, epoch and index alone */
    int drop_last; /* leave out the last batch if it is not full; else it is filled up */
} dv_loader_options;

/* A loader of a split. The data set must outlive it. */
DV_API dv_status dv_loader_new(const dv_dataset *dataset, const dv_loader_options *options, dv_loader **loader,
                               dv_error *error);
DV_API void dv_loader_free(dv_loader *loader);

/* Batches in an epoch. */
DV_API size_t dv_loader_batches(const dv_loader *loader);

/* Makes a batch of an epoch: images [batch][side][side][3], normalised, and labels [batch]. `count` is how many
 * are real: the rest, in the last batch, are zeros with DV_NO_LABEL. Not from two threads at once. */
DV_API dv_status dv_loader_fill(dv_loader *loader, uint64_t epoch, size_t batch, void *images, int32_t *labels,
                                size_t *count, dv_error *error);

#ifdef __cplusplus
}
#endif

#endif
