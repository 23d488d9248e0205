/* What the files of `division eval` share: what a test found, image by image and class by class. */
#ifndef DV_CLI_EVAL_H
#define DV_CLI_EVAL_H

#include <division/predictor.h>
#include <division/tools/json.h>
#include <division/train.h>

/* An image that was taken for another class than its own. */
typedef struct eval_mistake {
    size_t index, label, predicted;
    float probability; /* of the class it was taken for */
    float truth;       /* of its own */
} eval_mistake;

/* Sums over images. */
typedef struct eval_tally {
    size_t classes;
    uint32_t *matrix; /* [classes][classes]: images of the first that were taken for the second; NULL: too many */
    size_t *images, *correct; /* [classes] */
    float *probabilities;     /* [classes], of the image under way */
    eval_mistake *mistakes;   /* after eval_tally_end the worst first: those whose own class seemed least probable */
    size_t mistake_count, mistake_room;
    int no_memory; /* some mistakes are missing */
} eval_tally;

dv_status eval_tally_new(size_t classes, eval_tally *tally, dv_error *error);
void eval_tally_free(eval_tally *tally);

/* For dv_test_each: adds an image. `tally` is an eval_tally. */
void eval_tally_add(void *tally, const dv_test_image *image);

/* Orders the mistakes. Fails if memory ran out on the way. */
dv_status eval_tally_end(eval_tally *tally, dv_error *error);

/* The class that most images of a class were taken for besides itself, and how many those are. */
size_t eval_tally_confused(const eval_tally *tally, size_t label, size_t *count);

/* Everything there is to tell of. */
typedef struct eval_findings {
    const char *model, *data;
    const dv_dataset *dataset;
    const dv_predictor *predictor;
    dv_split split;
    dv_test_result result;
    eval_tally tally;
} eval_findings;

/* The data's name of a class, else the weights' note; NULL: there is none. */
const char *eval_class_name(const eval_findings *found, size_t label);

/* Tables: accuracy of each class; images of each class by what they were taken for, or the most frequent confusions
 * where that is wider than 80 columns. */
void eval_print_classes(const eval_findings *found);
void eval_print_matrix(const eval_findings *found);

/* The same as members "classes" and "confusion" of an object. */
void eval_json_classes(const eval_findings *found, dv_json *json);
void eval_json_matrix(const eval_findings *found, dv_json *json);

/* The mistakes as CSV. */
dv_status eval_write_mistakes(const eval_findings *found, const char *path, dv_error *error);

/* Pictures: the matrix; a sheet of the worst mistakes, up to so many. */
dv_status eval_draw_matrix(const eval_findings *found, const char *path, dv_error *error);
dv_status eval_draw_worst(const eval_findings *found, size_t most, const char *path, dv_error *error);

#endif
