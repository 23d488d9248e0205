/* What the files of the predictor share. */
#ifndef DV_TRAIN_PREDICTOR_H
#define DV_TRAIN_PREDICTOR_H

#include "data/image.h"
#include "data/normaliser.h"

#include <division/predictor.h>
#include <division/train.h>

struct dv_predictor {
    char path[DV_PATH_BYTES], model[DV_NAME_BYTES];
    dv_type precision;
    size_t batch, classes, side, resize;  /* resize 0: not known */
    dv_image_normalisation normalisation; /* zeros: not known */
    char **class_names;                   /* [classes]; NULL: there are none */
    dv_graph *graph;
    dv_plan *plan;
    dv_run *run;

    /* predictor_images.c: NULL where nothing is decoded */
    dv_decoder *decoder;
    dv_normaliser *normaliser;
    uint8_t *pixels;      /* [batch][side][side][3] */
    uint8_t *is_read;     /* [batch] */
    float *logits;        /* [batch][classes] */
    float *probabilities; /* likewise */
    size_t predicted;     /* places that have logits */
};

/* What decoding takes, and its memory. */
size_t dv_predictor_image_bytes(const dv_predictor *predictor);
dv_status dv_predictor_images_new(dv_predictor *predictor, dv_error *error);
void dv_predictor_images_free(dv_predictor *predictor);

/* predictor_notes.c: fills in model, precision, sizes, normalisation and names, from the options and else from the
 * checkpoint. */
dv_status dv_predictor_resolve(dv_predictor *predictor, const dv_checkpoint *checkpoint,
                               const dv_predictor_options *options, dv_error *error);

#endif
