/* Counting what a test found. */
#include "eval.h"

#include "cli.h"

#include <stdlib.h>

enum { MOST_CLASSES = 4096 }; /* of a matrix: 64 MiB */

dv_status eval_tally_new(size_t classes, eval_tally *tally, dv_error *error) {
    *tally = (eval_tally){.classes = classes};
    tally->images = calloc(classes, sizeof *tally->images);
    tally->correct = calloc(classes, sizeof *tally->correct);
    tally->probabilities = calloc(classes, sizeof *tally->probabilities);
    if (classes <= MOST_CLASSES)
        tally->matrix = calloc(classes * classes, sizeof *tally->matrix);
    if (tally->images == NULL || tally->correct == NULL || tally->probabilities == NULL ||
        (tally->matrix == NULL && classes <= MOST_CLASSES))
        return cli_error(error, DV_ERROR_MEMORY, "no memory to count %zu classes: free some", classes);
    return DV_OK;
}

void eval_tally_free(eval_tally *tally) {
    free(tally->matrix);
    free(tally->images);
    free(tally->correct);
    free(tally->probabilities);
    free(tally->mistakes);
}

static void add_mistake(eval_tally *tally, const eval_mistake *mistake) {
    if (tally->mistake_count == tally->mistake_room) {
        size_t room = tally->mistake_room > 0 ? 2 * tally->mistake_room : 256;
        eval_mistake *grown = realloc(tally->mistakes, room * sizeof *grown);
        if (grown == NULL) {
            tally->no_memory = 1;
            return;
        }
        tally->mistakes = grown;
        tally->mistake_room = room;
    }
    tally->mistakes[tally->mistake_count++] = *mistake;
}

void eval_tally_add(void *context, const dv_test_image *image) {
    eval_tally *tally = context;
    size_t label = (size_t)image->label, predicted = 0;
    if (label >= tally->classes || dv_top_labels(image->logits, image->classes, &predicted, 1) == 0)
        return;
    tally->images[label]++;
    if (tally->matrix != NULL)
        tally->matrix[label * tally->classes + predicted]++;
    if (predicted == label) {
        tally->correct[label]++;
        return;
    }
    dv_softmax(image->logits, image->classes, tally->probabilities);
    add_mistake(tally, &(eval_mistake){.index = image->index,
                                       .label = label,
                                       .predicted = predicted,
                                       .probability = tally->probabilities[predicted],
                                       .truth = tally->probabilities[label]});
}

static int compare(const void *a, const void *b) {
    const eval_mistake *left = a, *right = b;
    if (left->truth != right->truth)
        return left->truth < right->truth ? -1 : 1;
    return left->index < right->index ? -1 : left->index > right->index;
}

dv_status eval_tally_end(eval_tally *tally, dv_error *error) {
    if (tally->no_memory)
        return cli_error(error, DV_ERROR_MEMORY, "no memory for %zu mistakes: free some", tally->mistake_count);
    if (tally->mistake_count > 0)
        qsort(tally->mistakes, tally->mistake_count, sizeof *tally->mistakes, compare);
    return DV_OK;
}

size_t eval_tally_confused(const eval_tally *tally, size_t label, size_t *count) {
    const uint32_t *row = tally->matrix + label * tally->classes;
    size_t most = label;
    *count = 0;
    for (size_t i = 0; i < tally->classes; i++)
        if (i != label && row[i] > *count) {
            most = i;
            *count = row[i];
        }
    return most;
}
