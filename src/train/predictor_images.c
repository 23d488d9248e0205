/* From files of images to logits and probabilities. */
#include "train/predictor.h"

#include "base/file.h"
#include "base/float16.h"
#include "base/status.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_FILE = 1 << 28 };

/* ---- memory -------------------------------------------------------------------------------- */

static size_t image_elements(const dv_predictor *p) {
    return p->side * p->side * DV_PIXEL;
}

size_t dv_predictor_image_bytes(const dv_predictor *p) {
    if (p->decoder == NULL)
        return 0;
    return dv_decoder_bytes(p->side, p->side) + sizeof *p->normaliser +
           p->batch * (image_elements(p) + 1 + 2 * p->classes * sizeof(float));
}

dv_status dv_predictor_images_new(dv_predictor *p, dv_error *error) {
    DV_TRY(dv_decoder_new(p->side, p->side, &p->decoder, error));
    p->normaliser = malloc(sizeof *p->normaliser);
    p->pixels = malloc(p->batch * image_elements(p));
    p->is_read = calloc(p->batch, 1);
    p->logits = malloc(p->batch * p->classes * sizeof(float));
    p->probabilities = malloc(p->batch * p->classes * sizeof(float));
    if (p->normaliser == NULL || p->pixels == NULL || p->is_read == NULL || p->logits == NULL ||
        p->probabilities == NULL)
        return dv_fail(error, DV_ERROR_MEMORY, "no memory for %zu images: use a smaller batch", p->batch);
    dv_normaliser_init(p->normaliser, &p->normalisation);
    return DV_OK;
}

void dv_predictor_images_free(dv_predictor *p) {
    dv_decoder_free(p->decoder);
    free(p->normaliser);
    free(p->pixels);
    free(p->is_read);
    free(p->logits);
    free(p->probabilities);
}

/* ---- reading ------------------------------------------------------------------------------- */

static dv_status check_place(const dv_predictor *p, size_t place, dv_error *error) {
    if (p->decoder == NULL)
        return dv_fail(error, DV_ERROR_ARGUMENT, "predictor: it was made with network_only, and decodes nothing");
    if (place >= p->batch)
        return dv_fail(error, DV_ERROR_ARGUMENT, "predictor: place %zu of a batch of %zu", place, p->batch);
    p->is_read[place] = 0;
    return DV_OK;
}

dv_status dv_predictor_read_bytes(dv_predictor *predictor, size_t place, const void *bytes, size_t count,
                                  dv_error *error) {
    size_t width, height;
    DV_NEED(predictor);
    DV_NEED(bytes);
    DV_TRY(check_place(predictor, place, error));
    const dv_view_options options = {.side = predictor->side, .resize = predictor->resize};
    DV_TRY(dv_decoder_open(predictor->decoder, bytes, count, &width, &height, error));
    dv_view view = dv_view_choose(&options, (dv_showing){0, 0, 0}, width, height);
    DV_TRY(dv_decoder_show(predictor->decoder, &view, predictor->pixels + place * image_elements(predictor), error));
    predictor->is_read[place] = 1;
    return DV_OK;
}

dv_status dv_predictor_read(dv_predictor *predictor, size_t place, const char *path, dv_error *error) {
    void *bytes;
    size_t count;
    dv_error inner = {.status = DV_OK};
    DV_NEED(predictor);
    DV_NEED(path);
    DV_TRY(check_place(predictor, place, error));
    DV_TRY(dv_file_read(path, MOST_FILE, &bytes, &count, error));
    dv_status status = dv_predictor_read_bytes(predictor, place, bytes, count, &inner);
    free(bytes);
    return status == DV_OK ? DV_OK : dv_fail(error, status, "%s: %.160s", dv_file_shown(path), inner.text);
}

const uint8_t *dv_predictor_pixels(const dv_predictor *p, size_t place) {
    return p->decoder != NULL && place < p->batch ? p->pixels + place * image_elements(p) : NULL;
}

/* ---- predicting ---------------------------------------------------------------------------- */

static dv_status fill_input(dv_predictor *p, size_t images, dv_error *error) {
    if (p->decoder == NULL || images == 0 || images > p->batch)
        return dv_fail(error, DV_ERROR_ARGUMENT, "predictor: %zu images of a batch of %zu", images, p->batch);
    for (size_t place = 0; place < images; place++)
        if (!p->is_read[place])
            return dv_fail(error, DV_ERROR_ARGUMENT, "predictor: place %zu has no image: read one first", place);
    DV_TRY(dv_run_set_images(p->run, images, error));
    char *input = dv_run_input(p->run);
    size_t elements = image_elements(p), bytes = elements * dv_type_bytes(p->precision);
    for (size_t place = 0; place < images; place++)
        dv_normaliser_write(p->normaliser, p->precision, p->pixels + place * elements, elements, input + place * bytes);
    return DV_OK;
}

void dv_softmax(const float *logits, size_t classes, float *probabilities) {
    float most = -INFINITY;
    double sum = 0;
    if (logits == NULL || probabilities == NULL)
        return;
    for (size_t i = 0; i < classes; i++)
        most = fmaxf(most, logits[i]);
    for (size_t i = 0; i < classes; i++)
        sum += exp((double)logits[i] - (double)most);
    for (size_t i = 0; i < classes; i++)
        probabilities[i] = (float)(exp((double)logits[i] - (double)most) / sum);
}

dv_status dv_predictor_predict(dv_predictor *predictor, size_t images, dv_error *error) {
    DV_NEED(predictor);
    predictor->predicted = 0;
    DV_TRY(fill_input(predictor, images, error));
    DV_TRY(dv_run_predict(predictor->run, error));
    dv_numbers_to_f32(predictor->precision, dv_run_logits(predictor->run), images * predictor->classes,
                      predictor->logits);
    for (size_t place = 0; place < images; place++)
        dv_softmax(predictor->logits + place * predictor->classes, predictor->classes,
                   predictor->probabilities + place * predictor->classes);
    predictor->predicted = images;
    return DV_OK;
}

const float *dv_predictor_logits(const dv_predictor *p, size_t place) {
    return place < p->predicted ? p->logits + place * p->classes : NULL;
}

const float *dv_predictor_probabilities(const dv_predictor *p, size_t place) {
    return place < p->predicted ? p->probabilities + place * p->classes : NULL;
}

/* By insertion: few are asked for. */
size_t dv_top_labels(const float *numbers, size_t classes, size_t *labels, size_t count) {
    size_t found = 0;
    for (size_t label = 0; numbers != NULL && labels != NULL && label < classes; label++) {
        size_t at = found;
        while (at > 0 && numbers[label] > numbers[labels[at - 1]])
            at--;
        if (at == count)
            continue;
        found += found < count;
        for (size_t i = found - 1; i > at; i--)
            labels[i] = labels[i - 1];
        labels[at] = label;
    }
    return found;
}
