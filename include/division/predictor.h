/* Predictions: the classes of images by the weights of a training, or of any file that has them.
 *
 *     dv_predictor *predictor;
 *     dv_predictor_open("runs/first", NULL, &predictor, &error);
 *     dv_predictor_read(predictor, 0, "cat.jpg", &error);              into place 0 of the batch
 *     dv_predictor_predict(predictor, 1, &error);                      of one image
 *     const float *logits = dv_predictor_logits(predictor, 0);         [classes]
 *     const char *name = dv_predictor_class_name(predictor, 0);        of logits[0]
 *     dv_predictor_close(predictor);
 *
 * Images are decoded, resized, cut out and normalised as the training's own test does it: its checkpoints say how, in
 * notes (docs/training.md). What a file does not say the options do.
 *
 * - Threads: A predictor is one thread's at a time. Different ones may be used by different threads at once.
 * - Fork: Predictions use OpenMP's threads: division/threads.h says what a child may do.
 * - Freeing: A predictor holds all that it needs; a checkpoint that it was made of can be closed before. Pointers into
 *   it live as long as it does. */
#ifndef DIVISION_PREDICTOR_H
#define DIVISION_PREDICTOR_H

#include <division/checkpoint.h>
#include <division/data.h>
#include <division/export.h>
#include <division/graph.h>
#include <division/status.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dv_predictor dv_predictor;

/* Zeros and NULLs stand for what the file says. All that is pointed to is copied. */
typedef struct dv_predictor_options {
    const char *model;     /* "resnet20" */
    const char *precision; /* of activations: "f32" or "bf16"; without a note f32 */
    size_t batch;          /* images that are predicted together, 1 to 2^20; 1 */
    size_t classes;        /* outputs of the network */
    size_t side, resize;   /* of images, up to 1024 and 2048. For another side than the file's, its resize is scaled */
    const char *normalise; /* as dv_image_normalisation_parse reads it; "usual" is none here: there is no data */
    const char *names;     /* of classes: a file with one in each line */
    int network_only;      /* nothing is decoded: resize and normalisation may be missing, and classes and side are
                              the model's own then */

    /* Told of each difference between the file's arrays and the network's. May be NULL. */
    dv_difference_callback difference;
    void *context;
} dv_predictor_options;

/* A batch of 1, and all else as the file says. */
DV_API dv_predictor_options dv_predictor_options_default(void);

/* A predictor with the weights of a file, or with the best ones of a folder of a training. `options` may be NULL: the
 * defaults. Where there are averages of the weights, those are taken. What neither file nor options say is
 * DV_ERROR_OPTION, which names all options that are missing. */
DV_API dv_status dv_predictor_open(const char *path, const dv_predictor_options *options, dv_predictor **predictor,
                                   dv_error *error);

/* The same of a checkpoint that is open. */
DV_API dv_status dv_predictor_new(const dv_checkpoint *checkpoint, const dv_predictor_options *options,
                                  dv_predictor **predictor, dv_error *error);
DV_API void dv_predictor_close(dv_predictor *predictor);

/* What a predictor is of. */
typedef struct dv_predictor_description {
    const char *path; /* of the file; lives as long as the predictor, as does the model's name */
    const char *model;
    dv_type precision;
    size_t batch, classes, side;
    size_t resize;                        /* 0: not known */
    dv_image_normalisation normalisation; /* zeros: not known */
    size_t planned_bytes;                 /* of the arena and of the memory that images are decoded in */
} dv_predictor_description;

DV_API dv_predictor_description dv_predictor_describe(const dv_predictor *predictor);

/* The name of a class. NULL: it has none, or there is no such class. */
DV_API const char *dv_predictor_class_name(const dv_predictor *predictor, size_t label);

/* The run with the weights. It is the predictor's: predictions through it are as good as the predictor's own. */
DV_API dv_run *dv_predictor_run(dv_predictor *predictor);

/* Decodes an image, a file or the `count` bytes of one, into a place of the batch. What is no image, or damaged, is
 * DV_ERROR_FORMAT, and the place has nothing in it then. */
DV_API dv_status dv_predictor_read(dv_predictor *predictor, size_t place, const char *path, dv_error *error);
DV_API dv_status dv_predictor_read_bytes(dv_predictor *predictor, size_t place, const void *bytes, size_t count,
                                         dv_error *error);

/* The image in a place, as the network sees it: bytes [side][side][3]. NULL: there is no such place. */
DV_API const uint8_t *dv_predictor_pixels(const dv_predictor *predictor, size_t place);

/* Predicts the first `images` places of the batch, all of which must have been read into; they stay. */
DV_API dv_status dv_predictor_predict(dv_predictor *predictor, size_t images, dv_error *error);

/* What came of a place [classes]: logits, and their softmax. NULL: it was not predicted. They stay until the next
 * prediction. */
DV_API const float *dv_predictor_logits(const dv_predictor *predictor, size_t place);
DV_API const float *dv_predictor_probabilities(const dv_predictor *predictor, size_t place);

/* The probabilities [classes] of logits [classes]; the two may be one array. */
DV_API void dv_softmax(const float *logits, size_t classes, float *probabilities);

/* The labels of the `count` largest of `numbers` [classes], the largest first; of equals the lower label first. Returns
 * how many there are: no more than classes. */
DV_API size_t dv_top_labels(const float *numbers, size_t classes, size_t *labels, size_t count);

#ifdef __cplusplus
}
#endif

#endif
